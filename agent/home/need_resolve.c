/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See need_resolve.h. */
#include "agent/home/need_resolve.h"

#include <math.h>

/* What decides where a job runs. */
static void work_of(struct need *n, const struct profile *p, const struct profile_machine *m,
		    enum need_source source)
{
	need_set(n, NEED_IO_PER_S, profile_rate_per_ms(p, m) * 1e3, source);
	need_set(n, NEED_REQUESTS, profile_requests(p), source);
	need_set(n, NEED_CPU_S, p->cpu_ms / 1e3, source);
	if (profile_request_kb(p) > 0)
		need_set(n, NEED_IO_SIZE_KB, profile_request_kb(p), source);
}

/*
 * The disk work is explicit and implicit; where the papers tell them apart the share does.  What a
 * class learned of page faults counts twice where memory is short: as work that it does anywhere,
 * because readers of mapped files do, and as what short memory adds (MODEL 2.1).
 */
static void from_profile(struct need *n, const struct profile *p, const struct profile_machine *m)
{
	double requests = profile_requests(p);

	work_of(n, p, m, NEED_PROFILE);
	if (requests > 0)
		need_set(n, NEED_IMPLICIT_SHARE, p->fault_requests / requests, NEED_PROFILE);
	need_set(n, NEED_MEMORY_MB, p->memory_mb, NEED_PROFILE);
	need_set(n, NEED_COM_MS, p->com_ms, NEED_PROFILE);
	need_set(n, NEED_SHARED_READ_MB, p->shared_read_mb, NEED_PROFILE);
	need_set(n, NEED_SHARED_WRITTEN_MB, p->shared_written_mb, NEED_PROFILE);
	/* A class that never paged says nothing of what it would do where memory is short. */
	if (profile_faults_per_ms(p) > 0)
		need_set(n, NEED_FAULTS_PER_MS, profile_faults_per_ms(p), NEED_PROFILE);
}

/*
 * Only work_of: memory that is only guessed must not have the job refused.  No
 * less computation than the default: most jobs of most users are short, and one that is taken for
 * short stays at home, whatever it is.
 */
static void from_guess(struct need *n, const struct profile *guess, const struct profile_machine *m)
{
	struct profile p = *guess;

	p.cpu_ms = fmax(p.cpu_ms, n->value[NEED_CPU_S] * 1e3);
	work_of(n, &p, m, NEED_GUESS);
}

/* Its user told it, now or for all jobs of the class. */
static bool is_option(const struct need *n, enum need_field f)
{
	return n->source[f] == NEED_OPTION || n->source[f] == NEED_SET;
}

/*
 * Who tells how much work a job does tells its rate, too: what it does over the time that it takes
 * alone on MACHINE, as for a class.  Who tells the rate only means it for the time of computation.
 */
static void rate_or_number(struct need *n, const struct profile_machine *machine)
{
	struct profile told = {
		.cpu_ms = n->value[NEED_CPU_S] * 1e3,
		.wall_ms = n->value[NEED_CPU_S] * 1e3, /* so no overlap is assumed */
		.requests = n->value[NEED_REQUESTS],
		.request_mb = n->value[NEED_REQUESTS] * n->value[NEED_IO_SIZE_KB] / 1e3,
	};

	if (is_option(n, NEED_IO_PER_S)) {
		if (n->source[NEED_REQUESTS] == NEED_DEFAULT ||
		    n->source[NEED_REQUESTS] == NEED_GUESS)
			n->value[NEED_REQUESTS] = n->value[NEED_IO_PER_S] * n->value[NEED_CPU_S];
	} else if (is_option(n, NEED_REQUESTS) || is_option(n, NEED_IO_SIZE_KB) ||
		   is_option(n, NEED_CPU_S)) {
		n->value[NEED_IO_PER_S] = profile_rate_per_ms(&told, machine) * 1e3;
	}
}

void need_resolve(struct need *n, const struct need_options *options,
		  const struct need_learned *learned, const struct profile_machine *machine)
{
	need_init(n);
	if (learned->profile)
		from_profile(n, learned->profile, machine);
	else if (learned->guess)
		from_guess(n, learned->guess, machine);
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		if (learned->set && learned->set->value[f] >= 0)
			need_set(n, f, learned->set->value[f], NEED_SET);
		if (options->value[f] >= 0)
			need_set(n, f, options->value[f], NEED_OPTION);
	}
	rate_or_number(n, machine);
}
