/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The mean speeds of tasks that share a processor and a disk: a closed network of queues in which
 * every task is a class of its own.
 *
 *   processor  processor sharing: n <= cores tasks run at full speed each, more
 *              share `crowded`
 *   disk       FCFS; each task's requests have their own mean and mean square
 *   away       a delay without a queue, for tasks that compute
 *
 * One unit of a task's progress (a segment) needs cpu_ms of the processor, visits requests of
 * service_ms each, and delay_ms away.  The requests come at random moments of its computation or,
 * for `regular` tasks, evenly spread.  The functions are pure: they allocate and keep nothing and
 * read nothing else.
 */
#ifndef SIM_SHARING_H
#define SIM_SHARING_H

#include <stdbool.h>
#include <stdint.h>

struct sharing_task {
	double cpu_ms;			/* time on an idle processor */
	double visits;			/* disk requests; need not be a whole number */
	double service_ms, service_ms2; /* mean and mean square of one visit's service */
	double delay_ms;
	bool regular; /* requests are evenly spread over the computation; false: at random */
	/* Results.  The next solution starts from what the last one left here (0: none). */
	double rate; /* progress per ms */
	double stretch;
};

/* The processor, in units of one core at full speed. */
struct sharing_machine {
	double cores;
	double crowded; /* power when more than `cores` tasks run */
};

struct sharing_load {
	double at_cpu, at_disk; /* expected number of tasks there, served or waiting */
	double cores_busy;
};

/* For up to this many tasks the state probabilities are summed; for more, mean values are used. */
#define SHARING_EXACT_MAX 32

/*
 * Sets the rate of each of N >= 1 tasks; each must need some computation or some service.  The
 * rates are within 0.5 % of the true means for tasks alike, a few % for tasks that are not.
 */
void sharing_solve(const struct sharing_machine *machine, struct sharing_task *tasks, uint32_t n,
		   struct sharing_load *load);

#endif
