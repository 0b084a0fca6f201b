/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* From readings to the load vector; see vector.h. */
#include "agent/measure/vector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/rules.h"

/*
 * Remote thresholds of the binary form (MODEL 3.14): the CPU's is the local 4 less delta 3; the
 * disk's is our own.
 */
#define RUNNABLE_PER_CORE_REMOTE 1.0
#define UTILISATION_REMOTE	 0.5

#define PAST_NEED_SHARE		 0.25 /* a job past its need goes on for this part of what it did */
#define UTILISATION_HIGHEST	 0.99 /* the largest utilisation for which sharers are computed */

#define UTILISATION_SATURATED	 0.9 /* above this, the delivered rate is the disk's bandwidth */

/* Defaults for a disk of which nothing is known yet. */
#define ROTATIONAL_MB_PER_S 150.0
#define SOLID_MB_PER_S	    500.0
#define ROTATIONAL_FIXED_MS 8.0
#define SOLID_FIXED_MS	    0.1

double vector_smooth(double old, double new)
{
	return VECTOR_ALPHA * new + (1 - VECTOR_ALPHA) * old;
}

void vector_init(struct vector_state *state)
{
	*state = (struct vector_state){0};
}

void vector_fini(struct vector_state *state)
{
	free(state->before);
	free(state->now);
	*state = (struct vector_state){0};
}

static int keep_disks(struct vector_state *state, const struct monitor_sample *sample)
{
	struct iocom_disk *copy;

	if (!sample->ndisks) {
		state->nnow = 0;
		return 0;
	}
	copy = realloc(state->now, sample->ndisks * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, sample->disks, sample->ndisks * sizeof(*copy));
	state->now = copy;
	state->nnow = sample->ndisks;
	return 0;
}

int vector_take(struct vector_state *state, const struct monitor_sample *sample,
		const struct vector_jobs_did *jobs)
{
	double ms = (double)sample->elapsed_ns / 1e6;
	int rc = keep_disks(state, sample);

	if (rc)
		return rc;
	for (size_t i = 0; i < sample->njobs; i++) {
		iocom_load_add(&state->load, &sample->jobs[i].delta);
		iocom_disk_time_add(&state->disk_time, &sample->jobs[i].disk_delta);
	}
	iocom_load_add(&state->jobs.running.delta, &jobs->running.delta);
	iocom_disk_time_add(&state->jobs.running.disk_delta, &jobs->running.disk_delta);
	iocom_disk_time_add(&state->jobs.disk_ended, &jobs->disk_ended);
	state->elapsed_ms += ms;
	state->run_queue_ms += sample->run_queue * ms;
	state->live_tasks = sample->live_tasks;
	if (sample->io_tasks > state->io_tasks)
		state->io_tasks = sample->io_tasks;
	return 0;
}

static const struct iocom_disk *same_disk(const struct iocom_disk *disks, size_t n,
					  const struct iocom_disk *d)
{
	for (size_t i = 0; i < n; i++)
		if (disks[i].major == d->major && disks[i].minor == d->minor)
			return &disks[i];
	return NULL;
}

/* A counter that went back (a disk replaced under the same number) counts from 0. */
static double vector_grown(uint64_t before, uint64_t now)
{
	return (double)(now >= before ? now - before : now);
}

void vector_disks(const struct iocom_disk *before, size_t nbefore, const struct iocom_disk *now,
		  size_t nnow, double elapsed_ms, struct vector_measure *out)
{
	static const struct iocom_disk none;
	double requests = 0, sum_ms = 0, sum2_ms2 = 0, bytes = 0, busiest = 0;

	for (size_t i = 0; i < nnow; i++) {
		const struct iocom_disk *d = &now[i], *b = same_disk(before, nbefore, d);
		double service_ms, service2, moved;

		if (!b || b->requests > d->requests)
			b = &none;
		service_ms = vector_grown(b->service_sum_ns, d->service_sum_ns) / 1e6;
		service2 = d->service_sum2_ms2 - b->service_sum2_ms2;
		requests += vector_grown(b->requests, d->requests);
		/* A stacked disk's transfers are counted there, not here again. */
		moved = vector_grown(b->read_bytes, d->read_bytes) +
			vector_grown(b->write_bytes, d->write_bytes) -
			vector_grown(b->stacked_bytes, d->stacked_bytes);
		bytes += fmax(0, moved);
		sum_ms += service_ms;
		sum2_ms2 += service2 > 0 ? service2 : 0;
		if (service_ms > busiest)
			busiest = service_ms;
	}
	if (elapsed_ms <= 0)
		elapsed_ms = 1;
	out->disk_arrivals_per_ms = requests / elapsed_ms;
	out->disk_utilisation = fmin(1, busiest / elapsed_ms);
	out->disk_service_ms = requests > 0 ? sum_ms / requests : 0;
	out->disk_service_ms2 = requests > 0 ? sum2_ms2 / requests : 0;
	out->disk_mb_per_s = bytes / 1e3 / elapsed_ms;
}

/* Returns what is not the jobs' in a sum of everything. */
static double beyond_jobs(uint64_t all, uint64_t jobs)
{
	return all > jobs ? (double)(all - jobs) : 0;
}

/* Returns the part of the disks' time ALL that MINE is; 0 if no task had any. */
static double disk_share(const struct iocom_disk_time *all, const struct iocom_disk_time *mine)
{
	double sum = (double)all->low_ns + (double)all->high_ns;

	return sum > 0 ? fmin(1, ((double)mine->low_ns + (double)mine->high_ns) / sum) : 0;
}

static void vector_measure(const struct vector_state *state, struct vector_measure *m)
{
	const struct iocom_load *l = &state->load, *jobs = &state->jobs.running.delta;
	double ms = state->elapsed_ms > 0 ? state->elapsed_ms : 1;
	double cpu_ms = beyond_jobs(l->cpu_ns, jobs->cpu_ns) / 1e6;
	double running, ended;

	*m = (struct vector_measure){
		.run_queue = state->run_queue_ms / ms,
		.explicit_other_per_ms = beyond_jobs(l->explicit_ops, jobs->explicit_ops) / ms,
		.others =
			{
				.cpu = cpu_ms / ms,
				.runnable = (cpu_ms +
					     beyond_jobs(l->run_wait_ns, jobs->run_wait_ns) / 1e6) /
					    ms,
			},
		.implicit_per_ms = (double)l->implicit_ops / ms,
		.explicit_mb_per_s =
			(double)(l->explicit_read_bytes + l->explicit_write_bytes) / 1e3 / ms,
		.implicit_mb_per_s = (double)l->implicit_bytes / 1e3 / ms,
		.sent_mb_per_s = (double)l->sent_bytes / 1e3 / ms,
		.received_mb_per_s = (double)l->received_bytes / 1e3 / ms,
		.messages_per_s = (double)(l->sent_messages + l->received_messages) * 1e3 / ms,
	};
	vector_disks(state->before, state->nbefore, state->now, state->nnow, ms, m);
	running = disk_share(&state->disk_time, &state->jobs.running.disk_delta);
	ended = disk_share(&state->disk_time, &state->jobs.disk_ended);
	m->disk_ended = m->disk_utilisation * ended;
	m->others.disk = m->disk_utilisation * fmax(0, 1 - running - ended);
}

static void others_smooth(struct vector_others *s, const struct vector_others *m, double alpha)
{
	s->cpu += alpha * (m->cpu - s->cpu);
	s->runnable += alpha * (m->runnable - s->runnable);
	s->disk += alpha * (m->disk - s->disk);
}

static void vector_smooth_pair(struct vector_measure *s, const struct vector_measure *m)
{
	bool served = m->disk_service_ms > 0, known = s->disk_service_ms > 0;

	s->run_queue = vector_smooth(s->run_queue, m->run_queue);
	s->explicit_other_per_ms =
		vector_smooth(s->explicit_other_per_ms, m->explicit_other_per_ms);
	others_smooth(&s->others, &m->others, VECTOR_ALPHA);
	s->disk_ended = vector_smooth(s->disk_ended, m->disk_ended);
	s->implicit_per_ms = vector_smooth(s->implicit_per_ms, m->implicit_per_ms);
	s->explicit_mb_per_s = vector_smooth(s->explicit_mb_per_s, m->explicit_mb_per_s);
	s->implicit_mb_per_s = vector_smooth(s->implicit_mb_per_s, m->implicit_mb_per_s);
	s->disk_arrivals_per_ms = vector_smooth(s->disk_arrivals_per_ms, m->disk_arrivals_per_ms);
	s->disk_utilisation = vector_smooth(s->disk_utilisation, m->disk_utilisation);
	s->disk_mb_per_s = vector_smooth(s->disk_mb_per_s, m->disk_mb_per_s);
	s->sent_mb_per_s = vector_smooth(s->sent_mb_per_s, m->sent_mb_per_s);
	s->received_mb_per_s = vector_smooth(s->received_mb_per_s, m->received_mb_per_s);
	s->messages_per_s = vector_smooth(s->messages_per_s, m->messages_per_s);
	/* Without requests in the period, the service time is unknown, not 0. */
	if (served) {
		s->disk_service_ms = known ? vector_smooth(s->disk_service_ms, m->disk_service_ms)
					   : m->disk_service_ms;
		s->disk_service_ms2 =
			known ? vector_smooth(s->disk_service_ms2, m->disk_service_ms2)
			      : m->disk_service_ms2;
	} else if (s->disk_utilisation < 1e-3) {
		s->disk_service_ms = s->disk_service_ms2 = 0;
	}
}

void vector_close(struct vector_state *state)
{
	struct vector_measure m;
	struct iocom_disk *spare = state->before;

	vector_measure(state, &m);
	if (m.disk_utilisation > UTILISATION_SATURATED && m.disk_mb_per_s > state->learned_mb_per_s)
		state->learned_mb_per_s = m.disk_mb_per_s;
	if (state->primed) {
		vector_smooth_pair(&state->smooth, &m);
		others_smooth(&state->lately, &m.others,
			      1 - exp(-state->elapsed_ms / VECTOR_FOREIGN_MS));
	} else {
		state->smooth = m;
		state->lately = m.others;
	}
	state->period = (struct vector_period){state->elapsed_ms, m.others};
	state->primed = true;
	state->before = state->now;
	state->nbefore = state->nnow;
	state->now = spare;
	state->nnow = 0;
	state->io_tasks_last = state->io_tasks;
	state->io_tasks = 0;
	state->elapsed_ms = state->run_queue_ms = 0;
	state->load = (struct iocom_load){0};
	state->disk_time = (struct iocom_disk_time){0};
	state->jobs = (struct vector_jobs_did){0};
}

static void add_jobs(const struct vector_job *jobs, size_t n, struct iocom_vector *v)
{
	for (size_t i = 0; i < n; i++) {
		const struct vector_job *j = &jobs[i];

		v->explicit_per_ms += fmax(j->declared_per_ms, j->measured_per_ms);
		v->memory_requested_mb += fmax(0, j->declared_mb - j->resident_mb);
		v->run_queue += j->cpu_share * pow(1 - VECTOR_ALPHA, j->seen);
	}
}

static void capacities(const struct vector_state *state, const struct vector_self *self,
		       struct iocom_vector *v)
{
	bool slow = self->rotational;

	v->disks = (uint32_t)(state->nnow ? state->nnow : state->nbefore);
	if (!v->disks)
		return;
	v->disk_mb_per_s = self->disk_mb_per_s > 0	 ? self->disk_mb_per_s
			   : state->learned_mb_per_s > 0 ? state->learned_mb_per_s
			   : slow			 ? ROTATIONAL_MB_PER_S
							 : SOLID_MB_PER_S;
	v->disk_fixed_ms = self->disk_fixed_ms > 0 ? self->disk_fixed_ms
			   : slow		   ? ROTATIONAL_FIXED_MS
						   : SOLID_FIXED_MS;
	v->disk_parallel = fmax(1, self->disk_parallel);
	v->disk_arrivals_per_ms = state->smooth.disk_arrivals_per_ms;
	v->disk_service_ms = state->smooth.disk_service_ms;
	v->disk_service_ms2 = state->smooth.disk_service_ms2;
	v->disk_utilisation = state->smooth.disk_utilisation;
}

/* --- the work that is left ---------------------------------------------------- */

static double past_need(double need, double done)
{
	return fmax(need - done, done * PAST_NEED_SHARE);
}

/* Returns the time that REQUESTS take at this node's disk. */
static double at_disk_ms(const struct iocom_vector *v, double requests, double request_kb)
{
	return v->disk_mb_per_s > 0
		       ? requests * rules_service_ms(v->disk_fixed_ms, request_kb, v->disk_mb_per_s)
		       : 0;
}

/*
 * The same for a class that was never seen.  What was guessed of it fades with each reading that
 * sees the job: what it really does takes its place.
 */
static void guess_left(const struct vector_job *j, const struct iocom_vector *v, double done_ms,
		       double *cpu_ms, double *disk_ms)
{
	double faith = pow(1 - VECTOR_ALPHA, j->seen), ran_ms = done_ms + j->done_disk_ms;
	double cpu = j->need_cpu_ms;
	double disk = at_disk_ms(v, j->need_requests, j->need_request_kb);
	double left_ms, cpu_share;

	if (cpu + disk <= 0) {
		cpu = VECTOR_UNKNOWN_MS / 2;
		disk = v->disk_mb_per_s > 0 ? VECTOR_UNKNOWN_MS / 2 : 0;
	}
	left_ms = fmax(ran_ms, (cpu + disk) * faith);
	if (left_ms < VECTOR_LEFT_LEAST_MS)
		left_ms = 0; /* it sleeps */
	cpu_share = (cpu * faith + done_ms) / ((cpu + disk) * faith + ran_ms);
	*cpu_ms = left_ms * cpu_share;
	*disk_ms = v->disk_mb_per_s > 0 ? left_ms * (1 - cpu_share) : 0;
}

/* Sets what J has left: CPU time at the reference speed, and time at this node's disk. */
static void job_left(const struct vector_job *j, double cpu_speed, const struct iocom_vector *v,
		     double *cpu_ms, double *disk_ms)
{
	double done_ms = j->done_cpu_ms * cpu_speed;

	if (j->need_known) {
		*cpu_ms = past_need(j->need_cpu_ms, done_ms);
		*disk_ms = at_disk_ms(v, past_need(j->need_requests, j->done_requests),
				      j->need_request_kb);
	} else {
		guess_left(j, v, done_ms, cpu_ms, disk_ms);
	}
}

/*
 * Returns true if what J has left grows less with time: what a job of a class never seen has left,
 * or one past its need, does not.  Nor is anything known of a job that no period has seen.
 */
static bool ends_in_time(const struct vector_job *j, double cpu_speed)
{
	return j->seen > 0 && j->need_known &&
	       (j->need_cpu_ms > j->done_cpu_ms * cpu_speed || j->need_requests > j->done_requests);
}

/* Adds what those jobs have left that go on towards their end, if ENDS, or the others. */
static void jobs_left(const struct vector_job *jobs, size_t n, bool ends, double cpu_speed,
		      const struct iocom_vector *v, struct rules_sharers *s)
{
	for (size_t i = 0; i < n; i++) {
		double cpu_ms, disk_ms;

		if (ends_in_time(&jobs[i], cpu_speed) != ends)
			continue;
		job_left(&jobs[i], cpu_speed, v, &cpu_ms, &disk_ms);
		rules_sharers_add(s, cpu_ms / v->cpu_speed, cpu_ms / v->cpu_burst, disk_ms);
	}
}

/* Takes off what S got done in MS: each task goes on as if alone, until a resource serves no more.
 */
static void pass_time(struct rules_sharers *s, const struct iocom_vector *v, double ms)
{
	s->cpu_left_ms = fmax(0, s->cpu_left_ms - ms * fmin(s->cpu, v->cores));
	s->disk_left_ms = fmax(0, s->disk_left_ms - ms * fmin(s->disk, fmax(1, v->disk_parallel)));
}

static double beyond_housekeeping(double sharers)
{
	return sharers < VECTOR_FOREIGN_LEAST ? 0 : sharers;
}

/* How many tasks of a kind that never pauses OTHERS are like, at the processor and at the disk. */
static void others_sharers(const struct vector_others *others, double core_share,
			   const struct iocom_vector *v, double *cpu, double *disk)
{
	double rho = fmin(others->disk, UTILISATION_HIGHEST);

	*cpu = beyond_housekeeping(fmax(others->cpu / core_share, others->runnable));
	*disk = v->disks ? beyond_housekeeping(fmin(rho / (1 - rho), fmax(1, v->io_tasks))) : 0;
}

static void foreign_left(const struct vector_state *state, double core_share,
			 const struct iocom_vector *v, struct rules_sharers *s)
{
	double cpu, disk, lately_cpu, lately_disk;

	others_sharers(&state->smooth.others, core_share, v, &cpu, &disk);
	others_sharers(&state->lately, core_share, v, &lately_cpu, &lately_disk);
	s->cpu += cpu;
	s->disk += disk;
	s->cpu_left_ms += fmin(cpu, lately_cpu) * VECTOR_FOREIGN_MS;
	s->disk_left_ms += fmin(disk, lately_disk) * VECTOR_FOREIGN_MS;
}

/* Adds what jobs that have ended still write to S, which is what the running ones have left. */
static void writes_left(const struct vector_measure *m, const struct host_reading *host,
			const struct iocom_vector *v, struct rules_sharers *s)
{
	double ms;

	if (m->disk_ended < VECTOR_WRITES_LEAST || v->disk_mb_per_s <= 0)
		return;
	ms = host->dirty_mb / v->disk_mb_per_s * 1e3 - s->disk_left_ms;
	if (ms > VECTOR_LEFT_LEAST_MS)
		rules_sharers_add(s, 0, 0, ms);
}

/* --- the vector ---------------------------------------------------------------- */

static void work_left(const struct vector_state *state, const struct vector_self *self,
		      const struct host_reading *host, const struct vector_job *jobs, size_t njobs,
		      double since_ms, struct iocom_vector *v)
{
	struct rules_sharers s = {0};

	jobs_left(jobs, njobs, true, self->cpu_speed, v, &s);
	pass_time(&s, v, since_ms);
	jobs_left(jobs, njobs, false, self->cpu_speed, v, &s);
	writes_left(&state->smooth, host, v, &s);
	foreign_left(state, host->core_share, v, &s);
	v->cpu_sharers = s.cpu;
	v->disk_sharers = s.disk;
	v->cpu_left_ms = s.cpu_left_ms;
	v->disk_left_ms = s.disk_left_ms;
}

/* A guest that was admitted in spite of the slots may have more tasks than there are. */
static void free_slots(const struct vector_self *self, const struct vector_job *jobs, size_t njobs,
		       struct iocom_vector *v)
{
	uint64_t used = 0;

	for (size_t i = 0; i < njobs; i++)
		used += jobs[i].gang_tasks;
	v->slots = self->slots < 0 ? v->cores : (uint32_t)self->slots;
	v->slots_free = used < v->slots ? v->slots - (uint32_t)used : 0;
}

void vector_build(const struct vector_state *state, const struct vector_self *self,
		  const struct host_reading *host, const struct vector_job *jobs, size_t njobs,
		  double since_ms, struct iocom_vector *v)
{
	const struct vector_measure *s = &state->smooth;

	*v = (struct iocom_vector){
		.port = self->port,
		.boot_id = self->boot_id,
		.period_ms = self->period_ms,
		.cores = host->cores,
		.cpu_speed = self->cpu_speed * host->core_share,
		.cpu_burst = self->cpu_speed,
		.run_queue = s->run_queue,
		.tasks = state->live_tasks,
		.jobs = (uint32_t)njobs,
		.memory_mb = host->memory_mb,
		.memory_requested_mb = host->used_mb,
		.explicit_per_ms = s->explicit_other_per_ms,
		.implicit_per_ms = s->implicit_per_ms,
		.explicit_mb_per_s = s->explicit_mb_per_s,
		.implicit_mb_per_s = s->implicit_mb_per_s,
		.io_tasks = state->io_tasks > state->io_tasks_last ? state->io_tasks
								   : state->io_tasks_last,
		.sent_mb_per_s = s->sent_mb_per_s,
		.received_mb_per_s = s->received_mb_per_s,
		.messages_per_s = s->messages_per_s,
		.network_mb_per_s = self->network_mb_per_s,
		.accepts_jobs = self->accepts_jobs,
		.cache_jobs = self->caches.jobs,
		.cache_refused = self->caches.refused,
		.cache_mb = self->caches.mb,
		.cache_files = self->caches.files,
		.cache_hits = self->caches.hits,
		.cache_misses = self->caches.misses,
		.cache_evicted = self->caches.evicted,
	};
	memcpy(v->name, self->name, sizeof(v->name));
	memcpy(v->address, self->address, sizeof(v->address));
	memcpy(v->owner, self->owner, sizeof(v->owner));
	free_slots(self, jobs, njobs, v);
	add_jobs(jobs, njobs, v);
	v->memory_available_mb = fmax(0, v->memory_mb - v->memory_requested_mb);
	capacities(state, self, v);
	work_left(state, self, host, jobs, njobs, since_ms, v);
	if (v->run_queue <= RUNNABLE_PER_CORE_REMOTE * v->cores)
		v->bits |= IOCOM_BIT_CPU;
	if (v->disks && v->disk_utilisation <= UTILISATION_REMOTE)
		v->bits |= IOCOM_BIT_IO;
}

/* Returns true if A and B differ by more than PART of the larger, and by more than FLOOR. */
static bool moved(double a, double b, double part, double floor)
{
	double by = fabs(a - b);

	return by > floor && by > part * fmax(a, b);
}

bool vector_changed(const struct iocom_vector *old, const struct iocom_vector *new, double part)
{
	return old->bits != new->bits || old->accepts_jobs != new->accepts_jobs ||
	       strcmp(old->owner, new->owner) != 0 || old->jobs != new->jobs ||
	       old->slots != new->slots || old->slots_free != new->slots_free ||
	       moved(old->run_queue, new->run_queue, part, 0.5) ||
	       moved(old->explicit_per_ms, new->explicit_per_ms, part, 0.01) ||
	       moved(old->memory_requested_mb, new->memory_requested_mb, part, 50) ||
	       moved(old->disk_utilisation, new->disk_utilisation, part, 0.1) ||
	       moved(old->cpu_left_ms + old->disk_left_ms, new->cpu_left_ms + new->disk_left_ms,
		     part, 500);
}
