/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What becomes of a job stream whose frame is here: a start and an attach are handed over when
 * munged has said who made their credential; all else is refused.
 */
#include "agent/cluster/stream_own.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/cluster/seal.h"

/*
 * Says why and lets the peer read it: closing with unread input would reset the
 * connection and could destroy the sentence on its way.
 */
void stream_refuse_quietly(struct stream *s, const char *why)
{
	struct streams *streams = s->streams;
	size_t n = strlen(why);

	streams->base->counters->streams_refused++;
	if (n > STREAM_SENTENCE)
		n = STREAM_SENTENCE;
	if (!stream_say(s, FRAME_ERROR, why, n) || shutdown(s->fd, SHUT_WR)) {
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

/* The payload of S's frame. */
static const uint8_t *stream_payload(const struct stream *s)
{
	return s->data + FRAME_HEADER;
}

static const struct stream_port *stream_port_of(const struct stream *s)
{
	const struct stream_ports *ports = &s->streams->ports;

	return s->data[3] == FRAME_START ? &ports->start : &ports->attach;
}

/* Says why to the peer, whose end is heard again. */
static void stream_refuse_asked(struct stream *s, const char *why)
{
	if (loop_add(s->streams->base->loop, &s->entry, EPOLLIN))
		stream_free(s);
	else
		stream_refuse(s, why);
}

/* Gives S away, and frees it.  Returns 0; negative errno with the reason in ERR: S is there. */
static int stream_give(struct stream *s, const struct credential *who, struct iocom_err *err)
{
	struct streams *streams = s->streams;
	int rc = stream_port_of(s)->take(streams->ports.arg, s->fd, &s->secure, stream_payload(s),
					 s->length, who, err);

	if (rc)
		return rc;
	streams->base->counters->streams_accepted++;
	s->fd = -1;
	stream_free(s);
	return 0;
}

/* Munged has said who made the credential. */
static void stream_opened(void *arg, struct seal_answer *a)
{
	struct stream *s = arg;
	int rc = a->rc;

	s->opens = NULL;
	if (!rc)
		rc = stream_give(s, &a->credential, &a->err);
	if (rc)
		stream_refuse_asked(s, a->err.text);
}

/* Has the credential opened.  Meanwhile nothing is read, and no time runs but munged's. */
static void stream_open(struct stream *s)
{
	struct streams *streams = s->streams;
	struct iocom_err err = {0};
	char *credential = NULL;
	int rc = stream_port_of(s)->check(streams->ports.arg, &s->secure.hello, stream_payload(s),
					  s->length, &credential, &err);

	if (!rc && !credential) {
		loop_cancel(streams->base->loop, &s->timer);
		loop_remove(streams->base->loop, &s->entry);
		if (stream_give(s, NULL, &err))
			stream_refuse_asked(s, err.text);
		return;
	}
	if (!rc)
		rc = seal_open_credential(streams->seal,
					  s->data[3] == FRAME_START ? SEAL_STARTS : SEAL_ATTACHES,
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
	uint8_t wanted = s->secure.hello.kind == STREAM_KIND_START ? FRAME_START : FRAME_ATTACH;

	if (s->data[3] == wanted) /* it is what the handshake was for */
		stream_open(s);
	else
		stream_refuse(s, "a job stream begins with a start message, or with one to attach");
}

void stream_cut(struct stream *s)
{
	static const char why[] = "this node has too many connections; try again";

	if (!s->refused) {
		s->streams->base->counters->streams_refused++;
		(void)stream_say(s, FRAME_ERROR, why, sizeof(why) - 1);
	}
	stream_free(s);
}
