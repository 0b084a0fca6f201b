/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A workload is a stream of jobs from a generator, a trace or a recording.  It can be read again
 * from the start, so that each policy gets the same jobs, and keeps no more in memory than it
 * needs.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include <iocom/err.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim/job.h"

struct workload;

/* The functions that a source implements. */
struct workload_ops {
	/* Returns 1: *JOB is filled; 0: the stream has ended; negative errno with ERR set. */
	int (*next)(void *state, struct sim_job *job, struct iocom_err *err);
	int (*rewind)(void *state, struct iocom_err *err); /* Returns 0 or negative errno */
	void (*free)(void *state);
};

#define WORKLOAD_RUNS_MAX 16 /* runs of a trace that are numbered here */
/* Why a record of a trace is not used. */
enum workload_left {
	WORKLOAD_NO_JOB,     /* it never ran, or holds no work */
	WORKLOAD_OTHER_RUN,  /* CSD: of another run than load.run */
	WORKLOAD_EARLY,	     /* before load.from_s */
	WORKLOAD_LATE,	     /* not before load.to_s */
	WORKLOAD_SHORT,	     /* less computation than load.min_cpu_ms */
	WORKLOAD_WIDE,	     /* needs more processors than there are */
	WORKLOAD_BEYOND_MAX, /* after load.jobs_max jobs */
	WORKLOAD_LEFT_COUNT
};
/* Why, in words that follow a count: "outside ..."; NAME: the reason as one word, for programs. */
const char *workload_left_words(enum workload_left why);
const char *workload_left_name(enum workload_left why);

struct workload_info {
	char source[256];    /* "generator acm, 30 % parallel", "CSD trace, run 2" */
	char hash[72];	     /* "sha256:..." of a file's content, or of a generator's parameters */
	uint32_t nodes;	     /* 1 + largest home; 0: unknown before the end */
	double cores;	     /* cores of a node; 0: the source does not say */
	uint32_t processors; /* of the whole machine; 0: the source does not say */
	uint64_t jobs;	     /* 0: unknown before the end */
	const char *synthetic; /* generated fields that the source does not hold, or "" */
	uint64_t records;      /* that the source holds; 0: unknown, or no trace */
	uint64_t left_out;     /* those that are no jobs of this workload, and why: */
	uint64_t left[WORKLOAD_LEFT_COUNT];
	bool batch;	/* the log of a batch system: its jobs have `batch` */
	char note[192]; /* what the user should know about how it was read, or "" */
	uint32_t runs;	/* CSD: the runs that the trace holds, and the number of each; 0: none */
	int32_t run[WORKLOAD_RUNS_MAX];
	uint32_t kinds;
	char kind[SIM_KINDS_MAX][32];
};

/* Takes STATE over, also on failure. */
struct workload *workload_new(const struct workload_ops *ops, void *state,
			      const struct workload_info *info);
int workload_next(struct workload *w, struct sim_job *job, struct iocom_err *err);
int workload_rewind(struct workload *w, struct iocom_err *err);
const struct workload_info *workload_info(const struct workload *w);
void workload_free(struct workload *w);

/* Reads all of SOURCE into memory, frees SOURCE and returns a workload that serves the copy. */
struct workload *workload_in_memory(struct workload *source, struct iocom_err *err);
/* Makes a workload from a copy of a list of jobs. */
struct workload *workload_from_jobs(const struct sim_job *jobs, size_t n, const char *name);

/* What is generated for fields that a trace does not hold (MODEL 5.7), and how to read it. */
struct workload_options {
	uint64_t seed;
	uint32_t nodes;	     /* number of homes for a trace without hosts; 0: the trace's own */
	double from_s, to_s; /* only arrivals between the two count; to_s 0: to the end */
	uint64_t jobs_max;   /* 0: all */
	double time_scale;   /* factor for arrival times; default 1 */
	double memory_mean_mb, memory_shape; /* Pareto; 4, 1.5 (O-39) */
	/* mean of a uniform distribution on [0, 2 mean]; default 0 */
	double io_per_ms;
	double request_kb, request_sd_kb; /* 256, 51.2 */
	double reaccess;		  /* 5 (O-6) */
	double faults_per_ms;		  /* 0.5 */
	double initial_mb;		  /* 0 */
	double min_cpu_ms;		  /* jobs shorter than this are left out; default 0 */
	double home_skew;   /* for jobs without hosts, like generator_params.home_skew; default 0 */
	uint32_t tasks_max; /* wider jobs are folded to this many tasks with the same work; 0:
			     * unchanged */
	/* SWF: true: use what was requested, not what was used; default false */
	bool requested;
	/*
	 * SWF: replay as a batch system: a task computes for the job's run time, and jobs of more
	 * tasks than there are nodes are left out; default false
	 */
	bool batch;
	double time_unit_s; /* block csv: seconds per unit of its time column; default 1 */
	/*
	 * block csv: requests at most this far apart form one job; 0: only those with the same
	 * stamp; negative: every request is a job
	 */
	double burst_gap_ms;
	int32_t run; /* CSD: number of the one-hour run (0 ..); -1: the first in the file */
};
void workload_options_default(struct workload_options *o);
/*
 * Sets one option by name (a field above).  Returns 0; -ENOENT (the message lists the names);
 * -EINVAL: no number, or out of range.
 */
int workload_options_set(struct workload_options *o, const char *name, const char *value,
			 struct iocom_err *err);
/* Name, value and meaning of option I (0 ..); NULL at the end. */
const char *workload_options_get(const struct workload_options *o, unsigned int i, double *value,
				 const char **meaning);

/*
 * Opens a trace.  The content shows the format (gzip is unpacked): the simulator's 8 columns,
 * CSD csv, SWF, Darshan csv, block csv or an iocom recording.  A bad line gives -EINVAL with
 * file, line, column and what was expected, here or from workload_next.  NULL with ERR set.
 */
struct workload *workload_open(const char *path, const struct workload_options *options,
			       struct iocom_err *err);
/* Does the same with a copy of N bytes (not gzip); NAME stands for the file in messages. */
struct workload *workload_open_memory(const void *data, size_t n, const char *name,
				      const struct workload_options *options,
				      struct iocom_err *err);

/* --- generators (MODEL 5.7, 5.8) ------------------------------------------------ */

struct generator_kind {
	char name[32];
	double share;	   /* this kind's share of all jobs; the shares need not add up to 1 */
	double cpu_factor; /* multiplies the drawn CPU time (10 for ACM's CPU-intensive jobs) */
	double io_per_ms;  /* mean */
	bool io_uniform;   /* true: uniform on [0, 2 mean]; false: every job has the mean */
	double request_kb, request_sd_kb;
	double reaccess, requests;	     /* requests < 0: given by the rate */
	double memory_mean_mb, memory_shape; /* shape 0: constant */
	double faults_per_ms, initial_mb, write_fraction;
	double parallel_share; /* 0..1 */
	/* range of the tasks of parallel jobs, uniform */
	uint32_t tasks_min, tasks_max;
	double barrier_ms, messages_per_ms, message_kb; /* values of parallel jobs */
};

enum generator_lifetime {
	LIFETIME_CONSTANT,
	LIFETIME_EXPONENTIAL,
	LIFETIME_PARETO,   /* mean and shape; cut at lifetime_max_ms and scaled to keep the mean */
	LIFETIME_HYPEREXP, /* two exponential stages; mean and squared coefficient of variation */
	LIFETIME_GAMMA,	   /* mean; lifetime_shape holds the standard deviation */
};

/* A process of a trace. */
struct sim_process {
	double arrival_ms, cpu_ms;
	uint32_t host;
};

/* The part of a process trace that gives arrivals, homes and computation (process_trace.h). */
struct generator_part {
	const struct sim_process *v; /* stays until the program ends; NULL: all is drawn */
	uint64_t n;
	uint32_t hosts;
	double gap_scale, cpu_scale;
	char about[160], hash[72];
};

struct generator_params {
	uint64_t seed;
	char name[64];
	uint64_t jobs;
	uint32_t nodes;
	double interarrival_ms; /* mean over the whole cluster */
	bool arrivals_regular;	/* false: Poisson */
	/*
	 * Share of arrivals of each home: node i gets weight 1 / (1 + i)^skew (0: equal),
	 * in an order shuffled by the seed (reading 4).
	 */
	double home_skew;
	const double *home_weights; /* used instead of the skew; borrowed, or NULL */
	enum generator_lifetime lifetime;
	double lifetime_mean_ms, lifetime_shape, lifetime_max_ms;
	struct generator_part part;
	uint32_t kinds;
	struct generator_kind kind[SIM_KINDS_MAX];
};
/* Sets the defaults: one kind "job", Poisson arrivals, exponential lifetimes. */
void generator_params_default(struct generator_params *p);
struct workload *generator_new(const struct generator_params *p, struct iocom_err *err);

#endif
