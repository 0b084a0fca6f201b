/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A client's request to attach, and the answer: what is accepted keeps the rules that the rest
 * relies on, and packing it again gives the same bytes.
 */
#include <stdlib.h>

#include "user/attach.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

bool sample(int n, FILE *out)
{
	const struct attach_ask ask = {.job = "a-0f-7",
				       .node = "n2",
				       .nonce = "00112233445566778899aabbccddeeff",
				       .from = {0, 9, ATTACH_FIRST},
				       .taken = {0, 3, 0},
				       .take = true};
	const struct attach_state state = {.pid = 7, .input_limit = FRAME_WINDOW};
	size_t length;
	void *data;

	must(!(n ? attach_state_pack(&state, "a-0f-7", "n2", &data, &length)
		 : attach_pack(&ask, &data, &length)));
	fwrite(data, 1, length, out);
	free(data);
	return n < 2;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct attach_ask ask, again;
	struct attach_state state;
	size_t length;
	void *packed;

	attach_state_unpack(&state, data, size);
	if (attach_unpack(&ask, data, size, NULL))
		return 0;
	must(spec_job_valid(ask.job) && ask.node[0]);
	must_end(ask.node, sizeof(ask.node));
	must_end(ask.nonce, sizeof(ask.nonce));
	must_end(ask.resume, sizeof(ask.resume));
	must(ask.taken[1] <= ask.from[1] && ask.taken[2] <= ask.from[2]);
	must(!attach_pack(&ask, &packed, &length));
	must(!attach_unpack(&again, packed, length, NULL));
	must(!memcmp(&ask, &again, sizeof(ask)));
	free(packed);
	return 0;
}
