/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A run ready to start, made from settings (settings.h). */
#ifndef SIM_EXPERIMENTS_SCENARIO_H
#define SIM_EXPERIMENTS_SCENARIO_H

#include "sim/experiments/measure.h"
#include "sim/probe/probe.h"
#include "sim/run.h"
#include "sim/experiments/settings.h"

struct scenario {
	struct sim_cluster cluster;
	struct sim_params params;
	struct workload_options options;
	bool run_by_seed; /* load.run=seed: each seed is one hour of the process trace */
	char *workload;	  /* "gen:..." or "probe:..." with all its keys, or a path */
};

/*
 * Reads SETTINGS and checks everything except the workload's content.  Returns 0; -ENOMEM; -EINVAL,
 * -ENOENT with ERR set.  Close it only after 0.
 */
int scenario_open(struct scenario *s, const struct settings *settings, struct iocom_err *err);
void scenario_close(struct scenario *s);
/* Returns whether it is a probe's study (probe_run.h), which has no workload. */
bool scenario_is_probe(const struct scenario *s);
/* Opens the workload of SEED at its start; NULL with ERR set. */
struct workload *scenario_workload(const struct scenario *s, uint64_t seed, struct iocom_err *err);

/* Names of settings besides parameters; NULL at the end. */
const char *scenario_machine_field(unsigned int i);
const char *scenario_option_field(unsigned int i);

#endif
