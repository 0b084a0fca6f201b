/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The job's stdio; see streams.h. */
#include "agent/shim/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/shim/order.h"
#include "agent/shim/tty.h"

#define PIPE_BYTES    (1 << 20) /* order.h knows this number */
#define CREDIT_BATCH  (FRAME_WINDOW / 4)
#define MOVES_AT_ONCE 16  /* then the other descriptors get their turn */
#define END_FIRST_MS  200 /* before we repeat a terminal's end of input */
#define END_MOST_MS   5000
#define END_TIMES     8 /* repeats for a job that reads keys; then we take it to want no end */

void streams_init(struct streams *streams, const int fd[FRAME_STREAMS])
{
	memset(streams, 0, sizeof(*streams) - sizeof(streams->piece));
	streams->ended_tty = streams->record = -1;
	for (int i = 0; i < FRAME_STREAMS; i++)
		streams->fd[i] = fd[i];
	spool_init(&streams->spool);
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
	/* No client shows the terminal any more: closing the master hangs it up. */
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

/* Keeps the master open at the output's end: a job may give up its terminal and go on, and a
 * hang-up would kill it. */
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
	for (int i = 0; i < FRAME_STREAMS; i++) {
		streams_close(streams, i);
		resend_free(&streams->kept[i]);
	}
	spool_deinit(&streams->spool);
	queue_free(&streams->held);
}

static bool spooled(const struct streams *streams)
{
	return streams->spool.fd[1] >= 0;
}

uint64_t streams_first(const struct streams *streams, int stream)
{
	return spooled(streams) ? streams->spool.info.base[stream - 1]
				: streams->kept[stream].start;
}

uint64_t streams_end(const struct streams *streams, int stream, bool gaps)
{
	if (!spooled(streams))
		return streams->kept[stream].end;
	return gaps ? spool_end(&streams->spool, stream) : spool_head(&streams->spool, stream);
}

void streams_attach(struct streams *streams, const uint64_t from[FRAME_STREAMS],
		    const uint64_t taken[FRAME_STREAMS], bool gaps)
{
	streams->gaps = gaps;
	for (int i = 1; i < FRAME_STREAMS; i++) {
		streams->sent[i] = from[i];
		streams->taken[i] = taken[i];
		streams->told[i] = false;
		streams->gap[i] = (struct streams_gap){0};
		if (!spooled(streams))
			resend_drop(&streams->kept[i], taken[i]);
	}
	streams->told[0] = false;
	streams->taken[0] = streams->consumed;
}

int streams_announce(struct streams *streams, struct wire *wire)
{
	/* The input also leads nowhere after its end, which another client may have sent. */
	if ((streams->fd[0] >= 0 && !streams->input_ended) || streams->told[0])
		return 0;
	streams->told[0] = true;
	return wire_end(wire, 0, streams->sent[0]);
}

/*
 * A pipe that we found full (or emptied in whole pieces) carries bulk data and gets more room,
 * once. All others keep the kernel's default, because the kernel limits the room of all pipes of
 * one user.
 */
static void streams_grow(struct streams *streams, int stream)
{
	if (!streams->grown[stream] && !streams->tty)
		(void)fcntl(streams->fd[stream], F_SETPIPE_SZ, PIPE_BYTES);
	streams->grown[stream] = true;
}

static bool streams_has_room(const struct streams *streams, int stream)
{
	return spooled(streams) || resend_room(&streams->kept[stream]) > 0;
}

void streams_poll(const struct streams *streams, struct pollfd entries[FRAME_STREAMS])
{
	/* Without events poll still reports POLLERR on an open input: the job closed its end.
	 * For a terminal the output tells us. */
	entries[0] = (struct pollfd){
		.fd = streams->tty && !streams->input.length ? -1 : streams->fd[0],
		.events = streams->input.length ? POLLOUT : 0,
	};
	for (int i = 1; i < FRAME_STREAMS; i++)
		entries[i] = (struct pollfd){
			.fd = streams_has_room(streams, i) ? streams->fd[i] : -1,
			.events = POLLIN,
		};
}

/* A terminal returns one page per read, so we read on. Its end is reported again next time. */
static ssize_t read_pieces(const struct streams *streams, int stream, uint8_t *at, size_t want)
{
	ssize_t got = read(streams->fd[stream], at, want), more = got;

	while (streams->tty && more > 0 && (size_t)got < want) {
		more = read(streams->fd[stream], at + got, want - (size_t)got);
		got += more > 0 ? more : 0;
	}
	return got;
}

static ssize_t streams_read_held(struct streams *streams, int stream, uint8_t *at, size_t want)
{
	size_t n = stream == 1 ? streams->held.length : 0;

	if (n > want)
		n = want;
	if (!n)
		return 0;
	memcpy(at, queue_front(&streams->held), n);
	queue_drop(&streams->held, n);
	return (ssize_t)n;
}

bool streams_holds(const struct streams *streams)
{
	return streams->held.length && streams_has_room(streams, 1);
}

int streams_hold(struct streams *streams)
{
	int rc = 0;

	while (!rc) {
		ssize_t n = read(streams->fd[1], streams->piece, sizeof(streams->piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -EIO;
		rc = queue_push(&streams->held, streams->piece, (size_t)n);
	}
	return rc;
}

/* Reads once. Returns the number of bytes; 0: nothing now; -EPIPE: the end; -ENOMEM. */
static ssize_t streams_read_output(struct streams *streams, int stream)
{
	struct resend_buffer *kept = &streams->kept[stream];
	size_t want = sizeof(streams->piece);
	uint8_t *at = spooled(streams) ? streams->piece : resend_space(kept, &want);
	ssize_t got;

	if (!at)
		return -ENOMEM;
	if (!want)
		return 0;
	got = streams_read_held(streams, stream, at, want);
	if (!got)
		got = read_pieces(streams, stream, at, want);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -EPIPE;
	if (spooled(streams))
		spool_add(&streams->spool, streams->record, stream, at, (size_t)got);
	else
		resend_added(kept, (size_t)got);
	if (got >= (ssize_t)sizeof(streams->piece))
		streams_grow(streams, stream);
	return got;
}

static void move_output(struct streams *streams, int stream, uint64_t now_ms)
{
	for (int i = 0; i < MOVES_AT_ONCE; i++) {
		ssize_t got = streams_read_output(streams, stream);

		if (got == -EPIPE)
			output_ended(streams, stream);
		if (got <= 0)
			return; /* without memory we try again later, and the job waits */
		streams->last_output_ms = now_ms;
	}
}

/* Returns how many bytes the client has room for. */
static uint64_t window(const struct streams *streams, int stream)
{
	const struct streams_gap *gap = &streams->gap[stream];
	uint64_t taken = streams->taken[stream], out = streams->sent[stream] - taken;

	if (taken <= gap->from)
		out -= gap->to - gap->from;
	return out < FRAME_WINDOW ? FRAME_WINDOW - out : 0;
}

/*
 * Returns where the next piece begins, skipping bytes that are not kept. The client hears of one
 * gap at a time: with two gaps in what it has not taken, we could not tell how many bytes wait
 * there.
 */
static uint64_t next_kept(const struct streams *streams, int stream)
{
	uint64_t from = streams->sent[stream];

	if (!spooled(streams) || !streams->gaps || streams->taken[stream] < streams->gap[stream].to)
		return from;
	return spool_kept(&streams->spool, stream, from);
}

/* Records a gap up to OFFSET. Call it together with sending the bytes at OFFSET. */
static void skip_to(struct streams *streams, int stream, uint64_t offset)
{
	if (offset > streams->sent[stream])
		streams->gap[stream] = (struct streams_gap){streams->sent[stream], offset};
	streams->sent[stream] = offset;
}

/* Finds the next piece for the client. Returns its length with *AT; 0: none; -EIO: the spool
 * cannot be read. */
static ssize_t next_piece(struct streams *streams, int stream, const uint8_t **at)
{
	uint64_t from = next_kept(streams, stream);
	uint64_t end = streams_end(streams, stream, streams->gaps), room = window(streams, stream);
	size_t n = sizeof(streams->piece), there;
	ssize_t got;

	if (from >= end || !room)
		return 0;
	if (end - from < n)
		n = (size_t)(end - from);
	if (room < n)
		n = (size_t)room;
	if (spooled(streams)) {
		/* The ring lost these bytes while the client still had to take the gap before
		 * them. */
		if (spool_kept(&streams->spool, stream, from) != from)
			return 0;
		*at = streams->piece;
		got = spool_at(&streams->spool, stream, from, streams->piece, n);
		if (got > 0)
			skip_to(streams, stream, from);
		return got;
	}
	*at = resend_at(&streams->kept[stream], from, &there);
	return (ssize_t)(n < there ? n : there);
}

/* Returns true if everything was sent. The last bytes may be ones that are not kept. */
static bool at_end(struct streams *streams, int stream)
{
	uint64_t end = streams_end(streams, stream, streams->gaps), from;

	if (streams->fd[stream] >= 0)
		return false;
	from = next_kept(streams, stream);
	if (from < end)
		return false;
	skip_to(streams, stream, from);
	return true;
}

static int send_output(struct streams *streams, struct wire *wire, int stream)
{
	const uint8_t *at = NULL;

	for (int i = 0; i < MOVES_AT_ONCE && wire_idle(wire) && !streams->told[stream]; i++) {
		ssize_t n = next_piece(streams, stream, &at);
		int rc;

		if (n < 0)
			return (int)n;
		if (n > 0) {
			rc = wire_data(wire, (uint8_t)stream, streams->sent[stream], at, (size_t)n);
			streams->sent[stream] += (uint64_t)n;
			if (rc)
				return rc;
			continue;
		}
		if (!at_end(streams, stream))
			return 0;
		streams->told[stream] = true;
		return wire_end(wire, (uint8_t)stream, streams->sent[stream]);
	}
	return 0;
}

int streams_send(struct streams *streams, struct wire *wire)
{
	int rc = send_output(streams, wire, 1);

	return rc ? rc : send_output(streams, wire, 2);
}

/* The job took N bytes of its input, so the client may send N more. */
static int consumed(struct streams *streams, struct wire *wire, size_t n)
{
	streams->consumed += n;
	if (streams->consumed > streams->sent[0]) /* we added a terminal's ^D ourselves */
		streams->consumed = streams->sent[0];
	if (!wire || streams->input_ended || streams->consumed - streams->taken[0] < CREDIT_BATCH)
		return 0;
	streams->taken[0] = streams->consumed;
	return wire_credit(wire, 0, streams->consumed + FRAME_WINDOW);
}

/* The job closed its input: we drop more input, and the client may stop reading its own. */
static int streams_input_refused(struct streams *streams, struct wire *wire)
{
	streams_close(streams, 0);
	return wire ? streams_announce(streams, wire) : 0;
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
			streams_grow(streams, 0);
			return 0;
		}
		if (put < 0)
			return streams_input_refused(streams, wire);
		queue_drop(&streams->input, (size_t)put);
		rc = consumed(streams, wire, (size_t)put);
		if (rc)
			return rc;
	}
	if (streams->input_ended && !streams->tty)
		streams_close(streams, 0);
	return 0;
}

static int streams_end_input(struct streams *streams, struct wire *wire)
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

uint64_t streams_end_due(const struct streams *streams)
{
	return streams->tty && streams->input_ended && streams->fd[0] >= 0 && !streams->input.length
		       ? streams->end_due_ms
		       : UINT64_MAX;
}

/*
 * Repeats the end of a terminal's input. A shell that switches to raw mode while ^D waits in the
 * line reads a NUL instead, and a reader of lines that starts after another reader took the end
 * needs its own.
 */
void streams_end_again(struct streams *streams, uint64_t now_ms)
{
	bool first = !streams->end_due_ms;
	char end[2];

	if (streams_end_due(streams) > now_ms)
		return;
	streams->end_pause_ms = first ? END_FIRST_MS : 2 * streams->end_pause_ms;
	if (streams->end_pause_ms > END_MOST_MS)
		streams->end_pause_ms = END_MOST_MS;
	streams->end_due_ms = now_ms + streams->end_pause_ms;
	if (first)
		return;
	streams->end_times = tty_lines(streams->fd[0]) ? 0 : streams->end_times + 1;
	if (streams->end_times <= END_TIMES && !tty_unread(streams->fd[0]) &&
	    tty_end_of_input(streams->fd[0], '\n', end))
		(void)!write(streams->fd[0], end, 1);
}

int streams_move(struct streams *streams, struct wire *wire, uint64_t now_ms,
		 const struct pollfd entries[FRAME_STREAMS])
{
	int rc = 0;

	if (streams->fd[0] >= 0 && entries[0].revents & POLLERR)
		rc = streams_input_refused(streams, wire);
	else if (entries[0].revents)
		rc = move_input(streams, wire);
	for (int i = 1; i < FRAME_STREAMS; i++)
		if (entries[i].revents || (i == 1 && streams->held.length))
			move_output(streams, i, now_ms);
	return rc;
}

static int streams_against(struct streams *streams, const char *why)
{
	streams->why = why;
	return -EPROTO;
}

/* Takes input of the client, and writes it straight into the pipe if nothing is queued. */
static int streams_take_input(struct streams *streams, struct wire *wire, uint64_t offset,
			      const uint8_t *data, uint32_t length)
{
	ssize_t put = 0;
	int rc;

	if (offset != streams->sent[0])
		return streams_against(streams, offset > streams->sent[0]
							? "input bytes are missing before these"
							: "input bytes came a second time");
	if (length && streams->input_ended && !streams->told[0])
		return streams_against(streams, "input came after its end");
	if (length > streams->taken[0] + FRAME_WINDOW - offset)
		return streams_against(streams, "more input came than was allowed");
	streams->sent[0] += length;
	if (!length)
		return streams_end_input(streams, wire);
	if (streams->fd[0] < 0 || streams->input_ended)
		return 0; /* sent before the client read that its input leads nowhere */
	streams->last_input = (char)data[length - 1];
	if (!streams->input.length) {
		put = write(streams->fd[0], data, length);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			return streams_input_refused(streams, wire);
		if (put < 0)
			put = 0;
	}
	if ((uint32_t)put < length) {
		streams_grow(streams, 0);
		rc = queue_push(&streams->input, data + put, length - (uint32_t)put);
		if (rc)
			return rc;
	}
	return put ? consumed(streams, wire, (size_t)put) : 0;
}

/* The client's reader is gone: the job gets SIGPIPE, as on the home node. A detached job goes
 * on. */
static void output_unwanted(struct streams *streams, int stream)
{
	streams->told[stream] = true;
	if (spooled(streams))
		return;
	streams_close(streams, stream);
	resend_free(&streams->kept[stream]);
	streams->sent[stream] = streams->taken[stream] = streams->kept[stream].end;
}

static int streams_take_credit(struct streams *streams, int stream, uint64_t limit)
{
	uint64_t taken = limit - FRAME_WINDOW;

	if (limit < FRAME_WINDOW || taken > streams->sent[stream])
		return streams_against(streams, "the client confirmed output that it was not sent");
	if (taken < streams->taken[stream])
		/* A client that returned counts from before a gap, so a lower credit takes
		 * nothing back. */
		return spooled(streams)
			       ? 0
			       : streams_against(streams,
						 "the client withdrew its confirmation of output");
	streams->taken[stream] = taken;
	if (!spooled(streams))
		resend_drop(&streams->kept[stream], taken);
	return 0;
}

int streams_take(struct streams *streams, struct wire *wire, uint8_t type, const uint8_t *payload,
		 uint32_t length)
{
	uint8_t stream = length ? payload[0] : FRAME_STREAMS;
	uint64_t offset;

	if (stream >= FRAME_STREAMS || length < FRAME_DATA_HEAD)
		return streams_against(streams, "a message names no stream");
	offset = wire_u64(payload + 1);
	length -= FRAME_DATA_HEAD;
	if (type == FRAME_DATA && stream == 0)
		return streams_take_input(streams, wire, offset, payload + FRAME_DATA_HEAD, length);
	if (length || (type == FRAME_CREDIT && stream == 0))
		return streams_against(streams, "a message goes the wrong way");
	if (type == FRAME_CREDIT)
		return streams_take_credit(streams, stream, offset);
	output_unwanted(streams, stream);
	return 0;
}

bool streams_ended(const struct streams *streams)
{
	return streams->fd[1] < 0 && streams->fd[2] < 0;
}

bool streams_sent(const struct streams *streams)
{
	return streams->told[1] && streams->told[2];
}

bool streams_taken(const struct streams *streams)
{
	return streams_ended(streams) && streams->taken[1] == streams_end(streams, 1, true) &&
	       streams->taken[2] == streams_end(streams, 2, true);
}

bool streams_waiting(const struct streams *streams)
{
	for (int i = 1; i < FRAME_STREAMS; i++)
		if (streams->fd[i] >= 0 && !streams_has_room(streams, i))
			return false;
	return true;
}

static void spill_kept(struct spool *spool, int dir, int stream, const struct resend_buffer *kept)
{
	const uint8_t *at;
	size_t n;

	for (uint64_t offset = kept->start; offset < kept->end; offset += n) {
		at = resend_at(kept, offset, &n);
		spool_add(spool, dir, stream, at, n);
	}
}

/* Reads on where the spool is full, or the bytes that are lost could not be counted. */
static void spill_rest(struct streams *streams, int stream)
{
	ssize_t got = 1;

	for (uint64_t n = 0; streams->fd[stream] >= 0 && got > 0 && n < PIPE_BYTES;
	     n += (size_t)got)
		got = streams_read_output(streams, stream);
}

void streams_spill(struct streams *streams, uint64_t max)
{
	const struct spool_size size = {.head = max < SHIM_SPILL_MAX ? max : SHIM_SPILL_MAX};
	uint64_t base[FRAME_STREAMS] = {0, streams->kept[1].start, streams->kept[2].start};
	struct spool spool;

	if (spooled(streams) || spool_make(&spool, streams->record, base, &size, false, NULL))
		return;
	for (int i = 1; i < FRAME_STREAMS; i++) {
		spill_kept(&spool, streams->record, i, &streams->kept[i]);
		resend_free(&streams->kept[i]);
	}
	/* From here on the streams work as for a detached job. */
	streams->spool = spool;
	for (int i = 1; i < FRAME_STREAMS; i++)
		spill_rest(streams, i);
}
