/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * PAM, where the administrator wants it: the machine's own rules say whether this
 * account may be used now (account), and something may be set up around the job
 * (session).  Service "iocom".  libpam is loaded for such jobs only.
 *
 *   cgroup made -> pam_acct_mgmt -> pam_open_session -> the job -> pam_close_session
 *
 * Modules run in the shim, which is root, keeps the session open as login and cron do,
 * and closes it when nothing of the job is left.  What they set for a process (limits,
 * priority, umask) is the job's: the shim takes its own back, and the child gets theirs.
 */
#ifndef IOCOM_SHIM_PAM_H
#define IOCOM_SHIM_PAM_H

#include <stdbool.h>
#include <sys/resource.h>

#include "iocom/err.h"
#include "agent/shim/order.h"

#define SHIM_PAM_SERVICE "iocom"
#define PAM_CLOSE_S	 60   /* a module that hangs longer when the session closes ends the shim */
#define PAM_NAMES_MAX	 1024 /* variables a session may set */

/* What a session changed for the job's first process. */
struct pam_settings {
	bool set;
	struct rlimit limits[RLIM_NLIMITS];
	int priority;
};

struct pam;

/*
 * Account, then session, for USER; the session's variables replace those of the same
 * name in ORDER's environment.  0; -EACCES: refused, with PAM's own words; -ENOENT: no
 * libpam here, or no service file; -ENOMEM.  Then nothing is open.  -ETIMEDOUT: a module
 * did not answer within ORDER's begin_ms; what it began is not undone, and the process has
 * little time left.
 */
int pam_begin(struct pam **pam, struct order *order, const char *user,
	      struct pam_settings *settings, struct iocom_err *err);
/* Closes the session.  NULL is fine. */
void pam_finish(struct pam *pam);

#endif
