/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The second kind of run: a probe's study (probe/probe.h) instead of a stream of jobs.  Its
 * executions do not depend on the policy, so runs that differ only in their decisions share them.
 */
#ifndef SIM_EXPERIMENTS_PROBE_RUN_H
#define SIM_EXPERIMENTS_PROBE_RUN_H

#include "sim/probe/probe.h"
#include "sim/experiments/scenario.h"
#include "sim/experiments/sweep.h"

/* Stores studies by the settings they were made from; threads may share it. */
struct probe_store;
struct probe_store *probe_store_new(void); /* NULL: no memory */
void probe_store_free(struct probe_store *store);

struct probe_run {
	const struct settings *settings; /* all settings that SCENARIO was made from */
	const struct scenario *scenario;
	const char *policy;
	uint64_t seed;
	bool keep_rows;
	bool (*keep_going)(void *arg);
	void *arg;
};
/* Returns 0 with OUT filled; -EINVAL with ERR set; -ENOMEM; -ECANCELED. */
int probe_run(const struct probe_run *run, struct probe_store *store, struct sweep_result *out,
	      struct iocom_err *err);
/* Describes the study in words. */
int probe_describe(const struct scenario *scenario, char *out, size_t size, struct iocom_err *err);

#endif
