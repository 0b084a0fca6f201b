/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One machine under a background of loops; private to the probe's study. */
#ifndef SIM_PROBE_MACHINE_H
#define SIM_PROBE_MACHINE_H

#include "sim/probe/probe.h"
#include "sim/random.h"

/* The fields of Hermes' vector, in the order of enum probe_column. */
enum { READ_IDLE, READ_QUEUE, READ_BLOCKS, READ_FREE, READ_ACTIVE, READ_LOAD, READS };

struct probe_scene {
	const struct probe_spec *spec;
	const struct sim_machine *machine;
	const struct sim_params *params;
	double loops;	/* mean number of loops */
	double idle_mb; /* memory of sleeping processes */
	uint64_t seed, owner;
};

/*
 * Warms the machine up, reads it as Hermes does (READ), then executes the probe and measures its
 * response time.  Returns 0; -ENOMEM.
 */
int probe_machine_run(const struct probe_scene *scene, double read[READS], double *response_s);

#endif
