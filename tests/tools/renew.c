/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * As node FROM, asks an agent to renew the lease of JOB, and sends the same sealed message COUNT
 * times: `renew FROM TO ADDRESS PORT JOB COUNT`. Prints a line for each: ok, fenced, or silence.
 * Only the cluster's root can do this: it greets and seals like any other agent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/cluster/peer_message.h"
#include "tests/lib/asker.h"
#include "user/clock.h"
#include "user/pack.h"

#define ANSWER_MS 1500

static void make_message(char **argv, msgpack_sbuffer *out)
{
	msgpack_sbuffer body;
	msgpack_packer pk;
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		exit(2);
	pack_begin(&pk, &body, 1);
	pack_u64(&pk, "lease_ms", 5000);
	pack_begin(&pk, out, 7);
	pack_str(&pk, "type", "renew");
	pack_str(&pk, "from", argv[1]);
	pack_str(&pk, "to", argv[2]);
	pack_str(&pk, "job", argv[5]);
	pack_u64(&pk, "id", id >> 1);
	pack_u64(&pk, "at", clock_real_ns() / CLOCK_NS_PER_MS);
	pack_bin(&pk, "body", body.data, body.size);
	msgpack_sbuffer_destroy(&body);
}

static const char *read_answer(struct asker *asker, uint8_t *answer, size_t length)
{
	msgpack_unpacked outer, inner;
	const msgpack_object *body;
	const char *word = "garbage";
	const uint8_t *data;
	size_t n;
	bool ok;

	if (asker_open(asker, answer, length, &data, &n))
		return "not sealed";
	if (!unpack_map_of(&outer, data, n, PEER_VALUES_MAX)) {
		body = unpack_get(&outer.data, "body");
		if (body && body->type == MSGPACK_OBJECT_BIN &&
		    !unpack_map_of(&inner, body->via.bin.ptr, body->via.bin.size,
				   PEER_VALUES_MAX)) {
			if (!unpack_bool(&inner.data, "ok", &ok))
				word = ok ? "ok" : "fenced";
			msgpack_unpacked_destroy(&inner);
		}
		msgpack_unpacked_destroy(&outer);
	}
	return word;
}

int main(int argc, char **argv)
{
	const char *munge = getenv("IOCOM_MUNGE_SOCKET");
	struct iocom_err err = {0};
	msgpack_sbuffer plain, sealed;
	struct asker asker;

	if (argc != 7) {
		fprintf(stderr, "usage: renew FROM TO ADDRESS PORT JOB COUNT\n");
		return 2;
	}
	if (asker_new(&asker, argv[1], argv[2], munge ? munge : "", &err) ||
	    asker_connect(&asker, argv[3], (uint16_t)(atoi(argv[4]) + 1)) ||
	    asker_greet(&asker, &err)) {
		fprintf(stderr, "renew: %s\n", *err.text ? err.text : "cannot connect");
		return 1;
	}
	make_message(argv, &plain);
	asker_seal(&asker, &plain, &sealed);
	for (int i = 0; i < atoi(argv[6]); i++) {
		uint8_t *answer;
		ssize_t n = asker_exchange(&asker, sealed.data, sealed.size, ANSWER_MS, &answer);

		puts(n > 0 ? read_answer(&asker, answer, (size_t)n) : "silence");
		free(answer);
	}
	msgpack_sbuffer_destroy(&plain);
	msgpack_sbuffer_destroy(&sealed);
	asker_free(&asker);
	return 0;
}
