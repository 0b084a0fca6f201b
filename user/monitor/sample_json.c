/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Turns a monitor reading into a JSON document; see sample_json.h.
 *
 * Tasks and jobs are sorted by their largest share of a resource:
 *
 *   cpu      cpu time / (elapsed * cores)
 *   disk     (explicit read + write + implicit bytes) / (elapsed * capacity)
 *   network  (sent + received bytes) / (elapsed * capacity)
 *
 * The capacity of the disk is what the caller configured or learned, else what the busiest disk
 * has shown so far: bytes per service time. If all tasks together moved more than the capacity,
 * it is too small, and we use what they moved: the shares of one resource add up to at most 1.
 */
#include "user/monitor/sample_json.h"

#include <math.h>
#include <stdlib.h>

#include "user/monitor/sample_build.h"
#include "user/utf8.h"

#define NETWORK_MB_PER_S_UNKNOWN 125.0

static json_t *task_json(struct build *b, const struct task_ref *ref)
{
	const struct iocom_task *t = ref->task;
	json_t *object = json_object();
	char comm[3 * sizeof(t->comm) + 1];
	int rc;

	utf8_copy(comm, sizeof(comm), t->comm, sizeof(t->comm));
	rc = sample_put(object, "pid", json_integer(t->pid));
	rc |= sample_put(object, "comm", json_string_nocheck(comm));
	rc |= sample_put(object, "uid", json_integer(t->uid));
	rc |= sample_put_job(b, object, ref->owner);
	if (t->exited)
		rc |= sample_put(object, "exited", json_true());
	rc |= sample_put(object, "rss_bytes", sample_integer(t->rss_bytes));
	rc |= sample_put_load(b, object, &t->load, &t->delta);
	rc |= sample_put_share(object, &ref->share);
	return sample_finish(object, rc);
}

static json_t *sample_json_job_json(struct build *b, const struct job_ref *ref)
{
	json_t *object = json_object();
	int rc = sample_put_job(b, object, ref->sum.cgroup_id);

	rc |= sample_put(object, "cgroup_id", sample_integer(ref->sum.cgroup_id));
	rc |= sample_put(object, "tasks", json_integer(ref->sum.tasks));
	rc |= sample_put(object, "rss_bytes", sample_integer(ref->sum.rss_bytes));
	rc |= sample_put_load(b, object, &ref->sum.load, &ref->sum.delta);
	rc |= sample_put_times(b, object, &ref->sum);
	rc |= sample_put_share(object, &ref->share);
	rc |= sample_put(object, "remotes", sample_remotes(b, ref->sum.cgroup_id));
	return sample_finish(object, rc);
}

static json_t *tasks_json(struct build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->sample->ntasks; i++) {
		if (b->opt->own_only && b->tasks[i].task->uid != b->opt->uid)
			continue;
		if (json_array_append_new(array, task_json(b, &b->tasks[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *jobs_json(struct build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->njobs; i++) {
		if (!sample_job_shown(b, &b->jobs[i]))
			continue;
		if (json_array_append_new(array, sample_json_job_json(b, &b->jobs[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

/* Sums all tasks, also those that own_only leaves out. */
static struct iocom_load sum_tasks(const struct monitor_sample *s)
{
	struct iocom_load sum = {0};

	for (size_t i = 0; i < s->ntasks; i++)
		iocom_load_add(&sum, &s->tasks[i].delta);
	return sum;
}

static json_t *totals_json(const struct build *b)
{
	struct iocom_load sum = sum_tasks(b->sample);
	json_t *object = json_object();
	int rc;

	rc = sample_put(object, "tasks", json_integer(b->sample->live_tasks));
	rc |= sample_put(object, "cores", json_integer(b->opt->cores));
	rc |= sample_put(object, "run_queue", sample_real(b->sample->run_queue));
	rc |= sample_put_load(b, object, NULL, &sum);
	return sample_finish(object, rc);
}

/* Sets the capacities of disks and network, at least to what they did. */
static void set_capacities(struct build *b)
{
	const struct sample_json_options *o = b->opt;
	struct iocom_load sum = sum_tasks(b->sample);

	b->disk_bytes_per_s =
		o->disk_mb_per_s > 0 ? o->disk_mb_per_s * 1e6 : sample_disk_speed(b->sample);
	b->network_bytes_per_s =
		(o->network_mb_per_s > 0 ? o->network_mb_per_s : NETWORK_MB_PER_S_UNKNOWN) * 1e6;
	if (b->seconds <= 0)
		return;
	b->disk_bytes_per_s = fmax(b->disk_bytes_per_s, sample_disk_bytes(&sum) / b->seconds);
	b->network_bytes_per_s =
		fmax(b->network_bytes_per_s, sample_network_bytes(&sum) / b->seconds);
}

static json_t *document(struct build *b)
{
	const struct monitor_sample *s = b->sample;
	json_t *doc = json_object();
	int rc = sample_put(doc, "time_ns", sample_integer(s->time_ns));

	rc |= sample_put(doc, "since_ns", sample_integer(s->since_ns));
	rc |= sample_put(doc, "elapsed_ns", sample_integer(s->elapsed_ns));
	rc |= sample_put(doc, "suspended_ns", sample_integer(s->suspended_ns));
	rc |= sample_put(doc, "gap_ns", sample_integer(s->gap_ns));
	rc |= sample_put(doc, "node", sample_text(b->opt->node ? b->opt->node : ""));
	rc |= sample_put(doc, "totals", totals_json(b));
	rc |= sample_put(doc, "tasks", tasks_json(b));
	rc |= sample_put(doc, "jobs", jobs_json(b));
	rc |= sample_put(doc, "disks", sample_disks(b));
	rc |= sample_put(doc, "unattributed", sample_unattributed(s));
	rc |= sample_put(doc, "identity", sample_identity(s));
	rc |= sample_put(doc, "lost", sample_lost(b));
	rc |= sample_put(doc, "drops", sample_drops(s, false));
	rc |= sample_put(doc, "drops_help", sample_drops(s, true));
	rc |= sample_put(doc, "degraded", sample_degraded(s));
	rc |= sample_put(doc, "cost", sample_cost(s));
	return sample_finish(doc, rc);
}

json_t *sample_json(const struct monitor_sample *sample, const struct sample_json_options *options)
{
	const struct sample_json_options *o = options;
	struct build b = {.sample = sample, .opt = o, .names = o->names};
	json_t *doc = NULL;

	b.unknown = sample_unknown(sample);
	b.seconds = (double)sample->elapsed_ns / 1e9;
	set_capacities(&b);
	b.tasks = calloc(sample->ntasks + 1, sizeof(*b.tasks));
	b.jobs = calloc(sample->njobs + 1, sizeof(*b.jobs));
	if (!b.names && o->cgroup_root)
		b.names = sample_names_new(o->cgroup_root);
	b.remotes = calloc(sample->nremotes + 1, sizeof(*b.remotes));
	if (b.tasks && b.jobs && b.remotes && (b.names || !o->cgroup_root)) {
		sample_collect(&b);
		sample_collect_remotes(&b);
		doc = document(&b);
	}
	free(b.tasks);
	free(b.jobs);
	free(b.remotes);
	if (b.names != o->names)
		sample_names_free(b.names);
	return doc;
}
