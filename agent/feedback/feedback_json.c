/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What `iocom feedback` shows. */
#include <string.h>

#include "agent/feedback/feedback_own.h"

static json_t *feedback_weight_json(const struct feedback *f)
{
	struct rules_control control = {0};

	if (!f->weights)
		return json_null();
	rules_control(f->weights, &control);
	return json_pack("{s:f,s:f,s:I,s:I,s:f}", "w_io", control.w_io, "w_cpu", 1 - control.w_io,
			 "jobs", (json_int_t)control.outcomes, "recalled", (json_int_t)f->recalled,
			 "slowdown", control.slowdown);
}

static json_t *feedback_buffer_json(const struct feedback *f)
{
	const struct feedback_buffer *b = &f->buffer;
	struct rules_control control = {0};

	if (!f->rules)
		return json_null();
	rules_control(f->rules, &control);
	return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:s,s:s?,s:I,s:I,s:f,s:f,s:f}",
			 "memory_mb", b->memory_mb, "applied_mb", b->applied_mb, "wanted_mb",
			 b->wanted_mb, "least_mb", b->least_mb, "most_mb", b->most_mb, "error_mb",
			 b->error_mb, "persisted", (json_int_t)b->persisted, "persist",
			 (json_int_t)f->set.persist, "why", b->why, "bound",
			 b->bound < 0	? "least"
			 : b->bound > 0 ? "most"
					: NULL,
			 "samples", (json_int_t)f->samples, "jobs", (json_int_t)f->ran, "slowdown",
			 control.slowdown, "stretch", control.stretch, "stretch_wanted",
			 control.stretch_wanted);
}

static json_t *feedback_steps_json(const struct feedback *f)
{
	uint64_t n = f->nsteps < FEEDBACK_STEPS ? f->nsteps : FEEDBACK_STEPS;
	json_t *steps = json_array();

	for (uint64_t i = 0; i < n; i++) {
		const struct feedback_step *s = &f->steps[(f->nsteps - 1 - i) % FEEDBACK_STEPS];

		json_array_append_new(steps,
				      json_pack("{s:I,s:f,s:f,s:f,s:s,s:b}", "time_ns",
						(json_int_t)s->real_ns, "from_mb", s->from_mb,
						"to_mb", s->to_mb, "wanted_mb", s->wanted_mb, "why",
						s->why, "dry_run", s->dry));
	}
	return steps;
}

static json_t *feedback_groups_json(const struct feedback *f, uid_t uid)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < f->njobs; i++) {
		const struct hand_job *job = &f->jobs[i];

		if (uid != 0 && uid != job->uid)
			continue;
		json_array_append_new(
			groups,
			json_pack("{s:s,s:I,s:s,s:s,s:I,s:I,s:o,s:s,s:o}", "job", job->job, "uid",
				  (json_int_t)job->uid, "group", job->name, "state",
				  hand_state_names[job->state], "memory_bytes",
				  (json_int_t)job->use.bytes, "cache_bytes",
				  (json_int_t)job->use.cache_bytes, "bound_bytes",
				  job->high_bytes ? json_integer((json_int_t)job->high_bytes)
						  : json_null(),
				  "original", job->original, "error",
				  job->rc ? json_string(strerror(-job->rc)) : json_null()));
	}
	return groups;
}

static json_int_t feedback_held(const struct feedback *f)
{
	json_int_t held = 0;

	for (size_t i = 0; i < f->njobs; i++)
		held += f->jobs[i].state == HAND_HELD;
	return held;
}

json_t *feedback_json(struct feedback *f, uid_t uid)
{
	char holds[320];

	feedback_holds(f, holds, sizeof(holds));
	return json_pack(
		"{s:i,s:s,s:s,s:s,s:s,s:I,s:I,s:o,s:o,s:o,s:o,s:s}", "version", 1, "node",
		f->base->set->name, "feedback", settings_feedback_names[f->mode], "controller",
		rules_controller_name((enum rules_controller)f->base->set->feedback.controller),
		"holds", holds, "held", feedback_held(f), "interval_s",
		(json_int_t)f->base->set->feedback.interval_s, "weight", feedback_weight_json(f),
		"buffer", feedback_buffer_json(f), "steps", feedback_steps_json(f), "groups",
		feedback_groups_json(f, uid), "failure", f->failure);
}
