/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Admission: the target judges once more, with its own fresh numbers, whether a
 * job that another node wants to send can and may run here (MODEL 4.6, 4.7).
 *
 *   cannot: path-missing  working directory or executable missing, or closed to the user
 *           no-user       the uid is unknown here
 *   may not: owner        the owner lets no jobs in
 *            user         this user's jobs are not let in (users.h)
 *   should not (unless forced):
 *           memory        available < what the job needs
 *           overloaded    this node's load has passed home's since home decided
 */
#ifndef IOCOM_ADMISSION_H
#define IOCOM_ADMISSION_H

#include <stdbool.h>

#include "iocom/vector.h"
#include "job_order.h"
#include "users.h"

struct admission_verdict {
	bool admitted;
	char reason[24];
	char text[256];
};

/* OWN: this node as of now.  AT_HOME: the job's own machine, which always takes it. */
void admission_judge(const struct job_order *order, const struct iocom_vector *own, bool at_home,
		     const struct users_policy *users, struct admission_verdict *verdict);

#endif
