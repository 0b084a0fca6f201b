/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The fluid level compared with the request level: mean slowdowns within 5 % over a grid of kinds
 * and numbers of jobs.  Both levels get the same jobs at the same times.
 */
#include <string.h>

#include "tests/sim/node_driver.h"

#define AGREED 0.05

/* A class of jobs; random values are uniform within SPREAD of the mean. */
struct class
{
	double share;
	double cpu_ms, io_per_ms, requests; /* requests > 0: given number; else by rate */
	double request_kb, request_sd;	    /* sd: share of the mean */
	double memory_mb, faults_per_ms, spread;
};

struct scene {
	const char *name;
	double cores, ram_mb;
	bool faults_away; /* page faults as a pure delay */
	struct class classes[3];
	const uint32_t batches[6];
	double bottleneck_ms; /* a job's mean demand for the busiest resource */
};

#define EACH                                                                                       \
	{                                                                                          \
		1, 2, 3, 5, 10, 30                                                                 \
	}
#define SIZE   .request_kb = 250, .request_sd = 0.2
#define ACCESS (8 + 250.0 / 40)

static const struct scene scenes[] = {
	{.name = "disk-bound",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 1000, .io_per_ms = 0.2, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 200 * ACCESS},
	{.name = "CPU-bound",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 4000, .io_per_ms = 0.02, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 4000},
	{.name = "both",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 2000, .io_per_ms = 0.07, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 2000},
	{.name = "no requests",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 2000, .spread = 1}},
	 .batches = EACH,
	 .bottleneck_ms = 2000},
	{.name = "I/O beside computation",
	 .cores = 1,
	 .classes = {{.share = 0.5, .cpu_ms = 1000, .io_per_ms = 0.2, SIZE},
		     {.share = 0.5, .cpu_ms = 3000}},
	 .batches = EACH,
	 .bottleneck_ms = 2000},
	{.name = "three kinds",
	 .cores = 1,
	 .classes = {{.share = 0.4, .cpu_ms = 1000, .io_per_ms = 0.2, SIZE, .spread = 0.7},
		     {.share = 0.3,
		      .cpu_ms = 3000,
		      .io_per_ms = 0.01,
		      .request_kb = 64,
		      .spread = 0.7},
		     {.share = 0.3,
		      .cpu_ms = 1500,
		      .io_per_ms = 0.08,
		      .request_kb = 500,
		      .request_sd = 0.5,
		      .spread = 0.7}},
	 .batches = EACH,
	 .bottleneck_ms = 0.4 * 200 * ACCESS + 0.3 * 30 * 9.6 + 0.3 * 120 * 20.5},
	{.name = "few requests",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 200, .io_per_ms = 0.025, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 200},
	{.name = "hardly any computation",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 60, .io_per_ms = 2, SIZE, .spread = 0.7}},
	 .batches = EACH,
	 .bottleneck_ms = 120 * ACCESS},
	{.name = "four cores",
	 .cores = 4,
	 .classes = {{.share = 0.7, .cpu_ms = 4000, .io_per_ms = 0.02, SIZE, .spread = 0.7},
		     {.share = 0.3, .cpu_ms = 8000, .spread = 0.7}},
	 .batches = EACH,
	 .bottleneck_ms = 1300},
	{.name = "page faults at the disk",
	 .cores = 1,
	 .ram_mb = 45,
	 .classes = {{.share = 1,
		      .cpu_ms = 800,
		      .io_per_ms = 0.02,
		      SIZE,
		      .memory_mb = 10,
		      .faults_per_ms = 0.05}},
	 .batches = EACH},
	{.name = "page faults away",
	 .cores = 1,
	 .ram_mb = 45,
	 .faults_away = true,
	 .classes = {{.share = 1,
		      .cpu_ms = 1000,
		      .io_per_ms = 0.05,
		      SIZE,
		      .memory_mb = 10,
		      .faults_per_ms = 0.1}},
	 .batches = EACH,
	 .bottleneck_ms = 1000},
	{.name = "accesses by number, alike",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 2000, .requests = 140, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 2000},
	{.name = "accesses by number",
	 .cores = 1,
	 .classes = {{.share = 1, .cpu_ms = 2000, .requests = 140, SIZE, .spread = 0.7}},
	 .batches = EACH,
	 .bottleneck_ms = 2000},
	{.name = "by number, by rate",
	 .cores = 1,
	 .classes = {{.share = 0.5, .cpu_ms = 2000, .requests = 140, SIZE, .spread = 0.7},
		     {.share = 0.5, .cpu_ms = 2000, .io_per_ms = 0.07, SIZE, .spread = 0.7}},
	 .batches = EACH,
	 .bottleneck_ms = 2000},
	{.name = "disk only, many",
	 .cores = 1,
	 .classes = {{.share = 1, .requests = 50, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 50 * ACCESS},
	{.name = "disk only, few",
	 .cores = 1,
	 .classes = {{.share = 1, .requests = 3, SIZE}},
	 .batches = EACH,
	 .bottleneck_ms = 3 * ACCESS},
	{.name = "disk only beside I/O",
	 .cores = 1,
	 .classes = {{.share = 0.5, .requests = 50, SIZE, .spread = 0.7},
		     {.share = 0.5, .cpu_ms = 2000, .io_per_ms = 0.05, SIZE, .spread = 0.7}},
	 .batches = EACH,
	 .bottleneck_ms = 75 * ACCESS},
};

static double spread(struct sim_random *r, double mean, double by)
{
	return by > 0 ? mean * sim_random_between(r, 1 - by, 1 + by) : mean;
}

static const struct class *class_draw(const struct scene *s, struct sim_random *r)
{
	double u = sim_random_uniform(r);
	int k = 0;

	while (k < 2 && u >= s->classes[k].share && s->classes[k + 1].share > 0)
		u -= s->classes[k++].share;
	return &s->classes[k];
}

/* Draws a job of class C; *ALONE_MS is its time alone. */
static struct node_task job_draw(const struct class *c, struct sim_random *r, uint64_t seed,
				 uint32_t i, double *alone_ms)
{
	struct node_task t = {.random = sim_random_stream(seed, 1, i)};
	double requests;

	t.cpu_ms = spread(r, c->cpu_ms, c->spread);
	t.request_kb = spread(r, c->request_kb, c->spread);
	t.request_sd_kb = c->request_sd * t.request_kb;
	t.io_per_ms = spread(r, c->io_per_ms, c->spread);
	t.requests = c->requests > 0 ? floor(spread(r, c->requests, c->spread)) : -1;
	t.memory_mb = c->memory_mb;
	t.faults_per_ms = c->faults_per_ms;
	requests = t.requests >= 0 ? t.requests : t.cpu_ms * t.io_per_ms;
	if (t.requests >= 0 && t.cpu_ms > 0)
		t.io_per_ms = requests / t.cpu_ms;
	*alone_ms = t.cpu_ms + requests * (8 + t.request_kb / 40);
	return t;
}

/* Runs N jobs that start at 0 or arrive as a Poisson stream; returns the sum of the slowdowns. */
static double crowd(const struct scene *s, enum sim_fidelity level, uint32_t n,
		    double interarrival_ms, uint64_t seed)
{
	struct sim_random arrivals = sim_random_stream(seed, 10, 0);
	struct sim_random jobs = sim_random_stream(seed, 11, 0);
	double *came = calloc(n, sizeof(*came)), *alone = calloc(n, sizeof(*alone));
	double sum = 0, at = 0;
	struct bench b;
	uint32_t in = 0, out = 0;

	assert_true(came && alone);
	bench_init(&b);
	b.machine.cores = s->cores;
	b.machine.ram_mb = s->ram_mb;
	b.machine.disk_fixed_ms = 8;
	b.params.switch_ms = 0.1;
	b.params.page_fault_at_disk = !s->faults_away;
	b.params.fidelity = level;
	bench_start(&b, n);
	while (out < n) {
		double next = node_next(b.model, 0);
		const struct node_done *done;
		struct node_done ended[NODE_DONE_MAX];

		if (in < n && at <= next) {
			const struct class *c = class_draw(s, &jobs);

			b.tasks[in] = job_draw(c, &jobs, seed, in, &alone[in]);
			came[in] = at;
			assert_int_equal(node_enter(b.model, 0, in, at), 0);
			node_run(b.model, 0, in, b.tasks[in].cpu_ms, b.tasks[in].requests, at);
			in++;
			if (interarrival_ms > 0)
				at += sim_random_exponential(&arrivals, interarrival_ms);
			continue;
		}
		int count = node_step(b.model, 0, next, &done);

		for (int i = 0; i < count; i++)
			ended[i] = done[i];
		for (int i = 0; i < count; i++) {
			sum += (next - came[ended[i].task]) / alone[ended[i].task];
			node_leave(b.model, 0, ended[i].task, next);
			out++;
		}
	}
	bench_end(&b);
	free(came);
	free(alone);
	return sum;
}

/* Mean slowdowns at both levels; fails if they differ too much. */
static double agree(const struct scene *s, uint32_t n, double interarrival_ms, uint32_t runs,
		    double *difference)
{
	double request = 0, fluid = 0;

	for (uint32_t i = 0; i < runs; i++) {
		request += crowd(s, SIM_REQUEST, n, interarrival_ms, 1000 + i);
		fluid += crowd(s, SIM_FLUID, n, interarrival_ms, 1000 + i);
	}
	*difference = fluid / request - 1;
	return request / (runs * (double)n);
}

static void judge(const struct scene *s, const char *what, double at, double slowdown,
		  double difference, double *worst)
{
	if (fabs(difference) > fabs(*worst))
		*worst = difference;
	if (!(fabs(difference) <= AGREED))
		fail_msg("%s, %s %g: slowdown %.3f at the request level, %+.1f %% at the fluid",
			 s->name, what, at, slowdown, 100 * difference);
}

static void batches_agree(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(scenes) / sizeof(*scenes); k++) {
		double worst = 0, difference, slowdown;

		for (int i = 0; i < 6 && scenes[k].batches[i] > 0; i++) {
			uint32_t n = scenes[k].batches[i], runs = 4 + 160 / n;

			slowdown = agree(&scenes[k], n, 0, runs, &difference);
			judge(&scenes[k], "a batch of", n, slowdown, difference, &worst);
		}
		printf("# | %-28s batches of up to 30: within %+.1f %%\n", scenes[k].name,
		       100 * worst);
	}
}

static void streams_agree(void **state)
{
	static const double busy[] = {0.4, 0.75};

	(void)state;
	for (size_t k = 0; k < sizeof(scenes) / sizeof(*scenes); k++) {
		double worst = 0, difference, slowdown;

		if (!(scenes[k].bottleneck_ms > 0))
			continue;
		for (int i = 0; i < 2; i++) {
			slowdown = agree(&scenes[k], 2000, scenes[k].bottleneck_ms / busy[i], 2,
					 &difference);
			judge(&scenes[k], "utilisation", busy[i], slowdown, difference, &worst);
		}
		printf("# | %-28s streams of up to 75 %%: within %+.1f %%\n", scenes[k].name,
		       100 * worst);
	}
}

/* More jobs take more time. */
static void slowdown_grows_with_the_batch(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(scenes) / sizeof(*scenes); k++) {
		double last = 0;

		for (uint32_t n = 1; n <= 40; n += n < 8 ? 1 : 8) {
			double sum = 0;

			for (uint32_t i = 0; i < 40; i++)
				sum += crowd(&scenes[k], SIM_FLUID, n, 0, i);
			sum /= 40 * n;
			/* With spare cores only the random draws differ. */
			if (!(sum > last * (n > scenes[k].cores ? 1 : 0.97)))
				fail_msg("%s: %u jobs %.4f, fewer %.4f", scenes[k].name, n, sum,
					 last);
			last = sum;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_agree),
		cmocka_unit_test(streams_agree),
		cmocka_unit_test(slowdown_grows_with_the_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
