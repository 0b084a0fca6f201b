/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a recording says about its cluster, for replaying it. */
#ifndef SIM_CLI_AS_RECORDED_H
#define SIM_CLI_AS_RECORDED_H

#include "balancer/view/recording.h"

#include "sim/experiments/settings.h"

struct recorded_facts {
	bool live;
	uint32_t nodes;
	char policy[RECORDING_NAME_MAX]; /* the policy that most of its jobs ran under */
	bool mixed;			 /* other jobs ran under other policies */
	uint64_t seed;
	bool complete; /* the recording has its end line */
	struct recording_end end;
	double length_ms;
	uint32_t diskless; /* nodes without a disk, which get a slow one */
};

/*
 * Sets in S the machines, the rates and the parameters that the recording at PATH contains.
 * Returns 1; 0: PATH is something else, a pipe, or cannot be read; negative errno with ERR set:
 * the recording has an error.
 */
int recorded_settings(const char *path, struct settings *s, struct recorded_facts *facts,
		      struct iocom_err *err);

#endif
