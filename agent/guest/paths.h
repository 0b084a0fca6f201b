/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Checks whether a job's directory and executable exist here, without waiting for a file system
 * that does not answer (a dead server): a thread looks, and after PATHS_LIMIT_MS the loop goes on
 * without it.  Such a thread may hang for as long as the file system does; while PATHS_LATE_MAX of
 * them hang, or PATHS_MAX look, further questions are refused.  A user may have a hanging file
 * system of their own (FUSE): at most PATHS_LATE_OF_USER hanging checks per user count, and then
 * only this user is refused.  Users share the rest as places.h says.
 */
#ifndef IOCOM_PATHS_H
#define IOCOM_PATHS_H

#include "agent/guest/admission.h"
#include "agent/base/counters.h"
#include "agent/base/loop.h"

#define PATHS_LIMIT_MS 1000 /* less than CONTROL_TIMEOUT_MS */
#define PATHS_MAX      256
#define PATHS_LATE_MAX 10 /* checks longer than PATHS_LIMIT_MS */
/* Of these numbers, places that only root takes. */
#define PATHS_OF_ROOT	   16
#define PATHS_LATE_OF_ROOT 2
/* Per user; jobs that arrive in a burst are checked together. */
#define PATHS_OF_USER	   64
#define PATHS_LATE_OF_USER 2

struct paths;

/* VERDICT: admitted, path-missing, or path-slow. */
typedef void (*paths_done)(void *arg, const struct job_order *order,
			   const struct admission_verdict *verdict);

/* Borrows LOOP and COUNTERS.  Returns 0 or -ENOMEM. */
int paths_new(struct paths **paths, struct loop *loop, struct counters *counters);
/* Refuses the checks under way.  NULL is fine. */
void paths_free(struct paths *paths);
/* Returns how many checks are under way; LATE: how many of them hang. */
size_t paths_count(const struct paths *paths, size_t *late);
/*
 * Checks ORDER's paths as USER.  Takes what USER holds.  DONE is called once, from the loop.
 * Returns 0; with the reason in ERR: -EAGAIN there are too many or no thread, -EDQUOT too many of
 * this user (places.h), -ENOMEM.
 */
int paths_ask(struct paths *paths, const struct job_order *order, struct account *user,
	      paths_done done, void *arg, struct iocom_err *err);

#endif
