/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a submission's class tells: needs, how sure they are, and whether the class is too light to
 * go anywhere (DIOGENES, MODEL 4.5).  A class is light if jobs of it need, here and alone,
 *
 *   cpu_ms / cpu_speed + requests * (disk_fixed_ms + request_kb / disk_mb_per_s) + com_ms
 *     + shared_mb / network_mb_per_s
 *
 * less than light_ms, and little memory, as at least LIGHT_RUNS runs of it showed.  Who names a
 * policy, a node or a need decides otherwise.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/home/need_resolve.h"
#include "agent/home/place.h"
#include "agent/home/progress.h"
#include "balancer/profile/profile_runs.h"
#include "user/clock.h"

#define LIGHT_RUNS   3
#define LIGHT_MEMORY 0.05 /* of this node's */

static void class_next(const struct place *p, struct profile_next *next)
{
	const struct placement_ask *ask = &p->placement.ask;
	const struct base *base = p->home->base;

	*next = (struct profile_next){
		.input_id = ask->input_id < 0 ? 0 : (uint64_t)ask->input_id,
		.input_mb = ask->input_bytes < 0 ? -1 : (double)ask->input_bytes / 1e6,
		.home = base->set->name,
		.now_s = loop_real_ns(base->loop) / CLOCK_NS_PER_S,
	};
}

/* What is known of the class: its profile, else what is guessed of it; both are in EXPECTED. */
static struct need_learned class_learned(const struct place *p, struct profile_expected *expected,
					 struct iocom_err *err)
{
	const struct home *home = p->home;
	const struct job_order *o = &p->order;
	uint64_t now = loop_boot_ns(home->base->loop);
	struct profile *room = &expected->profile;
	struct need_learned learned = {0};
	struct profile_next next;
	int rc = -ENOENT;

	class_next(p, &next);
	if (*o->class_name)
		rc = profile_expect(home->profiles, o->uid, o->class_name, &next, expected, err);
	if (!rc)
		learned.set = &expected->set;
	if (!rc && room->runs) {
		progress_correct(home->progress, o->uid, o->class_name, now, room);
		learned.profile = room;
		return learned;
	}
	learned.guess = room;
	if (*o->class_name && progress_guess(home->progress, o->uid, o->class_name, now, room))
		return learned;
	if (!rc || rc == -ENOENT)
		rc = profile_typical(home->profiles, o->uid, room, err);
	if (rc && rc != -ENOENT)
		base_journal_failed(home->base, err);
	if (rc)
		learned.guess = NULL;
	return learned;
}

/* --- in words -------------------------------------------------------------------------- */

/* The least confidence in the needs that decide where a job runs. */
static double class_confidence(const struct profile_expected *e)
{
	double least = e->of[PROFILE_CPU_MS].confidence;

	if (e->of[PROFILE_REQUESTS].value > 0)
		least = fmin(least, e->of[PROFILE_REQUESTS].confidence);
	return least;
}

/* The runs from which a line by the size of the input comes. */
static unsigned class_line_runs(const struct profile_expected *e)
{
	unsigned runs = 0;

	for (enum profile_need f = 0; f < PROFILE_NEEDS; f++)
		if (e->of[f].line && e->of[f].runs > runs)
			runs = e->of[f].runs;
	return runs;
}

static void class_say(const struct profile_expected *e, char *out, size_t size)
{
	double confidence = class_confidence(e);
	int n = snprintf(out, size, "Known of its class from %u run%s", e->profile.runs,
			 e->profile.runs == 1 ? "" : "s");

	if (e->used)
		n += snprintf(out + n, size - (size_t)n, " (%u %s one%s), confidence %.0f %% (%s)",
			      e->used, e->warm ? "warm" : "cold", e->used == 1 ? "" : "s",
			      100 * confidence, estimate_confidence_word(confidence));
	if (e->by_input)
		snprintf(out + n, size - (size_t)n, "; for %.4g MB of input, from %u runs",
			 e->input_mb, class_line_runs(e));
}

/* --- light classes ------------------------------------------------------------------------ */

static bool class_is_free(const struct place *p, const struct profile_expected *e)
{
	const struct placement_ask *ask = &p->placement.ask;

	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		if (ask->need.value[f] >= 0 || e->set.value[f] >= 0)
			return false;
	return !*ask->node && !*ask->policy && ask->tasks < 0;
}

static double class_service_ms(const struct profile *p, const struct profile_machine *m,
			       double network_mb_per_s)
{
	double disk_ms = p->disk_ms;

	if (m->disk_mb_per_s > 0)
		disk_ms = profile_requests(p) *
			  (m->disk_fixed_ms + profile_request_kb(p) / m->disk_mb_per_s);
	if (p->shared_read_mb + p->shared_written_mb > 0 && network_mb_per_s > 0)
		disk_ms += 1e3 * (p->shared_read_mb + p->shared_written_mb) / network_mb_per_s;
	return (m->cpu_speed > 0 ? p->cpu_ms / m->cpu_speed : p->cpu_ms) + disk_ms + p->com_ms;
}

/* Keeps the job at home if its class is light. */
static void class_stay(struct place *p, const struct profile_expected *e,
		       const struct profile_machine *here, const struct iocom_vector *own)
{
	double most = p->home->base->set->light_ms;
	double needs = class_service_ms(&e->profile, here, own->network_mb_per_s);
	struct iocom_err ignored;

	if (e->profile.runs < LIGHT_RUNS || needs >= most || !class_is_free(p, e) ||
	    e->profile.memory_mb >= LIGHT_MEMORY * own->memory_mb ||
	    settings_policy("nlb", FEEDBACK_OFF, &p->policy, &ignored))
		return;
	snprintf(p->order.policy, sizeof(p->order.policy), "%s", p->policy.name);
	snprintf(p->light, sizeof(p->light),
		 "jobs of its class are light, about %.3g ms of work, and those of less than %.0f "
		 "ms (light_ms) stay",
		 needs, most);
}

/*
 * Says which nodes' page caches have some of what the job reads on a shared file system.  They
 * cannot have more than their memory has room for.
 */
static void class_cached(struct place *p, const struct profile_expected *e,
			 const struct iocom_vector *own)
{
	char *out = p->placement.ask.shared_cached;
	size_t at = 0, size = sizeof(p->placement.ask.shared_cached);

	*out = 0;
	for (size_t i = 0; i < e->ncached; i++) {
		const struct profile_cached *c = &e->cached[i];
		const struct matrix_entry *there = matrix_find(p->home->matrix, c->node);
		const struct iocom_vector *v = !strcmp(c->node, own->name) ? own
					       : there && there->alive	   ? &there->vector
									   : NULL;
		double mb = v ? fmin(c->mb, v->memory_available_mb) : 0;
		int n;

		if (!(mb > 0))
			continue;
		n = snprintf(out + at, size - at, "%s%s=%.0f", at ? "," : "", c->node, mb * 1e6);
		if (n < 0 || (size_t)n >= size - at) {
			out[at] = 0;
			break;
		}
		at += (size_t)n;
	}
}

void place_take_class(struct place *p, struct iocom_err *err)
{
	const struct home *home = p->home;
	struct profile_expected expected = {.input_mb = -1};
	struct need_learned learned = class_learned(p, &expected, err);
	struct profile_machine here;
	struct iocom_vector own;

	home->ports->own_vector(home->ports->arg, &own);
	here = (struct profile_machine){.cpu_speed = own.cpu_speed,
					.disk_fixed_ms = own.disk_fixed_ms,
					.disk_mb_per_s = own.disks ? own.disk_mb_per_s : 0};
	need_resolve(&p->order.need, &p->placement.ask.need, &learned, &here);
	class_cached(p, &expected, &own);
	if (!learned.profile)
		return;
	class_say(&expected, p->learned, sizeof(p->learned));
	class_stay(p, &expected, &here, &own);
}
