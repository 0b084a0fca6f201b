/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Job streams from other machines; see stream.h. */
#include "agent/cluster/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/cluster/address_limit.h"
#include "agent/cluster/tunnel.h"
#include "iocom/array.h"
#include "user/clock.h"
#include "user/frame.h"

#define FIRST_BUFFER  16384
#define TLS_HANDSHAKE 22 /* the first byte of a client that speaks TLS */
_Static_assert(ADDRESS_LIMIT_MAX > STREAMS_MAX, "each stream has a source");

struct stream {
	struct stream *next, **link;
	struct streams *streams;
	int fd;
	struct loop_fd entry;
	struct loop_timer timer;
	uint8_t header[FRAME_HEADER];
	size_t header_have;
	uint8_t *data;
	size_t room, have;
	uint32_t length;
	int source;
	bool wrapped; /* the stream is behind TLS or is a renewal: no byte has come yet */
	bool refused; /* the sentence is sent; further input is discarded */
	char peer[64];
};

struct streams {
	const struct base *base;
	const struct tunnels *tunnels; /* NULL: no TLS */
	struct stream_ports ports;
	int fd;
	struct loop_fd entry;
	struct stream *first; /* the newest */
	size_t count, bytes;  /* bytes: the memory of all streams */
	struct address_limit sources;
	uint64_t crowded_ns, overdue_ns, heavy_ns; /* when each was logged last */
};

size_t streams_count(const struct streams *streams)
{
	return streams ? streams->count : 0;
}

size_t streams_bytes(const struct streams *streams)
{
	return streams ? streams->bytes : 0;
}

static void stream_free(struct stream *s)
{
	struct loop *loop = s->streams->base->loop;

	loop_cancel(loop, &s->timer);
	loop_remove(loop, &s->entry);
	if (s->fd >= 0)
		close(s->fd);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->streams->count--;
	s->streams->bytes -= s->room;
	address_limit_leave(&s->streams->sources, s->source);
	free(s->data);
	free(s);
}

/*
 * Says why and lets the peer read it: closing with unread input would reset the
 * connection and could destroy the sentence on its way.
 */
static void refuse_quietly(struct stream *s, const char *why)
{
	struct streams *streams = s->streams;
	uint8_t frame[FRAME_HEADER + 1024];
	size_t n = strlen(why);
	ssize_t put;

	streams->base->counters->streams_refused++;
	if (n > sizeof(frame) - FRAME_HEADER)
		n = sizeof(frame) - FRAME_HEADER;
	frame_header(frame, FRAME_ERROR, (uint32_t)n);
	memcpy(frame + FRAME_HEADER, why, n);
	put = send(s->fd, frame, n + FRAME_HEADER, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (put < 0 || shutdown(s->fd, SHUT_WR)) {
		stream_free(s);
		return;
	}
	s->refused = true;
	loop_start(streams->base->loop, &s->timer, STREAM_LINGER_NS);
}

static void stream_refuse(struct stream *s, const char *why)
{
	log_provoked(s->streams->base->log, LOG_L_WARNING, "refused a job stream from %s: %s",
		     s->peer, why);
	refuse_quietly(s, why);
}

/* Frequent messages are logged once in a while, so that they cannot hide the rest. */
static bool is_time(uint64_t *said_ns)
{
	uint64_t now = clock_boot_ns();

	if (*said_ns && now - *said_ns < STREAM_START_NS)
		return false;
	*said_ns = now;
	return true;
}

/* The relay and the peer could not agree on TLS: no client can read a reason. */
static void relay_failed(struct stream *s)
{
	struct streams *streams = s->streams;
	char why[400];
	size_t n = 0;

	for (; n < s->length && n + 1 < sizeof(why); n++)
		why[n] = (char)(s->data[n] >= ' ' && s->data[n] < 0x7f ? s->data[n] : '?');
	why[n] = 0;
	streams->base->counters->streams_refused++;
	log_provoked(streams->base->log, LOG_L_WARNING, "refused a job stream from %s: %s", s->peer,
		     why);
	stream_free(s);
}

/* Answers a shim's renewal and ends the stream. */
static void renew(struct stream *s)
{
	uint8_t frame[FRAME_HEADER + RENEWAL_ANSWER];
	struct streams *streams = s->streams;
	struct iocom_err err = {0};

	if (streams->ports.renew(streams->ports.arg, s->data, s->length, frame + FRAME_HEADER,
				 &err)) {
		stream_refuse(s, err.text);
		return;
	}
	frame_header(frame, FRAME_RENEWED, RENEWAL_ANSWER);
	(void)!send(s->fd, frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT);
	stream_free(s);
}

static void stream_start(struct stream *s)
{
	struct streams *streams = s->streams;
	struct iocom_err err = {0};
	int rc;

	if (s->header[3] == FRAME_ERROR && streams->tunnels && s->length) {
		relay_failed(s);
		return;
	}
	if (s->header[3] == FRAME_REQUEST && !s->length) { /* a peer probes us: probe.h */
		stream_free(s);
		return;
	}
	if (s->header[3] == FRAME_RENEW) {
		renew(s);
		return;
	}
	if (s->header[3] != FRAME_START && s->header[3] != FRAME_ATTACH) {
		stream_refuse(s, "a job stream begins with a start message");
		return;
	}
	loop_remove(streams->base->loop, &s->entry);
	if (s->header[3] == FRAME_START)
		rc = streams->ports.start(streams->ports.arg, s->fd, s->data, s->length, NULL,
					  &err);
	else
		rc = streams->ports.attach(streams->ports.arg, s->fd, s->data, s->length, NULL,
					   &err);
	if (rc == 0) {
		streams->base->counters->streams_accepted++;
		s->fd = -1;
		stream_free(s);
		return;
	}
	if (loop_add(streams->base->loop, &s->entry, EPOLLIN))
		stream_free(s);
	else
		stream_refuse(s, err.text);
}

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

static void stream_cut(struct stream *s)
{
	static const char why[] = "this node has too many connections; try again";
	uint8_t frame[FRAME_HEADER + sizeof(why)];

	if (!s->refused) {
		s->streams->base->counters->streams_refused++;
		frame_header(frame, FRAME_ERROR, sizeof(why) - 1);
		memcpy(frame + FRAME_HEADER, why, sizeof(why));
		(void)!send(s->fd, frame, sizeof(frame) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	stream_free(s);
}

/*
 * Incomplete start messages share a bound.  Above it the longest is dropped: an honest client has
 * sent all of its message before that.  Returns false if S itself was dropped.
 */
static bool make_memory(struct stream *s, size_t more)
{
	struct streams *streams = s->streams;

	while (streams->bytes + more > STREAMS_BYTES_MAX) {
		struct stream *longest = streams->first;

		for (struct stream *o = streams->first; o; o = o->next)
			if (o->room >= longest->room) /* if two are equal, the oldest */
				longest = o;
		if (is_time(&streams->heavy_ns))
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

		if (!make_memory(s, more)) {
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

/* Discards further input.  Returns -1: the stream is gone. */
static int discard(struct stream *s)
{
	size_t have = 0;

	return stream_take(s, s->data, s->room, &have);
}

static int unwrap(struct streams *streams, int fd);

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
	s->fd = unwrap(streams, s->fd);
	s->entry.fd = s->fd;
	if (s->fd >= 0 && !loop_add(streams->base->loop, &s->entry, EPOLLIN))
		return 0;
	streams->base->counters->streams_refused++;
	stream_free(s);
	return -1;
}

static void stream_ready(void *arg, uint32_t what)
{
	struct stream *s = arg;
	uint8_t waste[512];
	size_t have = 0;
	int rc = 1;

	(void)what;
	if (s->refused) {
		if (s->data)
			discard(s);
		else
			stream_take(s, waste, sizeof(waste), &have);
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

static void stream_overdue(void *arg)
{
	struct stream *s = arg;

	static const char why[] = "the start message did not come within 5 s";

	if (s->refused)
		stream_free(s);
	else if (is_time(&s->streams->overdue_ns))
		stream_refuse(s, why);
	else
		refuse_quietly(s, why);
}

/*
 * All places are taken: drops the oldest stream of the address with most.  An honest client has
 * sent its start message before its stream is the oldest.
 */
static void stream_make_room(struct streams *streams)
{
	int most = address_limit_most(&streams->sources);
	struct stream *oldest = NULL, *of_all = NULL;

	for (struct stream *s = streams->first; s; s = s->next) {
		of_all = s;
		if (s->source == most)
			oldest = s;
	}
	if (!oldest) /* each address has one stream, and the newcomer's is its first */
		oldest = of_all;
	if (is_time(&streams->crowded_ns))
		log_write(streams->base->log, LOG_L_WARNING,
			  "%d job streams have not begun, most of them from %s: its oldest are "
			  "dropped",
			  STREAMS_MAX, oldest->peer);
	stream_cut(oldest);
}

/*
 * Returns true if a stream from this address is let in and has its source.  With TLS each stream is
 * a process: the address with most streams is refused instead of losing its oldest.
 */
static bool stream_enter(struct streams *streams, struct stream *s, const struct sockaddr *sa)
{
	s->source = address_limit_enter(&streams->sources, sa);
	if (s->source < 0 || streams->count < STREAMS_MAX)
		return s->source >= 0;
	if (streams->tunnels && address_limit_most(&streams->sources) == s->source) {
		address_limit_leave(&streams->sources, s->source);
		s->source = -1;
		return false;
	}
	stream_make_room(streams);
	return true;
}

/*
 * Puts a relay before FD where there is TLS.  The descriptor to read from, or -1 and FD is closed.
 */
static int unwrap(struct streams *streams, int fd)
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

static void stream_accept_one(struct streams *streams, int fd, const struct sockaddr *sa,
			      socklen_t n)
{
	struct stream *s = calloc(1, sizeof(*s));
	int one = 1;

	if (!s || !stream_enter(streams, s, sa)) {
		streams->base->counters->streams_refused++;
		close(fd);
		free(s);
		return;
	}
	s->wrapped = streams->tunnels != NULL;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	s->streams = streams;
	s->fd = fd;
	if (getnameinfo(sa, n, s->peer, sizeof(s->peer), NULL, 0, NI_NUMERICHOST))
		strcpy(s->peer, "?");
	s->entry = (struct loop_fd){.fd = fd, .ready = stream_ready, .arg = s};
	s->timer = (struct loop_timer){.fire = stream_overdue, .arg = s};
	if (loop_add(streams->base->loop, &s->entry, EPOLLIN)) {
		address_limit_leave(&streams->sources, s->source);
		close(fd);
		free(s);
		return;
	}
	s->next = streams->first;
	s->link = &streams->first;
	if (s->next)
		s->next->link = &s->next;
	streams->first = s;
	streams->count++;
	loop_start(streams->base->loop, &s->timer, STREAM_START_NS);
}

static void stream_accept_ready(void *arg, uint32_t what)
{
	struct streams *streams = arg;

	(void)what;
	for (int i = 0; i < 16; i++) {
		struct sockaddr_storage sa;
		socklen_t n = sizeof(sa);
		int fd = accept4(streams->fd, (struct sockaddr *)&sa, &n,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		stream_accept_one(streams, fd, (struct sockaddr *)&sa, n);
	}
}

static int listen_one(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, 256) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int stream_listen_at(struct streams *streams, const char *address, unsigned port,
			    struct iocom_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *list = NULL;
	char host[IOCOM_ADDRESS_MAX], service[16];
	size_t n = strlen(address);
	int rc;

	/* Brackets belong to URLs only. */
	snprintf(host, sizeof(host), "%s", address + (*address == '['));
	if (*address == '[' && n > 2)
		host[n - 2] = 0;
	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc)
		return iocom_err_set(err, -EADDRNOTAVAIL, "cannot listen at %s: %s", address,
				     gai_strerror(rc));
	streams->fd = listen_one(list);
	freeaddrinfo(list);
	if (streams->fd >= 0)
		return 0;
	rc = streams->fd;
	return iocom_err_set(
		err, rc, "cannot take job streams at %s port %u: %s%s", address, port,
		strerror(-rc),
		rc == -EADDRINUSE ? "; perhaps by another iocomd: find its owner with `ss -ltnp`, "
				    "or choose --port"
				  : "");
}

int streams_new(struct streams **out, const struct base *base, const struct tunnels *tunnels,
		const struct stream_ports *ports, struct iocom_err *err)
{
	struct streams *streams = calloc(1, sizeof(*streams));
	int rc;

	if (!streams)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	streams->base = base;
	streams->tunnels = tunnels;
	streams->ports = *ports;
	streams->fd = -1;
	rc = stream_listen_at(streams, base->set->listen, base->set->port + 2, err);
	if (!rc) {
		streams->entry = (struct loop_fd){
			.fd = streams->fd, .ready = stream_accept_ready, .arg = streams};
		rc = loop_add(streams->base->loop, &streams->entry, EPOLLIN);
	}
	if (rc) {
		streams_free(streams);
		return rc;
	}
	*out = streams;
	return 0;
}

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	while (streams->first)
		stream_free(streams->first);
	loop_remove(streams->base->loop, &streams->entry);
	if (streams->fd >= 0)
		close(streams->fd);
	free(streams);
}
