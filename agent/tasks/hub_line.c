/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See hub_line.h. */
#include "agent/tasks/hub_line.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/tasks/hub.h"
#include "user/channel/bytes.h"

#define HUB_PROLOGUE "iocom gang"
#define HUB_HEAD     25
#define HUB_PART     4 /* payload of the first message: the number of the connector's part */
#define HUB_PIECE    4

/* --- the handshake ---------------------------------------------------------------------- */

void hub_line_init(struct hub_line *line, int fd, bool connector, const struct gang_plan *plan,
		   uint64_t now_ms)
{
	*line = (struct hub_line){
		.fd = fd,
		.state = connector ? HUB_CONNECTING : HUB_HELLO,
		.since_ms = now_ms,
		.plan = plan,
	};
}

void hub_line_deinit(struct hub_line *line)
{
	if (line->state == HUB_OPEN)
		wire_deinit(&line->wire);
	else if (line->fd >= 0)
		close(line->fd);
	noise_end(&line->noise);
	free(line->data);
	queue_free(&line->pending);
	*line = (struct hub_line){.fd = -1};
}

/* Both ends are of the same gang, or the first message does not open. */
static void line_begin(struct hub_line *line, bool connector)
{
	char prologue[sizeof(HUB_PROLOGUE) + SPEC_JOB_MAX] = HUB_PROLOGUE;
	size_t n = sizeof(HUB_PROLOGUE);

	n += (size_t)snprintf(prologue + n, sizeof(prologue) - n, "%s", line->plan->gang) + 1;
	noise_begin(&line->noise, connector, line->plan->secret, prologue, n);
}

static int line_write(const struct hub_line *line, uint8_t type, const uint8_t *message,
		      size_t length)
{
	uint8_t out[FRAME_HEADER + 128];

	frame_header(out, type, (uint32_t)length);
	memcpy(out + FRAME_HEADER, message, length);
	/* A new connection has room for it. */
	return send(line->fd, out, FRAME_HEADER + length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
			       (ssize_t)(FRAME_HEADER + length)
		       ? 0
		       : -EPIPE;
}

static int line_hello(struct hub_line *line)
{
	uint8_t part[HUB_PART], message[NOISE_HANDSHAKE + HUB_PART];
	int error = 0, rc;
	socklen_t n = sizeof(error);

	if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &error, &n) || error)
		return error ? -error : -errno;
	bytes_put_u32(part, line->plan->part);
	line_begin(line, true);
	rc = noise_write(&line->noise, part, sizeof(part), message);
	line->state = HUB_WELCOME;
	return rc ? rc : line_write(line, FRAME_HELLO, message, sizeof(message));
}

/* Reads exactly one frame of LENGTH bytes.  Returns 0: it is there; 1: not yet; negative errno. */
static int line_greeting(struct hub_line *line, uint8_t type, size_t length)
{
	size_t whole = FRAME_HEADER + length, consumed;
	const uint8_t *payload;
	uint32_t got;
	uint8_t is;
	ssize_t n = recv(line->fd, line->greeting + line->have, whole - line->have, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	if (n == 0)
		return -EPIPE;
	line->have += (size_t)n;
	if (line->have < whole)
		return 1;
	return frame_parse(line->greeting, whole, (uint32_t)length, &is, &payload, &got,
			   &consumed) ||
			       is != type || got != length
		       ? -EBADMSG
		       : 0;
}

static int line_open(struct hub_line *line)
{
	struct records records;
	int rc;

	noise_split(&line->noise, &records.sends, &records.receives, NULL);
	rc = wire_init(&line->wire, line->fd, &records);
	records_erase(&records);
	if (!rc)
		line->state = HUB_OPEN;
	return rc;
}

/* The listener's step. */
static int line_welcome(struct hub_line *line)
{
	uint8_t part[HUB_PART], message[NOISE_HANDSHAKE];
	int rc = line_greeting(line, FRAME_HELLO, NOISE_HANDSHAKE + HUB_PART);

	if (rc)
		return rc < 0 ? rc : 0;
	line_begin(line, false);
	if (noise_read(&line->noise, line->greeting + FRAME_HEADER, NOISE_HANDSHAKE + HUB_PART,
		       part))
		return -EACCES;
	line->part = wire_u32(part);
	if (!line->part || line->part >= line->plan->nnodes)
		return -EBADMSG;
	if (noise_write(&line->noise, NULL, 0, message))
		return -EACCES;
	rc = line_write(line, FRAME_WELCOME, message, sizeof(message));
	return rc ? rc : line_open(line);
}

/* Proves at once that this end has the keys: a first message alone may be somebody's copy. */
static int line_here(struct hub_line *line)
{
	uint8_t head[HUB_HEAD] = {HUB_HERE};

	return wire_send(&line->wire, FRAME_GANG, NULL, 0, head, sizeof(head));
}

/* The connector's. */
static int line_welcomed(struct hub_line *line)
{
	uint8_t nothing[1];
	int rc = line_greeting(line, FRAME_WELCOME, NOISE_HANDSHAKE);

	if (rc)
		return rc < 0 ? rc : 0;
	if (noise_read(&line->noise, line->greeting + FRAME_HEADER, NOISE_HANDSHAKE, nothing))
		return -EACCES;
	line->proven = true;
	rc = line_open(line);
	/* Before what waits already. */
	return rc ? rc : line_here(line);
}

/* --- messages ------------------------------------------------------------------------------ */

int hub_line_flush(struct hub_line *line)
{
	int rc = wire_flush(&line->wire);

	while (!rc && line->pending.length && wire_idle(&line->wire)) {
		const uint8_t *at = queue_front(&line->pending);
		uint32_t length = wire_u32(at);

		rc = wire_send(&line->wire, FRAME_GANG, NULL, 0, at + HUB_PIECE, length);
		queue_drop(&line->pending, HUB_PIECE + length);
	}
	return rc;
}

static int line_piece(struct hub_line *line, const uint8_t *head, size_t nhead, const void *data,
		      size_t length)
{
	uint8_t size[HUB_PIECE];

	bytes_put_u32(size, (uint32_t)(nhead + length));
	if (queue_push(&line->pending, size, sizeof(size)) ||
	    (nhead && queue_push(&line->pending, head, nhead)) ||
	    (length && queue_push(&line->pending, data, length)))
		return -ENOMEM;
	return 0;
}

int hub_line_send(struct hub_line *line, const struct hub_message *m)
{
	uint8_t head[HUB_HEAD];
	uint32_t at = 0;
	int rc = 0;

	if (m->length > HUB_MESSAGE_MAX)
		return -E2BIG;
	head[0] = (uint8_t)m->op;
	bytes_put_u32(head + 1, m->from);
	bytes_put_u32(head + 5, m->to);
	bytes_put_u32(head + 9, m->id);
	bytes_put_u32(head + 13, m->rank);
	bytes_put_u32(head + 17, (uint32_t)m->status);
	bytes_put_u32(head + 21, m->length);
	do {
		uint32_t n = m->length - at < HUB_PIECE_MAX ? m->length - at : HUB_PIECE_MAX;

		rc = line_piece(line, head, at ? 0 : sizeof(head),
				n ? (const uint8_t *)m->data + at : NULL, n);
		at += n;
	} while (!rc && at < m->length);
	return rc || line->state != HUB_OPEN ? rc : hub_line_flush(line);
}

static int line_head(struct hub_line *line, const uint8_t *head)
{
	struct hub_message *m = &line->in;

	*m = (struct hub_message){
		.op = head[0],
		.from = wire_u32(head + 1),
		.to = wire_u32(head + 5),
		.id = wire_u32(head + 9),
		.rank = wire_u32(head + 13),
		.status = (int32_t)wire_u32(head + 17),
		.length = wire_u32(head + 21),
	};
	if (!m->op || m->op >= HUB_OPS || m->length > HUB_MESSAGE_MAX)
		return -EBADMSG;
	free(line->data);
	line->data = malloc((size_t)m->length + 1);
	line->got = 0;
	line->within = true;
	return line->data ? 0 : -ENOMEM;
}

/* Takes one piece.  Returns 0; 1: a message is whole; negative errno. */
static int line_take(struct hub_line *line, const uint8_t *payload, uint32_t length)
{
	if (!line->within) {
		int rc = length < HUB_HEAD ? -EBADMSG : line_head(line, payload);

		if (rc)
			return rc;
		payload += HUB_HEAD;
		length -= HUB_HEAD;
	}
	if (length > line->in.length - line->got)
		return -EBADMSG;
	memcpy(line->data + line->got, payload, length);
	line->got += length;
	line->data[line->got] = 0;
	if (line->got < line->in.length)
		return 0;
	line->within = false;
	line->in.data = line->data;
	return 1;
}

static int line_receive(struct hub_line *line,
			int (*take)(void *arg, struct hub_line *line,
				    const struct hub_message *message),
			void *arg)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = wire_fill(&line->wire), next;

	if (rc <= 0)
		return rc;
	rc = 0;
	while (!rc && (next = wire_next(&line->wire, &type, &payload, &length)) == 0) {
		rc = type == FRAME_GANG ? line_take(line, payload, length) : -EBADMSG;
		if (rc == 1)
			rc = take(arg, line, &line->in);
	}
	return rc || next == FRAME_E_MORE ? rc : -EBADMSG;
}

short hub_line_events(const struct hub_line *line)
{
	if (line->state == HUB_CONNECTING)
		return POLLOUT;
	if (line->state != HUB_OPEN)
		return POLLIN;
	return (short)(POLLIN | (wire_idle(&line->wire) && !line->pending.length ? 0 : POLLOUT));
}

int hub_line_serve(struct hub_line *line, short events,
		   int (*take)(void *arg, struct hub_line *line, const struct hub_message *message),
		   void *arg)
{
	int rc = 0;

	switch (line->state) {
	case HUB_CONNECTING:
		return line_hello(line);
	case HUB_HELLO:
		rc = line_welcome(line);
		break;
	case HUB_WELCOME:
		rc = line_welcomed(line);
		break;
	default:
		if (events & ~POLLOUT)
			rc = line_receive(line, take, arg);
	}
	return rc || line->state != HUB_OPEN ? rc : hub_line_flush(line);
}
