/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Metrics and the network part, which is this test at the other end of the gate: it wants pages,
 * gets files, counts requests, and ends and comes again.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/exposition.h"
#include "tests/lib/logged.h"
#include "agent/metrics/metrics.h"
#include "user/clock.h"

#define PATIENCE_NS (20 * CLOCK_NS_PER_S)
#define LISTENER    0 /* some descriptor */

struct fixture {
	struct loop *loop;
	struct logger log;
	struct counters counters;
	struct settings set;
	struct base base;
	struct pulse pulse;
	struct net_part *net;
	struct metrics *metrics;
	struct loop_timer patience, look;
	/* The network part. */
	struct gate *gate;
	int end; /* its end of the gate */
	unsigned starts, pages, until;
	char *text; /* of the last page */
	size_t length;
};

/* --- the network part ------------------------------------------------------------------- */

static void net_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			 const int *fds)
{
	struct fixture *f = arg;
	struct stat st;

	(void)tail;
	(void)n;
	if (m->type == GATE_PAGE) {
		assert_int_equal(fstat(fds[0], &st), 0);
		free(f->text);
		f->length = (size_t)st.st_size;
		f->text = calloc(1, f->length + 1);
		assert_int_equal(pread(fds[0], f->text, f->length, 0), f->length);
		if (++f->pages >= f->until)
			loop_stop(f->loop);
	}
	for (size_t i = 0; i < gate_fds_of(m); i++)
		close(fds[i]);
}

static void net_broken(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static void say(struct fixture *f, const struct gate_message *m)
{
	assert_int_equal(gate_send(f->gate, m, NULL, 0, NULL), 0);
}

static int net_start(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	struct fixture *f = arg;
	const struct gate_message ready = {.type = GATE_READY};
	const struct gate_config config = {.loop = f->loop,
					   .side = GATE_TO_NET,
					   .fd = dup(fd),
					   .received = net_received,
					   .broken = net_broken,
					   .arg = f};

	*pidfd = -1;
	f->end = config.fd;
	f->starts++;
	gate_free(f->gate);
	f->gate = NULL;
	assert_int_equal(gate_new(&f->gate, &config, err), 0);
	say(f, &ready);
	return 0;
}

static void want(struct fixture *f)
{
	const struct gate_message m = {.type = GATE_WANT_PAGE};

	say(f, &m);
}

static void count(struct fixture *f, uint64_t answered, uint64_t refused, uint64_t cut)
{
	const struct gate_message m = {
		.type = GATE_COUNTS,
		.counts = {.pages_answered = answered, .pages_refused = refused, .pages_cut = cut}};

	say(f, &m);
}

/* --- the agent -------------------------------------------------------------------------- */

static void waited_too_long(void *arg)
{
	(void)arg;
	fail_msg("nothing came");
}

static void look_again(void *arg)
{
	struct fixture *f = arg;

	loop_stop(f->loop);
}

static void run_for(struct fixture *f, uint64_t ns)
{
	f->look = (struct loop_timer){.fire = look_again, .arg = f};
	loop_start(f->loop, &f->look, ns);
	assert_int_equal(loop_run(f->loop), 0);
	loop_cancel(f->loop, &f->look);
}

/* Waits until N pages came in all. */
static void until_pages(struct fixture *f, unsigned n)
{
	f->until = n;
	f->patience = (struct loop_timer){.fire = waited_too_long};
	if (f->pages < n) {
		loop_start(f->loop, &f->patience, PATIENCE_NS);
		assert_int_equal(loop_run(f->loop), 0);
		loop_cancel(f->loop, &f->patience);
	}
	f->until = UINT32_MAX;
	assert_int_equal(f->pages, n);
}

static size_t no_limits(void *arg, struct limit out[LIMITS_LISTED])
{
	(void)arg;
	(void)out;
	return 0;
}

static int whose_job(void *arg, uint64_t cgroup_id, const char **job, uid_t *uid)
{
	(void)arg;
	(void)uid;
	*job = "j1";
	return cgroup_id == 7 ? 0 : -ENOENT;
}

static uint64_t no_charges(void *arg)
{
	(void)arg;
	return 5;
}

static size_t no_predictions(void *arg, struct prediction *out)
{
	(void)arg;
	(void)out;
	return 0;
}

/* A period with one reading. */
static void period(struct fixture *f, uint64_t time_ns)
{
	struct iocom_job_load row = {.cgroup_id = 7, .tasks = 1};
	struct monitor_sample sample = {.time_ns = time_ns, .jobs = &row, .njobs = 1};
	const struct pulse_watch *w = f->pulse.watches;

	row.delta.cpu_ns = 1000000000;
	w->sampled(w->arg, &sample);
	w->told(w->arg);
}

static void assert_shows(const struct fixture *f, const char *series, double value)
{
	char why[EXPOSITION_WHY];

	if (!exposition_check(f->text, why))
		fail_msg("%s", why);
	if (exposition_value(f->text, series) != value)
		fail_msg("%s is %g, not %g", series, exposition_value(f->text, series), value);
}

static int begin(struct fixture *f, struct iocom_err *err)
{
	const struct metrics_config config = {.base = &f->base,
					      .pulse = &f->pulse,
					      .net = f->net,
					      .ports = {.arg = f,
							.limits = no_limits,
							.whose = whose_job,
							.charges_lost = no_charges,
							.predictions = no_predictions}};

	return metrics_new(&f->metrics, &config, err);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct net_part_config config = {.base = &f->base,
					 .setup = {.http = true},
					 .streams = -1,
					 .http = LISTENER,
					 .start = {.start = net_start, .arg = f}};
	struct iocom_err err = {0};

	*state = f;
	f->until = UINT32_MAX;
	f->pulse.last_watch = &f->pulse.watches;
	strcpy(f->set.metrics.address, "127.0.0.1");
	f->set.metrics_max_jobs = 4;
	if (logged_begin(&f->log) || loop_new(&f->loop, &err))
		return -1;
	f->base = (struct base){
		.loop = f->loop, .log = &f->log, .counters = &f->counters, .set = &f->set};
	strcpy(f->pulse.own.name, "n1");
	return net_part_new(&f->net, &config, &err) ? -1 : begin(f, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	metrics_free(f->metrics);
	net_part_free(f->net);
	gate_free(f->gate);
	loop_free(f->loop);
	logged_end();
	free(f->text);
	free(f);
	return 0;
}

static void test_wanted(void **state)
{
	struct fixture *f = *state;

	want(f);
	until_pages(f, 1);
	assert_int_equal(f->length, 0); /* no reading yet */
	period(f, 1000000000);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	assert_int_equal(f->pages, 1); /* nobody wants it */
	want(f);
	until_pages(f, 2);
	assert_shows(f, "iocom_reading_time_seconds{node=\"n1\"}", 1);
	assert_shows(f, "iocom_agent_events_total{node=\"n1\",event=\"charges_lost\"}", 5);
	assert_shows(f, "iocom_job_tasks{node=\"n1\",job_name=\"j1\"}", 1);
}

/* A reading that failed makes no page. */
static void test_no_reading_in_a_period(void **state)
{
	struct fixture *f = *state;
	const struct pulse_watch *w = f->pulse.watches;

	w->sampled(w->arg, NULL);
	w->told(w->arg);
	want(f);
	until_pages(f, 1);
	assert_int_equal(f->length, 0);
}

/* What was counted by parts that have ended counts on. */
static void test_served_over_restarts(void **state)
{
	static const char *const outcomes[] = {"answered", "refused", "cut"};
	struct fixture *f = *state;
	char series[100];

	count(f, 10, 20, 30);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	period(f, 1000000000);
	count(f, 5, 25, 30); /* one that went back is not believed */
	run_for(f, 20 * CLOCK_NS_PER_MS);
	period(f, 2000000000);
	gate_free(f->gate);
	f->gate = NULL;
	while (f->starts < 2)
		run_for(f, 20 * CLOCK_NS_PER_MS);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	count(f, 100, 100, 100);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	period(f, 3000000000);
	want(f);
	until_pages(f, 1);
	for (size_t i = 0; i < 3; i++) {
		snprintf(series, sizeof(series),
			 "iocom_metrics_requests_total{node=\"n1\",outcome=\"%s\"}", outcomes[i]);
		assert_shows(f, series, (const double[]){110, 125, 130}[i]);
	}
}

/* It ends while the text is made: the next one gets what it wants. */
static void test_down_meanwhile(void **state)
{
	struct fixture *f = *state;

	period(f, 1000000000);
	want(f);
	gate_free(f->gate);
	f->gate = NULL;
	while (f->starts < 2)
		run_for(f, 20 * CLOCK_NS_PER_MS);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	f->pages = 0;
	want(f);
	until_pages(f, 1);
	assert_shows(f, "iocom_reading_time_seconds{node=\"n1\"}", 1);
	assert_int_equal(logged("cannot give the page"), 0);
}

/* There are no metrics any more, but the network part still wants them. */
static void test_wanted_after_the_end(void **state)
{
	struct fixture *f = *state;

	period(f, 1000000000);
	metrics_free(f->metrics);
	f->metrics = NULL;
	for (int i = 0; i < 10; i++)
		want(f);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	assert_int_equal(f->pages, 0);
	assert_int_equal(f->starts, 1);
}

/* A part that wants without end and reads nothing costs root few descriptors. */
static void test_wanted_and_not_read(void **state)
{
	struct fixture *f = *state;
	const uint8_t packet[GATE_HEAD + sizeof(struct gate_id)] = {GATE_WANT_PAGE};
	struct stat before, after;
	unsigned sent = 0;
	int end = dup(f->end);

	period(f, 1000000000);
	want(f);
	until_pages(f, 1);
	gate_free(f->gate); /* the other end stays open, and nobody reads there */
	f->gate = NULL;
	assert_int_equal(stat("/proc/self/fd", &before), 0);
	while (sent < 20000) {
		while (send(end, packet, sizeof(packet), MSG_DONTWAIT) > 0)
			sent++;
		run_for(f, CLOCK_NS_PER_MS);
	}
	assert_int_equal(stat("/proc/self/fd", &after), 0);
	assert_true(after.st_size <= before.st_size + 64); /* before Linux 6.2 both are 0 */
	assert_int_equal(f->starts, 1);
	assert_true(logged("cannot give the page") > 0);
	close(end);
}

static void test_not_configured(void **state)
{
	struct fixture *f = *state;
	struct iocom_err err = {0};

	metrics_free(f->metrics);
	f->set.metrics.address[0] = 0;
	assert_int_equal(begin(f, &err), 0);
	assert_null(f->metrics);
	want(f);
	run_for(f, 20 * CLOCK_NS_PER_MS);
	assert_int_equal(f->pages, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_reading_in_a_period, setup, teardown),
		cmocka_unit_test_setup_teardown(test_served_over_restarts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_down_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wanted_after_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wanted_and_not_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_configured, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
