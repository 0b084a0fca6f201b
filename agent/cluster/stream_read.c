/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads the frame that a job stream begins with, and not a byte more, within bounds of time, of
 * memory, and of the loop's time for strangers.
 */
#include "agent/cluster/stream_own.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/base/loop_share.h"
#include "agent/base/seldom.h"
#include "iocom/array.h"

#define FIRST_BUFFER 2048

int stream_take(struct stream *s, uint8_t *at, size_t want, size_t *have)
{
	ssize_t n = recv(s->fd, at, want, MSG_DONTWAIT);

	if (n > 0) {
		*have += (size_t)n;
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (!s->refused)
		s->streams->base->counters->streams_refused++;
	stream_free(s);
	return -1;
}

/*
 * Incomplete start messages share a bound.  Above it the longest is dropped: an honest client has
 * sent all of its message before that.  Returns false if S itself was dropped.
 */
static bool stream_make_memory(struct stream *s, size_t more)
{
	struct streams *streams = s->streams;

	while (streams->bytes + more > STREAMS_BYTES_MAX) {
		struct stream *longest = streams->first;

		for (struct stream *o = streams->first; o; o = o->next)
			if (o->room >= longest->room) /* if two are equal, the oldest */
				longest = o;
		if (seldom_again(&streams->heavy_ns, loop_boot_ns(streams->base->loop),
				 STREAM_START_NS))
			log_write(streams->base->log, LOG_L_WARNING,
				  "incomplete start messages fill %u MiB; the longest are dropped, "
				  "the first of them from %s",
				  STREAMS_BYTES_MAX >> 20, longest->peer);
		if (longest == s)
			return false;
		stream_cut(longest);
	}
	return true;
}

int stream_reserve(struct stream *s, size_t more)
{
	size_t want = s->have + more, grows;

	if (want <= s->room)
		return 0;
	grows = array_room(s->room, want, FIRST_BUFFER) - s->room;
	if (!stream_make_memory(s, grows)) {
		stream_cut(s);
		return -1;
	}
	if (array_reserve(s->data, s->room, want, FIRST_BUFFER)) {
		stream_refuse(s, "out of memory");
		return -1;
	}
	s->streams->bytes += grows;
	return 0;
}

/*
 * Discards further input of a refused stream, so that the peer can read why.  An honest peer has no
 * more to send than the rest of one message; one that goes on is disconnected.
 */
static void stream_discard(struct stream *s)
{
	uint8_t waste[16 << 10];
	size_t have = 0;

	if (stream_take(s, waste, sizeof(waste), &have) < 0)
		return;
	s->discarded += have;
	if (s->discarded > FRAME_PAYLOAD_MAX)
		stream_free(s);
}

static void stream_read(struct stream *s)
{
	if (s->refused)
		stream_discard(s);
	else if (stream_take_sealed(s) > 0)
		stream_start(s);
}

/* Reads nothing more of S until strangers may have some of the loop's time again. */
static void stream_park(struct stream *s)
{
	const struct base *base = s->streams->base;

	s->parked = true;
	base->counters->requests_delayed++;
	loop_change(base->loop, &s->entry, 0);
	stream_wait(s->streams);
}

void streams_unpark(void *arg)
{
	struct streams *streams = arg;
	const struct base *base = streams->base;
	uint64_t wait_ns = loop_share_wait_ns(base->shares, LOOP_SHARE_STRANGERS);

	if (wait_ns) {
		loop_start(base->loop, &streams->unpark, wait_ns);
		return;
	}
	for (struct stream *s = streams->first; s; s = s->next) {
		if (s->parked)
			loop_change(base->loop, &s->entry, EPOLLIN);
		s->parked = false;
	}
	stream_offers_next(streams); /* one: those that have begun get their turn, too */
	if (streams->offers)
		stream_wait(streams);
}

/*
 * Whoever sends here is a stranger until a lease and a credential are found: all strangers together
 * are charged as one user (loop_share.h).
 */
void stream_ready(void *arg, uint32_t what)
{
	struct stream *s = arg;
	const struct base *base = s->streams->base;
	uid_t before = loop_share_enter(base->shares, LOOP_SHARE_STRANGERS);

	if (what & (EPOLLERR | EPOLLHUP) || !loop_share_spent(base->shares, LOOP_SHARE_STRANGERS))
		stream_read(s); /* this may free S */
	else
		stream_park(s);
	loop_share_leave(base->shares, before);
}

void stream_overdue(void *arg)
{
	struct stream *s = arg;

	static const char why[] = "the start message did not come within 5 s";

	if (s->refused)
		stream_free(s);
	else if (seldom_again(&s->streams->overdue_ns, loop_boot_ns(s->streams->base->loop),
			      STREAM_START_NS))
		stream_refuse(s, why);
	else
		stream_refuse_quietly(s, why);
}
