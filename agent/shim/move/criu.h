/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Checkpoint and restore of a migratable job by criu(8), a program of its own.
 *
 *   dump      the job is frozen; criu writes its images, and the job stays as it is, frozen
 *   restore   criu makes the job's processes from images, in a mount namespace of their own.  They
 *             do not run yet: iocom-hold (agent/init/hold.h) keeps criu waiting until somebody says
 *             "go", and criu ends the processes if nobody does
 *
 * criu is root's; the images are the memory of the job and belong into a directory of root alone.
 * It works in the job's mount namespace, where /proc shows the node's processes, too; for a job
 * that is not root's, both (agent/init/cover_proc.h).
 */
#ifndef IOCOM_SHIM_CRIU_H
#define IOCOM_SHIM_CRIU_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "user/cgroup.h"

#define CRIU_LEAST    40000 /* 4.0: older ones fail on kernels of today */
#define CRIU_NAME_MAX 48

struct criu {
	char program[PATH_MAX];
	unsigned version; /* 40101 is 4.1.1 */
	bool breakpoints; /* the processor's work here (breakpoint.h) */
};

/*
 * Asks PROGRAM ("": criu of /usr/sbin or /usr/local/sbin) for its version.  Returns 0; -ENOENT: it
 * is not there; -EPROTONOSUPPORT: it is too old; -EPROTO: it does not answer as criu does.
 */
int criu_find(struct criu *criu, const char *program, struct iocom_err *err);

/*
 * Waits for child PID until UNTIL_MS (CLOCK_BOOTTIME), then kills it and waits for a moment more.
 * Returns its wait status, or -ETIMEDOUT.
 */
int criu_wait(pid_t pid, uint64_t until_ms);

/* A pipe of the job's, or its terminal, whose other end the shim has: what criu calls it, such as
 * "pipe:[81]". */
struct criu_pipe {
	int fd;
	char name[CRIU_NAME_MAX];
};
/* Fills PIPE's name with what descriptor FD of process PID is.  Returns 0 or negative errno. */
int criu_pipe_name(struct criu_pipe *pipe, pid_t pid, int fd);
/* Writes what criu calls the terminal that FD is the job's end of.  Returns as above. */
int criu_tty_name(char name[CRIU_NAME_MAX], int fd);

/* The job of user UID with first process INIT, whose cgroup is at path GROUP. */
struct criu_job {
	pid_t init;
	uid_t uid;
	const char *group;
	const char *tty; /* what criu calls its terminal; "" or NULL: it has none */
	/* Of its memory only what has changed since these images, a path from DIR; NULL: all of it.
	 */
	const char *previous;
};
/*
 * Writes the images of JOB, whose cgroup is frozen, to DIR within LIMIT_MS.  Returns 0; -ETIMEDOUT;
 * -ENOTSUP: the job has something that cannot be saved, which ERR names; other negative errno.  ERR
 * has no sentence if criu was killed.
 */
int criu_dump(const struct criu *criu, const struct criu_job *job, const char *dir,
	      unsigned limit_ms, struct iocom_err *err);
/*
 * Writes the memory of a job that runs to DIR, as above, and lets the kernel note what it changes
 * from then on.  criu stops the job for a moment only.  Of the images of JOB's previous ones it
 * needs all but the contents of the pages.
 */
int criu_predump(const struct criu *criu, const struct criu_job *job, const char *dir,
		 unsigned limit_ms, struct iocom_err *err);

/*
 * For who finds that a dump's processes were killed, when none of them runs any more.  The first
 * takes the node's /proc from the job's again.  The second returns whether criu's own code is in a
 * process of the cgroup at path GROUP, which then cannot go on as it was.
 */
void criu_bare_proc(pid_t init);
bool criu_is_inside(const char *group);

/*
 * Starts to restore the images of DIR: criu and all that it makes are in GROUP, and connects to
 * the socket HOLD when all is there (agent/init/hold.h).  PIPES are the ends that the job gets.
 * TTY is the path of the terminal of its first process's session ("": none).  Returns criu's pid or
 * negative errno.
 */
pid_t criu_restore(const struct criu *criu, const char *dir, const struct cgroup *group,
		   const struct criu_pipe *pipes, size_t npipes, const char *tty, const char *hold,
		   struct iocom_err *err);
/* Explains a restore that failed, from its log in DIR. */
void criu_restore_explain(const char *dir, struct iocom_err *err);

#endif
