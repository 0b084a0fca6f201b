/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the rules library share: a node's derived values, the search trees over
 * them, and the state of one decision.
 */
#ifndef RULES_PRIVATE_H
#define RULES_PRIVATE_H

#include <iocom/rules.h>

#define RULES_REFERENCE_KB 256.0 /* request size where a node gives none (ACM Table V) */
#define RULES_PAGE_KB	   4.0	 /* a page fault reads one page */

/* --- the derived values of one node -------------------------------------------- */

struct rules_cell {
	/* load indices (MODEL 1) */
	double io, explicit_io, implicit_io; /* requests/ms */
	double memory, n_mem;		     /* MB */
	double cpu, com;
	double kb_per_ms;	/* sum of lambda d over the tasks that share the buffer */
	double cpu_ms, disk_ms; /* O-7: R_CPU and R_Disk over the tasks; only if timed */
	/* the machine */
	double buffer_kb, mips, cores, network; /* network 0: use the parameter */
	double burst;				/* mips until a cap is used up; >= mips */
	double fixed_ms, disk_mb_per_s, request_kb;
	double disk_parallel;	  /* >= 1 */
	double performance;	  /* D_i */
	double service, service2; /* E(s), E(s^2) of the disk's parameters */
	/* disk and CPU state */
	double arrivals, utilisation;
	double over; /* requests/ms charged beyond a fully busy disk */
	double seen_service, seen_service2;
	double queue, io_tasks; /* without the candidate */
	struct rules_sharers sharers;
	/* a.vector (MODEL 4.4), where the node gave one */
	double zatti_idle, zatti_queue, zatti_blocks, zatti_free;
	int spent_cpu, spent_io; /* placements that took the bit since it was last set (3.14) */
	bool has_zatti, measured;
	bool timed; /* cpu_ms and disk_ms cover all tasks, not only charged ones */
	bool accepts;
};

/* How requirements are read: rules_view_rates and rules_view_reference. */
struct rules_reading {
	enum rules_rates rates;
	double reference_mips; /* 0: the node's own */
};

/* Fills CELL from NODE.  Returns -EINVAL for values out of range. */
int rules_cell_init(struct rules_cell *cell, const struct rules_node *node,
		    const struct rules_reading *reading);
/* Adds the request's requirements, as rules_view_charge promises; discharge removes them. */
void rules_cell_charge(struct rules_cell *cell, const struct rules_request *request,
		       const struct rules_reading *reading);
void rules_cell_discharge(struct rules_cell *cell, const struct rules_request *request,
			  const struct rules_reading *reading);
int rules_request_check(const struct rules_request *request);
int rules_node_check(const struct rules_node *node);
/* The number of its disk requests, without buffer hits and page faults. */
double rules_request_count(const struct rules_request *request, enum rules_rates rates);

/* What the request would add to the node: page(i,j) and IO(i,j) of MODEL 1. */
struct rules_added {
	double explicit_io, implicit_io;
};
struct rules_added rules_cell_added(const struct rules_cell *cell,
				    const struct rules_request *request, enum rules_rates rates);
double rules_cell_hit_rate(const struct rules_cell *cell, const struct rules_request *request);
double rules_cell_memory_ratio(const struct rules_cell *cell, double extra_mb);

/* A hash of all bits: what random choices are drawn with. */
static inline uint64_t rules_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Takes PART out of *SUM; a tiny rest is rounding, not load. */
static inline void rules_subtract(double *sum, double part)
{
	double rest = *sum - part;

	*sum = rest > 1e-9 * part ? rest : 0;
}

/* --- exact sums -------------------------------------------------------------- */

/*
 * A sum without rounding: each term, at most 2^32, is first put on a grid of 2^-64.  So the sum
 * depends on its terms alone, not on the order in which they came and went.
 */
struct rules_exact {
	uint64_t whole, part;
};

void rules_exact_add(struct rules_exact *sum, double term);
void rules_exact_subtract(struct rules_exact *sum, double term);
double rules_exact_value(const struct rules_exact *sum);

/* A live node with no more tasks than this runs nothing: its run queue is a mean over time. */
#define RULES_IDLE_TASKS 0.05

/* Over all nodes of a view. */
struct rules_totals {
	struct rules_exact io, memory, cpu, performance;
	uint32_t accepting, accepting_disks; /* nodes that let jobs in; those with a disk */
	uint32_t idle, idle_disks;	     /* of these, at most RULES_IDLE_TASKS run on so many */
};

void rules_totals_add(struct rules_totals *totals, const struct rules_cell *cell);
void rules_totals_subtract(struct rules_totals *totals, const struct rules_cell *cell);

/* --- indexes: search trees over the nodes -------------------------------------- */

enum rules_order {
	RULES_ORDER_IO,		  /* L_IO; ties by less memory, as in all but the last four */
	RULES_ORDER_MEM,	  /* L_MEM / n_MEM */
	RULES_ORDER_CPU,	  /* L_CPU */
	RULES_ORDER_CPU_WEIGHTED, /* L_CPU / (cores * speed) */
	RULES_ORDER_MEM_FREE,	  /* L_MEM - n_MEM: most free memory first */
	RULES_ORDER_IO_SHARE,	  /* L_IO / D */
	RULES_ORDER_TASKS,	  /* L_CPU; ties are all equal (FC), as in the next */
	RULES_ORDER_EXPLICIT,	  /* explicit part of L_IO */
	RULES_ORDER_COM,	  /* L_COM; ties by fewer tasks */
	RULES_ORDER_COM_MEM,	  /* L_COM; ties by less memory */
	RULES_ORDERS,
	/* These are no order trees, but kept and dropped like them. */
	RULES_INDEX_BOUNDS = RULES_ORDERS,
	RULES_INDEX_CORNERS, /* for the weighted load with any weights */
	RULES_INDEXES
};
#define RULES_KEEP(index) (1u << (index))

/* The least (key, tie) of a subtree and how many leaves have it; count 0: it is empty. */
struct rules_least {
	double key, tie;
	uint32_t count;
};

/*
 * Values that no node of a subtree can beat, to rule out whole subtrees.  The fastest processor
 * and the fastest disk seldom belong to one node: `mixed` accounts for that.
 */
#define RULES_MIX 0.02 /* KB on disk a (ms at 1 MIPS): some 20 KB a ms of computation */
struct rules_bound {
	double io_share;    /* least L_IO / D */
	double cpu_factor;  /* least E(L) / speed */
	double fixed_ms;    /* least fixed time of a disk request */
	double s_per_mb;    /* least transfer time of a disk, 0 if a node has no disk */
	double mixed;	    /* least cpu_factor + RULES_MIX s_per_mb of one node */
	uint32_t disks;	    /* nodes that have a disk */
	uint32_t accepting; /* nodes whose owner lets jobs in */
};

/*
 * The extremes of each load in a subtree; COUNT nodes have both least loads.  As one node
 * seldom has both, there are also the extremes of the sums cpu + io and cpu + 64 io.
 */
#define RULES_MIXES 2
static const double rules_mixes[RULES_MIXES] = {1, 64};

struct rules_corner {
	double least_cpu, least_io;
	double most_cpu, most_io;
	double least_mix[RULES_MIXES], most_mix[RULES_MIXES];
	uint32_t count;
};

/* What a rollback restores. */
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
	unsigned int depth; /* calls of the library that will undo their changes */
	bool marked;	    /* the user has set a mark */
	bool open;	    /* one of these: changes are noted */
};

struct rules_zatti_index;

/*
 * Implicit binary trees of `capacity` leaves (a power of two): node 1 is the root, node n has
 * children 2n and 2n+1, leaf i is capacity + i.  An index that is not kept is NULL.
 */
struct rules_view {
	struct rules_reading reading;
	uint32_t count, capacity;
	uint32_t kept; /* RULES_KEEP bits */
	bool deferred; /* only the trees' leaves are valid; see rules_view_defer */
	char (*names)[RULES_NAME_MAX];
	struct rules_cell *cells;
	struct rules_least *least[RULES_ORDERS];
	struct rules_bound *bounds;
	struct rules_corner *corners;
	/* Binary, real (zatti.h).  Their cuts are parameters, so rules_view_keep builds them. */
	struct rules_zatti_index *zatti[2];
	struct rules_totals totals;
	struct rules_journal journal;
};

/*
 * Updates the kept indexes for INDEX's cell (none if index >= count).  The result must depend
 * on the cells alone, not on their history.
 */
void rules_tree_update(struct rules_view *view, uint32_t index);
/* Does the same by copying leaves if FROM has the same cell. */
void rules_tree_copy(struct rules_view *to, const struct rules_view *from, uint32_t index);
/* Computes all inner nodes again. */
void rules_tree_join_all(struct rules_view *view);
/*
 * Fetches what a change of node INDEX will touch into the cache: with many nodes, most of the time
 * goes into waiting for memory.
 */
void rules_tree_prefetch(const struct rules_view *view, uint32_t index);
/* (Re)allocates for CAPACITY leaves and keeps the content.  Returns 0 or -ENOMEM. */
int rules_tree_grow(struct rules_view *view, uint32_t capacity);
/* Builds missing indexes of KEEP and drops the others.  Returns 0 or -ENOMEM. */
int rules_tree_keep(struct rules_view *view, uint32_t keep);
void rules_tree_free(struct rules_view *view);
/* The number of nodes below tree node AT. */
uint32_t rules_tree_population(const struct rules_view *view, uint32_t at);

/* The indexes that the policy's decisions use (RULES_KEEP bits). */
uint32_t rules_policy_indexes(enum rules_policy policy, const struct rules_params *params);
static inline bool rules_view_has(const struct rules_view *view, uint32_t index)
{
	return view->kept >> index & 1;
}

/*
 * Undoing within one call of the library, also while the user's mark is set: _undo reverts all
 * changes since _begin.  Each _begin needs its _undo.
 */
size_t rules_journal_begin(struct rules_view *view);
void rules_journal_undo(struct rules_view *view, size_t begin);
/* Notes that node INDEX is about to be changed, added or popped.  Returns 0 or -ENOMEM. */
int rules_journal_note(struct rules_view *view, enum rules_note_kind kind, uint32_t index,
		       const char *new_name);
void rules_journal_free(struct rules_view *view);

/*
 * Replaces node INDEX's cell by CELL, with a note, and updates the indexes.  Returns 0, -EINVAL
 * or -ENOMEM.
 */
int rules_view_replace(struct rules_view *view, uint32_t index, const struct rules_cell *cell);
/*
 * These take no note: store puts CELL at INDEX (count: a new node); remove takes the newest
 * node away.
 */
void rules_view_store(struct rules_view *view, uint32_t index, const struct rules_cell *cell);
void rules_view_remove_newest(struct rules_view *view);

/* --- searches ------------------------------------------------------------------ */

/* A subtree that waits for its turn in a search. */
struct rules_waiting {
	double key;
	double tag;	       /* when it is due among equals; negative: not drawn yet */
	uint32_t at, drawn_at; /* drawn_at: the subtree for which it is drawn */
};

struct rules_heap {
	struct rules_waiting *items;
	size_t used, room;
};

/*
 * Walks the leaves of one tree in ascending (key, tie).  SALT determines the order of equal
 * leaves; each permutation is equally likely.  By weighted load, KEY = w_cpu L_CPU + w_io L_IO,
 * and a subtree's key is only a bound.
 */
struct rules_search {
	const struct rules_view *view;
	const struct rules_least *least; /* NULL: by weighted load */
	double w_cpu, w_io;
	struct rules_heap *heap; /* scratch memory, lent by struct rules */
	uint64_t salt;
	bool begun, hole;
};

/* Returns 0, -ENOMEM or -EINVAL (the index is not kept). */
int rules_search_init(struct rules_search *s, const struct rules_view *view, enum rules_order order,
		      uint64_t salt, struct rules_heap *heap);
/* Starts a search by weighted load. */
int rules_search_init_weighted(struct rules_search *s, const struct rules_view *view, double w_cpu,
			       double w_io, uint64_t salt, struct rules_heap *heap);
#define RULES_SEARCH_END     0 /* no leaf is left */
#define RULES_SEARCH_LEAF    1 /* the next leaf is in *INDEX */
#define RULES_SEARCH_DROPPED 2 /* PRUNE dropped a subtree: call again or stop */
/* Called for a subtree with KEY, its least key or a bound of it; returns true to drop it. */
typedef bool rules_prune_fn(void *arg, uint32_t at, double key);
/* Returns one of these or -ENOMEM.  PRUNE, if any, is called once for each subtree visited. */
int rules_search_next(struct rules_search *s, rules_prune_fn *prune, void *arg, uint32_t *index);
/* Calls PRUNE for all waiting subtrees, after its answers may have changed. */
void rules_search_drop(struct rules_search *s, rules_prune_fn *prune, void *arg);
/* The key and tie of one node. */
struct rules_least rules_search_leaf(const struct rules_search *s, uint32_t index);
/*
 * The highest weighted load of all nodes but SKIP, or any value above ENOUGH; -INFINITY if
 * there is no other node.
 */
double rules_search_highest(const struct rules_view *view, double w_cpu, double w_io, uint32_t skip,
			    double enough);

/* --- a decision -------------------------------------------------------------- */

/*
 * How many tasks of the job each node has: a hash table with open addressing; an entry is node
 * + 1, or 0.
 */
struct rules_holders {
	uint32_t *nodes, *tasks;
	uint32_t room; /* a power of two, or 0 */
};

/*
 * The least (key, tie) by ORDER of the nodes below that have no task of the job (unheld.c), as
 * a tree like those of the view.
 */
struct rules_first {
	double key, tie;
};

struct rules_unheld {
	struct rules_first *first; /* NULL: not built */
	enum rules_order order;
	uint32_t capacity;
	uint32_t looks; /* nodes that contests looked at for want of the tree */
};

/* The feedback controller (feedback.c). */
#define RULES_FORECAST_POINTS 64
struct rules_feedback {
	bool active;
	double w_io;
	double ram_mb, buffer_mb; /* ram 0: not known yet, so the buffer stays as it is */
	double sign_w, sign_b;	  /* last direction of moves, 1 or -1 */
	double *history;	  /* ring of fb_history slowdowns */
	uint32_t room, used, next;
	struct rules_exact sum; /* sum of the history */
	double reference;	/* the slowdown to compare the next one with */
	bool has_reference;
	struct rules_outcome smooth; /* signals smoothed by fb_filter */
	uint64_t outcomes, saturated;
	/* predictive: the sum of W_j / t_j with each buffer of the forecast, and of 1 / t_j */
	double curve[RULES_FORECAST_POINTS], curve_weight;
	struct rules_control told; /* `why` and its details */
};

struct rules {
	enum rules_policy policy;
	struct rules_params params;
	uint64_t seed;
	bool brief;
	struct rules_heap heap;
	struct rules_holders holders;
	struct rules_unheld unheld;
	struct rules_feedback feedback;
	struct rules_migrant *migrants; /* scratch of migrate.c */
	size_t migrants_room;
	const struct rules_path *paths; /* what moves cost, by node */
	size_t npaths;
};

/* W_IO of the weighted load: from the controller or the parameter. */
double rules_weight_io(const struct rules *r);
int rules_feedback_init(struct rules *r);
/* The predictive controller's step of the buffer (feedback_predict.c). */
double rules_predicted_step(struct rules *r);

/*
 * What rules_place_job tells a policy about the job whose tasks it places one by one; decisions
 * about a single task have none.  The view is charged with the earlier tasks, and their traffic
 * is added to `com` of their nodes and of the master's node by (5).  The decision's request
 * describes one task: tasks is 1, com_ms is this task's value.
 */
struct rules_job {
	const struct rules_request *whole; /* all tasks; com_ms of each, or NULL */
	uint32_t home;			   /* home of the job; its tasks may start elsewhere */
	uint32_t task;			   /* the task to place; 0: the master */
	const uint32_t *nodes;		   /* nodes of tasks 0 to task - 1 */
	/* COM keeps these from the first task to the last. */
	unsigned int com_stage; /* 0: not chosen yet */
	double com_home;	/* L_COM(home) without the job */
	struct rules_reason com_tests[4];
	uint32_t com_ntests; /* the tests that chose the stage */
};

/* A lower bound of the response time elsewhere; each field is multiplied by a node's value. */
struct rules_floor {
	double fixed_ms;
	double cpu;	 /* is multiplied by E(L) / speed */
	double requests; /* is multiplied by the disk's fixed time */
	double mb;	 /* KB of requests and 1000 MB of data, times the disk's s/MB */
	double mixed;	 /* the part of cpu and mb that belongs together and is not counted there */
};

struct rules_decision {
	struct rules *rules;
	const struct rules_params *params;
	const struct rules_view *view;
	const struct rules_request *request;
	struct rules_plan *plan;
	uint32_t home;
	const struct rules_cell *at_home;
	struct rules_added added_home; /* the job's addition to home */
	double reference_mips;
	double requests; /* without buffer hits and page faults */
	double response_home;
	bool has_response_home;
	struct rules_floor floor;
	bool has_floor;
	bool does_io;
	uint64_t salt;
	uint32_t examined;     /* over all stages: the first ones get reasons */
	struct rules_job *job; /* NULL: a single task */
	bool brief;	       /* find the node only: no reasons, no further candidates */
	uint32_t *batch;       /* BS: gets a node for each task of the request; or NULL */
};

/* Prepares a decision about request J, which arrived at HOME; JOB may be NULL.  Checks nothing. */
void rules_decision_init(struct rules_decision *d, struct rules *r, const struct rules_view *view,
			 uint32_t home, const struct rules_request *j, struct rules_job *job);
/* Makes one decision; JOB may be NULL.  Checks the arguments.  Returns 0, -ENOMEM or -EINVAL. */
int rules_decide(struct rules *r, const struct rules_view *view, uint32_t home,
		 const struct rules_request *request, struct rules_job *job, bool brief,
		 struct rules_plan *plan);
/* BS for all tasks of the request at once; NODES gets their nodes. */
int rules_decide_batch(struct rules *r, const struct rules_view *view, uint32_t home,
		       const struct rules_request *request, struct rules_plan *plan,
		       uint32_t *nodes);
void rules_plan_init(struct rules_plan *plan, uint32_t home);

/* Returns how many earlier tasks of the job went to NODE. */
uint32_t rules_job_tasks_at(const struct rules_decision *d, uint32_t node);

/*
 * Called for each equal node that a contest of a job's task has judged.  Returns true if there is
 * a tree for ORDER, which the call may have built.
 */
bool rules_unheld_look(struct rules_unheld *u, const struct rules_decision *d,
		       enum rules_order order);
/* Returns true if all nodes below AT that have no task of the job come after CHOICE. */
bool rules_unheld_after(const struct rules_unheld *u, uint32_t at,
			const struct rules_least *choice);
/* NODE has a task of the job now. */
void rules_unheld_remove(struct rules_unheld *u, uint32_t node);
/* Ends with the job: the nodes without a task are other ones for the next. */
void rules_unheld_free(struct rules_unheld *u);

typedef int rules_policy_fn(struct rules_decision *d);
rules_policy_fn rules_policy_nlb, rules_policy_cpu_re, rules_policy_mem_re, rules_policy_cm,
	rules_policy_io, rules_policy_io_re, rules_policy_iocm_re, rules_policy_iocm_re_hom,
	rules_policy_wal, rules_policy_com, rules_policy_bs, rules_policy_zatti_binary,
	rules_policy_zatti_real, rules_policy_random, rules_policy_threshold, rules_policy_shortest,
	rules_policy_least_delay;

/* Returns true if "left RELATION right" holds with the criterion's relation. */
bool rules_criterion_holds(enum rules_criterion c, double left, double right);

rules_policy_fn *rules_policy_function(enum rules_policy policy);
int rules_params_check(const struct rules_params *params);

/*
 * r(i,j) and c_j(home,k) of MODEL 2.1 and 2.3.  CELL describes NODE as the decision sees it; NODE
 * gives the factor that corrects r.
 */
double rules_response_at(const struct rules_decision *d, const struct rules_cell *cell,
			 uint32_t node);
double rules_factor_at(const struct rules_decision *d, uint32_t node);
static inline double rules_response_home(struct rules_decision *d)
{
	if (!d->has_response_home) {
		d->response_home = rules_response_at(d, d->at_home, d->home);
		d->has_response_home = true;
	}
	return d->response_home;
}
double rules_cost_to(const struct rules_decision *d, const struct rules_cell *cell, uint32_t node);
/* The mean response time of one request of the job at a node's disk, REQUEST_KB long. */
double rules_disk_response(const struct rules_decision *d, const struct rules_cell *cell,
			   double request_kb);
/* The bandwidth of a node's link. */
double rules_network(const struct rules_decision *d, const struct rules_cell *cell);
/* What a job at a node does on a shared file system, and how long that takes without any wait. */
struct rules_shared_way {
	double mb, requests; /* moved; the requests of that at the server's disk */
	double disk_ms, network_ms;
};
bool rules_is_shared(const struct rules_request *request);
/* Fills OUT for NODE, whose cell is CELL.  Returns the server's; NULL: it is not known. */
const struct rules_cell *rules_shared_way(const struct rules_decision *d,
					  const struct rules_cell *cell, uint32_t node,
					  struct rules_shared_way *out);
/* The part of r(i,j) that this is. */
double rules_shared_response(const struct rules_decision *d, const struct rules_cell *cell,
			     uint32_t node);
/* What of `shared.read_mb` NODE's page cache has; NULL: nothing. */
const struct rules_held *rules_cached_at(const struct rules_request *request, uint32_t node);
/* What NODE has of the request's initial data; NULL: nothing. */
const struct rules_held *rules_held_at(const struct rules_request *request, uint32_t node);
/* What must be moved for a job at NODE: what it lacks of the initial data, and the output. */
double rules_moved_mb(const struct rules_request *request, uint32_t node);
/* What the job would need alone at a node (MODEL 2.10), in ms there. */
struct rules_alone {
	double cpu, burst, disk;
};

/* Adds a task with this left to C's sharers; subtract takes it out again. */
void rules_cell_share(struct rules_cell *c, const struct rules_alone *left);
void rules_cell_unshare(struct rules_cell *c, const struct rules_alone *left);
/*
 * Adds what a running task has left: it consumed age_ms of its computation, and so much of its
 * requests, of which the part MISSES reaches the disk.
 */
void rules_cell_share_task(struct rules_cell *c, const struct rules_task *task, double misses,
			   double reference_mips);
/* Sets the sharers of a node that tells neither them nor tasks, from what was measured. */
void rules_cell_share_measured(struct rules_cell *c);
/* The whole work of a request there, all of its requests at the disk. */
void rules_cell_alone(const struct rules_cell *c, const struct rules_request *request,
		      double requests, double reference_mips, struct rules_alone *out);

/* What a decision expects by 2.10. */
struct rules_delay {
	double response; /* ms at the node, delayed by those there, corrected */
	double harm;	 /* ms by which the job delays them, all together */
};
void rules_delay_at(const struct rules_decision *d, const struct rules_cell *cell, uint32_t node,
		    struct rules_delay *out);
/* Computes the lower bound of r(k,j) + c_j(home,k) for all nodes k below a bound. */
void rules_floor_init(struct rules_decision *d);
static inline double rules_response_floor(struct rules_decision *d, const struct rules_bound *b)
{
	const struct rules_floor *f = &d->floor;

	if (!d->has_floor)
		rules_floor_init(d);
	/* The true values are summed in another order: leave room for rounding. */
	return (f->fixed_ms + f->mixed * b->mixed + f->cpu * b->cpu_factor +
		f->requests * b->fixed_ms + f->mb * b->s_per_mb) *
	       (1 - 1e-9);
}

/* The tests of one candidate, in order; the last one may have failed. */
#define RULES_TESTS_MAX 8
struct rules_tests {
	struct rules_reason list[RULES_TESTS_MAX];
	uint32_t n;
};

/* Adds "left REL right", with the criterion's relation, to the tests.  Returns whether it holds. */
bool rules_test(struct rules_tests *t, enum rules_criterion c, uint32_t node, double left,
		double right);
/* Tests ACCEPTS, HAS_DISK and MEM_FITS: whether K may be a target at all. */
bool rules_test_eligible(const struct rules_decision *d, struct rules_tests *t, uint32_t k);
bool rules_test_response(struct rules_decision *d, struct rules_tests *t, uint32_t k);
/* Tests the home node and adds the test to the plan's reasons. */
bool rules_test_home(struct rules_decision *d, enum rules_criterion c, double left, double right);

/*
 * The left side of a discrepancy test, with HOME and K as loads without the job (O-12), and the
 * load of k from which on the test fails.
 */
double rules_discrepancy(const struct rules_decision *d, double home, double k, double added);
double rules_discrepancy_limit(const struct rules_decision *d, double home, double added);
/*
 * A part of home's I/O load in the unit of io_significance: the load itself, or with live rates
 * its share of the disk's time.
 */
double rules_significance(const struct rules_decision *d, double part);
bool rules_test_cpu_overloaded(struct rules_decision *d);
/* Find the targets of MEM-RE and CPU-RE for an overloaded home. */
int rules_balance_memory(struct rules_decision *d);
int rules_balance_tasks(struct rules_decision *d, enum rules_order order);

/* How a policy picks its target. */
struct rules_contest {
	enum rules_order order;
	bool weighted; /* order by w_cpu L_CPU + w_io L_IO instead */
	double w_cpu, w_io;
	/* Tests K until one test fails.  Returns true if K is acceptable. */
	bool (*judge)(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t);
	void *arg;
	/* Nodes with a key of LIMIT or more fail this criterion. */
	enum rules_criterion limited_by;
	double limit;
	/* False: only the lightest eligible node is tried. */
	bool try_next;
	/* The policy uses d->examined afterwards, so nodes that change nothing count, too. */
	bool counts;
	/*
	 * judge tests the response: subtrees whose floor is not below home's response are
	 * dropped
	 */
	bool response;
	/* Nodes with a higher ratio of I/O load to disk fail IO_UNDERLOADED; 0: not tested. */
	double share_limit;
	/*
	 * A further test: the criterion that no node below the bound meets, or RULES_CRITERIA;
	 * may be NULL.
	 */
	enum rules_criterion (*hopeless)(struct rules_decision *d, void *arg,
					 const struct rules_bound *bound);
};

/*
 * Fills the plan's candidates, choice and ties.  Returns 1: chosen, 0: none, -ENOMEM, -EINVAL
 * (the view does not keep the index).
 */
int rules_contest_run(struct rules_decision *d, const struct rules_contest *c);

#endif
