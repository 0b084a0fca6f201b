/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's study (MODEL 6.5).  A probe job is executed again and again, each time on a local and on
 * a remote machine, and the load indices of that moment are kept.  Decisions are computed
 * afterwards from these (decide.c).
 *
 * The text "probe:NAME,key=value,..." replaces that of a workload.  NAME is a job of MODEL 5.8,
 * ZAT Table 1 (cc, io, cpu, nroff) or imbalance (MODEL 4.8).
 */
#ifndef SIM_PROBE_PROBE_H
#define SIM_PROBE_PROBE_H

#include "sim/cluster.h"
#include "sim/params.h"

#define PROBE_PREFIX "probe:"

/* A row of ZAT Table 1, as printed. */
struct probe_job {
	const char *name;
	double cpu_percent, elapsed_s, blocks_per_s, memory_pages;
};

/* Keys of the text; a key without a source is our reading. */
struct probe_spec {
	const struct probe_job *job; /* NULL: imbalance */
	double jobs;		     /* number of times the probe is executed */
	double days;		     /* number of days that the executions are spread over */
	double local, remote;	     /* mean numbers of loops */
	double io_share;	     /* share of i/o-bound loops, 0..1 */
	double swing;		     /* relative change between day and night, 0..1 */
	double mood_sd, mood_h;	     /* a random factor of mean 1, drawn again every mood_h hours */
	double short_s, long_s;	     /* how long a loop stays: the means of two exponentials */
	double short_share;	     /* share of the loops present that are of the first kind */
	double loop_io_per_ms;	     /* accesses of an i/o-bound loop per ms of computation */
	double loop_mb, idle_mb; /* memory of a loop (exponential), of sleeping processes (mean, up
				  * to twice) */
	double system;		 /* share of the processor that the system's own work takes */
	double warmup_s;	 /* simulated before each probe */
	double alpha;		 /* smoothing factor of Hermes, 4.3 */
	double busy_local_ms, busy_remote_ms; /* ZAT-9.1: what load adds to fixed_cost_ms */
	double busy_queue;		      /* the load from which on all of that is added */
	/* for imbalance */
	double utilisation, hours;
	bool exact; /* use the closed form instead of the simulation */
};

/* Returns 0; -EINVAL with ERR set: the position in the text and what was expected. */
int probe_spec_parse(struct probe_spec *spec, const char *text, struct iocom_err *err);

/* The columns that are kept of each execution. */
enum probe_column {
	PROBE_HOUR, /* hour of the study */
	PROBE_LOCAL_S,
	PROBE_REMOTE_S, /* including PROBE_OVERHEAD_S */
	PROBE_OVERHEAD_S,
	PROBE_PURE_S, /* remote response without the overhead */
	/* the local machine as Hermes saw it: per cent, processes, blocks/s, pages */
	PROBE_IDLE,
	PROBE_QUEUE,
	PROBE_BLOCKS,
	PROBE_FREE,
	PROBE_ACTIVE,
	PROBE_LOAD, /* UNIX load average at that moment */
	/* the remote machine, in the same order */
	PROBE_AT_REMOTE,
	PROBE_R_QUEUE = PROBE_AT_REMOTE + PROBE_QUEUE - PROBE_IDLE,
	PROBE_R_BLOCKS,
	PROBE_R_FREE,
	PROBE_R_ACTIVE,
	PROBE_R_LOAD,
	PROBE_COLUMNS
};
const char *probe_column_name(enum probe_column c);  /* "local_s" */
const char *probe_column_title(enum probe_column c); /* for an axis */

struct probe_row {
	double v[PROBE_COLUMNS];
};

struct probe_month {
	uint32_t n;
	struct probe_row *rows; /* owned */
};

/*
 * Makes all executions.  Only the probe links the two machines, and it runs on one of them, so
 * running each machine with the probe gives both response times from the same state.  CLUSTER has
 * the local and the remote machine.  P gives fidelity and the like, the cost of rsh as
 * fixed_cost_ms and Hermes' period as information_period_ms.  When KEEP_GOING returns false, the
 * study stops.  Returns 0; -EINVAL with ERR set; -ENOMEM; -ECANCELED.
 */
int probe_month_run(const struct probe_spec *spec, const struct sim_cluster *cluster,
		    const struct sim_params *p, uint64_t seed, bool (*keep_going)(void *),
		    void *arg, struct probe_month *month, struct iocom_err *err);
void probe_month_free(struct probe_month *month);

/* Quality of decisions, as shares of the executions; NaN: there was no case. */
struct probe_score {
	double win;			  /* share of decisions that chose the faster site */
	double local_right, remote_right; /* shares that won by staying and by being sent */
	double sent;
	/* share of right decisions among executions that only the i/o field sent away */
	double io_win;
	double memory_wrong; /* the memory field decided, and the decision was wrong */
	double local_better, local_s, remote_s, overhead_s;
};
/*
 * Lets POLICY decide with exactly what was known at each execution.  Returns 0; -EINVAL with ERR
 * set; -ENOMEM.
 */
int probe_decide(const struct probe_spec *spec, const struct probe_month *month,
		 const struct sim_cluster *cluster, const struct rules_params *params,
		 const char *policy, uint64_t seed, struct probe_score *score,
		 struct iocom_err *err);

/*
 * MODEL 4.8 (Livny): share of the time in which one of n machines is idle while another has two
 * jobs or more; each machine is an M/M/1 queue of its own.
 */
int probe_imbalance(const struct probe_spec *spec, const struct sim_cluster *cluster,
		    const struct sim_params *p, uint64_t seed, double *share);
double probe_imbalance_exact(double machines, double utilisation);

#endif
