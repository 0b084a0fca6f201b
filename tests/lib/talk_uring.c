/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One send or receive through an io_uring of one entry, without a library. */
#include "talk.h"

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
	int fd;
	char *queues; /* both, by IORING_FEAT_SINGLE_MMAP */
	struct io_uring_sqe *entries;
	struct io_uring_params params;
};

static int ring_up(struct ring *ring)
{
	struct io_uring_params *p = &ring->params;

	memset(p, 0, sizeof(*p));
	ring->fd = (int)syscall(SYS_io_uring_setup, 1, p);
	if (ring->fd < 0)
		return -1;
	ring->queues = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
			    IORING_OFF_SQ_RING);
	ring->entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			     ring->fd, IORING_OFF_SQES);
	if (!(p->features & IORING_FEAT_SINGLE_MMAP) || ring->queues == MAP_FAILED ||
	    ring->entries == MAP_FAILED) {
		close(ring->fd);
		return -1;
	}
	return 0;
}

ssize_t talk_uring(int fd, unsigned char opcode, void *buffer, size_t bytes)
{
	static struct ring ring = {.fd = -1}; /* of this process */
	const struct io_uring_cqe *answers;
	unsigned *tail, *head;

	if (ring.fd < 0 && ring_up(&ring))
		return -1;
	memset(ring.entries, 0, sizeof(*ring.entries));
	ring.entries->opcode = opcode;
	ring.entries->fd = fd;
	ring.entries->addr = (unsigned long)buffer;
	ring.entries->len = (unsigned)bytes;
	((unsigned *)(void *)(ring.queues + ring.params.sq_off.array))[0] = 0;
	tail = (unsigned *)(void *)(ring.queues + ring.params.sq_off.tail);
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return -1;
	head = (unsigned *)(void *)(ring.queues + ring.params.cq_off.head);
	answers = (const void *)(ring.queues + ring.params.cq_off.cqes);
	fd = answers[*head & (ring.params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return fd;
}
