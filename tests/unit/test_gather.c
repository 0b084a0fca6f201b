/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests to other nodes and of users of other nodes, without a network: what is malformed or out
 * of bounds, who serves nobody, and what a client that is no connection gets from the handlers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/jobs/journal_sql.h"
#include "tests/lib/asks.h"
#include "tests/lib/logged.h"
#include "tests/lib/munged.h"
#include "user/pack.h"
#include "user/user_ask.h"

#define JOB	 "here-0f-1"
#define USER	 1000
#define STRANGER 1001
#define NONCE	 "00112233445566778899aabbccddeeff"

static struct whole w;
static struct munged munged;
static const char *missing; /* why there is no munged */

static int setup(void **state)
{
	(void)state;
	return whole_new(&w, ":memory:") ? -1 : logged_begin(&w.log);
}

static int teardown(void **state)
{
	(void)state;
	logged_end();
	whole_free(&w);
	return 0;
}

/* --- gather ------------------------------------------------------------------------- */

/* Asks COUNT times NODE; WAIT_MS 0: not said. */
static int gathers(const char *node, size_t count, unsigned wait_ms)
{
	int fd = whole_client(&w, USER);
	msgpack_sbuffer map;
	msgpack_packer pk;

	pack_begin(&pk, &map, 2 + (wait_ms != 0));
	pack_str(&pk, "op", "gather");
	if (wait_ms)
		pack_u64(&pk, "wait_ms", wait_ms);
	pack_key(&pk, "asks");
	msgpack_pack_array(&pk, count);
	for (size_t i = 0; i < count; i++) {
		msgpack_pack_map(&pk, 3);
		pack_str(&pk, "node", node);
		pack_bin(&pk, "ask", "ask", 3);
		pack_str(&pk, "cred", "MUNGE:");
	}
	assert_int_equal(whole_ask(fd, map.data, map.size), 0);
	msgpack_sbuffer_destroy(&map);
	whole_pass_ms(&w, 1);
	return fd;
}

static void test_malformed(void **state)
{
	(void)state;
	reads_error(ASKS(&w, USER, .op = "gather"),
		    "the request names no \"asks\", or more than 64");
	reads_error(gathers("there", 65, 0), "the request names no \"asks\", or more than 64");
	reads_error(gathers("", 1, 0),
		    "the request does not say which nodes (64 at most) it asks what");
	reads_error(gathers("there", 1, 49), "wait_ms must be from 50 to 2500");
	reads_error(gathers("there", 1, 2501), "wait_ms must be from 50 to 2500");
	assert_int_equal(gathers_count(&w.front), 0);
}

static void says(int fd, size_t row, const char *error, bool silent)
{
	json_t *document = reads_json(fd);
	json_t *one = json_array_get(json_object_get(document, "answers"), row);

	assert_string_equal(json_string_value(json_object_get(one, "error")), error);
	assert_int_equal(json_is_true(json_object_get(one, "silent")), silent);
	json_decref(document);
	assert_int_equal(gathers_count(&w.front), 0);
}

static void test_who_cannot_be_asked(void **state)
{
	json_t *document;
	int fd;

	(void)state;
	says(gathers("nowhere", 1, 0), 0, "no node of that name is known here", false);
	says(gathers("there", 64, 0), 63,
	     "this agent serves its own machine only, and node there is another", true);
	fd = gathers("there", 0, 0);
	document = reads_json(fd);
	assert_int_equal(json_array_size(json_object_get(document, "answers")), 0);
	json_decref(document);
}

static void test_reach(void **state)
{
	json_t *document = reads_json(ASKS(&w, USER, .op = "reach")), *node;

	(void)state;
	assert_string_equal(json_string_value(json_object_get(document, "node")), "here");
	node = json_array_get(json_object_get(document, "nodes"), 0);
	assert_string_equal(json_string_value(json_object_get(node, "name")), "there");
	assert_true(json_is_true(json_object_get(node, "alive")));
	json_decref(document);
}

/* --- what another node asks ------------------------------------------------------------ */

static void refuses(const void *ask, size_t length, const char *sentence)
{
	const struct peer_request request = {
		.type = PEER_USER, .from = "there", .user = {"MUNGE:none:", ask, length}};
	uint64_t before = w.counters.forwarded_refused;
	struct peer_answer answer = {.ok = true};

	assert_int_equal(front_on_user(&w.front, &request, 7, &answer), 0);
	assert_false(answer.ok);
	assert_string_equal(answer.text, sentence);
	assert_int_equal(w.counters.forwarded_refused, before + 1);
	assert_int_equal(forwarded_count(&w.front, false), 0);
}

static void test_refused(void **state)
{
	struct user_ask ask = {.node = "here", .nonce = NONCE, .request = "?", .length = 1};
	void *packed;
	size_t length;

	(void)state;
	refuses("", 0, "the user's request is malformed");
	refuses("ask", 3, "the user's request is malformed");
	assert_int_equal(user_ask_pack(&ask, &packed, &length), 0);
	refuses(packed, length - 1, "the user's request is malformed");
	/* nobody here can open a credential */
	refuses(packed, length, "this agent serves its own machine only");
	free(packed);
	strcpy(ask.node, "there");
	assert_int_equal(user_ask_pack(&ask, &packed, &length), 0);
	refuses(packed, length, "the request is for node there");
	free(packed);
}

/* Node "there" asks for OP, with a credential that munged is still to look at. */
static int waits(const char *op, struct peer_answer *answer)
{
	char credential[160] = "MUNGE:";
	struct user_ask ask = {.node = "here", .nonce = NONCE};
	struct peer_request request = {.type = PEER_USER, .from = "there"};
	msgpack_sbuffer inner;
	msgpack_packer pk;
	void *packed;
	int rc;

	memset(credential + 6, 'A', 120);
	strcpy(credential + 126, ":");
	pack_begin(&pk, &inner, 1);
	pack_str(&pk, "op", op);
	ask.request = inner.data;
	ask.length = inner.size;
	assert_int_equal(user_ask_pack(&ask, &packed, &request.user.length), 0);
	request.user.ask = packed;
	request.user.credential = credential;
	rc = front_on_user(&w.front, &request, 7, answer);
	free(packed);
	msgpack_sbuffer_destroy(&inner);
	return rc;
}

/* Users who ask for jobs leave those places that a node's owner needs, and the reverse. */
static void test_places_of_owners(void **state)
{
	struct peer_answer answer;
	struct iocom_err err;

	(void)state;
	if (missing)
		skip();
	assert_int_equal(seal_new(&w.peers.seal, w.base.loop, &w.counters, munged.socket, &err), 0);
	for (int i = 0; i < FORWARDED_MAX; i++)
		assert_int_equal(waits(i % 2 ? "jobs" : "status", &answer), PEERS_LATER);
	assert_int_equal(waits("kill", &answer), 0);
	assert_string_equal(answer.text, "it has 8 requests from other nodes to answer");
	for (int i = 0; i < OWNER_QUESTIONS_MAX; i++)
		assert_int_equal(waits("owner", &answer), PEERS_LATER);
	assert_int_equal(waits("owner", &answer), 0);
	assert_string_equal(answer.text,
			    "it has 4 requests to its owner from other nodes to answer");
	assert_int_equal(w.counters.forwarded_refused, 2);
	assert_int_equal(logged("refused a request of a user at node there (kill): it has 8"), 1);
	assert_int_equal(forwarded_count(&w.front, false), FORWARDED_MAX);
	assert_int_equal(forwarded_count(&w.front, true), OWNER_QUESTIONS_MAX);
	forwarded_stop(&w.front);
	assert_int_equal(forwarded_count(&w.front, true), 0);
	seal_free(w.peers.seal);
	w.peers.seal = NULL;
}

/* --- a client that is no connection ------------------------------------------------------ */

static struct {
	unsigned times;
	bool ok;
	char *text;
	size_t length;
} told;

static void take(void *arg, bool ok, const char *text, size_t length)
{
	(void)arg;
	free(told.text);
	told.times++;
	told.ok = ok;
	told.text = strndup(text, length);
	told.length = length;
}

/* Has HANDLE serve a request of UID at another node, and returns the answer as `told`. */
static void serves(front_request *handle, uid_t uid, msgpack_sbuffer *map)
{
	struct client *client = clients_remote(w.front.clients, uid, 100, take, NULL);
	msgpack_unpacked request;

	assert_non_null(client);
	assert_true(client_is_remote(client));
	told.times = 0;
	assert_int_equal(unpack_map(&request, map->data, map->size), 0);
	handle(&w.front, client, &request.data);
	whole_pass_ms(&w, 1);
	assert_int_equal(told.times, 1);
	client_drop(client);
	whole_pass_ms(&w, 1);
	msgpack_unpacked_destroy(&request);
	msgpack_sbuffer_destroy(map);
}

static void asks_about(front_request *handle, uid_t uid, const char *job)
{
	msgpack_sbuffer map;
	msgpack_packer pk;

	pack_begin(&pk, &map, 3);
	pack_bool(&pk, "all", true);
	pack_bool(&pk, "now", true);
	pack_str(&pk, "job", job);
	serves(handle, uid, &map);
}

static size_t jobs_told(json_int_t *left_out)
{
	json_t *document = json_loadb(told.text, told.length, 0, NULL);
	size_t n = json_array_size(json_object_get(document, "jobs"));

	assert_true(told.ok);
	assert_non_null(document);
	*left_out = json_integer_value(json_object_get(document, "left_out"));
	json_decref(document);
	return n;
}

static void test_own_jobs_only(void **state)
{
	json_int_t left_out;

	(void)state;
	submitted(&w, JOB, USER, "here");
	asks_about(jobs_request, USER, "");
	assert_int_equal(jobs_told(&left_out), 1);
	assert_int_equal(left_out, 0);
	asks_about(jobs_request, STRANGER, "");
	assert_int_equal(jobs_told(&left_out), 0);
	asks_about(wait_request, USER, JOB);
	assert_true(told.ok);
	asks_about(wait_request, STRANGER, JOB);
	assert_false(told.ok);
	assert_non_null(strstr(told.text, "no job of yours named " JOB));
	asks_about(explain_request, STRANGER, JOB);
	assert_false(told.ok);
	asks_about(kill_request, STRANGER, JOB);
	assert_false(told.ok);
}

/* A long list is cut at what a message between nodes holds, and says by how much. */
static void test_long_lists(void **state)
{
	json_int_t left_out;
	size_t n;

	(void)state;
	assert_int_equal(
		sqlite3_exec(w.journal->file.db,
			     "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM i "
			     "WHERE n<1500) INSERT INTO home(job,uid,class,command,policy,"
			     "node,state,submit_ns,end_ns) SELECT 'here-0f-'||n,1000,'c',"
			     "hex(zeroblob(200)),'p','here','exited',n,n FROM i",
			     NULL, NULL, NULL),
		SQLITE_OK);
	asks_about(jobs_request, USER, "");
	n = jobs_told(&left_out);
	assert_true(told.length <= PEER_DOCUMENT_MAX);
	assert_true(n > 100 && n < 1500);
	assert_int_equal(n + (size_t)left_out, 1500);
	assert_non_null(strstr(told.text, "\"here-0f-1500\"")); /* the newest are there */
	assert_null(strstr(told.text, "\"here-0f-1\""));
}

static void names(const char *pattern, size_t count)
{
	msgpack_sbuffer map;
	msgpack_packer pk;
	json_int_t left_out;

	pack_begin(&pk, &map, 1);
	pack_str(&pk, "named", pattern);
	serves(jobs_request, USER, &map);
	assert_int_equal(jobs_told(&left_out), count);
}

static void test_named(void **state)
{
	(void)state;
	submitted(&w, "here-0f-1", USER, "here");
	submitted(&w, "here-0f-21", USER, "here");
	submitted(&w, "here-1f-1", USER, "here");
	submitted(&w, "here-2f-1", STRANGER, "here");
	names("*-1", 2);
	names("here-*-21", 1);
	names("there-*-1", 0);
	names("*", 3);
	/* globs of SQLite other than * are no names: all that run are listed */
	names("here-?f-1", 3);
	names("here-[0]f-1", 3);
}

/* --- top of another node ------------------------------------------------------------------ */

static void looks(uid_t uid, const char *token, uint64_t interval_ms)
{
	msgpack_sbuffer map;
	msgpack_packer pk;

	pack_begin(&pk, &map, 2);
	pack_str(&pk, "token", token);
	pack_u64(&pk, "interval_ms", interval_ms);
	serves(look_request, uid, &map);
}

static void test_looks(void **state)
{
	char token[33] = NONCE;

	(void)state;
	looks(USER, token, 99);
	assert_false(told.ok);
	looks(USER, token, 60001);
	assert_false(told.ok);
	looks(USER, "short", 1000);
	assert_string_equal(told.text,
			    "from another node the interval must be from 100 to 60000 ms");
	assert_int_equal(looks_count(&w.front), 0);
	for (int i = 0; i < LOOKS_OF_ONE; i++) {
		token[0] = (char)('0' + i);
		looks(USER, token, 1000);
		assert_string_equal(told.text, "{\"began\":true}");
	}
	looks(USER, token, 1000); /* again: no further place */
	assert_true(told.ok);
	assert_int_equal(looks_count(&w.front), LOOKS_OF_ONE);
	token[0] = 'f';
	looks(USER, token, 1000);
	assert_false(told.ok);
	assert_non_null(strstr(told.text, "uid 1000 has 8 watchers from other nodes"));
	assert_int_equal(w.counters.looks_refused, 1);
	looks(STRANGER, token, 1000);
	assert_true(told.ok);
	/* whoever does not ask again is forgotten */
	whole_pass_ms(&w, 17000);
	looks_chores(&w.front);
	assert_int_equal(looks_count(&w.front), LOOKS_OF_ONE + 1);
	whole_pass_ms(&w, 2000);
	looks_chores(&w.front);
	assert_int_equal(looks_count(&w.front), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_cannot_be_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reach, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places_of_owners, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_jobs_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_looks, setup, teardown),
	};
	int rc;

	missing = munged_start(&munged);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (!missing)
		munged_stop(&munged);
	return rc;
}
