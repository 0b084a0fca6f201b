/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The a.matrix of MODEL 4.4 as an index of a view, and the r.vector of a request.
 *
 * The loads are read as follows where a node gives no `zatti` fields: run queue =
 * L_CPU, idle = 100 (1 - min(1, L_CPU / cores)), blocks/s = 1000 L_IO, free =
 * n_MEM - L_MEM; a node whose memory is unknown always has enough.  A run queue
 * counts per core, as cpu_threshold does.
 */
#ifndef RULES_ZATTI_H
#define RULES_ZATTI_H

#include "balancer/rules/rules_private.h"

/* What cuts the tables: view and rules must agree on it. */
struct rules_zatti_cuts {
	bool idle;		    /* CPU load is 100 - idle per cent, else the run queue */
	double cpu_limit, io_limit; /* binary: available up to here */
	double cpu_top, io_top;	    /* real: no interval above */
	uint32_t intervals;	    /* real: of each domain */
	double cpu_need, io_need;   /* from here on a job needs it */
};

/* One node in the list of its slot; a list is a tree, ascending by free memory. */
struct rules_zatti_link {
	double free_mb, cpu, io;
	double least_cpu, least_io; /* of the subtree */
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
/* An empty index; -ENOMEM. */
int rules_zatti_init(struct rules_zatti_index *index, bool real, const struct rules_params *params);
void rules_zatti_free(struct rules_zatti_index *index);
/* Room for CAPACITY nodes; -ENOMEM. */
int rules_zatti_reserve(struct rules_zatti_index *index, uint32_t capacity);
/* Node AT is CELL from now on; NULL: it is gone.  O(log n). */
void rules_zatti_set(struct rules_zatti_index *index, uint32_t at, const struct rules_cell *cell);
/*
 * Builds the a.matrices that VIEW is to keep, cut by PARAMS, and drops the
 * others.  0, or -ENOMEM with all as it was.
 */
int rules_zatti_keep(struct rules_view *view, bool binary, bool real,
		     const struct rules_params *params);
/* Whether the index was cut as PARAMS ask. */
bool rules_zatti_serves(const struct rules_zatti_index *index, const struct rules_params *params);

/*
 * The loads of a node.  CPU: the run queue of a core, real with the job as one
 * process more; or per cent not idle, binary of the node, real of one core.
 */
double rules_zatti_cpu(const struct rules_zatti_cuts *cuts, bool real, const struct rules_cell *c);
double rules_zatti_io(const struct rules_cell *cell);
double rules_zatti_free_mb(const struct rules_cell *cell); /* INFINITY: unknown */

/* The r.vector (4.5): what the job does alone on a machine like CELL. */
struct rules_zatti_vector {
	double cpu_percent, blocks_per_s, memory_mb;
	bool cpu, io; /* the bits */
};
struct rules_zatti_vector rules_zatti_vector(const struct rules_zatti_cuts *cuts,
					     const struct rules_cell *cell,
					     const struct rules_request *request,
					     enum rules_rates rates);
/* The bits of a r.vector. */
void rules_zatti_bits(const struct rules_zatti_cuts *cuts, struct rules_zatti_vector *v);
/*
 * What a placement changes in the home node's copy of the target's vector (3.14,
 * 3.15); SIGN 1, or -1 for a task that left.
 */
void rules_zatti_charge(const struct rules_zatti_cuts *cuts, struct rules_cell *cell,
			const struct rules_request *request, enum rules_rates rates, int sign);

/* Which nodes fit, and where their list goes. */
struct rules_zatti_query {
	double memory_mb;	    /* free memory, at least */
	double io_need;		    /* what the job adds to the i/o load */
	double cpu_most, io_most;   /* cpu load, i/o load + need <= */
	double cpu_below, io_below; /* load < */
	uint32_t home;		    /* never taken */
	uint64_t salt;		    /* which of the first equal ones comes first */
	uint32_t *found;	    /* best first */
	uint32_t n, room;
};
/*
 * Adds the nodes of SLOT that fit, ascending by free memory, until the room is
 * full.  Of the first equally free ones, found by an empty query, SALT picks.
 */
void rules_zatti_collect(const struct rules_zatti_index *index, uint32_t slot,
			 struct rules_zatti_query *query);
/* Nodes in SLOT; of them, those with less free memory than MEMORY_MB. */
uint32_t rules_zatti_size(const struct rules_zatti_index *index, uint32_t slot);
uint32_t rules_zatti_short(const struct rules_zatti_index *index, uint32_t slot, double memory_mb);
/* Real: the interval of a load; interval 0 has the least to offer. */
uint32_t rules_zatti_interval(const struct rules_zatti_index *index, double load, double top);

#endif
