/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The speed of the simulator with policies: events per second and bytes by cluster size, the gain
 * of a second thread, the largest run, and the same work in SimGrid.
 *
 * Usage: bench_sim [speed] [threads] [size] [simgrid]     (default: all but size)
 *
 * Rates are per second of processor time of one thread, so that other work on the machine counts
 * little; the gain of threads shows only on the clock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "sim/run.h"
#include "tests/bench/simgrid_work.h"

#define PAIRS 5 /* odd, so that there is a middle pair */

struct cost {
	double seconds, processor_s;
};

static double clock_s(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak_mb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1e3;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_sim: %s\n", what);
	exit(1);
}

/* Jobs that compute for a second and read 50 times, with unequally busy homes. */
static struct workload *mix_new(uint32_t nodes, uint64_t jobs)
{
	struct generator_params g;
	struct iocom_err err;
	struct workload *w;

	generator_params_default(&g);
	g.nodes = nodes;
	g.jobs = jobs;
	g.interarrival_ms = 3000.0 / nodes;
	g.lifetime_mean_ms = 1000;
	g.home_skew = 0.1;
	g.kind[0].io_per_ms = 0.05;
	g.kind[0].io_uniform = true;
	g.kind[0].reaccess = 0;
	w = generator_new(&g, &err);
	if (w == NULL)
		die(err.text);
	return w;
}

static void cluster_init(struct sim_cluster *c, uint32_t nodes)
{
	struct iocom_err err;
	char text[32];

	snprintf(text, sizeof(text), "%uxfc", nodes);
	if (sim_cluster_parse(c, text, &err) < 0)
		die(err.text);
}

static struct cost run(struct sim_run *r, struct sim_result *result)
{
	struct iocom_err err;
	struct cost cost = {clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_PROCESS_CPUTIME_ID)};

	if (sim_run(r, result, &err) < 0)
		die(err.text);
	cost.seconds = clock_s(CLOCK_MONOTONIC) - cost.seconds;
	cost.processor_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cost.processor_s;
	return cost;
}

static struct cost run_mix(uint32_t nodes, uint64_t jobs, const struct sim_params *p,
			   struct sim_result *result)
{
	struct sim_cluster cluster;
	struct sim_run r = {.cluster = &cluster,
			    .workload = mix_new(nodes, jobs),
			    .policy = "iocm-re",
			    .params = p};
	struct cost cost;

	cluster_init(&cluster, nodes);
	cost = run(&r, result);
	workload_free(r.workload);
	sim_cluster_free(&cluster);
	return cost;
}

static void speed_row(uint32_t nodes, enum sim_fidelity fidelity, double period_ms)
{
	uint64_t jobs = (fidelity == SIM_FLUID ? 100000u : 20000u) + 2 * nodes;
	struct sim_result r;
	struct sim_params p;
	struct cost cost;

	sim_params_default(&p);
	p.fidelity = fidelity;
	p.information_period_ms = period_ms;
	cost = run_mix(nodes, jobs, &p, &r);
	printf("%8u  %-8s %7.0f %9.2f %9.1f %9.0f %10.0f %8.0f %8.2f %7.2f\n", nodes,
	       fidelity == SIM_FLUID ? "fluid" : "request", period_ms,
	       (double)r.events / cost.processor_s / 1e6, cost.processor_s / (double)r.events * 1e9,
	       cost.processor_s / (double)jobs * 1e9, (double)jobs / cost.processor_s,
	       (double)r.bytes_peak / nodes, cost.processor_s, r.slowdown.mean);
	fflush(stdout);
	sim_result_free(&r);
}

static void bench_speed(void)
{
	static const uint32_t sizes[] = {1000, 10000, 100000};

	printf("policy iocm-re, every decision counted; bytes: nodes with their tasks and jobs\n");
	printf("   nodes  fidelity  period  Mevents/s  ns/event   ns/job     jobs/s   B/node  "
	       "seconds slowdown\n");
	for (int f = 0; f < 2; f++)
		for (int period = 1; period >= 0; period--)
			for (int i = 0; i < 3; i++)
				speed_row(sizes[i], f ? SIM_FLUID : SIM_REQUEST, 1000 * period);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void threads_row(uint32_t nodes, enum sim_fidelity fidelity, uint64_t jobs)
{
	double one[PAIRS] = {0}, two[PAIRS] = {0}, processor_s[2] = {0};
	struct sim_params p;

	sim_params_default(&p);
	p.fidelity = fidelity;
	p.information_period_ms = 1000;
	for (int i = 0; i < PAIRS; i++) {
		for (uint32_t threads = 1; threads <= 2; threads++) {
			struct sim_result r;
			struct cost cost;

			p.threads = threads;
			cost = run_mix(nodes, jobs, &p, &r);
			(threads == 1 ? one : two)[i] = cost.seconds;
			processor_s[threads - 1] += cost.processor_s;
			sim_result_free(&r);
		}
	}
	qsort(one, PAIRS, sizeof(one[0]), by_value);
	qsort(two, PAIRS, sizeof(two[0]), by_value);
	printf("%8u  %-8s %8.3f %9.3f %7.2f %14.2f %9.2f\n", nodes,
	       fidelity == SIM_FLUID ? "fluid" : "request", one[PAIRS / 2], two[PAIRS / 2],
	       one[PAIRS / 2] / two[PAIRS / 2], one[0] / two[0],
	       2 * processor_s[0] / processor_s[1]);
	fflush(stdout);
}

static void bench_threads(void)
{
	printf("period 1 s, median seconds of %d interleaved pairs; at best: the gain that\n"
	       "the processor time allows if both cores are free and the halves equal\n",
	       PAIRS);
	printf("   nodes  fidelity 1 thread 2 threads    gain  best of each   at best\n");
	threads_row(10000, SIM_REQUEST, 40000);
	threads_row(100000, SIM_REQUEST, 100000);
	threads_row(10000, SIM_FLUID, 300000);
	threads_row(100000, SIM_FLUID, 500000);
}

static void bench_size(void)
{
	struct sim_result r;
	struct sim_params p;
	struct cost cost;

	sim_params_default(&p);
	p.fidelity = SIM_FLUID;
	p.information_period_ms = 1000;
	cost = run_mix(100000, 10000000, &p, &r);
	printf("100000 nodes, %llu jobs, fluid, period 1 s, one thread: %.1f s (processor %.1f s), "
	       "resident set %.0f MB\n",
	       (unsigned long long)r.completed, cost.seconds, cost.processor_s, peak_mb());
	sim_result_free(&r);
}

/* --- SimGrid ---------------------------------------------------------------------- */

struct stream {
	struct work work;
	uint64_t k, jobs;
};

static int stream_next(void *state, struct sim_job *job, struct iocom_err *err)
{
	struct stream *s = state;
	struct work_job j;

	(void)err;
	if (s->k == s->jobs)
		return 0;
	j = work_next(&s->work);
	*job = (struct sim_job){.id = s->k++,
				.arrival_ms = j.arrival_ms,
				.home = j.home,
				.tasks = 1,
				.cpu_ms = j.cpu_ms,
				.request_kb = 250,
				.requests = WORK_READS};
	return 1;
}

static int stream_rewind(void *state, struct iocom_err *err)
{
	(void)state, (void)err;
	return 0;
}

static struct cost run_stream(uint32_t nodes, uint64_t jobs, const char *policy,
			      struct sim_result *result)
{
	static const struct workload_ops ops = {stream_next, stream_rewind, free};
	const struct workload_info info = {.synthetic = ""};
	struct stream *s = calloc(1, sizeof(*s));
	struct sim_cluster cluster;
	struct sim_params p;
	struct sim_run r = {.cluster = &cluster, .policy = policy, .params = &p};
	struct cost cost;

	if (s == NULL)
		die("out of memory");
	*s = (struct stream){.work = {.state = 1, .nodes = nodes}, .jobs = jobs};
	r.workload = workload_new(&ops, s, &info);
	if (r.workload == NULL)
		die("out of memory");
	sim_params_default(&p);
	p.switch_ms = 0;
	p.information_period_ms = 1000;
	cluster_init(&cluster, nodes);
	cost = run(&r, result);
	workload_free(r.workload);
	sim_cluster_free(&cluster);
	return cost;
}

/* Returns 0 if the program beside this one did the work. */
static int run_simgrid(const char *self, uint32_t nodes, uint64_t jobs, struct cost *cost,
		       double *activities, double *turnaround_ms)
{
	const char *slash = strrchr(self, '/');
	char command[4096];
	FILE *pipe;
	int n;

	n = snprintf(command, sizeof(command), "%.*sbench_simgrid",
		     slash ? (int)(slash - self + 1) : 0, self);
	if (access(command, X_OK) < 0)
		return -1;
	snprintf(command + n, sizeof(command) - (size_t)n, " %u %llu --log=root.thres:error", nodes,
		 (unsigned long long)jobs);
	pipe = popen(command, "r");
	if (pipe == NULL)
		return -1;
	n = fscanf(pipe, "%lf %lf %lf %lf", activities, &cost->seconds, &cost->processor_s,
		   turnaround_ms);
	return pclose(pipe) == 0 && n == 4 ? 0 : -1;
}

static void simgrid_rows(const char *self, uint32_t nodes, uint64_t jobs)
{
	static const char *const policies[] = {"nlb", "iocm-re"};
	struct cost other, cost;
	struct sim_result r;
	double activities, turnaround_ms;

	if (run_simgrid(self, nodes, jobs, &other, &activities, &turnaround_ms) < 0) {
		printf("skipped: bench_simgrid was not built (libsimgrid-dev) or failed\n");
		return;
	}
	printf("%8u  %-20s %8.3f %10.0f %10.0f %10.0f\n", nodes, "SimGrid, no policy",
	       other.processor_s, (double)jobs / other.processor_s, activities / other.processor_s,
	       turnaround_ms);
	for (int i = 0; i < 2; i++) {
		cost = run_stream(nodes, jobs, policies[i], &r);
		printf("%8u  iocom-sim, %-9s %8.3f %10.0f %10.0f %10.0f   %.1f x\n", nodes,
		       policies[i], cost.processor_s, (double)jobs / cost.processor_s,
		       activities / cost.processor_s, r.turnaround_ms.mean,
		       other.processor_s / cost.processor_s);
		sim_result_free(&r);
	}
	fflush(stdout);
}

static void bench_simgrid(const char *self)
{
	printf("the same work: jobs of 6 bursts and 5 reads, request level, period 1 s; here the\n"
	       "disk serves in turn and set-up counts, there it serves all at once, and only\n"
	       "running counts\n");
	printf("   nodes  simulator             seconds     jobs/s activities/s  turn-around ms\n");
	simgrid_rows(self, 1000, 40000);
	simgrid_rows(self, 10000, 40000);
}

static bool asked(int argc, char **argv, const char *name, bool otherwise)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1 && otherwise;
}

int main(int argc, char **argv)
{
	if (asked(argc, argv, "speed", true))
		bench_speed();
	if (asked(argc, argv, "threads", true))
		bench_threads();
	if (asked(argc, argv, "simgrid", true))
		bench_simgrid(argv[0]);
	if (asked(argc, argv, "size", false))
		bench_size();
	return 0;
}
