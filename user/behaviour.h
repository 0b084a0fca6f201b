/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a job behaves: the phases of its run, with the time each resource needs in
 * a phase (MODEL 5.10, COM section 3).
 *
 *   (1)  T^i = T^i_CPU + T^i_COM + T^i_Disk;   T = sum over the phases
 *   (2)  R_x = sum over the phases of T^i_x
 *   (3)  T_p = s_p + sum over i of max over the processes j of T^i_j
 *   (4)  s_p = s_CPU + s_COM + s_Disk
 *
 * A phase is a stretch in which one resource dominates.  It goes on while that
 * resource is within BEHAVIOUR_MARGIN of the largest, so that an even mix does
 * not fall to pieces, and through periods in which the job did next to nothing.
 * Pure: no clock, no kernel.
 */
#ifndef IOCOM_BEHAVIOUR_H
#define IOCOM_BEHAVIOUR_H

#include <stdbool.h>
#include <stddef.h>

#define BEHAVIOUR_PHASES 16   /* if there are more, two small neighbours are joined */
#define BEHAVIOUR_MARGIN 0.25 /* a new phase must exceed the old one by this part */
#define BEHAVIOUR_IDLE	 0.02 /* a job busy for less than this part of a period counts as idle */

enum behaviour_resource { BEHAVIOUR_CPU, BEHAVIOUR_COM, BEHAVIOUR_DISK, BEHAVIOUR_RESOURCES };

struct behaviour_phase {
	double ms[BEHAVIOUR_RESOURCES];
	double wall_ms;
	int dominant; /* enum behaviour_resource; -1: it was idle until now */
};

struct behaviour {
	struct behaviour_phase phases[BEHAVIOUR_PHASES];
	size_t n;
	unsigned joined; /* times that we joined two phases for lack of room */
	/* Sums over the whole run, in ms: */
	double disk_low_ms, disk_high_ms; /* bounds of R_Disk, see job_times.h */
	double fault_ms;		  /* the part of R_Disk that page faults caused */
	double fault_requests, fault_kb;  /* disk requests of page faults, and their size in all */
	double disk_wait_ms;		  /* time that requests waited in the queue */
	double run_wait_ms;		  /* time that the job was ready but others had the CPU */
};

/* Adds a period of WALL_MS in which the resources needed MS. */
void behaviour_add(struct behaviour *b, const double ms[BEHAVIOUR_RESOURCES], double wall_ms);
/* Computes R of each resource (2). Returns T of (1). */
double behaviour_sum(const struct behaviour *b, double r[BEHAVIOUR_RESOURCES]);
/* Computes the same as parts of T: their sum is 1, or all are 0 if T is 0. */
void behaviour_shares(const struct behaviour *b, double share[BEHAVIOUR_RESOURCES]);
/*
 * Returns the time (3) of a parallel job of P processes alone on a cluster. SEQUENTIAL has the
 * parts of (4). A process with fewer phases needs no time in the rest.
 */
double behaviour_parallel_ms(const struct behaviour *processes, size_t p,
			     const double sequential[BEHAVIOUR_RESOURCES]);
/*
 * "cpu", "communication", "io" (intensive): the largest R (O-29); "memory": that
 * is R_Disk, and page faults caused more than half of it; "idle": T is 0.
 */
const char *behaviour_class(const struct behaviour *b);
/* Returns "cpu", "com" or "disk"; "idle" for -1. */
const char *behaviour_resource_name(int resource);
/*
 * Returns false if a value is negative, not finite or inconsistent. Check data from outside
 * first.
 */
bool behaviour_valid(const struct behaviour *b);

#endif
