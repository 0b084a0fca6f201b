/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The communication matrix of a gang: joins the ends of connections that its parts reported
 * (exchange.h).  Pure.
 *
 *   cell (a, b)   what rank a sent to rank b, by a's node
 *   outside       connections whose other end no part has: other hosts, daemons of no part
 *   unranked      the other end is a process of the gang without a rank (a launcher)
 *   rest          what parts had no room to report by connection
 *   refused       what cannot be true: a rank that is another part's, one end at two parts
 *
 * Nothing is believed of a part but what it says of its own ranks: a rank is the part's that the
 * plan says (OWNER), or without a plan that of the first part that has it.
 */
#ifndef IOCOM_JOIN_H
#define IOCOM_JOIN_H

#include "user/exchange/exchange.h"
#include "user/exchange/pattern.h"

#define JOIN_PARTS_MAX 1024

struct join_part {
	const struct exchange *said; /* NULL: it has said nothing */
};

struct join_rank {
	int32_t part; /* -1: no part has it */
	bool talked;
	struct exchange_sum link, inside; /* with other ranks: over links, and by TCP in its node */
	struct exchange_sum outside, unranked;
	uint64_t cpu_us, bursts, burst_us;
	double com_ms;	 /* T_COM: what it sent and received over links, at the link's rate */
	double l_com_ms; /* eq. (5) of MODEL 1.7 */
	double disk_ms; /* T_Disk: its part of that of its node's ranks, which are taken as alike */
};

/*
 * The phases of a BSP job (MODEL 5.10), each of which ends with a burst of communication: means
 * over the ranks that communicate, of each one's time over the number of its bursts.
 */
struct join_phases {
	double number;			/* of a rank */
	double cpu_ms, com_ms, disk_ms; /* T_CPU, T_COM, T_Disk of a phase */
	double slowest_ms;		/* their sum for the rank where it is largest, as in (3) */
	double burst_ms;		/* the time that a burst takes */
};

struct join {
	uint32_t tasks; /* ranks are less */
	struct join_rank *ranks;
	size_t nparts;
	double *part_com_ms; /* eq. (6): L_COM of each part's node, by this gang */
	struct pattern_cell *cells;
	size_t ncells;
	struct exchange_sum no_rank; /* of processes without a rank */
	struct exchange_sum rest, refused;
	uint64_t rest_rows, refused_rows;
	struct pattern pattern;
	struct join_phases phases;
	uint32_t master; /* of (5): the recognised one, else 0 */
};

/*
 * Joins the NPARTS parts.  TASKS 0: as many as the highest rank says.  OWNER: the part of each of
 * TASKS ranks; NULL: unknown.  MB_PER_S: the rate of a link.  Returns 0 or -ENOMEM; join_fini in
 * any case.
 */
int join_parts(struct join *join, const struct join_part *parts, size_t nparts, uint32_t tasks,
	       const int32_t *owner, double mb_per_s);
void join_fini(struct join *join);

#endif
