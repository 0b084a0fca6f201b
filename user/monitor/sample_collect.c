/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Finds the job of each cgroup, sums up its nested cgroups, and sorts what is shown. */
#include "user/monitor/sample_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 64

/* Returns the job's name, the cgroup's path, or null for the root and the nameless kernel. */
static json_t *sample_job_text(struct build *b, uint64_t owner)
{
	const struct sample_json_options *o = b->opt;
	const char *name = o->job_name ? o->job_name(o->job_name_arg, owner) : NULL;
	char number[32];

	if (name)
		return sample_text(name);
	if (b->names)
		name = sample_names_path(b->names, owner, NULL);
	if (!owner || (name && !strcmp(name, "/")))
		return json_null();
	if (name)
		return sample_text(name);
	snprintf(number, sizeof(number), "cgroup:%llu", (unsigned long long)owner);
	return json_string(number);
}

/* Returns what people call the group, or NULL if it is a job of iocom or its path is its name. */
static const struct group_name *sample_job_group(const struct build *b, uint64_t owner)
{
	const struct sample_json_options *o = b->opt;
	const struct group_name *group = NULL;

	if (b->names && !(o->job_name && o->job_name(o->job_name_arg, owner)))
		sample_names_owner(b->names, owner, &group);
	return group;
}

int sample_put_job(struct build *b, json_t *object, uint64_t owner)
{
	const struct group_name *group = sample_job_group(b, owner);
	int rc = sample_put(object, "job", sample_job_text(b, owner));

	return group ? rc | sample_put(object, "name", sample_text(group->text)) : rc;
}

uint64_t sample_job_owner(struct build *b, uint64_t id)
{
	const struct sample_json_options *o = b->opt;
	uint64_t at = id;

	for (unsigned depth = 0; o->job_name && at && depth < NESTING_MAX; depth++) {
		if (o->job_name(o->job_name_arg, at))
			return at;
		if (!b->names || !sample_names_path(b->names, at, &at))
			break;
	}
	return b->names ? sample_names_owner(b->names, id, NULL) : id;
}

static int sample_collect_order(double a, double b, uint64_t ida, uint64_t idb)
{
	if (a != b)
		return a > b ? -1 : 1;
	return ida < idb ? -1 : ida > idb;
}

static int tasks_by_share(const void *a, const void *b)
{
	const struct task_ref *x = a, *y = b;

	return sample_collect_order(x->share.value, y->share.value, (uint64_t)x->task->pid,
				    (uint64_t)y->task->pid);
}

static int jobs_by_share(const void *a, const void *b)
{
	const struct job_ref *x = a, *y = b;

	return sample_collect_order(x->share.value, y->share.value, x->sum.cgroup_id,
				    y->sum.cgroup_id);
}

static int jobs_by_id(const void *a, const void *b)
{
	const struct job_ref *x = a, *y = b;

	return x->sum.cgroup_id < y->sum.cgroup_id ? -1 : x->sum.cgroup_id > y->sum.cgroup_id;
}

/* Collects the jobs sorted by id, with the nested cgroups of a job summed up. */
static void collect_jobs(struct build *b)
{
	const struct monitor_sample *s = b->sample;
	size_t n = 0;

	for (size_t i = 0; i < s->njobs; i++) {
		b->jobs[i].sum = s->jobs[i];
		b->jobs[i].sum.cgroup_id = sample_job_owner(b, s->jobs[i].cgroup_id);
	}
	if (s->njobs)
		qsort(b->jobs, s->njobs, sizeof(*b->jobs), jobs_by_id);
	for (size_t i = 0; i < s->njobs; i++) {
		struct iocom_job_load *from = &b->jobs[i].sum, *into;

		if (!n || b->jobs[n - 1].sum.cgroup_id != from->cgroup_id) {
			b->jobs[n++] = b->jobs[i];
			continue;
		}
		into = &b->jobs[n - 1].sum;
		into->tasks += from->tasks;
		into->rss_bytes += from->rss_bytes;
		iocom_load_add(&into->load, &from->load);
		iocom_load_add(&into->delta, &from->delta);
		iocom_disk_time_add(&into->disk, &from->disk);
		iocom_disk_time_add(&into->disk_delta, &from->disk_delta);
	}
	b->njobs = n;
	for (size_t i = 0; i < n; i++)
		b->jobs[i].share = sample_share(b, &b->jobs[i].sum.delta);
}

static void collect_tasks(struct build *b)
{
	const struct monitor_sample *s = b->sample;

	for (size_t i = 0; i < s->ntasks; i++) {
		const struct iocom_task *t = &s->tasks[i];
		uint64_t owner = sample_job_owner(b, t->cgroup_id);
		struct job_ref key = {.sum.cgroup_id = owner}, *job;

		b->tasks[i] = (struct task_ref){t, sample_share(b, &t->delta), owner};
		job = b->njobs ? bsearch(&key, b->jobs, b->njobs, sizeof(key), jobs_by_id) : NULL;
		if (job && t->uid == b->opt->uid)
			job->mine++;
		else if (job && t->uid)
			job->others++;
		else if (job)
			job->roots++;
	}
	if (s->ntasks)
		qsort(b->tasks, s->ntasks, sizeof(*b->tasks), tasks_by_share);
	if (b->njobs)
		qsort(b->jobs, b->njobs, sizeof(*b->jobs), jobs_by_share);
}

void sample_collect(struct build *b)
{
	if (b->names)
		sample_names_begin(b->names);
	collect_jobs(b);
	collect_tasks(b);
}

/*
 * A user's session is his, whoever else works in it. A batch system looks after a user's job with
 * a process of root in it.
 */
bool sample_job_shown(const struct build *b, const struct job_ref *job)
{
	const struct sample_json_options *o = b->opt;
	const struct group_name *group;
	uid_t uid;

	if (!o->own_only)
		return true;
	if (o->job_uid && !o->job_uid(o->job_name_arg, job->sum.cgroup_id, &uid))
		return uid == o->uid;
	group = sample_job_group(b, job->sum.cgroup_id);
	if (group && group->kind == GROUP_SESSION)
		return group->uid == o->uid;
	if (!job->mine || job->others)
		return false;
	return !job->roots ||
	       (group && (group->kind == GROUP_SLURM || group->kind == GROUP_HTCONDOR));
}
