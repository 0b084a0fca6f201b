/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests on the agent's own socket, of an ordinary user and of root: each request is answered,
 * and a decision is complete.
 */
#include "tests/fuzz/protocol/fake_agent.h"
#include "user/pack.h"

void ops_request(struct agent *a, struct client *c, const msgpack_object *request);
void ops_forget(struct agent *a, const struct client *client);
void place_request(struct agent *a, struct client *client, const msgpack_object *request);
void place_forget(struct agent *a, const struct client *client);

static const char *const ops[] = {"place", "kill",   "explain", "jobs",	 "profile",
				  "nodes", "record", "top",	"status"};
#define OPS ((int)(sizeof(ops) / sizeof(*ops)))

bool sample(int n, FILE *out)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	if (n >= OPS)
		return false;
	pack_begin(&pk, &buffer, 12);
	pack_str(&pk, "op", ops[n]);
	pack_str(&pk, "policy", "io");
	pack_str(&pk, "class", "sh");
	pack_str(&pk, "cwd", "/tmp");
	pack_str(&pk, "executable", "/bin/sh");
	pack_str(&pk, "command", "sh -c true");
	pack_str(&pk, "job", "last");
	pack_u64(&pk, "signal", 15);
	pack_u64(&pk, "interval_ms", 1000);
	pack_bool(&pk, "run", n % 2 == 0);
	pack_bool(&pk, "view", true);
	pack_key(&pk, "need");
	msgpack_pack_map(&pk, 2);
	pack_f64(&pk, "requests", 1000);
	pack_f64(&pk, "memory_mb", 10);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return true;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client client = {.who = {.pid = 1}};
	struct agent *a = fake_agent();
	msgpack_unpacked map;
	char op[32];

	if (!size)
		return 0;
	client.who.uid = client.who.gid = data[size - 1] & 1 ? 65534 : 0;
	if (unpack_map(&map, data, size))
		return 0;
	if (!unpack_str(&map.data, "op", op, sizeof(op))) {
		if (!strcmp(op, "place"))
			place_request(a, &client, &map.data);
		else
			ops_request(a, &client, &map.data);
		fake_signalled();
		must(client.answers + (a->waits != NULL) == 1 &&
		     !a->places); /* either it was answered or it waits */
		place_forget(a, &client);
		ops_forget(a, &client);
		recorders_stop(a);
	}
	msgpack_unpacked_destroy(&map);
	return 0;
}
