/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the log of a batch system itself recorded, as a run among the simulated ones: its waits and
 * run times, measured like those of the others, for the same jobs.
 */
#ifndef SIM_EXPERIMENTS_RECORDED_RUN_H
#define SIM_EXPERIMENTS_RECORDED_RUN_H

#include "sim/experiments/scenario.h"
#include "sim/experiments/sweep.h"

/* The name that stands for it in place of a policy's. */
#define RECORDED_POLICY "recorded"

bool recorded_is(const char *policy);
/*
 * Reads W to its end.  Jobs without a recorded wait are not counted.  SAMPLES: also makes the time
 * series.  Returns 0; -EINVAL: W is no log of a batch system, or recorded no wait; -ENOMEM; the
 * workload's errors.  The caller fills OUT->input.
 */
int recorded_run(struct workload *w, const struct scenario *scenario, bool samples,
		 struct sweep_result *out, struct iocom_err *err);

#endif
