/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The controller's modes and samples; see feedback.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_view.h"
#include "agent/feedback/feedback_own.h"
#include "agent/jobs/journal.h"
#include "user/clock.h"

#define TURN_LIMIT_MS 30000
#define FC_RAM_MB     640.0 /* the papers' node: gains and steps in MB are for this much */

/* --- the controllers -------------------------------------------------------------------- */

static bool by_resources(const struct feedback *f)
{
	return f->set.controller == RULES_CONTROLLER_GRADIENT ||
	       f->set.controller == RULES_CONTROLLER_PREDICTIVE;
}

static void feedback_params(const struct feedback *f, struct rules_params *p)
{
	const struct settings_feedback *s = &f->set;
	double memory_mb = f->buffer.memory_mb > 0 ? f->buffer.memory_mb : FC_RAM_MB;

	view_params(p);
	settings_rules_apply(&f->base->set->rules, p);
	p->fb_controller = s->controller;
	p->fb_gain_w = s->gain_w;
	p->fb_gain_b = s->gain_b;
	p->fb_history = s->history;
	p->fb_buffer_unit_mb = memory_mb / FC_RAM_MB;
	p->fb_step_mb = s->step * memory_mb;
	p->fb_buffer_min_mb =
		(by_resources(f) ? fmin(s->least, 1 - s->most) : s->least) * memory_mb;
}

/*
 * The memory that the rules are told.  Their range is [fb_buffer_min_mb, memory -
 * fb_buffer_min_mb], and a step that is cut there turns the direction (O-27): for controllers with
 * a direction, which use memory for nothing else, it is made to be that of the settings.
 */
static double feedback_ram(const struct feedback *f)
{
	return (by_resources(f) ? 1 : f->set.least + f->set.most) * f->buffer.memory_mb;
}

static struct rules *feedback_rules(const struct feedback *f)
{
	struct rules_params p;

	feedback_params(f, &p);
	return rules_new(RULES_WAL_FC, &p, 1);
}

struct recall {
	double slowdowns[FEEDBACK_RECALL];
	size_t n;
};

static void recall_one(void *arg, const struct journal_outcome *o)
{
	struct recall *r = arg;

	if (r->n < FEEDBACK_RECALL && o->slowdown > 0 && o->exit_kind == 0 && o->exit_value == 0)
		r->slowdowns[r->n++] = o->slowdown;
}

/* Those controllers that learn from slowdowns only; the others learn from what is now. */
static void feedback_recall(struct feedback *f)
{
	struct recall *r = by_resources(f) || !f->config.journal ? NULL : calloc(1, sizeof(*r));

	f->recalled = 0;
	if (!r)
		return;
	if (!journal_outcomes_from(f->config.journal, 0, (uid_t)-1, &(struct journal_mark){0},
				   FEEDBACK_RECALL, recall_one, r))
		for (size_t i = r->n; i-- > 0;)
			f->recalled += !rules_done(
				f->weights, &(struct rules_outcome){.slowdown = r->slowdowns[i]});
	free(r);
}

static void feedback_forget(struct feedback *f)
{
	rules_free(f->weights);
	rules_free(f->rules);
	f->weights = f->rules = NULL;
	free(f->jobs);
	f->jobs = NULL;
	f->njobs = 0;
	f->buffer = (struct feedback_buffer){.why = "none"};
	f->slowdown_sum = f->slowdown = 0;
	f->ran = 0;
	f->samples = 0;
}

/* The node's memory is known now: the buffer's controller begins. */
static void feedback_know(struct feedback *f, double memory_mb)
{
	feedback_buffer_begin(f, memory_mb);
	f->rules = feedback_rules(f);
	if (f->rules && rules_feedback(f->rules, feedback_ram(f), f->buffer.applied_mb)) {
		rules_free(f->rules);
		f->rules = NULL;
	}
}

/* --- modes ------------------------------------------------------------------------------ */

static const char *feedback_offered(const struct feedback *f)
{
	return f->hand ? cgroup_high_offered(&f->mounts, f->base->set->scope_cgroup) : NULL;
}

void feedback_holds(const struct feedback *f, char *out, size_t size)
{
	const char *file = feedback_offered(f);

	if (file)
		snprintf(out, size, "by %s of the groups of jobs that do I/O", file);
	else if (!f->hand)
		snprintf(out, size, "only weights are controlled: %.180s", f->mounts_err.text);
	else
		snprintf(
			out, size,
			"only weights are controlled: this kernel has no memory controller for the "
			"groups of jobs (neither memory.high of cgroup v2 nor "
			"memory.soft_limit_in_bytes of v1)");
}

/* An agent without the controller has no thread for it. */
static void feedback_need_thread(struct feedback *f)
{
	struct iocom_err err = {0};

	if (!f->thread && !f->config.direct &&
	    question_thread_new(&f->thread, f->base->loop, TURN_LIMIT_MS, 1, &err))
		log_write(f->base->log, LOG_L_ERROR,
			  "feedback: only weights are controlled: %.200s", err.text);
}

static void feedback_enter(struct feedback *f)
{
	char holds[320];

	f->set = f->base->set->feedback;
	f->mode = f->set.mode;
	if (f->mode == FEEDBACK_OFF)
		return;
	f->weights = feedback_rules(f);
	if (f->weights)
		feedback_recall(f);
	if (f->mode == FEEDBACK_ON && f->hand)
		hand_open(f->hand);
	feedback_need_thread(f);
	f->sample_ns = loop_boot_ns(f->base->loop) + f->set.interval_s * CLOCK_NS_PER_S;
	feedback_holds(f, holds, sizeof(holds));
	log_write(f->base->log, LOG_L_INFO, "feedback: %s, %s; %s",
		  settings_feedback_names[f->mode],
		  rules_controller_name((enum rules_controller)f->set.controller), holds);
}

/* Counts what the hand gave back, and logs it: after WHEN. */
static void feedback_gave_back(struct feedback *f, enum log_level level, const char *when,
			       const struct hand_done *done)
{
	feedback_account(f, done);
	if (done->restored)
		log_write(f->base->log, level,
			  "feedback: %s%u group%s of jobs got the original bound of memory back",
			  when, done->restored, done->restored == 1 ? "" : "s");
}

static void feedback_leave(struct feedback *f)
{
	struct hand_done done = {0};

	if (f->hand && f->mode == FEEDBACK_ON) {
		hand_close(f->hand, &done);
		feedback_gave_back(f, LOG_L_INFO, "", &done);
	}
	feedback_forget(f);
	f->mode = FEEDBACK_OFF;
}

int feedback_new(struct feedback **out, const struct feedback_config *config, struct iocom_err *err)
{
	struct feedback *f = calloc(1, sizeof(*f));
	char path[SETTINGS_PATH_MAX + 32];
	int rc = 0;

	if (!f)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	f->config = *config;
	f->base = config->base;
	f->buffer.why = "none";
	snprintf(path, sizeof(path), "%s/feedback.originals", f->base->set->state_dir);
	if (!cgroup_mounts_read(config->mounts, &f->mounts, &f->mounts_err))
		rc = hand_new(&f->hand, &f->mounts, f->base->set->scope_cgroup, path);
	if (!rc) {
		*out = f;
		return 0;
	}
	feedback_free(f);
	return iocom_err_set(err, rc, "cannot begin the feedback controller: %s", strerror(-rc));
}

void feedback_begin(struct feedback *f)
{
	struct hand_done done;
	struct iocom_err err = {0};

	if (f->hand && hand_recover(f->hand, &done, &err))
		log_write(f->base->log, LOG_L_ERROR,
			  "feedback: what an earlier agent changed cannot be given back: %s",
			  err.text);
	else if (f->hand)
		feedback_gave_back(f, LOG_L_WARNING, "an earlier agent was killed; ", &done);
	feedback_enter(f);
}

void feedback_stop(struct feedback *f)
{
	if (!f)
		return;
	feedback_leave(f);
	question_thread_free(f->thread);
	f->thread = NULL;
}

void feedback_free(struct feedback *f)
{
	if (!f)
		return;
	feedback_stop(f);
	hand_put(f->hand);
	free(f->reads);
	free(f);
}

static bool feedback_same(const struct settings_feedback *a, const struct settings_feedback *b)
{
#define SAME(kind, type, member, name, value, help, usual, least_, most_) &&a->member == b->member
	return a->mode == b->mode && a->controller == b->controller SETTINGS_FEEDBACK(SAME);
#undef SAME
}

void feedback_reload(struct feedback *f)
{
	if (feedback_same(&f->set, &f->base->set->feedback))
		return;
	feedback_leave(f);
	feedback_enter(f);
}

/* --- what is learnt ----------------------------------------------------------------------- */

void feedback_submitted_slowed(void *arg, double slowdown)
{
	struct feedback *f = arg;
	struct rules_outcome outcome = {.slowdown = slowdown};
	struct feedback_cluster cluster = {0};
	struct rules_control before, after;

	if (!f->weights)
		return;
	f->config.ports.cluster(f->config.ports.arg, &cluster);
	outcome.cpu_utilisation = cluster.cpu_utilisation;
	outcome.disk_utilisation = cluster.disk_utilisation;
	rules_control(f->weights, &before);
	(void)rules_done(f->weights, &outcome);
	rules_control(f->weights, &after);
	f->base->counters->feedback_at_bound += after.saturated > before.saturated;
}

/* What the rules want after an outcome is what they have; outside of the bounds they begin there.
 */
static double feedback_wanted(struct feedback *f, struct rules_control *control)
{
	const struct feedback_buffer *b = &f->buffer;
	double within;

	rules_control(f->rules, control);
	within = fmin(fmax(control->buffer_mb, b->least_mb), b->most_mb);
	if (within != control->buffer_mb)
		(void)rules_feedback(f->rules, feedback_ram(f), within);
	return within;
}

void feedback_ran_slowed(void *arg, double slowdown)
{
	struct feedback *f = arg;
	struct rules_control control;

	if (f->mode == FEEDBACK_OFF)
		return;
	f->ran++;
	f->buffer.ended++;
	f->slowdown_sum += slowdown;
	if (!f->rules || by_resources(f))
		return;
	(void)rules_done(f->rules, &(struct rules_outcome){.slowdown = slowdown});
	(void)feedback_wanted(f, &control);
}

/* An outcome for those that look at resources; no job need have ended for it. */
static void feedback_look_now(struct feedback *f, const struct iocom_vector *own)
{
	struct guest_running *jobs = calloc(FEEDBACK_JOBS_MAX, sizeof(*jobs));
	struct rules_outcome outcome = {0};
	size_t n = jobs ? f->config.ports.running(f->config.ports.arg, jobs, FEEDBACK_JOBS_MAX) : 0;

	if (f->buffer.ended)
		f->slowdown = f->slowdown_sum / f->buffer.ended;
	outcome.slowdown = f->slowdown;
	if (jobs && (n || f->buffer.ended) && !feedback_look(f, own, jobs, n, &outcome))
		(void)rules_done(f->rules, &outcome);
	free(jobs);
}

static const char *feedback_why(const struct feedback *f, const struct rules_control *control)
{
	static const char *const by[] = {
		[RULES_CONTROLLER_PUBLISHED] = "slowdown",
		[RULES_CONTROLLER_SMOOTHED] = "slowdown",
		[RULES_CONTROLLER_GRADIENT] = "requests",
	};

	return f->set.controller == RULES_CONTROLLER_PREDICTIVE
		       ? rules_control_why_name(control->why)
		       : by[f->set.controller];
}

static void feedback_sample(struct feedback *f)
{
	struct rules_control control;
	struct iocom_vector own;
	double wanted;

	if (!f->rules)
		return;
	f->config.ports.own_vector(f->config.ports.arg, &own);
	if (by_resources(f))
		feedback_look_now(f, &own);
	else if (f->buffer.ended < f->set.jobs)
		return;
	wanted = feedback_wanted(f, &control);
	f->samples++;
	feedback_buffer_sample(f, wanted, feedback_why(f, &control));
	f->buffer.ended = 0;
	f->slowdown_sum = 0;
}

void feedback_chores(struct feedback *f)
{
	uint64_t now = loop_boot_ns(f->base->loop);
	struct iocom_vector own;

	if (f->mode == FEEDBACK_OFF)
		return;
	if (!f->rules) {
		f->config.ports.own_vector(f->config.ports.arg, &own);
		if (own.memory_mb > 0)
			feedback_know(f, own.memory_mb);
	}
	if (now >= f->sample_ns) {
		f->sample_ns = now + f->set.interval_s * CLOCK_NS_PER_S;
		feedback_sample(f);
	}
	feedback_turn(f);
}

double feedback_w_io(const struct feedback *f)
{
	struct rules_control control;

	if (!f->weights)
		return f->base->set->rules.w_io;
	rules_control(f->weights, &control);
	return control.w_io;
}

size_t feedback_jobs(const struct feedback *f)
{
	return f->njobs;
}
