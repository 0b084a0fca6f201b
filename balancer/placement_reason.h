/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The reasons of a placement for people: which one decided, and its numbers in the units of
 * `nodes`. */
#ifndef IOCOM_PLACEMENT_REASON_H
#define IOCOM_PLACEMENT_REASON_H

#include <stdio.h>

#include "balancer/view/placement.h"

/* The node that takes the job, or would. */
const char *placement_reason_chosen(const struct placement *p);
/*
 * Returns the reason that decided:
 *
 *   the job leaves   the last test that the chosen node passed
 *   it stays         of the tests that other nodes failed, or else of those of home, the one that
 *                    came nearest to another decision
 *
 * NULL: no test decided (a node was asked for, the policy compares nothing).
 */
const struct plan_reason *placement_reason_deciding(const struct placement *p);
/* Returns true if memory decided and no other node has the room. */
bool placement_reason_no_room(const struct placement *p);

struct placement_sides {
	char left[32], right[32];
	const char *unit;
};
/* Both sides of R in one unit: s from 1 s up, MB, requests/s, %. */
void placement_reason_sides(const struct plan_reason *r, struct placement_sides *sides);
/* "3.21 > 2.45 s". */
void placement_reason_numbers(const struct plan_reason *r, FILE *out);

#endif
