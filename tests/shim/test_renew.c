/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shim that renews its job's lease itself: the test plays the home node, and others that claim
 * to be it. No agent listens to the shim.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/frame.h"
#include "user/leash_wire.h"
#include "user/renewal.h"
#include "tests/lib/stage.h"

#define SH(script) .argv = {"/bin/sh", "-c", script, NULL}
#define LEASE_MS   1200
#define WAIT_MS	   10000

static const uint8_t secret[RENEWAL_SECRET] = "as home made it, of this attempt";
static const uint8_t another[RENEWAL_SECRET] = "as home made it, of another one.";

struct home {
	int listener;
	uint16_t port;
	int connection; /* connection of the question */
	struct renewal_ask asked;
};

static void home_up(struct home *home)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(sa);

	*home = (struct home){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	assert_int_equal(bind(home->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(home->listener, 16), 0);
	getsockname(home->listener, (struct sockaddr *)&sa, &length);
	home->port = ntohs(sa.sin_port);
}

/* Waits for the next question. */
static void home_hear(struct home *home)
{
	struct pollfd p = {.fd = home->listener, .events = POLLIN};
	struct iocom_err err = {0};
	struct frame frame;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	home->connection = accept4(home->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(frame_read(home->connection, &frame, 4096, &err), 0);
	assert_int_equal(frame.type, FRAME_RENEW);
	assert_int_equal(renewal_ask_unpack(&home->asked, frame.payload, frame.length), 0);
	frame_free(&frame);
}

static void say(const struct home *home, uint8_t type, const void *payload, uint32_t length)
{
	assert_int_equal(frame_write(home->connection, type, payload, length), 0);
	close(home->connection);
}

static void answer(const struct home *home, const uint8_t *with, uint64_t number, bool renewed)
{
	uint8_t payload[RENEWAL_ANSWER];

	renewal_answer_pack(payload, with, home->asked.job, number, renewed);
	say(home, FRAME_RENEWED, payload, sizeof(payload));
}

static struct job begin(struct stage *stage, const struct home *home, const char *script)
{
	struct want want = {
		.argv = {"/bin/sh", "-c", script, NULL},
		.lease_ms = LEASE_MS,
		.renew = {.secret = secret,
			  .address = "127.0.0.1",
			  .port = home->port,
			  .lease_ms = LEASE_MS},
	};
	struct launch_event event;
	struct job job = stage_start(stage, &want);

	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	assert_true(event.renews);
	return job;
}

/* Returns how the job ended. RENEWED counts how often the shim told its agent of a later end. */
static struct launch_event finish(struct stage *stage, struct job *job, int *renewed)
{
	struct launch_event event;
	uint64_t until_ms = 0;

	*renewed = 0;
	for (;;) {
		assert_int_equal(stage_event(job->leash, &event), 0);
		if (event.type == LAUNCH_EXITED)
			break;
		*renewed += event.lease_until_ms > until_ms;
		until_ms = event.lease_until_ms;
	}
	close(job->client);
	close(job->leash);
	assert_int_equal(stage_reap(job), 0);
	assert_false(stage_group_exists(stage, job->name));
	launch_forget(stage->jobs, stage->run, job->name);
	return event;
}

static void home_down(struct home *home)
{
	close(home->listener);
}

static void test_renewed_by_home(void **state)
{
	struct stage *stage = *state;
	struct launch_event end;
	struct home home;
	struct job job;
	uint64_t before = 0;
	int renewed, n;

	home_up(&home);
	job = begin(stage, &home, "sleep 2.4; exit 6");
	/* As often as a lease needs it, for two leases. */
	for (n = 0; n < 6; n++) {
		home_hear(&home);
		assert_string_equal(home.asked.job, job.name);
		assert_true(renewal_ask_true(&home.asked, secret));
		assert_false(renewal_ask_true(&home.asked, another));
		assert_true(home.asked.number > before);
		before = home.asked.number;
		answer(&home, secret, before, true);
	}
	end = finish(stage, &job, &renewed);
	assert_int_equal(end.kind, 0);
	assert_int_equal(end.value, 6);
	assert_int_equal(renewed, n);
	home_down(&home);
}

static void test_agent_is_away(void **state)
{
	struct stage *stage = *state;
	struct launch_found found;
	struct home home;
	struct job job;
	int leash, renewed;

	home_up(&home);
	job = begin(stage, &home, "sleep 2.4; exit 7");
	close(job.leash);
	for (int n = 0; n < 6; n++) {
		home_hear(&home);
		answer(&home, secret, home.asked.number, true);
	}
	/* A new agent hears that the shim asks, and until when it may go on. */
	assert_int_equal(launch_outcome(stage->jobs, stage->run, job.name, &found), 0);
	leash = job.leash = found.leash;
	assert_true(leash >= 0);
	if (!found.started.pid)
		assert_int_equal(stage_event(leash, &found.started), 0);
	assert_true(found.started.renews);
	assert_true(found.started.lease_until_ms > clock_boot_ns() / CLOCK_NS_PER_MS);
	assert_int_equal(finish(stage, &job, &renewed).value, 7);
	home_down(&home);
}

/* The lease ends as if no answer had come. */
static void expect_expiry(struct stage *stage, struct job *job, uint64_t began_ms)
{
	int renewed;
	struct launch_event end = finish(stage, job, &renewed);

	assert_true(clock_boot_ns() / CLOCK_NS_PER_MS >= began_ms + LEASE_MS);
	assert_int_equal(renewed, 0);
	assert_int_equal(end.kind, 3);
	assert_int_equal(end.value, 255);
	assert_non_null(strstr(end.text, "lease ran out"));
}

enum lie { FORGED, ANOTHER_NUMBER, QUESTION_BACK, REFUSED, GARBAGE, HALF, SILENT, LIES };

static void lie(const struct home *home, enum lie how, bool renewed)
{
	uint8_t text[RENEWAL_ASK_MAX] = {0};
	size_t n;

	switch (how) {
	case FORGED:
		answer(home, another, home->asked.number, renewed);
		break;
	case ANOTHER_NUMBER: /* an old answer, or one for a later question: signed, but not for this
				one */
		answer(home, secret, home->asked.number + (renewed ? 1 : -1ull), renewed);
		break;
	case QUESTION_BACK:
		n = renewal_ask_pack(text, secret, home->asked.job, home->asked.number);
		say(home, FRAME_RENEW, text, (uint32_t)n);
		break;
	case REFUSED:
		say(home, FRAME_ERROR, "given up", 8);
		break;
	case GARBAGE:
		assert_true(write(home->connection, "HTTP/1.1 200 OK\r\n\r\n", 19) == 19);
		close(home->connection);
		break;
	case HALF:
		assert_int_equal(write(home->connection, "ic\2\15\0\0\0", 7), 7);
		break; /* the connection stays open */
	default:
		break;
	}
}

/* An answer that is not home's neither renews nor kills. */
static void test_lies(void **state)
{
	struct stage *stage = *state;
	struct home homes[LIES];
	struct job jobs[LIES];
	uint64_t began_ms[LIES];

	for (int how = 0; how < LIES; how++) {
		home_up(&homes[how]);
		began_ms[how] = clock_boot_ns() / CLOCK_NS_PER_MS;
		jobs[how] = begin(stage, &homes[how], "sleep 971");
	}
	/* The shim asks again, and gets the other lie. */
	for (int n = 0; n < 2; n++)
		for (int how = 0; how < LIES; how++) {
			home_hear(&homes[how]);
			lie(&homes[how], (enum lie)how, n == 0);
		}
	for (int how = 0; how < LIES; how++) {
		expect_expiry(stage, &jobs[how], began_ms[how]);
		home_down(&homes[how]);
	}
}

static void test_given_up_by_home(void **state)
{
	struct stage *stage = *state;
	struct launch_event end;
	struct home home;
	struct job job;
	int renewed;

	home_up(&home);
	job = begin(stage, &home, "trap '' TERM HUP; sleep 972");
	home_hear(&home);
	answer(&home, secret, home.asked.number, false);
	end = finish(stage, &job, &renewed);
	assert_int_equal(end.kind, 3);
	assert_non_null(strstr(end.text, "given it up"));
	home_down(&home);
}

/* Home is away for less than a lease: the shim asks repeatedly, and the job goes on. */
static void test_home_comes_back(void **state)
{
	struct stage *stage = *state;
	struct home home;
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct job job;
	int renewed, one = 1;

	home_up(&home);
	sa.sin_port = htons(home.port);
	close(home.listener);
	job = begin(stage, &home, "sleep 1.8; exit 8");
	usleep(LEASE_MS * 1000 / 2);
	home.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(home.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(home.listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(home.listener, 4), 0);
	home_hear(&home);
	assert_true(home.asked.number > 1);
	answer(&home, secret, home.asked.number, true);
	for (int n = 0; n < 2; n++) {
		home_hear(&home);
		answer(&home, secret, home.asked.number, true);
	}
	assert_int_equal(finish(stage, &job, &renewed).value, 8);
	home_down(&home);
}

static void test_home_is_gone(void **state)
{
	struct stage *stage = *state;
	uint64_t began_ms = clock_boot_ns() / CLOCK_NS_PER_MS;
	struct home home;
	struct job job;

	home_up(&home);
	home_down(&home); /* connections are refused; test_lies has a listener that never answers */
	job = begin(stage, &home, "sleep 973");
	expect_expiry(stage, &job, began_ms);
}

/* A home of an older build gives no secret; and the shim does not look up names. */
static void test_the_agents_way(void **state)
{
	static const struct launch_renew cases[] = {
		{0},
		{.secret = secret, .address = "localhost", .port = 1, .lease_ms = LEASE_MS},
	};
	struct stage *stage = *state;

	for (int i = 0; i < 2; i++) {
		struct want want = {SH("sleep 1.8; exit 9"), .lease_ms = LEASE_MS,
				    .renew = cases[i]};
		struct job job = stage_start(stage, &want);
		struct launch_event event;
		int renewed;

		assert_int_equal(stage_event(job.leash, &event), 0);
		assert_false(event.renews);
		assert_int_equal(launch_lease(job.leash, clock_boot_ns() / CLOCK_NS_PER_MS + 60000),
				 0);
		assert_int_equal(finish(stage, &job, &renewed).value, 9);
	}
}

static void test_memory(void **state)
{
	struct stage *stage = *state;
	struct launch_event end;
	struct home home;
	struct job job;
	int renewed;
	long kb;

	home_up(&home);
	job = begin(stage, &home, "sleep 974");
	home_hear(&home);
	answer(&home, secret, home.asked.number, true);
	home_hear(&home);
	kb = stage_private_kb(job.shim);
	printf("# | a shim that renews: %ld KB of its own\n", kb);
	assert_true(kb > 0 && (kb <= 2048 || getenv("IOCOM_SANITIZED")));
	answer(&home, secret, home.asked.number, false);
	end = finish(stage, &job, &renewed);
	assert_int_equal(end.kind, 3);
	home_down(&home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renewed_by_home),
		cmocka_unit_test(test_agent_is_away),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_given_up_by_home),
		cmocka_unit_test(test_home_comes_back),
		cmocka_unit_test(test_home_is_gone),
		cmocka_unit_test(test_the_agents_way),
		cmocka_unit_test(test_memory),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("renew", tests, stage_setup, stage_teardown);
}
