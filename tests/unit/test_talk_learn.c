/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a class of parallel jobs learns of who sends how much to whom: from the reports of parts to
 * the profile, over runs at several placements, and from nodes that lie.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/home/home_own.h"
#include "agent/home/talk_learn.h"
#include "balancer/profile/profile_talk.h"
#include "tests/unit/placement_fixture.h"
#include "user/clock.h"
#include "user/gang_name.h"

#define USER	   1000
#define GANG	   "n1-0-5"
#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6)

static struct settings set = {.name = "n1", .policy = "nlb", .munge_socket = "/m", .lease_s = 30};
static struct logger log_ = {.level = LOG_L_ERROR};
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set};
static struct matrix matrix;
static struct skews skews;
static struct journal *journal;
static struct profile_store *profiles;
static struct home *home;
static struct iocom_err err;
static char dir[] = "/tmp/iocom-test-talk-learn-XXXXXX", path[80], profile_path[80];

static void own_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = fixture_vector("n1", 0);
}

static bool mute(void *arg)
{
	(void)arg;
	return false;
}

static int up(void **state)
{
	const struct home_config config = {
		.base = &base,
		.profiles = NULL,
		.matrix = &matrix,
		.skews = &skews,
		.ports = {.own_vector = own_vector, .mute = mute},
	};
	struct home_config c = config;
	const struct profile run = {.cpu_ms = 2000, .wall_ms = 2000};
	struct placement p;

	(void)state;
	unlink(path);
	unlink(profile_path);
	counters = (struct counters){0};
	if (loop_new_virtual(&base.loop, 3600 * CLOCK_NS_PER_S, clock_real_ns(), NULL) ||
	    journal_open(&journal, path, &err) || profile_open(&profiles, profile_path, &err) ||
	    profile_learn(profiles, USER, "ring@3", &run, &err))
		return -1;
	c.journal = journal;
	c.profiles = profiles;
	placement_init(&p);
	fixture_nodes(&p, &matrix, 3, 1);
	placement_fini(&p);
	return home_new(&home, &c, &err);
}

static int down(void **state)
{
	(void)state;
	home_free(home);
	matrix_fini(&matrix);
	journal_close(journal);
	profile_close(profiles);
	loop_free(base.loop);
	unlink(path);
	unlink(profile_path);
	return 0;
}

/* --- parts and their reports -------------------------------------------------------------- */

struct said {
	struct exchange x;
	struct exchange_row rows[16];
};

static void says(struct said *s, int32_t rank, uint64_t connection, bool second, uint64_t sent,
		 uint64_t received)
{
	s->x.rows = s->rows;
	s->rows[s->x.nrows++] = (struct exchange_row){.connection = connection,
						      .rank = rank,
						      .second = second,
						      .sum = {sent, received, 4, 4}};
}

/* Part K runs at node n(K + 1). */
static void begin_part(uint32_t k)
{
	char job[SPEC_JOB_MAX], node[8];
	const struct journal_job row = {.job = job,
					.uid = USER,
					.class_name = "ring",
					.command = "c",
					.policy = "p",
					.node = "",
					.submit_ns = loop_real_ns(base.loop)};

	assert_int_equal(gang_part_name(GANG, k, job), 0);
	snprintf(node, sizeof(node), "n%u", k + 1);
	assert_int_equal(journal_submit(journal, &row, &err), 0);
	assert_int_equal(journal_placed(journal, job, node, "{}", NULL, &err), 0);
}

/* Node FROM reports of part K what SAID holds, or the LENGTH bytes at TALK. */
static bool report(const char *from, uint32_t k, const char *state, uint64_t value,
		   struct said *said)
{
	struct job_report r = {.value = value, .wall_ms = 1000, .cpu_ms = 100};
	struct peer_request request = {.type = PEER_DONE, .done = {&r, 1}};
	struct peer_answer answer = {.ok = false};
	void *packed = NULL;

	if (!strcmp(state, "running"))
		request.type = PEER_PROGRESS;
	assert_int_equal(gang_part_name(GANG, k, r.job), 0);
	strcpy(request.job, r.job);
	strcpy(request.from, from);
	strcpy(r.state, state);
	r.end_ns = loop_real_ns(base.loop) + CLOCK_NS_PER_S;
	if (said)
		assert_int_equal(exchange_pack(&said->x, &packed, &r.talk_length), 0);
	r.talk = packed;
	loop_advance(base.loop, CLOCK_NS_PER_S);
	if (request.type == PEER_PROGRESS)
		assert_int_equal(home_on_progress(home, &request, 1, &answer), 0);
	else
		assert_int_equal(home_on_done(home, &request, 1, &answer), 0);
	free(packed);
	/* As agent/gang does when all parts have ended; before, it finds that they have not. */
	if (answer.ok && request.type == PEER_DONE)
		talk_learn(home, USER, "ring", r.job);
	return answer.ok;
}

/* A ring of three parts, a rank each: rank r sends 1000 (r + 1) to the next and gets 10 back. */
static void begin_ring(struct said parts[3])
{
	for (uint32_t k = 0; k < 3; k++)
		begin_part(k);
	memset(parts, 0, 3 * sizeof(parts[0]));
	for (int r = 0; r < 3; r++) {
		says(&parts[r], r, 100 + (uint64_t)r, false, 1000 * ((uint64_t)r + 1), 10);
		says(&parts[(r + 1) % 3], (r + 1) % 3, 100 + (uint64_t)r, true, 10,
		     1000 * ((uint64_t)r + 1));
	}
}

static double bytes_of(const struct profile_talk *t, unsigned from, unsigned to)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->pairs[i].from == from && t->pairs[i].to == to)
			return t->pairs[i].bytes;
	return 0;
}

static void test_last_part_teaches(void **state)
{
	struct said parts[3];
	struct profile_talk t;

	(void)state;
	begin_ring(parts);
	assert_true(report("n1", 0, "running", 0, &parts[0]));
	assert_true(report("n1", 0, "exited", 0, &parts[0]));
	assert_true(report("n3", 2, "exited", 0, &parts[2]));
	assert_int_equal(profile_talk_get(profiles, USER, "ring@3", &t, &err), -ENOENT);
	/* Another node may not speak for the last one. */
	assert_false(report("n3", 1, "exited", 0, &parts[0]));
	assert_int_equal(profile_talk_get(profiles, USER, "ring@3", &t, &err), -ENOENT);
	assert_true(report("n2", 1, "exited", 0, &parts[1]));
	assert_int_equal(profile_talk_get(profiles, USER, "ring@3", &t, &err), 0);
	assert_int_equal(t.tasks, 3);
	assert_int_equal(t.runs, 1);
	assert_int_equal(t.n, 6);
	NEAR(bytes_of(&t, 0, 1), 1000);
	NEAR(bytes_of(&t, 2, 0), 3000);
	NEAR(bytes_of(&t, 0, 2), 10);
	/* Rank 2: 2000 + 10 with 1, 3000 + 10 with 0, 4 messages each way. */
	NEAR(profile_talk_com_ms(&t, 2, 1, 0.5), 5020 / 1e3 + 16 * 0.5);
	profile_talk_fini(&t);
	assert_int_equal(counters.runs_not_learned, 0);
	/* It goes with its class. */
	assert_int_equal(profile_forget(profiles, USER, "ring@3", &err), 0);
	assert_int_equal(profile_talk_get(profiles, USER, "ring@3", &t, &err), -ENOENT);
}

static void test_failed_gang_teaches_nothing(void **state)
{
	struct said parts[3];
	struct profile_talk t;

	(void)state;
	begin_ring(parts);
	assert_true(report("n1", 0, "exited", 1, &parts[0]));
	assert_true(report("n2", 1, "exited", 0, &parts[1]));
	assert_true(report("n3", 2, "exited", 0, &parts[2]));
	assert_int_equal(profile_talk_get(profiles, USER, "ring@3", &t, &err), -ENOENT);
}

/* Bytes that are no report: kept, since nobody looks into them, but nothing is made of them. */
static void test_garbage(void **state)
{
	static const uint8_t garbage[] = {9, 9, 9};
	struct job_report r = {.state = "exited", .talk = garbage, .talk_length = 3, .end_ns = 1};
	struct peer_request request = {.type = PEER_DONE, .from = "n1", .done = {&r, 1}};
	struct peer_answer answer;
	struct profile_talk t;

	(void)state;
	begin_part(0);
	assert_int_equal(gang_part_name(GANG, 0, r.job), 0);
	strcpy(request.job, r.job);
	assert_int_equal(home_on_done(home, &request, 1, &answer), 0);
	assert_int_equal(profile_talk_get(profiles, USER, "ring@3", &t, &err), -ENOENT);
}

/* --- runs at other placements ------------------------------------------------------------- */

/* Joins a ring of eight, A_NODE ranks a node, that talks by shared memory inside. */
static void ring_at(struct join *join, uint32_t a_node, uint64_t bytes)
{
	static struct said parts[8];
	struct join_part list[8];
	int32_t part[8];

	memset(parts, 0, sizeof(parts));
	for (uint32_t r = 0; r < 8; r++) {
		uint32_t next = (r + 1) % 8;

		if (r / a_node == next / a_node)
			continue;
		says(&parts[r / a_node], (int32_t)r, 100 + r, false, bytes, 10);
		says(&parts[next / a_node], (int32_t)next, 100 + r, true, 10, bytes);
	}
	for (uint32_t k = 0; k < 8 / a_node; k++)
		list[k] = (struct join_part){&parts[k].x};
	assert_int_equal(join_parts(join, list, 8 / a_node, 8, NULL, 125), 0);
	for (uint32_t r = 0; r < 8; r++) /* as the plan says */
		join->ranks[r].part = part[r] = (int32_t)(r / a_node);
	assert_int_equal(pattern_find(&join->pattern, 8, part, join->cells, join->ncells), 0);
}

static void test_other_placements(void **state)
{
	struct profile_talk first, second, third;
	struct join join;

	(void)state;
	/* Two nodes of four: only 3-4 and 7-0 are seen; the others are concluded from the ring. */
	ring_at(&join, 4, 1000);
	assert_int_equal(join.pattern.kind, PATTERN_RING);
	assert_int_equal(profile_talk_merge(&first, &join, NULL), 0);
	assert_int_equal(first.n, 16);
	for (unsigned r = 0; r < 8; r++) {
		NEAR(bytes_of(&first, r, (r + 1) % 8), 1000);
		NEAR(bytes_of(&first, (r + 1) % 8, r), 10);
	}
	join_fini(&join);
	/* Four nodes of two: 1-2, 3-4, 5-6, 7-0 send twice as much: half-way where it was seen. */
	ring_at(&join, 2, 2000);
	assert_int_equal(profile_talk_merge(&second, &join, &first), 0);
	assert_int_equal(second.runs, 2);
	NEAR(bytes_of(&second, 3, 4), 1500);
	NEAR(bytes_of(&second, 1, 2), 2000);
	NEAR(bytes_of(&second, 0, 1), (1500 + 1500 + 2000 + 2000) / 4.0);
	join_fini(&join);
	/* All at one node: nothing new is seen, and nothing is forgotten. */
	ring_at(&join, 8, 5000);
	assert_int_equal(profile_talk_merge(&third, &join, &second), 0);
	NEAR(bytes_of(&third, 3, 4), 1500);
	join_fini(&join);
	profile_talk_fini(&first);
	profile_talk_fini(&second);
	profile_talk_fini(&third);
}

static void test_names_of_classes(void **state)
{
	char name[PROFILE_CLASS_MAX], longest[PROFILE_CLASS_MAX];

	(void)state;
	assert_int_equal(profile_talk_class("md", 16, name), 0);
	assert_string_equal(name, "md@16");
	assert_int_equal(profile_talk_class("md@16", 16, name), 0);
	assert_string_equal(name, "md@16");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(profile_talk_class(longest, 16, name), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last_part_teaches, up, down),
		cmocka_unit_test_setup_teardown(test_failed_gang_teaches_nothing, up, down),
		cmocka_unit_test_setup_teardown(test_garbage, up, down),
		cmocka_unit_test(test_other_placements),
		cmocka_unit_test(test_names_of_classes),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/journal.db", dir);
	snprintf(profile_path, sizeof(profile_path), "%s/profile.db", dir);
	failed = cmocka_run_group_tests_name("talk_learn", tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
