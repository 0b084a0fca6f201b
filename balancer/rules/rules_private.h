/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the rules library share: the derived values of a node, the
 * search trees over them, and the state of one decision.
 */
#ifndef RULES_PRIVATE_H
#define RULES_PRIVATE_H

#include <iocom/rules.h>

#define RULES_REFERENCE_KB 256.0 /* request size where a node gives none (ACM Table V) */
#define RULES_PAGE_KB	   4.0	 /* a page fault reads one page */

/* --- one node, derived ---------------------------------------------------- */

struct rules_cell {
	/* load indices (MODEL 1) */
	double io, explicit_io, implicit_io; /* requests/ms */
	double memory, n_mem;		     /* MB */
	double cpu, com;
	double kb_per_ms;	/* sum of lambda d over the tasks: who shares the buffer */
	double cpu_ms, disk_ms; /* O-7: R_CPU and R_Disk over the tasks; only if timed */
	/* the machine */
	double buffer_kb, mips, cores, network; /* network 0: the parameter's */
	double fixed_ms, disk_mb_per_s, request_kb;
	double performance;	  /* D_i */
	double service, service2; /* E(s), E(s^2) of the disk's parameters */
	/* disk and CPU state */
	double arrivals, utilisation;
	double over; /* requests/ms charged beyond what keeps the disk busy always */
	double seen_service, seen_service2;
	double queue, io_tasks; /* without the candidate */
	/* a.vector (MODEL 4.4), where the node gave one */
	double zatti_idle, zatti_queue, zatti_blocks, zatti_free;
	int spent_cpu, spent_io; /* placements that took the bit since the last set (3.14) */
	bool has_zatti, measured;
	bool timed; /* cpu_ms and disk_ms are of all tasks, not of charged ones alone */
	bool accepts;
};

/* Fills CELL from NODE; -EINVAL on values out of range. */
int rules_cell_init(struct rules_cell *cell, const struct rules_node *node, enum rules_rates rates);
/* Adds the request's requirements, as rules_view_charge promises; the opposite. */
void rules_cell_charge(struct rules_cell *cell, const struct rules_request *request,
		       enum rules_rates rates);
void rules_cell_discharge(struct rules_cell *cell, const struct rules_request *request,
			  enum rules_rates rates);
int rules_request_check(const struct rules_request *request);
int rules_node_check(const struct rules_node *node);
/* The number of its disk requests, buffer hits and page faults apart. */
double rules_request_count(const struct rules_request *request, enum rules_rates rates);

/* What the request would add to the node: page(i,j) and IO(i,j) of MODEL 1. */
struct rules_added {
	double explicit_io, implicit_io;
};
struct rules_added rules_cell_added(const struct rules_cell *cell,
				    const struct rules_request *request, enum rules_rates rates);
double rules_cell_hit_rate(const struct rules_cell *cell, const struct rules_request *request);
double rules_cell_memory_ratio(const struct rules_cell *cell, double extra_mb);

/* --- exact sums -------------------------------------------------------------- */

/*
 * A sum without rounding: each term, at most 2^32, is put on a grid of 2^-64
 * first.  So it depends on its terms alone, in whatever order they came and went.
 */
struct rules_exact {
	uint64_t whole, part;
};

void rules_exact_add(struct rules_exact *sum, double term);
void rules_exact_subtract(struct rules_exact *sum, double term);
double rules_exact_value(const struct rules_exact *sum);

/* Over all nodes of a view. */
struct rules_totals {
	struct rules_exact io, memory, cpu, performance;
	uint32_t accepting, accepting_disks; /* nodes that let jobs in; those with a disk */
	uint32_t idle, idle_disks;	     /* of these, nodes where nothing runs */
};

void rules_totals_add(struct rules_totals *totals, const struct rules_cell *cell);
void rules_totals_subtract(struct rules_totals *totals, const struct rules_cell *cell);

/* --- indexes: search trees over the nodes -------------------------------------- */

enum rules_order {
	RULES_ORDER_IO,		  /* L_IO; among equals less memory, as in all but the last four */
	RULES_ORDER_MEM,	  /* L_MEM / n_MEM */
	RULES_ORDER_CPU,	  /* L_CPU */
	RULES_ORDER_CPU_WEIGHTED, /* L_CPU / (cores * speed) */
	RULES_ORDER_MEM_FREE,	  /* L_MEM - n_MEM: most free memory first */
	RULES_ORDER_IO_SHARE,	  /* L_IO / D */
	RULES_ORDER_TASKS,	  /* L_CPU; all equals alike (FC), as in the next */
	RULES_ORDER_EXPLICIT,	  /* explicit part of L_IO */
	RULES_ORDER_COM,	  /* L_COM; among equals fewer tasks */
	RULES_ORDER_COM_MEM,	  /* L_COM; among equals less memory */
	RULES_ORDERS,
	/* Not an order tree, but kept and dropped like one: */
	RULES_INDEX_BOUNDS = RULES_ORDERS,
	RULES_INDEX_CORNERS, /* for the weighted load, of any weights */
	RULES_INDEXES
};
#define RULES_KEEP(index) (1u << (index))

/* Least (key, tie) of a subtree and how many leaves have it; count 0: empty. */
struct rules_least {
	double key, tie;
	uint32_t count;
};

/*
 * What no node of a subtree can beat; used to rule out whole subtrees.  The fastest
 * processor and the fastest disk are seldom of one node: `mixed` knows it.
 */
#define RULES_MIX 0.02 /* KB on disk a (ms at 1 MIPS): some 20 KB a ms of computation */
struct rules_bound {
	double io_share;    /* least L_IO / D */
	double cpu_factor;  /* least E(L) / speed */
	double fixed_ms;    /* least fixed time of a disk request */
	double s_per_mb;    /* least transfer time of a disk, 0 where there is none */
	double mixed;	    /* least cpu_factor + RULES_MIX s_per_mb of one node */
	uint32_t disks;	    /* nodes that have one */
	uint32_t accepting; /* nodes whose owner lets jobs in */
};

/*
 * The loads of a subtree, each on its own; COUNT nodes have both least ones.  As
 * these are seldom of one node, also the sums cpu + io and cpu + 64 io of one.
 */
#define RULES_MIXES 2
static const double rules_mixes[RULES_MIXES] = {1, 64};

struct rules_corner {
	double least_cpu, least_io;
	double most_cpu, most_io;
	double least_mix[RULES_MIXES], most_mix[RULES_MIXES];
	uint32_t count;
};

/* What rollback puts back. */
enum rules_note_kind {
	RULES_NOTE_CHANGED,
	RULES_NOTE_ADDED,
	RULES_NOTE_POPPED,
};

struct rules_note {
	enum rules_note_kind kind;
	uint32_t index;
	bool renamed;
	struct rules_cell cell;
	char name[RULES_NAME_MAX];
};

struct rules_journal {
	struct rules_note *notes;
	size_t used, room;
	unsigned int depth; /* calls of the library that will undo */
	bool marked;	    /* the user's mark is set */
	bool open;	    /* either: changes are noted */
};

struct rules_zatti_index;

/*
 * Implicit binary trees of `capacity` leaves (a power of two): node 1 is the
 * root, node n has children 2n and 2n+1, leaf i is capacity + i.  An index that
 * is not kept is NULL.
 */
struct rules_view {
	enum rules_rates rates;
	uint32_t count, capacity;
	uint32_t kept; /* RULES_KEEP bits */
	bool deferred; /* the trees hold the leaves only, see rules_view_defer */
	char (*names)[RULES_NAME_MAX];
	struct rules_cell *cells;
	struct rules_least *least[RULES_ORDERS];
	struct rules_bound *bounds;
	struct rules_corner *corners;
	/* Binary, real (zatti.h).  Their cuts are parameters: rules_view_keep builds them. */
	struct rules_zatti_index *zatti[2];
	struct rules_totals totals;
	struct rules_journal journal;
};

/*
 * The kept indexes hold INDEX's cell (or nothing, when index >= count)
 * afterwards.  They must depend on the cells alone, not on their history.
 */
void rules_tree_update(struct rules_view *view, uint32_t index);
/* The same where FROM has the same cell: its leaves will do. */
void rules_tree_copy(struct rules_view *to, const struct rules_view *from, uint32_t index);
/* Joins all inner nodes again. */
void rules_tree_join_all(struct rules_view *view);
/* Node INDEX will change soon: with many nodes, waiting for memory is most of the work. */
void rules_tree_prefetch(const struct rules_view *view, uint32_t index);
/* (Re)allocates for CAPACITY leaves; the old content is kept.  0 or -ENOMEM. */
int rules_tree_grow(struct rules_view *view, uint32_t capacity);
/* Builds the indexes KEEP that are missing, drops the others.  0 or -ENOMEM. */
int rules_tree_keep(struct rules_view *view, uint32_t keep);
void rules_tree_free(struct rules_view *view);
/* Nodes below tree node AT. */
uint32_t rules_tree_population(const struct rules_view *view, uint32_t at);

/* The indexes that the policy's decisions ask (RULES_KEEP bits). */
uint32_t rules_policy_indexes(enum rules_policy policy, const struct rules_params *params);
static inline bool rules_view_has(const struct rules_view *view, uint32_t index)
{
	return view->kept >> index & 1;
}

/*
 * Undoing, inside one call of the library, also while the user's mark is set:
 * what was changed since _begin goes with _undo.  Ends with _undo, always.
 */
size_t rules_journal_begin(struct rules_view *view);
void rules_journal_undo(struct rules_view *view, size_t begin);
/* Notes that node INDEX is about to change, to be added or popped.  0 or -ENOMEM. */
int rules_journal_note(struct rules_view *view, enum rules_note_kind kind, uint32_t index,
		       const char *new_name);
void rules_journal_free(struct rules_view *view);

/* Puts CELL in the place of node INDEX's, noted and indexed.  0, -EINVAL, -ENOMEM. */
int rules_view_replace(struct rules_view *view, uint32_t index, const struct rules_cell *cell);
/* Without a note: puts CELL at INDEX (count: a new node); takes the newest node away. */
void rules_view_store(struct rules_view *view, uint32_t index, const struct rules_cell *cell);
void rules_view_remove_newest(struct rules_view *view);

/* --- searches ------------------------------------------------------------------ */

/* A subtree that waits its turn in a search. */
struct rules_waiting {
	double key;
	double tag;	       /* when it is due among equals; negative: drawn at need */
	uint32_t at, drawn_at; /* drawn for the subtree that it was first met as */
};

struct rules_heap {
	struct rules_waiting *items;
	size_t used, room;
};

/*
 * Walks the leaves of one tree in ascending (key, tie); equal ones in an order
 * drawn from SALT, each permutation alike probable.  By weighted load, where
 * KEY = w_cpu L_CPU + w_io L_IO, the key of a subtree is only a bound.
 */
struct rules_search {
	const struct rules_view *view;
	const struct rules_least *least; /* NULL: by weighted load */
	double w_cpu, w_io;
	struct rules_heap *heap; /* scratch, lent by struct rules */
	uint64_t salt;
	bool begun, hole;
};

/* 0, -ENOMEM or -EINVAL (the index is not kept). */
int rules_search_init(struct rules_search *s, const struct rules_view *view, enum rules_order order,
		      uint64_t salt, struct rules_heap *heap);
/* The same by weighted load. */
int rules_search_init_weighted(struct rules_search *s, const struct rules_view *view, double w_cpu,
			       double w_io, uint64_t salt, struct rules_heap *heap);
#define RULES_SEARCH_END     0 /* no leaf is left */
#define RULES_SEARCH_LEAF    1 /* the next leaf is in *INDEX */
#define RULES_SEARCH_DROPPED 2 /* PRUNE dropped a subtree: call again, or stop */
/* Asked about a subtree, KEY being its least (or a bound of it): true drops it. */
typedef bool rules_prune_fn(void *arg, uint32_t at, double key);
/* One of these or -ENOMEM.  PRUNE, if any, is asked once about every subtree met. */
int rules_search_next(struct rules_search *s, rules_prune_fn *prune, void *arg, uint32_t *index);
/* Asks about all that wait: where PRUNE was not asked before, or answers otherwise now. */
void rules_search_drop(struct rules_search *s, rules_prune_fn *prune, void *arg);
/* Key and tie of one node. */
struct rules_least rules_search_leaf(const struct rules_search *s, uint32_t index);
/*
 * The highest weighted load of all nodes but SKIP, or any that is above ENOUGH;
 * -INFINITY where there is no other node.
 */
double rules_search_highest(const struct rules_view *view, double w_cpu, double w_io, uint32_t skip,
			    double enough);

/* --- a decision -------------------------------------------------------------- */

/* How many tasks of the job each of its nodes has: open addressing, node + 1 or 0. */
struct rules_holders {
	uint32_t *nodes, *tasks;
	uint32_t room; /* a power of two, or 0 */
};

/* The feedback controller (feedback.c). */
#define RULES_FORECAST_POINTS 64
struct rules_feedback {
	bool active;
	double w_io;
	double ram_mb, buffer_mb; /* ram 0: not known yet, the buffer stays as it is */
	double sign_w, sign_b;	  /* last direction moved in, 1 or -1 */
	double *history;	  /* ring of fb_history slowdowns */
	uint32_t room, used, next;
	struct rules_exact sum; /* of the history */
	double reference;	/* the slowdown that the next is compared with */
	bool has_reference;
	struct rules_outcome smooth; /* signals smoothed by fb_filter */
	uint64_t outcomes, saturated;
	/* predictive: sums of W_j / t_j with each of so many buffers, and of 1 / t_j */
	double curve[RULES_FORECAST_POINTS], curve_weight;
	struct rules_control told; /* `why` and what belongs to it */
};

struct rules {
	enum rules_policy policy;
	struct rules_params params;
	uint64_t seed;
	bool brief;
	struct rules_heap heap;
	struct rules_holders holders;
	struct rules_feedback feedback;
	struct rules_migrant *migrants; /* scratch of migrate.c */
	size_t migrants_room;
};

/* W_IO of the weighted load: the controller's, or the parameter. */
double rules_weight_io(const struct rules *r);
int rules_feedback_init(struct rules *r);
/* The predictive controller's step of the buffer (feedback_predict.c). */
double rules_predicted_step(struct rules *r);

/*
 * What rules_place_job tells a policy about the job whose tasks it places one by
 * one; a decision about a single task has none.  The view is charged with the
 * tasks before, and their traffic is added to `com` of their nodes and of the
 * master's by (5).  The decision's request is that of one task: tasks 1, com_ms
 * the one value of this task.
 */
struct rules_job {
	const struct rules_request *whole; /* all tasks, com_ms of each or NULL */
	uint32_t home;			   /* of the job: where the tasks start may be another */
	uint32_t task;			   /* the one to place; 0: the master */
	const uint32_t *nodes;		   /* where tasks 0 to task - 1 went */
	/* Kept by COM from the first task to the last. */
	unsigned int com_stage; /* 0: not chosen */
	double com_home;	/* L_COM(home) without the job */
	struct rules_reason com_tests[4];
	uint32_t com_ntests; /* how the stage was chosen */
};

/* A floor of the response time elsewhere: a node adds its share of each. */
struct rules_floor {
	double fixed_ms;
	double cpu;	 /* times E(L) / speed */
	double requests; /* times the disk's fixed time */
	double mb;	 /* KB of requests and 1000 MB of data, times the disk's s/MB */
	double mixed;	 /* what of cpu and mb goes together, taken from both */
};

struct rules_decision {
	struct rules *rules;
	const struct rules_params *params;
	const struct rules_view *view;
	const struct rules_request *request;
	struct rules_plan *plan;
	uint32_t home;
	const struct rules_cell *at_home;
	struct rules_added added_home; /* what the job adds at home */
	double reference_mips;
	double requests; /* without buffer hits and page faults */
	double response_home;
	bool has_response_home;
	struct rules_floor floor;
	bool has_floor;
	bool does_io;
	uint64_t salt;
	uint32_t examined;     /* over all stages: reasons are given for the first ones */
	struct rules_job *job; /* NULL: a single task */
	bool brief;	       /* the node only: no reasons, no further candidates */
	uint32_t *batch;       /* BS: receives a node for each of the request's tasks; or NULL */
};

/* One decision: JOB may be NULL.  Arguments are checked.  0, -ENOMEM, -EINVAL. */
int rules_decide(struct rules *r, const struct rules_view *view, uint32_t home,
		 const struct rules_request *request, struct rules_job *job, bool brief,
		 struct rules_plan *plan);
/* BS for all tasks of the request at once, into NODES. */
int rules_decide_batch(struct rules *r, const struct rules_view *view, uint32_t home,
		       const struct rules_request *request, struct rules_plan *plan,
		       uint32_t *nodes);
void rules_plan_init(struct rules_plan *plan, uint32_t home);

/* How many of the job's tasks before this one went to NODE. */
uint32_t rules_job_tasks_at(const struct rules_decision *d, uint32_t node);

typedef int rules_policy_fn(struct rules_decision *d);
rules_policy_fn rules_policy_nlb, rules_policy_cpu_re, rules_policy_mem_re, rules_policy_cm,
	rules_policy_io, rules_policy_io_re, rules_policy_iocm_re, rules_policy_iocm_re_hom,
	rules_policy_wal, rules_policy_com, rules_policy_bs, rules_policy_zatti_binary,
	rules_policy_zatti_real, rules_policy_random, rules_policy_threshold, rules_policy_shortest;

/* Whether "left RELATION right" holds, with the relation the criterion has. */
bool rules_criterion_holds(enum rules_criterion c, double left, double right);

rules_policy_fn *rules_policy_function(enum rules_policy policy);
int rules_params_check(const struct rules_params *params);

/* r(i,j) and c_j(home,k) of MODEL 2.1 and 2.3. */
double rules_response_at(const struct rules_decision *d, const struct rules_cell *cell);
static inline double rules_response_home(struct rules_decision *d)
{
	if (!d->has_response_home) {
		d->response_home = rules_response_at(d, d->at_home);
		d->has_response_home = true;
	}
	return d->response_home;
}
double rules_cost_to(const struct rules_decision *d, const struct rules_cell *cell);
/* Not above r(k,j) + c_j(home,k) for any node k below the bound. */
void rules_floor_init(struct rules_decision *d);
static inline double rules_response_floor(struct rules_decision *d, const struct rules_bound *b)
{
	const struct rules_floor *f = &d->floor;

	if (!d->has_floor)
		rules_floor_init(d);
	/* Summed in another order than the true values: leave room for rounding. */
	return (f->fixed_ms + f->mixed * b->mixed + f->cpu * b->cpu_factor +
		f->requests * b->fixed_ms + f->mb * b->s_per_mb) *
	       (1 - 1e-9);
}

/* The tests of one candidate, in the order made; the last may have failed. */
#define RULES_TESTS_MAX 8
struct rules_tests {
	struct rules_reason list[RULES_TESTS_MAX];
	uint32_t n;
};

/*
 * Adds "left REL right" (REL as the criterion has it) to the tests; returns
 * whether it holds.
 */
bool rules_test(struct rules_tests *t, enum rules_criterion c, uint32_t node, double left,
		double right);
/* ACCEPTS, HAS_DISK, MEM_FITS: may K be a target at all? */
bool rules_test_eligible(const struct rules_decision *d, struct rules_tests *t, uint32_t k);
bool rules_test_response(struct rules_decision *d, struct rules_tests *t, uint32_t k);
/* A test of the home node: straight into the plan's reasons. */
bool rules_test_home(struct rules_decision *d, enum rules_criterion c, double left, double right);

/*
 * The left side of a discrepancy test, HOME and K being loads without the job
 * (O-12), and the load of k from which on the test is known to fail.
 */
double rules_discrepancy(const struct rules_decision *d, double home, double k, double added);
double rules_discrepancy_limit(const struct rules_decision *d, double home, double added);
/*
 * A share of home's I/O load in the unit of io_significance: the load itself, or
 * live the part of the disk's time that it takes.
 */
double rules_significance(const struct rules_decision *d, double part);
bool rules_test_cpu_overloaded(struct rules_decision *d);
/* The targets of MEM-RE and CPU-RE, home being overloaded. */
int rules_balance_memory(struct rules_decision *d);
int rules_balance_tasks(struct rules_decision *d, enum rules_order order);

/* How a policy picks its target. */
struct rules_contest {
	enum rules_order order;
	bool weighted; /* by w_cpu L_CPU + w_io L_IO in place of the order */
	double w_cpu, w_io;
	/* Makes the tests of K until one fails; true: K is acceptable. */
	bool (*judge)(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t);
	void *arg;
	/* Nodes with a key of LIMIT or more are known to fail this criterion. */
	enum rules_criterion limited_by;
	double limit;
	/* False: the lightest eligible node is tried, no other. */
	bool try_next;
	/* The response test is made: subtrees whose floor is not below home's go. */
	bool response;
	/* Nodes with more I/O load for their disk than this fail IO_UNDERLOADED; 0: not asked. */
	double share_limit;
	/* More of that kind: what no node below the bound meets, or RULES_CRITERIA; may be NULL. */
	enum rules_criterion (*hopeless)(struct rules_decision *d, void *arg,
					 const struct rules_bound *bound);
};

/*
 * Fills candidates, the choice and the ties of the plan.  1 chosen, 0 none,
 * -ENOMEM, -EINVAL (the view does not keep the index).
 */
int rules_contest_run(struct rules_decision *d, const struct rules_contest *c);

#endif
