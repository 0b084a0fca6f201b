/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How much of a policy's gain is that it alone starts a job's tasks on nodes of their own. */
#ifndef SIM_EXPERIMENTS_CLAIM_START_H
#define SIM_EXPERIMENTS_CLAIM_START_H

#include "sim/experiments/experiment.h"

/*
 * Writes to OUT what E->spread_series gains over the other policies at the points of C, and what
 * it gains if all start alike; "" if E has no such series or C does not concern it.
 */
void claim_start(const struct claim_context *context, const struct experiment *e,
		 const struct claim *c, char *out, size_t size);

#endif
