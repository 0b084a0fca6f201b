/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A gang for people: where its tasks go and why, and how its parts ended. */
#ifndef IOCOM_GANG_TEXT_H
#define IOCOM_GANG_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "balancer/view/placement.h"

/* Prints which node has which tasks: "n1: 0-3, n2: 4-7". */
void gang_text_where(const struct gang_answer *gang, FILE *out);
/*
 * Prints where the tasks of PLACEMENT, which has a gang, go and what was weighed for that.  TOOK is
 * as for placement_text_print.
 */
void gang_text_print(const struct placement *placement, const char *took, FILE *out);
/*
 * Prints the parts that RECORD, a row of `jobs --json`, has, and how each stands or ended.  GANG
 * says which tasks they have; NULL: it is not known.
 */
void gang_text_parts(const json_t *record, const struct gang_answer *gang, FILE *out);

#endif
