/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How a job stands or ended, in the words of all commands: from its record, as the agent tells it.
 */
#ifndef IOCOM_JOB_STATE_H
#define IOCOM_JOB_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Its outcome is unknown, or it was given up. */
bool job_state_lost(const json_t *job);
/* The outcome as a cell: "0", "signal KILL", "unknown", "not started"; "-": it has not ended. */
void job_state_outcome(char *out, size_t size, const json_t *job);
/*
 * A failure as the end of a sentence: " and ended with status 3", " and ended by signal KILL"; "":
 * it ended well, or has not.
 */
void job_state_failure(char *out, size_t size, const json_t *job);
/* What `iocom run` would return: the status, 128 + a signal, 125 not started, 255 lost. */
int job_state_status(const json_t *job);

#endif
