/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The rules: who should run a job, and why, in numbers.
 *
 * Pure: no clock, socket, file, environment, global or print.  The view and
 * the request come in, a plan with its reasons goes out.  Same view, request
 * and seed: same plan, live and simulated, from one object file.
 *
 * Units as in MODEL 0.3: ms, requests per ms, MB = 10^6 bytes,
 * KB = 10^3 bytes, MB/s.
 */
#ifndef IOCOM_RULES_H
#define IOCOM_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_NAME_MAX	   64
#define RULES_REASONS_MAX  160 /* for the chosen node, home and 32 candidates */
#define RULES_EXAMINED_MAX 32

enum rules_policy {
	RULES_NLB,	    /* MODEL 3.1 */
	RULES_CPU_RE,	    /* 3.2 */
	RULES_MEM_RE,	    /* 3.3 */
	RULES_CM,	    /* 3.4 */
	RULES_IO,	    /* 3.5 */
	RULES_IO_RE,	    /* 3.6 */
	RULES_IOCM_RE,	    /* 3.8, heterogeneous form */
	RULES_IOCM_RE_HOM,  /* 3.7, homogeneous form */
	RULES_IOCM_PM,	    /* 3.9 */
	RULES_WAL,	    /* 3.10 */
	RULES_WAL_FC,	    /* 3.11: WAL with the feedback controller */
	RULES_COM,	    /* 3.12 */
	RULES_BS,	    /* 3.13 */
	RULES_ZATTI_BINARY, /* 3.14 */
	RULES_ZATTI_REAL,   /* 3.15 */
	RULES_RANDOM,	    /* 3.16 (Eager et al.) */
	RULES_THRESHOLD,    /* 3.16 */
	RULES_SHORTEST,	    /* 3.16 */
	RULES_CPU_PM,	    /* CPU-RE, then 3.9 with L_CPU and the age criterion */
	RULES_MEM_PM,	    /* MEM-RE, then 3.9 with L_MEM */
	RULES_IO_PM,	    /* IO-RE, then 3.9 with L_IO */
	RULES_WAL_PM,	    /* WAL, then 3.9 with the weighted load */
	RULES_LEAST_DELAY,  /* 3.17 (ours): the least delay to the job and to those it joins */
	RULES_POLICIES
};

/* Returns the canonical lower-case name ("iocm-re"), or NULL if out of range. */
const char *rules_policy_name(enum rules_policy policy);
/* Returns one line for people: what the policy looks at and when it moves a job. */
const char *rules_policy_summary(enum rules_policy policy);
/* Returns true if rules_migrate may move running tasks under this policy. */
bool rules_policy_migrates(enum rules_policy policy);
/* Reads a name, case-insensitive. Returns 0, or -EINVAL if no policy has that name. */
int rules_policy_parse(const char *name, enum rules_policy *policy);
/*
 * As rules_policy_parse, but "feedback+P" is policy P with the feedback controller attached
 * (*FEEDBACK true; always true for wal-fc).
 */
int rules_policy_parse_feedback(const char *name, enum rules_policy *policy, bool *feedback);

enum rules_rates {
	RULES_RATES_COMPUTATION, /* the papers': per ms of computation, modelled hit rate */
	RULES_RATES_WALL, /* live: per wall-clock ms, as measured; hit rate 0, requests given */
};

/*
 * Each reading of the model (balancer/rules/README.md) that these policies touch
 * is one field.  A number such as 3.7, O-18 or E-4 is an entry there.
 */
struct rules_params {
	enum rules_rates rates;
	double fixed_cost_ms;	/* e of 2.3 (O-10); default 100 */
	double cpu_threshold;	/* O-18: tasks per core; default 4 */
	double rho_max;		/* O-8(d); default 0.99 */
	double io_significance; /* 3.7: an I/O load up to this counts as none; default 0, at
				   wall-clock rates 0.05 (a disk utilisation) */
	/*
	 * 3.7: weight of the disk time that home's L_IO announces, where it exceeds the measured
	 * utilisation; default 1, 0: the measured utilisation alone
	 */
	double significance_demand;
	/* the speed at which cpu_ms was measured (O-8(e)); 0: home's speed */
	double reference_mips;
	double network_mb_per_s; /* the bandwidth where a node does not give one; default 125 */
	bool literal_requests;	 /* O-8(c): true t*lambda; false t*lambda*(1-h) + page faults */
	bool measured_state; /* O-8(d): use measured disk state where a node has it; default true */
	bool io_cost_test;   /* O-21: response-time criterion in IO-RE too; default true */
	bool cpu_cost_test;  /* O-18/O-19: cost test in CPU-RE, MEM-RE, CM; default true */
	bool cpu_speed_weighted; /* O-18: speed-weighted count; default false */
	double delay_harm; /* (ours) 3.17: weight of the delay that others suffer; default 1 */
	/*
	 * (ours) 3.17: the part of home's price by which another node's must be less; default 0,
	 * at wall-clock rates 0.1
	 */
	double delay_margin;
	/*
	 * (ours) 3.17: nodes whose price is above the least by up to this part are equal; default
	 * 0, at wall-clock rates 0.05
	 */
	double delay_tie;
	double delay_prior_ms; /* (ours) 3.17: a job of unknown needs computes so long, and is as
				* long at home's disk; default 1000 */
	bool require_memory; /* (ours) a candidate must hold the job without paging; default false,
				at wall-clock rates true */
	bool stage_fallthrough; /* (ours) IOCM-RE: when the I/O stage leaves the job at home, try
				   memory and CPU as well; default false, at wall-clock rates true
				 */
	bool try_next;		/* (ours) where the lightest node alone is tried (CPU, MEM, CM, IO,
				 * WAL ...): when it fails a test, try the next lightest; default false
				 * (3.2), at wall-clock rates true */
	/*
	 * (ours) a stage judges at most this many nodes and meets 3 times as many subtrees; 0: no
	 * limit; default 0, at wall-clock rates 256, which is exact up to 256 nodes
	 */
	double examine_max;
	double overload_ratio; /* 3.10, O-20: load over mean load; default 1.25 */
	double w_io;	       /* 3.10, O-25: weight of I/O, W_CPU = 1 - w_io; default 0.5 */
	/* 1.8: divide each index by the cluster's mean of it; default false */
	bool wal_normalise;
	bool wal_discrepancy;	/* O-25, O-12: the discrepancy rule in WAL too; default true */
	bool discrepancy_after; /* O-12: L(home) includes the job; default true */
	bool closed_loop_bound; /* O-8(d): bound a request's response by the tasks doing I/O;
				   default true */
	/*
	 * (ours) 2.1: r(i,j) is multiplied by what earlier predictions were off by; see struct
	 * rules_correction; default true
	 */
	bool prediction_feedback;
	bool mem_ratio_test; /* O-19: acceptance test of the memory stage; default true */
	/* O-19: choose the target by most free memory, not by least L_MEM/n_MEM; default false */
	bool mem_order_free;
	/*
	 * O-20: memory is imbalanced if L_MEM over its mean > overload_ratio, not if L_MEM > n_MEM;
	 * default false
	 */
	bool cm_memory_ratio;
	/* 3.5: IO tests discrepancy and response as section 3 of FC does; default true */
	bool io_useful_test;
	/* O-21: inside K take the least L_IO/threshold, not the least L_IO; default false */
	bool io_order_share;
	bool hom_stage_explicit; /* O-22: the first stage of 3.7 asks for explicit load only;
				    default false */
	/* 3.9: IOCM-PM places jobs as 3.7 does (equal nodes), not as 3.8 does; default false */
	bool hom_pm;
	/* O-16: among equal nodes prefer one without a task of this job; default true */
	bool spread_tasks;
	/*
	 * O-17: where tasks start before any balancing; 0: all at home, 1: round-robin from home;
	 * default 0
	 */
	double parallel_start;
	double migration_fixed_ms; /* f of 2.4 (O-10); default 100 */
	/* O-24: at most this many moves a decision; 0: until home is not overloaded */
	double migrations_max;
	/* (ours) 3.9: how many lighter nodes are judged for one move; 0: all; default 32 */
	double migration_examine;
	/*
	 * 3.9: CPU-PM tests age > cost / (n - m), as the process trace's authors do, instead of
	 * r_PM; default true
	 */
	bool age_criterion;
	double com_decision; /* O-14: demand counted at home 0, literal (5) 1, one process a node
				first 2; default 0 */
	/* O-13: scale the communication time by the port's load; default false */
	bool com_port_contention;
	bool com_strict_maximum; /* O-28: balance the resource with the maximum; default false */
	/* O-29: spread communication-intensive jobs in every case; default true */
	bool com_always_spread;
	bool com_printed_cost;	/* E-4: use criterion (8) as printed, for ablation; default false */
	double eager_probes;	/* O-34: L; 0, or above 32: all nodes; default 3 */
	double eager_threshold; /* O-34: T tasks; default 4 */
	double hop_max;		/* O-37: a job that was forwarded this often stays; default 3 */
	/* 3.14: the CPU field is the idle time in per cent, not the run queue; default false */
	bool zatti_idle;
	double zatti_idle_percent; /* a CPU with less idle time than this is busy; default 10 */
	double zatti_queue;	   /* local threshold of the run queue; default 4 */
	double zatti_queue_delta;  /* local minus remote threshold of the run queue; default 3 */
	double zatti_blocks_per_s; /* local threshold of I/O traffic; default 15 */
	double zatti_blocks_delta; /* local minus remote threshold of I/O traffic; default 0 */
	/* O-32: subtract the delta from the local value, not from the threshold; default true */
	bool zatti_relative;
	/* O-31: look in the exact slot, then in its supersets; default true */
	bool zatti_superset;
	double zatti_intervals; /* 3.15: number of intervals in each domain; default 10 */
	/*
	 * share of the job's elapsed time when alone, in per cent; below it the job needs no CPU;
	 * default 30
	 */
	double zatti_cpu_need;
	/*
	 * I/O traffic of the job when alone, in blocks/s; below it the job needs no I/O; default 2
	 */
	double zatti_io_need;
	double fb_controller;	     /* 0 published (3.11), 1 smoothed, 2 gradient, 3 predictive:
				      * rules_controller */
	double fb_gain_w, fb_gain_b; /* G of (4.9), (4.13); default 0.5 */
	double fb_buffer_unit_mb;    /* O-26: MB of buffer for a unit of slowdown; default 1 */
	double fb_history;	     /* 3.11: number of slowdowns that are averaged; default 50 */
	double fb_sign_w, fb_sign_b; /* O-27: the first direction; 1: up, 0: down; default 1 */
	/* O-27: the least buffer, and the least memory left for jobs; default 1 */
	double fb_buffer_min_mb;
	/* (ours) weight of the newest slowdown in the smoothed one; default 0.1 */
	double fb_filter;
	double fb_dead_band; /* (ours) a smaller relative change counts as noise; default 0.02 */
	/* (ours) predictive: the largest move of the buffer at once; default 16 */
	double fb_step_mb;
	/*
	 * (ours) predictive: t_j is what the job asks for, not twice its age, though no node can
	 * measure that; default false
	 */
	bool fb_known_length;
	/* (ours) predictive: younger tasks count as this old; default 10, a slice */
	double fb_age_least_ms;
};

void rules_params_default(struct rules_params *params, enum rules_rates rates);
/*
 * Sets one parameter by its field name (booleans take 0 or 1). Returns 0; -ENOENT: unknown name;
 * -EINVAL: NaN, infinite, negative or out of range.
 */
int rules_params_set(struct rules_params *params, const char *name, double value);
/* Returns the value of parameter I (0, 1, ...) and its field name; *NAME is NULL after the last. */
double rules_params_get(const struct rules_params *params, unsigned int i, const char **name);

/* A task that runs on a node: its requirements (MODEL 1; "tasks" of iocom-view(5)). */
struct rules_task {
	double cpu_ms;
	double age_ms; /* CPU time already consumed (O-9) */
	double io_per_ms;
	double request_kb;
	double reaccess; /* r > 0; 0: the task never hits the buffer */
	double memory_mb;
	double faults_per_ms;
	double initial_mb;
	double written_mb;
	double com_ms; /* L_{j,p,COM} of (5); 0 if the task shares the master's node */
	/*
	 * requests of the whole run, by RULES_RATES_WALL alone, whose rates are not those of the
	 * computation; 0: cpu_ms * io_per_ms
	 */
	double requests;
	/* the task must not migrate now, because it is at a barrier or in transit (3.9) */
	bool pinned;
};

/*
 * The work that the tasks of a node have left (MODEL 2.10).  A task alone there would still take
 * T ms, of which it would compute for the share c and be at the disk for the share d; where a cap
 * limits the processor, it does some of both at once, and c + d > 1.
 */
struct rules_sharers {
	double cpu, disk;		  /* sums of c and of d over the tasks */
	double cpu_left_ms, disk_left_ms; /* sums of c T and of d T; INFINITY: not known */
};

/*
 * A node as the decision sees it.  Load indices follow from `tasks`;
 * `advertised` overrides them, `measured` overrides the requirement-based disk
 * state and CPU queue.  A live node has no tasks and both overrides.
 */
struct rules_node {
	char name[RULES_NAME_MAX];
	double ram_mb;	  /* 0: unknown; then memory never runs short */
	double buffer_mb; /* n_MEM = ram_mb - buffer_mb; below ram_mb */
	double cpu_mips;  /* > 0; with a cap, what it leaves */
	/* the speed until a cap on cpu_mips is used up; 0: there is no cap; else >= cpu_mips */
	double burst_mips;
	double cores; /* >= 1 */
	double disk_fixed_ms;
	double disk_mb_per_s; /* 0: the node has no disk */
	double disk_parallel; /* tasks that the disk serves at full speed at a time; 0: one */
	double request_kb, request_sd_kb;
	double network_mb_per_s;	/* 0: params.network_mb_per_s */
	const struct rules_task *tasks; /* borrowed by rules_view_set, only for the call */
	size_t ntasks;
	bool has_measured;
	struct {
		double disk_arrivals_per_ms, disk_utilisation;
		double service_ms,
			service_ms2; /* 0: the disk served nothing, so its fixed values count */
		double cpu_queue;    /* without the candidate task */
		double io_tasks;     /* tasks doing I/O, for the closed-loop bound (O-8(d)) */
	} measured;
	bool has_advertised;
	struct {
		double io_per_ms; /* explicit + implicit */
		double explicit_per_ms;
		double memory_mb;
		double cpu;
		double com_ms;
	} advertised;
	bool has_sharers; /* false: derived from `tasks`, else from `measured` */
	struct rules_sharers sharers;
	bool has_zatti; /* false: derived from the other members */
	struct {
		double cpu_idle_percent, run_queue;
		double blocks_per_s;
		double free_mb;
	} zatti;
	/* For rules_place_gang alone, whose caller makes ports of it (<iocom/gang.h>). */
	bool has_port;
	struct {
		double busy_mb_per_s, round_trip_ms;
		double slots; /* negative: no limit */
	} port;
	bool accepts; /* the owner lets jobs in */
	double age_ms;
};

/*
 * Sets NODE's `advertised` from its tasks, whatever it was before. Returns 0, or -EINVAL for
 * values out of range (has_advertised is then false).
 */
int rules_node_loads(struct rules_node *node, enum rules_rates rates);

/*
 * What earlier responses of such jobs at NODE were, over what was expected of them (MODEL 2.1).
 * The lower bound keeps an odd measurement from drawing every job to a node.  The upper one is that
 * of a node whose word is not believed.
 */
#define RULES_CORRECTION_MIN 0.25
#define RULES_CORRECTION_MAX 1024.0
struct rules_correction {
	uint32_t node;
	double factor; /* RULES_CORRECTION_MIN to RULES_CORRECTION_MAX; 1: none */
};

/* How much of a job's initial data NODE has already: that need not be moved there (MODEL 2.3). */
struct rules_held {
	uint32_t node;
	double mb;
};

/*
 * What a job reads and writes on a file system that the nodes share (MODEL 2.11): no node's own
 * disk has it, but that of SERVER.  `cached` is what the nodes' page caches have of `read_mb`, in
 * ascending order of the nodes, each once; borrowed.  A decision uses it; rules_view_charge and
 * rules_migrate do not.
 */
struct rules_shared {
	double read_mb, written_mb;
	bool served; /* `server` is known */
	uint32_t server;
	const struct rules_held *cached;
	size_t ncached;
};

/* What task FROM of a parallel job sends to task TO during the whole job. */
struct rules_pair {
	uint32_t from, to;
	double bytes, messages;
};

struct rules_request {
	double cpu_ms;
	double io_per_ms; /* wall: its rate when running alone */
	double request_kb;
	double reaccess;
	double memory_mb;
	double faults_per_ms;
	double initial_mb, written_mb;
	double output_mb; /* what comes home from another node when the job is over */
	double requests;  /* wall: number of disk requests; negative = cpu_ms * io_per_ms */
	/* wall: the part of io_per_ms and of requests that page faults make, 0..1 (MODEL 0.3) */
	double implicit_share;
	uint32_t tasks; /* >= 1 */
	uint32_t hops;
	/* Communication time of each task over all phases, in ms, when it is not on the node of
	 * the master (task 0; MODEL 5.10): `tasks` values, borrowed; NULL: none. Only a request
	 * for one task charges it. */
	const double *com_ms;
	/*
	 * Factors of r(i,j), in ascending order of their nodes, each node once; borrowed.  A node
	 * that the view does not have is of no effect.  A decision uses them
	 * (prediction_feedback); rules_view_charge and rules_migrate do not.
	 */
	const struct rules_correction *corrections;
	size_t ncorrections;
	double correction; /* the factor of all other nodes, in the same range; 0: none */
	/*
	 * What nodes have of `initial_mb`, in ascending order of the nodes, each once; borrowed.
	 * Others have nothing. A decision uses it; rules_view_charge and rules_migrate do not.
	 */
	const struct rules_held *held;
	size_t nheld;
	struct rules_shared shared;
	/*
	 * Who of its tasks sends how much to whom; borrowed.  Only those who ask rules_place_gang
	 * (<iocom/gang.h>) use it.  After each of `phases` all tasks wait for each other; 0: not
	 * known that they do.
	 */
	const struct rules_pair *pairs;
	size_t npairs;
	uint32_t phases;
};

/*
 * A reason: it compares `left` with `right` (left > right unless the criterion says otherwise);
 * `holds` is the outcome.
 */
enum rules_criterion {
	RULES_C_HOME,		  /* policy never transfers; left, right unused */
	RULES_C_IO_PRESENT,	  /* explicit load of home  >  io_significance */
	RULES_C_IMPLICIT_PRESENT, /* implicit load of home, or memory incl. job > n_MEM */
	RULES_C_IO_OVERLOADED,	  /* L_IO(home) with the job  >=  threshold_IO(home) (16) */
	RULES_C_IO_UNDERLOADED,	  /* L_IO(k)  <=  threshold_IO(k) */
	RULES_C_IO_DISCREPANCY,	  /* L_IO(home) - L_IO(k)  >  page + IO of the job */
	RULES_C_RESPONSE,	  /* r(home, j)  >  r(k, j) + c(home, k), ms */
	RULES_C_MEM_OVERLOADED,	  /* L_MEM(home) with the job  >  n_MEM(home), MB */
	RULES_C_MEM_RATIO,	  /* L_MEM/n_MEM at home  >  (L_MEM(k)+m)/n_MEM(k) */
	RULES_C_CPU_OVERLOADED,	  /* L_CPU(home) with the job  >  threshold, tasks */
	RULES_C_CPU_DISCREPANCY,  /* L_CPU(home)  >  L_CPU(k) + 1 */
	RULES_C_ACCEPTS,	/* owner of k lets jobs in; left 1 or 0, right 1 (left >= right) */
	RULES_C_HAS_DISK,	/* k has a disk; left MB/s > right 0 */
	RULES_C_MEM_FITS,	/* L_MEM(k)+m  <=  n_MEM(k), MB (require_memory) */
	RULES_C_MEM_IMBALANCED, /* CM: L_MEM(home) over the mean  >  overload_ratio */
	RULES_C_CPU_IMBALANCED, /* CM: L_CPU(home) over the mean  >  overload_ratio */
	RULES_C_EXPLICIT_DISCREPANCY, /* IO: explicit(home) - explicit(k)  >  the job's */
	RULES_C_LOAD_HIGHEST,	      /* WAL: load(home)  >=  highest of all others */
	RULES_C_LOAD_RATIO,	      /* WAL: load(home) / mean load  >  overload_ratio */
	RULES_C_LOAD_DISCREPANCY,     /* WAL: load(home) - load(k)  >  the job's load */
	RULES_C_COM_FIRST,	      /* COM: L_COM(home)  >=  the larger of L_CPU, L_Disk, ms */
	RULES_C_JOB_COM,	      /* COM: R_COM  >  the larger of R_CPU, R_Disk, ms */
	RULES_C_JOB_IO,		      /* COM: R_Disk  >=  R_CPU, ms */
	RULES_C_DISK_FIRST,	      /* COM, strict: L_Disk(home)  >=  L_CPU(home), ms */
	RULES_C_COM_DISCREPANCY,      /* (7) COM */
	RULES_C_MASTER,		      /* COM: the job's first task stays; left, right unused */
	RULES_C_NO_SIBLING,	      /* COM: tasks of this job on k  <=  0 */
	RULES_C_COM_RESPONSE,	      /* (8) COM: R(home)  >  R(k) + R_mig, ms */
	RULES_C_FREE_NODES,	      /* BS: free nodes  >=  tasks of the job */
	RULES_C_IDLE,		      /* BS: nothing runs on k */
	RULES_C_HOPS,		      /* times forwarded  <  hop_max */
	RULES_C_LOCAL_CPU,	      /* ZAT: home's CPU load  >  local threshold */
	RULES_C_LOCAL_IO,	      /* ZAT: home's I/O traffic  >  local threshold, blocks/s */
	RULES_C_LOCAL_MEMORY,	      /* ZAT: memory needed  >  home's free memory, MB */
	RULES_C_REMOTE_CPU,	      /* ZAT: k's CPU load  <=  remote threshold */
	RULES_C_REMOTE_IO,	      /* ZAT: k's I/O traffic  <=  remote threshold, blocks/s */
	RULES_C_REMOTE_MEMORY,	      /* ZAT: k's free memory  >=  memory needed, MB */
	RULES_C_NEEDS,		      /* ZAT: key of the r.vector, 2 CPU + 1 I/O  >  0 */
	RULES_C_SENT,		      /* ZAT: jobs of that need sent to k since its vector  <=  0 */
	RULES_C_DELTA_CPU,	      /* ZAT: k's CPU load  <  home's less the delta (O-32) */
	RULES_C_DELTA_IO,	      /* ZAT: k's I/O traffic  <  home's less the delta, blocks/s */
	RULES_C_AT_RANDOM,	      /* Eager random: drawn from the seed; left, right unused */
	RULES_C_QUEUE_BELOW,	      /* Eager threshold: tasks at k  <  T */
	RULES_C_QUEUE_SHORTER,	      /* Eager shortest: tasks at k  <  tasks at home */
	RULES_C_ROUND_ROBIN,	      /* O-17: the job's next task starts on the next node */
	RULES_C_STILL_OVERLOADED,     /* 3.9: the policy's load of home  >  its limit */
	RULES_C_MIGRANT,	      /* 2.5: r_PM(home)  >  r_PM(k) + c, ms */
	RULES_C_MIGRANT_AGE,	      /* CPU-PM: age  >  cost / (n - m), ms */
	RULES_C_DELAY_HOME,	      /* 3.17: the job's response at home, and its harm there, ms */
	RULES_C_DELAY,		      /* 3.17: home's price less the margin  >  k's price, ms */
	RULES_CRITERIA
};

const char *rules_criterion_name(enum rules_criterion c);   /* "io-discrepancy" */
const char *rules_criterion_source(enum rules_criterion c); /* "SLD criterion 1" */
/*
 * Returns, for instance, "requests/ms". With wall rates the stage tests compare disk
 * utilisations.
 */
const char *rules_criterion_unit(enum rules_criterion c, enum rules_rates rates);
const char *rules_criterion_relation(enum rules_criterion c); /* ">", "<=" ... */
const char *rules_criterion_text(enum rules_criterion c);     /* one plain sentence for people */

struct rules_reason {
	enum rules_criterion criterion;
	uint32_t node; /* index in the view of the node that the criterion judged */
	double left, right;
	bool holds;
};

struct rules_plan {
	uint32_t node;	  /* where the job's first task runs */
	uint32_t ntied;	  /* number of candidates the policy held equal, the chosen one included */
	uint32_t tied[8]; /* the first of the nodes that were held equal */
	bool stayed;	  /* true: home */
	bool queued;	  /* BS: too few nodes are free; ask again when one is freed */
	uint32_t nreasons;
	struct rules_reason reasons[RULES_REASONS_MAX];
	uint32_t candidates[RULES_EXAMINED_MAX]; /* acceptable nodes, best first; [0] is `node` */
	uint32_t ncandidates;
	/*
	 * Number of nodes refused, by the criterion that ruled each out first. A bound may rule
	 * out a whole group without a look at each node. Nodes after the last examined one are
	 * neither candidates nor refused.
	 */
	uint32_t refused[RULES_CRITERIA];
};

struct rules;
struct rules_view;

/* Returns NULL if there is no memory or for values out of range. */
struct rules *rules_new(enum rules_policy policy, const struct rules_params *params, uint64_t seed);
void rules_free(struct rules *r);
/*
 * Makes plans brief from now on: the chosen node is the same, but `reasons`, `refused`, and
 * `candidates` and `tied` after the first are left out. Use it if you decide often and seldom
 * ask why.
 */
void rules_brief(struct rules *r, bool brief);
/*
 * Sets the seed for later decisions. Random choices depend only on seed, home and request:
 * identical jobs of one home draw alike. To place many of them, give each its own seed, drawn
 * from its number.
 */
void rules_reseed(struct rules *r, uint64_t seed);

struct rules_view *rules_view_new(void);
void rules_view_free(struct rules_view *view);
/*
 * Sets how later rules_view_set and rules_view_charge read requirements: with the buffer's hit
 * rate and page faults (computation, the default), or as disk requests per wall-clock ms. Use
 * the same rates as for the rules.
 */
void rules_view_rates(struct rules_view *view, enum rules_rates rates);
/*
 * Sets the speed to which the cpu_ms of later rules_view_set and rules_view_charge refer, for the
 * work that tasks have left (2.10); 0, the default: each node's own.
 */
void rules_view_reference(struct rules_view *view, double mips);
/* Adds node INDEX (0, 1, ... without gaps) or replaces it.  Copies all it needs. */
int rules_view_set(struct rules_view *view, uint32_t index, const struct rules_node *node);
/*
 * Copies node INDEX of FROM to TO. Both views must have the node already and have the same rates
 * and policy to keep; else -EINVAL.
 */
int rules_view_copy(struct rules_view *to, const struct rules_view *from, uint32_t index);
/*
 * For many changes at once: after defer the indexes are not updated, and settle rebuilds them.
 * This pays off from about a tenth of the nodes on. Do not decide or mark in between (-EBUSY).
 * defer returns 0, or -EBUSY (marked or deferred already).
 */
int rules_view_defer(struct rules_view *view);
void rules_view_settle(struct rules_view *view);
/* Hints that node INDEX will be set or charged soon. */
void rules_view_prefetch(const struct rules_view *view, uint32_t index);
/* Removes the newest node (index count-1). */
int rules_view_pop(struct rules_view *view);
/*
 * Withdraws node INDEX: the newest node takes its index, charges included, so that none stays
 * empty.  O(log n).  Returns 0; -EINVAL (no such node); -ENOMEM (marked only).
 */
int rules_view_remove(struct rules_view *view, uint32_t index);
uint32_t rules_view_count(const struct rules_view *view);
const char *rules_view_name(const struct rules_view *view, uint32_t index);
/*
 * Keeps only the indexes that POLICY needs from now on (default: all), so that changes cost
 * less. A policy without its index answers -EINVAL. Zatti's tables depend on the zatti_*
 * parameters: call this if you change them, else the policy answers -EINVAL.
 */
int rules_view_keep(struct rules_view *view, enum rules_policy policy,
		    const struct rules_params *params);
/*
 * The same, and what is kept already stays: for a view that several policies ask. Returns 1: an
 * index was missing and has been built, O(n log n); 0: none was; -EINVAL; -ENOMEM (what was kept
 * before is kept).  What nodes were charged with before a table of Zatti's was there does not show
 * in it: after 1, set and charge those nodes anew.
 */
int rules_view_keep_also(struct rules_view *view, enum rules_policy policy,
			 const struct rules_params *params);
/*
 * Adds the request's requirements to node INDEX until the next rules_view_set
 * of it: what the home node does after a placement (MODEL 3.0).  com_ms[0] of a
 * request for one task is what the task adds to L_COM there by (5).  For Zatti's
 * binary form the bits that the job needs are off until then (3.14).
 */
int rules_view_charge(struct rules_view *view, uint32_t index, const struct rules_request *request);
/* Does the opposite for a task that left; its requirements must be in the view. */
int rules_view_discharge(struct rules_view *view, uint32_t index,
			 const struct rules_request *request);
/*
 * rollback undoes every change of a node since mark. So many homes can share one snapshot, each
 * with its own few placements. Marks do not nest. mark returns 0 or -EBUSY (already marked).
 * rollback cannot fail and restores the view bit for bit. After mark, a change that finds no
 * memory for its undo note changes nothing and returns -ENOMEM.
 */
int rules_view_mark(struct rules_view *view);
void rules_view_rollback(struct rules_view *view);

/*
 * Decides. HOME is the view index of the node where the job arrived; the caller owns PLAN.
 * Returns 0; -EINVAL (empty view, home out of range, request with NaN, infinite or negative
 * values, or corrections out of order or range); -ENOMEM.
 */
int rules_place(struct rules *r, const struct rules_view *view, uint32_t home,
		const struct rules_request *request, struct rules_plan *plan);

/* What a decision expects of a job: at the node it chose, and at home (MODEL 2.1, 2.3). */
struct rules_expectation {
	double there_ms;     /* response at the chosen node, the way there included, corrected */
	double home_ms;	     /* response at home, corrected; equals there_ms if the job stays */
	double there_factor; /* the corrections in these two; 1: none */
	double home_factor;
	/*
	 * false: nothing is known of what the job needs, or it is beyond all numbers; both times
	 * are then 0
	 */
	bool known;
};

/*
 * Says what one task of REQUEST, which arrived at HOME, takes at NODE, any node of the view, by
 * the formula that decisions of R's policy compare: 2.10 for least-delay, 2.1 for all others.
 * O(log ncorrections).
 * Returns 0; -EINVAL (HOME or NODE out of range, REQUEST as for rules_place; OUT is unchanged).
 */
int rules_expect(struct rules *r, const struct rules_view *view, uint32_t home, uint32_t node,
		 const struct rules_request *request, struct rules_expectation *out);

/*
 * Places all request->tasks tasks of a job, one after another; each placement sees the ones
 * before it. NODES (caller's, request->tasks entries) gets their nodes. PLAN explains the first
 * task (COM: the first slave that moves, else the first). VIEW is charged meanwhile and restored
 * before the return. BS sets plan->queued if the job must wait; NODES is then unchanged.
 */
int rules_place_job(struct rules *r, struct rules_view *view, uint32_t home,
		    const struct rules_request *request, struct rules_plan *plan, uint32_t *nodes);

/* One move of a running task (MODEL 3.9). */
struct rules_move {
	uint32_t task; /* index in the array of tasks */
	uint32_t to;   /* target node */
	double cost_ms;
	/*
	 * 2.7: the task's share of the balanced load (requests/ms; MB; tasks; weighted) per ms
	 * of cost
	 */
	double cost_effectiveness;
};

/* What moves to NODE have cost: f and the bandwidth of 2.4, for the image of the task. */
struct rules_path {
	uint32_t node;
	double fixed_ms; /* >= 0 */
	double mb_per_s; /* > 0 */
};
/*
 * From now on R's moves to the nodes of the N PATHS, in ascending order of nodes, cost that, and
 * not what the parameters and the nodes' networks say.  R borrows PATHS.
 */
void rules_migrate_paths(struct rules *r, const struct rules_path *paths, size_t n);

/*
 * Decides which running tasks should leave HOME now. TASKS are all tasks on HOME, old and new,
 * which HOME's entry in the view stands for. MOVES (caller's, ROOM entries) gets *N moves in the
 * order to make them; each assumes the ones before it. PLAN (may be NULL) explains them, or the
 * last ones if there are many; its node is the last move's. VIEW is restored before the return.
 * Returns 0 (with *n == 0 if nothing moves, and for policies that never migrate); -EINVAL;
 * -ENOMEM.
 */
int rules_migrate(struct rules *r, struct rules_view *view, uint32_t home,
		  const struct rules_task *tasks, size_t ntasks, struct rules_move *moves,
		  size_t room, size_t *n, struct rules_plan *plan);

/* The feedback controllers, fb_controller (feedback.c has their formulas). */
enum rules_controller {
	RULES_CONTROLLER_PUBLISHED, /* (4.9), (4.13): steps by the mean slowdown */
	RULES_CONTROLLER_SMOOTHED,  /* ours: the same on the smoothed slowdown, with a dead band */
	RULES_CONTROLLER_GRADIENT,  /* ours: utilisations set w_io, saved requests set the buffer */
	RULES_CONTROLLER_PREDICTIVE, /* ours: the buffer with the least predicted waiting */
	RULES_CONTROLLERS
};

/* "published", "smoothed", "gradient", "predictive"; NULL when out of range. */
const char *rules_controller_name(enum rules_controller controller);

/* What the controller learns when a job completes (MODEL 3.11). */
struct rules_outcome {
	double slowdown; /* >= 0 */
	/* Means over the cluster since the previous outcome; hit rate and share: gradient only. */
	double cpu_utilisation, disk_utilisation; /* 0..1 */
	double implicit_share;			  /* page faults / all disk requests, 0..1 */
	double hit_rate;			  /* 0..1 */
};

/* Why the predictive controller kept or moved the buffer. */
enum rules_control_why {
	RULES_WHY_NONE, /* another controller, or no outcome yet */
	RULES_WHY_IDLE, /* no running task was passed to rules_foresee since the last outcome */
	RULES_WHY_DEAD_BAND, /* a move would save less than fb_dead_band */
	RULES_WHY_MISSES,    /* up: a larger buffer saves more misses than it costs faults */
	RULES_WHY_FAULTS,    /* down: a smaller one saves more page faults */
	RULES_WHYS
};

/* "none", "idle", "dead-band", "misses", "faults"; NULL when out of range. */
const char *rules_control_why_name(enum rules_control_why why);

/* The feedback controller's outputs. */
struct rules_control {
	bool active;	    /* a controller is attached */
	double w_io;	    /* W_IO; W_CPU = 1 - W_IO */
	double buffer_mb;   /* buffer of every node */
	double slowdown;    /* S_u, mean slowdown of the history; 0 before the first outcome */
	uint64_t outcomes;  /* completions seen */
	uint64_t saturated; /* steps cut by a clamp (O-27) */
	/* Predictive only: the last outcome's prediction. */
	enum rules_control_why why;
	double wanted_mb;      /* buffer it moves to, in steps of fb_step_mb */
	double stretch;	       /* predicted slowdown of the running tasks with this buffer */
	double stretch_wanted; /* predicted slowdown with the wanted buffer */
};

/*
 * Attaches the controller to any policy (WAL-FC has it from the start). RAM_MB and BUFFER_MB are
 * a node's memory and first buffer size. For WAL-FC too, call this before the first outcome.
 * Returns 0 or -EINVAL.
 */
int rules_feedback(struct rules *r, double ram_mb, double buffer_mb);
/*
 * Tells the predictive controller what runs on NODE now; it uses NODE's tasks, memory and disk.
 * Call it for any nodes between two outcomes; O(tasks) each. A page fault takes FAULT_MS, at the
 * disk or not. Nodes with less memory than rules_feedback was told are skipped. Returns 0, or
 * -EINVAL (values out of range; nothing is learnt).
 */
int rules_foresee(struct rules *r, const struct rules_node *node, double fault_ms,
		  bool fault_at_disk);
/* Reports that a job completed. O(1). Returns 0, or -EINVAL (NaN, negative; nothing is learnt). */
int rules_done(struct rules *r, const struct rules_outcome *outcome);
void rules_control(const struct rules *r, struct rules_control *control);

/* Formulas for tests, reports and the simulator. Each comment names the source. */
double rules_hit_rate(double reaccess, double buffer_kb, double io_per_ms, double request_kb,
		      double cpu_ms, double node_kb_per_ms);			      /* (5.4) FC */
double rules_implicit(double faults_per_ms, double memory_load_mb, double memory_mb); /* (4.3) FC */
double rules_service_ms(double fixed_ms, double request_kb, double disk_mb_per_s);    /* 2.1 */
double rules_service_ms2(double fixed_ms, double request_kb, double sd_kb, double disk_mb_per_s);
/* Mean response of one request at an M/G/1 disk; utilisation is capped at rho_max. */
double rules_disk_response_ms(double service_ms, double service_ms2, double arrivals_per_ms,
			      double utilisation, double rho_max);
double rules_response_ms(double cpu_ms, double cpu_queue, double requests,
			 double disk_response_ms); /* (4.5) FC */
double rules_transfer_cost_ms(double fixed_ms, double initial_mb, double network_mb_per_s,
			      double disk_from_mb_per_s, double disk_to_mb_per_s); /* (4.7) FC */
double rules_migration_cost_ms(double fixed_ms, double image_mb, double data_mb,
			       double network_mb_per_s, double disk_from_mb_per_s,
			       double disk_to_mb_per_s); /* 2.4 SLD */
double rules_disk_performance(double fixed_ms, double request_kb,
			      double disk_mb_per_s);	     /* D_i, 2.8 */
double rules_heterogeneity(const double *weights, size_t n); /* HD/HC/HM, 2.8 */
double rules_io_threshold(double total_io_per_ms, double performance,
			  double total_performance);			/* (16) */
double rules_weighted_load(double w_cpu, double cpu, double io_per_ms); /* (4.1) FC */
/*
 * The time that a task takes alone (MODEL 2.10): it computes CPU_MS in all, BURST_MS if no cap held
 * it up (the same, or less), and is DISK_MS at the disk.  The cap's pauses may fall into the time
 * at the disk; the part RULES_SEQUENTIAL of what could does not (the median of ten programs under a
 * cap of 0.3 processors, at two disks).
 */
#define RULES_SEQUENTIAL 0.65
double rules_alone_ms(double cpu_ms, double burst_ms, double disk_ms);
/* Adds a task that has so much left; with nothing left, or an infinite time, it changes nothing. */
void rules_sharers_add(struct rules_sharers *sharers, double cpu_ms, double burst_ms,
		       double disk_ms);
/* (5) COM: com_ms[j] summed over phases, node[j] of each process, 0 = master. */
double rules_com_load(const double *com_ms, const uint32_t *node, size_t processes, size_t j);

#endif
