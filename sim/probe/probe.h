/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's study (MODEL 6.5): a probe job is executed again and again, each time on a
 * local and on a remote machine, and what the load indices said at that moment is
 * kept.  Decisions are computed afterwards, from what was kept (decide.c).
 *
 * The text "probe:NAME,key=value,..." takes the place of a workload's.  NAME is a
 * job of MODEL 5.8, ZAT Table 1: cc, io, cpu, nroff; or imbalance, MODEL 4.8.
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

/* Keys of the text; those of no source are readings (ours). */
struct probe_spec {
	const struct probe_job *job; /* NULL: imbalance */
	double jobs;		     /* times that the probe is executed */
	double days;		     /* ... spread over so many */
	double local, remote;	     /* loops present, mean over the days */
	double io_share;	     /* of them i/o-bound, 0..1 */
	double swing;		     /* of day and night around the mean, 0..1 */
	double mood_sd, mood_h;	     /* beside it a random factor of mean 1, drawn anew so often */
	double short_s, long_s;	     /* how long a loop stays, means of two exponentials */
	double short_share;	     /* of the loops present, of the first kind */
	double loop_io_per_ms;	     /* accesses of an i/o-bound loop per ms of computation */
	double loop_mb, idle_mb; /* memory of a loop (exponential); of sleepers (to twice that) */
	double system;		 /* share of the processor that the system's own work takes */
	double warmup_s;	 /* simulated before each probe */
	double alpha;		 /* of Hermes' smoothing, 4.3 */
	double busy_local_ms, busy_remote_ms; /* ZAT-9.1: what load adds to fixed_cost_ms ... */
	double busy_queue;		      /* ... in full at this load */
	/* of imbalance */
	double utilisation, hours;
	bool exact; /* the closed form in place of the simulation */
};

/* 0; -EINVAL with ERR set: place in the text, what was expected. */
int probe_spec_parse(struct probe_spec *spec, const char *text, struct iocom_err *err);

/* What is kept of each execution. */
enum probe_column {
	PROBE_HOUR, /* of the study */
	PROBE_LOCAL_S,
	PROBE_REMOTE_S, /* with PROBE_OVERHEAD_S */
	PROBE_OVERHEAD_S,
	PROBE_PURE_S, /* remote without it */
	/* the local machine as Hermes had it: per cent, processes, blocks/s, pages */
	PROBE_IDLE,
	PROBE_QUEUE,
	PROBE_BLOCKS,
	PROBE_FREE,
	PROBE_ACTIVE,
	PROBE_LOAD, /* UNIX load average at the moment */
	/* the remote one, in the same order */
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
 * All executions.  Nothing but the probe links the two machines, and it runs on one
 * of them: a run of each machine with the probe on it gives both response times from
 * the same state.  CLUSTER: local, remote.  P: fidelity and the like, rsh's cost as
 * fixed_cost_ms, Hermes' period as information_period_ms.  KEEP_GOING: false stops.
 * 0; -EINVAL with ERR set; -ENOMEM; -ECANCELED.
 */
int probe_month_run(const struct probe_spec *spec, const struct sim_cluster *cluster,
		    const struct sim_params *p, uint64_t seed, bool (*keep_going)(void *),
		    void *arg, struct probe_month *month, struct iocom_err *err);
void probe_month_free(struct probe_month *month);

/* How good the decisions are: shares of the executions; NaN: of nothing. */
struct probe_score {
	double win;			  /* the faster site */
	double local_right, remote_right; /* of these: stayed, was sent */
	double sent;
	double io_win;	     /* right ones among those that the i/o field alone sent away */
	double memory_wrong; /* the memory field decided, and wrongly */
	double local_better, local_s, remote_s, overhead_s;
};
/* POLICY on exactly what was known at each execution.  0; -EINVAL with ERR set; -ENOMEM. */
int probe_decide(const struct probe_spec *spec, const struct probe_month *month,
		 const struct sim_cluster *cluster, const struct rules_params *params,
		 const char *policy, uint64_t seed, struct probe_score *score,
		 struct iocom_err *err);

/*
 * MODEL 4.8 (Livny): share of the time at which one of n machines is idle while
 * another has two jobs or more; each machine an M/M/1 queue of its own.
 */
int probe_imbalance(const struct probe_spec *spec, const struct sim_cluster *cluster,
		    const struct sim_params *p, uint64_t seed, double *share);
double probe_imbalance_exact(double machines, double utilisation);

#endif
