/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How fast tasks advance, in the mean, that share a processor and a disk: a closed
 * network of queues in which every task is a class of its own.
 *
 *   processor  processor sharing: n <= cores tasks run at full speed each, more
 *              share `crowded`
 *   disk       FCFS; each task's requests have a mean and a mean square of their own
 *   away       a delay without a queue, of tasks that compute
 *
 * A task's unit of progress (a segment) asks for cpu_ms of the processor, visits
 * requests of service_ms each, and delay_ms away; the requests come at random
 * moments of its computation or, of `regular` tasks, evenly spread.  Pure: nothing is allocated,
 * kept or read elsewhere.
 */
#ifndef SIM_SHARING_H
#define SIM_SHARING_H

#include <stdbool.h>
#include <stdint.h>

struct sharing_task {
	double cpu_ms;			/* with the processor to itself */
	double visits;			/* of the disk; not necessarily whole */
	double service_ms, service_ms2; /* mean and mean square of one visit's service */
	double delay_ms;
	bool regular; /* requests evenly spread over the computation, not at random */
	/* Results; what the last solution left here is where the next one starts (0: none). */
	double rate; /* progress per ms */
	double stretch;
};

/* The processor in units of one core at full speed. */
struct sharing_machine {
	double cores;
	double crowded; /* power when more than `cores` run */
};

struct sharing_load {
	double at_cpu, at_disk; /* expected tasks, served or waiting */
	double cores_busy;
};

/* Up to so many tasks the state probabilities are summed, more by mean values. */
#define SHARING_EXACT_MAX 32

/*
 * Sets the rate of each of N >= 1 tasks, each of which asks for some computation or
 * some service.  Within 0.5 % of the true means for tasks alike, a few % for tasks that are not.
 */
void sharing_solve(const struct sharing_machine *machine, struct sharing_task *tasks, uint32_t n,
		   struct sharing_load *load);

#endif
