/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Runs sweeps.  Every run is single-threaded by default, and as many run at the same time as there
 * are cores.  A run's result depends only on its settings, policy and seed, so neither order nor
 * number of threads changes results.  Runs that several sweeps share are made once.
 */
#ifndef SIM_EXPERIMENTS_RUNNER_H
#define SIM_EXPERIMENTS_RUNNER_H

#include <signal.h>

#include "sim/experiments/sweep.h"

struct runner_options {
	unsigned int jobs; /* runs at the same time; 0: one per core */
	/* Only runs number shard, shard + shards, ... with 1 <= shard <= shards; shards 0: all
	 * runs. */
	unsigned int shard, shards;
	/*
	 * Keeps the results and makes only runs that `wanted` of their sweeps adds, seed by seed:
	 * at most MORE of them (0: all runs, from nothing), none begun after SECONDS (0: no limit).
	 */
	size_t more;
	double seconds;
	size_t *made; /* with MORE: becomes the number of runs; may be NULL */
	const volatile sig_atomic_t *cancel; /* the runner stops when this is set; may be NULL */
	/* Called about five times a second by the caller's thread, and at the end; may be NULL.
	 * DONE is the number of runs done, with fractions for runs in progress. */
	void (*progress)(void *arg, double done, size_t total);
	void *arg;
};

/*
 * Returns 0, with the results of SWEEPS filled (those of this shard); -ECANCELED; -ENOMEM; else
 * the error of the first failing run, which ERR names.
 */
int runner_run(struct sweep *const *sweeps, size_t nsweeps, const struct runner_options *options,
	       struct iocom_err *err);

#endif
