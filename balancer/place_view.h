/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Decisions on view files: `iocom place --view` and `--save-view`. */
#ifndef IOCOM_PLACE_VIEW_H
#define IOCOM_PLACE_VIEW_H

#include <stdbool.h>

#include "iocom/err.h"
#include "balancer/view/placement.h"

/*
 * Decides on the view in PATH ("-": standard input) by POLICY (NULL: iocm-re) without an agent,
 * and prints the decision.  Returns the exit code; errors go to standard error.
 */
int place_view(const char *path, const char *policy, bool json);
/*
 * Takes the view out of an agent's answer and writes it to PATH, whole or not at all.  Returns 0;
 * -ENODATA: the agent is too old to send it; -EEXIST without FORCE; negative errno with the reason
 * in ERR.
 */
int place_view_save(const char *path, bool force, struct placement *answer, struct iocom_err *err);

#endif
