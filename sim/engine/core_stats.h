/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Statistics that do not depend on the order of counting: sums are fixed-point integers (exact),
 * counts are in bins of a logarithmic scale.
 */
#ifndef SIM_CORE_STATS_H
#define SIM_CORE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/result.h"

/* A sum of doubles on a grid of 2^-40; terms up to 2^60 in magnitude. */
typedef __int128 core_fixed;
void core_fixed_add(core_fixed *sum, double x);
double core_fixed_value(core_fixed sum);

/* The distribution of one quantity. */
struct core_distribution {
	uint64_t n;
	core_fixed sum;
	core_fixed squares; /* grid 2^-20 */
	double min, max;
	uint64_t *bins; /* NULL: nothing counted yet */
};

int core_distribution_add(struct core_distribution *d, double x); /* 0, -ENOMEM */
int core_distribution_merge(struct core_distribution *to, const struct core_distribution *from);
void core_distribution_summary(const struct core_distribution *d, struct sim_summary *s);
void core_distribution_free(struct core_distribution *d);

struct core_stats {
	struct core_distribution slowdown, turnaround, delay;
	struct core_distribution kinds[SIM_KINDS_MAX];
	uint64_t completed, tasks_started, tasks_ended;
	uint64_t remote, migrations, queued, decisions, events;
	core_fixed moved_mb;
	double last_ms; /* time of the last completion */
};

int core_stats_merge(struct core_stats *to, const struct core_stats *from);
void core_stats_free(struct core_stats *s);

#endif
