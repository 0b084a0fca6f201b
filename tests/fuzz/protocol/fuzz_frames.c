/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Frames: frame_parse gets the bytes at once, a wire gets them in pieces through a socket. Both
 * must see the same frames and the same end.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/wire.h"

#define BYTES_MAX 8192

/* Returns the wire's next result: 0 or FRAME_E_*. */
static int next_of(struct wire *wire, int peer, const uint8_t **left, size_t *bytes, size_t piece,
		   uint8_t *type, const uint8_t **payload, uint32_t *length)
{
	int rc = wire_next(wire, type, payload, length);

	while (rc == FRAME_E_MORE && *bytes) {
		size_t n = piece < *bytes ? piece : *bytes;

		must(send(peer, *left, n, 0) == (ssize_t)n);
		*left += n;
		*bytes -= n;
		must(wire_fill(wire) == 1);
		rc = wire_next(wire, type, payload, length);
	}
	return rc;
}

static void compare(const uint8_t *data, size_t size, struct wire *wire, int peer, size_t piece)
{
	const uint8_t *left = data;
	size_t bytes = size, at = 0;

	for (;;) {
		const uint8_t *payload = NULL, *other = NULL;
		uint32_t length = 0, same = 0;
		uint8_t type = 0, kind = 0;
		size_t consumed = 0;
		int rc = frame_parse(data + at, size - at, FRAME_DATA_MAX + FRAME_DATA_HEAD, &type,
				     &payload, &length, &consumed);
		int wired = next_of(wire, peer, &left, &bytes, piece, &kind, &other, &same);

		must(rc == wired);
		if (rc)
			return;
		must(consumed == FRAME_HEADER + (size_t)length && consumed <= size - at);
		must(payload == data + at + FRAME_HEADER);
		must(type == kind && length == same && !memcmp(payload, other, length));
		at += consumed;
	}
}

bool sample(int n, FILE *out)
{
	uint8_t header[FRAME_HEADER];

	for (uint8_t type = FRAME_REQUEST; type <= FRAME_ATTACH; type++) {
		frame_header(header, type, 3);
		fwrite(header, 1, sizeof(header), out);
		fwrite("\1ab", 1, 3, out);
	}
	return !n;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire wire;
	int ends[2];

	if (!size || size > BYTES_MAX)
		return 0;
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	must(wire_init(&wire, ends[0], NULL) == 0);
	compare(data, size, &wire, ends[1], 1 + data[size - 1] % 64u * 7);
	wire_deinit(&wire);
	close(ends[1]);
	return 0;
}
