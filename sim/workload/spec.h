/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A workload from the text of a command line. */
#ifndef SIM_WORKLOAD_SPEC_H
#define SIM_WORKLOAD_SPEC_H

#include "sim/workload.h"
#include "sim/workload/presets.h"

/*
 * "gen:PRESET" or "gen:PRESET,key=value,...": a generator (presets.h); the keys are
 * the fields of struct preset_args by name, home_weights=W:W:... (fewer than nodes: repeated), and
 * lifetime=constant|exponential|pareto|hyperexp|gamma and arrivals=poisson|regular.
 * Anything else is a FILE for workload_open ("./gen:x" for a file of such a name).
 * SEED, NODES and JOBS_MAX of OPTIONS (NULL: the defaults) hold for a generator
 * too, where the text does not say otherwise.
 * NULL with ERR set: the place in the text, what was expected, what was found.
 */
struct workload *workload_spec_open(const char *text, const struct workload_options *options,
				    struct iocom_err *err);
/* The parameters alone of a "gen:" text.  0; -EINVAL; -ENOENT no such preset.
 * WEIGHTS: where home_weights go (the caller frees *weights). */
int workload_spec_parse(const char *text, const struct workload_options *options,
			struct generator_params *p, double **weights, struct iocom_err *err);

#endif
