/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How a run from the command line differs from the papers' configurations. */
#ifndef SIM_REPORT_UNLIKE_H
#define SIM_REPORT_UNLIKE_H

#include "sim/experiments/sweep.h"

/*
 * Names each parameter that the runs of S read and that the configuration of a paper sets to
 * another value: "cpu_load_runnable=0 (FC, ACM: 1), ...".  "" if there is none; the caller frees
 * the text; NULL: no memory.
 */
char *report_unlike(const struct sweep *s);

#endif
