/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The a.matrix of MODEL 4.4 as an index of a view, and the r.vector of a request.
 *
 * If a node gives no `zatti` fields, its loads are: run queue = L_CPU, idle = 100 (1 - min(1,
 * L_CPU / cores)), blocks/s = 1000 L_IO, free = n_MEM - L_MEM; a node with unknown memory always
 * has enough.  Run queues are per core, as cpu_threshold is.
 */
#ifndef RULES_ZATTI_H
#define RULES_ZATTI_H

#include "balancer/rules/rules_private.h"

/* The bounds that divide the tables; view and rules must agree on them. */
struct rules_zatti_cuts {
	bool idle;		    /* CPU load is 100 - idle per cent, else the run queue */
	double cpu_limit, io_limit; /* binary: available up to this load */
	double cpu_top, io_top;	    /* real: the top of the intervals */
	uint32_t intervals;	    /* real: number of intervals of each domain */
	double cpu_need, io_need;   /* a job with this need or more counts as needing it */
};

/* A node in the list of its slot; a list is a tree in ascending order of free memory. */
struct rules_zatti_link {
	double free_mb, cpu, io;
	double least_cpu, least_io; /* the least values of the subtree */
	uint32_t left, right, size, draw;
	uint32_t slot;
};

struct rules_zatti_index {
	bool real;
	struct rules_zatti_cuts cuts;
	uint32_t nslots, nrows; /* a row: the slots of one CPU interval */
	uint32_t *roots, *row_sizes;
	struct rules_zatti_link *links;
	uint32_t capacity;
};

struct rules_zatti_cuts rules_zatti_cuts(const struct rules_params *params);
/* Makes an empty index.  Returns 0 or -ENOMEM. */
int rules_zatti_init(struct rules_zatti_index *index, bool real, const struct rules_params *params);
void rules_zatti_free(struct rules_zatti_index *index);
/* Makes room for CAPACITY nodes.  Returns 0 or -ENOMEM. */
int rules_zatti_reserve(struct rules_zatti_index *index, uint32_t capacity);
/* Sets node AT to CELL; NULL removes it.  O(log n). */
void rules_zatti_set(struct rules_zatti_index *index, uint32_t at, const struct rules_cell *cell);
/*
 * Builds the a.matrices that VIEW is to keep, divided by PARAMS, and drops the others.  Returns
 * 0, or -ENOMEM with all as it was.
 */
int rules_zatti_keep(struct rules_view *view, bool binary, bool real,
		     const struct rules_params *params);
/* Returns true if PARAMS ask for the index's bounds. */
bool rules_zatti_serves(const struct rules_zatti_index *index, const struct rules_params *params);

/*
 * The loads of a node.  CPU: the run queue per core, in the real form with the job as one more
 * process; or per cent not idle, of the node in the binary form, of one core in the real.
 */
double rules_zatti_cpu(const struct rules_zatti_cuts *cuts, bool real, const struct rules_cell *c);
double rules_zatti_io(const struct rules_cell *cell);
double rules_zatti_free_mb(const struct rules_cell *cell); /* INFINITY: unknown */

/* The r.vector (4.5): what the job does when alone on a machine like CELL. */
struct rules_zatti_vector {
	double cpu_percent, blocks_per_s, memory_mb;
	bool cpu, io; /* the bits */
};
struct rules_zatti_vector rules_zatti_vector(const struct rules_zatti_cuts *cuts,
					     const struct rules_cell *cell,
					     const struct rules_request *request,
					     enum rules_rates rates);
/* Sets the bits of an r.vector. */
void rules_zatti_bits(const struct rules_zatti_cuts *cuts, struct rules_zatti_vector *v);
/*
 * Applies a placement to the home node's copy of the target's vector (3.14, 3.15); SIGN is 1,
 * or -1 for a task that left.
 */
void rules_zatti_charge(const struct rules_zatti_cuts *cuts, struct rules_cell *cell,
			const struct rules_request *request, enum rules_rates rates, int sign);

/* Which nodes fit, and where to list them. */
struct rules_zatti_query {
	double memory_mb;	    /* least free memory */
	double io_need;		    /* the job's addition to the i/o load */
	double cpu_most, io_most;   /* limits: cpu load, i/o load + need <= */
	double cpu_below, io_below; /* load < */
	uint32_t home;		    /* never chosen */
	uint64_t salt;		    /* picks among the first equally free nodes */
	uint32_t *found;	    /* best first */
	uint32_t n, room;
};
/*
 * Adds the fitting nodes of SLOT, in ascending free memory, until there is no more room.  If
 * the query was empty, SALT picks among the first equally free nodes.
 */
void rules_zatti_collect(const struct rules_zatti_index *index, uint32_t slot,
			 struct rules_zatti_query *query);
/* The number of nodes in SLOT, and of those with less free memory than MEMORY_MB. */
uint32_t rules_zatti_size(const struct rules_zatti_index *index, uint32_t slot);
uint32_t rules_zatti_short(const struct rules_zatti_index *index, uint32_t slot, double memory_mb);
/* Real form: the interval of a load; interval 0 has the least to offer. */
uint32_t rules_zatti_interval(const struct rules_zatti_index *index, double load, double top);

#endif
