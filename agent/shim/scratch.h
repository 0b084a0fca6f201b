/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The directories of jobs whose data goes along:
 *
 *   DATA_DIR/UID/         root's, 0711: nobody else makes or renames anything in it
 *   DATA_DIR/UID/cache    the user's own, 0700 (data_cache.h)
 *   DATA_DIR/UID/JOB      the user's own, 0700: where JOB runs; its shim has it locked
 *
 * Root's code makes and removes them by descriptors, below DATA_DIR only, and follows no link and
 * no mount.  A directory whose shim was killed is removed with the user's next job of this kind,
 * or when the agent starts.
 */
#ifndef IOCOM_SHIM_SCRATCH_H
#define IOCOM_SHIM_SCRATCH_H

#include <sys/types.h>

#include "iocom/err.h"
#include "user/data_stage.h"
#include "user/spec.h"

struct scratch {
	int user; /* DATA_DIR/UID; -1: nothing was made */
	int job;  /* DATA_DIR/UID/JOB, locked */
	char name[SPEC_JOB_MAX];
	char path[1024 + SPEC_JOB_MAX + 32]; /* of the job's directory */
	char cache[1024 + 64];
};

void scratch_init(struct scratch *scratch);
/* Makes the directories for UID's JOB.  Returns 0 or negative errno with the reason in ERR. */
int scratch_make(struct scratch *scratch, const char *data_dir, uid_t uid, gid_t gid,
		 const char *job, struct iocom_err *err);
/* Notes what became of a job's data (user/data_usage.h).  Best effort. */
void scratch_note(const struct scratch *scratch, const struct data_stats *stats);
/* Notes that a job's data had no room.  Best effort. */
void scratch_note_refused(const struct scratch *scratch);
/* Removes the job's directory with all that is in it, and closes.  Does nothing after init. */
void scratch_remove(struct scratch *scratch);
/* Removes NAME below the directory AT with all that is in it.  Returns 0 or negative errno. */
int scratch_remove_tree(int at, const char *name);
/* Removes what killed shims left below DATA_DIR, of all users. */
void scratch_sweep(const char *data_dir);

#endif
