/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Admission: the target judges once more, with its own fresh numbers, whether a
 * job that another node wants to send can and may run here (MODEL 4.6, 4.7).
 *
 *   cannot: path-missing  working directory or executable missing, or closed to the user
 *           no-user       the uid is unknown here
 *           user-slow     ... or the name service does not answer
 *           path-slow     ... on a file system that does not answer
 *   may not: owner        the owner lets no jobs in
 *            user         this user's jobs are not let in (users.h)
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
 * The judgement in three steps, for the second may take as long as a file system does
 * (paths.h); each says why where it refuses.  At the job's own machine none is asked.
 *
 * Who: on true USER is the caller's to free (account_free).
 */
bool admission_user(const struct job_order *order, bool accepts_jobs, struct accounts *accounts,
		    const struct users_policy *users, struct account *user,
		    struct admission_verdict *verdict);
/* What is here, seen by USER.  AT: where it is, for those who wait.  From any thread. */
enum { ADMISSION_AT_CWD, ADMISSION_AT_EXECUTABLE };
bool admission_paths(const struct job_order *order, const struct account *user, atomic_int *at,
		     struct admission_verdict *verdict);
/* True: they are here, and the kernel knew without asking a disk or a server.  Never waits. */
bool admission_paths_in_memory(const struct job_order *order, const struct account *user);
/* What it would do to this node, which is OWN as of now. */
bool admission_loads(const struct job_order *order, const struct iocom_vector *own,
		     struct admission_verdict *verdict);

#endif
