/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The table of jobs at this node; see jobs.h. */
#include "agent/guest/jobs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "user/clock.h"

#define NESTING_MAX 64

/* --- the table --------------------------------------------------------------- */

struct job *jobs_add(struct jobs *jobs, const struct job_order *order)
{
	struct job *job = jobs->count < JOBS_MAX ? calloc(1, sizeof(*job)) : NULL;

	if (!job)
		return NULL;
	job->order = *order;
	job->leash = -1;
	job->next = jobs->first;
	jobs->first = job;
	jobs->count++;
	return job;
}

struct job *jobs_find(const struct jobs *jobs, const char *name)
{
	struct job *job = jobs->first;

	while (job && strcmp(job->order.job, name))
		job = job->next;
	return job;
}

size_t jobs_of(const struct jobs *jobs, uid_t uid)
{
	size_t n = 0;

	for (const struct job *job = jobs->first; job; job = job->next)
		n += job->order.uid == uid && job->state != JOB_ENDED;
	return n;
}

static void mark(struct jobs *jobs, const struct job *job)
{
	struct job_mark *m = &jobs->marks[jobs->nmarks % JOBS_MARKS];

	if (!job->cgroup_id)
		return;
	m->cgroup_id = job->cgroup_id;
	m->uid = job->order.uid;
	memcpy(m->job, job->order.job, sizeof(m->job));
	jobs->nmarks++;
}

/* The mark of the ended job that had this cgroup, the newest first; NULL: there is none. */
static const struct job_mark *jobs_marked(const struct jobs *jobs, uint64_t cgroup_id)
{
	size_t n = jobs->nmarks < JOBS_MARKS ? jobs->nmarks : JOBS_MARKS;

	for (size_t i = 1; i <= n; i++) {
		const struct job_mark *m = &jobs->marks[(jobs->nmarks - i) % JOBS_MARKS];

		if (m->cgroup_id == cgroup_id)
			return m;
	}
	return NULL;
}

int jobs_whose(const struct jobs *jobs, uint64_t cgroup_id, const char **name, uid_t *uid)
{
	const struct job_mark *m;
	const char *found = NULL;
	uid_t owner = 0;

	if (!cgroup_id)
		return -ENOENT;
	for (const struct job *job = jobs->first; job && !found; job = job->next)
		if (job->cgroup_id == cgroup_id) {
			found = job->order.job;
			owner = job->order.uid;
		}
	m = found ? NULL : jobs_marked(jobs, cgroup_id);
	if (m) {
		found = m->job;
		owner = m->uid;
	}
	if (!found)
		return -ENOENT;
	if (name)
		*name = found;
	if (uid)
		*uid = owner;
	return 0;
}

void jobs_remove(struct jobs *jobs, struct job *job)
{
	mark(jobs, job);
	for (struct job **p = &jobs->first; *p; p = &(*p)->next) {
		if (*p != job)
			continue;
		*p = job->next;
		jobs->count--;
		job_order_forget(&job->order);
		part_talk_free(job->talk);
		free(job->told_talk);
		free(job);
		return;
	}
}

static struct job *by_cgroup(const struct jobs *jobs, uint64_t cgroup_id)
{
	struct job *job = jobs->first;

	while (job && job->cgroup_id != cgroup_id)
		job = job->next;
	return job;
}

/* The job whose cgroup is ID or above it. */
static struct job *jobs_owner(const struct jobs *jobs, struct sample_names *names, uint64_t id)
{
	for (unsigned depth = 0; id && depth < NESTING_MAX; depth++) {
		struct job *job = by_cgroup(jobs, id);

		if (job)
			return job;
		if (!names || !sample_names_path(names, id, &id))
			return NULL;
	}
	return NULL;
}

/* Returns for how long the job ran since the last reading. */
static double ran_ms(const struct job *job, const struct monitor_sample *sample)
{
	uint64_t from = sample->time_ns - sample->elapsed_ns, to = sample->time_ns;

	if (job->start_ns > from)
		from = job->start_ns;
	if (job->end.end_ns && job->end.end_ns < to)
		to = job->end.end_ns;
	return to > from ? (double)(to - from) / 1e6 : 0;
}

static void take_reading(struct job *job, const struct job_times_network *network,
			 const struct monitor_sample *sample)
{
	const struct iocom_job_load *l = &job->reading;
	struct job_times times;

	iocom_load_add(&job->load, &l->delta);
	job->metadata_bytes += l->disk_delta.metadata_bytes;
	job->rss_bytes = l->rss_bytes;
	if (l->rss_bytes > job->rss_max_bytes)
		job->rss_max_bytes = l->rss_bytes;
	job->period_ops += l->delta.explicit_ops;
	job_times(l, network, &times);
	job_times_learn(&job->behaviour, &times, ran_ms(job, sample));
}

void jobs_sampled(struct jobs *jobs, struct sample_names *names,
		  const struct monitor_sample *sample, struct vector_jobs_did *all)
{
	static const struct iocom_load nothing;
	struct job_times_network network = {.mb_per_s = jobs->network_mb_per_s};

	for (struct job *job = jobs->first; job; job = job->next)
		job->reading = (struct iocom_job_load){0};
	if (names && jobs->first)
		sample_names_begin(names);
	for (size_t i = 0; (jobs->first || jobs->nmarks) && i < sample->njobs; i++) {
		const struct iocom_job_load *l = &sample->jobs[i];
		bool idle = !l->tasks && !memcmp(&l->delta, &nothing, sizeof(nothing));
		struct job *job =
			idle || !jobs->first ? NULL : jobs_owner(jobs, names, l->cgroup_id);

		if (!job && !idle && jobs_marked(jobs, l->cgroup_id))
			iocom_disk_time_add(&all->disk_ended, &l->disk_delta);
		if (!job)
			continue;
		iocom_load_add(&job->reading.delta, &l->delta);
		iocom_disk_time_add(&job->reading.disk_delta, &l->disk_delta);
		job->reading.rss_bytes += l->rss_bytes;
		iocom_load_add(&all->running.delta, &l->delta);
		iocom_disk_time_add(&all->running.disk_delta, &l->disk_delta);
	}
	for (struct job *job = jobs->first; job; job = job->next)
		if (job->cgroup_id)
			take_reading(job, &network, sample);
	for (struct job *job = jobs->first; job; job = job->next)
		if (job->talk)
			jobs->talk_rest += part_talk_take(job->talk, job->cgroup_id, sample);
}

void jobs_fini(struct jobs *jobs)
{
	while (jobs->first)
		jobs_remove(jobs, jobs->first);
}

void jobs_period(struct jobs *jobs, double elapsed_ms)
{
	for (struct job *job = jobs->first; job; job = job->next) {
		double rate = elapsed_ms > 0 ? (double)job->period_ops / elapsed_ms : 0;

		job->period_ops = 0;
		if (job->state != JOB_RUNNING)
			continue;
		job->measured_per_ms = vector_smooth(job->measured_per_ms, rate);
		job->seen++;
	}
}

static double disk_ms(const struct behaviour *b)
{
	double needed_ms[BEHAVIOUR_RESOURCES];

	behaviour_sum(b, needed_ms);
	return needed_ms[BEHAVIOUR_DISK];
}

struct vector_job *jobs_vector(const struct jobs *jobs, size_t *n)
{
	struct vector_job *list = calloc(jobs->count + 1, sizeof(*list));

	*n = 0;
	for (const struct job *job = jobs->first; list && job; job = job->next) {
		const struct need *need = &job->order.need;
		bool known = need_is_known(need), of_use = known || need_is_guess(need);

		if (job->state == JOB_ENDED)
			continue;
		list[(*n)++] = (struct vector_job){
			.declared_per_ms = need_declared_per_ms(need),
			.measured_per_ms = job->measured_per_ms,
			.declared_mb = need_declared_mb(need),
			.resident_mb = (double)job->rss_bytes / 1e6,
			.cpu_share = need_cpu_share(need),
			.seen = job->seen,
			.need_known = known,
			.need_cpu_ms = of_use ? need->value[NEED_CPU_S] * 1e3 : 0,
			.need_requests = of_use ? need->value[NEED_REQUESTS] : 0,
			.need_request_kb = need->value[NEED_IO_SIZE_KB],
			.done_cpu_ms = (double)job->load.cpu_ns / 1e6,
			.done_requests = (double)(job->load.explicit_ops + job->load.implicit_ops),
			.done_disk_ms = disk_ms(&job->behaviour),
			.gang_tasks = job->order.gang_tasks,
		};
	}
	return list;
}

/* --- the end ------------------------------------------------------------------ */

static const char *state_name(const struct job *job)
{
	if (job->state == JOB_RUNNING)
		return "running";
	if (job->lost)
		return "lost";
	return job->end.kind == 0 ? "exited" : job->end.kind == 1 ? "killed" : "failed";
}

/*
 * What it left to be written, and what it has written: the kernel writes most of it to the disk
 * after a short job's end.  What the file system writes for it comes on top.
 */
static double jobs_dirty_bytes(const struct iocom_load *l)
{
	return l->dirtied_bytes > l->cancelled_bytes
		       ? (double)(l->dirtied_bytes - l->cancelled_bytes)
		       : 0;
}

/*
 * The job's own CPU time. The monitor's reading may come before the last process is gone, so the
 * kernel's account of the first process counts if it is more. The shim's steps before exec are not
 * the job's.
 */
static double jobs_cpu_ms(const struct job *job)
{
	double all_ms = fmax((double)job->load.cpu_ns / 1e6, (double)job->end.cpu_us / 1e3);

	return fmax(0, all_ms - (double)job->end.begin_us / 1e3);
}

void job_report_make(const struct job *job, double cpu_speed, struct job_report *out)
{
	const struct iocom_load *l = &job->load;
	double cpu_ms = jobs_cpu_ms(job);
	double total[BEHAVIOUR_RESOURCES];
	double bytes = (double)(l->explicit_read_bytes + l->explicit_write_bytes);
	double rss = fmax((double)job->rss_max_bytes, (double)job->end.max_rss_kb * 1024);

	*out = (struct job_report){
		.kind = job->end.kind,
		.value = job->end.value,
		.start_ns = job->start_ns,
		.end_ns = job->end.end_ns,
		.wall_ms = job->end.wall_ms,
		.cpu_ms = cpu_ms * cpu_speed,
		.requests = (double)l->explicit_ops,
		.request_kb = l->explicit_ops ? bytes / 1e3 / (double)l->explicit_ops : 0,
		.memory_mb = rss / 1e6,
		.read_kb = (double)l->explicit_read_bytes / 1e3,
		.netfs_read_kb = (double)l->netfs_read_bytes / 1e3,
		.netfs_written_kb = (double)l->netfs_write_bytes / 1e3,
		.written_kb = (fmax((double)l->explicit_write_bytes, jobs_dirty_bytes(l)) +
			       (double)job->metadata_bytes) /
			      1e3,
		.faults_per_ms = cpu_ms > 0 ? (double)l->implicit_ops / cpu_ms : 0,
	};
	if (job->order.move && job->end.end_ns) /* it began elsewhere */
		out->start_ns = job->end.end_ns - job->end.wall_ms * CLOCK_NS_PER_MS;
	behaviour_sum(&job->behaviour, total);
	out->alone_ms = cpu_ms + total[BEHAVIOUR_DISK];
	memcpy(out->job, job->order.job, sizeof(out->job));
	strcpy(out->state, state_name(job));
	out->behaviour = job->behaviour;
	for (size_t i = 0; i < out->behaviour.n; i++)
		out->behaviour.phases[i].ms[BEHAVIOUR_CPU] *= cpu_speed;
	memcpy(out->text, job->end.text, sizeof(out->text));
	out->text[sizeof(out->text) - 1] = 0;
}
