/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * PAM, if the administrator wants it: the machine's own rules decide whether an account may be
 * used now (account), and may set something up around the job (session). The service is called
 * "iocom". The shim loads libpam only for such jobs.
 *
 *   cgroup made -> pam_acct_mgmt -> pam_open_session -> the job -> pam_close_session
 *
 * Modules run in the shim, which is root. The shim keeps the session open, as login and cron do,
 * and closes it when nothing of the job is left. Limits, priority and umask that modules set are
 * for the job: the shim restores its own, and the child gets the others.
 */
#ifndef IOCOM_SHIM_PAM_H
#define IOCOM_SHIM_PAM_H

#include <stdbool.h>
#include <sys/resource.h>

#include "iocom/err.h"
#include "agent/shim/order.h"

#define SHIM_PAM_SERVICE "iocom"
#define PAM_CLOSE_S	 60   /* a module that takes longer to close the session ends the shim */
#define PAM_NAMES_MAX	 1024 /* most variables that a session may set */

/* What a session changed for the job's first process. */
struct pam_settings {
	bool set;
	struct rlimit limits[RLIM_NLIMITS];
	int priority;
};

struct pam;

/*
 * Asks for account and session of USER. The session's variables replace those of the same name
 * in ORDER's environment. Returns 0; -EACCES: PAM refused, with its own words; -ENOENT: this
 * machine lacks libpam or the service file; -ENOMEM. After these nothing is open. -ETIMEDOUT: a
 * module did not answer within ORDER's begin_ms; its work is not undone, and the process must
 * end within PAM_LATE_MS.
 */
int pam_begin(struct pam **pam, struct order *order, const char *user,
	      struct pam_settings *settings, struct iocom_err *err);
/* Closes the session.  NULL is fine. */
void pam_finish(struct pam *pam);

#endif
