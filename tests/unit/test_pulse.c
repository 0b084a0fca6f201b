/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The pulse on a virtual clock: how often the monitor is looked at and read, who is told in which
 * order, and when a change is worth a vector of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs/journal.h"
#include "agent/measure/pulse.h"
#include "user/clock.h"

#define PERIOD_MS 1000
#define MS	  CLOCK_NS_PER_MS
#define FACT	  "disk_mb_per_s"

static struct settings set;
static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set, .boot_id = 7};

/*
 * The log of events, one letter each: l look, r reading, R failed reading, c closes, p published, t
 * told.
 */
static char trace[4096];
static unsigned looks, readings, hosts, published;
static bool resting; /* as the monitor was told */
static bool fails;
static double run_queue, memory_mb;
static uint64_t mb_a_reading; /* what the disk delivers, always busy */
static struct iocom_disk disk;
static struct iocom_job_load load; /* of all that runs; OTHER_CPU_NS of it are not of jobs */
static uint64_t other_cpu_ns;
static struct pulse pulse;

static void note(char what)
{
	size_t n = strlen(trace);

	if (n + 1 < sizeof(trace)) {
		trace[n] = what;
		trace[n + 1] = 0;
	}
}

/* --- the ports ---------------------------------------------------------------- */

static int read_sample(void *arg, struct monitor_sample *sample, struct iocom_err *err)
{
	static uint64_t before;
	uint64_t now = loop_boot_ns(base.loop);

	(void)arg;
	readings++;
	if (fails)
		return iocom_err_set(err, -EIO, "no reading");
	disk.requests += mb_a_reading;
	disk.read_bytes += mb_a_reading * 1000000;
	disk.service_sum_ns += mb_a_reading ? now - before : 0;
	*sample = (struct monitor_sample){
		.boot_ns = now,
		.time_ns = loop_real_ns(base.loop),
		.elapsed_ns = before && now > before ? now - before : 0,
		.disks = &disk,
		.ndisks = 1,
		.jobs = &load,
		.njobs = 1,
	};
	before = now;
	return 0;
}

static void rest(void *arg, bool now)
{
	(void)arg;
	resting = now;
}

static int look(void *arg, struct iocom_err *err)
{
	(void)arg;
	(void)err;
	looks++;
	note('l');
	return 0;
}

static int read_host(void *arg, struct host_reading *reading, struct iocom_err *err)
{
	(void)arg;
	(void)err;
	hosts++;
	*reading = (struct host_reading){
		.memory_mb = memory_mb, .used_mb = 10, .cores = 2, .core_share = 1};
	return 0;
}

static void jobs_sampled_(void *arg, const struct monitor_sample *sample,
			  struct vector_jobs_did *all)
{
	(void)arg;
	for (size_t i = 0; i < sample->njobs; i++)
		iocom_load_add(&all->running.delta, &sample->jobs[i].delta);
	all->running.delta.cpu_ns -= other_cpu_ns;
}

static void jobs_period_(void *arg, double elapsed_ms)
{
	(void)arg;
	(void)elapsed_ms;
}

static struct vector_job *jobs_vector_(void *arg, size_t *n)
{
	struct vector_job *job = calloc(1, sizeof(*job));

	(void)arg;
	*n = run_queue > 0;
	job->cpu_share = run_queue;
	job->declared_mb = run_queue * 100;
	return job;
}

static void publish(void *arg, const struct iocom_vector *own, uint64_t now_ns)
{
	(void)arg;
	assert_int_equal(own->sequence, pulse.sequence);
	assert_int_equal(now_ns, loop_boot_ns(base.loop));
	published++;
	note('p');
}

static void sampled(void *arg, const struct monitor_sample *sample)
{
	(void)arg;
	note(sample ? 'r' : 'R');
}

static void closes(void *arg)
{
	(void)arg;
	note('c');
}

static void told(void *arg)
{
	(void)arg;
	note('t');
}

static struct pulse_watch first = {.sampled = sampled, .closes = closes, .told = told};
static struct pulse_watch second = {.told = told};

static int setup(void **state)
{
	static const struct pulse_jobs jobs = {NULL, jobs_sampled_, jobs_period_, jobs_vector_};
	struct pulse_config config = {
		.base = &base,
		.source = {NULL, read_sample, look, read_host, rest},
		.uptime_fd = -1,
		.publish = publish,
	};

	(void)state;
	if (loop_new_virtual(&base.loop, 100000 * CLOCK_NS_PER_S, 1, NULL) ||
	    journal_open(&config.journal, ":memory:", NULL))
		return -1;
	log_.level = LOG_L_ERROR - 1; /* the monitor reports nothing */
	set = (struct settings){
		.name = "n1", .period_s = PERIOD_MS / 1e3, .sensitivity = 0.25, .cpu_speed = 1};
	counters = (struct counters){0};
	looks = readings = hosts = published = 0;
	fails = resting = false;
	run_queue = 0;
	mb_a_reading = 0;
	load = (struct iocom_job_load){.delta.cpu_ns = PERIOD_MS / 10 * MS};
	other_cpu_ns = 0;
	disk = (struct iocom_disk){.name = "sda", .major = 8};
	memory_mb = 1000;
	trace[0] = 0;
	pulse_init(&pulse, &config);
	pulse_set_jobs(&pulse, &jobs);
	pulse_watch(&pulse, &first);
	pulse_watch(&pulse, &second);
	return pulse_start(&pulse, NULL);
}

static int teardown(void **state)
{
	(void)state;
	loop_cancel(base.loop, &pulse.tick);
	loop_cancel(base.loop, &pulse.notice);
	journal_close(pulse.config.journal);
	pulse_fini(&pulse);
	loop_free(base.loop);
	return 0;
}

static void pass_ms(unsigned ms)
{
	loop_advance(base.loop, ms * MS);
}

/* --- cases --------------------------------------------------------------------- */

static void test_a_period(void **state)
{
	(void)state;
	/* published at once, so that the other nodes hear of this node */
	assert_string_equal(trace, "rptt");
	trace[0] = 0;
	pass_ms(PERIOD_MS);
	assert_string_equal(trace, "lllrcptt");
	pass_ms(2 * PERIOD_MS);
	assert_string_equal(trace, "lllrcpttlllrcpttlllrcptt");
	assert_int_equal(pulse.sequence, 4);
	assert_int_equal(pulse.own.sequence, 4);
	assert_int_equal(pulse.own.boot_id, 7);
}

/* A node at rest is looked at once a period, until something changes. */
static void test_rest(void **state)
{
	(void)state;
	load.delta.cpu_ns = PERIOD_MS / 25 * MS;
	trace[0] = 0;
	pass_ms(2 * PERIOD_MS);
	assert_string_equal(trace, "lllrcpttrcptt"); /* the first period does not know yet */
	assert_true(resting);
	pass_ms(PERIOD_MS / 4 + 10);
	assert_int_equal(pulse_ends_ns(&pulse) - loop_boot_ns(base.loop),
			 (PERIOD_MS * 3 / 4 - 10) * MS);
	trace[0] = 0;
	pulse_changed(&pulse);
	assert_false(resting);
	assert_int_equal(pulse_ends_ns(&pulse) - loop_boot_ns(base.loop),
			 (PERIOD_MS * 3 / 4 - 10) * MS);
	pass_ms(PERIOD_MS * 3 / 4 - 10);
	assert_string_equal(trace, "llrcptt");
	pass_ms(PERIOD_MS - 10);
	pulse_changed(&pulse); /* in the last quarter */
	trace[0] = 0;
	pass_ms(10);
	assert_string_equal(trace, "rcptt");
	load.delta.cpu_ns = PERIOD_MS / 10 * MS;
	pass_ms(PERIOD_MS);
	trace[0] = 0;
	pass_ms(PERIOD_MS);
	assert_string_equal(trace, "lllrcptt");
}

/* Looks come at quarters of the period, even if the loop was late for one of them. */
static void test_no_drift(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++)
		pass_ms(10);
	assert_int_equal(looks, 12);
	assert_int_equal(readings, 1 + 4);
	/* After a suspend the pulse goes on and does not repeat the periods that it missed. */
	looks = readings = 0;
	/* as if the tick had been due an hour ago */
	pulse.tick.due_ns -= 3600 * CLOCK_NS_PER_S;
	pass_ms(PERIOD_MS);
	assert_in_range(looks + readings, 4, 6);
}

static void test_failing_reading(void **state)
{
	(void)state;
	fails = true;
	trace[0] = 0;
	pass_ms(PERIOD_MS);
	assert_string_equal(trace, "lllRcptt"); /* the watchers get the vector all the same */
	assert_int_equal(counters.sample_failures, 1);
	assert_false(pulse.has_last);
	fails = false;
	pass_ms(PERIOD_MS);
	assert_true(pulse.has_last);
	assert_int_equal(counters.sample_failures, 1);
}

/* What the jobs do counts by their needs, so that only the rest is somebody else's. */
static void test_jobs_part(void **state)
{
	(void)state;
	load.delta.cpu_ns = 900 * MS;
	other_cpu_ns = 200 * MS;
	for (int i = 0; i < 100; i++)
		pass_ms(PERIOD_MS);
	assert_true(fabs(pulse.own.cpu_sharers - 0.2) < 1e-3);
	assert_true(fabs(pulse.own.cpu_left_ms - 0.2 * VECTOR_FOREIGN_MS) < 10);
}

/* A change is told within 100 ms, a burst of changes once, and nothing where nothing changed. */
static void test_changes(void **state)
{
	unsigned before = published;

	(void)state;
	pass_ms(300);
	pulse_changed(&pulse);
	pass_ms(1);
	assert_int_equal(published, before); /* the difference is too small to publish */
	run_queue = 1;
	pulse_changed(&pulse);
	pass_ms(1);
	assert_int_equal(published, before + 1);
	for (int i = 0; i < 50; i++) {
		run_queue = 2 + i;
		pulse_changed(&pulse);
		pass_ms(1);
	}
	assert_int_equal(published, before + 1);
	pass_ms(60);
	assert_int_equal(published, before + 2);
}

/* A burst of questions reads the host's memory once in 20 ms. */
static void test_host_is_kept(void **state)
{
	struct iocom_vector v;
	unsigned before = hosts;

	(void)state;
	pass_ms(30);
	for (int i = 0; i < 100; i++)
		pulse_own_vector(&pulse, &v);
	assert_int_equal(hosts, before + 1);
	pass_ms(21);
	memory_mb = 2000;
	pulse_own_vector(&pulse, &v);
	assert_int_equal(hosts, before + 2);
	assert_true(v.memory_mb > 1999);
	/* a vector that is not published gets no number of its own */
	assert_int_equal(v.sequence, pulse.sequence);
}

static void test_learned_speed(void **state)
{
	(void)state;
	pass_ms(PERIOD_MS);
	assert_true(journal_fact(pulse.config.journal, FACT) ==
		    0); /* an idle disk teaches nothing */
	mb_a_reading = 100;
	pass_ms(PERIOD_MS);
	assert_float_equal(journal_fact(pulse.config.journal, FACT), 100, 1);
	mb_a_reading = 103; /* the change is too small to be written */
	pass_ms(PERIOD_MS);
	assert_float_equal(journal_fact(pulse.config.journal, FACT), 100, 1);
	mb_a_reading = 200;
	pass_ms(PERIOD_MS);
	assert_float_equal(journal_fact(pulse.config.journal, FACT), 200, 1);
	assert_int_equal(counters.journal_failures, 0);
}

/* The next agent starts from what this one learned; a journal that fails is counted. */
static void test_learned_speed_is_kept(void **state)
{
	(void)state;
	assert_int_equal(journal_set_fact(pulse.config.journal, FACT, 77), 0);
	assert_int_equal(pulse_start(&pulse, NULL), 0);
	assert_float_equal(pulse.measured.learned_mb_per_s, 77, 0.1);
	assert_float_equal(pulse.own.disk_mb_per_s, 77, 0.1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_period),
		CASE(test_rest),
		CASE(test_no_drift),
		CASE(test_failing_reading),
		CASE(test_jobs_part),
		CASE(test_changes),
		CASE(test_host_is_kept),
		CASE(test_learned_speed),
		CASE(test_learned_speed_is_kept),
	};

	return cmocka_run_group_tests_name("pulse", tests, NULL, NULL);
}
