/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A grid of runs and its results: points along an axis, series (each a policy, perhaps with its
 * own settings), and seeds.
 */
#ifndef SIM_EXPERIMENTS_SWEEP_H
#define SIM_EXPERIMENTS_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/experiments/measure.h"
#include "sim/probe/probe.h"
#include "sim/experiments/settings.h"
#include "sim/experiments/stats.h"

struct sweep_point {
	char *label;
	double x; /* NaN: the points are names, not numbers */
	struct settings settings;
};

struct sweep_series {
	char *label, *policy;
	struct settings settings;
};

/* The results of one run. */
struct sweep_result {
	bool done;
	double values[M_COUNT];
	char input[72]; /* hash of the workload's content */
	uint32_t nsamples;
	struct sim_sample *samples; /* owned; only if the time series of the run is kept */
	uint32_t nrows;
	struct probe_row *rows; /* owned; the executions of a probe if they are kept */
};

struct sweep {
	char *id, *title, *x_name;
	struct settings settings; /* for every run; series and points add theirs */
	size_t npoints, nseries;
	struct sweep_point *points;
	struct sweep_series *series;
	uint32_t seeds;
	uint64_t first_seed;
	bool keep_samples; /* keep the time series of the first seed */
	bool keep_rows;	   /* keep the executions of a probe, for all seeds */
	bool few_seeds;	   /* there are no more: each is an hour of a trace */
	/*
	 * For more seeds of some cells (npoints * nseries of them; NULL: not in use): the seeds
	 * that are wanted of each, and whether its values were read.
	 */
	uint32_t *wanted;
	bool *asked; /* owned by who reads it */
	uint32_t nkinds;
	char kinds[SIM_KINDS_MAX][32];	  /* names of the workload's kinds of jobs */
	char source[320], synthetic[256]; /* the workload in words */
	struct sweep_result *results;	  /* npoints * nseries * seeds; NULL before sweep_results */
	/* Owned sweeps that run with this one but are not shown; its claims use them. */
	struct sweep **parts;
	size_t nparts;
};

/* Returns NULL if there is no memory. */
struct sweep *sweep_new(const char *id, const char *title, const char *x_name);
void sweep_free(struct sweep *s);
/* Return 0, -ENOMEM, or -EINVAL with ERR set. */
int sweep_add_point(struct sweep *s, const char *label, double x, const char *settings,
		    struct iocom_err *err);
int sweep_add_series(struct sweep *s, const char *label, const char *policy, const char *settings,
		     struct iocom_err *err);
/* Takes PART over, also on failure. */
int sweep_add_part(struct sweep *s, struct sweep *part);
/* I = 0 is S itself, 1 to S->nparts are its parts. */
struct sweep *sweep_part(struct sweep *s, size_t i);
/* Makes room for all results.  Returns 0, -ENOMEM. */
int sweep_results(struct sweep *s);

/*
 * Makes room for SEEDS seeds (>= s->seeds) and keeps the results.  Returns 0, -ENOMEM (S is as
 * before).
 */
int sweep_grow(struct sweep *s, uint32_t seeds);
/* Makes `wanted`, in which no cell wants any.  Returns 0, -ENOMEM. */
int sweep_want_none(struct sweep *s);
/* How many runs of a cell are done; the least of all cells. */
uint32_t sweep_done(const struct sweep *s, size_t point, size_t series);
uint32_t sweep_done_least(const struct sweep *s);

size_t sweep_units(const struct sweep *s);
struct sweep_result *sweep_result(const struct sweep *s, size_t point, size_t series,
				  uint32_t seed);
/* Merges all settings of UNIT; 0, -ENOMEM. */
int sweep_unit_settings(const struct sweep *s, size_t unit, struct settings *out);
const char *sweep_unit_policy(const struct sweep *s, size_t unit);
uint64_t sweep_unit_seed(const struct sweep *s, size_t unit);

/* These return -1 if the label is unknown. */
int sweep_find_series(const struct sweep *s, const char *label);
int sweep_find_point(const struct sweep *s, const char *label);
/* Writes the values of a cell, one per seed, to OUT (s->seeds values). */
void sweep_cell(const struct sweep *s, size_t point, size_t series, enum measure m, double *out);
/* How many of them are numbers. */
size_t sweep_told(const struct sweep *s, size_t point, size_t series, enum measure m);
struct interval sweep_mean(const struct sweep *s, size_t point, size_t series, enum measure m);
/* Returns whether any run has a value of M. */
bool sweep_has(const struct sweep *s, enum measure m);
/* Hashes the workloads' hashes to "sha256:..."; "" if the library failed. */
void sweep_input_hash(const struct sweep *s, char out[72]);

#endif
