/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/uring.h"

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

/* Returns how many requests the batch at AT has. */
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

static int uring_batch(const struct body *b, struct uring *u, unsigned sqe_flags, int fd,
		       char *buffer, size_t at, size_t n)
{
	int result;

	for (size_t i = 0; i < n; i++) {
		struct io_uring_sqe *entry = uring_next(u);

		entry->opcode = b->write ? IORING_OP_WRITE : IORING_OP_READ;
		entry->flags = (uint8_t)sqe_flags;
		entry->fd = fd;
		entry->addr = (uint64_t)(uintptr_t)(buffer + i * b->block);
		entry->len = (uint32_t)b->block;
		entry->off = (uint64_t)b->from + at + i * b->block;
		uring_push(u);
	}
	if (uring_submit(u, (unsigned)n))
		return 1;
	for (size_t i = 0; i < n; i++)
		if (uring_take(u, &result) || result != (int)b->block)
			return 1;
	return 0;
}

static int run_uring(const struct body *b, unsigned setup_flags, unsigned sqe_flags)
{
	char *buffer = body_buffer(b->block * RINGS_DEPTH);
	int fd = open_for(b), rc;
	struct uring u;
	size_t n;

	if (fd < 0 || !buffer)
		return 1;
	rc = uring_open(&u, RINGS_DEPTH, setup_flags);
	if (rc)
		return rc == -ENOSYS || rc == -EPERM ? RINGS_ABSENT : 1;
	for (size_t at = 0; !rc && at < b->bytes; at += n * b->block) {
		n = batch_at(b, at);
		rc = uring_batch(b, &u, sqe_flags, fd, buffer, at, n);
	}
	return rc;
}

int body_uring(void *body)
{
	return run_uring(body, 0, 0);
}

int body_uring_sqpoll(void *body)
{
	return run_uring(body, IORING_SETUP_SQPOLL, 0);
}

int body_uring_async(void *body)
{
	return run_uring(body, 0, IOSQE_ASYNC);
}
