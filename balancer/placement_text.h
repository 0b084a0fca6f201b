/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placement answer for people: what `place`, `explain` and `run -v` print. */
#ifndef IOCOM_PLACEMENT_TEXT_H
#define IOCOM_PLACEMENT_TEXT_H

#include <stdio.h>

#include "balancer/view/placement.h"

/* Prints one line: the node, the policy, and the criterion that decided, in numbers. */
void placement_text_line(const struct placement *placement, FILE *out);
/* Prints everything: the need with its sources, each criterion with both sides, all refusals. */
void placement_text_print(const struct placement *placement, FILE *out);

#endif
