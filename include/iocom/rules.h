/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The rules: who should run a job, and why, in numbers.
 *
 * Pure: no clock, socket, file, environment, global or print.  The view and
 * the request come in, a plan with its reasons goes out.  Same view, request
 * and seed: same plan, live and simulated, from one object file.
 *
 * Units as in MODEL section 0.3: ms, requests per ms, MB = 10^6 bytes,
 * KB = 10^3 bytes, MB/s.
 */
#ifndef IOCOM_RULES_H
#define IOCOM_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_NAME_MAX	   64
#define RULES_REASONS_MAX  160 /* chosen, home, and 32 candidates with a few criteria each */
#define RULES_EXAMINED_MAX 32

enum rules_policy {
	RULES_NLB,     /* MODEL 3.1 */
	RULES_CPU_RE,  /* 3.2 */
	RULES_MEM_RE,  /* 3.3 */
	RULES_IO_RE,   /* 3.6 */
	RULES_IOCM_RE, /* 3.8, heterogeneous form */
	RULES_POLICIES
};

/* Canonical lower-case name ("iocm-re"); NULL when out of range. */
const char *rules_policy_name(enum rules_policy policy);
/* Case-insensitive.  0, or -EINVAL when no policy has that name. */
int rules_policy_parse(const char *name, enum rules_policy *policy);

enum rules_rates {
	RULES_RATES_COMPUTATION, /* the papers': per ms of computation, modelled hit rate */
	RULES_RATES_WALL, /* live: disk requests per wall-clock ms, hit rate 0, requests given */
};

/* Each Open item of MODEL that these policies touch is one field. */
struct rules_params {
	enum rules_rates rates;
	double fixed_cost_ms;	 /* e of 2.3 (O-10); 100 */
	double cpu_threshold;	 /* O-18; 4 tasks per core */
	double rho_max;		 /* O-8(d); 0.99 */
	double io_significance;	 /* 3.7: below it a node has no explicit I/O load; computation 0;
				  * wall: 0.05, as a disk utilisation */
	double reference_mips;	 /* speed at which cpu_ms was measured (O-8(e)); 0 = home's */
	double network_mb_per_s; /* where a node does not say; 125 */
	bool literal_requests;	 /* O-8(c): true t*lambda; false t*lambda*(1-h) + page faults */
	bool measured_state;	 /* O-8(d): use measured disk state where a node has it; true */
	bool io_cost_test;	 /* O-21: response-time criterion in IO-RE too; true */
	bool cpu_cost_test;	 /* O-18/O-19: cost test in CPU-RE and MEM-RE; true */
	bool cpu_speed_weighted; /* O-18: speed-weighted count; false */
	bool require_memory;	 /* (ours) a candidate must hold the job without paging;
				  * computation false, wall true */
	bool stage_fallthrough;	 /* (ours) IOCM-RE: when the I/O stage leaves the job at home, try
				  * memory and CPU as well; computation false, wall true */
	bool try_next;		 /* (ours) CPU-RE, MEM-RE: when the lightest node fails a test, try
				  * the next lightest; computation false (3.2), wall true */
	double examine_max;	 /* (ours) a stage judges at most so many nodes and meets 3 times as
				  * many subtrees; 0 = no limit; computation 0, wall 256: exact up
				  * to 256 nodes */
	double overload_ratio;	 /* 3.10; 1.25: load over mean load, for the weighted policies */
	double w_io;		 /* 3.10, O-25; 0.5: weight of I/O, for the weighted policies */
};

void rules_params_default(struct rules_params *params, enum rules_rates rates);
/*
 * Sets one parameter by its field name (booleans take 0 or 1).  0; -ENOENT
 * unknown name; -EINVAL NaN, infinite, negative or out of range.
 */
int rules_params_set(struct rules_params *params, const char *name, double value);

/* A task that runs on a node: its requirements (MODEL 1, VIEW "tasks"). */
struct rules_task {
	double cpu_ms;
	double age_ms; /* CPU time already consumed (O-9) */
	double io_per_ms;
	double request_kb;
	double reaccess; /* r > 0, or 0: never hits */
	double memory_mb;
	double faults_per_ms;
	double initial_mb;
	double written_mb;
	double com_ms;
};

/*
 * A node as the decision sees it.  Load indices follow from `tasks`;
 * `advertised` overrides them, `measured` overrides the requirement-based disk
 * state and CPU queue.  A live node has no tasks and both overrides.
 */
struct rules_node {
	char name[RULES_NAME_MAX];
	double ram_mb;	  /* 0: unknown, memory never runs short */
	double buffer_mb; /* n_MEM = ram_mb - buffer_mb; below ram_mb */
	double cpu_mips;  /* > 0 */
	double cores;	  /* >= 1 */
	double disk_fixed_ms;
	double disk_mb_per_s; /* 0: the node has no disk */
	double request_kb, request_sd_kb;
	double network_mb_per_s;	/* 0: params.network_mb_per_s */
	const struct rules_task *tasks; /* borrowed by rules_view_set only for the call */
	size_t ntasks;
	bool has_measured;
	struct {
		double disk_arrivals_per_ms, disk_utilisation;
		double service_ms, service_ms2; /* 0: nothing was served, use the disk's own */
		double cpu_queue;		/* without the candidate */
		double io_tasks; /* tasks doing I/O, for the closed-loop bound (O-8(d)) */
	} measured;
	bool has_advertised;
	struct {
		double io_per_ms; /* explicit + implicit */
		double explicit_per_ms;
		double memory_mb;
		double cpu;
		double com_ms;
	} advertised;
	bool accepts; /* owner lets jobs in */
	double age_ms;
};

struct rules_request {
	double cpu_ms;
	double io_per_ms; /* wall: what it does running alone */
	double request_kb;
	double reaccess;
	double memory_mb;
	double faults_per_ms;
	double initial_mb, written_mb;
	double requests; /* wall: number of disk requests; negative = cpu_ms * io_per_ms */
	uint32_t tasks;	 /* >= 1 */
	uint32_t hops;
};

/* Why: `left` is compared with `right` (left > right for every criterion but
 * where the criterion says otherwise); `holds` is the outcome. */
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
	RULES_C_ACCEPTS,  /* owner of k lets jobs in; left 1 or 0, right 1 (left >= right) */
	RULES_C_HAS_DISK, /* k has a disk; left MB/s > right 0 */
	RULES_C_MEM_FITS, /* L_MEM(k)+m  <=  n_MEM(k), MB (require_memory) */
	RULES_CRITERIA
};

const char *rules_criterion_name(enum rules_criterion c);   /* "io-discrepancy" */
const char *rules_criterion_source(enum rules_criterion c); /* "SLD criterion 1" */
/* "requests/ms"; the stage tests compare disk utilisations in wall rates. */
const char *rules_criterion_unit(enum rules_criterion c, enum rules_rates rates);
const char *rules_criterion_relation(enum rules_criterion c); /* ">", "<=" ... */
const char *rules_criterion_text(enum rules_criterion c);     /* one plain sentence for people */

struct rules_reason {
	enum rules_criterion criterion;
	uint32_t node; /* index in the view: the node the criterion judged */
	double left, right;
	bool holds;
};

struct rules_plan {
	uint32_t node;	  /* where the job (its first task) runs */
	uint32_t ntied;	  /* candidates the policy held equal to the chosen one, itself included */
	uint32_t tied[8]; /* the first of them */
	bool stayed;	  /* true: home */
	uint32_t nreasons;
	struct rules_reason reasons[RULES_REASONS_MAX];
	uint32_t candidates[RULES_EXAMINED_MAX]; /* acceptable nodes, best first; [0] is `node` */
	uint32_t ncandidates;
	/*
	 * Nodes refused, each under the criterion that ruled it out first.  Groups
	 * that one bound rules out together are counted without a look at each; nodes
	 * behind the last one examined are neither candidates nor refused.
	 */
	uint32_t refused[RULES_CRITERIA];
};

struct rules;
struct rules_view;

/* All of them: NULL (-ENOMEM) when memory is out, NULL (-EINVAL) on values out of range. */
struct rules *rules_new(enum rules_policy policy, const struct rules_params *params, uint64_t seed);
void rules_free(struct rules *r);

struct rules_view *rules_view_new(void);
void rules_view_free(struct rules_view *view);
/*
 * How later rules_view_set and rules_view_charge read requirements: with the
 * buffer's hit rate and page faults (computation, the default) or as disk
 * requests per wall-clock ms.  Give the view what its rules were given.
 */
void rules_view_rates(struct rules_view *view, enum rules_rates rates);
/* Adds node INDEX (0, 1, ... without gaps) or replaces it.  Copies all it needs. */
int rules_view_set(struct rules_view *view, uint32_t index, const struct rules_node *node);
/* Withdraws the newest node (index count-1). */
int rules_view_pop(struct rules_view *view);
uint32_t rules_view_count(const struct rules_view *view);
const char *rules_view_name(const struct rules_view *view, uint32_t index);
/*
 * Adds the request's requirements to node INDEX until the next rules_view_set
 * of it: what the home node does after a placement (MODEL 3.0).
 */
int rules_view_charge(struct rules_view *view, uint32_t index, const struct rules_request *request);

/*
 * Decides.  HOME is the view index of the node where the job arrived.  The
 * plan is the caller's.  0; -EINVAL (empty view, home out of range, request
 * with NaN, infinite or negative values); -ENOMEM.
 */
int rules_place(struct rules *r, const struct rules_view *view, uint32_t home,
		const struct rules_request *request, struct rules_plan *plan);

/* Formulas, for tests, reports and the simulator.  Source in each name's comment. */
double rules_hit_rate(double reaccess, double buffer_kb, double io_per_ms, double request_kb,
		      double cpu_ms, double node_kb_per_ms);			      /* (5.4) FC */
double rules_implicit(double faults_per_ms, double memory_load_mb, double memory_mb); /* (4.3) FC */
double rules_service_ms(double fixed_ms, double request_kb, double disk_mb_per_s);    /* 2.1 */
double rules_service_ms2(double fixed_ms, double request_kb, double sd_kb, double disk_mb_per_s);
/* One request's mean response at an M/G/1 disk, utilisation capped at rho_max. */
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
/* (5) COM: com_ms[j] summed over phases, node[j] of each process, 0 = master. */
double rules_com_load(const double *com_ms, const uint32_t *node, size_t processes, size_t j);

#endif
