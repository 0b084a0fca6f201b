/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/rig.h"
#include "tests/lib/uring.h"

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * Sends or receives once through a ring with one entry. Returns the bytes moved, 0 at the end,
 * or -1.
 */
static ssize_t ring_call(int fd, unsigned char opcode, void *buffer, size_t bytes)
{
	static struct uring ring = {.fd = -1}; /* the ring of this process */
	struct io_uring_sqe *entry;
	int result;

	if (ring.fd < 0 && uring_open(&ring, 1, 0))
		return -1;
	entry = uring_next(&ring);
	entry->opcode = opcode;
	entry->fd = fd;
	entry->addr = (uint64_t)(uintptr_t)buffer;
	entry->len = (uint32_t)bytes;
	uring_push(&ring);
	return uring_submit(&ring, 1) || uring_take(&ring, &result) ? -1 : result;
}

static socklen_t make_address(union address *out, const char *text, uint16_t port)
{
	memset(out, 0, sizeof(*out));
	if (strchr(text, ':')) {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_port = htons(port);
		inet_pton(AF_INET6, text, &out->in6.sin6_addr);
		return sizeof(out->in6);
	}
	out->in.sin_family = AF_INET;
	out->in.sin_port = htons(port);
	inet_pton(AF_INET, text, &out->in.sin_addr);
	return sizeof(out->in);
}

uint16_t talk_port(void)
{
	static uint16_t port = 7651;

	return port++;
}

int talk_listen(const char *address, uint16_t port, int protocol)
{
	union address at;
	socklen_t length = make_address(&at, address, port);
	int one = 1, fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &at.any, length) || listen(fd, 16)) {
		close(fd);
		return -1;
	}
	return fd;
}

int talk_connect(const char *address, uint16_t port, const char *from, int protocol)
{
	union address to, own;
	socklen_t length = make_address(&to, address, port);
	int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -1;
	if ((from && bind(fd, &own.any, make_address(&own, from, 0))) ||
	    connect(fd, &to.any, length)) {
		close(fd);
		return -1;
	}
	return fd;
}

int talk_give(int fd, size_t bytes)
{
	static char block[TALK_BLOCK];

	while (bytes) {
		ssize_t n = write(fd, block, bytes < TALK_BLOCK ? bytes : TALK_BLOCK);

		if (n <= 0)
			return -1;
		bytes -= (size_t)n;
	}
	return 0;
}

int talk_take(int fd, size_t bytes)
{
	static char block[TALK_BLOCK];

	while (bytes) {
		ssize_t n = read(fd, block, bytes < TALK_BLOCK ? bytes : TALK_BLOCK);

		if (n <= 0)
			return -1;
		bytes -= (size_t)n;
	}
	return 0;
}

static void wait_for(int fd, short events)
{
	struct pollfd wanted = {.fd = fd, .events = events};

	poll(&wanted, 1, 1000);
}

static ssize_t receive_some(int fd, enum talk_receive how, char *buffer, const int *pipes)
{
	ssize_t n;

	switch (how) {
	case TALK_PEEK:
		if (recv(fd, buffer, TALK_BLOCK, MSG_PEEK) < 0)
			return -1;
		return recv(fd, buffer, TALK_BLOCK, 0);
	case TALK_WAITALL:
		return recv(fd, buffer, TALK_BLOCK, MSG_WAITALL);
	case TALK_TRUNC:
		return recv(fd, buffer, TALK_BLOCK, MSG_TRUNC);
	case TALK_SPLICE:
		n = splice(fd, NULL, pipes[1], NULL, TALK_BLOCK, 0);
		return n > 0 ? read(pipes[0], buffer, (size_t)n) : n;
	case TALK_RECEIVE_NONBLOCK:
		while ((n = recv(fd, buffer, TALK_BLOCK, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
			wait_for(fd, POLLIN);
		return n;
	case TALK_RECEIVE_URING:
		return ring_call(fd, IORING_OP_RECV, buffer, TALK_BLOCK);
	default:
		return read(fd, buffer, TALK_BLOCK);
	}
}

/* Takes the kernel's notices that earlier zero-copy sends are done. */
static void reap_zerocopy(int fd)
{
	char control[128];
	struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};

	while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		message.msg_controllen = sizeof(control);
}

static ssize_t send_some(int fd, enum talk_send how, int file, char *buffer, size_t bytes)
{
	ssize_t n;

	switch (how) {
	case TALK_SENDFILE:
		return sendfile(fd, file, NULL, bytes);
	case TALK_ZEROCOPY:
		reap_zerocopy(fd);
		while ((n = send(fd, buffer, bytes, MSG_ZEROCOPY)) < 0 && errno == ENOBUFS) {
			wait_for(fd, POLLERR);
			reap_zerocopy(fd);
		}
		return n;
	case TALK_SEND_NONBLOCK:
		while ((n = send(fd, buffer, bytes, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
			wait_for(fd, POLLOUT);
		return n;
	case TALK_SEND_URING:
		return ring_call(fd, IORING_OP_SEND, buffer, bytes);
	default:
		return write(fd, buffer, bytes);
	}
}

/* What the two processes share. */
struct shared {
	const struct talk *talk;
	uint16_t port;
	uint64_t *calls; /* shared memory: number of calls of sender and receiver */
	int ready[2];
};

static int settle(const struct talk *talk, int end)
{
	if (talk->cgroup && rig_enter_cgroup(talk->cgroup, 0))
		return -1;
	return talk->netns[end] ? rig_enter_netns(talk->netns[end]) : 0;
}

static int body_receiver(void *argument)
{
	struct shared *shared = argument;
	const struct talk *talk = shared->talk;
	char *buffer = malloc(TALK_BLOCK);
	int listener, fd, pipes[2];
	size_t have = 0;
	ssize_t n;

	if (!buffer || settle(talk, 1) || pipe(pipes))
		return 1;
	listener = talk_listen(talk->address, shared->port, talk->protocol);
	if (listener < 0 || write(shared->ready[1], "", 1) != 1)
		return 1;
	fd = accept(listener, NULL, NULL);
	while ((n = receive_some(fd, talk->receive, buffer, pipes)) > 0) {
		have += (size_t)n;
		++shared->calls[1];
	}
	return have != talk->bytes;
}

static int body_sender(void *argument)
{
	struct shared *shared = argument;
	const struct talk *talk = shared->talk;
	char *buffer = calloc(1, TALK_BLOCK);
	int fd, file = memfd_create("source", 0), one = 1;
	ssize_t n;

	if (!buffer || settle(talk, 0) || ftruncate(file, (off_t)talk->bytes))
		return 1;
	fd = talk_connect(talk->address, shared->port, talk->from, talk->protocol);
	if (fd < 0)
		return 1;
	if (talk->send == TALK_ZEROCOPY &&
	    setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		return 1;
	for (size_t done = 0; done < talk->bytes; done += (size_t)n) {
		size_t want = talk->bytes - done < TALK_BLOCK ? talk->bytes - done : TALK_BLOCK;

		n = send_some(fd, talk->send, file, buffer, want);
		if (n <= 0)
			return 1;
		++shared->calls[0];
	}
	return 0;
}

int talk_run(const struct talk *talk, struct talk_end ends[2])
{
	struct shared shared = {.talk = talk, .port = talk_port()};
	int rc = -1;
	char byte;

	shared.calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared.calls == MAP_FAILED || pipe(shared.ready))
		return -1;
	ends[1].pid = rig_start(body_receiver, &shared);
	close(shared.ready[1]);
	if (read(shared.ready[0], &byte, 1) == 1) {
		ends[0].pid = rig_start(body_sender, &shared);
		rc = rig_wait(ends[0].pid) ? -1 : 0;
	}
	close(shared.ready[0]);
	if (rig_wait(ends[1].pid))
		rc = -1;
	for (int i = 0; i < 2; i++)
		ends[i].calls = shared.calls[i];
	munmap(shared.calls, 4096);
	return rc;
}
