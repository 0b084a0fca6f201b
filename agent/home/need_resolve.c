/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See need_resolve.h. */
#include "agent/home/need_resolve.h"

/*
 * The disk work is explicit and implicit; where the papers tell them apart the share does.  What a
 * class learned of page faults counts twice where memory is short: as work that it does anywhere,
 * because readers of mapped files do, and as what short memory adds (MODEL 2.1).
 */
static void from_profile(struct need *n, const struct profile *p, const struct profile_machine *m)
{
	double requests = profile_requests(p);

	need_set(n, NEED_IO_PER_S, profile_rate_per_ms(p, m) * 1e3, NEED_PROFILE);
	need_set(n, NEED_REQUESTS, requests, NEED_PROFILE);
	if (requests > 0)
		need_set(n, NEED_IMPLICIT_SHARE, p->fault_requests / requests, NEED_PROFILE);
	need_set(n, NEED_MEMORY_MB, p->memory_mb, NEED_PROFILE);
	need_set(n, NEED_CPU_S, p->cpu_ms / 1e3, NEED_PROFILE);
	need_set(n, NEED_COM_MS, p->com_ms, NEED_PROFILE);
	if (profile_request_kb(p) > 0)
		need_set(n, NEED_IO_SIZE_KB, profile_request_kb(p), NEED_PROFILE);
	/* A class that never paged says nothing of what it would do where memory is short. */
	if (profile_faults_per_ms(p) > 0)
		need_set(n, NEED_FAULTS_PER_MS, profile_faults_per_ms(p), NEED_PROFILE);
}

void need_resolve(struct need *n, const struct need_options *options, const struct profile *profile,
		  const struct profile_machine *machine)
{
	double cpu_s;

	need_init(n);
	if (profile)
		from_profile(n, profile, machine);
	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		if (options->value[f] >= 0)
			need_set(n, f, options->value[f], NEED_OPTION);
	/* Rate and number follow from each other where an option gives only one. */
	cpu_s = n->value[NEED_CPU_S];
	if (n->source[NEED_IO_PER_S] > n->source[NEED_REQUESTS] &&
	    n->source[NEED_REQUESTS] == NEED_DEFAULT)
		n->value[NEED_REQUESTS] = n->value[NEED_IO_PER_S] * cpu_s;
	if (n->source[NEED_REQUESTS] > n->source[NEED_IO_PER_S] &&
	    n->source[NEED_IO_PER_S] == NEED_DEFAULT && cpu_s > 0)
		n->value[NEED_IO_PER_S] = n->value[NEED_REQUESTS] / cpu_s;
}
