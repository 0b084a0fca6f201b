/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel's audit log gets a record of each job that starts here (USER_START, success), that
 * is refused or fails to start (USER_START, failed), and that ends (USER_END):
 *
 *   op=iocom:job_start id=1000 acct="alice" job=n1-68fd0c2e-7 hostname=n1 addr=10.0.0.1
 *   terminal=iocom res=success
 *   op=iocom:job_end ... exit=0 | sig=9 | reason="..."
 *
 * The host name is the submitting node's, the address that of the client's stream ("?": it came
 * through the agent of this machine). The kernel adds the shim's pid and, with pam_loginuid, the
 * user as auid.
 *
 * While auditd lags behind, the kernel makes a sender of audit records sleep, for as long as a
 * minute, even if its socket does not block. So a process of its own sends each record, and
 * neither the job nor the shim waits for it. If it finds that the kernel drops the records (no
 * auditd has turned audit on), or that libaudit is missing, it leaves a file beside the jobs'
 * sockets, and for AUDIT_OFF_S no shim of this node tries again. A record that cannot be sent is
 * logged.
 */
#ifndef IOCOM_SHIM_AUDIT_H
#define IOCOM_SHIM_AUDIT_H

#include <stdbool.h>
#include <sys/types.h>

#define AUDIT_LIMIT_S	 120 /* the kernel's sleep is at most 60 s by default */
#define AUDIT_RECORD_MAX 2048
#define AUDIT_OFF_S	 60
#define AUDIT_OFF_NAME	 "audit-off" /* the file */

enum audit_what {
	AUDIT_JOB_STARTED,
	AUDIT_JOB_REFUSED, /* nothing of the job ran; `reason` says why */
	AUDIT_JOB_EXITED,  /* with status `value` */
	AUDIT_JOB_KILLED,  /* by signal `value` */
	AUDIT_JOB_LOST,	   /* iocom ended it; `reason` says why */
	AUDIT_JOB_MOVED,   /* it goes on at another node; `reason` says so */
};

struct audit_event {
	enum audit_what what;
	const char *job;  /* a valid name */
	const char *user; /* "" or NULL: not known here */
	uid_t uid;
	const char *address; /* of the client, numeric; "": not known */
	unsigned value;
	const char *reason;
};

/* The functions of libaudit that we use. */
struct audit_library {
	/* Returns a descriptor, or -1 with errno. */
	int (*open)(void);
	/* Returns NAME="VALUE", or NAME and hex digits if VALUE could be misread; free(). LENGTH
	 * 0: VALUE is a string. */
	char *(*encode)(const char *name, const char *value, unsigned length);
	/* Returns a positive number; 0 if this kernel keeps no log; negative with errno. It waits.
	 */
	int (*send)(int fd, int type, const char *message, const char *hostname,
		    const char *address, const char *terminal, int result);
};

/* Loads libaudit, which must be new enough. Returns 0 or -ENOENT. */
int audit_load(struct audit_library *library);

/* Writes EVENT's fields to OUT. Returns 0, -ENOMEM or -E2BIG. */
int audit_compose(const struct audit_event *event, const struct audit_library *library, char *out,
		  size_t size);
/* Writes the part of JOB's name that is its home node's. */
void audit_home(const char *job, char *out, size_t size);
/* Writes the numeric address of the peer of socket FD, or "". */
void audit_address(int fd, char *out, size_t size);
/*
 * Starts a process that sends EVENT once the process BEFORE (0: none) has ended, and returns at
 * once: its pid, which the caller reaps; 0: audit is off; negative errno: no process. RUN_DIR is
 * the directory of the jobs' sockets.
 */
pid_t audit_tell(const struct audit_event *event, pid_t before, const char *run_dir);
/* Waits until process PID of audit_tell has ended, at most LIMIT_MS; 0: looks once. Returns whether
 * it has. */
bool audit_told(pid_t pid, unsigned limit_ms);

#endif
