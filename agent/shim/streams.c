/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The job's stdio; see streams.h. */
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tty.h"

#define PIPE_BYTES    (1 << 20)
#define CREDIT_BATCH  (FRAME_WINDOW / 4)
#define MOVES_AT_ONCE 16 /* then the other descriptors get their turn */

void streams_init(struct streams *streams, const int fd[FRAME_STREAMS])
{
	memset(streams, 0, sizeof(*streams) - sizeof(streams->piece));
	streams->ended_tty = -1;
	for (int i = 0; i < FRAME_STREAMS; i++) {
		streams->fd[i] = fd[i];
		streams->credit[i] = FRAME_WINDOW;
	}
}

void streams_close(struct streams *streams, int stream)
{
	if (streams->fd[stream] >= 0)
		close(streams->fd[stream]);
	streams->fd[stream] = -1;
	if (stream == 0)
		queue_free(&streams->input);
	if (!streams->tty || stream != 1)
		return;
	/* Nobody shows the terminal: without a master it is hung up. */
	streams_close(streams, 0);
	if (streams->ended_tty >= 0)
		close(streams->ended_tty);
	streams->ended_tty = -1;
}

int streams_tty(const struct streams *streams)
{
	if (!streams->tty)
		return -1;
	return streams->fd[1] >= 0 ? streams->fd[1] : streams->ended_tty;
}

/* A job may give up its terminal and go on: a hang-up would kill it. */
static void output_ended(struct streams *streams, int stream)
{
	int master = streams->fd[1];

	if (!streams->tty || stream != 1) {
		streams_close(streams, stream);
		return;
	}
	streams->fd[1] = -1;
	streams_close(streams, 0);
	streams->ended_tty = master;
}

void streams_deinit(struct streams *streams)
{
	for (int i = 0; i < FRAME_STREAMS; i++)
		streams_close(streams, i);
}

int streams_announce(struct streams *streams, struct wire *wire)
{
	int rc = 0;

	for (uint8_t i = 0; i < FRAME_STREAMS && !rc; i++)
		if (streams->fd[i] < 0)
			rc = wire_end(wire, i);
	return rc;
}

/*
 * A pipe that was found full (or emptied in whole pieces) carries bulk data and
 * gets more room once; all others keep the kernel's default, for the room of
 * all pipes of a user together is limited.
 */
static void grow(struct streams *streams, int stream)
{
	if (!streams->grown[stream] && !streams->tty)
		(void)fcntl(streams->fd[stream], F_SETPIPE_SZ, PIPE_BYTES);
	streams->grown[stream] = true;
}

static bool output_open(const struct streams *streams, const struct wire *wire, int stream)
{
	return streams->fd[stream] >= 0 && streams->credit[stream] > 0 && wire_idle(wire);
}

void streams_poll(const struct streams *streams, const struct wire *wire, bool flow,
		  struct pollfd entries[FRAME_STREAMS])
{
	/* No events on an open input still reports POLLERR: the job closed its end.  A
	 * terminal's is told by its output. */
	entries[0] = (struct pollfd){
		.fd = streams->tty && !streams->input.length ? -1 : streams->fd[0],
		.events = streams->input.length ? POLLOUT : 0,
	};
	for (int i = 1; i < FRAME_STREAMS; i++)
		entries[i] = (struct pollfd){
			.fd = flow && output_open(streams, wire, i) ? streams->fd[i] : -1,
			.events = POLLIN,
		};
}

/* A terminal gives a page at a time, and what ended it is told again. */
static ssize_t read_output(struct streams *streams, int stream, size_t want)
{
	ssize_t got = read(streams->fd[stream], streams->piece, want), more = got;

	while (streams->tty && more > 0 && (size_t)got < want) {
		more = read(streams->fd[stream], streams->piece + got, want - (size_t)got);
		got += more > 0 ? more : 0;
	}
	return got;
}

static int move_output(struct streams *streams, struct wire *wire, int stream, uint64_t now_ms)
{
	for (int i = 0; i < MOVES_AT_ONCE && output_open(streams, wire, stream); i++) {
		uint8_t head = (uint8_t)stream;
		size_t want = streams->credit[stream] < sizeof(streams->piece)
				      ? streams->credit[stream]
				      : sizeof(streams->piece);
		ssize_t got = read_output(streams, stream, want);
		int rc;

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (got <= 0) {
			output_ended(streams, stream);
			return wire_end(wire, head);
		}
		streams->last_output_ms = now_ms;
		streams->credit[stream] -= (uint32_t)got;
		if (got == (ssize_t)sizeof(streams->piece))
			grow(streams, stream);
		rc = wire_send(wire, FRAME_DATA, &head, 1, streams->piece, (size_t)got);
		if (rc)
			return rc;
	}
	return 0;
}

/* The job took N bytes of its input: the client may send as many again. */
static int consumed(struct streams *streams, struct wire *wire, size_t n)
{
	uint32_t owed = streams->input_owed += (uint32_t)n;

	if (owed < CREDIT_BATCH || streams->input_ended)
		return 0;
	streams->credit[0] += owed;
	streams->input_owed = 0;
	return wire_credit(wire, 0, owed);
}

/* The job closed its input: nothing more goes there, and the client may stop reading. */
static int input_refused(struct streams *streams, struct wire *wire)
{
	streams_close(streams, 0);
	return wire_end(wire, 0);
}

static int move_input(struct streams *streams, struct wire *wire)
{
	while (streams->fd[0] >= 0 && streams->input.length) {
		ssize_t put =
			write(streams->fd[0], queue_front(&streams->input), streams->input.length);
		int rc;

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0 && errno == EAGAIN) {
			grow(streams, 0);
			return 0;
		}
		if (put < 0)
			return input_refused(streams, wire);
		queue_drop(&streams->input, (size_t)put);
		rc = consumed(streams, wire, (size_t)put);
		if (rc)
			return rc;
	}
	if (streams->input_ended && !streams->tty)
		streams_close(streams, 0);
	return 0;
}

static int end_input(struct streams *streams, struct wire *wire)
{
	char end[2];
	unsigned n;

	if (streams->input_ended)
		return 0;
	streams->input_ended = true;
	n = streams->tty ? tty_end_of_input(streams->fd[0], streams->last_input, end) : 0;
	if (n && queue_push(&streams->input, end, n))
		return -ENOMEM;
	return move_input(streams, wire);
}

int streams_move(struct streams *streams, struct wire *wire, uint64_t now_ms,
		 const struct pollfd entries[FRAME_STREAMS])
{
	int rc = 0;

	if (streams->fd[0] >= 0 && entries[0].revents & POLLERR)
		rc = input_refused(streams, wire);
	else if (entries[0].revents)
		rc = move_input(streams, wire);
	for (int i = 1; i < FRAME_STREAMS && !rc; i++)
		if (entries[i].revents)
			rc = move_output(streams, wire, i, now_ms);
	return rc;
}

/* Input of the client: straight into the pipe where nothing waits before it. */
static int take_input(struct streams *streams, struct wire *wire, const uint8_t *data,
		      uint32_t length)
{
	ssize_t put = 0;
	int rc;

	if (length > streams->credit[0] || (length && streams->input_ended))
		return -EPROTO;
	streams->credit[0] -= length;
	if (!length)
		return end_input(streams, wire);
	if (streams->fd[0] < 0)
		return 0; /* crossed with our word that the job closed it */
	streams->last_input = (char)data[length - 1];
	if (!streams->input.length) {
		put = write(streams->fd[0], data, length);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			return input_refused(streams, wire);
		if (put < 0)
			put = 0;
	}
	if ((uint32_t)put < length) {
		grow(streams, 0);
		rc = queue_push(&streams->input, data + put, length - (uint32_t)put);
		if (rc)
			return rc;
	}
	return put ? consumed(streams, wire, (size_t)put) : 0;
}

int streams_take(struct streams *streams, struct wire *wire, uint8_t type, const uint8_t *payload,
		 uint32_t length)
{
	uint8_t stream = length ? payload[0] : FRAME_STREAMS;
	uint32_t more;

	if (stream >= FRAME_STREAMS)
		return -EPROTO;
	if (type == FRAME_DATA && stream == 0)
		return take_input(streams, wire, payload + 1, length - 1);
	if (type == FRAME_DATA) {
		/* The client's reader is gone: the job meets SIGPIPE, as at home. */
		if (length != 1)
			return -EPROTO;
		streams_close(streams, stream);
		return 0;
	}
	if (stream == 0 || length != 5)
		return -EPROTO;
	more = wire_u32(payload + 1);
	if (more > FRAME_WINDOW || streams->credit[stream] + more > FRAME_WINDOW)
		return -EPROTO;
	streams->credit[stream] += more;
	return 0;
}

bool streams_ended(const struct streams *streams)
{
	return streams->fd[1] < 0 && streams->fd[2] < 0;
}

bool streams_waiting(const struct streams *streams, const struct wire *wire)
{
	for (int i = 1; i < FRAME_STREAMS; i++)
		if (streams->fd[i] >= 0 && !output_open(streams, wire, i))
			return false;
	return true;
}
