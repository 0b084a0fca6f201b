/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Preemptive migration, live (MODEL 3.9): which of the jobs that run here should go on elsewhere.
 * Every other second the rules look at this node's load, and at those jobs that can move and whose
 * policy moves jobs (iocm-pm, cpu-pm, mem-pm, io-pm, wal-pm).  If twice in a row they name a job
 * for which going is clearly better, its home is asked to move it.
 *
 *   look -> look -> away (home decides and moves) -> left: what it cost is learned
 *                                                 -> stayed: the job is left alone for a while
 *
 * One job at a time leaves, and the next look waits until the loads show that.
 */
#ifndef IOCOM_MOVES_H
#define IOCOM_MOVES_H

#include "agent/cluster/cluster_view.h"
#include "agent/guest/guest.h"

#define MOVES_JOBS_MAX	 1024 /* jobs that can move and are looked at, at a time */
#define MOVES_RESTS_MAX	 256  /* jobs that did not move and are left alone */
#define MOVES_NODES_MAX	 64   /* nodes of which it is known what moves to them cost */
#define MOVES_BUDGET_MAX 1000 /* moves in a minute */

struct moves;

struct moves_ports {
	void *arg;
	/* The view for a decision now, by a policy with FEEDBACK or without.  NULL: not now. */
	struct cluster_view *(*look)(void *arg, bool feedback);
	size_t (*running)(void *arg, struct guest_running *out, size_t max);
	/* As guest_away. */
	int (*away)(void *arg, const char *job, const struct peer_away *why, guest_away_told told,
		    void *told_arg, struct iocom_err *err);
};

struct moves_config {
	const struct base *base;
	double cpu_speed; /* of this node */
	struct moves_ports ports;
};

/* Fill levels, for lists of limits. */
struct moves_counts {
	size_t jobs, rests, nodes, budget;
};

/* Returns 0 or -ENOMEM.  The configuration is copied; what it points to is borrowed. */
int moves_new(struct moves **moves, const struct moves_config *config, struct iocom_err *err);
void moves_free(struct moves *moves);
/* Once a second. */
void moves_chores(struct moves *moves);
/* guest_watch's `left`. */
void moves_left(void *moves, const char *job, const char *target, uint64_t frozen_ms,
		uint64_t bytes);
void moves_count(const struct moves *moves, struct moves_counts *counts);

#endif
