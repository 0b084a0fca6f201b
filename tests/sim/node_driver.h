/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A small engine around node models for tests: one machine with jobs that arrive, are served and
 * leave.  It measures everything from outside the model.
 */
#ifndef TESTS_SIM_NODE_DRIVER_H
#define TESTS_SIM_NODE_DRIVER_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/engine/node_model.h"

/* Checks |VALUE - WANTED| <= SHARE of |WANTED|; a failure prints both. */
static inline void assert_near(double value, double wanted, double share)
{
	if (!(fabs(value - wanted) <= share * fabs(wanted)))
		fail_msg("%.9g, but %.9g expected (within %g)", value, wanted, share);
}

/* One machine with its model and tasks. */
struct bench {
	struct sim_machine machine;
	struct sim_cluster cluster;
	struct sim_params params;
	struct node_model *model;
	struct node_task *tasks;
};

/* Ideal processor sharing, reference speed 1000 MIPS, one core, no memory limit. */
static inline void bench_init(struct bench *b)
{
	*b = (struct bench){
		.machine = {.cpu_mips = 1000,
			    .cores = 1,
			    .disk_mb_per_s = 40,
			    .request_kb = 250,
			    .network_mb_per_s = 125},
	};
	sim_params_default(&b->params);
	b->params.switch_ms = 0;
}

static inline void bench_start(struct bench *b, size_t tasks)
{
	b->cluster = (struct sim_cluster){.n = 1, .machines = &b->machine};
	b->tasks = calloc(tasks, sizeof(*b->tasks));
	assert_non_null(b->tasks);
	assert_int_equal(node_model_new(&b->model, &b->cluster, &b->params, 1000), 0);
	node_model_tasks(b->model, b->tasks, sizeof(*b->tasks), 0);
}

static inline void bench_end(struct bench *b)
{
	node_model_free(b->model);
	free(b->tasks);
}

/* A task of plain values with the stream of its number. */
static inline struct node_task task_plain(uint32_t number)
{
	return (struct node_task){.requests = -1, .random = sim_random_stream(7, 1, number)};
}

/* Steps node 0 until TIME; returns how many segments and works have ended. */
static inline unsigned int bench_until(struct bench *b, double time)
{
	const struct node_done *done;
	unsigned int ended = 0;

	while (node_next(b->model, 0) <= time)
		ended += (unsigned int)node_step(b->model, 0, node_next(b->model, 0), &done);
	return ended;
}

/* --- an open system ------------------------------------------------------------- */

struct open_job {
	double cpu_ms, requests;
	struct node_task task;
};

struct open_system {
	struct bench bench;
	double interarrival_ms;
	bool regular; /* arrivals at equal intervals; false: Poisson */
	void (*draw)(struct open_job *job, struct sim_random *r);
	uint64_t jobs;
	uint32_t room; /* most tasks at a time */
	/* measured */
	double response_ms;  /* mean */
	double resident;     /* time average of the members */
	double end_ms, rate; /* jobs per ms */
	uint64_t entered, left;
	struct node_sums sums;
};

struct open_state {
	struct open_system *o;
	struct sim_random arrivals, sizes;
	double now, next_arrival, resident_ms, response_sum;
	double *arrived;
	uint32_t *free_ids, nfree;
};

static inline void open_pass(struct open_state *s, double time)
{
	s->resident_ms += (time - s->now) * node_members(s->o->bench.model, 0);
	s->now = time;
}

static inline void open_arrive(struct open_state *s)
{
	struct open_system *o = s->o;
	struct open_job job = {.requests = -1};
	uint32_t id;

	assert_true(s->nfree > 0);
	id = s->free_ids[--s->nfree];
	job.task = task_plain((uint32_t)o->entered);
	o->draw(&job, &s->sizes);
	job.task.cpu_ms = job.cpu_ms;
	o->bench.tasks[id] = job.task;
	s->arrived[id] = s->now;
	assert_int_equal(node_enter(o->bench.model, 0, id, s->now), 0);
	assert_int_equal(node_run(o->bench.model, 0, id, job.cpu_ms, job.requests, s->now), 0);
	o->entered++;
	s->next_arrival += o->regular ? o->interarrival_ms
				      : sim_random_exponential(&s->arrivals, o->interarrival_ms);
}

static inline void open_step(struct open_state *s)
{
	const struct node_done *done;
	struct open_system *o = s->o;
	int n = node_step(o->bench.model, 0, s->now, &done);

	for (int i = 0; i < n; i++) {
		uint32_t id = done[i].task;

		s->response_sum += s->now - s->arrived[id];
		node_leave(o->bench.model, 0, id, s->now);
		s->free_ids[s->nfree++] = id;
		o->left++;
	}
}

/* Runs until all jobs have left; the caller has set the machine and parameters. */
static inline void open_run(struct open_system *o, uint64_t seed)
{
	struct open_state s = {.o = o,
			       .arrivals = sim_random_stream(seed, 10, 0),
			       .sizes = sim_random_stream(seed, 11, 0)};

	if (!o->room)
		o->room = 20000;
	bench_start(&o->bench, o->room);
	s.arrived = calloc(o->room, sizeof(*s.arrived));
	s.free_ids = calloc(o->room, sizeof(*s.free_ids));
	assert_true(s.arrived && s.free_ids);
	for (uint32_t i = 0; i < o->room; i++)
		s.free_ids[s.nfree++] = i;
	while (o->left < o->jobs) {
		double next = node_next(o->bench.model, 0);

		if (o->entered < o->jobs && s.next_arrival <= next) {
			open_pass(&s, s.next_arrival);
			open_arrive(&s);
		} else {
			open_pass(&s, next);
			open_step(&s);
		}
	}
	o->end_ms = s.now;
	o->rate = (double)o->left / s.now;
	o->response_ms = s.response_sum / (double)o->left;
	o->resident = s.resident_ms / s.now;
	node_sums(o->bench.model, 0, s.now, &o->sums);
	free(s.arrived);
	free(s.free_ids);
	bench_end(&o->bench);
}

#endif
