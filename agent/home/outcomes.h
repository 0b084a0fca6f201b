/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Predictions are held to account: what home expected a job to take against what it took.  No I/O
 * of its own but the store of class profiles that it is given; no clock.
 *
 *   x   = log( measured / expected )                   the error of the prediction as it was used
 *   x_0 = log( measured / (expected / factor) )        that of the rules alone
 *
 * The factor multiplies the response r of expected = f r + c, not the way c, so x_0 is not exactly
 * the rules' own error; but where x_0 = log f, the expectation is what was measured.
 *
 * Running errors, by node and policy, of jobs that exited with 0 and of which something was
 * expected, whatever its basis: with each job the weights of the earlier ones of its pair are
 * multiplied by OUTCOMES_FADE, so that about the last 50 count.  When the agent begins they are
 * made anew from the journal.  A pair beyond PREDICTIONS_MAX takes the place of the one that had
 * no job for longest.
 *
 * Corrections, by user, class and node: only of jobs that teach (struct outcome).  A factor is for
 * the part of a job that grows with its work.  What starting a job takes does not, and is expected
 * only roughly (fixed_cost_ms at other nodes, nothing at home): up to slack_ms of the difference
 * between measured and expected says nothing of the factor, and is taken off before x and x_0 are
 * made.  A job whose response at home, by the rules alone, is below OUTCOMES_LONG slack_ms teaches
 * nothing: its response is mostly start.  Home's own response is asked because it is not a word of
 * the node where the job ran.  x_0 is cut at +-OUTCOMES_CUT, so that one wild measurement, or a
 * node that lies, moves little.  With the means m of profile.h over n jobs (m_c, n_c: of the class
 * at all nodes; m_k, n_k: at node k)
 *
 *   c   = m_c n_c / (n_c + 2)
 *   f_k = exp( c + (m_k - c) n_k / (n_k + 2) ),  f = exp( c ) for nodes without a job
 *
 * within OUTCOMES_FACTOR_LEAST and _MOST: few jobs say little, and a node is like the others until
 * its own jobs say otherwise.
 *
 * Doubts, by node, of all users' and classes' jobs that teach and were not idle: a node whose jobs
 * take far longer than expected after these corrections says more of itself than is true, or its
 * disk has become slow.  x is cut at +-OUTCOMES_DOUBT_CUT and moves the node's doubt (profile.h).
 * If a doubt reaches log OUTCOMES_BELIEVED, the node's word is not believed: its factor, for every
 * class and user, is that of the doubt times the one above.
 */
#ifndef IOCOM_OUTCOMES_H
#define IOCOM_OUTCOMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/base/counters.h"
#include "agent/base/prediction.h"
#include "agent/jobs/journal.h"
#include "balancer/profile/profile.h"
#include "iocom/err.h"
#include "iocom/rules.h"

#define OUTCOMES_FADE	      0.98
#define OUTCOMES_SLACK_MS     100.0 /* slack_ms is no less */
#define OUTCOMES_LONG	      2.0
#define OUTCOMES_CUT	      1.3862943611198906 /* log 4 */

#define OUTCOMES_FACTOR_LEAST RULES_CORRECTION_MIN
#define OUTCOMES_FACTOR_MOST  4.0
#define OUTCOMES_DOUBT_CUT    2.0794415416798357 /* log 8 */
#define OUTCOMES_BELIEVED     2.0		 /* up to this factor a node is believed */

struct outcomes;

/* A job that exited with 0; all is borrowed for the call. */
struct outcome {
	uid_t uid;
	const char *class_name, *node, *policy;
	double wall_ms;	 /* measured; journal_job */
	double slack_ms; /* by so much an expectation may be wrong, however long the job is */
	const struct journal_expectation *expected;
	/*
	 * The job was not run again, and all its needs are those of its class: needs that were told
	 * may be wrong, which is no error of the rules.
	 */
	bool teaches;
	/* Much of its time it waited for neither a processor nor the disk: that is not the node. */
	bool idle;
};

/* COUNTERS: outcomes_refused, predictions_replaced.  Returns 0 or -ENOMEM. */
int outcomes_new(struct outcomes **outcomes, struct profile_store *profiles,
		 struct counters *counters);
void outcomes_free(struct outcomes *outcomes); /* NULL is fine */
/*
 * Takes a job that has ended just now.  Does nothing if nothing was expected of it; a measured time
 * that is not positive and finite is counted as refused.  Returns 0, or negative errno of the store
 * with the reason in ERR.
 */
int outcomes_take(struct outcomes *outcomes, const struct outcome *job, struct iocom_err *err);
/* Takes a job that ended before all those that were taken so far; it teaches no correction. */
void outcomes_recall(struct outcomes *outcomes, const struct outcome *job);
/* Copies the running errors in the order of the first job; OUT has room for PREDICTIONS_MAX. */
size_t outcomes_list(const struct outcomes *outcomes, struct prediction *out);
size_t outcomes_count(const struct outcomes *outcomes);

/* f_k of the means of a class and of its jobs at a node; NODE NULL: f. */
double outcomes_factor(const struct profile_error *class_error, const struct profile_error *node);

/* Corrections for a request (struct rules_request), in ascending order of nodes. */
struct outcomes_factors {
	struct rules_correction at[PROFILE_NODES_MAX + PROFILE_DOUBTS_MAX];
	size_t count;
	double others; /* 0: nothing is known of the class, and `at` has doubts only */
	/* The nodes that are not believed, in the order of their names, and their doubts' factors.
	 */
	struct rules_correction doubts[PROFILE_DOUBTS_MAX];
	size_t ndoubts;
};
/* Returns the factor of the doubt of a node; 1: it is believed. */
double outcomes_doubt(const struct outcomes_factors *factors, uint32_t node);
/*
 * Fills OUT for UID's CLASS_NAME; INDEX_OF returns a node's place in the view, UINT32_MAX: it has
 * none, and is left out.  Returns 0, or negative errno of the store (then OUT corrects nothing).
 */
int outcomes_correct(struct outcomes *outcomes, uid_t uid, const char *class_name,
		     uint32_t (*index_of)(const void *arg, const char *node), const void *arg,
		     struct outcomes_factors *out, struct iocom_err *err);

#endif
