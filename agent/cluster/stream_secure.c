/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The handshake of a job stream, and its first frame out of records. */
#include "agent/cluster/stream_own.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "user/channel/version.h"
#include "user/clock.h"

#define PAIR_AFTER_NS (20 * CLOCK_NS_PER_MS) /* let the job begin first */
/* The same sentence whether or not there is such a job: that is for its user alone to know. */
#define UNKNOWN                                                                                    \
	"this node has no job for that key: it is over, its lease has expired (the client has "    \
	"10 s), or it is not here"

bool stream_say(struct stream *s, uint8_t type, const void *payload, size_t length)
{
	uint8_t header[FRAME_HEADER],
		frame[FRAME_HEADER + STREAM_SENTENCE + RECORD_HEAD + NOISE_TAG];
	const struct iovec pieces[] = {{header, sizeof(header)}, {(void *)payload, length}};
	size_t n = records_size(FRAME_HEADER + length);

	if (length > STREAM_SENTENCE)
		return false;
	frame_header(header, type, (uint32_t)length);
	if (records_seal(&s->secure.records, pieces, 2, frame))
		return false;
	return send(s->fd, frame, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static bool stream_hello_same(const struct stream_hello *a, const struct stream_hello *b)
{
	return a->least == b->least && a->most == b->most && a->kind == b->kind &&
	       !strcmp(a->job, b->job) && !strcmp(a->node, b->node) &&
	       !strcmp(a->ticket, b->ticket);
}

/*
 * Checks that the client knows the key it means.  Where there is none, its message is held against
 * a random one: the answer is the same.  The bytes are decoded here only when the key has shown who
 * made them.  They must say what the network part said they do: so it cannot have chosen another
 * key, kind or version than the client.
 */
static int stream_check_key(struct stream *s, const struct stream_offer *o, struct noise *noise)
{
	const struct stream_ports *ports = &s->streams->ports;
	uint8_t key[SECRET_KEY];
	int rc = ports->key(ports->arg, &o->hello, key);

	if (rc)
		secret_new(key);
	rc = stream_hello_open(noise, o->first, o->length, key) ? -EACCES : rc;
	sodium_memzero(key, sizeof(key));
	if (!rc && (stream_hello_unpack(&s->secure.hello, o->first, o->length) ||
		    !stream_hello_same(&s->secure.hello, &o->hello)))
		rc = -EBADMSG;
	if (rc)
		noise_end(noise);
	return rc;
}

void streams_make_pair(void *arg)
{
	struct streams *streams = arg;

	noise_pair_new(&streams->pair);
}

/* Sends the answer, in clear.  Returns whether the socket took it. */
static bool stream_say_welcome(const struct stream *s, const uint8_t *payload, size_t length)
{
	uint8_t frame[FRAME_HEADER + STREAM_WELCOME_MAX];
	size_t n = FRAME_HEADER + length;

	frame_header(frame, FRAME_WELCOME, (uint32_t)length);
	memcpy(frame + FRAME_HEADER, payload, length);
	return send(s->fd, frame, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

const char *stream_greet(struct stream *s, const struct stream_offer *o)
{
	const struct base *base = s->streams->base;
	struct stream_welcome welcome = {.boot_id = base->boot_id};
	uint8_t out[STREAM_WELCOME_MAX];
	struct noise noise;
	size_t length;

	if (stream_check_key(s, o, &noise))
		return UNKNOWN;
	welcome.version = channel_version_choose(s->secure.hello.least, s->secure.hello.most);
	if (!welcome.version) { /* the network part refuses those */
		noise_end(&noise);
		return UNKNOWN;
	}
	snprintf(welcome.node, sizeof(welcome.node), "%s", base->set->name);
	noise_use_pair(&noise, &s->streams->pair);
	loop_start(base->loop, &s->streams->pairs, PAIR_AFTER_NS);
	if (stream_welcome_pack(&noise, &welcome, out, &length, &s->secure.records))
		return UNKNOWN;
	if (stream_say_welcome(s, out, length))
		return NULL;
	records_erase(&s->secure.records);
	return "the connection has ended";
}

/*
 * Returns the bytes of the whole frame, or 0: its header is not here yet; with *WHY if no such
 * frame may come.
 */
static size_t stream_frame_size(const struct stream *s, const char **why)
{
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;
	int rc;

	if (s->have < FRAME_HEADER)
		return 0;
	rc = frame_parse(s->data, s->have, FRAME_PAYLOAD_MAX, &type, &payload, &length, &consumed);
	if (rc && rc != FRAME_E_MORE)
		*why = "the client's message is malformed, or of another version of iocom";
	return FRAME_HEADER + ((size_t)s->data[4] << 24 | (size_t)s->data[5] << 16 |
			       (size_t)s->data[6] << 8 | s->data[7]);
}

/*
 * A record with LENGTH bytes of the frame comes.  All but the last are full, as every client sends
 * them: small ones would cost much of the loop's time.  Returns why it is refused, or NULL.
 */
static const char *stream_record_fits(const struct stream *s, size_t length)
{
	const char *why = NULL;
	size_t size = stream_frame_size(s, &why);

	if (why || !size)
		return why;
	if (s->have + length > size)
		return "bytes follow the client's message";
	return s->have + length < size && length != NOISE_PLAINTEXT_MAX
		       ? "the client's message is cut into small pieces"
		       : NULL;
}

/* Returns 0; -1: S was refused. */
static int stream_take_record_head(struct stream *s)
{
	const char *why;

	if (records_length(s->record, &s->record_length)) {
		stream_refuse(s, "the stream was damaged on its way");
		return -1;
	}
	why = stream_record_fits(s, s->record_length - NOISE_TAG);
	if (!why)
		return stream_reserve(s, s->record_length);
	stream_refuse(s, why);
	return -1;
}

/* A whole record is here.  Returns as stream_take_sealed. */
static int stream_open_record(struct stream *s)
{
	const char *why = NULL;
	size_t size, opened = s->record_length - NOISE_TAG;

	if (records_open(&s->secure.records, s->data + s->have, s->record_length)) {
		stream_refuse(s, "the stream was damaged on its way");
		return -1;
	}
	s->have += opened;
	s->record_head = s->record_have = 0;
	size = stream_frame_size(s, &why);
	if (!why && (!size || s->have > size))
		why = size ? "bytes follow the client's message"
			   : "the client's message is cut into small pieces";
	if (!why && s->have < size && opened != NOISE_PLAINTEXT_MAX)
		why = "the client's message is cut into small pieces";
	if (why) {
		stream_refuse(s, why);
		return -1;
	}
	if (s->have < size)
		return 0;
	s->length = (uint32_t)(size - FRAME_HEADER);
	return 1;
}

int stream_take_sealed(struct stream *s)
{
	for (;;) {
		int rc;

		if (s->record_head < RECORD_HEAD) {
			rc = stream_take(s, s->record + s->record_head,
					 RECORD_HEAD - s->record_head, &s->record_head);
			if (rc <= 0)
				return rc;
			if (s->record_head < RECORD_HEAD)
				continue;
			if (stream_take_record_head(s))
				return -1;
		}
		rc = stream_take(s, s->data + s->have + s->record_have,
				 s->record_length - s->record_have, &s->record_have);
		if (rc <= 0)
			return rc;
		if (s->record_have < s->record_length)
			continue;
		rc = stream_open_record(s);
		if (rc)
			return rc;
	}
}
