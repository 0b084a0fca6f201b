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

#define BEHAVIOUR_PHASES 16   /* more: the two that cost least to join become one */
#define BEHAVIOUR_MARGIN 0.25 /* a new phase's resource exceeds the old one's by this part */
#define BEHAVIOUR_IDLE	 0.02 /* busy for less of a period than this: idle */

enum behaviour_resource { BEHAVIOUR_CPU, BEHAVIOUR_COM, BEHAVIOUR_DISK, BEHAVIOUR_RESOURCES };

struct behaviour_phase {
	double ms[BEHAVIOUR_RESOURCES];
	double wall_ms;
	int dominant; /* enum behaviour_resource, or -1: idle so far */
};

struct behaviour {
	struct behaviour_phase phases[BEHAVIOUR_PHASES];
	size_t n;
	unsigned joined; /* phases that had to be joined for want of room */
	/* Of the whole run, ms: */
	double disk_low_ms, disk_high_ms; /* bounds of R_Disk, see job_times.h */
	double fault_ms;		  /* the part of R_Disk that page faults caused */
	double disk_wait_ms;		  /* requests queued before they were served */
	double run_wait_ms;		  /* ready, but others had the CPU */
};

/* Adds a period of WALL_MS in which the resources needed MS. */
void behaviour_add(struct behaviour *b, const double ms[BEHAVIOUR_RESOURCES], double wall_ms);
/* (2): R of each resource; returns T of (1). */
double behaviour_sum(const struct behaviour *b, double r[BEHAVIOUR_RESOURCES]);
/* The same as parts of T: they sum to 1, or are all 0 where T is. */
void behaviour_shares(const struct behaviour *b, double share[BEHAVIOUR_RESOURCES]);
/*
 * (3): the time of a parallel job of P processes alone on a cluster; SEQUENTIAL
 * are the parts of (4).  A process with fewer phases needs nothing in the rest.
 */
double behaviour_parallel_ms(const struct behaviour *processes, size_t p,
			     const double sequential[BEHAVIOUR_RESOURCES]);
/*
 * "cpu", "communication", "io" (intensive): the largest R (O-29); "memory": that
 * is R_Disk, and page faults caused more than half of it; "idle": T is 0.
 */
const char *behaviour_class(const struct behaviour *b);
/* "cpu", "com", "disk"; "idle" for -1. */
const char *behaviour_resource_name(int resource);
/* False: negative, not finite or inconsistent; data of others is asked first. */
bool behaviour_valid(const struct behaviour *b);

#endif
