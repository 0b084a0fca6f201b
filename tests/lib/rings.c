/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "rings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_for(const struct body *b)
{
	return open(b->path, (b->write ? O_WRONLY | O_CREAT : O_RDONLY) | b->flags, 0644);
}

/* Submits the N requests from AT on and waits for all of them. */
static int aio_batch(const struct body *b, aio_context_t ring, int fd, char *buffer, size_t at,
		     size_t n)
{
	struct iocb requests[RINGS_DEPTH], *list[RINGS_DEPTH];
	struct io_event events[RINGS_DEPTH];

	memset(requests, 0, sizeof(requests));
	for (size_t i = 0; i < n; i++) {
		requests[i].aio_fildes = (uint32_t)fd;
		requests[i].aio_lio_opcode = b->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		requests[i].aio_buf = (uint64_t)(uintptr_t)(buffer + i * b->block);
		requests[i].aio_nbytes = b->block;
		requests[i].aio_offset = b->from + (off_t)(at + i * b->block);
		list[i] = &requests[i];
	}
	if (syscall(SYS_io_submit, ring, (long)n, list) != (long)n ||
	    syscall(SYS_io_getevents, ring, (long)n, (long)n, events, NULL) != (long)n)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (events[i].res != (int64_t)b->block)
			return 1;
	return 0;
}

/* How many requests the batch at AT has. */
static size_t batch_at(const struct body *b, size_t at)
{
	size_t left = (b->bytes - at) / b->block;

	return left < RINGS_DEPTH ? left : RINGS_DEPTH;
}

int body_aio(void *body)
{
	struct body *b = body;
	char *buffer = body_buffer(b->block * RINGS_DEPTH);
	int fd = open_for(b), rc = 0;
	aio_context_t ring = 0;
	size_t n;

	if (fd < 0 || !buffer)
		return 1;
	if (syscall(SYS_io_setup, RINGS_DEPTH, &ring))
		return errno == ENOSYS ? RINGS_ABSENT : 1;
	for (size_t at = 0; !rc && at < b->bytes; at += n * b->block) {
		n = batch_at(b, at);
		rc = aio_batch(b, ring, fd, buffer, at, n);
	}
	syscall(SYS_io_destroy, ring);
	return rc;
}

struct uring {
	int fd;
	unsigned setup_flags, sqe_flags;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static unsigned *at(char *ring, unsigned offset)
{
	return (unsigned *)(void *)(ring + offset);
}

static int uring_open(struct uring *u)
{
	const struct io_uring_params *p = &u->params;
	size_t sq_size, cq_size;

	memset(&u->params, 0, sizeof(u->params));
	u->params.flags = u->setup_flags;
	u->params.sq_thread_idle = 100; /* ms */
	u->fd = (int)syscall(SYS_io_uring_setup, RINGS_DEPTH, &u->params);
	if (u->fd < 0)
		return errno == ENOSYS || errno == EPERM ? RINGS_ABSENT : 1;
	sq_size = p->sq_off.array + p->sq_entries * sizeof(unsigned);
	cq_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	u->sq = mmap(NULL, sq_size, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->cq = mmap(NULL, cq_size, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_CQ_RING);
	u->sqes = mmap(NULL, p->sq_entries * sizeof(*u->sqes), PROT_READ | PROT_WRITE, MAP_SHARED,
		       u->fd, IORING_OFF_SQES);
	return u->sq == MAP_FAILED || u->cq == MAP_FAILED || u->sqes == MAP_FAILED;
}

static void uring_put(struct uring *u, const struct body *b, int fd, char *buffer, off_t offset)
{
	unsigned *tail = at(u->sq, u->params.sq_off.tail);
	unsigned slot = *tail & *at(u->sq, u->params.sq_off.ring_mask);
	struct io_uring_sqe *sqe = &u->sqes[slot];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = b->write ? IORING_OP_WRITE : IORING_OP_READ;
	sqe->flags = (uint8_t)u->sqe_flags;
	sqe->fd = fd;
	sqe->addr = (uint64_t)(uintptr_t)buffer;
	sqe->len = (uint32_t)b->block;
	sqe->off = (uint64_t)offset;
	at(u->sq, u->params.sq_off.array)[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_SEQ_CST);
}

/* Waits for N results and takes them. */
static int uring_take(struct uring *u, const struct body *b, size_t n)
{
	struct io_uring_cqe *cqes = (void *)(u->cq + u->params.cq_off.cqes);
	unsigned *head = at(u->cq, u->params.cq_off.head), *tail = at(u->cq, u->params.cq_off.tail);
	unsigned mask = *at(u->cq, u->params.cq_off.ring_mask), flags = IORING_ENTER_GETEVENTS;
	unsigned put = (unsigned)n;

	if (u->setup_flags & IORING_SETUP_SQPOLL) {
		put = 0;
		if (__atomic_load_n(at(u->sq, u->params.sq_off.flags), __ATOMIC_SEQ_CST) &
		    IORING_SQ_NEED_WAKEUP)
			flags |= IORING_ENTER_SQ_WAKEUP;
	}
	if (syscall(SYS_io_uring_enter, u->fd, put, (unsigned)n, flags, NULL, 0) < 0)
		return 1;
	for (size_t i = 0; i < n; i++, __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE)) {
		while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
			if (syscall(SYS_io_uring_enter, u->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL,
				    0) < 0)
				return 1;
		if (cqes[*head & mask].res != (int32_t)b->block)
			return 1;
	}
	return 0;
}

static int run_uring(const struct body *b, struct uring *u)
{
	char *buffer = body_buffer(b->block * RINGS_DEPTH);
	int fd = open_for(b), rc;
	size_t n;

	if (fd < 0 || !buffer)
		return 1;
	rc = uring_open(u);
	for (size_t done = 0; !rc && done < b->bytes; done += n * b->block) {
		n = batch_at(b, done);
		for (size_t i = 0; i < n; i++)
			uring_put(u, b, fd, buffer + i * b->block,
				  b->from + (off_t)(done + i * b->block));
		rc = uring_take(u, b, n);
	}
	return rc;
}

int body_uring(void *body)
{
	struct uring u = {0};

	return run_uring(body, &u);
}

int body_uring_sqpoll(void *body)
{
	struct uring u = {.setup_flags = IORING_SETUP_SQPOLL};

	return run_uring(body, &u);
}

int body_uring_async(void *body)
{
	struct uring u = {.sqe_flags = IOSQE_ASYNC};

	return run_uring(body, &u);
}
