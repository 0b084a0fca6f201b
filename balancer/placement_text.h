/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placement answer for people: what `place`, `explain` and `run -v` print. */
#ifndef IOCOM_PLACEMENT_TEXT_H
#define IOCOM_PLACEMENT_TEXT_H

#include <stdio.h>

#include "balancer/view/placement.h"

/*
 * Prints one line: the node, the policy, the criterion that decided, in numbers, and the times
 * expected there and at home if they are known.
 */
void placement_text_line(const struct placement *placement, FILE *out);
/* Prints a line that begins with BEFORE for each stated need that no node can meet. */
void placement_text_unmet(const struct placement *placement, const char *before, FILE *out);
/*
 * Prints everything: what is expected, the need with its sources, each criterion with both sides,
 * all refusals.  TOOK is what became of the job, as a clause ("it took 5.1 s") that is added to
 * what was expected; NULL: the job has not run.
 */
void placement_text_print(const struct placement *placement, const char *took, FILE *out);

#endif
