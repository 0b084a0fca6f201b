/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See subscription.h. */
#include "agent/net/subscription.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"

#define GREETING_BYTES 8
#define HEAD_BYTES     8
#define ROOM_LEAST     4096
/* What waited longer was stopped with this process, or the clock was set. */
#define SUBSCRIPTION_WAITED_MAX_NS (10 * CLOCK_NS_PER_S)
#define ROOM_KEPT		   (64u << 10) /* more is given back after a long message */

enum subscription_state { RESTS, CONNECTS, GREETS, READS };

struct subscription {
	struct subscription_config config;
	struct sockaddr_storage to;
	socklen_t to_length;
	enum subscription_state state;
	struct loop_fd entry;
	struct loop_timer timer; /* RESTS: until the next attempt; CONNECTS, GREETS: for the rest */
	unsigned wait_ms;
	bool cut; /* while messages are looked at */
	bool looking;
	uint64_t waited_ns; /* what was read last, until it was */
	uint8_t *bytes;	    /* what came */
	size_t have, room;
};

static const uint8_t greeting_sub[GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x21, 0, 0};
static const uint8_t greeting_pub[GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x20, 0, 0};

static uint64_t subscription_length(const uint8_t head[HEAD_BYTES])
{
	uint64_t length = 0;

	for (int i = 0; i < HEAD_BYTES; i++)
		length = length << 8 | head[i];
	return length;
}

static void subscription_hang_up(struct subscription *s)
{
	loop_cancel(s->config.loop, &s->timer);
	if (s->state != RESTS) {
		loop_remove(s->state == READS ? s->config.reads : s->config.loop, &s->entry);
		close(s->entry.fd);
	}
	s->state = RESTS;
	s->have = 0;
}

/* The waits vary, so that the nodes of a cluster do not all come back at once. */
static void subscription_rest(struct subscription *s)
{
	uint64_t wait_ns = s->wait_ms * CLOCK_NS_PER_MS;

	subscription_hang_up(s);
	loop_start(s->config.loop, &s->timer, wait_ns / 2 + (uint64_t)random() % (wait_ns / 2 + 1));
	s->wait_ms *= 2;
	if (s->wait_ms > SUBSCRIPTION_LONGEST_MS)
		s->wait_ms = SUBSCRIPTION_LONGEST_MS;
}

/* --- reading ----------------------------------------------------------------------------- */

static int subscription_make_room(struct subscription *s, size_t need)
{
	uint8_t *grown;

	if (need < ROOM_LEAST)
		need = ROOM_LEAST;
	if (need <= s->room && (s->room <= ROOM_KEPT || need > ROOM_KEPT))
		return 0;
	grown = realloc(s->bytes, need);
	if (!grown)
		return need <= s->room ? 0 : -ENOMEM;
	s->bytes = grown;
	s->room = need;
	return 0;
}

/* Takes the publisher's greeting.  Returns the bytes used, -EPROTO or -ENOMEM. */
static ssize_t subscription_greeted(struct subscription *s)
{
	if (s->have < GREETING_BYTES)
		return 0;
	if (memcmp(s->bytes, greeting_pub, GREETING_BYTES) != 0)
		return -EPROTO;
	loop_remove(s->config.loop, &s->entry);
	if (loop_add(s->config.reads, &s->entry, EPOLLIN))
		return -ENOMEM;
	loop_cancel(s->config.loop, &s->timer);
	s->state = READS;
	s->wait_ms = SUBSCRIPTION_LEAST_MS;
	return GREETING_BYTES;
}

/* Hands on the messages that are complete.  Returns the bytes used, or -EMSGSIZE. */
static ssize_t subscription_hand_on(struct subscription *s, size_t from)
{
	while (s->have - from >= HEAD_BYTES && !s->cut) {
		uint64_t length = subscription_length(s->bytes + from);

		if (length > s->config.message_max)
			return -EMSGSIZE;
		if (s->have - from - HEAD_BYTES < length)
			break;
		from += HEAD_BYTES;
		s->looking = true;
		s->config.came(s->config.arg, s->bytes + from, length);
		s->looking = false;
		from += length;
	}
	return (ssize_t)from;
}

/* Makes room for the rest of the message that has begun. */
static int subscription_expect(struct subscription *s)
{
	size_t need = s->have;

	if (s->state == READS && s->have >= HEAD_BYTES)
		need = HEAD_BYTES + subscription_length(s->bytes);
	return subscription_make_room(s, need);
}

/* Returns 0, or negative errno: the connection is of no use. */
static int subscription_take(struct subscription *s)
{
	ssize_t used = s->state == GREETS ? subscription_greeted(s) : 0;

	if (used >= 0 && s->state == READS)
		used = subscription_hand_on(s, (size_t)used);
	if (s->cut)
		return -ECONNABORTED;
	if (used < 0)
		return (int)used;
	s->have -= (size_t)used;
	memmove(s->bytes, s->bytes + used, s->have);
	return subscription_expect(s);
}

/* How long what MSG brought was in the kernel; whoever sets the clock back makes it 0. */
static uint64_t subscription_waited(struct subscription *s, struct msghdr *msg)
{
	uint64_t now = loop_real_ns(s->config.loop), came = now;
	struct timespec at;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS &&
		    c->cmsg_len >= CMSG_LEN(sizeof(at))) {
			memcpy(&at, CMSG_DATA(c), sizeof(at));
			came = (uint64_t)at.tv_sec * CLOCK_NS_PER_S + (uint64_t)at.tv_nsec;
		}
	return came < now && now - came < SUBSCRIPTION_WAITED_MAX_NS ? now - came : 0;
}

static void subscription_read(struct subscription *s)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct iovec iov = {.iov_base = s->bytes + s->have, .iov_len = s->room - s->have};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	ssize_t n = recvmsg(s->entry.fd, &msg, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		s->waited_ns = subscription_waited(s, &msg);
		s->have += (size_t)n;
		if (!subscription_take(s))
			return;
	}
	s->cut = false;
	subscription_rest(s);
}

/* --- connecting -------------------------------------------------------------------------- */

static void subscription_greet(struct subscription *s)
{
	int e = 0;
	socklen_t n = sizeof(e);

	if (getsockopt(s->entry.fd, SOL_SOCKET, SO_ERROR, &e, &n) || e ||
	    send(s->entry.fd, greeting_sub, GREETING_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    GREETING_BYTES ||
	    loop_change(s->config.loop, &s->entry, EPOLLIN)) {
		subscription_rest(s);
		return;
	}
	s->state = GREETS;
}

static void subscription_ready(void *arg, uint32_t events)
{
	struct subscription *s = arg;

	(void)events;
	if (s->state == CONNECTS)
		subscription_greet(s);
	else
		subscription_read(s);
}

static int subscription_connect(struct subscription *s)
{
	int fd = socket(s->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return -errno;
	/* A publisher that lost its power says nothing any more. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	s->entry = (struct loop_fd){.fd = fd, .ready = subscription_ready, .arg = s};
	if ((connect(fd, (const struct sockaddr *)&s->to, s->to_length) && errno != EINPROGRESS) ||
	    loop_add(s->config.loop, &s->entry, EPOLLOUT)) {
		close(fd);
		return -ECONNREFUSED;
	}
	s->state = CONNECTS;
	loop_start(s->config.loop, &s->timer, SUBSCRIPTION_BEGIN_MS * CLOCK_NS_PER_MS);
	return 0;
}

/* It has rested, or the connection takes too long. */
static void subscription_turn(void *arg)
{
	struct subscription *s = arg;

	if (s->state != RESTS || !s->config.may(s->config.arg, (const struct sockaddr *)&s->to) ||
	    subscription_make_room(s, 0) || subscription_connect(s))
		subscription_rest(s);
}

/* --- its life ---------------------------------------------------------------------------- */

struct subscription *subscription_new(const struct subscription_config *config)
{
	struct subscription *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->config = *config;
	s->timer = (struct loop_timer){.fire = subscription_turn, .arg = s};
	return s;
}

void subscription_free(struct subscription *s)
{
	if (!s)
		return;
	subscription_hang_up(s);
	free(s->bytes);
	free(s);
}

int subscription_dial(struct subscription *s, const char *address, uint16_t port)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(address, service, &hints, &found))
		return -EINVAL;
	subscription_hang_up(s);
	memcpy(&s->to, found->ai_addr, found->ai_addrlen);
	s->to_length = found->ai_addrlen;
	freeaddrinfo(found);
	s->wait_ms = SUBSCRIPTION_LEAST_MS;
	loop_start(s->config.loop, &s->timer, 0);
	return 0;
}

void subscription_cut(struct subscription *s)
{
	if (s->looking)
		s->cut = true;
	else if (s->state != RESTS)
		subscription_rest(s);
}

const struct sockaddr *subscription_address(const struct subscription *s)
{
	return (const struct sockaddr *)&s->to;
}

uint64_t subscription_waited_ns(const struct subscription *s)
{
	return s->waited_ns;
}

bool subscription_connects(const struct subscription *s)
{
	return s->state == CONNECTS;
}

bool subscription_reads(const struct subscription *s)
{
	return s->state == READS;
}
