/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * fb_controller 3, predictive (ours): it needs neither trial steps nor the slowdown as a signal.
 * From the requirements of the running tasks, which every policy knows, and the models of the
 * hit rate (5.4) and of page faults (4.3) it computes how long each task would take with any
 * other buffer B.  On one node with n tasks, per ms of computation:
 *
 *   D_j  work of the disk: lambda_j (1 - h_j(B)) service_j, plus page_j(B) fault_ms if page
 *        faults use the disk
 *   Z_j  time away from the disk: computation, plus page faults that do not use the disk
 *   R    mean time at the disk, by mean value analysis (Schweitzer) with n tasks and one queue:
 *        R = D (1 + (n - 1) R / (R + Z)), that is R^2 + (Z - n D) R - D Z = 0, with the means
 *        D and Z; task j gets D_j R / D
 *   W_j  = Z_j + D_j R / D, or n / cores if that is more: the expected slowdown of task j
 *
 * The mean of W_j must count each job once, however long it is.  At any moment tasks of long
 * jobs are more frequent, so the weights are 1 / t_j.  Nobody can measure how long a job will
 * be: t_j is twice the CPU time used so far, because a job's rest is expected to equal its age
 * (3.9, O-9), or at least fb_age_least_ms.  With fb_known_length t_j is the requirement: a
 * clairvoyant variant that shows what this knowledge is worth.
 *
 * The controller evaluates the mean for POINTS buffers over the whole range and finds the best.
 * Each outcome moves the buffer towards it by at most fb_step_mb, unless that would save less
 * than the dead band.  Only this bound averages: no measurement is smoothed.
 *
 * W_IO moves as in the gradient controller.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "balancer/rules/rules_private.h"

#define KB_PER_MB 1000.0
#define POINTS	  RULES_FORECAST_POINTS

/* The tasks of a node together. */
struct crowd {
	const struct rules_node *node;
	const struct rules_params *params;
	double computing_ms; /* duration of a ms of computation at the reference speed */
	double memory_mb, kb_per_ms, weight;
	double fault_ms;
	bool fault_at_disk;
};

static double point_mb(const struct rules *r, uint32_t k)
{
	double least = r->params.fb_buffer_min_mb;

	return least + (r->feedback.ram_mb - 2 * least) * k / (POINTS - 1);
}

/* t_j as far as the controller may know it. */
static double length_ms(const struct rules_params *p, const struct rules_task *t)
{
	double length = p->fb_known_length ? t->cpu_ms : 2 * t->age_ms;
	double least = 2 * p->fb_age_least_ms;

	return length > least ? length : least;
}

static struct crowd crowd_of(const struct rules *r, const struct rules_node *node, double fault_ms,
			     bool fault_at_disk)
{
	double reference = r->params.reference_mips;
	struct crowd c = {.node = node,
			  .params = &r->params,
			  .fault_ms = fault_ms,
			  .fault_at_disk = fault_at_disk};

	c.computing_ms = reference > 0 ? reference / node->cpu_mips : 1;
	for (size_t j = 0; j < node->ntasks; j++) {
		c.memory_mb += node->tasks[j].memory_mb;
		c.kb_per_ms += node->tasks[j].io_per_ms * node->tasks[j].request_kb;
		c.weight += 1 / length_ms(&r->params, &node->tasks[j]);
	}
	return c;
}

/* The disk's work, per ms of computation, for accesses that miss a buffer of BUFFER_MB. */
static double misses_ms(const struct crowd *c, const struct rules_task *t, double buffer_mb)
{
	const struct rules_node *node = c->node;

	if (!(node->disk_mb_per_s > 0))
		return 0;
	return t->io_per_ms *
	       (1 - rules_hit_rate(t->reaccess, buffer_mb * KB_PER_MB, t->io_per_ms, t->request_kb,
				   length_ms(c->params, t), c->kb_per_ms)) *
	       rules_service_ms(node->disk_fixed_ms, t->request_kb, node->disk_mb_per_s);
}

/* R / D of N tasks. */
static double queue(double disk, double away, double n)
{
	double half = (n * disk - away) / 2;

	return disk > 0 ? (half + sqrt(half * half + disk * away)) / disk : 0;
}

/* The sum of W_j / t_j with a buffer of BUFFER_MB. */
static double feedback_predict_stretch(const struct crowd *c, double buffer_mb)
{
	const struct rules_node *node = c->node;
	double page = rules_implicit(1, c->memory_mb, node->ram_mb - buffer_mb) * c->fault_ms;
	double n = (double)node->ntasks, computing = n / node->cores * c->computing_ms, all;
	double disk = 0, away = 0, disk_weighed = 0, away_weighed = 0;

	for (size_t j = 0; j < node->ntasks; j++) {
		const struct rules_task *t = &node->tasks[j];
		double d = misses_ms(c, t, buffer_mb), z = c->computing_ms,
		       weight = 1 / length_ms(c->params, t);

		*(c->fault_at_disk ? &d : &z) += t->faults_per_ms * page;
		disk += d;
		away += z;
		disk_weighed += weight * d;
		away_weighed += weight * z;
	}
	all = away_weighed + disk_weighed * queue(disk / n, away / n, n);
	return all > c->weight * computing ? all : c->weight * computing;
}

int rules_foresee(struct rules *r, const struct rules_node *node, double fault_ms,
		  bool fault_at_disk)
{
	struct rules_feedback *f = &r->feedback;
	struct crowd c;

	if (!isfinite(fault_ms) || fault_ms < 0 || rules_node_check(node) < 0)
		return -EINVAL;
	if (r->params.fb_controller != RULES_CONTROLLER_PREDICTIVE || !f->active ||
	    !(f->ram_mb > 0) || node->ram_mb < f->ram_mb || node->ntasks == 0)
		return 0;
	c = crowd_of(r, node, fault_ms, fault_at_disk);
	for (uint32_t k = 0; k < POINTS; k++)
		f->curve[k] += feedback_predict_stretch(&c, point_mb(r, k));
	f->curve_weight += c.weight;
	return 0;
}

/* Interpolates the curve between its points. */
static double curve_at(const struct rules *r, double buffer_mb)
{
	const double *curve = r->feedback.curve;
	double least = point_mb(r, 0), most = point_mb(r, POINTS - 1), at, part;
	uint32_t k;

	at = most > least ? (buffer_mb - least) / (most - least) * (POINTS - 1) : 0;
	if (!(at > 0))
		return curve[0];
	if (at >= POINTS - 1)
		return curve[POINTS - 1];
	k = (uint32_t)at;
	part = at - k;
	return curve[k] * (1 - part) + curve[k + 1] * part;
}

/* Evaluates the curve, then starts a new one. */
static void forecast(struct rules *r, struct rules_control *told)
{
	struct rules_feedback *f = &r->feedback;
	uint32_t best = 0;

	for (uint32_t k = 1; k < POINTS; k++)
		best = f->curve[k] < f->curve[best] ? k : best;
	told->wanted_mb = point_mb(r, best);
	told->stretch = curve_at(r, f->buffer_mb) / f->curve_weight;
	told->stretch_wanted = f->curve[best] / f->curve_weight;
	memset(f->curve, 0, sizeof(f->curve));
	f->curve_weight = 0;
}

double rules_predicted_step(struct rules *r)
{
	struct rules_feedback *f = &r->feedback;
	const struct rules_params *p = &r->params;
	struct rules_control *told = &f->told;
	double by;

	told->why = RULES_WHY_IDLE;
	if (!(f->curve_weight > 0))
		return 0;
	forecast(r, told);
	told->why = RULES_WHY_DEAD_BAND;
	if (!(told->stretch - told->stretch_wanted > p->fb_dead_band * told->stretch))
		return 0;
	by = told->wanted_mb - f->buffer_mb;
	told->why = by > 0 ? RULES_WHY_MISSES : RULES_WHY_FAULTS;
	return by > p->fb_step_mb ? p->fb_step_mb : by < -p->fb_step_mb ? -p->fb_step_mb : by;
}

const char *rules_control_why_name(enum rules_control_why why)
{
	static const char *const names[RULES_WHYS] = {
		[RULES_WHY_NONE] = "none",	     [RULES_WHY_IDLE] = "idle",
		[RULES_WHY_DEAD_BAND] = "dead-band", [RULES_WHY_MISSES] = "misses",
		[RULES_WHY_FAULTS] = "faults",
	};

	return (unsigned int)why < RULES_WHYS ? names[why] : NULL;
}
