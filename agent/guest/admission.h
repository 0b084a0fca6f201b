/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Admission: with its own fresh numbers, the target judges again whether another node's job can and
 * may run here (MODEL 4.6, 4.7).
 *
 *   cannot: path-missing  working directory or executable missing, or closed to the user
 *           no-user       the uid is unknown here
 *           user-slow     the name service does not answer
 *           path-slow     a file system does not answer
 *   may not: owner        the owner admits no jobs
 *            user         this user's jobs are not admitted (users.h)
 *   should not (unless forced):
 *           memory        available < what the job needs
 *           overloaded    this node's load has passed home's since home decided
 */
#ifndef IOCOM_ADMISSION_H
#define IOCOM_ADMISSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "iocom/vector.h"
#include "agent/jobs/job_order.h"
#include "agent/guest/users.h"

struct accounts;

struct admission_verdict {
	bool admitted;
	char reason[24];
	char text[256];
};

/*
 * The judgement has three steps, because the second may take as long as a file system does
 * (paths.h); each step says why it refuses.  No step is taken for a job of this machine.
 *
 * First step: the user.  On true the caller frees USER (account_free).
 */
bool admission_user(const struct job_order *order, bool accepts_jobs, struct accounts *accounts,
		    const struct users_policy *users, struct account *user,
		    struct admission_verdict *verdict);
/*
 * Second step: the paths, seen by USER.  AT: which path is being checked, for a caller that waits.
 * Callable from any thread.
 */
enum { ADMISSION_AT_CWD, ADMISSION_AT_EXECUTABLE };
bool admission_paths(const struct job_order *order, const struct account *user, atomic_int *at,
		     struct admission_verdict *verdict);
/*
 * Returns true if the paths exist, and the kernel knew without asking a disk or a server.  Never
 * waits.
 */
bool admission_paths_in_memory(const struct job_order *order, const struct account *user);
/* Third step: what the job would do to this node, whose vector is OWN. */
bool admission_loads(const struct job_order *order, const struct iocom_vector *own,
		     struct admission_verdict *verdict);

#endif
