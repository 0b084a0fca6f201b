/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What an agent sends to a recording client, through its real socket: whole recordings whose
 * decisions can be made again, even if the reader is too slow for them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/front/front.h"
#include "user/clock.h"
#include "balancer/record/record_stream.h"
#include "agent/front/recorders.h"
#include "balancer/view/recording.h"

#define NODES 40
#define TRIES 2000

static struct settings set;
static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set};
static struct pulse pulse;
static struct peers peers;
static struct cluster_view *view;
static struct front front = {.base = &base, .pulse = &pulse, .peers = &peers};
static char dir[32], path[64];

static struct iocom_vector vector(const char *name, double load)
{
	struct iocom_vector v = {
		.port = 7700,
		.boot_id = 7,
		.sequence = 1,
		.time_ns = 1,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.cpu_burst = 1 + load,
		.run_queue = load,
		.memory_mb = 1000,
		.memory_requested_mb = 100 + load,
		.explicit_per_ms = 0.1 * load,
		.disks = 1,
		.disk_arrivals_per_ms = 0.1 * load,
		.disk_utilisation = load < 10 ? load / 10 : 1,
		.disk_service_ms = 3,
		.disk_service_ms2 = 9,
		.disk_mb_per_s = 20,
		.disk_fixed_ms = 0.1,
		.cpu_sharers = load,
		.disk_sharers = load / 3,
		.cpu_left_ms = 1000 * load / 7,
		.disk_left_ms = 500 * load,
		.network_mb_per_s = 125,
		.io_tasks = 1,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

static void hear(const struct iocom_vector *v)
{
	assert_int_equal(matrix_put(&peers.matrix, v, 0, clock_boot_ns()), 0);
}

/*
 * Gives every node a new vector.  Some nodes are dropped before, so that the view's order is
 * not that of the names.
 */
static void change(unsigned int turn)
{
	char name[16];

	pulse.own = vector("me", 9 + turn % 3);
	for (unsigned int i = 0; i < NODES; i++) {
		struct iocom_vector v;

		snprintf(name, sizeof(name), "n%02u", i);
		v = vector(name, (i * 7 + turn) % 11 * 0.5);
		v.sequence = 2 * turn + 1;
		if ((i + turn) % 13 == 0) {
			v.period_ms = 1;
			hear(&v);
			matrix_expire(&peers.matrix, clock_boot_ns() + CLOCK_NS_PER_S);
			assert_false(matrix_find(&peers.matrix, name)->alive);
		}
		v.sequence++;
		v.period_ms = 3600000;
		hear(&v);
	}
}

static void stop(void *arg)
{
	(void)arg;
	loop_stop(base.loop);
}

/* Runs the agent's loop for a moment. */
static void pump(void)
{
	struct loop_timer timer = {.fire = stop};

	loop_start(base.loop, &timer, CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(base.loop), 0);
}

static void request(void *arg, struct client *client, const msgpack_object *map)
{
	record_request(arg, client, map);
}

static void closed(void *arg, struct client *client)
{
	recorders_forget(arg, client);
}

static void half(void *arg, struct client *client)
{
	recorders_end(arg, client);
}

static int open_clients(struct iocom_err *err)
{
	static struct clients_watch watch = {.closed = closed, .half = half, .arg = &front};
	const struct clients_config config = {
		.base = &base, .request = request, .request_arg = &front};
	int rc = clients_new(&front.clients, &config, err);

	if (!rc)
		clients_watch(front.clients, &watch);
	return rc;
}

static int setup(void **state)
{
	struct iocom_err err = {0};

	(void)state;
	strcpy(dir, "/tmp/iocom-rec-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/r.jsonl", dir);
	counters = (struct counters){0};
	set = (struct settings){0};
	strcpy(set.name, "me");
	strcpy(set.policy, "iocm-re");
	strcpy(set.run_dir, dir);
	set.period_s = 1;
	matrix_init(&peers.matrix, "me");
	view = cluster_view_new(&peers.matrix);
	if (!view)
		return -1;
	change(0);
	return loop_new(&base.loop, &err) || open_clients(&err);
}

static int teardown(void **state)
{
	(void)state;
	recorders_stop(&front);
	clients_free(front.clients);
	loop_free(base.loop);
	cluster_view_free(view);
	matrix_fini(&peers.matrix);
	unlink(path);
	rmdir(dir);
	return 0;
}

/* --- the reader ---------------------------------------------------------------------- */

/* Writes every line that comes to F, until it is quiet for a while or closed. */
static unsigned int drain(struct record_stream *s, FILE *f)
{
	struct iocom_err err = {0};
	unsigned int lines = 0;
	const char *line;
	size_t n;

	for (int quiet = 0; quiet < 20 && !s->ended;) {
		int rc = record_stream_next(s, &line, &n, &err);

		if (rc < 0)
			fail_msg("%s", err.text);
		if (rc == 0) {
			quiet++;
			pump();
			continue;
		}
		quiet = 0;
		lines++;
		assert_int_equal(line[n - 1], '\n');
		assert_int_equal(fwrite(line, 1, n, f), n);
	}
	return lines;
}

static struct record_stream begin(FILE *f)
{
	struct record_stream s;
	struct iocom_err err = {0};

	if (record_stream_open(dir, &s, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < TRIES && !front.recorders; i++)
		pump();
	assert_non_null(front.recorders);
	/* The header, this node and the others with their loads. */
	assert_int_equal(drain(&s, f), 1 + 2 * (NODES + 1));
	return s;
}

static void end(struct record_stream *s, FILE *f)
{
	record_stream_finish(s);
	for (int i = 0; i < TRIES && !s->ended; i++)
		drain(s, f);
	assert_true(s->ended);
	record_stream_close(s);
	assert_int_equal(fclose(f), 0);
	for (int i = 0; i < TRIES && front.recorders; i++)
		pump();
	assert_null(front.recorders);
}

/* --- what happens -------------------------------------------------------------------- */

static void decide(unsigned int number, const char *policy, bool run)
{
	/* home, and the node that comes first in the view, if there is one */
	static const struct rules_correction corrections[] = {{0, 0.75}, {1, 1.5}};
	struct job_order order = {.submit_ns = clock_real_ns(), .class_name = "a\xff\nb"};
	struct rules_request request = {
		.cpu_ms = 100,
		.io_per_ms = 0.3,
		.request_kb = 64,
		.memory_mb = 20,
		.requests = 700,
		.implicit_share = 0.25,
		.tasks = 1,
		.corrections = corrections,
		.ncorrections = 2,
		.correction = 0.5,
	};
	struct view_decision decision;
	struct view_policy chosen;
	struct iocom_err err = {0};

	snprintf(order.job, sizeof(order.job), "me-0000002a-%u", number);
	assert_int_equal(view_policy_parse(policy, &chosen, &err), 0);
	assert_int_equal(cluster_view_refresh(view, &pulse.own, clock_boot_ns()), 0);
	assert_int_equal(cluster_view_decide(view, &chosen, &request, number, &decision, &err), 0);
	recorders_decided(&front, &(struct home_decision){
					  .order = &order,
					  .request = &request,
					  .view = view,
					  .seed = number,
					  .decision = &decision,
					  .run = run,
				  });
	view_decision_fini(&decision);
}

static void charge(const char *node)
{
	struct view_charge c = {
		.boot_id = 7,
		.sequence = 1000000,
		.since_ns = clock_boot_ns(),
		.request = {.io_per_ms = 0.3, .requests = 700, .request_kb = 64, .tasks = 1},
	};

	snprintf(c.node, sizeof(c.node), "%s", node);
	cluster_view_charge(view, &c);
}

static void finish(unsigned int number, const char *from, uint64_t kind, uint64_t value)
{
	struct job_report r = {
		.kind = kind,
		.value = value,
		.start_ns = clock_real_ns(),
		.wall_ms = 2500,
		.cpu_ms = 40,
		.requests = 700,
		.request_kb = 65.536,
		.memory_mb = 2,
		.faults_per_ms = 0.5,
		.behaviour = {.fault_requests = 16, .fault_kb = 2048},
	};

	snprintf(r.job, sizeof(r.job), "me-0000002a-%u", number);
	recorders_finished(&front, from, &r);
}

/* --- what was recorded ---------------------------------------------------------------- */

struct found {
	unsigned int nodes, submitted, decisions, only_asked, finished, corrected;
	struct recording_end end;
	struct recording_finish last;
};

/* Returns whether the decision just read corrects its home and one more node, and all others. */
static bool corrects(struct recording *r, const struct rules_request *job)
{
	struct view_file v;
	double factor = 0;

	assert_int_equal(recording_view(r, &v), 0);
	for (size_t i = 0; i < job->ncorrections; i++)
		if (job->corrections[i].node == v.home)
			factor = job->corrections[i].factor;
	return job->ncorrections == 2 && factor == 0.75 && job->correction == 0.5;
}

static struct found check_file(void)
{
	const struct recording_line *line;
	struct found found = {0};
	struct iocom_err err = {0};
	struct recording *r;
	int rc;

	if (recording_open(path, &r, &err))
		fail_msg("%s", err.text);
	assert_string_equal(recording_header(r)->node, "me");
	assert_true(recording_header(r)->live);
	assert_true(recording_header(r)->period_ms == 1000);
	while ((rc = recording_next(r, &line, &err)) > 0) {
		struct view_decision again;

		found.nodes += line->kind == RECORDING_NODE;
		found.submitted +=
			line->kind == RECORDING_SUBMIT && line->job.implicit_share == 0.25;
		if (line->kind == RECORDING_FINISH) {
			found.finished++;
			found.last = line->finish;
		}
		if (line->kind == RECORDING_END)
			found.end = line->end;
		if (line->kind != RECORDING_DECISION)
			continue;
		found.decisions++;
		found.only_asked += !line->decision.job[0];
		found.corrected += corrects(r, line->decision.request);
		rc = recording_decide(r, 0, &again, &err);
		if (rc != 1)
			fail_msg("line %llu: %d %s", (unsigned long long)line->number, rc,
				 err.text);
		view_decision_fini(&again);
	}
	if (rc < 0)
		fail_msg("%s", err.text);
	assert_true(recording_complete(r));
	recording_close(r);
	return found;
}

static void test_lines(void **state)
{
	FILE *f = fopen(path, "w");
	struct record_stream s = begin(f);
	struct found found;

	(void)state;
	pulse.measured.period = (struct vector_period){0};
	recorders_period(&front);
	assert_int_equal(drain(&s, f), 0); /* nothing is new, so nothing is sent */
	change(1);
	recorders_period(&front);
	assert_true(drain(&s, f) >= NODES);
	decide(1, "iocm-re", true);
	change(2); /* nothing is sent before a decision uses it */
	charge("n03");
	decide(2, "io-re", true);
	decide(3, "random", false);
	finish(1, "n05", 0, 3);
	finish(2, "me", 1, 9);
	finish(2, "unheard-of", 0, 0); /* a line that cannot be written is counted */
	end(&s, f);
	found = check_file();
	assert_int_equal(found.submitted, 2);
	assert_int_equal(found.decisions, 3);
	assert_int_equal(found.only_asked, 1);
	assert_int_equal(found.corrected, 3);
	assert_int_equal(found.finished, 2);
	assert_int_equal(found.end.dropped, 1);
	assert_int_equal(counters.record_lines_lost, 1);
	assert_int_equal(found.last.exit, -9);
	assert_int_equal(found.last.moves, 0);
	assert_true(found.last.measured.wall_ms == 2500 && found.last.measured.requests == 700 &&
		    found.last.measured.page_faults == 16 &&
		    found.last.measured.page_fault_mb == 2.048);
	assert_false(recording_never_ran(&found.last));
}

/* The end line has the means of what others took, over all periods of the recording. */
static void test_disturbed(void **state)
{
	FILE *f = fopen(path, "w");
	struct record_stream s = begin(f);
	struct found found;

	(void)state;
	change(1);
	pulse.own.cores = 2;
	pulse.own.cpu_speed = 0.5; /* a cap leaves one processor of the two */
	pulse.own.cpu_burst = 1;
	pulse.measured.period = (struct vector_period){1000, {.cpu = 0.5, .disk = 0.2}};
	recorders_period(&front);
	pulse.measured.period = (struct vector_period){3000, {.cpu = 7}};
	recorders_period(&front);
	end(&s, f);
	found = check_file();
	assert_true(fabs(found.end.others_cpu - 3.5 / 4) < 1e-9);
	assert_true(fabs(found.end.others_disk - 0.05) < 1e-9);
	assert_true(found.end.stolen >= 0 && found.end.stolen <= 1);
	assert_true(found.end.crowded == 0); /* the agent has the whole machine */
	pulse.measured.period = (struct vector_period){0};
}

/* The client reads nothing while much is sent: lines are lost, but all others are right. */
static void test_slow_reader(void **state)
{
	FILE *f = fopen(path, "w");
	struct record_stream s = begin(f);
	unsigned int turn = 1, kept;
	struct found found;

	(void)state;
	while (turn < 5000 && counters.record_lines_lost < 100) {
		change(turn);
		if (turn % 3)
			recorders_period(&front);
		decide(turn, turn % 2 ? "iocm-re" : "wal", true);
		turn++;
	}
	assert_true(counters.record_lines_lost >= 100);
	drain(&s, f);
	kept = turn;
	for (; turn < kept + 5; turn++) {
		change(turn);
		decide(turn, "iocm-re", true);
	}
	end(&s, f);
	found = check_file();
	assert_int_equal(found.end.dropped, counters.record_lines_lost);
	assert_true(found.decisions >= 5 && found.decisions < turn);
}

/* A client that goes away in the middle ends its recorder; others go on. */
static void test_two(void **state)
{
	FILE *f = fopen(path, "w"), *other = fopen("/dev/null", "w");
	struct record_stream s = begin(f), gone = begin(other);

	(void)state;
	decide(1, "iocm-re", true);
	record_stream_close(&gone);
	pump();
	change(5);
	recorders_period(&front);
	decide(2, "iocm-re", true);
	assert_int_equal(counters.record_lines_lost, 0);
	end(&s, f);
	fclose(other);
	assert_int_equal(check_file().decisions, 2);
}

/* An agent that stops says so with the end line. */
static void test_agent_stops(void **state)
{
	FILE *f = fopen(path, "w");
	struct record_stream s = begin(f);

	(void)state;
	decide(1, "iocm-re", true);
	recorders_stop(&front);
	assert_null(front.recorders);
	drain(&s, f);
	record_stream_close(&s);
	fclose(f);
	assert_int_equal(check_file().decisions, 1);
}

/* Without a recording client nothing is built. */
static void test_nobody(void **state)
{
	(void)state;
	recorders_period(&front);
	decide(1, "iocm-re", true);
	finish(1, "me", 0, 0);
	assert_null(front.recorders);
	assert_int_equal(counters.record_lines_lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disturbed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two, setup, teardown),
		cmocka_unit_test_setup_teardown(test_agent_stops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
