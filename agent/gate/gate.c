/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gate.h. */
#include "agent/gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define GATE_AT_ONCE  64 /* packets received before others get their turn */
#define GATE_BUFFER   (2 << 20)
#define GATE_FDS_WAIT GATE_STREAMS_MAX /* descriptors that wait */

/* A packet that the other end has not taken yet. */
struct gate_packet {
	struct gate_packet *next;
	int fds[GATE_FDS_MAX];
	size_t nfds, length;
	uint8_t bytes[];
};

struct gate {
	struct gate_config config;
	struct loop_fd entry;
	bool broken;
	struct gate_packet *first, **last;
	size_t queued, queued_fds;
	uint64_t refused;
	bool paused;			 /* nothing is received */
	uint8_t in[GATE_PACKET_MAX + 1]; /* one more shows that a packet is too long */
	uint8_t out[GATE_PACKET_MAX];
};

int gate_pair(int fds[2], struct iocom_err *err)
{
	int size = GATE_BUFFER;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
		return iocom_err_set(err, -errno, "cannot make a socket pair: %s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		/* Without the right to force it the system's bound must do. */
		if (setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
			(void)setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	}
	return 0;
}

static void gate_packet_free(struct gate_packet *p)
{
	for (size_t i = 0; i < p->nfds; i++)
		close(p->fds[i]);
	explicit_bzero(p->bytes, p->length); /* a key may be in it */
	free(p);
}

static void gate_break(struct gate *g, const char *why)
{
	if (g->broken)
		return;
	g->broken = true;
	loop_remove(g->config.loop, &g->entry);
	g->config.broken(g->config.arg, why);
}

/* --- sending -------------------------------------------------------------------------- */

/* Returns 0; -EAGAIN: the socket is full; another negative errno: the other end is gone. */
static int gate_send_packet(int to, const void *bytes, size_t length, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * GATE_FDS_MAX)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (nfds) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	if (sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? -EAGAIN : -errno;
}

static void gate_await(struct gate *g)
{
	loop_change(g->config.loop, &g->entry,
		    (g->paused ? 0 : EPOLLIN) | (g->first ? EPOLLOUT : 0));
}

static int gate_queue(struct gate *g, size_t length, const int *fds, size_t nfds)
{
	struct gate_packet *p;

	/* An end that asks for descriptors and reads none must not exhaust ours. */
	if (g->queued + length > GATE_QUEUE_MAX || g->queued_fds + nfds > GATE_FDS_WAIT)
		return -ENOBUFS;
	p = malloc(sizeof(*p) + length);
	if (!p)
		return -ENOMEM;
	*p = (struct gate_packet){.length = length};
	memcpy(p->bytes, g->out, length);
	for (; p->nfds < nfds; p->nfds++) {
		p->fds[p->nfds] = fcntl(fds[p->nfds], F_DUPFD_CLOEXEC, 0);
		if (p->fds[p->nfds] < 0) {
			int rc = -errno;

			gate_packet_free(p);
			return rc;
		}
	}
	*g->last = p;
	g->last = &p->next;
	if (g->first == p)
		gate_await(g);
	g->queued += length;
	g->queued_fds += nfds;
	return 0;
}

/* Sends what waits, as far as the socket takes it. */
static void gate_flush(struct gate *g)
{
	while (g->first) {
		struct gate_packet *p = g->first;
		int rc = gate_send_packet(g->entry.fd, p->bytes, p->length, p->fds, p->nfds);

		if (rc == -EAGAIN)
			return;
		if (rc) {
			gate_break(g, "the other side is gone");
			return;
		}
		g->first = p->next;
		g->queued -= p->length;
		g->queued_fds -= p->nfds;
		gate_packet_free(p);
	}
	g->last = &g->first;
	gate_await(g);
}

int gate_send(struct gate *g, const struct gate_message *m, const void *tail, size_t n,
	      const int *fds)
{
	size_t size = gate_body_size(m->type), nfds = gate_fds_of(m), length = GATE_HEAD + size + n;
	uint32_t type = m->type, tail_length = (uint32_t)n;
	int rc;

	if (g->broken)
		return -EPIPE;
	if (n > GATE_CONTROL_MAX)
		return -EMSGSIZE;
	memcpy(g->out, &type, sizeof(type));
	memcpy(g->out + sizeof(type), &tail_length, sizeof(tail_length));
	memcpy(g->out + GATE_HEAD, &m->setup, size);
	if (n)
		memcpy(g->out + GATE_HEAD + size, tail, n);
	rc = g->first ? -EAGAIN : gate_send_packet(g->entry.fd, g->out, length, fds, nfds);
	if (rc == -EAGAIN)
		rc = gate_queue(g, length, fds, nfds);
	g->refused += rc == -ENOBUFS || rc == -ENOMEM;
	/* Whether the other side is gone the loop will see; a caller need not be called back here.
	 */
	return rc == -ENOBUFS || rc == -ENOMEM || !rc ? rc : -EPIPE;
}

uint64_t gate_refused(const struct gate *g)
{
	return g->refused;
}

void gate_pause(struct gate *g, bool paused)
{
	if (g->broken || g->paused == paused)
		return;
	g->paused = paused;
	gate_await(g);
}

size_t gate_queued(const struct gate *g)
{
	return g->queued;
}

/* --- receiving ------------------------------------------------------------------------ */

/* Fills FDS with the descriptors of MSG.  Returns how many came; those that do not fit are closed.
 */
static size_t gate_take_fds(struct msghdr *msg, int fds[GATE_FDS_MAX])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < GATE_FDS_MAX)
				fds[n] = fd;
			else
				close(fd);
			n++;
		}
	}
	return n;
}

static void gate_close_fds(const int *fds, size_t n)
{
	for (size_t i = 0; i < n && i < GATE_FDS_MAX; i++)
		close(fds[i]);
}

/* How many descriptors come with the packet; what is no message is refused afterwards. */
static size_t gate_fds_wanted(const uint8_t *packet, size_t length)
{
	struct gate_message m = {0};
	uint32_t type;
	size_t size;

	if (length < GATE_HEAD)
		return 0;
	memcpy(&type, packet, sizeof(type));
	size = gate_body_size((enum gate_type)type);
	if (!size || length < GATE_HEAD + size || type == GATE_SETUP)
		return 0;
	m.type = (enum gate_type)type;
	return gate_fds_of(&m);
}

/* Takes one packet.  Returns 1; 0: there is none now; -1: the gate is broken. */
static int gate_receive(struct gate *g)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * (GATE_FDS_MAX + 1))];
	} control;
	struct iovec iov = {.iov_base = g->in, .iov_len = sizeof(g->in)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	struct gate_message m;
	const uint8_t *tail;
	int fds[GATE_FDS_MAX];
	const char *why;
	size_t n, nfds, got;
	ssize_t length = recvmsg(g->entry.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (length <= 0) {
		gate_break(g, "the other side is gone");
		return -1;
	}
	got = gate_take_fds(&msg, fds);
	nfds = got;
	/* This process has no descriptors left: those that are missing are -1. */
	if (msg.msg_flags & MSG_CTRUNC)
		for (; nfds < gate_fds_wanted(g->in, (size_t)length); nfds++)
			fds[nfds] = -1;
	if (gate_message_read(&m, g->config.side, g->in, (size_t)length, nfds, &tail, &n, &why)) {
		gate_close_fds(fds, got);
		gate_break(g, why);
		return -1;
	}
	g->config.received(g->config.arg, &m, g->in + (tail - g->in), n, fds);
	return g->broken ? -1 : 1;
}

static void gate_ready(void *arg, uint32_t events)
{
	struct gate *g = arg;

	if (events & EPOLLOUT)
		gate_flush(g);
	for (int i = 0; i < GATE_AT_ONCE && !g->broken && !g->paused; i++)
		if (gate_receive(g) <= 0)
			return;
}

int gate_wait(struct gate *g, int limit_ms)
{
	struct pollfd p = {.fd = g->entry.fd, .events = POLLIN};
	int rc;

	if (g->broken)
		return -EPIPE;
	do
		rc = poll(&p, 1, limit_ms);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return -ETIMEDOUT;
	rc = gate_receive(g);
	return rc < 0 ? -EPIPE : rc ? 0 : -ETIMEDOUT;
}

int gate_new(struct gate **out, const struct gate_config *config, struct iocom_err *err)
{
	struct gate *g = calloc(1, sizeof(*g));
	int rc;

	if (!g) {
		close(config->fd);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	g->config = *config;
	g->last = &g->first;
	g->entry = (struct loop_fd){.fd = config->fd, .ready = gate_ready, .arg = g};
	rc = loop_add(config->loop, &g->entry, EPOLLIN);
	if (rc) {
		close(config->fd);
		free(g);
		return iocom_err_set(err, rc, "cannot watch a socket: %s", strerror(-rc));
	}
	*out = g;
	return 0;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	loop_remove(g->config.loop, &g->entry);
	close(g->entry.fd);
	while (g->first) {
		struct gate_packet *p = g->first;

		g->first = p->next;
		gate_packet_free(p);
	}
	explicit_bzero(g->in, sizeof(g->in));
	explicit_bzero(g->out, sizeof(g->out));
	free(g);
}
