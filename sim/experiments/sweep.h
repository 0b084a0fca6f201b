/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A grid of runs and its results: points along an axis, series (a policy, or one
 * with its own settings), seeds.
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

/* What one run gave. */
struct sweep_result {
	bool done;
	double values[M_COUNT];
	char input[72]; /* hash of the workload's content */
	uint32_t nsamples;
	struct sim_sample *samples; /* owned; only of runs whose time series is kept */
	uint32_t nrows;
	struct probe_row *rows; /* owned; the executions of a probe, where they are kept */
};

struct sweep {
	char *id, *title, *x_name;
	struct settings settings; /* of every run; a series' and then a point's go on top */
	size_t npoints, nseries;
	struct sweep_point *points;
	struct sweep_series *series;
	uint32_t seeds;
	uint64_t first_seed;
	bool keep_samples; /* the time series of the first seed is kept */
	bool keep_rows;	   /* the executions of a probe are, of all seeds */
	uint32_t nkinds;
	char kinds[SIM_KINDS_MAX][32];	  /* names of the workload's kinds of jobs */
	char source[320], synthetic[256]; /* the workload in words */
	struct sweep_result *results;	  /* npoints * nseries * seeds; NULL before sweep_results */
	/* Owned sweeps that are not shown but run with this one: its claims look at them. */
	struct sweep **parts;
	size_t nparts;
};

/* NULL: no memory. */
struct sweep *sweep_new(const char *id, const char *title, const char *x_name);
void sweep_free(struct sweep *s);
/* 0, -ENOMEM, -EINVAL with ERR set. */
int sweep_add_point(struct sweep *s, const char *label, double x, const char *settings,
		    struct iocom_err *err);
int sweep_add_series(struct sweep *s, const char *label, const char *policy, const char *settings,
		     struct iocom_err *err);
/* PART belongs to S from now on, whatever is returned. */
int sweep_add_part(struct sweep *s, struct sweep *part);
/* I from 0 to S->nparts: S itself, then its parts. */
struct sweep *sweep_part(struct sweep *s, size_t i);
/* Room for all results.  0, -ENOMEM. */
int sweep_results(struct sweep *s);

size_t sweep_units(const struct sweep *s);
struct sweep_result *sweep_result(const struct sweep *s, size_t point, size_t series,
				  uint32_t seed);
/* All that decides unit U, merged; 0, -ENOMEM. */
int sweep_unit_settings(const struct sweep *s, size_t unit, struct settings *out);
const char *sweep_unit_policy(const struct sweep *s, size_t unit);
uint64_t sweep_unit_seed(const struct sweep *s, size_t unit);

/* -1: none of that label. */
int sweep_find_series(const struct sweep *s, const char *label);
int sweep_find_point(const struct sweep *s, const char *label);
/* The values of a cell, one a seed, to OUT (s->seeds of them). */
void sweep_cell(const struct sweep *s, size_t point, size_t series, enum measure m, double *out);
struct interval sweep_mean(const struct sweep *s, size_t point, size_t series, enum measure m);
/* Whether any run has told M. */
bool sweep_has(const struct sweep *s, enum measure m);
/* One hash over the workloads' hashes, "sha256:..."; "" when the library failed. */
void sweep_input_hash(const struct sweep *s, char out[72]);

#endif
