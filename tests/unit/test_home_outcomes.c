/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Home from the request to the report: what was expected, what the job took, and what the next
 * decision expects.  The guests are played: they take every job, and report what a test says.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "agent/home/home_own.h"
#include "agent/jobs/job_report.h"
#include "agent/jobs/leases.h"
#include "tests/unit/placement_fixture.h"
#include "user/clock.h"
#include "user/pack.h"

#define USER	1000
#define NEAR_MS 3.0 /* reports have whole ms, and the clock moves by 1 ms when one is submitted */

static struct settings set = {.name = "n1", .policy = "nlb", .munge_socket = "/m", .lease_s = 30};
static struct logger log_ = {.level = LOG_L_ERROR};
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set};
static struct matrix matrix;
static struct skews skews;
static struct journal *journal;
static struct profile_store *profiles;
static struct home *home;
static struct prediction list[PREDICTIONS_MAX];
static struct iocom_err err;
static char dir[] = "/tmp/iocom-test-home-outcomes-XXXXXX", path[80], profile_path[80];

/* The last job. */
static struct {
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
	struct rules_expectation expected;
	struct need need;
	double doubt; /* of n2, as the answer has it; 0 or 1: none */
	char why[400];
} last;

static double own_load = 1;

static void own_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = fixture_vector("n1", own_load);
}

static bool mute(void *arg)
{
	(void)arg;
	return false;
}

static int ask_guest(void *arg, const char *node, const char *address, uint16_t port,
		     const struct peer_request *request, peers_answered answered, void *place,
		     struct iocom_err *e)
{
	struct peer_answer answer = {.grant = {.granted = true}};

	(void)arg;
	(void)address;
	(void)port;
	(void)e;
	snprintf(last.node, sizeof(last.node), "%s", node);
	answer.grant.lease_ms = request->order->lease_ms;
	strcpy(answer.grant.nonce, "0123456789abcdef");
	answered(place, 0, &answer, NULL);
	return 0;
}

static void placed(void *arg, json_t *answer, const char *why)
{
	struct placement p;

	(void)arg;
	if (!answer) {
		snprintf(last.why, sizeof(last.why), "%s", why);
		return;
	}
	assert_int_equal(placement_read(&p, answer, "it", NULL), 0);
	snprintf(last.job, sizeof(last.job), "%s", p.job);
	last.expected = p.expectation;
	last.need = p.need;
	for (size_t i = 0; i < p.nnodes; i++)
		if (!strcmp(p.nodes[i].vector.name, "n2"))
			last.doubt = p.nodes[i].doubt;
	placement_fini(&p);
	json_decref(answer);
}

/* An agent begins; the journal and the profiles are those of the one before. */
static void up(void)
{
	const struct home_config config = {
		.base = &base,
		.journal = journal,
		.profiles = profiles,
		.matrix = &matrix,
		.skews = &skews,
		.ports = {.own_vector = own_vector, .mute = mute, .ask = ask_guest},
	};
	struct placement p;

	base.boot_id++;
	placement_init(&p);
	fixture_nodes(&p, &matrix, 3, 1);
	placement_fini(&p);
	assert_int_equal(home_new(&home, &config, NULL), 0);
	assert_int_equal(home_load(home, &err), 0);
}

static void down(void)
{
	home_free(home);
	matrix_fini(&matrix);
}

static int setup(void **state)
{
	const struct profile run = {.cpu_ms = 2000, .wall_ms = 2000};

	(void)state;
	unlink(path);
	unlink(profile_path);
	counters = (struct counters){0};
	if (loop_new_virtual(&base.loop, 3600 * CLOCK_NS_PER_S, clock_real_ns(), NULL) ||
	    journal_open(&journal, path, &err) || profile_open(&profiles, profile_path, &err) ||
	    profile_learn(profiles, USER, "sort", &run, &err))
		return -1;
	up();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	down();
	journal_close(journal);
	profile_close(profiles);
	loop_free(base.loop);
	return 0;
}

/* --- jobs --------------------------------------------------------------------------- */

/* A job of CLASS_NAME, at home (policy nlb) or at NODE. */
static struct placement_ask job_of(const char *class_name, const char *node)
{
	struct placement_ask ask;

	placement_ask_init(&ask);
	strcpy(ask.cwd, "/tmp");
	strcpy(ask.executable, "/bin/sort");
	strcpy(ask.class_name, class_name);
	strcpy(ask.node, node);
	ask.run = true;
	return ask;
}

static void submit(const struct placement_ask *ask)
{
	msgpack_unpacked map;
	msgpack_sbuffer b;

	memset(&last, 0, sizeof(last));
	loop_advance(base.loop, CLOCK_NS_PER_MS);
	placement_ask_pack(ask, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	home_place(home, USER, &map.data, placed, NULL);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	assert_string_equal(last.why, "");
}

static struct job_report report_of(const char *state, uint64_t wall_ms)
{
	struct job_report r = {
		.wall_ms = wall_ms, .end_ns = loop_real_ns(base.loop), .cpu_ms = 2000};

	snprintf(r.job, sizeof(r.job), "%s", last.job);
	snprintf(r.state, sizeof(r.state), "%s", state);
	r.kind = !strcmp(state, "exited") ? 0 : !strcmp(state, "killed") ? 1 : 3;
	return r;
}

static void tell(const struct job_report *r)
{
	struct peer_request request = {.type = PEER_DONE, .done = {.reports = r, .count = 1}};
	struct peer_answer answer = {.ok = false};

	snprintf(request.from, sizeof(request.from), "%s", last.node);
	memcpy(request.job, r->job, sizeof(request.job));
	assert_int_equal(home_on_done(home, &request, 0, &answer), 0);
	assert_true(answer.ok);
}

/* The last job runs for MS, and its node reports it at once. */
static void runs(uint64_t ms)
{
	struct job_report r;

	loop_advance(base.loop, ms * CLOCK_NS_PER_MS);
	r = report_of("exited", ms);
	tell(&r);
}

static void take_job(void *arg, const struct journal_job *job)
{
	*(struct journal_job *)arg = *job;
}

/* The last job as the journal has it; its texts are gone. */
static struct journal_job row(void)
{
	struct journal_job job = {.job = NULL};

	assert_int_equal(journal_find(journal, last.job, USER, take_job, &job), 0);
	assert_non_null(job.job);
	return job;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= NEAR_MS;
}

static const struct prediction *errors_of(const char *node)
{
	size_t n = home_predictions(home, list);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].node, node))
			return &list[i];
	return NULL;
}

/* What the next job of the class would be corrected by, at home. */
static double factor(const char *class_name)
{
	struct placement_ask ask = job_of(class_name, "");

	ask.run = false;
	submit(&ask);
	return last.expected.home_factor;
}

/* Says of NODE, as its vector does, that it has this LOAD. */
static void claims(const char *node, double load)
{
	static uint64_t sequence = 100;
	struct iocom_vector v = fixture_vector(node, load);

	v.sequence = ++sequence;
	assert_int_equal(matrix_put(&matrix, &v, 0, loop_boot_ns(base.loop)), 0);
}

/* --- what is kept ------------------------------------------------------------------- */

static void test_kept(void **state)
{
	struct placement_ask ask = job_of("sort", "");
	struct journal_job job;

	(void)state;
	submit(&ask);
	assert_true(last.expected.known && last.expected.there_ms >= 2000);
	assert_true(last.expected.home_factor == 1);
	job = row();
	assert_true(job.expectation.there_ms == last.expected.there_ms);
	assert_true(job.expectation.home_ms == last.expected.home_ms);
	assert_int_equal(job.expectation.basis, JOURNAL_BASIS_LEARNED);
	assert_true(job.expectation.balanced && job.wall_ms == 0);
	runs(5000);
	assert_true(is_near(row().wall_ms, 5000));
	assert_int_equal(errors_of("n1")->jobs, 1);
	assert_true(errors_of("n1")->ratio > 1.5);
	assert_true(factor("sort") > 1.1);
	/* A named node, a login and a worker are not iocom's choice. */
	ask = job_of("sort", "n2");
	submit(&ask);
	assert_true(!row().expectation.balanced && row().expectation.there_ms > 0);
	assert_string_equal(last.node, "n2");
	ask = job_of("sort", "");
	ask.worker = true;
	submit(&ask);
	assert_false(row().expectation.balanced);
	ask = job_of("sort", "");
	ask.home_dir = true;
	submit(&ask);
	assert_false(row().expectation.balanced);
}

static void test_unknown_and_told(void **state)
{
	struct placement_ask ask = job_of("never seen", "");

	(void)state;
	submit(&ask);
	runs(1000);
	assert_true(row().expectation.there_ms == 0 && row().expectation.basis == 0);
	assert_true(is_near(row().wall_ms, 1000)); /* it was measured all the same */
	assert_null(errors_of("n1"));
	/* Needs that the user told: their error is shown, and teaches nothing. */
	ask = job_of("told", "");
	ask.need.value[NEED_CPU_S] = 1;
	submit(&ask);
	runs(8000);
	assert_int_equal(row().expectation.basis, JOURNAL_BASIS_TOLD);
	assert_int_equal(errors_of("n1")->jobs, 1);
	assert_true(factor("told") == 1);
	ask = job_of("sort", "");
	ask.need.value[NEED_MEMORY_MB] = 10;
	submit(&ask);
	runs(8000);
	assert_int_equal(row().expectation.basis, JOURNAL_BASIS_TOLD | JOURNAL_BASIS_LEARNED);
	assert_true(factor("sort") == 1);
}

/*
 * A class of milliseconds ran everywhere, and its start took longer than its work: a job of it that
 * is said to be long is expected to take the same at home as at a node like it, but for the way.
 */
static void test_short_jobs(void **state)
{
	static const char *const nodes[] = {"", "n2", "n3"};
	const struct profile run = {.cpu_ms = 2, .wall_ms = 3};
	struct placement_ask ask;
	struct job_report r;

	(void)state;
	assert_int_equal(profile_learn(profiles, USER, "tiny", &run, &err), 0);
	for (int i = 0; i < 60; i++) {
		ask = job_of("tiny", nodes[i % 3]);
		submit(&ask);
		loop_advance(base.loop, 40 * CLOCK_NS_PER_MS);
		r = report_of("exited", 40);
		r.cpu_ms = 2;
		tell(&r);
		assert_int_equal(row().expectation.basis, JOURNAL_BASIS_LEARNED);
	}
	assert_int_equal(errors_of("n1")->jobs, 20);
	assert_true(errors_of("n1")->ratio > 1.5); /* what was wrong is shown */
	own_load = 0;
	claims("n2", 0);
	claims("n3", 0);
	ask = job_of("tiny", "");
	ask.need.value[NEED_CPU_S] = 2;
	strcpy(ask.policy, "least-delay");
	ask.run = false;
	submit(&ask);
	own_load = 1;
	assert_true(last.expected.there_factor == 1 && last.expected.home_factor == 1);
	assert_true(last.expected.there_ms == last.expected.home_ms); /* it stays */
}

/* The class's factor is that of its nodes, and the others' is between it and 1. */
static void test_by_node(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	double there, home_factor;

	(void)state;
	for (int i = 0; i < 12; i++) {
		submit(&ask);
		runs(20000);
	}
	submit(&ask);
	there = last.expected.there_factor;
	home_factor = last.expected.home_factor;
	assert_true(there > 2 && there <= RULES_CORRECTION_MAX);
	assert_true(home_factor > 1 && home_factor < there);
	assert_int_equal(errors_of("n2")->jobs, 12);
	assert_null(errors_of("n1"));
}

/* --- what running jobs say ------------------------------------------------------------- */

/* The last job's node, or another, says what the job has done so far.  Returns home's answer. */
static bool progress(const char *from, const char *job, double cpu_ms)
{
	struct job_report r = {
		.state = "running", .wall_ms = 1000, .cpu_ms = cpu_ms, .requests = 50};
	struct peer_request request = {.type = PEER_PROGRESS, .done = {.reports = &r, .count = 1}};
	struct peer_answer answer = {.ok = false};

	snprintf(r.job, sizeof(r.job), "%s", job);
	snprintf(request.from, sizeof(request.from), "%s", from);
	memcpy(request.job, r.job, sizeof(request.job));
	assert_int_equal(home_on_progress(home, &request, 0, &answer), 0);
	return answer.ok;
}

/* What the next job of the class needs, as home says it. */
static const struct need *need_of(const char *class_name)
{
	struct placement_ask ask = job_of(class_name, "");

	ask.run = false;
	submit(&ask);
	return &last.need;
}

static void test_running_jobs(void **state)
{
	struct placement_ask ask = job_of("fit", "n2");
	struct home_counts counts;
	char job[SPEC_JOB_MAX];

	(void)state;
	submit(&ask);
	memcpy(job, last.job, sizeof(job));
	assert_int_equal(need_of("fit")->source[NEED_CPU_S], NEED_DEFAULT);
	assert_false(progress("n3", job, 9000)); /* it does not run there */
	assert_true(progress("n2", "n1-0-99", 9000));
	assert_int_equal(need_of("fit")->source[NEED_CPU_S], NEED_DEFAULT);
	assert_true(progress("n2", job, 4000));
	assert_int_equal(need_of("fit")->source[NEED_CPU_S], NEED_GUESS);
	assert_true(last.need.value[NEED_CPU_S] == 8 && last.need.value[NEED_REQUESTS] == 100);
	assert_false(last.expected.known); /* a guess is no expectation */
	assert_int_equal(need_of("other")->source[NEED_CPU_S], NEED_DEFAULT);
	home_count(home, &counts);
	assert_int_equal(counts.progress, 1);
	/* when the job has ended, the class has a profile, and a late report says nothing */
	memcpy(last.job, job, sizeof(job));
	strcpy(last.node, "n2");
	runs(5000);
	assert_true(progress("n2", job, 4000));
	home_count(home, &counts);
	assert_int_equal(counts.progress, 0);
	assert_int_equal(need_of("fit")->source[NEED_CPU_S], NEED_PROFILE);
	assert_true(last.need.value[NEED_CPU_S] == 2);
	/* the next one does far more: those after it are expected to need half of that more */
	submit(&ask);
	assert_true(progress("n2", last.job, 10000));
	assert_int_equal(need_of("fit")->source[NEED_CPU_S], NEED_PROFILE);
	assert_true(last.need.value[NEED_CPU_S] == 6);
}

/*
 * Jobs at n2 wait for its processor far longer than its vector lets expect: it is not believed, and
 * the answer says so, of other classes' jobs, too.  Jobs that sleep are no reason.
 */
static void test_doubted_node(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct job_report r;

	(void)state;
	for (int i = 0; i < 12; i++) {
		submit(&ask);
		runs(90000); /* it slept */
	}
	submit(&ask);
	assert_true(last.doubt <= 1);
	for (int i = 0; i < 12; i++) {
		submit(&ask);
		loop_advance(base.loop, 90000 * CLOCK_NS_PER_MS);
		r = report_of("exited", 90000);
		r.behaviour.run_wait_ms = 88000;
		tell(&r);
	}
	submit(&ask);
	assert_true(last.doubt > 2 && last.expected.there_factor > 8);
	ask = job_of("other", "n2");
	submit(&ask);
	assert_true(last.doubt > 2);
}

/*
 * A node that always says that it is idle while the jobs there wait is chosen at first, and no more
 * when that was observed: what it claims is bounded by what its jobs took.
 */
static void test_idle_liar(void **state)
{
	struct placement_ask ask = job_of("sort", "");
	unsigned there = 0;
	struct job_report r;
	uint64_t wall_ms;

	(void)state;
	strcpy(ask.policy, "least-delay");
	own_load = 6;
	for (int i = 0; i < 30; i++) {
		claims("n2", 0);
		claims("n3", 6);
		submit(&ask);
		if (i == 0)
			assert_string_equal(last.node, "n2");
		there += !strcmp(last.node, "n2");
		/* Jobs at the others take what these nodes let expect. */
		wall_ms = !strcmp(last.node, "n2") ? 90000 : 4500;
		loop_advance(base.loop, wall_ms * CLOCK_NS_PER_MS);
		r = report_of("exited", wall_ms);
		r.behaviour.run_wait_ms = (double)wall_ms - 2000;
		tell(&r);
	}
	own_load = 1;
	assert_true(there >= 1 && there <= 5);
	assert_string_not_equal(last.node, "n2");
	assert_true(last.doubt > 2);
}

/* A class never seen: what is typical of the user's classes is guessed of it. */
static void test_typical_needs(void **state)
{
	const struct profile run = {
		.cpu_ms = 3000, .requests = 10, .request_mb = 1, .wall_ms = 4000};

	(void)state;
	assert_int_equal(profile_learn(profiles, USER, "a", &run, &err), 0);
	assert_int_equal(need_of("new")->source[NEED_CPU_S], NEED_DEFAULT);
	assert_int_equal(profile_learn(profiles, USER, "b", &run, &err), 0);
	assert_int_equal(need_of("new")->source[NEED_CPU_S], NEED_GUESS);
	assert_true(last.need.value[NEED_CPU_S] == 3 && last.need.value[NEED_REQUESTS] == 10);
	assert_int_equal(last.need.source[NEED_MEMORY_MB], NEED_DEFAULT);
}

/* --- how long it took ----------------------------------------------------------------- */

/* The start waits on the node; the report comes at once, or late. */
static void test_waits(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct job_report r;

	(void)state;
	submit(&ask);
	loop_advance(base.loop, 7000 * CLOCK_NS_PER_MS);
	r = report_of("exited", 4000);
	tell(&r);
	assert_true(is_near(row().wall_ms, 7000));
	/* Home, or the node's agent, was away for an hour: the job took no longer. */
	submit(&ask);
	loop_advance(base.loop, 7000 * CLOCK_NS_PER_MS);
	r = report_of("exited", 4000);
	loop_advance(base.loop, 3600 * CLOCK_NS_PER_S);
	tell(&r);
	assert_true(is_near(row().wall_ms, 7000));
	/* A second report changes nothing. */
	r.wall_ms = 9000;
	tell(&r);
	assert_true(is_near(row().wall_ms, 7000));
	assert_int_equal(errors_of("n2")->jobs, 2);
}

/* The node's date is wrong by days, or its words are: the run and home's own clock bound it. */
static void test_lies(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct job_report r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		submit(&ask);
		loop_advance(base.loop, 5000 * CLOCK_NS_PER_MS);
		r = report_of("exited", 4000);
		r.end_ns = i ? r.end_ns + 5 * 86400 * CLOCK_NS_PER_S : 1;
		tell(&r);
		assert_true(is_near(row().wall_ms, i ? 5000 : 4000));
	}
	submit(&ask);
	loop_advance(base.loop, 5000 * CLOCK_NS_PER_MS);
	r = report_of("exited", UINT64_MAX);
	tell(&r);
	assert_true(is_near(row().wall_ms, 5000));
	/* It says that a job of 5 s took no time at all: 1 ms, and the cut bounds what that
	 * teaches. */
	submit(&ask);
	loop_advance(base.loop, 5000 * CLOCK_NS_PER_MS);
	r = report_of("exited", 0);
	r.end_ns = 1;
	tell(&r);
	assert_true(row().wall_ms == 1);
	submit(&ask);
	assert_true(last.expected.there_factor >= RULES_CORRECTION_MIN);
	assert_true(last.expected.there_factor <= RULES_CORRECTION_MAX);
	assert_int_equal(counters.outcomes_refused, 0);
}

/* Home's clock stepped back behind the submission. */
static void test_clock_steps_back(void **state)
{
	const struct journal_expectation e = {
		.there_ms = 1000, .there_factor = 1, .basis = JOURNAL_BASIS_LEARNED};
	const struct journal_job job = {
		.job = "n1-0-7",
		.uid = USER,
		.class_name = "sort",
		.command = "c",
		.policy = "p",
		.node = "",
		.submit_ns = loop_real_ns(base.loop) + CLOCK_NS_PER_S,
	};
	struct job_report r;

	(void)state;
	assert_int_equal(journal_submit(journal, &job, &err), 0);
	assert_int_equal(journal_placed(journal, job.job, "n2", "{}", &e, &err), 0);
	strcpy(last.job, job.job);
	strcpy(last.node, "n2");
	r = report_of("exited", 4000);
	tell(&r);
	assert_int_equal(counters.outcomes_refused, 1);
	assert_true(row().wall_ms == 0 && row().end_ns > 0);
	assert_null(errors_of("n2"));
	assert_true(factor("sort") == 1);
}

/* --- jobs that teach nothing ------------------------------------------------------------- */

static void test_other_ends(void **state)
{
	static const char *const states[] = {"killed", "failed", "lost", "exited"};
	struct placement_ask ask = job_of("sort", "n2");
	struct job_report r;

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		submit(&ask);
		loop_advance(base.loop, 100 * CLOCK_NS_PER_MS);
		r = report_of(states[i], 100);
		r.value = 3;
		tell(&r);
		assert_true(is_near(row().wall_ms, 100));
	}
	assert_null(errors_of("n2"));
	/* One that never ran took no time. */
	submit(&ask);
	r = report_of("failed", 0);
	r.end_ns = 0;
	tell(&r);
	assert_true(row().wall_ms == 0);
	assert_int_equal(counters.outcomes_refused, 0);
	assert_true(factor("sort") == 1);
}

static bool all_gone(void *arg, const char *node)
{
	(void)arg;
	(void)node;
	return true;
}

/* A job that was called lost reports after all; a job that was given up for another does not count.
 */
static void test_lost(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct job_report r;

	(void)state;
	submit(&ask);
	assert_int_equal(journal_home_state(journal, last.job, "running", 1, 2, &err), 0);
	loop_advance(base.loop, 5000 * CLOCK_NS_PER_MS);
	r = report_of("exited", 5000);
	loop_advance(base.loop, 86400 * CLOCK_NS_PER_S);
	assert_int_equal(journal_home_lost(journal, UINT64_MAX >> 1, all_gone, NULL), 1);
	tell(&r);
	assert_true(is_near(row().wall_ms, 5000));
	assert_int_equal(errors_of("n2")->jobs, 1);
	ask.restarts = 2;
	submit(&ask);
	assert_int_equal(journal_lease_fence(journal, last.job, "n1-0-9", 5, &err), 0);
	r = report_of("exited", 5000);
	tell(&r);
	assert_true(row().wall_ms == 0);
	assert_int_equal(errors_of("n2")->jobs, 1);
}

/* An attempt that followed a lost one has an error like any job, and teaches nothing. */
static void test_again(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct journal_lease lease;

	(void)state;
	ask.restarts = 2;
	submit(&ask);
	snprintf(ask.again, sizeof(ask.again), "%s", last.job);
	loop_advance(base.loop, 3600 * CLOCK_NS_PER_S);
	home_chores(home);
	submit(&ask);
	assert_string_not_equal(last.job, ask.again);
	assert_int_equal(journal_lease_get(journal, last.job, &lease, &err), 0);
	assert_int_equal(lease.attempt, 2);
	runs(9000);
	assert_int_equal(errors_of("n2")->jobs, 1);
	assert_true(factor("sort") == 1);
}

/* --- agents and classes come and go --------------------------------------------------------- */

static void test_restart(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct prediction before;
	double corrected;

	(void)state;
	for (int i = 0; i < 5; i++) {
		submit(&ask);
		runs(6000 + 1000 * (uint64_t)i);
	}
	before = *errors_of("n2");
	corrected = factor("sort");
	down();
	up();
	assert_int_equal(errors_of("n2")->jobs, 5);
	assert_int_equal(errors_of("n2")->total.jobs, 0);
	assert_true(fabs(errors_of("n2")->ratio - before.ratio) < 1e-9);
	assert_true(factor("sort") == corrected);
	/* A job is under way while the agent starts again. */
	submit(&ask);
	down();
	up();
	runs(6000);
	assert_true(is_near(row().wall_ms, 6000));
	assert_int_equal(errors_of("n2")->jobs, 6);
	assert_int_equal(errors_of("n2")->total.jobs, 1);
}

static void test_forgotten(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");

	(void)state;
	for (int i = 0; i < 5; i++) {
		submit(&ask);
		runs(9000);
	}
	assert_true(factor("sort") > 1.1);
	assert_int_equal(profile_forget(profiles, USER, "sort", &err), 0);
	submit(&ask);
	assert_false(last.expected.known);
	runs(9000); /* it is learned anew, and nothing had been expected */
	assert_true(factor("sort") == 1);
}

/* --- files that cannot be read ---------------------------------------------------------------- */

static void sql(const char *file, const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The end is not taken, so that its node reports it again; an agent does not begin. */
static void test_unreadable_journal(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");
	struct peer_request request = {.type = PEER_DONE, .done = {.count = 1}};
	struct peer_answer answer = {.ok = false};
	struct job_report r;

	(void)state;
	submit(&ask);
	loop_advance(base.loop, 3000 * CLOCK_NS_PER_MS);
	r = report_of("exited", 3000);
	request.done.reports = &r;
	strcpy(request.from, "n2");
	sql(path, "ALTER TABLE home RENAME COLUMN basis TO odd");
	assert_int_equal(home_on_done(home, &request, 0, &answer), -EIO);
	assert_int_equal(counters.journal_failures, 1);
	assert_int_equal(home_load(home, &err), -EIO);
	assert_string_equal(err.text, "cannot read from the job journal what jobs took");
	sql(path, "ALTER TABLE home RENAME COLUMN odd TO basis");
	tell(&r);
	assert_true(is_near(row().wall_ms, 3000));
	assert_int_equal(errors_of("n2")->jobs, 1);
}

/* Jobs go where they would go without corrections, and end as ever. */
static void test_unreadable_corrections(void **state)
{
	struct placement_ask ask = job_of("sort", "n2");

	(void)state;
	for (int i = 0; i < 5; i++) {
		submit(&ask);
		runs(9000);
	}
	submit(&ask);
	assert_true(last.expected.there_factor > 1.1);
	sql(profile_path, "ALTER TABLE error RENAME TO away");
	submit(&ask);
	assert_true(last.expected.known && last.expected.there_factor == 1);
	assert_int_equal(counters.journal_failures, 1);
	runs(9000);
	assert_int_equal(counters.journal_failures, 2);
	assert_true(is_near(row().wall_ms, 9000));
	sql(profile_path, "ALTER TABLE away RENAME TO error");
	submit(&ask);
	assert_true(last.expected.there_factor > 1.1);
}

/* Absurd reports are refused before home sees them. */
static void test_absurd_reports(void **state)
{
	static const double absurd[] = {-1, NAN, INFINITY};
	msgpack_unpacked map;
	struct job_report r, out;

	(void)state;
	strcpy(last.job, "n1-0-7");
	for (size_t i = 0; i < sizeof(absurd) / sizeof(*absurd); i++) {
		msgpack_sbuffer b;

		msgpack_sbuffer_init(&b);
		r = report_of("exited", 100);
		r.cpu_ms = absurd[i];
		job_report_pack(&r, &b);
		assert_int_equal(unpack_map(&map, b.data, b.size), 0);
		assert_int_equal(job_report_unpack(&out, &map.data), -EBADMSG);
		msgpack_unpacked_destroy(&map);
		msgpack_sbuffer_destroy(&b);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_kept),
		CASE(test_unknown_and_told),
		CASE(test_short_jobs),
		CASE(test_by_node),
		CASE(test_running_jobs),
		CASE(test_typical_needs),
		CASE(test_doubted_node),
		CASE(test_idle_liar),
		CASE(test_waits),
		CASE(test_lies),
		CASE(test_clock_steps_back),
		CASE(test_other_ends),
		CASE(test_lost),
		CASE(test_again),
		CASE(test_restart),
		CASE(test_forgotten),
		CASE(test_unreadable_journal),
		CASE(test_unreadable_corrections),
		CASE(test_absurd_reports),
	};
	char command[80];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/iocom.db", dir);
	snprintf(profile_path, sizeof(profile_path), "%s/profile.db", dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : rc;
}
