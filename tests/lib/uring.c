/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/uring.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_IDLE_MS 100

static unsigned *at(char *ring, unsigned offset)
{
	return (unsigned *)(void *)(ring + offset);
}

static void *map(const struct uring *u, size_t size, off_t offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, offset);
}

int uring_open(struct uring *u, unsigned entries, unsigned flags)
{
	const struct io_uring_params *p = &u->params;

	memset(u, 0, sizeof(*u));
	u->params.flags = flags;
	u->params.sq_thread_idle = POLL_IDLE_MS;
	u->fd = (int)syscall(SYS_io_uring_setup, entries, &u->params);
	if (u->fd < 0)
		return -errno;
	u->sq = map(u, p->sq_off.array + p->sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	u->cq = map(u, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe),
		    IORING_OFF_CQ_RING);
	u->entries = map(u, p->sq_entries * sizeof(*u->entries), IORING_OFF_SQES);
	if (u->sq != MAP_FAILED && u->cq != MAP_FAILED && u->entries != MAP_FAILED)
		return 0;
	close(u->fd);
	u->fd = -1;
	return -ENOMEM;
}

static unsigned next_slot(const struct uring *u)
{
	return *at(u->sq, u->params.sq_off.tail) & *at(u->sq, u->params.sq_off.ring_mask);
}

struct io_uring_sqe *uring_next(struct uring *u)
{
	struct io_uring_sqe *entry = &u->entries[next_slot(u)];

	memset(entry, 0, sizeof(*entry));
	return entry;
}

void uring_push(struct uring *u)
{
	unsigned *tail = at(u->sq, u->params.sq_off.tail), slot = next_slot(u);

	at(u->sq, u->params.sq_off.array)[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_SEQ_CST);
}

static int enter(const struct uring *u, unsigned put, unsigned wait, unsigned flags)
{
	flags |= IORING_ENTER_GETEVENTS;
	return syscall(SYS_io_uring_enter, u->fd, put, wait, flags, NULL, 0) < 0 ? -1 : 0;
}

int uring_submit(struct uring *u, unsigned n)
{
	unsigned *flags = at(u->sq, u->params.sq_off.flags);

	if (!(u->params.flags & IORING_SETUP_SQPOLL))
		return enter(u, n, n, 0);
	if (__atomic_load_n(flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
		return enter(u, 0, n, IORING_ENTER_SQ_WAKEUP);
	return enter(u, 0, n, 0);
}

int uring_take(struct uring *u, int *result)
{
	const struct io_uring_cqe *results = (void *)(u->cq + u->params.cq_off.cqes);
	unsigned *head = at(u->cq, u->params.cq_off.head), *tail = at(u->cq, u->params.cq_off.tail);

	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
		if (enter(u, 0, 1, 0))
			return -1;
	*result = results[*head & *at(u->cq, u->params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return 0;
}
