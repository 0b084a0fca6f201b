/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jobs that run at this node; see jobs.h. */
#include "jobs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"

#define NESTING_MAX 64
#define WHOLE_RUN   5 /* numbers of a behaviour that are not of one phase */

/* --- orders ------------------------------------------------------------------ */

void job_order_pack(const struct job_order *o, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 16);
	pack_str(&pk, "job", o->job);
	pack_str(&pk, "home", o->home);
	pack_str(&pk, "home_address", o->home_address);
	pack_u64(&pk, "home_port", o->home_port);
	pack_u64(&pk, "uid", o->uid);
	pack_u64(&pk, "hops", o->hops);
	pack_bool(&pk, "forced", o->forced);
	pack_bin(&pk, "class", o->class_name, strlen(o->class_name));
	pack_bin(&pk, "command", o->command, strlen(o->command));
	pack_str(&pk, "policy", o->policy);
	pack_bin(&pk, "cwd", o->cwd, strlen(o->cwd));
	pack_bin(&pk, "executable", o->executable, strlen(o->executable));
	pack_u64(&pk, "submit_ns", o->submit_ns);
	pack_f64(&pk, "home_io", o->home_io);
	pack_f64(&pk, "home_cpu", o->home_cpu);
	need_pack(&o->need, &pk);
}

int job_order_unpack(struct job_order *o, const msgpack_object *map)
{
	uint64_t port, uid, hops;

	*o = (struct job_order){0};
	if (unpack_str(map, "job", o->job, sizeof(o->job)) || !spec_job_valid(o->job) ||
	    unpack_str(map, "home", o->home, sizeof(o->home)) ||
	    unpack_str(map, "home_address", o->home_address, sizeof(o->home_address)) ||
	    unpack_u64(map, "home_port", &port) || port > UINT16_MAX ||
	    unpack_u64(map, "uid", &uid) || uid >= UINT32_MAX || unpack_u64(map, "hops", &hops) ||
	    hops > 1000 || unpack_bool(map, "forced", &o->forced) ||
	    unpack_str(map, "class", o->class_name, sizeof(o->class_name)) ||
	    unpack_str(map, "command", o->command, sizeof(o->command)) ||
	    unpack_str(map, "policy", o->policy, sizeof(o->policy)) ||
	    unpack_str(map, "cwd", o->cwd, sizeof(o->cwd)) ||
	    unpack_str(map, "executable", o->executable, sizeof(o->executable)) ||
	    unpack_u64(map, "submit_ns", &o->submit_ns) ||
	    unpack_f64(map, "home_io", &o->home_io) || unpack_f64(map, "home_cpu", &o->home_cpu) ||
	    need_unpack(&o->need, map))
		return -EBADMSG;
	o->home_port = (uint16_t)port;
	o->uid = (uid_t)uid;
	o->hops = (uint32_t)hops;
	return 0;
}

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

int jobs_whose(const struct jobs *jobs, uint64_t cgroup_id, const char **name, uid_t *uid)
{
	const char *found = NULL;
	uid_t owner = 0;

	if (!cgroup_id)
		return -ENOENT;
	for (const struct job *job = jobs->first; job && !found; job = job->next)
		if (job->cgroup_id == cgroup_id) {
			found = job->order.job;
			owner = job->order.uid;
		}
	for (size_t i = 0; !found && i < jobs->nmarks && i < JOBS_MARKS; i++)
		if (jobs->marks[i].cgroup_id == cgroup_id) {
			found = jobs->marks[i].job;
			owner = jobs->marks[i].uid;
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
static struct job *owner(const struct jobs *jobs, struct sample_names *names, uint64_t id)
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

/* How much of the time since the last reading the job ran. */
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
	job->rss_bytes = l->rss_bytes;
	if (l->rss_bytes > job->rss_max_bytes)
		job->rss_max_bytes = l->rss_bytes;
	job->period_ops += l->delta.explicit_ops;
	job_times(l, network, &times);
	job_times_learn(&job->behaviour, &times, ran_ms(job, sample));
}

uint64_t jobs_sampled(struct jobs *jobs, struct sample_names *names,
		      const struct monitor_sample *sample)
{
	static const struct iocom_load nothing;
	struct job_times_network network = {.mb_per_s = jobs->network_mb_per_s};
	uint64_t ops = 0;

	for (struct job *job = jobs->first; job; job = job->next)
		job->reading = (struct iocom_job_load){0};
	if (names && jobs->first)
		sample_names_begin(names);
	for (size_t i = 0; jobs->first && i < sample->njobs; i++) {
		const struct iocom_job_load *l = &sample->jobs[i];
		bool idle = !l->tasks && !memcmp(&l->delta, &nothing, sizeof(nothing));
		struct job *job = idle ? NULL : owner(jobs, names, l->cgroup_id);

		if (!job)
			continue;
		iocom_load_add(&job->reading.delta, &l->delta);
		iocom_disk_time_add(&job->reading.disk_delta, &l->disk_delta);
		job->reading.rss_bytes += l->rss_bytes;
		ops += l->delta.explicit_ops;
	}
	for (struct job *job = jobs->first; job; job = job->next)
		if (job->cgroup_id)
			take_reading(job, &network, sample);
	return ops;
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

struct vector_job *jobs_vector(const struct jobs *jobs, size_t *n)
{
	struct vector_job *list = calloc(jobs->count + 1, sizeof(*list));

	*n = 0;
	for (const struct job *job = jobs->first; list && job; job = job->next) {
		const struct need *need = &job->order.need;

		if (job->state == JOB_ENDED)
			continue;
		list[(*n)++] = (struct vector_job){
			.declared_per_ms = need_declared_per_ms(need),
			.measured_per_ms = job->measured_per_ms,
			.declared_mb = need_declared_mb(need),
			.resident_mb = (double)job->rss_bytes / 1e6,
			.cpu_share = need_cpu_share(need),
			.seen = job->seen,
		};
	}
	return list;
}

/* --- reports ----------------------------------------------------------------- */

static const char *state_name(const struct job *job)
{
	if (job->lost)
		return "lost";
	return job->end.kind == 0 ? "exited" : job->end.kind == 1 ? "killed" : "failed";
}

/* "behaviour": [ of the whole run..., [ [cpu, com, disk, wall, dominant]... ] ] */
static void behaviour_pack(const struct behaviour *b, msgpack_packer *pk)
{
	const double whole[] = {b->disk_low_ms, b->disk_high_ms, b->fault_ms, b->disk_wait_ms,
				b->run_wait_ms};

	pack_key(pk, "behaviour");
	msgpack_pack_array(pk, WHOLE_RUN + b->n);
	for (size_t i = 0; i < WHOLE_RUN; i++)
		msgpack_pack_double(pk, whole[i]);
	for (size_t i = 0; i < b->n; i++) {
		const struct behaviour_phase *p = &b->phases[i];

		msgpack_pack_array(pk, BEHAVIOUR_RESOURCES + 2);
		for (int r = 0; r < BEHAVIOUR_RESOURCES; r++)
			msgpack_pack_double(pk, p->ms[r]);
		msgpack_pack_double(pk, p->wall_ms);
		msgpack_pack_double(pk, p->dominant);
	}
}

static int phase_unpack(struct behaviour_phase *p, const msgpack_object *o)
{
	double v[BEHAVIOUR_RESOURCES + 2];

	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != BEHAVIOUR_RESOURCES + 2)
		return -EBADMSG;
	for (size_t i = 0; i < BEHAVIOUR_RESOURCES + 2; i++) {
		if (o->via.array.ptr[i].type != MSGPACK_OBJECT_FLOAT64)
			return -EBADMSG;
		v[i] = o->via.array.ptr[i].via.f64;
	}
	memcpy(p->ms, v, sizeof(p->ms));
	p->wall_ms = v[BEHAVIOUR_RESOURCES];
	if (!(v[BEHAVIOUR_RESOURCES + 1] >= -1 && v[BEHAVIOUR_RESOURCES + 1] < BEHAVIOUR_RESOURCES))
		return -EBADMSG;
	p->dominant = (int)v[BEHAVIOUR_RESOURCES + 1];
	return 0;
}

/* A report of an older agent has none: that is fine. */
static int behaviour_unpack(struct behaviour *b, const msgpack_object *map)
{
	const msgpack_object *o = unpack_get(map, "behaviour");
	double *const whole[] = {&b->disk_low_ms, &b->disk_high_ms, &b->fault_ms, &b->disk_wait_ms,
				 &b->run_wait_ms};

	if (!o)
		return 0;
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size < WHOLE_RUN ||
	    o->via.array.size > WHOLE_RUN + BEHAVIOUR_PHASES)
		return -EBADMSG;
	for (size_t i = 0; i < WHOLE_RUN; i++) {
		if (o->via.array.ptr[i].type != MSGPACK_OBJECT_FLOAT64)
			return -EBADMSG;
		*whole[i] = o->via.array.ptr[i].via.f64;
	}
	b->n = o->via.array.size - WHOLE_RUN;
	for (size_t i = 0; i < b->n; i++)
		if (phase_unpack(&b->phases[i], &o->via.array.ptr[WHOLE_RUN + i]))
			return -EBADMSG;
	return behaviour_valid(b) ? 0 : -EBADMSG;
}

void job_report_make(const struct job *job, double cpu_speed, struct job_report *out)
{
	const struct iocom_load *l = &job->load;
	double cpu_ms = (double)l->cpu_ns / 1e6;
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
		.faults_per_ms = cpu_ms > 0 ? (double)l->implicit_ops / cpu_ms : 0,
	};
	memcpy(out->job, job->order.job, sizeof(out->job));
	strcpy(out->state, state_name(job));
	out->behaviour = job->behaviour;
	for (size_t i = 0; i < out->behaviour.n; i++)
		out->behaviour.phases[i].ms[BEHAVIOUR_CPU] *= cpu_speed;
	memcpy(out->text, job->end.text, sizeof(out->text));
	out->text[sizeof(out->text) - 1] = 0;
}

void job_report_pack(const struct job_report *r, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 14);
	pack_str(&pk, "job", r->job);
	pack_str(&pk, "state", r->state);
	pack_u64(&pk, "kind", r->kind);
	pack_u64(&pk, "value", r->value);
	pack_u64(&pk, "start_ns", r->start_ns);
	pack_u64(&pk, "end_ns", r->end_ns);
	pack_u64(&pk, "wall_ms", r->wall_ms);
	pack_f64(&pk, "cpu_ms", r->cpu_ms);
	pack_f64(&pk, "requests", r->requests);
	pack_f64(&pk, "request_kb", r->request_kb);
	pack_f64(&pk, "memory_mb", r->memory_mb);
	pack_f64(&pk, "faults_per_ms", r->faults_per_ms);
	pack_bin(&pk, "text", r->text, strlen(r->text));
	behaviour_pack(&r->behaviour, &pk);
}

int job_report_unpack(struct job_report *r, const msgpack_object *map)
{
	static const char *const states[] = {"exited", "killed", "failed", "lost"};

	*r = (struct job_report){0};
	if (unpack_str(map, "job", r->job, sizeof(r->job)) ||
	    unpack_str(map, "state", r->state, sizeof(r->state)) ||
	    unpack_u64(map, "kind", &r->kind) || unpack_u64(map, "value", &r->value) ||
	    unpack_u64(map, "start_ns", &r->start_ns) || unpack_u64(map, "end_ns", &r->end_ns) ||
	    unpack_u64(map, "wall_ms", &r->wall_ms) || unpack_f64(map, "cpu_ms", &r->cpu_ms) ||
	    unpack_f64(map, "requests", &r->requests) ||
	    unpack_f64(map, "request_kb", &r->request_kb) ||
	    unpack_f64(map, "memory_mb", &r->memory_mb) ||
	    unpack_f64(map, "faults_per_ms", &r->faults_per_ms) ||
	    unpack_str(map, "text", r->text, sizeof(r->text)) || r->cpu_ms < 0 || r->requests < 0 ||
	    r->request_kb < 0 || r->memory_mb < 0 || r->faults_per_ms < 0 ||
	    behaviour_unpack(&r->behaviour, map))
		return -EBADMSG;
	for (size_t i = 0; i < 4; i++)
		if (!strcmp(r->state, states[i]))
			return 0;
	return -EBADMSG;
}

void job_report_profile(const struct job_report *r, struct profile *run)
{
	double wall = r->wall_ms > 1 ? (double)r->wall_ms : 1;
	double total[BEHAVIOUR_RESOURCES];

	behaviour_sum(&r->behaviour, total);

	*run = (struct profile){
		.cpu_ms = r->cpu_ms,
		.requests = r->requests,
		.request_kb = r->request_kb,
		.memory_mb = r->memory_mb,
		.wall_ms = wall,
		.io_per_ms = r->requests / wall,
		.faults_per_ms = r->faults_per_ms,
		.com_ms = total[BEHAVIOUR_COM],
		.disk_ms = total[BEHAVIOUR_DISK],
		.behaviour = r->behaviour,
	};
}
