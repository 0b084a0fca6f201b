/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * EASY backfill (Lifka, "The ANL/IBM SP scheduling system", 1995) for a batch system that gives
 * each task a node of its own.  Jobs start in order of arrival.  The first one that cannot start
 * gets a reservation: the earliest time at which, by the times that users requested for the jobs
 * that run, enough nodes are free.  A later job may start at once if enough nodes are free and
 *
 *   it ends before the reservation, by the time requested for it, or
 *   it needs no more nodes than those that the reservation leaves over (extra),
 *
 * so it never delays the first one beyond what the requested times allow.  A job that runs longer
 * than requested is expected to end at any moment.  Where no time was requested, the time that the
 * job takes alone is used.  A job keeps all its nodes until its last task has ended.
 *
 * The queue is judged when no more events are due at the present time, so jobs that end together
 * free their nodes together.  Arrivals alone free nothing: then only the new jobs are judged,
 * unless a job runs longer than requested.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/core.h"

struct easy_waiting {
	double length_ms; /* expected, from the start */
	uint32_t job, tasks;
	bool counted; /* among the jobs that had to wait */
};

struct easy_running {
	double end_ms; /* expected */
	uint32_t job, tasks;
};

struct core_easy {
	struct easy_waiting *queue; /* in order of arrival */
	uint32_t waiting, waiting_room;
	struct easy_running *runs; /* by expected end */
	uint32_t running, running_room;
	uint32_t free_nodes;
	uint32_t judged; /* the first jobs of the queue, which cannot start before a job ends */
};

struct reservation {
	double time_ms;
	uint32_t extra;
};

int core_easy_new(struct core_shard *s)
{
	s->easy = calloc(1, sizeof(*s->easy));
	if (s->easy == NULL)
		return -ENOMEM;
	s->easy->free_nodes = s->n;
	return 0;
}

void core_easy_free(struct core_easy *e)
{
	if (e == NULL)
		return;
	free(e->queue);
	free(e->runs);
	free(e);
}

/* What starting a job elsewhere costs is part of the time that it holds its nodes. */
static double easy_length(const struct core *c, const struct core_job *j)
{
	double requested = j->job.is_batch ? j->job.batch.requested_ms : 0;

	return (requested > 0 ? requested : j->alone_ms) + c->params.rules.fixed_cost_ms +
	       c->params.network_latency_ms;
}

void core_easy_add(struct core_shard *s, uint32_t job)
{
	struct core_easy *e = s->easy;
	const struct core_job *j = &s->jobs.list[job];

	/* A job that is wider than the cluster never starts; it must not block the others. */
	if (j->job.tasks > s->n)
		return;
	if (core_grow(&e->queue, &e->waiting_room, e->waiting + 1, sizeof(*e->queue)) < 0) {
		core_fail(s, -ENOMEM, "out of memory for the batch queue");
		return;
	}
	e->queue[e->waiting++] = (struct easy_waiting){
		.length_ms = easy_length(s->core, j),
		.job = job,
		.tasks = j->job.tasks,
	};
	s->queue_check = true;
}

void core_easy_done(struct core_shard *s, uint32_t job)
{
	struct core_easy *e = s->easy;
	uint32_t i = 0;

	while (i < e->running && e->runs[i].job != job)
		i++;
	if (i == e->running)
		return;
	e->free_nodes += e->runs[i].tasks;
	e->running--;
	memmove(&e->runs[i], &e->runs[i + 1], (e->running - i) * sizeof(*e->runs));
	e->judged = 0;
	s->queue_check = e->waiting > 0;
}

static int easy_hold(struct core_shard *s, const struct easy_waiting *w, double now)
{
	struct core_easy *e = s->easy;
	struct easy_running run = {now + w->length_ms, w->job, w->tasks};
	uint32_t i = e->running;

	if (core_grow(&e->runs, &e->running_room, i + 1, sizeof(*e->runs)) < 0)
		return core_fail(s, -ENOMEM, "out of memory for running jobs");
	for (; i > 0 && e->runs[i - 1].end_ms > run.end_ms; i--)
		e->runs[i] = e->runs[i - 1];
	e->runs[i] = run;
	e->running++;
	e->free_nodes -= w->tasks;
	return 0;
}

/* Starts a job.  Returns 0; 1: the rules find no nodes for it (memory, owners); -errno. */
static int easy_start(struct core_shard *s, const struct easy_waiting *w, double now)
{
	int ret = core_decide(s, w->job, now);

	if (ret == 0)
		ret = easy_hold(s, w, now);
	return ret == 0 ? core_dispatch(s, w->job, now) : ret;
}

/* When W can start at the latest, and how many nodes are then left over. */
static struct reservation easy_reserve(const struct core_easy *e, const struct easy_waiting *w,
				       double now)
{
	uint64_t nodes = e->free_nodes;
	double time = now;
	uint32_t i = 0;

	for (; i < e->running && (nodes < w->tasks || e->runs[i].end_ms <= time); i++) {
		nodes += e->runs[i].tasks;
		time = e->runs[i].end_ms > time ? e->runs[i].end_ms : time;
	}
	return (struct reservation){
		.time_ms = nodes < w->tasks ? CORE_FOREVER : time,
		.extra = nodes < w->tasks ? 0 : (uint32_t)(nodes - w->tasks),
	};
}

/* Returns whether W may pass the job that has the reservation. */
static bool easy_may_pass(const struct core_easy *e, const struct easy_waiting *w,
			  struct reservation *r, double now)
{
	if (w->tasks > e->free_nodes)
		return false;
	if (now + w->length_ms <= r->time_ms)
		return true;
	return w->tasks <= r->extra;
}

/* Lets jobs of the queue from FROM on pass the first one; returns how many jobs still wait. */
static uint32_t easy_backfill(struct core_shard *s, uint32_t from, double now)
{
	struct core_easy *e = s->easy;
	struct reservation r = easy_reserve(e, &e->queue[0], now);
	uint32_t kept = from, i = from;

	for (; i < e->waiting && e->free_nodes > 0 && s->error == 0; i++) {
		const struct easy_waiting w = e->queue[i];

		if (easy_may_pass(e, &w, &r, now) && easy_start(s, &w, now) == 0) {
			if (now + w.length_ms > r.time_ms)
				r.extra -= w.tasks;
			continue;
		}
		e->queue[kept++] = w;
	}
	if (kept < i)
		memmove(&e->queue[kept], &e->queue[i], (e->waiting - i) * sizeof(*e->queue));
	return kept + (e->waiting - i);
}

/* Starts jobs in order as long as there are nodes for them. */
static void easy_start_first(struct core_shard *s, double now)
{
	struct core_easy *e = s->easy;
	uint32_t started = 0;

	while (started < e->waiting && e->queue[started].tasks <= e->free_nodes &&
	       easy_start(s, &e->queue[started], now) == 0)
		started++;
	e->waiting -= started;
	memmove(e->queue, &e->queue[started], e->waiting * sizeof(*e->queue));
}

void core_easy_try(struct core_shard *s, double now)
{
	struct core_easy *e = s->easy;
	uint32_t judged = e->judged;

	s->queue_check = false;
	/* The reservation moves on while a job runs longer than expected: then others may pass. */
	if (e->running > 0 && e->runs[0].end_ms < now)
		judged = 0;
	if (judged == 0)
		easy_start_first(s, now);
	if (s->error == 0 && e->waiting > 0)
		e->waiting = easy_backfill(s, judged > 0 ? judged : 1, now);
	e->judged = e->waiting;
	/* The jobs that have just come are the last ones. */
	for (uint32_t i = e->waiting; i > 0 && !e->queue[i - 1].counted; i--) {
		e->queue[i - 1].counted = true;
		s->stats.queued++;
	}
}
