/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How the applied buffer follows the wanted one: hysteresis, steps, bounds; see feedback.h. */
#include <math.h>

#include "agent/feedback/feedback_own.h"

void feedback_buffer_begin(struct feedback *f, double memory_mb)
{
	f->buffer = (struct feedback_buffer){
		.memory_mb = memory_mb,
		.least_mb = f->set.least * memory_mb,
		.most_mb = f->set.most * memory_mb,
		.why = "none",
		.moved_by = "none",
	};
	f->buffer.applied_mb = f->buffer.wanted_mb = f->buffer.most_mb;
	f->buffer.bound = 1;
}

static double buffer_within(const struct feedback_buffer *b, double mb)
{
	return fmin(fmax(mb, b->least_mb), b->most_mb);
}

static void buffer_note(struct feedback *f, double from_mb)
{
	const struct feedback_buffer *b = &f->buffer;

	f->steps[f->nsteps++ % FEEDBACK_STEPS] = (struct feedback_step){
		.real_ns = loop_real_ns(f->base->loop),
		.from_mb = from_mb,
		.to_mb = b->applied_mb,
		.wanted_mb = b->wanted_mb,
		.why = b->moved_by,
		.dry = f->mode == FEEDBACK_DRY_RUN,
	};
	f->base->counters->feedback_steps++;
}

/* The rules want to go where the settings do not let them: said once for each stay there. */
static void buffer_at_bound(struct feedback *f, bool wants_beyond)
{
	struct feedback_buffer *b = &f->buffer;
	int bound = b->applied_mb <= b->least_mb ? -1 : b->applied_mb >= b->most_mb ? 1 : 0;

	if (bound && wants_beyond)
		f->base->counters->feedback_at_bound++;
	if (bound == b->bound)
		return;
	b->bound = bound;
	if (bound)
		log_write(
			f->base->log, LOG_L_INFO,
			"feedback: the buffer is at its %s, %.0f MB of %.0f (%s = %g); it goes no "
			"further",
			bound < 0 ? "least" : "most", b->applied_mb, b->memory_mb,
			bound < 0 ? "feedback_min" : "feedback_max",
			bound < 0 ? f->set.least : f->set.most);
}

bool feedback_buffer_sample(struct feedback *f, double wanted_mb, const char *why)
{
	struct feedback_buffer *b = &f->buffer;
	double error, from = b->applied_mb, most = f->set.step * b->memory_mb;
	bool beyond = wanted_mb <= b->least_mb || wanted_mb >= b->most_mb;
	int sign;

	wanted_mb = buffer_within(b, wanted_mb);
	if (wanted_mb != b->wanted_mb)
		b->moved_by = why;
	b->wanted_mb = wanted_mb;
	b->why = why;
	error = b->wanted_mb - b->applied_mb;
	/* The last bit of the way to a bound counts, however small. */
	if (fabs(error) <= f->set.band * b->memory_mb && !(beyond && error != 0))
		error = 0;
	sign = error > 0 ? 1 : error < 0 ? -1 : 0;
	b->persisted = !sign ? 0 : sign == b->sign ? b->persisted + 1 : 1;
	b->sign = sign;
	b->error_mb = error;
	if (sign && b->persisted >= f->set.persist) {
		b->applied_mb = buffer_within(b, from + fmin(fmax(error, -most), most));
		b->error_mb = b->wanted_mb - b->applied_mb;
		buffer_note(f, from);
	}
	buffer_at_bound(f, beyond);
	return b->applied_mb != from;
}
