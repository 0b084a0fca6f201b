/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads the first frame of a job stream, and not a byte more, within bounds of time, of memory, and
 * of the loop's time for strangers.
 */
#include "agent/cluster/stream_own.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/cluster/tunnel.h"
#include "iocom/array.h"

#define FIRST_BUFFER  16384
#define TLS_HANDSHAKE 22 /* the first byte of a client that speaks TLS */

/* Returns 1: some bytes; 0: none now; -1: the stream is gone (and S freed). */
static int stream_take(struct stream *s, uint8_t *at, size_t want, size_t *have)
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

static int stream_take_header(struct stream *s)
{
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;
	int rc = stream_take(s, s->header + s->header_have, FRAME_HEADER - s->header_have,
			     &s->header_have);

	if (rc <= 0)
		return rc;
	rc = frame_parse(s->header, s->header_have, FRAME_PAYLOAD_MAX, &type, &payload, &length,
			 &consumed);
	if (rc == FRAME_E_GARBAGE && s->header[0] == TLS_HANDSHAKE) {
		stream_refuse(s, "the peer uses TLS, but this node does not: set tls_certificate, "
				 "tls_key and tls_ca at all nodes, or at none");
		return -1;
	}
	if (rc == FRAME_E_GARBAGE || rc == FRAME_E_VERSION) {
		stream_refuse(s, rc == FRAME_E_VERSION
					 ? "the peer runs another version of iocom; install the "
					   "same version on all nodes"
					 : "this port takes iocom's job streams only");
		return -1;
	}
	if (s->header_have == FRAME_HEADER)
		s->length = (uint32_t)s->header[4] << 24 | (uint32_t)s->header[5] << 16 |
			    (uint32_t)s->header[6] << 8 | s->header[7];
	if (s->header_have == FRAME_HEADER && s->header[3] == FRAME_RENEW &&
	    s->length > RENEWAL_ASK_MAX) {
		stream_refuse(s, "the lease renewal is too long");
		return -1;
	}
	return 1;
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
		if (stream_is_time(&streams->heavy_ns))
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

static int stream_take_payload(struct stream *s)
{
	size_t want = s->length - s->have;

	if (s->have == s->room) {
		size_t more = array_room(s->room, s->have + 1, FIRST_BUFFER) - s->room;

		if (!stream_make_memory(s, more)) {
			stream_cut(s);
			return -1;
		}
		if (array_reserve(s->data, s->room, s->have + 1, FIRST_BUFFER)) {
			stream_refuse(s, "out of memory");
			return -1;
		}
		s->streams->bytes += more;
	}
	if (want > s->room - s->have)
		want = s->room - s->have;
	return stream_take(s, s->data + s->have, want, &s->have);
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

/*
 * Puts a relay before FD where there is TLS.  The descriptor to read from, or -1 and FD is closed.
 */
static int stream_unwrap(struct streams *streams, int fd)
{
	struct iocom_err err = {0};
	int plain = -1;

	if (!streams->tunnels)
		return fd;
	if (tunnel_accept(streams->tunnels, fd, &plain, &err))
		log_write(streams->base->log, LOG_L_ERROR, "%s", err.text);
	close(fd);
	return plain;
}

/*
 * The first bytes are here: a renewal goes without TLS (leases.h), all else gets a relay.  Returns
 * -1: the stream is gone.
 */
static int stream_begin(struct stream *s)
{
	struct streams *streams = s->streams;
	uint8_t head[4];
	ssize_t n = recv(s->fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	s->wrapped = false;
	if (n == (ssize_t)sizeof(head) && head[0] == 'i' && head[1] == 'c' &&
	    head[3] == FRAME_RENEW)
		return 0;
	loop_remove(streams->base->loop, &s->entry);
	s->fd = stream_unwrap(streams, s->fd);
	s->entry.fd = s->fd;
	if (s->fd >= 0 && !loop_add(streams->base->loop, &s->entry, EPOLLIN))
		return 0;
	streams->base->counters->streams_refused++;
	stream_free(s);
	return -1;
}

static void stream_read(struct stream *s)
{
	int rc = 1;

	if (s->refused) {
		stream_discard(s);
		return;
	}
	if (s->wrapped && (stream_begin(s) || s->wrapped))
		return;
	while (rc > 0) {
		if (s->header_have < FRAME_HEADER)
			rc = stream_take_header(s);
		else if (s->have < s->length)
			rc = stream_take_payload(s);
		else
			break;
	}
	if (rc > 0)
		stream_start(s);
}

/* Reads nothing more of S until strangers may have some of the loop's time again. */
static void stream_park(struct stream *s)
{
	struct streams *streams = s->streams;
	const struct base *base = streams->base;

	s->parked = true;
	base->counters->requests_delayed++;
	loop_change(base->loop, &s->entry, 0);
	if (!streams->unpark.active)
		loop_start(base->loop, &streams->unpark,
			   loop_share_wait_ns(base->shares, LOOP_SHARE_STRANGERS));
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
	else if (stream_is_time(&s->streams->overdue_ns))
		stream_refuse(s, why);
	else
		stream_refuse_quietly(s, why);
}
