/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a recording says of the cluster it is of, for replaying it. */
#ifndef SIM_CLI_AS_RECORDED_H
#define SIM_CLI_AS_RECORDED_H

#include "balancer/view/recording.h"

#include "sim/experiments/settings.h"

struct recorded_facts {
	bool live;
	uint32_t nodes;
	char policy[RECORDING_NAME_MAX]; /* that most of its jobs ran under */
	bool mixed;			 /* others ran under others */
	uint64_t seed;
	bool complete;	  /* it has its end line */
	uint64_t dropped; /* lines that the recorder lost */
	double length_ms;
	uint32_t diskless; /* nodes without a disk: they are given a slow one */
};

/*
 * Sets in S the machines, the rates and the parameters that the recording at PATH
 * tells.  1; 0: PATH is something else, a pipe, or cannot be read; negative errno
 * with the sentence: a recording with an error in it.
 */
int recorded_settings(const char *path, struct settings *s, struct recorded_facts *facts,
		      struct iocom_err *err);

#endif
