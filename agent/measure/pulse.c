/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pulse.h. */
#include "agent/measure/pulse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/vector_codec.h"
#include "agent/jobs/journal.h"
#include "agent/measure/uptime_mark.h"
#include "user/clock.h"

#define QUARTERS	 4
#define REST_SHARE	 0.05			/* of a processor */
#define HOST_FRESH_NS	 (20 * CLOCK_NS_PER_MS) /* a reading of memory is used for this long */
#define PUBLISH_LEAST_NS (PULSE_NOTICE_MS * CLOCK_NS_PER_MS)
#define FACT_MB_PER_S	 "disk_mb_per_s"

static uint64_t quarter_ns(const struct pulse *p)
{
	return (uint64_t)(p->base->set->period_s * 1e9) / QUARTERS;
}

static void tell_sampled(const struct pulse *p, const struct monitor_sample *sample)
{
	for (const struct pulse_watch *w = p->watches; w; w = w->next)
		if (w->sampled)
			w->sampled(w->arg, sample);
}

void pulse_sample(void *arg)
{
	struct pulse *p = arg;
	struct monitor_sample sample;
	struct vector_jobs_did jobs = {0};
	struct iocom_err err = {0};
	int rc = p->config.source.sample(p->config.source.arg, &sample, &err);

	p->has_last = !rc;
	if (rc) {
		p->base->counters->sample_failures++;
		log_write(p->base->log, LOG_L_ERROR, "cannot read the monitor: %s", err.text);
		tell_sampled(p, NULL);
		return;
	}
	p->sampled_ns = sample.boot_ns;
	p->last = sample;
	if (p->config.uptime_fd >= 0)
		uptime_mark_note(p->config.uptime_fd, sample.boot_ns);
	p->drops = sample.drops;
	p->ndrops = sample.ndrops;
	p->ndegraded = sample.ndegraded;
	p->jobs.sampled(p->jobs.arg, &sample, &jobs);
	rc = vector_take(&p->measured, &sample, &jobs);
	if (rc)
		log_write(p->base->log, LOG_L_ERROR, "a reading is lost: %s", strerror(-rc));
	tell_sampled(p, &sample);
}

/*
 * A burst of jobs asks often, so a reading is reused; the jobs' table has what admitted jobs will
 * use.
 */
static const struct host_reading *host_now(struct pulse *p)
{
	uint64_t now = loop_boot_ns(p->base->loop);
	struct iocom_err err = {0};

	if (p->host_ns && now - p->host_ns < HOST_FRESH_NS)
		return &p->host;
	p->host_ns = now;
	if (p->config.source.host(p->config.source.arg, &p->host, &err)) {
		p->host_ns = 0;
		p->base->counters->sample_failures++;
		log_write(p->base->log, LOG_L_ERROR, "%s", err.text);
	}
	return &p->host;
}

/* Time since the jobs were read last; 0: they never were. */
static double since_sampled_ms(const struct pulse *p)
{
	uint64_t now = loop_boot_ns(p->base->loop);

	return p->sampled_ns && now > p->sampled_ns ? (double)(now - p->sampled_ns) / 1e6 : 0;
}

void pulse_own_vector(void *arg, struct iocom_vector *v)
{
	struct pulse *p = arg;
	struct vector_job *jobs;
	size_t n = 0;

	p->self.slots = p->base->set->slots;
	jobs = p->jobs.vector(p->jobs.arg, &n);
	vector_build(&p->measured, &p->self, host_now(p), jobs, n, since_sampled_ms(p), v);
	vector_bound(v);
	free(jobs);
	v->sequence = p->sequence;
	v->time_ns = loop_real_ns(p->base->loop);
}

static void pulse_publish(struct pulse *p)
{
	uint64_t now = loop_boot_ns(p->base->loop);

	p->sequence++;
	pulse_own_vector(p, &p->own);
	p->own_ns = now;
	p->config.publish(p->config.publish_arg, &p->own, now);
}

void pulse_leave(struct pulse *p)
{
	if (!p->started_ns)
		return;
	p->sequence++;
	pulse_own_vector(p, &p->own);
	p->own.bits |= IOCOM_BIT_LEAVES;
	p->own.accepts_jobs = false;
	p->config.publish(p->config.publish_arg, &p->own, loop_boot_ns(p->base->loop));
}

static void pulse_notice(void *arg)
{
	struct pulse *p = arg;
	struct iocom_vector v;

	pulse_own_vector(p, &v);
	if (vector_changed(&p->own, &v, p->base->set->sensitivity))
		pulse_publish(p);
}

static void pulse_rest(struct pulse *p, bool resting)
{
	p->resting = resting;
	if (p->config.source.rest)
		p->config.source.rest(p->config.source.arg, resting);
}

/* Samples the run queue from the next quarter of the period. */
static void end_rest(struct pulse *p)
{
	uint64_t now = loop_boot_ns(p->base->loop), due = p->tick.due_ns;
	uint64_t left = due > now ? (due - now) / quarter_ns(p) : 0;

	if (!p->resting || left >= QUARTERS)
		return;
	pulse_rest(p, false);
	p->quarters = QUARTERS - 1 - (unsigned)left;
	due -= left * quarter_ns(p);
	loop_start(p->base->loop, &p->tick, due > now ? due - now : 0);
	p->tick.due_ns = due;
}

void pulse_changed(void *arg)
{
	struct pulse *p = arg;
	uint64_t since = loop_boot_ns(p->base->loop) - p->own_ns;

	end_rest(p);
	if (p->notice.active)
		return;
	loop_start(p->base->loop, &p->notice,
		   since >= PUBLISH_LEAST_NS ? 0 : PUBLISH_LEAST_NS - since);
}

/* Stores the highest seen speed of the disk for the next start. */
static void keep_learned(struct pulse *p, double before)
{
	double learned = p->measured.learned_mb_per_s;

	if (learned > 1.05 * before && journal_set_fact(p->config.journal, FACT_MB_PER_S, learned))
		p->base->counters->journal_failures++;
}

static void end_period(struct pulse *p)
{
	double learned = p->measured.learned_mb_per_s;

	pulse_sample(p);
	pulse_rest(p, p->has_last && (double)p->measured.load.cpu_ns <
					     REST_SHARE * 1e6 * p->measured.elapsed_ms);
	p->jobs.period(p->jobs.arg, p->measured.elapsed_ms);
	vector_close(&p->measured);
	for (const struct pulse_watch *w = p->watches; w; w = w->next)
		if (w->closes)
			w->closes(w->arg);
	pulse_publish(p);
	for (const struct pulse_watch *w = p->watches; w; w = w->next)
		if (w->told)
			w->told(w->arg);
	keep_learned(p, learned);
}

static void pulse_tick(void *arg)
{
	struct pulse *p = arg;
	struct iocom_err err = {0};
	uint64_t now, due;

	p->quarters += p->resting ? QUARTERS : 1;
	if (p->quarters >= QUARTERS) {
		p->quarters = 0;
		end_period(p);
	} else if (p->config.source.look(p->config.source.arg, &err)) {
		log_write(p->base->log, LOG_L_WARNING, "%s", err.text);
	}
	/*
	 * Count from when it was due, so that the period does not drift; time asleep is not caught
	 * up.
	 */
	now = loop_boot_ns(p->base->loop);
	due = p->tick.due_ns + (p->resting ? QUARTERS : 1) * quarter_ns(p);
	loop_start(p->base->loop, &p->tick, due > now ? due - now : 0);
	p->tick.due_ns = due > now ? due : now;
}

uint64_t pulse_ends_ns(const struct pulse *p)
{
	unsigned more = p->resting || p->quarters >= QUARTERS ? 0 : QUARTERS - 1 - p->quarters;

	return p->tick.due_ns + more * quarter_ns(p);
}

/* Finds the kind and speed of the disks; a node may have none, but logs that. */
static void look_at_disks(struct pulse *p)
{
	p->self.rotational = false;
	for (size_t i = 0; i < p->measured.nnow; i++)
		p->self.rotational |= host_rotational(p->measured.now[i].name);
	if (!p->measured.nnow && p->base->set->scoped)
		log_write(p->base->log, LOG_L_WARNING,
			  "this node has no disk (see disk= in --scope): no I/O job will be sent "
			  "here");
	p->measured.learned_mb_per_s = journal_fact(p->config.journal, FACT_MB_PER_S);
}

void pulse_init(struct pulse *p, const struct pulse_config *config)
{
	const struct settings *set = config->base->set;

	*p = (struct pulse){.config = *config, .base = config->base};
	p->self = (struct vector_self){
		.port = (uint16_t)set->port,
		.boot_id = config->base->boot_id,
		.period_ms = (uint32_t)(set->period_s * 1e3),
		.cpu_speed = set->cpu_speed,
		.disk_mb_per_s = set->disk_mb_per_s,
		.disk_fixed_ms = set->disk_fixed_ms,
		.disk_parallel = set->disk_parallel,
		.network_mb_per_s = set->network_mb_per_s,
		.accepts_jobs = set->accept_jobs,
	};
	memcpy(p->self.name, set->name, sizeof(p->self.name));
	memcpy(p->self.address, set->address, sizeof(p->self.address));
	vector_init(&p->measured);
	p->last_watch = &p->watches;
	p->tick = (struct loop_timer){.fire = pulse_tick, .arg = p};
	p->notice = (struct loop_timer){.fire = pulse_notice, .arg = p};
}

void pulse_fini(struct pulse *p)
{
	vector_fini(&p->measured);
}

void pulse_set_jobs(struct pulse *p, const struct pulse_jobs *jobs)
{
	p->jobs = *jobs;
}

void pulse_set_owner(struct pulse *p, bool accepts, const char *says)
{
	p->self.accepts_jobs = accepts;
	snprintf(p->self.owner, sizeof(p->self.owner), "%s", says);
	if (p->started_ns)
		pulse_changed(p);
}

void pulse_set_caches(struct pulse *p, const struct data_caches_use *use)
{
	p->self.caches = *use;
}

void pulse_watch(struct pulse *p, struct pulse_watch *watch)
{
	watch->next = NULL;
	*p->last_watch = watch;
	p->last_watch = &watch->next;
}

int pulse_start(struct pulse *p, struct iocom_err *err)
{
	int rc = p->config.source.host(p->config.source.arg, &p->host, err);

	if (rc)
		return rc;
	p->started_ns = loop_boot_ns(p->base->loop);
	pulse_sample(p);
	look_at_disks(p);
	vector_close(&p->measured);
	pulse_publish(p);
	for (const struct pulse_watch *w = p->watches; w; w = w->next)
		if (w->told)
			w->told(w->arg);
	loop_start(p->base->loop, &p->tick, quarter_ns(p));
	return 0;
}
