/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where jobs come from: a generator, a trace, a recording.  A stream that can be
 * read again from the start, so that each policy meets the same jobs; nothing is
 * kept in memory that need not be.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include <iocom/err.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim/job.h"

struct workload;

/* What a source implements. */
struct workload_ops {
	/* 1: *JOB filled; 0: end; negative errno with ERR set. */
	int (*next)(void *state, struct sim_job *job, struct iocom_err *err);
	int (*rewind)(void *state, struct iocom_err *err); /* 0 or negative errno */
	void (*free)(void *state);
};

struct workload_info {
	char source[256]; /* "generator acm, 30 % parallel", "CSD trace, run 2" */
	char hash[72];	  /* "sha256:..." of a file's content, or of a generator's parameters */
	uint32_t nodes;	  /* 1 + largest home; 0: not known before the end */
	double cores;	  /* of a node, where the source tells; 0: it does not */
	uint64_t jobs;	  /* 0: not known before the end */
	const char *synthetic; /* fields that the source does not hold and were generated, or "" */
	uint64_t left_out; /* records that are no job (never ran) or that the options leave out */
	char note[192];	   /* what a person should know of how it was read, or "" */
	uint32_t kinds;
	char kind[SIM_KINDS_MAX][32];
};

/* Takes STATE over, also when it fails. */
struct workload *workload_new(const struct workload_ops *ops, void *state,
			      const struct workload_info *info);
int workload_next(struct workload *w, struct sim_job *job, struct iocom_err *err);
int workload_rewind(struct workload *w, struct iocom_err *err);
const struct workload_info *workload_info(const struct workload *w);
void workload_free(struct workload *w);

/* Reads all of SOURCE into memory and serves it from there; frees SOURCE. */
struct workload *workload_in_memory(struct workload *source, struct iocom_err *err);
/* A list of jobs, copied. */
struct workload *workload_from_jobs(const struct sim_job *jobs, size_t n, const char *name);

/* What is generated for fields that a trace does not hold (MODEL 5.7), and how it is read. */
struct workload_options {
	uint64_t seed;
	uint32_t nodes;	     /* spread jobs of a trace without hosts over so many; 0: its own */
	double from_s, to_s; /* only arrivals in between; to 0: to the end */
	uint64_t jobs_max;   /* 0: all */
	double time_scale;   /* multiplies arrival times; 1 */
	double memory_mean_mb, memory_shape; /* Pareto; 4, 1.5 (O-39) */
	double io_per_ms;		     /* mean, uniform on [0, 2 mean]; 0 */
	double request_kb, request_sd_kb;    /* 256, 51.2 */
	double reaccess;		     /* 5 (O-6) */
	double faults_per_ms;		     /* 0.5 */
	double initial_mb;		     /* 0 */
	double min_cpu_ms;		     /* shorter jobs are left out; 0 */
	double home_skew;    /* of jobs without hosts, as generator_params.home_skew; 0 */
	uint32_t tasks_max;  /* fold wider jobs to so many tasks, the work kept; 0: as they are */
	bool requested;	     /* SWF: what was asked for, not what was used; false */
	double time_unit_s;  /* block csv: seconds in a unit of its time column; 1 */
	double burst_gap_ms; /* block csv: a job is a burst whose requests follow within this; 0:
			      * within the same stamp; negative: every request is a job */
	int32_t run;	     /* CSD: which one-hour run, 0 ..; -1: the first in the file */
};
void workload_options_default(struct workload_options *o);
/*
 * One option by name: a field above.  0; -ENOENT (the message lists the names);
 * -EINVAL: not a number, out of range.
 */
int workload_options_set(struct workload_options *o, const char *name, const char *value,
			 struct iocom_err *err);
/* Name, value and meaning of option I (0 ..); NULL at the end. */
const char *workload_options_get(const struct workload_options *o, unsigned int i, double *value,
				 const char **meaning);

/*
 * Opens a trace; the format is recognised from the content (gz too): the
 * simulator's 8 columns, CSD csv, SWF, Darshan csv, block csv, an iocom recording.
 * A bad line: -EINVAL with file, line, column and what was expected, at open or
 * from workload_next.  NULL with ERR set.
 */
struct workload *workload_open(const char *path, const struct workload_options *options,
			       struct iocom_err *err);
/* The same from N bytes (not gz), copied; NAME stands for the file in messages. */
struct workload *workload_open_memory(const void *data, size_t n, const char *name,
				      const struct workload_options *options,
				      struct iocom_err *err);

/* --- generators (MODEL 5.7, 5.8) ------------------------------------------------ */

struct generator_kind {
	char name[32];
	double share;	   /* of jobs; shares are normalised */
	double cpu_factor; /* multiplies the drawn CPU time (ACM: CPU-intensive x10) */
	double io_per_ms;  /* mean */
	bool io_uniform;   /* uniform on [0, 2 mean]; false: every job has the mean */
	double request_kb, request_sd_kb;
	double reaccess, requests;	     /* requests < 0: by rate */
	double memory_mean_mb, memory_shape; /* shape 0: constant */
	double faults_per_ms, initial_mb, write_fraction;
	double parallel_share;				/* 0..1 */
	uint32_t tasks_min, tasks_max;			/* of parallel jobs, uniform */
	double barrier_ms, messages_per_ms, message_kb; /* of parallel jobs */
};

enum generator_lifetime {
	LIFETIME_CONSTANT,
	LIFETIME_EXPONENTIAL,
	LIFETIME_PARETO,   /* mean, shape; cut at lifetime_max_ms and renormalised to the mean */
	LIFETIME_HYPEREXP, /* two-stage, mean and squared coefficient of variation */
	LIFETIME_GAMMA,	   /* mean, sd in lifetime_shape */
};

struct generator_params {
	uint64_t seed;
	char name[64];
	uint64_t jobs;
	uint32_t nodes;
	double interarrival_ms; /* mean over the whole cluster */
	bool arrivals_regular;	/* false: Poisson */
	/* Share of arrivals of each home: node i gets weight 1 / (1 + i)^skew (0: equal),
	 * in an order shuffled by the seed (reading 4). */
	double home_skew;
	const double *home_weights; /* or so: `nodes` weights, borrowed; NULL: skew */
	enum generator_lifetime lifetime;
	double lifetime_mean_ms, lifetime_shape, lifetime_max_ms;
	uint32_t kinds;
	struct generator_kind kind[SIM_KINDS_MAX];
};
/* Defaults: one kind "job", Poisson, exponential. */
void generator_params_default(struct generator_params *p);
struct workload *generator_new(const struct generator_params *p, struct iocom_err *err);

#endif
