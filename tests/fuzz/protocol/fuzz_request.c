/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a program on the agent's own socket asks, as an ordinary user and as root: each
 * request is answered once, or its client waits for what is to come.
 */
#include <unistd.h>

#include "agent/front/recorders.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "tests/lib/whole.h"
#include "user/frame.h"
#include "user/pack.h"

static const char *const ops[] = {"place",  "kill",   "explain", "jobs",   "profile",
				  "nodes",  "record", "top",	 "status", "wait",
				  "attach", "report", "owner",	 "gather", "reach"};
#define OPS ((int)(sizeof(ops) / sizeof(*ops)))

bool sample(int n, FILE *out)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	if (n >= OPS)
		return false;
	pack_begin(&pk, &buffer, 17);
	pack_str(&pk, "op", ops[n]);
	pack_key(&pk, "asks");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_map(&pk, 3);
	pack_str(&pk, "node", "there");
	pack_bin(&pk, "ask", "?", 1);
	pack_str(&pk, "cred", "MUNGE:");
	pack_str(&pk, "policy", "io");
	pack_str(&pk, "class", "sh");
	pack_str(&pk, "cwd", "/tmp");
	pack_str(&pk, "executable", "/bin/sh");
	pack_str(&pk, "command", "sh -c true");
	pack_str(&pk, "job", "last");
	pack_u64(&pk, "signal", 15);
	pack_u64(&pk, "interval_ms", 1000);
	pack_bool(&pk, "run", n % 2 == 0);
	pack_key(&pk, "need");
	msgpack_pack_map(&pk, 2);
	pack_f64(&pk, "requests", 1000);
	pack_f64(&pk, "memory_mb", 10);
	pack_str(&pk, "node", "there");
	pack_u64(&pk, "since_ns", 1);
	pack_u64(&pk, "before_ns", 2);
	pack_str(&pk, "before", "here-0f-1");
	pack_u64(&pk, "uid", 65534);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return true;
}

FUZZ_SAMPLES

/* Whether the client of the only connection is still to get something. */
static bool is_waiting(const struct whole *w)
{
	return w->front.waits || w->front.tops || w->front.recorders || w->front.kills ||
	       w->front.gathers;
}

/* A recording is many lines, and may end at once. */
static bool is_recording(const uint8_t *data, size_t size)
{
	msgpack_unpacked map;
	char op[32] = "";

	if (unpack_map(&map, data, size))
		return false;
	(void)unpack_str(&map.data, "op", op, sizeof(op));
	msgpack_unpacked_destroy(&map);
	return !strcmp(op, "record");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct whole *w = whole_fresh();
	char text[64] = "";
	uint8_t type = 0;
	unsigned answers;
	int fd;

	if (!size || size > 8192)
		return 0;
	fd = whole_client(w, data[size - 1] & 1 ? 65534 : 0);
	must(fd >= 0 && !whole_ask(fd, data, size));
	whole_pass_ms(w, 1);
	answers = whole_answers(fd, &type, text, sizeof(text));
	if (is_recording(data, size))
		must(answers >= 1);
	else
		must(answers == 1 || (answers == 0 && is_waiting(w)));
	must(!answers || type == FRAME_JSON || type == FRAME_ERROR);
	close(fd);
	whole_pass_ms(w, 1);
	recorders_period(&w->front); /* frees the clients that have left */
	must(!is_waiting(w) && clients_count(w->front.clients) == 0);
	return 0;
}
