/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A part of a process trace that a generator takes its arrivals, homes and computation from, as the
 * papers did: memory, I/O, page faults, tasks and messages are generated (MODEL 5.7).
 *
 * Each seed gets another part: seed 1 the first run of the trace, seed 2 the second, and after the
 * last run the next jobs of the first.  Gaps and computation are scaled so that their means over
 * the run are those of the generator; which job is long, and which host is busy, is the trace's.
 */
#ifndef SIM_WORKLOAD_PROCESS_TRACE_H
#define SIM_WORKLOAD_PROCESS_TRACE_H

#include "sim/workload.h"

/*
 * Finds the part of the trace PATH for P (seed, jobs, means, longest computation) and enters it in
 * P->part; P->jobs becomes the number of its jobs.  The content of PATH is read once and kept until
 * the program ends.  Returns 0; negative errno with ERR set.
 */
int process_trace_part(struct generator_params *p, const char *path, struct iocom_err *err);

/* The node of a job from HOST of P->part among P->nodes; U in (0, 1) chooses one of several. */
uint32_t process_trace_home(const struct generator_params *p, uint32_t host, double u);

#endif
