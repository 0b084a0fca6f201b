/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sums several readings; see sample_window.h.
 *
 * Tasks and jobs are sorted by key, so that a new reading is merged in one pass:
 *
 *   in both       newest values, delta = sum of deltas, exited if it exited in any
 *   only new      as it is
 *   only old      kept: it ended in an earlier reading of this window; a remote
 *                 is dropped, because its job's row of other remotes has it now
 */
#include "user/monitor/sample_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sample_window {
	struct monitor_sample sum; /* its tasks, jobs and disks are the arrays below */
	struct iocom_task *tasks;
	struct iocom_job_load *jobs;
	struct monitor_remote *remotes;
	struct iocom_disk *disks, *before;
	size_t nbefore;
	size_t readings; /* readings since the last take */
	double queue_ns; /* sum of run_queue * elapsed */
};

struct sample_window *sample_window_new(void)
{
	return calloc(1, sizeof(struct sample_window));
}

void sample_window_free(struct sample_window *window)
{
	if (!window)
		return;
	free(window->tasks);
	free(window->jobs);
	free(window->remotes);
	free(window->disks);
	free(window->before);
	free(window);
}

static int task_order(const void *a, const void *b)
{
	const struct iocom_task *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int job_order(const void *a, const void *b)
{
	const struct iocom_job_load *x = a, *y = b;

	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

static void task_join(void *newest, const void *old)
{
	struct iocom_task *into = newest;
	const struct iocom_task *from = old;

	iocom_load_add(&into->delta, &from->delta);
	into->exited |= from->exited;
}

static void job_join(void *newest, const void *old)
{
	struct iocom_job_load *into = newest;
	const struct iocom_job_load *from = old;

	iocom_load_add(&into->delta, &from->delta);
	iocom_disk_time_add(&into->disk_delta, &from->disk_delta);
}

static int remote_order(const void *a, const void *b)
{
	const struct monitor_remote *x = a, *y = b;

	if (x->cgroup_id != y->cgroup_id)
		return x->cgroup_id < y->cgroup_id ? -1 : 1;
	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	return memcmp(x->address, y->address, sizeof(x->address));
}

static void remote_join(void *newest, const void *old)
{
	struct monitor_remote_counts *into = &((struct monitor_remote *)newest)->delta;
	const struct monitor_remote_counts *from = &((const struct monitor_remote *)old)->delta;

	into->sent_bytes += from->sent_bytes;
	into->received_bytes += from->received_bytes;
	into->sent_messages += from->sent_messages;
	into->received_messages += from->received_messages;
}

struct kind {
	size_t size;
	int (*order)(const void *, const void *);
	void (*join)(void *newest, const void *old);
	bool newest_only;
};

static const struct kind task_kind = {sizeof(struct iocom_task), task_order, task_join, false};
static const struct kind job_kind = {sizeof(struct iocom_job_load), job_order, job_join, false};
static const struct kind remote_kind = {sizeof(struct monitor_remote), remote_order, remote_join,
					true};

/*
 * Merges two sorted arrays into OUT, which has room for NOLD + NFRESH. Returns the number of
 * entries.
 */
static size_t sample_window_merge(const struct kind *kind, char *out, const char *old, size_t nold,
				  const char *fresh, size_t nfresh)
{
	size_t i = 0, j = 0, n = 0;

	while (i < nold || j < nfresh) {
		const char *o = old + i * kind->size, *f = fresh + j * kind->size;
		int c = i == nold ? 1 : j == nfresh ? -1 : kind->order(o, f);

		if (c < 0 && kind->newest_only) {
			i++;
			continue;
		}
		memcpy(out + n * kind->size, c < 0 ? o : f, kind->size);
		if (c == 0)
			kind->join(out + n * kind->size, o);
		i += c <= 0;
		j += c >= 0;
		n++;
	}
	return n;
}

/* Returns a new array of OLD and NEWEST merged, or NULL if there is no memory. */
static void *merged(const struct kind *kind, const void *old, size_t nold, const void *newest,
		    size_t nnewest, size_t *n)
{
	char *fresh = malloc((nnewest + 1) * kind->size);
	char *out = malloc((nold + nnewest + 1) * kind->size);

	if (!fresh || !out) {
		free(fresh);
		free(out);
		return NULL;
	}
	if (nnewest) {
		memcpy(fresh, newest, nnewest * kind->size);
		qsort(fresh, nnewest, kind->size, kind->order);
	}
	*n = sample_window_merge(kind, out, old, nold, fresh, nnewest);
	free(fresh);
	return out;
}

/* Takes the newest values of all that is not in our arrays, and the sums over the window. */
static void sample_window_take_over(struct sample_window *w, const struct monitor_sample *sample,
				    bool first)
{
	uint64_t elapsed = first ? 0 : w->sum.elapsed_ns;
	uint64_t suspended = first ? 0 : w->sum.suspended_ns;
	uint64_t sweep = first ? 0 : w->sum.sweep_ns;
	uint32_t io_tasks = first ? 0 : w->sum.io_tasks;

	w->queue_ns = first ? 0 : w->queue_ns;
	w->queue_ns += sample->run_queue * (double)sample->elapsed_ns;
	w->sum = *sample;
	w->sum.elapsed_ns += elapsed;
	w->sum.suspended_ns += suspended;
	w->sum.sweep_ns = sweep > sample->sweep_ns ? sweep : sample->sweep_ns;
	if (io_tasks > sample->io_tasks)
		w->sum.io_tasks = io_tasks;
	if (w->sum.elapsed_ns)
		w->sum.run_queue = w->queue_ns / (double)w->sum.elapsed_ns;
	w->readings = first ? 1 : w->readings + 1;
}

int sample_window_add(struct sample_window *w, const struct monitor_sample *sample)
{
	bool first = w->readings == 0;
	size_t ntasks, njobs, nremotes;
	void *tasks = merged(&task_kind, w->tasks, first ? 0 : w->sum.ntasks, sample->tasks,
			     sample->ntasks, &ntasks);
	void *jobs = merged(&job_kind, w->jobs, first ? 0 : w->sum.njobs, sample->jobs,
			    sample->njobs, &njobs);
	void *remotes = merged(&remote_kind, w->remotes, first ? 0 : w->sum.nremotes,
			       sample->remotes, sample->nremotes, &nremotes);
	struct iocom_disk *disks = malloc((sample->ndisks + 1) * sizeof(*disks));

	if (!tasks || !jobs || !remotes || !disks) {
		free(tasks);
		free(jobs);
		free(remotes);
		free(disks);
		return -ENOMEM;
	}
	if (sample->ndisks)
		memcpy(disks, sample->disks, sample->ndisks * sizeof(*disks));
	if (first) { /* the previous take's disks become BEFORE */
		free(w->before);
		w->before = w->disks;
		w->nbefore = w->before ? w->sum.ndisks : 0;
	} else {
		free(w->disks);
	}
	free(w->tasks);
	free(w->jobs);
	free(w->remotes);
	w->tasks = tasks;
	w->jobs = jobs;
	w->remotes = remotes;
	w->disks = disks;
	sample_window_take_over(w, sample, first);
	w->sum.tasks = w->tasks;
	w->sum.ntasks = ntasks;
	w->sum.jobs = w->jobs;
	w->sum.njobs = njobs;
	w->sum.remotes = w->remotes;
	w->sum.nremotes = nremotes;
	w->sum.disks = w->disks;
	return 0;
}

int sample_window_take(struct sample_window *w, struct monitor_sample *out,
		       const struct iocom_disk **before, size_t *nbefore)
{
	if (!w->readings)
		return -ENODATA;
	*out = w->sum;
	*before = w->before;
	*nbefore = w->nbefore;
	w->readings = 0;
	return 0;
}
