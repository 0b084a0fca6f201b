/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A launcher: the first process of a gang's part.  It runs as the job's user, in the job's cgroup,
 * and starts the tasks of this node by the gang's plan (user/gang_plan.h).
 *
 *   prepare   it reads the plan, checks the command, makes ready what its kind of gang needs, and
 *             says READY
 *   wait      until the client says GO: all parts are ready; at most GANG_BEGIN_S
 *   run       it starts its tasks, says BEGUN, and waits for their ends
 *   fail      a task ended badly: it says FAILED, ends the others (TERM, after TASKS_KILL_MS KILL).
 *             Ranks that talk to each other fail by another's crash, often before it is heard of:
 *             so the others get TERM TASKS_MOMENT_MS later, and a crash until then is the reason
 *
 * Its exit status is 0 if all its tasks ended with 0, else that of the first one that did not, 143
 * if it ended by another part's failure, and 125 if it could not start them.  Tasks are in its
 * process group, so signals reach them directly; to those that have made one of their own the
 * launcher hands signals on.
 */
#ifndef IOCOM_TASKS_H
#define IOCOM_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/tasks/task_env.h"
#include "agent/tasks/task_lines.h"
#include "iocom/err.h"
#include "user/gang_plan.h"

#define TASKS_KILL_MS	 2000
#define TASKS_MOMENT_MS	 100  /* in which a task that has crashed shows itself as the reason */
#define TASKS_SILENCE_MS 2000 /* of labelled output that a task's leftovers hold open */
#define TASKS_LOST	 255  /* contact with a node was lost */
#define TASKS_FAILED	 125  /* the status when tasks could not be started */

struct tasks;

/* What a kind of gang (PMIx, PMI-1) adds to the start of tasks; members may be NULL. */
struct tasks_kind {
	/* Before READY.  PORT gets the port that part 0 listens at for the others, else stays 0. */
	int (*prepare)(struct tasks *tasks, uint16_t *port, struct iocom_err *err);
	/* After GO: part 0 is at ADDRESS ("": this machine) and PORT. */
	int (*join)(struct tasks *tasks, const char *address, uint16_t port, struct iocom_err *err);
	/* Adds what task RANK needs to ENV; *FD (-1 before) is inherited by it alone and then
	 * closed. */
	int (*task)(struct tasks *tasks, uint32_t rank, struct task_env *env, int *fd,
		    struct iocom_err *err);
	/* A task ended; STATUS is waitpid's. */
	void (*ended)(struct tasks *tasks, uint32_t rank, int status);
	/* All tasks here have ended.  Returns whether the others no longer need this part. */
	bool (*done)(struct tasks *tasks);
	/* Each turn of the loop.  Returns when it is due again, in ms of CLOCK_BOOTTIME. */
	uint64_t (*turn)(struct tasks *tasks, uint64_t now_ms);
	void (*stop)(struct tasks *tasks); /* the end, also after failures */
};

struct task {
	uint32_t rank;
	pid_t pid; /* 0: not started */
	bool ended;
	struct task_lines lines[2]; /* its labelled outputs */
};

typedef void tasks_ready(struct tasks *tasks, int fd, short events, void *arg);

struct tasks_watch {
	int fd; /* -1: removed */
	short events;
	tasks_ready *ready;
	void *arg;
};

struct tasks {
	struct gang_plan plan;
	const char *executable;
	char **argv, **env;
	int control; /* to the client, by way of the shim; -1: closed */
	const struct tasks_kind *kind;
	void *own; /* the kind's */
	struct task *list;
	uint32_t count, started, running;
	const uint32_t *ranks; /* of this part, COUNT of them; in the plan */
	struct tasks_watch *watches;
	struct pollfd *entries; /* as many */
	size_t nwatches, room;
	struct task_sink out, err; /* labelled output on its way to the shim */
	bool going;		   /* the client said GO */
	char go_address[IOCOM_ADDRESS_MAX];
	uint16_t go_port;
	bool failing, killed;
	bool told;		       /* a signal that ends tasks came from outside */
	bool termed;		       /* the tasks got TERM from here */
	bool crashed;		       /* the reason is a task here that crashed */
	uint64_t term_at_ms;	       /* when they get it, if `failing` */
	uint64_t kill_at_ms, quiet_ms; /* of CLOCK_BOOTTIME */
	bool has_status;
	int status;	     /* the exit status */
	struct rlimit files; /* the limit of open descriptors as the user had it */
	int ended_by;	     /* a signal that came when no task ran; 0 */
};

/*
 * Runs the launcher with its command line and a choice of kinds by enum gang_launch, NULL: this
 * program starts no such gangs.  Returns the exit status.
 */
int tasks_main(int argc, char **argv, const struct tasks_kind *const kinds[GANG_LAUNCHES]);

/* Calls READY when FD has EVENTS (0: not now), until tasks_unwatch.  Returns 0 or -ENOMEM. */
int tasks_watch(struct tasks *tasks, int fd, short events, tasks_ready *ready, void *arg);
void tasks_watch_events(struct tasks *tasks, int fd, short events);
void tasks_unwatch(struct tasks *tasks, int fd);
/*
 * Ends this part, and by its message the gang: RANK, here or elsewhere, ended with STATUS (as
 * waitpid's), or TEXT, a sentence, says what happened (NULL: the status says it).  Only the first
 * call counts.
 */
void tasks_fail(struct tasks *tasks, uint32_t rank, int status, const char *text);
/* An exit status as waitpid has it. */
static inline int tasks_exited(int value)
{
	return (value & 0xff) << 8;
}
/* The name of this part's node. */
static inline const char *tasks_node(const struct tasks *tasks)
{
	return tasks->plan.nodes[tasks->plan.part].name;
}

/* --- task_start.c ------------------------------------------------------------------------ */

/*
 * Raises the limit of open descriptors as far as it may be, and checks that all tasks can be
 * started.  Returns 0, or negative errno with the sentence in ERR.
 */
int tasks_check_limits(const struct tasks *tasks, struct iocom_err *err);
/* Says on stderr if tasks that are to be bound to processors cannot be. */
void tasks_say_unbound(const struct tasks *tasks);
/* Starts task I of this part.  Returns 0, or negative errno with the sentence in ERR. */
int tasks_start(struct tasks *tasks, uint32_t i, struct iocom_err *err);

#endif
