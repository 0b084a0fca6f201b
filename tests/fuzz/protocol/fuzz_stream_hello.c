/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The two frames in clear that a job stream begins with, at the target and at the client: what is
 * accepted keeps the rules that the rest relies on, and nobody is believed without the key.
 */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/channel/stream_hello.h"

static const uint8_t key[SECRET_KEY] = "a key that no input knows......";

bool sample(int n, FILE *out)
{
	struct stream_welcome welcome = {.version = 1, .node = "n2"};
	uint8_t payload[STREAM_HELLO_MAX], answer[STREAM_WELCOME_MAX];
	struct noise client, target;
	struct stream_hello hello;
	struct records records;
	size_t length, more;

	stream_hello_fill(&hello, n ? STREAM_KIND_ATTACH : STREAM_KIND_START, "a-0f-7", "n2",
			  n ? "00112233445566778899aabbccddeeff" : "");
	must(!stream_hello_pack(&client, &hello, key, NULL, payload, &length));
	if (n < 2)
		fwrite(payload, 1, length, out);
	must(!stream_hello_open(&target, payload, length, key));
	must(!stream_welcome_pack(&target, &welcome, answer, &more, &records));
	if (n == 2)
		fwrite(answer, 1, more, out);
	return n < 3;
}

FUZZ_SAMPLES

/* Gives a client any bytes as the target's answer. */
static void welcomed(const uint8_t *data, size_t size)
{
	struct stream_welcome welcome;
	uint8_t out[STREAM_HELLO_MAX];
	struct stream_hello hello;
	struct records records;
	struct noise noise;
	size_t length;

	stream_hello_fill(&hello, STREAM_KIND_START, "a-0f-7", "n2", "");
	must(!stream_hello_pack(&noise, &hello, key, NULL, out, &length));
	must(stream_welcome_unpack(&noise, &hello, data, size, &welcome, &records));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t other[SECRET_KEY];
	struct stream_hello hello;
	struct noise noise;

	welcomed(data, size);
	if (stream_hello_unpack(&hello, data, size)) {
		must(!hello.job[0]);
		return 0;
	}
	must(spec_job_valid(hello.job) && hello.node[0] && hello.least <= hello.most);
	must_end(hello.node, sizeof(hello.node));
	must_end(hello.ticket, sizeof(hello.ticket));
	must(!hello.ticket[0] || hello.kind == STREAM_KIND_ATTACH);
	must(stream_hello_open(&noise, data, size, other));
	return 0;
}
