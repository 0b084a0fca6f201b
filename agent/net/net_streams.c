/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_streams.h. */
#include "agent/net/net_streams.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/acceptor.h"
#include "agent/base/address_limit.h"
#include "agent/base/loop_share.h"
#include "agent/base/seldom.h"
#include "user/channel/stream_hello.h"
#include "user/channel/version.h"
#include "user/frame.h"
#include "user/renewal.h"

_Static_assert(ADDRESS_LIMIT_MAX > NET_STREAMS_MAX, "each stream has a source");
_Static_assert(STREAM_HELLO_MAX >= RENEWAL_ASK_MAX, "a renewal has room, too");

enum net_stream_stage {
	NET_STREAM_READS,   /* its first message comes */
	NET_STREAM_WAITS,   /* its first message is here, and root has others to look at */
	NET_STREAM_AT_ROOT, /* root has it */
	NET_STREAM_REFUSED  /* the sentence is sent; further input is discarded */
};

struct net_stream {
	struct net_stream *next, **link;
	struct net_streams *streams;
	int fd;
	struct loop_fd entry;
	struct loop_timer timer;
	enum net_stream_stage stage;
	uint64_t id; /* at the gate */
	uint8_t header[FRAME_HEADER], data[STREAM_HELLO_MAX];
	size_t header_have, have, discarded;
	uint32_t length;
	int source;
	bool parked; /* strangers used up their part of the loop's time: nothing is read */
	char peer[IOCOM_ADDRESS_MAX];
};

struct net_streams {
	const struct base *base;
	struct gate *gate;
	int fd;
	struct acceptor acceptor;
	struct loop_timer unpark;
	struct net_stream *first; /* the newest */
	size_t count;
	size_t at_root; /* that root has, also of streams that have left since */
	uint64_t ids;
	struct address_limit sources;
	uint64_t crowded_ns, overdue_ns, scarce_ns; /* when each was logged last */
};

size_t net_streams_count(const struct net_streams *streams)
{
	return streams ? streams->count : 0;
}

static void net_stream_free(struct net_stream *s)
{
	struct net_streams *streams = s->streams;

	loop_cancel(streams->base->loop, &s->timer);
	loop_remove(streams->base->loop, &s->entry);
	close(s->fd);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	streams->count--;
	address_limit_leave(&streams->sources, s->source);
	free(s);
}

/* --- refusing ------------------------------------------------------------------------- */

/* Sends one small frame.  Returns whether the socket took it. */
static bool net_stream_say(const struct net_stream *s, uint8_t type, const void *payload,
			   size_t length)
{
	uint8_t frame[FRAME_HEADER + GATE_SENTENCE_MAX];

	if (length > GATE_SENTENCE_MAX)
		length = GATE_SENTENCE_MAX;
	frame_header(frame, type, (uint32_t)length);
	memcpy(frame + FRAME_HEADER, payload, length);
	return send(s->fd, frame, FRAME_HEADER + length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)(FRAME_HEADER + length);
}

/*
 * Says why and lets the peer read it: closing with unread input would reset the connection and
 * could destroy the sentence on its way.  This may free S.
 */
static void net_stream_refuse_quietly(struct net_stream *s, const char *why, size_t length)
{
	struct net_streams *streams = s->streams;

	streams->base->counters->streams_refused++;
	s->stage = NET_STREAM_REFUSED;
	s->parked = false;
	if (!net_stream_say(s, FRAME_ERROR, why, length) || shutdown(s->fd, SHUT_WR) ||
	    (s->entry.active ? loop_change(streams->base->loop, &s->entry, EPOLLIN)
			     : loop_add(streams->base->loop, &s->entry, EPOLLIN))) {
		net_stream_free(s);
		return;
	}
	loop_start(streams->base->loop, &s->timer, NET_STREAM_LINGER_NS);
}

static void net_stream_refuse(struct net_stream *s, const char *why)
{
	log_provoked(s->streams->base->log, LOG_L_WARNING, "refused a job stream from %s: %s",
		     s->peer, why);
	net_stream_refuse_quietly(s, why, strlen(why));
}

/* Drops S for others: says so in one attempt, and frees S. */
static void net_stream_cut(struct net_stream *s)
{
	static const char why[] = "this node has too many connections; try again";

	if (s->stage != NET_STREAM_REFUSED) {
		s->streams->base->counters->streams_refused++;
		(void)net_stream_say(s, FRAME_ERROR, why, sizeof(why) - 1);
	}
	net_stream_free(s);
}

/* --- its first message ------------------------------------------------------------------ */

/* Gives S's first message to root, with the stream itself if root may go on with it. */
static void net_stream_bring(struct net_stream *s, struct gate_message *m)
{
	struct net_streams *streams = s->streams;
	int rc;

	s->id = ++streams->ids;
	if (m->type == GATE_STREAM) {
		m->stream.id = s->id;
		strcpy(m->stream.from, s->peer);
	} else {
		m->renew.id = s->id;
		strcpy(m->renew.from, s->peer);
	}
	rc = gate_send(streams->gate, m, s->data, s->length, &s->fd);
	if (rc) {
		net_stream_refuse(s, "this node cannot take job streams now; try again");
		return;
	}
	s->stage = NET_STREAM_AT_ROOT;
	streams->at_root++;
	loop_remove(streams->base->loop, &s->entry);
	loop_cancel(streams->base->loop, &s->timer); /* root keeps the time */
}

static void net_stream_hello(struct net_stream *s)
{
	struct gate_message m = {.type = GATE_STREAM};
	const struct stream_hello *hello = &m.stream.hello;
	char why[200];

	if (stream_hello_unpack(&m.stream.hello, s->data, s->length)) {
		net_stream_refuse(s, "the first message of a job stream is malformed");
		return;
	}
	if (!channel_version_choose(hello->least, hello->most)) {
		snprintf(why, sizeof(why),
			 "the client speaks versions %llu to %llu of the secure channel, this node "
			 "%d to %d; install the same version of iocom on all nodes",
			 (unsigned long long)hello->least, (unsigned long long)hello->most,
			 CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX);
		net_stream_refuse(s, why);
		return;
	}
	net_stream_bring(s, &m);
}

/* S's first message is here. */
static void net_stream_begin(struct net_stream *s)
{
	struct gate_message renew = {.type = GATE_RENEW};

	if (s->header[3] == FRAME_REQUEST) { /* a peer probes us: net_probe.h */
		net_stream_free(s);
	} else if (s->streams->at_root >= GATE_STREAMS_MAX) {
		s->stage = NET_STREAM_WAITS;
		loop_change(s->streams->base->loop, &s->entry, 0);
	} else if (s->header[3] == FRAME_RENEW) {
		net_stream_bring(s, &renew);
	} else {
		net_stream_hello(s);
	}
}

/* Root has room again: the one that has waited longest is the last of the list. */
static void net_streams_next(struct net_streams *streams)
{
	struct net_stream *longest = NULL;

	for (struct net_stream *s = streams->first; s; s = s->next)
		if (s->stage == NET_STREAM_WAITS)
			longest = s;
	if (!longest)
		return;
	longest->stage = NET_STREAM_READS;
	net_stream_begin(longest);
}

/* Returns why the frame whose header is here may not come in clear, or NULL. */
static const char *net_stream_unwanted(const struct net_stream *s)
{
	switch (s->header[3]) {
	case FRAME_HELLO:
		return s->length > STREAM_HELLO_MAX
			       ? "the first message of a job stream is too long"
			       : NULL;
	case FRAME_RENEW:
		return s->length > RENEWAL_ASK_MAX || !s->length ? "the lease renewal is too long"
								 : NULL;
	case FRAME_REQUEST:
		return s->length ? "this port takes job streams only" : NULL;
	case FRAME_START:
	case FRAME_ATTACH:
		return "this client has an older version of iocom, which sends job streams in "
		       "clear; install the same version on all nodes";
	default:
		return "a job stream begins with a handshake";
	}
}

/* Returns 1: some bytes; 0: none now; -1: the stream is gone (and S freed). */
static int net_stream_take(struct net_stream *s, uint8_t *at, size_t want, size_t *have)
{
	ssize_t n = recv(s->fd, at, want, MSG_DONTWAIT);

	if (n > 0) {
		*have += (size_t)n;
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (s->stage != NET_STREAM_REFUSED)
		s->streams->base->counters->streams_refused++;
	net_stream_free(s);
	return -1;
}

/* Returns as net_stream_take; -1 also: S was refused. */
static int net_stream_take_header(struct net_stream *s)
{
	const char *why;
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;
	int rc = net_stream_take(s, s->header + s->header_have, FRAME_HEADER - s->header_have,
				 &s->header_have);

	if (rc <= 0)
		return rc;
	rc = frame_parse(s->header, s->header_have, FRAME_PAYLOAD_MAX, &type, &payload, &length,
			 &consumed);
	if (rc == FRAME_E_GARBAGE || rc == FRAME_E_VERSION) {
		net_stream_refuse(s,
				  rc == FRAME_E_VERSION
					  ? "the peer runs another version of iocom; install the "
					    "same version on all nodes"
					  : "this port takes iocom's job streams only");
		return -1;
	}
	if (s->header_have < FRAME_HEADER)
		return 1;
	s->length = (uint32_t)s->header[4] << 24 | (uint32_t)s->header[5] << 16 |
		    (uint32_t)s->header[6] << 8 | s->header[7];
	why = net_stream_unwanted(s);
	if (why)
		net_stream_refuse(s, why);
	return why ? -1 : 1;
}

/*
 * Discards further input of a refused stream, so that the peer can read why.  An honest peer has no
 * more to send than the rest of one message; one that goes on is disconnected.
 */
static void net_stream_discard(struct net_stream *s)
{
	uint8_t waste[16 << 10];
	size_t have = 0;

	if (net_stream_take(s, waste, sizeof(waste), &have) < 0)
		return;
	s->discarded += have;
	if (s->discarded > NET_STREAM_DISCARD_MAX)
		net_stream_free(s);
}

static void net_stream_read(struct net_stream *s)
{
	int rc = 1;

	if (s->stage == NET_STREAM_REFUSED) {
		net_stream_discard(s);
		return;
	}
	while (rc > 0) {
		if (s->header_have < FRAME_HEADER)
			rc = net_stream_take_header(s);
		else if (s->have < s->length)
			rc = net_stream_take(s, s->data + s->have, s->length - s->have, &s->have);
		else
			break;
	}
	if (rc > 0)
		net_stream_begin(s);
}

/* --- the loop's time ---------------------------------------------------------------------- */

/* Reads nothing more of S until strangers may have some of the loop's time again. */
static void net_stream_park(struct net_stream *s)
{
	struct net_streams *streams = s->streams;
	const struct base *base = streams->base;

	s->parked = true;
	base->counters->requests_delayed++;
	loop_change(base->loop, &s->entry, 0);
	if (!streams->unpark.active)
		loop_start(base->loop, &streams->unpark,
			   loop_share_wait_ns(base->shares, LOOP_SHARE_STRANGERS));
}

static void net_streams_unpark(void *arg)
{
	struct net_streams *streams = arg;
	const struct base *base = streams->base;
	uint64_t wait_ns = loop_share_wait_ns(base->shares, LOOP_SHARE_STRANGERS);

	if (wait_ns) {
		loop_start(base->loop, &streams->unpark, wait_ns);
		return;
	}
	for (struct net_stream *s = streams->first; s; s = s->next) {
		if (s->parked)
			loop_change(base->loop, &s->entry, EPOLLIN);
		s->parked = false;
	}
}

/* Whoever sends here is a stranger: all together are charged as one user (loop_share.h). */
static void net_stream_ready(void *arg, uint32_t what)
{
	struct net_stream *s = arg;
	const struct base *base = s->streams->base;
	uid_t before = loop_share_enter(base->shares, LOOP_SHARE_STRANGERS);

	if (s->stage == NET_STREAM_WAITS) /* it has left, or an error came */
		net_stream_free(s);
	else if (what & (EPOLLERR | EPOLLHUP) ||
		 !loop_share_spent(base->shares, LOOP_SHARE_STRANGERS))
		net_stream_read(s); /* this may free S */
	else
		net_stream_park(s);
	loop_share_leave(base->shares, before);
}

static void net_stream_overdue(void *arg)
{
	struct net_stream *s = arg;

	const char *why = s->stage == NET_STREAM_WAITS
				  ? "this node did not come to it within 5 s; try again"
				  : "the start message did not come within 5 s";

	if (s->stage == NET_STREAM_REFUSED)
		net_stream_free(s);
	else if (seldom_again(&s->streams->overdue_ns, loop_boot_ns(s->streams->base->loop),
			      NET_STREAM_START_NS))
		net_stream_refuse(s, why);
	else
		net_stream_refuse_quietly(s, why, strlen(why));
}

/* --- places ------------------------------------------------------------------------------- */

/*
 * All places are taken: drops the oldest stream of the address with most.  An honest client has
 * sent its first message before its stream is the oldest.
 */
static void net_stream_make_room(struct net_streams *streams)
{
	int most = address_limit_most(&streams->sources);
	struct net_stream *oldest = NULL, *of_all = NULL;

	for (struct net_stream *s = streams->first; s; s = s->next) {
		of_all = s;
		if (s->source == most)
			oldest = s;
	}
	if (!oldest) /* each address has one stream, and the newcomer's is its first */
		oldest = of_all;
	if (seldom_again(&streams->crowded_ns, loop_boot_ns(streams->base->loop),
			 NET_STREAM_START_NS))
		log_write(streams->base->log, LOG_L_WARNING,
			  "%d job streams have not begun, most of them from %s: its oldest are "
			  "dropped",
			  NET_STREAMS_MAX, oldest->peer);
	net_stream_cut(oldest);
}

/* Returns true if a stream from this address is let in and has its source. */
static bool net_stream_enter(struct net_streams *streams, struct net_stream *s,
			     const struct sockaddr *sa)
{
	s->source = address_limit_enter(&streams->sources, sa);
	if (s->source < 0)
		return false;
	if (streams->count >= NET_STREAMS_MAX)
		net_stream_make_room(streams);
	return true;
}

static void net_stream_scarce(struct net_streams *streams)
{
	streams->base->counters->descriptors_refused++;
	streams->base->counters->streams_refused++;
	if (seldom_again(&streams->scarce_ns, loop_boot_ns(streams->base->loop),
			 NET_STREAM_START_NS))
		log_write(streams->base->log, LOG_L_WARNING,
			  "no job stream from other machines: too few descriptors are left; raise "
			  "the agent's limit of open files");
}

static struct net_stream *net_stream_new(struct net_streams *streams, int fd,
					 const struct sockaddr *sa, socklen_t n)
{
	struct net_stream *s = calloc(1, sizeof(*s));
	int one = 1;

	if (!s || !net_stream_enter(streams, s, sa)) {
		free(s);
		return NULL;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	s->streams = streams;
	s->fd = fd;
	if (getnameinfo(sa, n, s->peer, sizeof(s->peer), NULL, 0, NI_NUMERICHOST))
		strcpy(s->peer, "?");
	s->entry = (struct loop_fd){.fd = fd, .ready = net_stream_ready, .arg = s};
	s->timer = (struct loop_timer){.fire = net_stream_overdue, .arg = s};
	if (loop_add(streams->base->loop, &s->entry, EPOLLIN)) {
		address_limit_leave(&streams->sources, s->source);
		free(s);
		return NULL;
	}
	return s;
}

static void net_stream_accept(struct net_streams *streams, int fd, const struct sockaddr *sa,
			      socklen_t n)
{
	struct net_stream *s = NULL;

	if (descriptors_scarce(fd)) {
		net_stream_scarce(streams);
		close(fd);
		return;
	}
	s = net_stream_new(streams, fd, sa, n);
	if (!s) {
		streams->base->counters->streams_refused++;
		close(fd);
		return;
	}
	s->next = streams->first;
	s->link = &streams->first;
	if (s->next)
		s->next->link = &s->next;
	streams->first = s;
	streams->count++;
	loop_start(streams->base->loop, &s->timer, NET_STREAM_START_NS);
}

static void net_stream_came(void *arg, int fd, const struct sockaddr *sa, socklen_t n)
{
	struct net_streams *streams = arg;
	struct loop_share *shares = streams->base->shares;
	uid_t before = loop_share_enter(shares, LOOP_SHARE_STRANGERS);

	net_stream_accept(streams, fd, sa, n);
	if (loop_share_spent(shares, LOOP_SHARE_STRANGERS))
		acceptor_rest(&streams->acceptor);
	loop_share_leave(shares, before);
}

/* --- root ------------------------------------------------------------------------------- */

/* Root is done with ID.  Returns its stream; NULL: that was dropped for others meanwhile. */
static struct net_stream *net_stream_back(struct net_streams *streams, uint64_t id)
{
	streams->at_root--;
	for (struct net_stream *s = streams->first; s; s = s->next)
		if (s->stage == NET_STREAM_AT_ROOT && s->id == id)
			return s;
	return NULL;
}

void net_streams_over(struct net_streams *streams, const struct gate_stream_over *over,
		      const void *sentence, size_t length)
{
	struct net_stream *s = net_stream_back(streams, over->id);

	if (s && over->taken)
		net_stream_free(s);
	else if (s)
		net_stream_refuse_quietly(s, sentence, length);
	net_streams_next(streams);
}

void net_streams_renewed(struct net_streams *streams, const struct gate_renewed *renewed,
			 const void *answer, size_t length)
{
	struct net_stream *s = net_stream_back(streams, renewed->id);

	if (s && renewed->answered) {
		(void)net_stream_say(s, FRAME_RENEWED, answer, length);
		net_stream_free(s);
	} else if (s) {
		net_stream_refuse_quietly(s, answer, length);
	}
	net_streams_next(streams);
}

int net_streams_new(struct net_streams **out, const struct base *base, struct gate *gate,
		    int listener, struct iocom_err *err)
{
	struct net_streams *streams = calloc(1, sizeof(*streams));
	int rc;

	*out = NULL;
	if (!streams) {
		close(listener);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	streams->base = base;
	streams->gate = gate;
	streams->fd = listener;
	streams->unpark = (struct loop_timer){.fire = net_streams_unpark, .arg = streams};
	streams->acceptor = (struct acceptor){.came = net_stream_came, .arg = streams};
	rc = acceptor_start(&streams->acceptor, base, listener);
	if (rc) {
		net_streams_free(streams);
		return iocom_err_set(err, rc, "cannot take job streams: %s", strerror(-rc));
	}
	*out = streams;
	return 0;
}

void net_streams_free(struct net_streams *streams)
{
	if (!streams)
		return;
	while (streams->first)
		net_stream_free(streams->first);
	loop_cancel(streams->base->loop, &streams->unpark);
	acceptor_stop(&streams->acceptor);
	close(streams->fd);
	free(streams);
}
