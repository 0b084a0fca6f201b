/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parts of process traces; see process_trace.h. */
#include "sim/workload/process_trace.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

#define RUN_JOBS_MAX 100000000 /* jobs of one run */
#define ROUNDS	     200       /* halvings of an interval; far more than a double has bits */

struct trace_run {
	struct sim_process *v;
	size_t n, room;
	int32_t number;
	uint32_t hosts;
};

struct trace_file {
	struct trace_file *next;
	char *path;
	char hash[72];
	struct trace_run runs[WORKLOAD_RUNS_MAX];
	uint32_t nruns;
};

/* All traces read so far; files stay until the program ends. */
static struct {
	pthread_mutex_t lock;
	struct trace_file *first;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- reading ------------------------------------------------------------------------- */

static void trace_file_free(struct trace_file *f)
{
	for (uint32_t i = 0; i < WORKLOAD_RUNS_MAX; i++)
		free(f->runs[i].v);
	free(f->path);
	free(f);
}

static int trace_add(struct trace_run *run, const struct sim_job *job)
{
	if (run->n >= RUN_JOBS_MAX)
		return -EFBIG;
	if (array_reserve(run->v, run->room, run->n + 1, 4096))
		return -ENOMEM;
	run->v[run->n++] = (struct sim_process){
		.arrival_ms = job->arrival_ms,
		.cpu_ms = job->cpu_ms * job->tasks,
		.host = job->home,
	};
	if (job->home + 1 > run->hosts)
		run->hosts = job->home + 1;
	return 0;
}

/* Reads run NUMBER (-1: the first) into RUN; INFO gets what the trace says of itself. */
static int trace_read_run(const char *path, int32_t number, struct trace_run *run,
			  struct workload_info *info, struct iocom_err *err)
{
	struct workload_options options;
	struct workload *w;
	struct sim_job job;
	int ret;

	workload_options_default(&options);
	options.run = number;
	w = workload_open(path, &options, err);
	if (!w)
		return -EINVAL;
	*info = *workload_info(w);
	info->synthetic = "";
	run->number = number;
	while ((ret = workload_next(w, &job, err)) == 1) {
		ret = trace_add(run, &job);
		if (ret) {
			iocom_err_set(err, ret, "%s: %s", path,
				      ret == -EFBIG ? "too many jobs" : "out of memory");
			break;
		}
	}
	workload_free(w);
	if (!ret && run->n < 2)
		ret = iocom_err_set(err, -EINVAL, "%s: a run of one job has no gaps", path);
	return ret;
}

static int trace_read(struct trace_file *f, struct iocom_err *err)
{
	struct workload_info info, other;
	int ret = trace_read_run(f->path, -1, &f->runs[0], &info, err);

	if (ret)
		return ret;
	snprintf(f->hash, sizeof(f->hash), "%s", info.hash);
	f->nruns = info.runs ? info.runs : 1;
	if (info.runs)
		f->runs[0].number = info.run[0];
	for (uint32_t i = 1; i < f->nruns && !ret; i++)
		ret = trace_read_run(f->path, info.run[i], &f->runs[i], &other, err);
	return ret;
}

/* Returns the file PATH, read now or before; NULL with ERR set. */
static const struct trace_file *trace_file(const char *path, struct iocom_err *err)
{
	struct trace_file *f;

	pthread_mutex_lock(&store.lock);
	for (f = store.first; f && strcmp(f->path, path) != 0; f = f->next)
		;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->path = strdup(path);
		if (!f || !f->path) {
			iocom_err_set(err, -ENOMEM, "%s: out of memory", path);
			free(f);
			f = NULL;
		} else if (trace_read(f, err)) {
			trace_file_free(f);
			f = NULL;
		} else {
			f->next = store.first;
			store.first = f;
		}
	}
	pthread_mutex_unlock(&store.lock);
	return f;
}

/* --- scales ---------------------------------------------------------------------------- */

static double trace_mean(const struct trace_run *run, double scale, double most)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++)
		sum += most > 0 ? fmin(most, scale * run->v[i].cpu_ms) : scale * run->v[i].cpu_ms;
	return sum / (double)run->n;
}

/* The factor under which the mean computation is MEAN if none is longer than MOST; 0: none is. */
static double trace_cpu_scale(const struct trace_run *run, double mean, double most)
{
	double plain = trace_mean(run, 1, 0), low, high;

	if (!(plain > 0) || (most > 0 && mean > most))
		return 0;
	if (!(most > 0))
		return mean / plain;
	low = mean / plain;
	high = low;
	for (int i = 0; i < ROUNDS && trace_mean(run, high, most) < mean; i++)
		high *= 2;
	if (trace_mean(run, high, most) < mean)
		return 0;
	for (int i = 0; i < ROUNDS && high > low * (1 + 1e-12); i++) {
		double middle = (low + high) / 2;

		if (trace_mean(run, middle, most) < mean)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static double trace_gap_scale(const struct trace_run *run, double gap_ms)
{
	double span = run->v[run->n - 1].arrival_ms - run->v[0].arrival_ms;

	return span > 0 ? gap_ms * (double)(run->n - 1) / span : 1;
}

/* --- parts ------------------------------------------------------------------------------- */

static void part_describe(struct generator_params *p, const struct trace_file *f,
			  const struct trace_run *run, uint64_t first)
{
	const char *slash = strrchr(f->path, '/');

	snprintf(p->part.about, sizeof(p->part.about),
		 "homes, gaps, computation: jobs %llu-%llu of %zu, run %d (%u of them) of %.40s",
		 (unsigned long long)first + 1, (unsigned long long)(first + p->part.n), run->n,
		 run->number, f->nruns, slash ? slash + 1 : f->path);
}

int process_trace_part(struct generator_params *p, const char *path, struct iocom_err *err)
{
	const struct trace_file *f = trace_file(path, err);
	uint64_t turn = p->seed ? p->seed - 1 : 0, jobs, first;
	const struct trace_run *run;

	if (!f)
		return -EINVAL;
	run = &f->runs[turn % f->nruns];
	jobs = p->jobs < run->n ? p->jobs : run->n;
	first = turn / f->nruns % (run->n / jobs) * jobs;
	p->part = (struct generator_part){
		.v = run->v + first,
		.n = jobs,
		.hosts = run->hosts,
		.gap_scale = trace_gap_scale(run, p->interarrival_ms),
		.cpu_scale = trace_cpu_scale(run, p->lifetime_mean_ms, p->lifetime_max_ms),
	};
	p->jobs = jobs;
	snprintf(p->part.hash, sizeof(p->part.hash), "%s", f->hash);
	part_describe(p, f, run, first);
	if (!(p->part.cpu_scale > 0))
		return iocom_err_set(err, -EINVAL,
				     "%s: computation cannot have a mean of %g ms if the longest is "
				     "%g ms",
				     path, p->lifetime_mean_ms, p->lifetime_max_ms);
	return 0;
}

uint32_t process_trace_home(const struct generator_params *p, uint32_t host, double u)
{
	uint32_t hosts = p->part.hosts, like;

	if (p->nodes <= hosts)
		return host % p->nodes;
	/* Each host stands for every HOSTS-th node. */
	like = (p->nodes - host + hosts - 1) / hosts;
	return host + hosts * (uint32_t)fmin(like - 1, floor(u * like));
}
