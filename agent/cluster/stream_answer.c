/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What becomes of a job stream whose first frame is here: a renewal is answered, a start and an
 * attach are handed over when munged has said who made their credential, all else is refused.
 */
#include "agent/cluster/stream_own.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/cluster/seal.h"
#include "user/clock.h"

void stream_free(struct stream *s)
{
	struct loop *loop = s->streams->base->loop;

	seal_forget(s->streams->seal, s->opens);
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
void stream_refuse_quietly(struct stream *s, const char *why)
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

void stream_refuse(struct stream *s, const char *why)
{
	log_provoked(s->streams->base->log, LOG_L_WARNING, "refused a job stream from %s: %s",
		     s->peer, why);
	stream_refuse_quietly(s, why);
}

bool stream_is_time(uint64_t *said_ns)
{
	uint64_t now = clock_boot_ns();

	if (*said_ns && now - *said_ns < STREAM_START_NS)
		return false;
	*said_ns = now;
	return true;
}

/* The relay and the peer could not agree on TLS: no client can read a reason. */
static void stream_relay_failed(struct stream *s)
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
static void stream_renew(struct stream *s)
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

static const struct stream_port *stream_port_of(const struct stream *s)
{
	const struct stream_ports *ports = &s->streams->ports;

	return s->header[3] == FRAME_START ? &ports->start : &ports->attach;
}

/* Says why to the peer, whose end is heard again. */
static void stream_refuse_asked(struct stream *s, const char *why)
{
	if (loop_add(s->streams->base->loop, &s->entry, EPOLLIN))
		stream_free(s);
	else
		stream_refuse(s, why);
}

/* Munged has said who made the credential. */
static void stream_opened(void *arg, struct seal_answer *a)
{
	struct stream *s = arg;
	struct streams *streams = s->streams;
	int rc = a->rc;

	s->opens = NULL;
	if (!rc)
		rc = stream_port_of(s)->take(streams->ports.arg, s->fd, s->data, s->length,
					     &a->credential, &a->err);
	if (rc) {
		stream_refuse_asked(s, a->err.text);
		return;
	}
	streams->base->counters->streams_accepted++;
	s->fd = -1;
	stream_free(s);
}

/* Has the credential opened.  Meanwhile nothing is read, and no time runs but munged's. */
static void stream_open(struct stream *s)
{
	struct streams *streams = s->streams;
	struct iocom_err err = {0};
	char *credential = NULL;
	int rc =
		stream_port_of(s)->check(streams->ports.arg, s->data, s->length, &credential, &err);

	if (!rc)
		rc = seal_open_credential(streams->seal,
					  s->header[3] == FRAME_START ? SEAL_STARTS : SEAL_ATTACHES,
					  credential, stream_opened, s, &s->opens, &err);
	free(credential);
	if (rc) {
		stream_refuse(s, err.text);
		return;
	}
	loop_cancel(streams->base->loop, &s->timer);
	loop_remove(streams->base->loop, &s->entry);
}

void stream_start(struct stream *s)
{
	struct streams *streams = s->streams;

	if (s->header[3] == FRAME_ERROR && streams->tunnels && s->length) {
		stream_relay_failed(s);
		return;
	}
	if (s->header[3] == FRAME_REQUEST && !s->length) { /* a peer probes us: probe.h */
		stream_free(s);
		return;
	}
	if (s->header[3] == FRAME_RENEW) {
		stream_renew(s);
		return;
	}
	if (s->header[3] != FRAME_START && s->header[3] != FRAME_ATTACH) {
		stream_refuse(s, "a job stream begins with a start message");
		return;
	}
	stream_open(s);
}

void stream_cut(struct stream *s)
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
