/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Opens a workload from the text of a command line. */
#ifndef SIM_WORKLOAD_SPEC_H
#define SIM_WORKLOAD_SPEC_H

#include "sim/workload.h"
#include "sim/workload/presets.h"

/*
 * "gen:PRESET" or "gen:PRESET,key=value,..." is a generator (presets.h).  The keys are the fields
 * of struct preset_args, home_weights=W:W:... (repeated if fewer than the nodes),
 * lifetime=constant|exponential|pareto|hyperexp|gamma and arrivals=poisson|regular.
 * Any other text is a FILE for workload_open (use "./gen:x" for a file of such a name).
 * SEED, NODES and JOBS_MAX of OPTIONS (NULL: the defaults) apply to a generator too, unless the
 * text sets them.
 * NULL with ERR set: the position in the text, what was expected and what was found.
 */
struct workload *workload_spec_open(const char *text, const struct workload_options *options,
				    struct iocom_err *err);
/*
 * Parses only the parameters of a "gen:" text.  Returns 0; -EINVAL; -ENOENT: unknown preset.
 * WEIGHTS gets the home_weights; the caller frees it.
 */
int workload_spec_parse(const char *text, const struct workload_options *options,
			struct generator_params *p, double **weights, struct iocom_err *err);

#endif
