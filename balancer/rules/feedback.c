/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The feedback controller (MODEL 3.11): each completed job moves the weight of I/O and the size
 * of the buffers.  One controller serves the whole cluster.
 *
 * fb_controller 0, published.  S_u = mean of the last fb_history slowdowns:
 *   dW = G_w (1 - S_u / S_{u-1}) sgn(dW_{u-1})                       (4.9) FC
 *   dB = G_b (S_{u-1} - S_u) unit sgn(dB_{u-1})                      (4.13) FC
 *   When S_u is better, the next step keeps the direction; when it is worse, the step
 *   reverses it.  A step of 0 keeps the direction; a step cut at the end of its range
 *   reverses it (O-27).
 *
 * fb_controller 1, smoothed (ours): the same formulas with less noise.  S_u is the slowdown
 * smoothed by fb_filter, S_{u-1} is its value at the last step, and there is no step until S_u
 * leaves the dead band around it.  The slowdowns of single jobs differ far more than the effect
 * of one step, so the published controller mostly follows noise.
 *
 * fb_controller 2, gradient (ours): it looks at the resources instead of the slowdown, so it
 * needs no trial steps.  fb_filter smooths all signals.
 *   W moves towards u_disk / (u_disk + u_cpu), by G_w fb_filter of the distance: a resource
 *   weighs as much as it is used.
 *   B climbs the saving of disk requests.  With p = page faults / disk requests and hit rate
 *   h, one more MB of buffer saves a = (1 - p) h / ((1 - h) B) of the requests, by (5.4), and
 *   costs b = p / (RAM - B) more page faults, by (4.3):
 *   dB = G_b unit (a - b) / (a + b).
 *   Differences within the dead band count as none.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "balancer/rules/rules_private.h"

static double sign_of(double first)
{
	return first != 0 ? 1 : -1;
}

int rules_feedback_init(struct rules *r)
{
	struct rules_feedback *f = &r->feedback;
	uint32_t room = (uint32_t)r->params.fb_history;
	double *history;

	if (f->active)
		return 0;
	history = calloc(room, sizeof(*history));
	if (history == NULL)
		return -ENOMEM;
	f->active = true;
	f->w_io = r->params.w_io;
	f->sign_w = sign_of(r->params.fb_sign_w);
	f->sign_b = sign_of(r->params.fb_sign_b);
	f->history = history;
	f->room = room;
	return 0;
}

int rules_feedback(struct rules *r, double ram_mb, double buffer_mb)
{
	double least = r->params.fb_buffer_min_mb;
	int ret;

	if (!isfinite(ram_mb) || !(ram_mb > 0) || !(buffer_mb >= 0) || !(buffer_mb < ram_mb) ||
	    !(2 * least <= ram_mb))
		return -EINVAL;
	ret = rules_feedback_init(r);
	if (ret < 0)
		return ret;
	r->feedback.ram_mb = ram_mb;
	r->feedback.buffer_mb = buffer_mb;
	return 0;
}

double rules_weight_io(const struct rules *r)
{
	return r->feedback.active ? r->feedback.w_io : r->params.w_io;
}

/* Moves *VALUE by BY within [least, most]; a step cut at an end reverses the direction. */
static void feedback_step(struct rules_feedback *f, double *value, double by, double least,
			  double most, double *sign)
{
	double moved = *value + by;

	if (by != 0)
		*sign = by > 0 ? 1 : -1;
	*value = moved < least ? least : moved > most ? most : moved;
	if (*value != moved) {
		*sign = -*sign;
		f->saturated++;
	}
}

static void step_weight(struct rules_feedback *f, double by)
{
	feedback_step(f, &f->w_io, by, 0, 1, &f->sign_w);
}

static void step_buffer(struct rules *r, double by)
{
	struct rules_feedback *f = &r->feedback;
	double least = r->params.fb_buffer_min_mb;

	if (f->ram_mb > 0)
		feedback_step(f, &f->buffer_mb, by, least, f->ram_mb - least, &f->sign_b);
}

/* Controllers 0 and 1: both steps from comparing the slowdown S with the reference. */
static void steps_by_slowdown(struct rules *r, double s)
{
	struct rules_feedback *f = &r->feedback;
	const struct rules_params *p = &r->params;
	double before = f->reference;

	f->reference = s;
	if (before > 0)
		step_weight(f, p->fb_gain_w * (1 - s / before) * f->sign_w);
	step_buffer(r, p->fb_gain_b * (before - s) * p->fb_buffer_unit_mb * f->sign_b);
}

static void published(struct rules *r, double mean)
{
	struct rules_feedback *f = &r->feedback;

	if (f->has_reference)
		steps_by_slowdown(r, mean);
	f->reference = mean;
	f->has_reference = true;
}

static void feedback_smooth(const struct rules *r, double *value, double newest)
{
	double filter = r->feedback.outcomes > 0 ? r->params.fb_filter : 1;

	*value += filter * (newest - *value);
}

static void smoothed(struct rules *r, double slowdown)
{
	struct rules_feedback *f = &r->feedback;

	feedback_smooth(r, &f->smooth.slowdown, slowdown);
	if (!f->has_reference)
		f->reference = f->smooth.slowdown;
	f->has_reference = true;
	if (fabs(f->smooth.slowdown - f->reference) > r->params.fb_dead_band * f->reference)
		steps_by_slowdown(r, f->smooth.slowdown);
}

/* (a - b) / (a + b), or 0 within the dead band. */
static double contrast(const struct rules *r, double a, double b)
{
	double c = a + b > 0 ? (a - b) / (a + b) : 0;

	return fabs(c) > r->params.fb_dead_band ? c : 0;
}

/* Moves the weight towards the ratio of the utilisations. */
static void weigh(struct rules *r, const struct rules_outcome *o)
{
	struct rules_feedback *f = &r->feedback;
	const struct rules_params *p = &r->params;
	struct rules_outcome *s = &f->smooth;
	double wanted;

	feedback_smooth(r, &s->cpu_utilisation, o->cpu_utilisation);
	feedback_smooth(r, &s->disk_utilisation, o->disk_utilisation);
	/* contrast() is 0 for equal utilisations, which means a weight of one half. */
	wanted = (1 + contrast(r, s->disk_utilisation, s->cpu_utilisation)) / 2;
	if (s->disk_utilisation + s->cpu_utilisation > 0)
		step_weight(f, p->fb_gain_w * p->fb_filter * (wanted - f->w_io));
}

static void gradient(struct rules *r, const struct rules_outcome *o)
{
	struct rules_feedback *f = &r->feedback;
	const struct rules_params *p = &r->params;
	struct rules_outcome *s = &f->smooth;
	double saves, costs;

	weigh(r, o);
	feedback_smooth(r, &s->implicit_share, o->implicit_share);
	feedback_smooth(r, &s->hit_rate, o->hit_rate);
	if (!(f->ram_mb > 0))
		return;
	saves = f->buffer_mb > 0 && s->hit_rate < 1
			? (1 - s->implicit_share) * s->hit_rate / ((1 - s->hit_rate) * f->buffer_mb)
			: 0;
	costs = s->implicit_share / (f->ram_mb - f->buffer_mb);
	step_buffer(r, p->fb_gain_b * p->fb_buffer_unit_mb * contrast(r, saves, costs));
}

static void predictive(struct rules *r, const struct rules_outcome *o)
{
	weigh(r, o);
	step_buffer(r, rules_predicted_step(r));
}

static double mean_with(struct rules_feedback *f, double slowdown)
{
	if (f->used == f->room)
		rules_exact_subtract(&f->sum, f->history[f->next]);
	else
		f->used++;
	rules_exact_add(&f->sum, slowdown);
	f->history[f->next] = slowdown;
	f->next = f->next + 1 < f->room ? f->next + 1 : 0;
	return rules_exact_value(&f->sum) / f->used;
}

static bool feedback_share(double value)
{
	return value >= 0 && value <= 1;
}

int rules_done(struct rules *r, const struct rules_outcome *o)
{
	struct rules_feedback *f = &r->feedback;
	double mean;

	if (!isfinite(o->slowdown) || o->slowdown < 0 || !feedback_share(o->cpu_utilisation) ||
	    !feedback_share(o->disk_utilisation) || !feedback_share(o->implicit_share) ||
	    !feedback_share(o->hit_rate))
		return -EINVAL;
	if (!f->active)
		return 0;
	mean = mean_with(f, o->slowdown);
	switch ((enum rules_controller)r->params.fb_controller) {
	case RULES_CONTROLLER_SMOOTHED:
		smoothed(r, o->slowdown);
		break;
	case RULES_CONTROLLER_GRADIENT:
		gradient(r, o);
		break;
	case RULES_CONTROLLER_PREDICTIVE:
		predictive(r, o);
		break;
	default:
		published(r, mean);
	}
	f->outcomes++;
	return 0;
}

void rules_control(const struct rules *r, struct rules_control *control)
{
	const struct rules_feedback *f = &r->feedback;

	*control = (struct rules_control){
		.active = f->active,
		.w_io = rules_weight_io(r),
		.buffer_mb = f->buffer_mb,
		.slowdown = f->used > 0 ? rules_exact_value(&f->sum) / f->used : 0,
		.outcomes = f->outcomes,
		.saturated = f->saturated,
		.why = f->told.why,
		.wanted_mb = f->told.wanted_mb,
		.stretch = f->told.stretch,
		.stretch_wanted = f->told.stretch_wanted,
	};
}

const char *rules_controller_name(enum rules_controller controller)
{
	static const char *const names[RULES_CONTROLLERS] = {
		[RULES_CONTROLLER_PUBLISHED] = "published",
		[RULES_CONTROLLER_SMOOTHED] = "smoothed",
		[RULES_CONTROLLER_GRADIENT] = "gradient",
		[RULES_CONTROLLER_PREDICTIVE] = "predictive",
	};

	return (unsigned int)controller < RULES_CONTROLLERS ? names[controller] : NULL;
}
