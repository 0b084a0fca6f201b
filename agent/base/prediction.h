/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How right home's predictions were for the jobs that ran at one node under one policy. */
#ifndef IOCOM_PREDICTION_H
#define IOCOM_PREDICTION_H

#include <stdint.h>

#include "iocom/vector.h"

#define PREDICTIONS_MAX	       512 /* pairs of node and policy */
#define PREDICTION_POLICY_SIZE 32

struct prediction {
	char node[IOCOM_NAME_MAX], policy[PREDICTION_POLICY_SIZE];
	uint64_t jobs; /* all that the journal knew when the agent began, and those since */
	/* Of the last jobs, about 50: outcomes.h says how older ones fade. */
	double ratio;		      /* geometric mean of measured over expected */
	double within_1_25, within_2; /* shares that were off by at most this factor, 0 to 1 */
	/* Since the agent began. */
	struct {
		uint64_t jobs, within_1_25, within_2;
		double log_error; /* sum of |log( measured / expected )| */
	} total;
};

#endif
