/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The agent's pulse: four looks at the run queue a period, one reading, a new
 * vector, a bulletin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "agent/measure/uptime_mark.h"
#include "agent/metrics/metrics.h"
#include "agent/front/recorders.h"
#include "agent/cluster/vector_codec.h"

#define LOOKS		 4
#define HOST_FRESH_NS	 (20 * CLOCK_NS_PER_MS) /* a reading of memory serves so long */
#define PUBLISH_LEAST_NS (TICK_NOTICE_MS * CLOCK_NS_PER_MS)
#define FACT_MB_PER_S	 "disk_mb_per_s"

static uint64_t look_ns(const struct agent *a)
{
	return (uint64_t)(a->set.period_s * 1e9) / LOOKS;
}

void tick_sample(struct agent *a)
{
	struct monitor_sample sample;
	struct iocom_err err = {0};
	uint64_t ops;
	int rc = monitor_sample(a->monitor, &sample, &err);

	a->has_last = !rc;
	if (rc) {
		a->counters.sample_failures++;
		log_write(&a->log, LOG_L_ERROR, "cannot read the monitor: %s", err.text);
		metrics_sampled(a, NULL);
		return;
	}
	a->sampled_ns = sample.boot_ns;
	a->last = sample;
	uptime_mark_note(a->counting_fd, sample.boot_ns);
	a->drops = sample.drops;
	a->ndrops = sample.ndrops;
	a->ndegraded = sample.ndegraded;
	ops = jobs_sampled(&a->jobs, a->names, &sample);
	rc = vector_take(&a->measured, &sample, ops);
	if (rc)
		log_write(&a->log, LOG_L_ERROR, "a reading is lost: %s", strerror(-rc));
	metrics_sampled(a, &sample);
	if (a->clients)
		clients_sampled(a->clients, &sample);
}

/* A burst of jobs asks again and again; what those before it will take is in the jobs' table. */
static const struct host_reading *host_now(struct agent *a)
{
	uint64_t now = clock_boot_ns();
	struct iocom_err err = {0};

	if (a->host_ns && now - a->host_ns < HOST_FRESH_NS)
		return &a->host_now;
	a->host_ns = now;
	if (host_read(&a->host, &a->host_now, &err)) {
		a->host_ns = 0;
		a->counters.sample_failures++;
		log_write(&a->log, LOG_L_ERROR, "%s", err.text);
	}
	return &a->host_now;
}

void tick_own_vector(struct agent *a, struct iocom_vector *v)
{
	struct vector_job *jobs;
	size_t n;

	jobs = jobs_vector(&a->jobs, &n);
	vector_build(&a->measured, &a->self, host_now(a), jobs, n, v);
	vector_bound(v);
	free(jobs);
	v->sequence = a->sequence;
	v->time_ns = clock_real_ns();
}

static void publish(struct agent *a)
{
	uint64_t now = clock_boot_ns();

	a->sequence++;
	tick_own_vector(a, &a->own);
	a->own_ns = now;
	if (a->bulletin)
		bulletin_publish(a->bulletin, &a->own, &a->matrix, now);
}

static void publish_now(void *arg)
{
	struct agent *a = arg;
	struct iocom_vector v;

	tick_own_vector(a, &v);
	if (vector_changed(&a->own, &v))
		publish(a);
}

void tick_changed(struct agent *a)
{
	uint64_t since = clock_boot_ns() - a->own_ns;

	if (a->publish.active)
		return;
	loop_start(a->loop, &a->publish, since >= PUBLISH_LEAST_NS ? 0 : PUBLISH_LEAST_NS - since);
}

static void drop_silent(struct agent *a)
{
	size_t n = matrix_expire(&a->matrix, clock_boot_ns());

	a->counters.nodes_dropped += n;
	if (n)
		log_write(&a->log, LOG_L_WARNING,
			  "%zu node%s silent for %d periods: no jobs go there until heard again", n,
			  n == 1 ? "" : "s", MATRIX_SILENT_PERIODS);
}

static void end_period(struct agent *a)
{
	double learned = a->measured.learned_mb_per_s;

	tick_sample(a);
	jobs_period(&a->jobs, a->measured.elapsed_ms);
	vector_close(&a->measured);
	drop_silent(a);
	if (a->control) {
		control_count(a->control);
		bulletin_count(a->bulletin);
	}
	publish(a);
	metrics_period(a);
	recorders_period(a);
	if (a->measured.learned_mb_per_s > 1.05 * learned &&
	    journal_set_fact(a->journal, FACT_MB_PER_S, a->measured.learned_mb_per_s))
		a->counters.journal_failures++;
}

static void tick(void *arg)
{
	struct agent *a = arg;
	struct iocom_err err = {0};
	uint64_t now, due;

	if (++a->looks % LOOKS == 0)
		end_period(a);
	else if (monitor_look(a->monitor, &err))
		log_write(&a->log, LOG_L_WARNING, "%s", err.text);
	/* From when it was due, so that the period does not drift; not after a long sleep. */
	now = clock_boot_ns();
	due = a->tick.due_ns + look_ns(a);
	if (due + look_ns(a) * LOOKS < now)
		due = now;
	loop_start(a->loop, &a->tick, due > now ? due - now : 0);
	a->tick.due_ns = due > now ? due : now;
}

/* Kind and speed of the disks; none is fine, but said. */
static void look_at_disks(struct agent *a)
{
	a->self.rotational = false;
	for (size_t i = 0; i < a->measured.nnow; i++)
		a->self.rotational |= host_rotational(a->measured.now[i].name);
	if (!a->measured.nnow && a->set.scoped)
		log_write(&a->log, LOG_L_WARNING,
			  "this node has no disk (see disk= in --scope): no I/O job will be sent "
			  "here");
	a->measured.learned_mb_per_s = journal_fact(a->journal, FACT_MB_PER_S);
}

int tick_start(struct agent *a, struct iocom_err *err)
{
	struct host_reading host;
	int rc = host_read(&a->host, &host, err);

	if (rc)
		return rc;
	a->started_ns = clock_boot_ns();
	a->tick = (struct loop_timer){.fire = tick, .arg = a};
	a->publish = (struct loop_timer){.fire = publish_now, .arg = a};
	tick_sample(a);
	look_at_disks(a);
	vector_close(&a->measured);
	publish(a);
	metrics_period(a);
	loop_start(a->loop, &a->tick, look_ns(a));
	return 0;
}
