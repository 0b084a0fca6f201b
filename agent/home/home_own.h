/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the home party share. */
#ifndef IOCOM_HOME_OWN_H
#define IOCOM_HOME_OWN_H

#include "agent/home/home.h"
#include "agent/jobs/job_order.h"
#include "agent/jobs/journal.h"
#include "balancer/profile/profile.h"

struct learn_later;
struct lease_held;
struct outcomes;
struct place;
struct progress;

struct home {
	const struct base *base;
	struct home_config config;
	const struct home_ports *ports; /* of config */
	struct journal *journal;
	struct profile_store *profiles;
	struct outcomes *outcomes; /* how right the predictions were */
	unsigned hop_max;	   /* nodes that a job is offered to */
	double w_io;		   /* the setting */
	struct progress *progress; /* what running jobs have done so far */
	const struct matrix *matrix;
	struct cluster_view *view; /* the view of the matrix, which decisions look at */
	const struct skews *skews;
	uint64_t job_sequence;
	struct place *places; /* decisions under way */
	/* leases of restartable jobs that were submitted here (leases.h) */
	struct lease_held *leases;
	size_t nleases;
	struct home_watch *watches;
	struct home_moving *moves; /* under way (home_move.h) */
	struct learn_later *later; /* learn.c */
	size_t nlater;
};

/* These call the watchers. */
void home_tell_decided(const struct home *home, const struct home_decision *decision);
void home_tell_finished(const struct home *home, const char *from, const struct job_report *report);
void home_tell_ended(const struct home *home, const char *job);
void home_tell_slowed(const struct home *home, double slowdown);

/*
 * Makes the view ready for a decision, which weighs load as the controller does, with FEEDBACK.
 * Returns 0 or negative errno with the reason in ERR.
 */
int home_look(struct home *home, bool feedback, uint64_t now, struct iocom_err *err);

/* Ends decisions under way with -ECANCELED (place.c). */
void place_stop(struct home *home);

#endif
