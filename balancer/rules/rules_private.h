/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the rules library share: the derived values of a node, the
 * search trees over them, and the state of one decision.
 */
#ifndef RULES_PRIVATE_H
#define RULES_PRIVATE_H

#include <iocom/rules.h>

#define RULES_REFERENCE_KB 256.0 /* request size where a node gives none (ACM Table I) */
#define RULES_PAGE_KB	   4.0	 /* a page fault reads one page */

/* --- one node, derived ---------------------------------------------------- */

struct rules_cell {
	/* load indices (MODEL 1) */
	double io, explicit_io, implicit_io; /* requests/ms */
	double memory, n_mem;		     /* MB */
	double cpu, com;
	double kb_per_ms; /* sum of lambda d over the tasks: who shares the buffer */
	/* the machine */
	double buffer_kb, mips, cores, network; /* network 0: the parameter's */
	double fixed_ms, disk_mb_per_s, request_kb;
	double performance;	  /* D_i */
	double service, service2; /* E(s), E(s^2) of the disk's parameters */
	/* disk and CPU state */
	bool measured;
	double arrivals, utilisation;
	double seen_service, seen_service2;
	double queue, io_tasks; /* without the candidate */
	bool accepts;
};

/* Fills CELL from NODE; -EINVAL on values out of range. */
int rules_cell_init(struct rules_cell *cell, const struct rules_node *node, enum rules_rates rates);
/* Adds the request's requirements, as rules_view_charge promises. */
void rules_cell_charge(struct rules_cell *cell, const struct rules_request *request,
		       enum rules_rates rates);
int rules_request_check(const struct rules_request *request);

/* What the request would add to the node: page(i,j) and IO(i,j) of MODEL 1. */
struct rules_added {
	double explicit_io, implicit_io;
};
struct rules_added rules_cell_added(const struct rules_cell *cell,
				    const struct rules_request *request, enum rules_rates rates);
double rules_cell_hit_rate(const struct rules_cell *cell, const struct rules_request *request);
double rules_cell_memory_ratio(const struct rules_cell *cell, double extra_mb);

/* --- search trees ----------------------------------------------------------- */

enum rules_order {
	RULES_ORDER_IO,		  /* L_IO */
	RULES_ORDER_MEM,	  /* L_MEM / n_MEM */
	RULES_ORDER_CPU,	  /* L_CPU */
	RULES_ORDER_CPU_WEIGHTED, /* L_CPU / (cores * speed) */
	RULES_ORDERS
};

/* Least (key, tie) of a subtree and how many leaves have it; count 0: empty. */
struct rules_least {
	double key, tie;
	uint32_t count;
};

/* What no node of a subtree can beat; used to rule out whole subtrees. */
struct rules_bound {
	double io_share;    /* least L_IO / D */
	double cpu_factor;  /* least E(L) / speed */
	double fixed_ms;    /* least fixed time of a disk request */
	double s_per_mb;    /* least transfer time of a disk, 0 where there is none */
	uint32_t disks;	    /* nodes that have one */
	uint32_t accepting; /* nodes whose owner lets jobs in */
};

struct rules_sum {
	double io, performance;
};

/*
 * Implicit binary trees of `capacity` leaves (a power of two): node 1 is the
 * root, node n has children 2n and 2n+1, leaf i is capacity + i.
 */
struct rules_view {
	enum rules_rates rates;
	uint32_t count, capacity;
	char (*names)[RULES_NAME_MAX];
	struct rules_cell *cells;
	struct rules_least *least[RULES_ORDERS];
	struct rules_bound *bounds;
	struct rules_sum *sums;
};

/* The trees hold INDEX's cell (or nothing, when index >= count) afterwards. */
void rules_tree_update(struct rules_view *view, uint32_t index);
/* (Re)allocates for CAPACITY leaves; the old content is kept.  0 or -ENOMEM. */
int rules_tree_grow(struct rules_view *view, uint32_t capacity);
void rules_tree_free(struct rules_view *view);
/* Nodes below tree node AT. */
uint32_t rules_tree_population(const struct rules_view *view, uint32_t at);

/* A subtree that waits its turn in a search. */
struct rules_waiting {
	double key, tie;
	double tag; /* when it is due among equals; negative: drawn at need, at DRAWN_AT */
	uint32_t at, drawn_at, count;
};

struct rules_heap {
	struct rules_waiting *items;
	size_t used, room;
};

/*
 * Walks the leaves of one tree in ascending (key, tie); equal ones in an order
 * drawn from SALT, each permutation alike probable.
 */
struct rules_search {
	const struct rules_view *view;
	const struct rules_least *least;
	struct rules_heap *heap; /* scratch, lent by struct rules */
	uint64_t salt;
};

/* 0 or -ENOMEM. */
int rules_search_init(struct rules_search *s, const struct rules_view *view, enum rules_order order,
		      uint64_t salt, struct rules_heap *heap);
#define RULES_SEARCH_END     0 /* no leaf is left */
#define RULES_SEARCH_LEAF    1 /* the next leaf is in *INDEX */
#define RULES_SEARCH_DROPPED 2 /* PRUNE dropped a subtree: call again, or stop */
/* One of these or -ENOMEM.  PRUNE is asked about every subtree met; true drops it. */
int rules_search_next(struct rules_search *s, bool (*prune)(void *arg, uint32_t at), void *arg,
		      uint32_t *index);

/* --- a decision -------------------------------------------------------------- */

struct rules {
	enum rules_policy policy;
	struct rules_params params;
	uint64_t seed;
	struct rules_heap heap;
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
	bool does_io;
	uint64_t salt;
	uint32_t examined; /* over all stages: reasons are given for the first ones */
};

typedef int rules_policy_fn(struct rules_decision *d);
rules_policy_fn rules_policy_nlb, rules_policy_cpu_re, rules_policy_mem_re, rules_policy_io_re,
	rules_policy_iocm_re;

rules_policy_fn *rules_policy_function(enum rules_policy policy);
int rules_params_check(const struct rules_params *params);

/* r(i,j) and c_j(home,k) of MODEL 2.1 and 2.3. */
double rules_response_at(const struct rules_decision *d, const struct rules_cell *cell);
double rules_response_home(struct rules_decision *d);
double rules_cost_to(const struct rules_decision *d, const struct rules_cell *cell);
/* Not above r(k,j) + c_j(home,k) for any node k below the bound. */
double rules_response_floor(const struct rules_decision *d, const struct rules_bound *bound);

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

/* How a policy picks its target. */
struct rules_contest {
	enum rules_order order;
	/* Makes the tests of K until one fails; true: K is acceptable. */
	bool (*judge)(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t);
	void *arg;
	/* Nodes with a key of LIMIT or more are known to fail this criterion. */
	enum rules_criterion limited_by;
	double limit;
	/* False: the lightest eligible node is tried, no other. */
	bool try_next;
	/* The criterion that no node below the bound meets, or RULES_CRITERIA. */
	enum rules_criterion (*hopeless)(struct rules_decision *d, void *arg,
					 const struct rules_bound *bound);
};

/* Fills candidates, the choice and the ties of the plan.  1 chosen, 0 none, -ENOMEM. */
/* Hopeless by the floor of the response time, where that test is asked for. */
enum rules_criterion rules_hopeless_response(struct rules_decision *d, void *arg,
					     const struct rules_bound *b);
int rules_contest_run(struct rules_decision *d, const struct rules_contest *c);

#endif
