/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The feedback controller live (WAL-FC, MODEL 3.11): the same rules as in the simulator, one
 * controller a node (control_per_node), with two outputs:
 *
 *   W_IO    from the slowdowns of jobs submitted here: each decides the next decisions by wal-fc
 *   buffer  from the slowdowns of jobs that ran here: what page cache their groups may have
 * (hand.h)
 *
 * A sample is taken every feedback_interval_s.  The rules move the buffer that they want with each
 * ended job (published, smoothed: FC's interval) or each sample (gradient, predictive: they look at
 * resources).  The buffer that is applied follows in steps:
 *
 *   error = wanted - applied
 *   too few ended jobs (feedback_jobs) since the last one:  no sample
 *   |error| <= feedback_band memory:                        nothing, and the count begins anew
 *   the same sign in feedback_persist samples in a row:     applied += error, at most feedback_step
 *                                                           memory, within [least, most]
 *
 * The first buffer is the most: what the kernel would have done.  Weights cost nothing to change
 * and move at once; after a restart they are learnt again from the journal's newest
 * FEEDBACK_RECALL slowdowns.
 *
 *   mode: off <-> dry-run <-> on, by the settings, which a reload changes.  dry-run calculates and
 *   shows all, but changes nothing.
 */
#ifndef IOCOM_FEEDBACK_H
#define IOCOM_FEEDBACK_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/guest/guest.h"
#include "iocom/vector.h"
#include "user/cgroup.h"

struct feedback;
struct journal;

#define FEEDBACK_RECALL	  256
#define FEEDBACK_JOBS_MAX 1024 /* jobs that the controller looks at */

/* What a controller of weights looks at besides slowdowns: means over the cluster, 0..1. */
struct feedback_cluster {
	double cpu_utilisation, disk_utilisation;
};

struct feedback_config {
	const struct base *base;
	struct journal *journal; /* NULL: nothing is recalled */
	const char *mounts;	 /* "/proc/self/mounts" */
	bool direct;		 /* turns run in the loop's thread: tests */
	struct {
		void *arg;
		void (*own_vector)(void *arg, struct iocom_vector *own);
		void (*cluster)(void *arg, struct feedback_cluster *out);
		size_t (*running)(void *arg, struct guest_running *out, size_t max);
	} ports;
};

/* Returns 0 or negative errno with the reason in ERR. */
int feedback_new(struct feedback **feedback, const struct feedback_config *config,
		 struct iocom_err *err);
/* Gives back what an earlier agent left changed, then begins in the settings' mode. */
void feedback_begin(struct feedback *feedback);
/* All originals come back before this returns, and nothing is changed any more.  NULL is fine. */
void feedback_stop(struct feedback *feedback);
/* After feedback_stop; parts that call it are gone.  NULL is fine. */
void feedback_free(struct feedback *feedback);
/* Once a second. */
void feedback_chores(struct feedback *feedback);
/* The settings were read again. */
void feedback_reload(struct feedback *feedback);

/* A job that was submitted here exited (home_watch). */
void feedback_submitted_slowed(void *feedback, double slowdown);
/* A job that ran here exited (guest_watch). */
void feedback_ran_slowed(void *feedback, double slowdown);
/* W_IO now, for policies with the controller. */
double feedback_w_io(const struct feedback *feedback);
/* How many jobs the controller looked at last. */
size_t feedback_jobs(const struct feedback *feedback);

/* The document of `iocom feedback`; jobs of others than UID are left out, unless it is root. */
json_t *feedback_json(struct feedback *feedback, uid_t uid);

#endif
