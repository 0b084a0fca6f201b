/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The feedback controller of an agent: weights by (4.9) FC, the buffer's hysteresis, steps and
 * bounds, what each controller does with a node, and the modes.  Time is virtual, and the control
 * groups are a directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/feedback/feedback_own.h"
#include "tests/lib/logged.h"
#include "user/clock.h"

#define MEMORY_MB 1000.0
#define GROUP	  "jobs/user@7/n1-1-1"

static char dir[64], mount_table[96];
static struct settings set;
static struct logger log_lines;
static struct counters counters;
static struct base base;
static struct iocom_vector vector;
static struct feedback_cluster cluster;
static struct guest_running jobs[4];
static size_t njobs;
static struct feedback *part;

static void port_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = vector;
}

static void port_cluster(void *arg, struct feedback_cluster *out)
{
	(void)arg;
	*out = cluster;
}

static size_t port_running(void *arg, struct guest_running *out, size_t max)
{
	(void)arg;
	assert_true(max >= njobs);
	memcpy(out, jobs, njobs * sizeof(*jobs));
	return njobs;
}

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static const char *group_file(const char *file)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/cg/iocom/" GROUP "/%s", dir, file);
	return path;
}

static const char *high(void)
{
	static char text[64];
	FILE *in = fopen(group_file("memory.high"), "r");

	assert_non_null(in);
	assert_non_null(fgets(text, sizeof(text), in));
	fclose(in);
	text[strcspn(text, "\n")] = 0;
	return text;
}

/* The settings as a configuration gives them, by "key value" pairs; the part begins with them. */
static void configure(const char *keys)
{
	char file[160], line[200], *rest = NULL, copy[400];
	char *argv[] = {"iocomd", "--config", file, NULL};
	struct iocom_err err = {0};
	FILE *out;

	snprintf(file, sizeof(file), "%s/conf", dir);
	out = fopen(file, "w");
	assert_non_null(out);
	snprintf(line, sizeof(line), "[iocom]\nstate_dir = %s/state\n", dir);
	fputs(line, out);
	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *one = strtok_r(copy, ";", &rest); one; one = strtok_r(NULL, ";", &rest))
		fprintf(out, "%s\n", one);
	fclose(out);
	memset(&set, 0, sizeof(set));
	if (config_load(&settings_program, 3, argv, &set, &err) || settings_complete(&set, &err))
		fail_msg("%s", err.text);
}

static void begin(const char *keys)
{
	const struct feedback_config config = {
		.base = &base,
		.mounts = mount_table,
		.direct = true,
		.ports = {.own_vector = port_vector,
			  .cluster = port_cluster,
			  .running = port_running},
	};
	struct iocom_err err = {0};

	configure(keys);
	assert_int_equal(feedback_new(&part, &config, &err), 0);
	feedback_begin(part);
}

static int setup(void **state)
{
	char command[300], text[160];

	(void)state;
	strcpy(dir, "/tmp/iocom-feedback-XXXXXX");
	if (!mkdtemp(dir) || logged_begin(&log_lines))
		return -1;
	snprintf(command, sizeof(command),
		 "mkdir -p %s/cg/iocom/" GROUP " && mkdir -m 0700 %s/state", dir, dir);
	if (system(command))
		return -1;
	snprintf(mount_table, sizeof(mount_table), "%s/mounts", dir);
	snprintf(text, sizeof(text), "cgroup2 %s/cg cgroup2 rw 0 0\n", dir);
	put(mount_table, text);
	snprintf(text, sizeof(text), "%s/cg/cgroup.controllers", dir);
	put(text, "cpu memory\n");
	put(group_file("memory.high"), "max\n");
	put(group_file("memory.current"), "419430400\n");
	put(group_file("memory.stat"), "anon 0\nfile 419430400\nshmem 0\n");
	memset(&counters, 0, sizeof(counters));
	base = (struct base){.log = &log_lines, .counters = &counters, .set = &set};
	vector = (struct iocom_vector){.memory_mb = MEMORY_MB,
				       .memory_requested_mb = 100,
				       .cores = 2,
				       .cpu_speed = 1,
				       .disks = 1,
				       .disk_fixed_ms = 8,
				       .disk_mb_per_s = 40,
				       .disk_service_ms = 10};
	njobs = 0;
	part = NULL;
	return loop_new_virtual(&base.loop, 1000 * CLOCK_NS_PER_S, 2000 * CLOCK_NS_PER_S, NULL);
}

static int teardown(void **state)
{
	char command[100];

	(void)state;
	feedback_free(part);
	loop_free(base.loop);
	logged_end();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* SECONDS pass, with the agent's chores. */
static void pass(unsigned seconds)
{
	while (seconds--) {
		loop_advance(base.loop, CLOCK_NS_PER_S);
		feedback_chores(part);
	}
}

static struct guest_running *job_add(const char *name)
{
	struct guest_running *job = &jobs[njobs++];

	*job = (struct guest_running){.uid = 7};
	snprintf(job->job, sizeof(job->job), "%s", name);
	snprintf(job->group, sizeof(job->group), "jobs/user@7/%s", name);
	return job;
}

/* A job that reads the same data again and again, and waits for the disk most of its time. */
static void job_reads(void)
{
	struct guest_running *job = job_add("n1-1-1");

	job->cpu_ms = 10000;
	job->requests = 2000;
	job->moved_mb = job->read_mb = 500;
	job->memory_mb = 20;
}

static void job_fills(double memory_mb)
{
	struct guest_running *job = job_add("n1-1-2");

	job->cpu_ms = 20000;
	job->memory_mb = memory_mb;
	vector.memory_requested_mb = memory_mb + 100;
}

/* --- weights ---------------------------------------------------------------------------- */

static void test_weights(void **state)
{
	(void)state;
	begin("feedback = on;feedback_controller = published;feedback_history = 1");
	assert_float_equal(feedback_w_io(part), 0.5, 1e-12);
	feedback_submitted_slowed(part, 2.0);
	feedback_submitted_slowed(part, 1.8);
	assert_float_equal(feedback_w_io(part), 0.55, 1e-9);
	feedback_submitted_slowed(part, 1.9);
	assert_float_equal(feedback_w_io(part), 0.522222222, 1e-9);
	feedback_submitted_slowed(part, 1.9);
	assert_float_equal(feedback_w_io(part), 0.522222222, 1e-9);
}

static void test_weights_at_bound(void **state)
{
	(void)state;
	begin("feedback = on;feedback_controller = published;feedback_history = 1;"
	      "feedback_gain_w = 10");
	feedback_submitted_slowed(part, 2.0);
	feedback_submitted_slowed(part, 1.0);
	assert_float_equal(feedback_w_io(part), 1, 1e-12);
	assert_int_equal(counters.feedback_at_bound, 1);
}

/* By resources: a resource weighs as much as it is used in the cluster. */
static void test_weights_by_use(void **state)
{
	(void)state;
	begin("feedback = on");
	cluster = (struct feedback_cluster){.cpu_utilisation = 0.1, .disk_utilisation = 0.9};
	for (int i = 0; i < 300; i++)
		feedback_submitted_slowed(part, 2.0);
	assert_float_equal(feedback_w_io(part), 0.9, 0.02);
}

static void test_garbage_is_not_learnt(void **state)
{
	(void)state;
	begin("feedback = on;feedback_controller = published;feedback_history = 1");
	feedback_submitted_slowed(part, 2.0);
	feedback_submitted_slowed(part, (double)NAN);
	feedback_submitted_slowed(part, -1);
	feedback_submitted_slowed(part, 1.8);
	assert_float_equal(feedback_w_io(part), 0.55, 1e-9);
}

/* --- the buffer --------------------------------------------------------------------------- */

static void sampled(double wanted_mb, double applied_mb, unsigned persisted)
{
	feedback_buffer_sample(part, wanted_mb, "test");
	assert_float_equal(part->buffer.applied_mb, applied_mb, 1e-6);
	assert_int_equal(part->buffer.persisted, persisted);
}

static void test_hysteresis(void **state)
{
	(void)state;
	begin("feedback = on");
	feedback_buffer_begin(part, MEMORY_MB);
	sampled(800, 900, 1);
	sampled(800, 900, 2);
	sampled(800, 875, 3); /* the third one in a row: a step, of 2.5 % */
	sampled(800, 850, 4);
	sampled(890, 850, 1); /* another direction begins anew */
	sampled(800, 850, 1);
	sampled(846, 850, 0); /* within the band of 0.5 % */
	sampled(840, 850, 1);
	sampled(840, 850, 2);
	sampled(840, 840, 3); /* no further than what is wanted */
	assert_int_equal(counters.feedback_steps, 3);
}

static void test_bounds(void **state)
{
	(void)state;
	begin("feedback = on;feedback_persist = 1;feedback_step = 0.5");
	feedback_buffer_begin(part, MEMORY_MB);
	sampled(50, 400, 1);
	sampled(50, 100, 2); /* feedback_min */
	assert_int_equal(logged("the buffer is at its least, 100 MB of 1000 (feedback_min = 0.1)"),
			 1);
	assert_int_equal(counters.feedback_at_bound, 1);
	sampled(50, 100, 0);
	sampled(50, 100, 0);
	assert_int_equal(counters.feedback_at_bound, 3);
	assert_int_equal(logged("at its least"), 1); /* once for each stay */
	sampled(2000, 600, 1);
	sampled(2000, 900, 2);
	assert_int_equal(logged("at its most"), 1);
	sampled(50, 400, 1);
	sampled(50, 100, 2);
	assert_int_equal(logged("at its least"), 2);
}

/* The memory of one job does not fit beside the buffer: it shrinks, until it does. */
static void test_predictive(void **state)
{
	(void)state;
	begin("feedback = on;feedback_interval_s = 10;feedback_faults_per_ms = 5");
	job_reads();
	job_fills(500);
	pass(20);
	assert_float_equal(part->buffer.applied_mb, 900, 1e-6);
	pass(10);
	assert_float_equal(part->buffer.applied_mb, 875, 1e-6);
	assert_string_equal(part->buffer.why, "faults");
	pass(600);
	assert_true(part->buffer.applied_mb < 401);
	assert_true(part->buffer.applied_mb > 300);
	/* The job has ended; the one that reads gets the memory. */
	njobs = 1;
	vector.memory_requested_mb = 100;
	pass(60);
	assert_string_equal(part->buffer.why, "misses");
	assert_true(part->buffer.applied_mb > 420);
}

/* Only faults that happen count, unless the settings assume some. */
static void test_measured_faults(void **state)
{
	(void)state;
	begin("feedback = on;feedback_interval_s = 10");
	job_reads();
	job_fills(500);
	pass(100);
	assert_float_equal(part->buffer.applied_mb, 900, 1e-6);
	jobs[1].faults = 2 * jobs[1].cpu_ms;
	pass(100);
	assert_true(part->buffer.applied_mb < 800);
}

/* No job runs: nothing is known, so nothing moves. */
static void test_idle(void **state)
{
	(void)state;
	begin("feedback = on");
	pass(100);
	assert_float_equal(part->buffer.applied_mb, 900, 1e-6);
	assert_int_equal(counters.feedback_steps, 0);
}

static void test_gradient(void **state)
{
	(void)state;
	begin("feedback = on;feedback_controller = gradient;feedback_gain_b = 20");
	job_reads();
	vector.explicit_per_ms = 0.01;
	vector.implicit_per_ms = 0.09;
	pass(300);
	assert_true(part->buffer.applied_mb < 900);
	assert_string_equal(part->buffer.why, "requests");
}

/* Steps only after jobs that ended, and only as many as the settings ask for. */
static void test_published(void **state)
{
	(void)state;
	begin("feedback = on;feedback_controller = published;feedback_history = 1;"
	      "feedback_gain_b = 100;feedback_jobs = 2;feedback_persist = 1");
	pass(30);
	assert_int_equal(part->samples, 0);
	feedback_ran_slowed(part, 2.0);
	pass(10);
	assert_int_equal(part->samples, 0);
	feedback_ran_slowed(part, 1.0);
	pass(10);
	assert_int_equal(part->samples, 1);
	/* Better, so up again, where there is nothing: the bound turned the direction. */
	feedback_ran_slowed(part, 0.9);
	feedback_ran_slowed(part, 0.8);
	pass(10);
	assert_true(part->buffer.applied_mb < 900);
	assert_string_equal(part->buffer.why, "slowdown");
}

/* --- modes --------------------------------------------------------------------------------- */

static void test_off(void **state)
{
	(void)state;
	begin("feedback = off;w_io = 0.7");
	job_reads();
	feedback_submitted_slowed(part, 2.0);
	feedback_ran_slowed(part, 2.0);
	pass(30);
	assert_float_equal(feedback_w_io(part), 0.7, 1e-12);
	assert_string_equal(high(), "max");
	assert_int_equal(logged("feedback"), 0);
}

static void test_modes(void **state)
{
	(void)state;
	begin("feedback = dry-run;feedback_max = 0.2");
	job_reads();
	pass(2);
	assert_int_equal(part->jobs[0].state, HAND_WOULD);
	assert_int_equal(part->jobs[0].high_bytes, 200000000 / 4096 * 4096);
	assert_string_equal(high(), "max");
	configure("feedback = on;feedback_max = 0.2");
	feedback_reload(part);
	assert_int_equal(logged("feedback: on, predictive; by memory.high"), 1);
	pass(2);
	assert_string_equal(high(), "199999488");
	assert_int_equal(counters.feedback_writes, 1);
	/* Other settings are none of ours: nothing begins anew. */
	configure("feedback = on;feedback_max = 0.2;keep_jobs = 5");
	feedback_reload(part);
	assert_int_equal(counters.feedback_restored, 0);
	configure("feedback = off");
	feedback_reload(part);
	assert_string_equal(high(), "max");
	assert_int_equal(counters.feedback_restored, 1);
	configure("feedback = on;feedback_max = 0.2");
	feedback_reload(part);
	pass(2);
	assert_string_equal(high(), "199999488");
	feedback_stop(part);
	assert_string_equal(high(), "max");
	assert_int_equal(counters.feedback_restored, 2);
}

/* The next agent gives back what a killed one held, also if its controller is off. */
static void test_after_a_kill(void **state)
{
	(void)state;
	begin("feedback = on;feedback_max = 0.2");
	job_reads();
	pass(2);
	hand_get(part->hand); /* so that it is still there, as a killed agent leaves the groups */
	struct hand *killed = part->hand;
	part->hand = NULL;
	feedback_free(part);
	hand_put(killed);
	hand_put(killed);
	assert_string_equal(high(), "199999488");
	begin("feedback = off");
	assert_string_equal(high(), "max");
	assert_int_equal(logged("an earlier agent was killed; 1 group of jobs got the original"),
			 1);
}

static void test_no_controller(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/cg/cgroup.controllers", dir);
	put(path, "cpu io\n");
	assert_int_equal(unlink(group_file("memory.high")), 0);
	begin("feedback = on");
	job_reads();
	assert_int_equal(
		logged("only weights are controlled: this kernel has no memory controller"), 1);
	pass(2);
	assert_int_equal(part->jobs[0].state, HAND_NONE);
	put(group_file("memory.high"), "max\n");
}

static void test_json(void **state)
{
	json_t *all, *own, *groups;

	(void)state;
	begin("feedback = on;feedback_max = 0.2;feedback_interval_s = 1;feedback_persist = 1");
	job_reads();
	job_fills(950);
	jobs[1].faults = 5 * jobs[1].cpu_ms;
	pass(3);
	all = feedback_json(part, 0);
	own = feedback_json(part, 8);
	assert_non_null(all);
	assert_non_null(own);
	assert_string_equal(json_string_value(json_object_get(all, "feedback")), "on");
	assert_int_equal(json_array_size(json_object_get(all, "groups")), 2);
	assert_int_equal(json_array_size(json_object_get(own, "groups")), 0);
	groups = json_array_get(json_object_get(all, "groups"), 0);
	assert_string_equal(json_string_value(json_object_get(groups, "state")), "held");
	assert_string_equal(json_string_value(json_object_get(groups, "original")), "max");
	assert_true(json_array_size(json_object_get(all, "steps")) > 0);
	json_decref(all);
	json_decref(own);
}

static void test_settings(void **state)
{
	static const struct {
		const char *keys, *says;
	} wrong[] = {
		{"[iocom]\nfeedback = maybe\n", "expected off, dry-run or on"},
		{"[iocom]\nfeedback_controller = best\n", "expected published, smoothed"},
		{"[iocom]\nfeedback_min = 0.5\nfeedback_max = 0.4\n", "is more than feedback-max"},
		{"[iocom]\npolicy = wal-fc\n", "which is off on this node"},
		{"[iocom]\npolicy = wal-fc\nfeedback = dry-run\n", "only calculates on this node"},
		{"[iocom]\nfeedback_persist = 0\n", "from 1 to"},
	};
	char file[100];
	char *argv[] = {"iocomd", "--config", file, NULL};

	(void)state;
	snprintf(file, sizeof(file), "%s/conf", dir);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct iocom_err err = {0};
		int rc;

		put(file, wrong[i].keys);
		memset(&set, 0, sizeof(set));
		rc = config_load(&settings_program, 3, argv, &set, &err);
		if (!rc)
			rc = settings_complete(&set, &err);
		if (rc >= 0 || !strstr(err.text, wrong[i].says))
			fail_msg("case %zu: %d, %s", i, rc, err.text);
	}
	configure("policy = wal-fc;feedback = on");
	configure("policy = feedback+iocm-re;feedback = on");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_weights),	T(test_weights_at_bound),
		T(test_weights_by_use), T(test_garbage_is_not_learnt),
		T(test_hysteresis),	T(test_bounds),
		T(test_predictive),	T(test_measured_faults),
		T(test_idle),		T(test_gradient),
		T(test_published),	T(test_off),
		T(test_modes),		T(test_after_a_kill),
		T(test_no_controller),	T(test_json),
		T(test_settings),
	};

	return cmocka_run_group_tests_name("feedback", tests, NULL, NULL);
}
