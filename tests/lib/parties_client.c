/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The clients of a cluster in memory: they submit, and start what was placed; see parties.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/parties_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/shims.h"
#include "tests/lib/trace.h"
#include "user/clock.h"
#include "user/pack.h"

/* --- clients --------------------------------------------------------------------------------- */

static void pack_submission(const struct party_submission *s, msgpack_sbuffer *out)
{
	msgpack_packer pk;
	size_t n = 7 + (s->node != NULL) + (s->again != NULL) + s->restartable + !!s->tasks +
		   !!s->per_node + !!s->only + s->oversubscribe + s->keep_going + !!s->class_name;

	pack_begin(&pk, out, n);
	pack_str(&pk, "cwd", s->cwd ? s->cwd : "/");
	pack_str(&pk, "executable", "work");
	pack_bool(&pk, "run", !s->ask_only);
	pack_bool(&pk, "home_dir", s->home_dir);
	pack_bool(&pk, "detach", s->detach);
	pack_bool(&pk, "named", s->named);
	if (s->tasks)
		pack_u64(&pk, "tasks", s->tasks);
	if (s->per_node)
		pack_u64(&pk, "per_node", s->per_node);
	if (s->only)
		pack_str(&pk, "only", s->only);
	if (s->oversubscribe)
		pack_bool(&pk, "oversubscribe", true);
	if (s->keep_going)
		pack_bool(&pk, "keep_going", true);
	if (s->class_name)
		pack_bin(&pk, "class", s->class_name, strlen(s->class_name));
	if (s->node)
		pack_str(&pk, "node", s->node);
	if (s->again)
		pack_str(&pk, "again", s->again);
	if (s->restartable)
		pack_u64(&pk, "restarts", s->restarts);
	pack_key(&pk, "need");
	msgpack_pack_map(&pk, 2);
	pack_f64(&pk, "cpu_s", 1);
	pack_f64(&pk, "memory_mb", s->memory_mb);
}

static void note_answer(struct party_client *client)
{
	struct parties *all = client->at->all;
	const char *name = client->at->set.name;
	const json_t *wait;

	if (!client->answer) {
		parties_note(all, name, "tells its client: %s", client->why);
		return;
	}
	wait = json_object_get(client->answer, "wait_ms");
	if (wait)
		parties_note(all, name, "tells its client: ask again in %lld ms",
			     (long long)json_integer_value(wait));
	else
		parties_note(all, name, "tells its client: job %s at %s; refused: %s",
			     party_answer(client, "job"), party_answer(client, "node"),
			     party_refusals(client));
}

/* The client reads it only after the journal has it. */
static void must_be_written(struct party_client *client)
{
	struct party *at = client->at;
	const char *job = party_answer(client, "job");
	struct iocom_err err = {0};
	char *text = NULL;
	uid_t owner;

	if (!job[0])
		return;
	parties_must(at->all, !journal_place(at->journal, job, 0, &text, &owner, &err) && text,
		     "the client has an answer for %s, the journal has none", job);
	parties_must(at->all, !text || !strstr(text, "\"nonce\""),
		     "the journal has the nonce of job %s", job);
	free(text);
}

static void party_placed(void *arg, json_t *answer, const char *why)
{
	struct party_client *client = arg;

	client->told++;
	json_decref(client->answer);
	client->answer = answer;
	snprintf(client->why, sizeof(client->why), "%s", why ? why : "");
	if (answer)
		must_be_written(client);
	note_answer(client);
}

void party_place(struct party *party, struct party_client *client, const struct party_submission *s)
{
	msgpack_sbuffer request;
	msgpack_unpacked map;

	party_client_end(client);
	*client = (struct party_client){.at = party};
	pack_submission(s, &request);
	assert_int_equal(unpack_map(&map, request.data, request.size), 0);
	parties_enter(party->all);
	parties_note(party->all, party->set.name, "is asked by a client for a place%s%s",
		     s->again ? " after the loss of " : "", s->again ? s->again : "");
	if (gangs_asked(&map.data))
		gangs_place(party->gangs, s->uid ? s->uid : PARTIES_UID, &map.data, party_placed,
			    client);
	else
		home_place(party->home, s->uid ? s->uid : PARTIES_UID, &map.data, party_placed,
			   client);
	parties_leave(party->all);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&request);
}

void party_leave(struct party_client *client)
{
	parties_enter(client->at->all);
	parties_note(client->at->all, client->at->set.name, "loses its client");
	home_forget(client->at->home, client);
	gangs_forget(client->at->gangs, client);
	parties_leave(client->at->all);
}

void party_client_end(struct party_client *client)
{
	json_decref(client->answer);
	client->answer = NULL;
}

const char *party_answer(const struct party_client *client, const char *key)
{
	const char *value = json_string_value(json_object_get(client->answer, key));

	return value ? value : "";
}

const char *party_refusals(const struct party_client *client)
{
	static char out[512];
	const json_t *list = json_object_get(client->answer, "refused");
	size_t n = 0;

	out[0] = 0;
	for (size_t i = 0; i < json_array_size(list) && n < sizeof(out); i++) {
		const json_t *one = json_array_get(list, i);

		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s:%s", i ? " " : "",
				      json_string_value(json_object_get(one, "node")),
				      json_string_value(json_object_get(one, "reason")));
	}
	return out;
}

/* WHERE has job, node and nonce: an answer, or a part of a gang's. */
static const char *party_member(const json_t *where, const char *key)
{
	const char *value = json_string_value(json_object_get(where, key));

	return value ? value : "";
}

static void pack_start(const json_t *where, const char *class_name, msgpack_sbuffer *out)
{
	char *argv[] = {"work", NULL}, *env[] = {NULL};
	struct spec spec = {.executable = "work", .cwd = "/", .argv = argv, .env = env};
	msgpack_packer pk;
	size_t length;
	void *packed;

	snprintf(spec.job, sizeof(spec.job), "%s", party_member(where, "job"));
	snprintf(spec.node, sizeof(spec.node), "%s", party_member(where, "node"));
	snprintf(spec.nonce, sizeof(spec.nonce), "%s", party_member(where, "nonce"));
	snprintf(spec.class_name, sizeof(spec.class_name), "%s", class_name);
	assert_int_equal(spec_pack(&spec, &packed, &length, NULL), 0);
	pack_begin(&pk, out, 1);
	pack_bin(&pk, "spec", packed, length);
	free(packed);
}

static int launch_there(struct parties *all, const json_t *where, const char *class_name,
			struct iocom_err *err)
{
	struct party *to = party_of(all, party_member(where, "node"));
	const struct ucred who = {.uid = PARTIES_UID, .gid = PARTIES_UID};
	const char *job = party_member(where, "job");
	struct iocom_err own = {0};
	msgpack_sbuffer start;
	int fd, rc;

	err = err ? err : &own;
	assert_non_null(to);
	pack_start(where, class_name, &start);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	parties_enter(all);
	rc = to->runs ? guest_start(to->guest, fd, start.data, (uint32_t)start.size, &who, err)
		      : -ECONNREFUSED;
	parties_note(all, to->set.name, "%s %s%s%s", rc ? "does not launch" : "launches", job,
		     rc ? ": " : "", rc ? err->text : "");
	parties_leave(all);
	if (rc)
		close(fd);
	msgpack_sbuffer_destroy(&start);
	return rc;
}

int party_launch(struct party_client *client, const char *class_name, struct iocom_err *err)
{
	return launch_there(client->at->all, client->answer, class_name, err);
}

int party_launch_part(struct party_client *client, unsigned number, struct iocom_err *err)
{
	const json_t *parts = json_object_get(json_object_get(client->answer, "gang"), "parts");
	const json_t *part = json_array_get(parts, number);

	/* Parts run at the same time: each has a class of its own here. */
	return launch_there(client->at->all, part, party_member(part, "job"), err);
}
