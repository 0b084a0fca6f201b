/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the lines that an agent sends to a recorder; see record_stream.h. */
#include "balancer/record/record_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "balancer/client.h"
#include "iocom/array.h"
#include "user/frame.h"
#include "user/pack.h"

#define CHUNK (256u * 1024)

int record_stream_open(const char *run_dir, struct record_stream *s, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	*s = (struct record_stream){.fd = -1};
	rc = client_connect(run_dir, &s->fd, err);
	if (rc)
		return rc;
	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", "record");
	pack_u64(&pk, "v", 1);
	rc = client_send(s->fd, buffer.data, buffer.size, err);
	msgpack_sbuffer_destroy(&buffer);
	if (rc)
		record_stream_close(s);
	return rc;
}

void record_stream_close(struct record_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->bytes);
	*s = (struct record_stream){.fd = -1};
}

void record_stream_finish(struct record_stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

/* Makes room for a chunk after the present bytes. */
static int record_stream_make_room(struct record_stream *s)
{
	if (s->at) {
		memmove(s->bytes, s->bytes + s->at, s->used - s->at);
		s->used -= s->at;
		s->at = 0;
	}
	return array_reserve(s->bytes, s->room, s->used + CHUNK, 2 * (size_t)CHUNK);
}

/* Returns 1: more may come now; 0: not now, or the agent closed. */
static int record_stream_receive(struct record_stream *s, struct iocom_err *err)
{
	ssize_t n;

	if (record_stream_make_room(s))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	n = recv(s->fd, s->bytes + s->used, s->room - s->used, MSG_DONTWAIT);
	if (n > 0) {
		s->used += (size_t)n;
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	s->ended = true;
	return 0;
}

int record_stream_next(struct record_stream *s, const char **line, size_t *length,
		       struct iocom_err *err)
{
	const uint8_t *payload;
	uint32_t n;
	size_t consumed;
	uint8_t type;
	int rc;

	while ((rc = frame_parse(s->bytes + s->at, s->used - s->at, FRAME_PAYLOAD_MAX, &type,
				 &payload, &n, &consumed)) == FRAME_E_MORE) {
		rc = record_stream_receive(s, err);
		if (rc <= 0)
			return rc;
	}
	if (rc == FRAME_E_VERSION)
		return iocom_err_set(err, -EPROTO,
				     "the agent speaks another version of the protocol: install "
				     "the same version of iocom and iocomd");
	if (rc || (type != FRAME_JSON && type != FRAME_ERROR))
		return iocom_err_set(err, -EPROTO,
				     "the agent sent a message of an unexpected type");
	s->at += consumed;
	if (type == FRAME_ERROR)
		return iocom_err_set(err, -EIO, "%.*s", n < 900 ? (int)n : 900,
				     (const char *)payload);
	*line = (const char *)payload;
	*length = n;
	return 1;
}
