/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The shim's side of a job stream, with a client that sends anything. The frames go to the
 * streams of a job that reads nothing and wrote a little, through pipes or at a terminal. For
 * any frames: no more than a window waits, no byte counts as taken that was not sent, and no
 * byte is kept after it was taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "agent/shim/streams.h"
#include "agent/shim/tty.h"

static struct streams streams;

static void check(void)
{
	must(streams.input.length <= FRAME_WINDOW + 2);
	must(streams.consumed + streams.input.length <= streams.sent[0] + 2); /* two bytes for ^D */
	must(streams.sent[0] <= streams.taken[0] + FRAME_WINDOW);
	must(streams.taken[0] <= streams.consumed);
	for (int i = 1; i < FRAME_STREAMS; i++) {
		must(streams.taken[i] <= streams.sent[i]);
		must(streams.sent[i] <= streams_end(&streams, i, true));
		must(streams.kept[i].start == streams.taken[i]);
	}
}

static int frames(struct wire *wire, const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *payload;
		uint32_t length;
		size_t consumed;
		uint8_t type;
		int rc = frame_parse(data, size, FRAME_DATA_MAX + FRAME_DATA_HEAD, &type, &payload,
				     &length, &consumed);

		if (rc)
			return rc;
		if (type == FRAME_DATA || type == FRAME_CREDIT) {
			rc = streams_take(&streams, wire, type, payload, length);
			if (rc)
				return rc;
			check();
		}
		if (type == FRAME_WINSIZE) {
			rc = tty_resize(streams.tty ? streams.fd[1] : -1, payload, length);
			must(rc == (length == TERMINAL_SIZE_BYTES ? 0 : -EPROTO));
		}
		data += consumed;
		size -= consumed;
	}
	return 0;
}

static void put(FILE *out, uint8_t type, const void *payload, uint32_t length)
{
	uint8_t header[FRAME_HEADER];

	frame_header(header, type, length);
	fwrite(header, 1, sizeof(header), out);
	fwrite(payload, 1, length, out);
}

bool sample(int n, FILE *out)
{
	put(out, FRAME_DATA, "\0\0\0\0\0\0\0\0\0hello", 14);
	put(out, FRAME_DATA, "\0\0\0\0\0\0\0\0\5more", 13);
	put(out, FRAME_CREDIT, "\1\0\0\0\0\0\10\0\3", 9); /* the client took three bytes */
	put(out, FRAME_DATA, "\2\0\0\0\0\0\0\0\0", 9);	  /* nobody reads the error output */
	put(out, FRAME_DATA, "\0\0\0\0\0\0\0\0\11", 9);	  /* the end of the input */
	put(out, FRAME_WINSIZE, "\0\30\0\120\0\0\0\0", TERMINAL_SIZE_BYTES);
	if (n) /* now the number of bytes is even, which means pipes */
		put(out, FRAME_SIGNAL, "\2", 1);
	return n <= 1;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pollfd entries[FRAME_STREAMS] = {0};
	int in[2], out[2], err[2], ends[2], rc;
	struct wire wire;

	must(!pipe2(in, O_NONBLOCK) && !pipe2(out, O_NONBLOCK) && !pipe2(err, O_NONBLOCK));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	must(wire_init(&wire, ends[0], NULL) == 0);
	streams_init(&streams, (int[]){in[1], out[0], err[0]});
	streams.tty = size % 2;
	must(write(out[1], "hello", 5) == 5 && write(err[1], "oh", 2) == 2);
	for (int i = 0; i < FRAME_STREAMS; i++)
		entries[i].revents = i ? POLLIN : 0;
	must(streams_move(&streams, &wire, 1, entries) == 0);
	must(streams_send(&streams, &wire) == 0);
	rc = frames(&wire, data, size);
	must(rc <= 0 || rc == FRAME_E_MORE || rc == FRAME_E_GARBAGE || rc == FRAME_E_VERSION);
	streams_deinit(&streams);
	wire_deinit(&wire);
	close(ends[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	return 0;
}
