/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A submission that brings the job's spec: at home the job begins with the answer, on the same
 * connection, and the journal has all of it in one commit before anybody hears of it.
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
#include <sys/socket.h>
#include <unistd.h>

#include "agent/guest/guest_own.h"
#include "agent/jobs/journal_sql.h"
#include "balancer/view/placement.h"
#include "tests/lib/asks.h"
#include "tests/lib/logged.h"
#include "user/frame.h"
#include "user/pack.h"
#include "user/spec.h"

#define USER 1000

static struct whole w;

/* The supervisor of the played launcher: what it was given. */
static struct {
	unsigned started;
	unsigned commits; /* before it */
	unsigned rows;	  /* of both tables that the journal had by then */
	int stream, shim; /* the shim's end of the leash */
	struct spec spec;
} played;

static unsigned commits;

static int count_commit(void *arg)
{
	(void)arg;
	commits++;
	return 0;
}

static unsigned count(const char *sql)
{
	sqlite3_stmt *st = NULL;
	unsigned n = 0;

	assert_int_equal(sqlite3_prepare_v2(w.journal->file.db, sql, -1, &st, NULL), SQLITE_OK);
	if (sqlite3_step(st) == SQLITE_ROW)
		n = (unsigned)sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return n;
}

static int play_shim(const struct launch_order *order, int stream, pid_t *shim, int *leash,
		     struct iocom_err *err)
{
	int ends[2];

	played.started++;
	played.commits = commits;
	played.rows = sqlite3_get_autocommit(w.journal->file.db)
			      ? count("SELECT count(*) FROM home JOIN target USING(job) WHERE "
				      "home.node='here'")
			      : 0;
	played.stream = stream;
	assert_int_equal(spec_unpack(&played.spec, order->spec, order->spec_length, err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	played.shim = ends[1];
	*leash = ends[0];
	*shim = 1;
	return 0;
}

static int setup(void **state)
{
	static struct launcher launcher;

	(void)state;
	if (whole_new(&w, ":memory:") || logged_begin(&w.log))
		return -1;
	memset(&played, 0, sizeof(played));
	played.stream = played.shim = -1;
	launcher = *w.guest->launcher;
	launcher.shim = play_shim;
	w.guest->launcher = &launcher;
	sqlite3_commit_hook(w.journal->file.db, count_commit, NULL);
	commits = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	spec_free(&played.spec);
	if (played.stream >= 0)
		close(played.stream);
	if (played.shim >= 0)
		close(played.shim);
	logged_end();
	whole_free(&w);
	return 0;
}

static void pack_spec(void **packed, size_t *length, bool detach)
{
	char *argv[] = {"work", "hard", NULL}, *env[] = {"A=b", NULL};
	const struct spec spec = {
		.job = SPEC_UNPLACED,
		.node = SPEC_UNPLACED,
		.executable = "/bin/work",
		.cwd = "/",
		.argv = argv,
		.env = env,
		.detach = detach,
	};

	assert_int_equal(spec_pack(&spec, packed, length, NULL), 0);
}

/* Asks on FD for a place at NODE ("": any) with SPEC, if it is not NULL. */
static void submits(int fd, const char *node, const void *spec, size_t length)
{
	struct placement_ask ask;
	msgpack_sbuffer request;

	placement_ask_init(&ask);
	strcpy(ask.node, node);
	strcpy(ask.cwd, "/");
	strcpy(ask.executable, "/bin/work");
	strcpy(ask.command, "work hard");
	ask.run = true;
	ask.spec = spec;
	ask.spec_length = (uint32_t)length;
	placement_ask_pack(&ask, &request);
	assert_int_equal(whole_ask(fd, request.data, request.size), 0);
	msgpack_sbuffer_destroy(&request);
	whole_pass_ms(&w, 1);
}

static int submits_spec(const char *node)
{
	int fd = whole_client(&w, USER);
	size_t length;
	void *packed;

	assert_true(fd >= 0);
	pack_spec(&packed, &length, false);
	submits(fd, node, packed, length);
	free(packed);
	return fd;
}

static const char *text_of(const json_t *answer, const char *key)
{
	const char *text = json_string_value(json_object_get(answer, key));

	return text ? text : "";
}

/* --- tests ----------------------------------------------------------------------------- */

static void test_begins(void **state)
{
	json_t *answer;
	int fd;

	(void)state;
	fd = submits_spec("here");
	assert_int_equal(played.started, 1);
	assert_int_equal(played.commits, 1);
	assert_int_equal(played.rows, 1);
	assert_string_equal(played.spec.argv[1], "hard");
	assert_string_equal(played.spec.env[0], "A=b");
	assert_int_equal(clients_count(w.front.clients), 0); /* its connection is the job's */
	assert_int_equal(send(played.stream, "job", 3, MSG_NOSIGNAL), 3);
	close(played.stream);
	played.stream = -1;
	{
		char text[4096];
		ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
		uint32_t length = (uint32_t)(uint8_t)text[6] << 8 | (uint8_t)text[7];

		assert_int_equal(n, FRAME_HEADER + length + 3);
		assert_memory_equal(text + FRAME_HEADER + length, "job", 3);
		assert_int_equal(text[3], FRAME_JSON);
		answer = json_loadb(text + FRAME_HEADER, length, 0, NULL);
	}
	assert_non_null(answer);
	assert_true(json_is_true(json_object_get(answer, "begun")));
	assert_string_equal(text_of(answer, "job"), played.spec.job);
	assert_string_equal(text_of(answer, "node"), "here");
	assert_string_equal(played.spec.node, "here");
	assert_string_equal(text_of(answer, "nonce"), played.spec.nonce);
	assert_null(json_object_get(answer, "plan")); /* nobody asked for it */
	assert_int_equal(count("SELECT count(*) FROM home WHERE place LIKE '%\"plan\"%'"), 1);
	json_decref(answer);
	close(fd);
}

/* A request of an older client has no spec: its answer is the whole one, and nothing begins. */
static void test_without_spec(void **state)
{
	int fd = whole_client(&w, USER);
	json_t *answer;

	(void)state;
	submits(fd, "here", NULL, 0);
	answer = reads_json(fd);
	assert_null(json_object_get(answer, "begun"));
	assert_non_null(json_object_get(answer, "plan"));
	assert_int_equal(strlen(text_of(answer, "nonce")), 32);
	assert_int_equal(played.started, 0);
	json_decref(answer);
}

/* A spec does not wait for a later request that came without. */
static void test_spec_is_of_one_request(void **state)
{
	int fd = submits_spec("nowhere");
	char text[8192];
	uint8_t type;

	(void)state;
	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	assert_int_equal(type, FRAME_ERROR);
	assert_non_null(strstr(text, "node 'nowhere' is unknown here"));
	submits(fd, "here", NULL, 0);
	json_decref(reads_json(fd));
	assert_int_equal(played.started, 0);
}

static void test_bad_spec(void **state)
{
	static const char junk[] = "\xc1 no map";
	static char longer[PLACEMENT_SPEC_MAX + 1];
	int fd = whole_client(&w, USER);
	char text[512];
	uint8_t type;

	(void)state;
	submits(fd, "here", longer, sizeof(longer));
	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	assert_string_equal(text, "\"spec\" is not a job's spec of 1 to 65536 bytes");
	submits(fd, "here", junk, sizeof(junk)); /* the connection is not lost */
	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	assert_int_equal(type, FRAME_ERROR);
	assert_string_equal(text, "the job's spec is no MessagePack map");
	assert_int_equal(logged("warning: refused a local job of uid 1000: the job's spec is no"),
			 1);
	assert_int_equal(played.started, 0);
	assert_true(sqlite3_get_autocommit(w.journal->file.db));
	close(fd);
	fd = submits_spec("here");
	assert_int_equal(played.started, 1);
	close(fd);
}

static int leaving;

static void client_leaves(void *arg, const struct home_decision *decision)
{
	(void)arg;
	(void)decision;
	if (leaving >= 0)
		close(leaving);
	leaving = -1;
}

/* The client dies after the decision and before the start: nothing begins, and that is known. */
static void test_client_leaves(void **state)
{
	static struct home_watch watch = {.decided = client_leaves};
	size_t length;
	void *packed;

	(void)state;
	home_watch(w.home, &watch);
	leaving = whole_client(&w, USER);
	pack_spec(&packed, &length, false);
	submits(leaving, "here", packed, length);
	free(packed);
	assert_int_equal(leaving, -1);
	assert_int_equal(played.started, 0);
	assert_int_equal(logged("left before its job began"), 1);
	whole_pass_ms(&w, 200);
	assert_int_equal(count("SELECT count(*) FROM home WHERE state='failed'"), 1);
	assert_int_equal(count("SELECT count(*) FROM target WHERE state='failed'"), 1);
	assert_int_equal(clients_count(w.front.clients), 0);
}

/* What the journal does not take does not begin, whichever of its parts fails. */
static void test_journal_fails(void **state)
{
	static const char *const break_it[] = {"ALTER TABLE target RENAME TO away",
					       "ALTER TABLE home RENAME TO away2"};
	char text[512];
	uint8_t type;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int fd;

		assert_int_equal(sqlite3_exec(w.journal->file.db, break_it[i], NULL, NULL, NULL),
				 SQLITE_OK);
		fd = submits_spec("here");
		assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
		assert_int_equal(type, FRAME_ERROR);
		assert_non_null(strstr(text, "job journal"));
		assert_int_equal(played.started, 0);
		assert_true(sqlite3_get_autocommit(w.journal->file.db));
		close(fd);
		whole_pass_ms(&w, 1);
	}
}

static int refuse_commit(void *arg)
{
	(void)arg;
	return 1;
}

/* The one commit fails: the client hears only of that, and the journal has nothing. */
static void test_commit_fails(void **state)
{
	char text[512];
	uint8_t type;
	int fd;

	(void)state;
	sqlite3_commit_hook(w.journal->file.db, refuse_commit, NULL);
	fd = submits_spec("here");
	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	assert_int_equal(type, FRAME_ERROR);
	assert_non_null(strstr(text, "job journal"));
	assert_int_equal(played.started, 0);
	sqlite3_commit_hook(w.journal->file.db, NULL, NULL);
	assert_true(sqlite3_get_autocommit(w.journal->file.db));
	assert_int_equal(count("SELECT count(*) FROM home") + count("SELECT count(*) FROM target"),
			 0);
	close(fd);
}

static void begin_no_sync(void *arg, bool repair)
{
	(void)arg;
	(void)repair;
}

static unsigned refusals;

static int refuse_once(void *arg)
{
	(void)arg;
	return refusals++ == 0;
}

/*
 * An answer that waits for the disk comes after the request's transaction: a job that this one did
 * not bring into the journal does not begin later.
 */
static void test_named_commit_fails(void **state)
{
	int fd = whole_client(&w, USER);
	struct placement_ask ask;
	msgpack_sbuffer request;
	char text[512] = "";
	size_t length;
	uint8_t type;
	void *packed;

	(void)state;
	journal_set_disk(w.journal, &(struct journal_disk){.begin = begin_no_sync});
	pack_spec(&packed, &length, false);
	placement_ask_init(&ask);
	strcpy(ask.node, "here");
	strcpy(ask.cwd, "/");
	strcpy(ask.executable, "/bin/work");
	strcpy(ask.command, "work hard");
	ask.run = ask.named = true;
	ask.spec = packed;
	ask.spec_length = (uint32_t)length;
	placement_ask_pack(&ask, &request);
	refusals = 0;
	sqlite3_commit_hook(w.journal->file.db, refuse_once, NULL);
	assert_int_equal(whole_ask(fd, request.data, request.size), 0);
	whole_pass_ms(&w, 1);
	journal_synced(w.journal, 0);
	whole_pass_ms(&w, 1);
	journal_set_disk(w.journal, NULL);
	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	assert_int_equal(type, FRAME_ERROR);
	assert_non_null(strstr(text, "job journal"));
	assert_int_equal(played.started, 0);
	msgpack_sbuffer_destroy(&request);
	free(packed);
	close(fd);
}

/* Of two specs the one would be checked and the other begun. */
static void test_two_specs(void **state)
{
	int fd = whole_client(&w, USER);
	msgpack_sbuffer map;
	msgpack_packer pk;
	size_t length;
	void *packed;
	uint8_t type;
	char text[8192];

	(void)state;
	pack_spec(&packed, &length, false);
	for (int nil = 0; nil < 2; nil++) {
		pack_begin(&pk, &map, 7);
		pack_str(&pk, "op", "place");
		pack_bool(&pk, "run", true);
		pack_str(&pk, "cwd", "/");
		pack_str(&pk, "executable", "/bin/work");
		pack_str(&pk, "command", "work");
		if (nil) {
			msgpack_pack_str_with_body(&pk, "spec", 4);
			msgpack_pack_nil(&pk);
		} else {
			pack_bin(&pk, "spec", packed, length);
		}
		pack_bin(&pk, "spec", packed, length);
		assert_int_equal(whole_ask(fd, map.data, map.size), 0);
		msgpack_sbuffer_destroy(&map);
		whole_pass_ms(&w, 1);
		assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
		assert_int_equal(type, FRAME_ERROR);
		assert_string_equal(text, nil ? "\"spec\" is not a job's spec of 1 to 65536 bytes"
					      : "\"spec\" is given twice");
	}
	assert_int_equal(played.started, 0);
	assert_int_equal(count("SELECT count(*) FROM home"), 0);
	free(packed);
	close(fd);
}

/* A job that no node takes is known as failed, in spite of the open transaction. */
static void test_refused(void **state)
{
	char text[1024];
	uint8_t type;
	int fd;

	(void)state;
	w.set.user_jobs_max = 1;
	close(submits_spec("here"));
	whole_pass_ms(&w, 1);
	fd = submits_spec("here");
	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	assert_int_equal(type, FRAME_ERROR);
	assert_non_null(strstr(text, "user_jobs_max"));
	assert_int_equal(played.started, 1);
	assert_true(sqlite3_get_autocommit(w.journal->file.db));
	assert_int_equal(count("SELECT count(*) FROM home WHERE state='failed'"), 1);
	close(fd);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_begins),
		CASE(test_without_spec),
		CASE(test_spec_is_of_one_request),
		CASE(test_bad_spec),
		CASE(test_client_leaves),
		CASE(test_journal_fails),
		CASE(test_commit_fails),
		CASE(test_named_commit_fails),
		CASE(test_two_specs),
		CASE(test_refused),
	};

	return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
