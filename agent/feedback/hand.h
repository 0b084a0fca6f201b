/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The controller's hand: it holds the page cache of jobs that do I/O within the buffer, by a bound
 * on each such job's group (user/cgroup_high.h), and lets go of it again.
 *
 *   d_buf(i,j) = d_buf(i) (cache_j + missed_j) / sum over these jobs           by (5.2) FC
 *   bound of j = what j has besides its cache + max(d_buf(i,j), HAND_CACHE_LEAST)
 *
 * (5.2) shares by the rate of accesses; what a job found in its cache nobody counts, so its cache
 * stands for that, and what it read from the disk since the last turn is added.  A job does I/O if
 * at least HAND_CACHE_LEAST and half of its memory is cache; once held, it is until it ends.
 *
 * Nothing is changed before the disk has the original, and it comes back on every way out:
 *
 *   free -> original, what is there now and what will be in the file -> written -> held
 *   held -> it is neither what was there nor what was written: somebody else's -> left alone
 *   held -> switched off, stopped, or the next start after a kill -> the original, the file is gone
 *
 * Groups that are gone meanwhile are no error.  Only groups are touched whose names iocom gives to
 * jobs, whatever the file says.
 *
 * A turn may take long (the kernel reclaims), so it runs in a thread of its own; hand_close waits
 * for no more than one write to the file or to a group.
 */
#ifndef IOCOM_FEEDBACK_HAND_H
#define IOCOM_FEEDBACK_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "user/cgroup_high.h"
#include "user/spec.h"

#define HAND_CACHE_LEAST (UINT64_C(16) << 20)
#define HAND_NAME	 (SPEC_JOB_MAX + 40)

struct hand;

enum hand_state {
	HAND_FREE,    /* it does no I/O to speak of */
	HAND_WOULD,   /* dry-run: it would be held */
	HAND_HELD,    /* its bound is the controller's */
	HAND_FOREIGN, /* somebody else changed its bound meanwhile: it is left alone */
	HAND_REFUSED, /* the kernel refused */
	HAND_NONE,    /* no memory controller has its group */
	HAND_GONE,    /* the group is gone */
	HAND_STATES
};
extern const char *const hand_state_names[HAND_STATES];

struct hand_job {
	char job[SPEC_JOB_MAX];
	char name[HAND_NAME]; /* of its group below the scope */
	uid_t uid;
	uint64_t missed_bytes; /* read from the disk since the last turn */
	/* what a turn found and did */
	enum hand_state state;
	struct cgroup_high_use use;
	uint64_t high_bytes;		 /* its bound; 0: none of ours */
	char original[CGROUP_HIGH_TEXT]; /* "": unknown */
	int rc;				 /* HAND_REFUSED */
};

struct hand_done {
	unsigned writes;   /* of bounds */
	unsigned foreign;  /* groups newly left alone */
	unsigned refused;  /* writes that failed */
	unsigned restored; /* originals that are back */
	unsigned gone;	   /* groups that were gone when they were let go of */
	char why[256];	   /* the first failure, "" none */
};

struct hand_turn {
	uint64_t buffer_bytes;
	bool dry; /* change nothing */
	struct hand_job *jobs;
	size_t njobs;
	struct hand_done done;
};

/* PATH: the file of originals.  MOUNTS and the texts are copied.  Returns 0 or -ENOMEM. */
int hand_new(struct hand **hand, const struct cgroup_mounts *mounts, const char *scope,
	     const char *path);
/* One more holder; each calls hand_put. */
struct hand *hand_get(struct hand *hand);
/* The last one frees; it lets go of nothing: see hand_close.  NULL is fine. */
void hand_put(struct hand *hand);
/*
 * Takes over what an earlier agent left in the file, and gives the originals back.  Returns 0, also
 * without a file; -EBADMSG with the reason in ERR: the file is damaged, set aside, and what it held
 * is unknown; other negative errno.
 */
int hand_recover(struct hand *hand, struct hand_done *done, struct iocom_err *err);
/* Measures all jobs, and holds those that do I/O.  Does nothing after hand_close. */
void hand_turn(struct hand *hand, struct hand_turn *turn);
/* Gives the originals back.  Turns change nothing from now on, until hand_open. */
void hand_close(struct hand *hand, struct hand_done *done);
void hand_open(struct hand *hand);
/* How many groups are held. */
size_t hand_held(struct hand *hand);

#endif
