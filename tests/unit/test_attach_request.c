/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Who wants to attach to a job: where this agent asks, and what a client reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/asks.h"
#include "tests/lib/logged.h"
#include "user/pack.h"

#define JOB	 "here-0f-1"
#define USER	 1000
#define STRANGER 1001

static struct whole w;

/* The question that the guest party got, which the test plays. */
static struct {
	unsigned times;
	struct peer_request request;
	struct peer_answer answer;
} guest;

static int on_attach(void *arg, const struct peer_request *r, uint64_t ticket,
		     struct peer_answer *answer)
{
	(void)arg;
	if (!r->attach.hops)
		return home_on_attach(w.home, r, ticket, answer);
	guest.times++;
	guest.request = *r;
	*answer = guest.answer;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&guest, 0, sizeof(guest));
	guest.answer = (struct peer_answer){.ok = true,
					    .attach = {.node = "here",
						       .job = JOB,
						       .address = "10.0.0.1",
						       .port = 7702,
						       .ticket = "0123456789abcdef0123456789abcdef",
						       .key = {1, 2, 3}}};
	if (whole_new(&w, ":memory:"))
		return -1;
	peers_serve(&w.peers, PEER_ATTACH, on_attach, NULL);
	return logged_begin(&w.log);
}

static int teardown(void **state)
{
	(void)state;
	logged_end();
	whole_free(&w);
	return 0;
}

static int attaches(uid_t uid, const char *job)
{
	return ASKS(&w, uid, .op = "attach", .job = job);
}

static void reads_unknown(int fd, const char *job)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "no job of yours named %s was submitted or ran at node here; `iocom jobs --all` "
		 "lists them",
		 job);
	reads_error(fd, text);
	assert_null(w.front.attaches);
}

/* A job of this node needs no ticket: its client comes through the local socket. */
static void test_here(void **state)
{
	json_t *answer;

	(void)state;
	submitted(&w, JOB, USER, "here");
	answer = reads_json(attaches(USER, JOB));
	assert_string_equal(json_string_value(json_object_get(answer, "node")), "here");
	assert_string_equal(json_string_value(json_object_get(answer, "address")), "");
	assert_null(json_object_get(answer, "key"));
	assert_null(json_object_get(answer, "ticket"));
	json_decref(answer);
	assert_int_equal(guest.times, 0);
	assert_null(w.front.attaches);
}

static void test_not_theirs(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "there");
	reads_unknown(attaches(STRANGER, JOB), JOB);
	reads_error(attaches(STRANGER, "last"), "no job of yours was submitted at node here");
	reads_unknown(attaches(USER, "here-0f-9"), "here-0f-9"); /* its home would be this node */
	reads_unknown(attaches(USER, "nowhere-0f-9"), "nowhere-0f-9");
	reads_unknown(attaches(USER, "nonsense"), "nonsense");
	reads_unknown(attaches(USER, "--"), "--");
	reads_error(ASKS(&w, USER, .op = "attach"), "the request names no \"job\"");
	assert_int_equal(guest.times, 0);
}

/* A job of this home at another node, and one of another home: that node is asked. */
static void test_elsewhere(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "there");
	/* This agent has no network. */
	reads_error(attaches(USER, JOB),
		    "this agent serves its own machine only, and node there is another");
	reads_error(attaches(USER, "there-0f-1"),
		    "this agent serves its own machine only, and node there is another");
	submitted(&w, "here-0f-2", USER, "gone");
	reads_error(attaches(USER, "here-0f-2"),
		    "node gone, where job here-0f-2 was placed, is silent");
	assert_null(w.front.attaches);
}

/* --- home, which another node asks --- */

static int asked(const char *job, uid_t uid, struct peer_answer *answer)
{
	static uint64_t id;
	struct peer_request r = {.type = PEER_ATTACH, .attach = {.uid = uid}};
	msgpack_sbuffer body;
	msgpack_unpacked map;
	int rc;

	snprintf(r.job, sizeof(r.job), "%s", job);
	msgpack_sbuffer_init(&body);
	rc = shows(&w.peers, "there", ++id, &r, &body);
	if (!rc && body.size) { /* a later answer goes over the network, which is not here */
		assert_int_equal(unpack_map(&map, body.data, body.size), 0);
		assert_int_equal(peer_answer_unpack(answer, PEER_ATTACH, &map.data), 0);
		msgpack_unpacked_destroy(&map);
	}
	msgpack_sbuffer_destroy(&body);
	return rc;
}

static void test_home_refuses(void **state)
{
	static const char none[] = "no job of yours named here-0f-1 was submitted at node here";
	struct peer_answer answer = {0};

	(void)state;
	assert_int_equal(asked(JOB, USER, &answer), 0);
	assert_false(answer.ok);
	assert_string_equal(answer.text, none);
	submitted(&w, JOB, USER, "here");
	assert_int_equal(asked(JOB, STRANGER, &answer), 0);
	assert_string_equal(answer.text, none);
	submitted(&w, "here-0f-2", USER, "gone");
	assert_int_equal(asked("here-0f-2", USER, &answer), 0);
	assert_string_equal(answer.text, "node gone, where job here-0f-2 was placed, is silent");
	assert_int_equal(guest.times, 0);
}

/* Home passes the question on to the node where the last attempt is, here itself. */
static void test_home_forwards(void **state)
{
	struct peer_answer answer = {0};

	(void)state;
	submitted(&w, JOB, USER, "here");
	(void)asked(JOB, USER, &answer);
	assert_int_equal(guest.times, 1);
	assert_string_equal(guest.request.job, JOB);
	assert_int_equal(guest.request.attach.uid, USER);
	assert_int_equal(guest.request.attach.hops, 1);
	(void)asked(JOB, 0, &answer); /* root */
	assert_int_equal(guest.times, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_here),	 TEST(test_not_theirs),	   TEST(test_elsewhere),
		TEST(test_home_refuses), TEST(test_home_forwards),
	};

	return cmocka_run_group_tests_name("attach_request", tests, NULL, NULL);
}
