/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two tasks on one processor and one FCFS disk.  The solution is exact for Poisson requests and
 * any service whose no-arrival probability is that of a Gamma.  The moments at which a request of
 * task i begins to be served (the other task computes alone) and at which both begin to compute
 * form a Markov chain:
 *
 *   both -> i serves    w_i = v_i / (v_1 + v_2), after 1 / (f (v_1 + v_2)) ms
 *   i serves -> both    L_i = E exp(-v_j c s_i), no request of j meanwhile
 *   i serves -> j serves  1 - L_i
 *   visits   x_1 : x_2 = 1 - w_2 L_2 : 1 - w_1 L_1,   x_both = x_1 L_1 + x_2 L_2
 *
 * with v requests per ms of computation, c = power(1), f = power(2) / 2.  A task
 * without requests has v = 0, one without computation v infinite.
 */
#include "sim/engine/sharing_private.h"

struct side {
	double v;	       /* requests per ms of computation; INFINITY: the task does not
				* compute */
	double quiet;	       /* L: probability that the other makes no request during a service
				* of this one */
	double other_computes; /* expected ms of wall clock that the other computes during one such
				* service */
	double share;	       /* w */
	double serves;	       /* x */
};

static double requests_per_ms(const struct sharing_task *t)
{
	return t->cpu_ms > 0 ? t->visits / t->cpu_ms : INFINITY;
}

static void sharing_pair_serve(struct side *s, const struct sharing_task *t,
			       const struct side *other, double one)
{
	if (isinf(other->v)) {
		s->quiet = 0;
		s->other_computes = 0;
	} else if (other->v > 0) {
		s->quiet = sharing_no_arrival(other->v * one * t->service_ms, sharing_cv2(t));
		s->other_computes = (1 - s->quiet) / (other->v * one);
		if (s->other_computes > t->service_ms)
			s->other_computes = t->service_ms;
	} else {
		s->quiet = 1;
		s->other_computes = t->service_ms;
	}
}

static void pair_rate(struct sharing_task *t, double serves, double computed, double cycle)
{
	if (t->visits > 0)
		t->rate = serves / (t->visits * cycle);
	else
		t->rate = t->cpu_ms > 0 ? computed / (t->cpu_ms * cycle) : 0;
}

void sharing_pair(const struct sharing_machine *m, struct sharing_task *t,
		  struct sharing_load *load)
{
	double one = sharing_power(m, 1), each = sharing_power(m, 2) / 2, busy2 = fmin(m->cores, 2);
	double both, both_ms, cycle, waits;
	struct side a = {.v = requests_per_ms(&t[0])}, b = {.v = requests_per_ms(&t[1])};

	sharing_pair_serve(&a, &t[0], &b, one);
	sharing_pair_serve(&b, &t[1], &a, one);
	a.share = isinf(a.v) ? 1 : isinf(b.v) ? 0 : a.v / (a.v + b.v);
	b.share = 1 - a.share;
	a.serves = 1 - b.share * b.quiet;
	b.serves = 1 - a.share * a.quiet;
	both = a.serves * a.quiet + b.serves * b.quiet;
	both_ms = both > 0 ? both / (each * (a.v + b.v)) : 0;
	cycle = both_ms + a.serves * t[0].service_ms + b.serves * t[1].service_ms;
	pair_rate(&t[0], a.serves, both_ms * each + b.serves * b.other_computes * one, cycle);
	pair_rate(&t[1], b.serves, both_ms * each + a.serves * a.other_computes * one, cycle);
	/* only one task computes */
	waits = a.serves * a.other_computes + b.serves * b.other_computes;
	load->at_cpu = (2 * both_ms + waits) / cycle;
	load->at_disk = 2 - load->at_cpu;
	load->cores_busy = (both_ms * busy2 + waits * fmin(m->cores, 1)) / cycle;
}
