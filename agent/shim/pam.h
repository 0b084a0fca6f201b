/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * PAM, if the administrator wants it: the machine's own rules decide whether an account may be
 * used now (account), and may set something up around the job (credentials, session). The service
 * is called "iocom". The shim loads libpam only for such jobs.
 *
 *   cgroup made -> pam_acct_mgmt -> pam_setcred -> pam_open_session -> the job
 *               -> pam_close_session -> pam_setcred (delete)
 *
 * Modules run in the shim, which is root. The shim keeps the session open, as login and cron do,
 * and closes it when nothing of the job is left. Limits, priority and umask that modules set are
 * for the job, and groups that they add: the shim restores its own, and the child gets the others.
 * A session keyring that a module makes (pam_keyinit) stays the shim's until the end, because the
 * module revokes it in the process that made it; the job inherits it.
 */
#ifndef IOCOM_SHIM_PAM_H
#define IOCOM_SHIM_PAM_H

#include <stdbool.h>
#include <sys/resource.h>

#include "iocom/err.h"
#include "agent/shim/order.h"
#include "user/pam_service.h"

#define SHIM_PAM_SERVICE PAM_SERVICE_NAME
#define PAM_CLOSE_S	 60   /* a module that takes longer to close the session ends the shim */
#define PAM_NAMES_MAX	 1024 /* most variables that a session may set */

/* What a session changed for the job's first process. */
struct pam_settings {
	bool set;
	struct rlimit limits[RLIM_NLIMITS];
	int priority;
};

struct pam;
struct identity;

/*
 * Asks for account, credentials and session of IDENTITY's user. IDENTITY gets the session's limits,
 * priority and groups; the session's variables replace those of the same name in ORDER's
 * environment. Returns 0; -EACCES: PAM refused, with its own words; -ENOENT: this machine lacks
 * libpam or the service file; -EPERM; -ENOMEM. After these nothing is open. -ETIMEDOUT: a module
 * did not answer within ORDER's begin_ms; its work is not undone, and the process must end within
 * PAM_LATE_MS.
 */
int pam_begin(struct pam **pam, struct order *order, struct identity *identity,
	      struct iocom_err *err);
/* Closes the session and deletes the credentials.  NULL is fine. */
void pam_finish(struct pam *pam);

#endif
