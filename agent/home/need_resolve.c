/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See need_resolve.h. */
#include "agent/home/need_resolve.h"

static void from_profile(struct need *n, const struct profile *p)
{
	need_set(n, NEED_IO_PER_S, p->io_per_ms * 1e3, NEED_PROFILE);
	need_set(n, NEED_REQUESTS, p->requests, NEED_PROFILE);
	need_set(n, NEED_MEMORY_MB, p->memory_mb, NEED_PROFILE);
	need_set(n, NEED_CPU_S, p->cpu_ms / 1e3, NEED_PROFILE);
	need_set(n, NEED_COM_MS, p->com_ms, NEED_PROFILE);
	if (p->request_kb > 0)
		need_set(n, NEED_IO_SIZE_KB, p->request_kb, NEED_PROFILE);
	/* A class that never paged says nothing of what it would do where memory is short. */
	if (p->faults_per_ms > 0)
		need_set(n, NEED_FAULTS_PER_MS, p->faults_per_ms, NEED_PROFILE);
}

void need_resolve(struct need *n, const struct need_options *options, const struct profile *profile)
{
	double cpu_s;

	need_init(n);
	if (profile)
		from_profile(n, profile);
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
