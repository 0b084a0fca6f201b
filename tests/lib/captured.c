/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See captured.h: packets, and those that are no message. */
#include "tests/lib/captured.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

void captured_pack(struct captured_packet *p, const struct gate_message *m, const void *tail,
		   size_t n)
{
	uint32_t type = m->type, length = (uint32_t)n;
	size_t size = gate_body_size(m->type);

	memcpy(p->bytes, &type, sizeof(type));
	memcpy(p->bytes + sizeof(type), &length, sizeof(length));
	memcpy(p->bytes + GATE_HEAD, &m->setup, size);
	if (n)
		memcpy(p->bytes + GATE_HEAD + size, tail, n);
	p->length = GATE_HEAD + size + n;
	p->nfds = 0;
}

static int captured_try(int gate, const struct captured_packet *p)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * CAPTURED_FDS_MAX)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p->bytes, .iov_len = p->length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (p->nfds) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * p->nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * p->nfds);
		memcpy(CMSG_DATA(c), p->fds, sizeof(int) * p->nfds);
	}
	return sendmsg(gate, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int captured_send(int gate, const struct captured_packet *p)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct pollfd ready = {.fd = gate, .events = POLLOUT};
	int rc;

	for (int tries = 0; tries < CAPTURED_WAIT_MS; tries++) {
		rc = captured_try(gate, p);
		/* Too many descriptors are under way: wait until root has read some. */
		if (rc == -ETOOMANYREFS)
			nanosleep(&pause, NULL);
		else if (rc == -EAGAIN)
			(void)poll(&ready, 1, 1);
		else
			return rc;
	}
	return -ETIMEDOUT;
}

/* --- what is no message ------------------------------------------------------------------ */

struct bad {
	const char *what;
	/* Spoils M, of TYPE, before it is packed, or P afterwards; either may be NULL. */
	enum gate_type type;
	void (*message)(struct gate_message *m);
	void (*packet)(struct captured_packet *p, int fd);
	size_t tail;
};

static void bad_head(struct captured_packet *p, uint32_t type)
{
	memcpy(p->bytes, &type, sizeof(type));
}

static void bad_tail(struct captured_packet *p, uint32_t length)
{
	memcpy(p->bytes + sizeof(uint32_t), &length, sizeof(length));
}

static void bad_fds(struct captured_packet *p, int fd, size_t n)
{
	for (p->nfds = 0; p->nfds < n; p->nfds++)
		p->fds[p->nfds] = fd;
}

#define BAD_PACKET(name, body)                                                                     \
	static void name(struct captured_packet *p, int fd)                                        \
	{                                                                                          \
		(void)fd;                                                                          \
		body;                                                                              \
	}
#define BAD_MESSAGE(name, body)                                                                    \
	static void name(struct gate_message *m)                                                   \
	{                                                                                          \
		body;                                                                              \
	}

BAD_PACKET(bad_empty, p->length = 0)
BAD_PACKET(bad_seven, p->length = 7)
BAD_PACKET(bad_type_0, bad_head(p, 0))
BAD_PACKET(bad_type_none, bad_head(p, GATE_PING + 1))
BAD_PACKET(bad_type_most, bad_head(p, UINT32_MAX))
BAD_PACKET(bad_tail_most, bad_tail(p, UINT32_MAX))
BAD_PACKET(bad_tail_more, bad_tail(p, 64))
BAD_PACKET(bad_short, p->length--)
BAD_PACKET(bad_long, memset(p->bytes + p->length, 'x', sizeof(p->bytes) - p->length);
	   p->length = sizeof(p->bytes))
BAD_PACKET(bad_bool, p->bytes[GATE_HEAD + offsetof(struct gate_question, proven)] = 2)
BAD_PACKET(bad_fd_0, bad_fds(p, fd, 0))
BAD_PACKET(bad_fd_1, bad_fds(p, fd, 1))
BAD_PACKET(bad_fd_2, bad_fds(p, fd, 2))
BAD_PACKET(bad_fd_all, bad_fds(p, fd, CAPTURED_FDS_MAX))
BAD_PACKET(bad_text, p->bytes[p->length - 1] = '\n')
BAD_PACKET(bad_tail_nul, p->bytes[p->length - 1] = 0)
BAD_MESSAGE(bad_endless, memset(m->skewed.node, 'A', sizeof(m->skewed.node)))
BAD_MESSAGE(bad_control, strcpy(m->skewed.node, "a\nroot did this"))
BAD_MESSAGE(bad_nobody, m->skewed.node[0] = 0)
BAD_MESSAGE(bad_nan, m->vector.vector.run_queue = NAN)
BAD_MESSAGE(bad_infinite, m->vector.vector.cpu_speed = INFINITY)
BAD_MESSAGE(bad_cores, m->vector.vector.cores = UINT32_MAX)
BAD_MESSAGE(bad_period, m->vector.vector.period_ms = 0)
BAD_MESSAGE(bad_slash, strcpy(m->vector.vector.name, "../../etc/cron.d/x"))
BAD_MESSAGE(bad_space, strcpy(m->vector.vector.name, "a b"))
BAD_MESSAGE(bad_nameless, m->vector.vector.name[0] = 0)
BAD_MESSAGE(bad_beyond, m->hello.credential = 5000)
BAD_MESSAGE(bad_wraps, m->hello.credential = 8; m->hello.credential_length = UINT32_MAX - 4)
BAD_MESSAGE(bad_kind, m->stream.hello.kind = (enum stream_kind)7)
BAD_MESSAGE(bad_positive, m->ready.rc = 1)
BAD_MESSAGE(bad_errno, m->answered.rc = -5000)
BAD_MESSAGE(bad_failed, m->answered.rc = -1)

static const struct bad bads[] = {
	{.what = "four billion bytes promised",
	 .type = GATE_QUESTION,
	 .packet = bad_tail_most,
	 .tail = 8},
	{.what = "longer than any", .type = GATE_QUESTION, .packet = bad_long, .tail = 8},
	{.what = "of another direction (epoch)", .type = GATE_EPOCH},
	{.what = "a node's name with a line end", .type = GATE_SKEWED, .message = bad_control},
	{.what = "a load that is no number", .type = GATE_VECTOR, .message = bad_nan},
	{.what = "node ../../etc/cron.d/x", .type = GATE_VECTOR, .message = bad_slash},
	{.what = "a credential beyond the greeting",
	 .type = GATE_HELLO,
	 .message = bad_wraps,
	 .tail = 100},
	{.what = "a stream with 32 descriptors",
	 .type = GATE_STREAM,
	 .packet = bad_fd_all,
	 .tail = 8},
	{.what = "empty", .type = GATE_PONG, .packet = bad_empty},
	{.what = "seven bytes", .type = GATE_PONG, .packet = bad_seven},
	{.what = "of type 0", .type = GATE_PONG, .packet = bad_type_0},
	{.what = "of no type", .type = GATE_PONG, .packet = bad_type_none},
	{.what = "of type 2^32 - 1", .type = GATE_PONG, .packet = bad_type_most},
	{.what = "more promised than sent",
	 .type = GATE_QUESTION,
	 .packet = bad_tail_more,
	 .tail = 8},
	{.what = "a byte short", .type = GATE_VECTOR, .packet = bad_short},
	{.what = "a bool of 2", .type = GATE_QUESTION, .packet = bad_bool, .tail = 8},
	{.what = "a name without an end", .type = GATE_SKEWED, .message = bad_endless},
	{.what = "a clock of nobody", .type = GATE_SKEWED, .message = bad_nobody},
	{.what = "an infinite speed", .type = GATE_VECTOR, .message = bad_infinite},
	{.what = "four billion cores", .type = GATE_VECTOR, .message = bad_cores},
	{.what = "a period of 0", .type = GATE_VECTOR, .message = bad_period},
	{.what = "a node's name with a space", .type = GATE_VECTOR, .message = bad_space},
	{.what = "a node without a name", .type = GATE_VECTOR, .message = bad_nameless},
	{.what = "a credential far away", .type = GATE_HELLO, .message = bad_beyond, .tail = 100},
	{.what = "a stream of kind 7",
	 .type = GATE_STREAM,
	 .message = bad_kind,
	 .packet = bad_fd_1,
	 .tail = 8},
	{.what = "a stream without a descriptor",
	 .type = GATE_STREAM,
	 .packet = bad_fd_0,
	 .tail = 8},
	{.what = "a stream with two descriptors",
	 .type = GATE_STREAM,
	 .packet = bad_fd_2,
	 .tail = 8},
	{.what = "a pong with a descriptor", .type = GATE_PONG, .packet = bad_fd_1},
	{.what = "ready with an error above 0", .type = GATE_READY, .message = bad_positive},
	{.what = "ready with a reason of two lines",
	 .type = GATE_READY,
	 .packet = bad_text,
	 .tail = 8},
	{.what = "an error that is none", .type = GATE_ANSWERED, .message = bad_errno, .tail = 8},
	{.what = "a reason with a NUL",
	 .type = GATE_ANSWERED,
	 .message = bad_failed,
	 .packet = bad_tail_nul,
	 .tail = 8},
	{.what = "an answer of no bytes", .type = GATE_ANSWERED},
	{.what = "a question of no bytes", .type = GATE_QUESTION},
	{.what = "a question too long, by one byte",
	 .type = GATE_QUESTION,
	 .tail = GATE_CONTROL_MAX + 1},
	{.what = "a renewal too long, by one byte",
	 .type = GATE_RENEW,
	 .tail = GATE_SENTENCE_MAX + 1},
	{.what = "a stream's beginning too long",
	 .type = GATE_STREAM,
	 .packet = bad_fd_1,
	 .tail = STREAM_HELLO_MAX + 1},
	{.what = "of another direction (set-up)", .type = GATE_SETUP},
	{.what = "of another direction (peer)", .type = GATE_PEER},
	{.what = "of another direction (dial)", .type = GATE_DIAL},
	{.what = "of another direction (undial)", .type = GATE_UNDIAL},
	{.what = "of another direction (publish)", .type = GATE_PUBLISH},
	{.what = "of another direction (publisher's key)", .type = GATE_PUBLISHER_KEY},
	{.what = "of another direction (ask)", .type = GATE_ASK, .tail = 8},
	{.what = "of another direction (forget)", .type = GATE_FORGET},
	{.what = "of another direction (reply)", .type = GATE_REPLY, .tail = 8},
	{.what = "of another direction (stream over)", .type = GATE_STREAM_OVER},
	{.what = "of another direction (renewed)", .type = GATE_RENEWED, .tail = 8},
	{.what = "of another direction (page)", .type = GATE_PAGE, .packet = bad_fd_1},
	{.what = "of another direction (ping)", .type = GATE_PING},
};

const char *captured_bad(struct captured_packet *p, unsigned k, int fd)
{
	static const uint8_t tail[GATE_CONTROL_MAX + 1] = {'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'};
	const struct bad *bad = &bads[k];
	struct gate_message m;

	if (k >= sizeof(bads) / sizeof(*bads))
		return NULL;
	memset(&m, 0, sizeof(m));
	m.type = bad->type;
	if (m.type == GATE_VECTOR)
		m.vector.vector = captured_vector("honest", 1);
	if (m.type == GATE_SKEWED)
		strcpy(m.skewed.node, "honest");
	if (bad->message)
		bad->message(&m);
	captured_pack(p, &m, tail, bad->tail);
	if (bad->packet)
		bad->packet(p, fd);
	return bad->what;
}
