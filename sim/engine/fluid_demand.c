/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a segment demands at the fluid level, and what its progress adds to the sums.
 *
 *   by rate      C lambda (1 - h) accesses, C lambda h hits, C page faults (1.3-1.5)
 *   by number    the given number of accesses, no hits; page faults by rate
 *
 * The mean size of many requests varies little, but their number varies. So, as at the request
 * level, a segment that expects M requests makes a Poisson number N of them, and their mean size
 * is the mean of N random sizes; both are drawn when the segment begins.  If its rates change
 * later so that it expects M', it makes M' N / M for M' <= M, else N + M' - M: of the requests
 * that were not foreseen it makes the expected number.  (Without this, tasks alike would end at
 * the same moment and barriers would cost nothing.)
 */
#include <math.h>

#include "sim/engine/fluid.h"

#define MB_PER_KB    1e-3
#define POISSON_FEW  10.0
#define SPREAD_LEAST 1e-4 /* squared; means that vary less are not drawn */

static double draw_normal(struct sim_random *r)
{
	double radius = sqrt(-2 * log(sim_random_uniform(r)));

	return radius * cos(2 * M_PI * sim_random_uniform(r));
}

/* Small means by inversion; larger ones as (sqrt(mean) + z / 2)^2, which has the mean
 * and variance. */
static double draw_poisson(struct sim_random *r, double mean)
{
	double n = 0, p = exp(-mean), u, root;

	if (mean < POISSON_FEW) {
		for (u = sim_random_uniform(r) - p; u > 0 && p > 0; u -= p)
			p *= mean / ++n;
		return n;
	}
	root = sqrt(mean) + draw_normal(r) / 2;
	return root > 0 ? fmax(root * root - 0.25, 0) : 0;
}

/* Draws the mean of N sizes.  Each is Gamma, so their mean is Gamma too. */
static double draw_size(const struct node_task *t, struct sim_random *r, double n)
{
	double cv = t->request_kb > 0 ? t->request_sd_kb / t->request_kb : 0;

	if (!(n > 0) || !(cv * cv > SPREAD_LEAST * n))
		return t->request_kb;
	return sim_random_gamma(r, t->request_kb, t->request_sd_kb / sqrt(n));
}

/* Computes the misses, hits and page faults that the segment is expected to make by rate. */
static void expect(const struct node *n, const struct node_task *t, struct fluid_run *r)
{
	double io = r->given < 0 ? r->cpu_ms * t->io_per_ms : 0;
	double hit = io > 0 ? node_hit_rate(n, t) : 0;

	r->hits = io * hit;
	r->accesses = io - r->hits;
	r->faults = r->cpu_ms * node_page_rate(n, t);
}

/* The factor by which the segment's drawn requests differ from those expected by rate. */
static double luck(const struct fluid_run *r, double expected)
{
	if (!(expected > 0))
		return 0;
	if (expected <= r->expected)
		return r->drawn / r->expected;
	return (r->drawn + expected - r->expected) / expected;
}

void fluid_demand(const struct node_model *m, const struct node *n, struct node_task *t,
		  struct fluid_run *r, struct sharing_task *s)
{
	double part, sum_ms, sum_ms2;

	expect(n, t, r);
	part = luck(r, r->accesses + r->faults);
	r->accesses *= part;
	r->faults *= part;
	if (r->given >= 0)
		r->accesses = r->given;
	r->access_ms = rules_service_ms(n->disk_fixed_ms, r->kb, n->disk_mb_per_s);
	r->access_ms2 =
		rules_service_ms2(n->disk_fixed_ms, r->kb, t->request_sd_kb, n->disk_mb_per_s);
	r->fault_ms = m->page_fault_at_disk ? m->page_fault_ms : 0;
	sum_ms = r->accesses * r->access_ms + r->faults * r->fault_ms;
	sum_ms2 = r->accesses * r->access_ms2 + r->faults * r->fault_ms * r->fault_ms;
	s->cpu_ms = r->cpu_ms / n->speed;
	s->regular = r->given >= 0 && r->cpu_ms > 0 && !(r->faults > 0);
	s->visits = r->accesses + (m->page_fault_at_disk ? r->faults : 0);
	s->service_ms = s->visits > 0 ? sum_ms / s->visits : 0;
	s->service_ms2 = s->visits > 0 ? sum_ms2 / s->visits : 0;
	s->delay_ms = m->page_fault_at_disk ? 0 : r->faults * m->page_fault_ms;
	t->epoch = n->epoch;
}

void fluid_draw(const struct node *n, struct node_task *t, struct fluid_run *r)
{
	expect(n, t, r);
	r->expected = r->accesses + r->faults;
	r->drawn = r->expected > 0 ? draw_poisson(&t->random, r->expected) : 0;
	r->kb = draw_size(t, &t->random,
			  r->given < 0 ? luck(r, r->expected) * r->accesses : r->given);
}

void fluid_book_to(struct node_sums *sums, const struct fluid_run *r, double part)
{
	double accesses = part * r->accesses, at_disk;

	if (r->work) {
		sums->disk_busy_ms += part * r->access_ms;
		return;
	}
	at_disk = r->fault_ms > 0 ? part * r->faults : 0;
	sums->disk_requests += accesses + at_disk;
	sums->page_faults += part * r->faults;
	sums->accesses += accesses + part * r->hits;
	sums->hits += part * r->hits;
	sums->service_sum += accesses * r->access_ms + at_disk * r->fault_ms;
	sums->service_sum2 += accesses * r->access_ms2 + at_disk * r->fault_ms * r->fault_ms;
	sums->disk_busy_ms += accesses * r->access_ms + at_disk * r->fault_ms;
	sums->disk_mb += accesses * r->kb * MB_PER_KB;
}

void fluid_book(const struct node_model *m, struct fluid_node *f, struct fluid_run *r)
{
	double part = r->booked - r->left;
	struct node_task *t;

	if (part > 0) {
		fluid_book_to(&f->sums, r, part);
		r->booked = r->left;
	}
	if (r->work)
		return;
	t = node_task_of(m, r->id);
	t->segment_ms = r->cpu_ms * r->left;
	t->done_ms = t->goal_ms - t->segment_ms;
	if (part > 0)
		t->accessed_mb +=
			part * (r->accesses * r->kb + r->hits * t->request_kb) * MB_PER_KB;
}
