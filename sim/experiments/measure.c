/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The measures of a run; see measure.h. */
#include "sim/experiments/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *title;
} measures[M_KIND] = {
	[M_SLOWDOWN] = {"slowdown", "mean slowdown"},
	[M_SLOWDOWN_P50] = {"slowdown_p50", "median slowdown"},
	[M_SLOWDOWN_P95] = {"slowdown_p95", "95th percentile of slowdown"},
	[M_SLOWDOWN_P99] = {"slowdown_p99", "99th percentile of slowdown"},
	[M_TURNAROUND] = {"turnaround_s", "mean turn-around time (s)"},
	[M_TURNAROUND_P95] = {"turnaround_p95_s", "95th percentile of turn-around time (s)"},
	[M_DELAY] = {"delay_s", "mean delay (s)"},
	[M_CPU] = {"cpu_utilisation", "CPU utilisation"},
	[M_DISK] = {"disk_utilisation", "disk utilisation"},
	[M_IO_SHARE] = {"io_share", "I/O share of the busy time"},
	[M_HIT_RATE] = {"hit_rate", "buffer hit rate"},
	[M_IMPLICIT] = {"implicit_share", "page faults among disk requests"},
	[M_TASKS] = {"tasks_per_node", "resident tasks per node"},
	[M_TASKS_MAX] = {"tasks_fullest_node", "resident tasks on the fullest node"},
	[M_REMOTE] = {"remote_executions", "remote executions"},
	[M_MIGRATIONS] = {"migrations", "migrations"},
	[M_TRANSFERS] = {"transfers", "tasks moved"},
	[M_MOVED_MB] = {"moved_mb", "data moved (MB)"},
	[M_MAKESPAN] = {"makespan_s", "end of the last job (s)"},
	[M_COMPLETED] = {"completed", "jobs completed"},
	[M_UNFINISHED] = {"unfinished", "jobs unfinished"},
	[M_EVENTS] = {"events", "events"},
	[M_W_IO] = {"w_io", "weight of I/O, W_IO"},
	[M_W_IO_SD] = {"w_io_sd", "swing of W_IO (standard deviation)"},
	[M_BUFFER] = {"buffer_mb", "buffer (MB)"},
	[M_BUFFER_SD] = {"buffer_sd_mb", "swing of the buffer (standard deviation, MB)"},
	[M_BUFFER_SETTLED] = {"buffer_settled", "share of the run before the buffer has settled"},
	[M_WIN] = {"win_rate", "win rate"},
	[M_LOSS] = {"loss_rate", "share of executions misplaced"},
	[M_WIN_LOCAL] = {"right_local", "share of executions rightly kept"},
	[M_WIN_REMOTE] = {"right_remote", "share of executions rightly sent"},
	[M_SENT] = {"sent", "share of executions sent away"},
	[M_WIN_IO] = {"win_rate_by_io", "win rate where the i/o field alone decided"},
	[M_MEMORY_WRONG] = {"wrong_by_memory", "share of executions misplaced by memory"},
	[M_LOCAL_BETTER] = {"local_better", "share of executions that are faster here"},
	[M_LOCAL_S] = {"local_s", "mean response time, local (s)"},
	[M_REMOTE_S] = {"remote_s", "mean response time, remote (s)"},
	[M_OVERHEAD_S] = {"overhead_s", "mean cost of remote execution (s)"},
	[M_BOUNDED] = {"bounded_slowdown", "mean bounded slowdown (at least 10 s)"},
	[M_WAIT] = {"wait_s", "mean wait (s)"},
	[M_IMBALANCE] = {"imbalance", "share of time: one idle, another with two or more"},
};

static const char *const kinds[SIM_KINDS_MAX] = {
	"slowdown_kind_0",  "slowdown_kind_1",	"slowdown_kind_2",  "slowdown_kind_3",
	"slowdown_kind_4",  "slowdown_kind_5",	"slowdown_kind_6",  "slowdown_kind_7",
	"slowdown_kind_8",  "slowdown_kind_9",	"slowdown_kind_10", "slowdown_kind_11",
	"slowdown_kind_12", "slowdown_kind_13", "slowdown_kind_14", "slowdown_kind_15",
};

const char *measure_name(enum measure m)
{
	if (m >= M_KIND)
		return m < M_COUNT ? kinds[m - M_KIND] : "";
	return measures[m].name;
}

const char *measure_title(enum measure m)
{
	if (m >= M_KIND)
		return "mean slowdown of one kind of job";
	return measures[m].title;
}

bool measure_is_share(enum measure m)
{
	return m == M_CPU || m == M_DISK || m == M_IO_SHARE || m == M_HIT_RATE ||
	       m == M_IMBALANCE || (m >= M_WIN && m <= M_LOCAL_BETTER);
}

enum measure measure_parse(const char *name)
{
	for (unsigned int m = 0; m < M_COUNT; m++)
		if (!strcmp(measure_name(m), name))
			return m;
	return M_COUNT;
}

static double measure_share(double part, double rest)
{
	return part + rest > 0 ? part / (part + rest) : NAN;
}

static void node_measures(const struct sim_result *r, double *v)
{
	double sum = 0, most = 0;

	v[M_TASKS] = v[M_TASKS_MAX] = NAN;
	if (!r->nodes || !r->nnodes)
		return;
	for (uint32_t i = 0; i < r->nnodes; i++) {
		sum += r->nodes[i].jobs_mean;
		most = fmax(most, r->nodes[i].jobs_mean);
	}
	v[M_TASKS] = sum / r->nnodes;
	v[M_TASKS_MAX] = most;
}

/* Mean and standard deviation of the samples from number FROM on. */
static void moments(const struct sim_sample *s, uint32_t from, uint32_t n,
		    double (*get)(const struct sim_sample *), double *mean, double *sd)
{
	double sum = 0, squares = 0;

	for (uint32_t i = from; i < n; i++)
		sum += get(&s[i]);
	*mean = sum / (n - from);
	for (uint32_t i = from; i < n; i++)
		squares += (get(&s[i]) - *mean) * (get(&s[i]) - *mean);
	*sd = sqrt(squares / (n - from));
}

static double w_io(const struct sim_sample *s)
{
	return s->w_io;
}

static double buffer(const struct sim_sample *s)
{
	return s->buffer_mb;
}

/* The controller's path.  The buffer has settled after the last sample that differs by
 * more than 5 % (or 2 MB) from the mean of the second half. */
static void control_measures(const struct sim_result *r, double *v)
{
	uint32_t n = r->nsamples, settled = 0;

	v[M_W_IO] = v[M_W_IO_SD] = v[M_BUFFER] = v[M_BUFFER_SD] = v[M_BUFFER_SETTLED] = NAN;
	if (n < 4 || !r->samples)
		return;
	moments(r->samples, n / 2, n, w_io, &v[M_W_IO], &v[M_W_IO_SD]);
	moments(r->samples, n / 2, n, buffer, &v[M_BUFFER], &v[M_BUFFER_SD]);
	for (uint32_t i = 0; i < n; i++)
		if (fabs(r->samples[i].buffer_mb - v[M_BUFFER]) > fmax(0.05 * v[M_BUFFER], 2))
			settled = i + 1;
	v[M_BUFFER_SETTLED] = (double)settled / n;
}

void measure_all(const struct sim_result *r, double values[M_COUNT])
{
	double *v = values;

	for (unsigned int m = M_WIN; m < M_KIND; m++)
		v[m] = NAN;
	v[M_SLOWDOWN] = r->slowdown.mean;
	v[M_SLOWDOWN_P50] = r->slowdown.p50;
	v[M_SLOWDOWN_P95] = r->slowdown.p95;
	v[M_SLOWDOWN_P99] = r->slowdown.p99;
	v[M_TURNAROUND] = r->turnaround_ms.mean / 1000;
	v[M_TURNAROUND_P95] = r->turnaround_ms.p95 / 1000;
	v[M_DELAY] = r->delay_ms.mean / 1000;
	v[M_CPU] = r->cpu_utilisation;
	v[M_DISK] = r->disk_utilisation;
	v[M_IO_SHARE] = measure_share(r->disk_utilisation, r->cpu_utilisation);
	v[M_HIT_RATE] = r->hit_rate;
	v[M_IMPLICIT] = r->implicit_share;
	node_measures(r, v);
	v[M_REMOTE] = (double)r->remote_executions;
	v[M_MIGRATIONS] = (double)r->migrations;
	v[M_TRANSFERS] = (double)r->remote_executions + (double)r->migrations;
	v[M_MOVED_MB] = r->moved_mb;
	v[M_MAKESPAN] = r->makespan_ms / 1000;
	v[M_COMPLETED] = (double)r->completed;
	v[M_UNFINISHED] = (double)r->unfinished;
	v[M_EVENTS] = (double)r->events;
	control_measures(r, v);
	for (unsigned int k = 0; k < SIM_KINDS_MAX; k++)
		v[M_KIND + k] = r->kind_slowdown[k].n ? r->kind_slowdown[k].mean : NAN;
}
