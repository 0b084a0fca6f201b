/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Runs sweeps: every run is single-threaded by default and as many go at once as
 * there are cores.  What a run gives depends on its settings, policy and seed
 * alone, so neither order nor number of threads shows in the results.  Runs that
 * several sweeps share are made once.
 */
#ifndef SIM_EXPERIMENTS_RUNNER_H
#define SIM_EXPERIMENTS_RUNNER_H

#include <signal.h>

#include "sim/experiments/sweep.h"

struct runner_options {
	unsigned int jobs; /* runs at once; 0: one a core */
	/* Only runs number shard, shard + shards, ...: 1 <= shard <= shards; shards 0: all. */
	unsigned int shard, shards;
	const volatile sig_atomic_t *cancel; /* set: stop; may be NULL */
	/* Told about five times a second by the caller's thread, and at the end; may be NULL.
	 * DONE: runs, with what is done of those under way. */
	void (*progress)(void *arg, double done, size_t total);
	void *arg;
};

/*
 * 0, the results of SWEEPS being filled (those of this shard); -ECANCELED;
 * -ENOMEM; else the first failing run's error, ERR naming the run.
 */
int runner_run(struct sweep *const *sweeps, size_t nsweeps, const struct runner_options *options,
	       struct iocom_err *err);

#endif
