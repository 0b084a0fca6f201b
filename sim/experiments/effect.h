/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whether a setting that the user gave can change a result.  One that cannot is an error, because
 * its author believes in an effect.
 *
 * A setting has no effect in a run if the experiment's points or series set it themselves, if
 * nothing that runs reads it (effect_table.c: which policies and which parts of the simulator read
 * a parameter), or if no job of the workload depends on it.  It has one in a command if it has one
 * in any of the runs.
 */
#ifndef SIM_EXPERIMENTS_EFFECT_H
#define SIM_EXPERIMENTS_EFFECT_H

#include "sim/experiments/scenario.h"
#include "sim/experiments/sweep.h"

/*
 * Checks every setting of GIVEN (from --set and its like) against all runs of the N sweeps, and
 * every setting of the points too if SWEPT (from --sweep).  Returns 0; -EINVAL with ERR set, one
 * sentence that names the setting; another negative errno: a run cannot be opened.
 */
int effect_check(struct sweep *const *sweeps, size_t n, const struct settings *given, bool swept,
		 struct iocom_err *err);

/* What of a run decides whether a parameter is read. */
struct effect_run {
	const struct sim_params *params;
	const char *policy;
	bool samples;  /* the time series is kept */
	bool probe;    /* a probe's study: no stream of jobs */
	bool recorded; /* jobs of a recording, which say where they ran */
};

/*
 * Returns NULL if parameter NAME is read in RUN, else who reads it, for a sentence: "only ... ".
 * Parameters that the table does not know are read.
 */
const char *effect_reader(const char *name, const struct effect_run *run, char *text, size_t size);

#endif
