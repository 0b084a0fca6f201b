/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The home party: jobs that are submitted at this node, wherever they run.
 *
 *   place: decide (rules) -> ask guests for admission -> write the journal -> answer the client
 *
 * It asks guests (peer_message.h: admit) through the port `ask` and answers their questions
 * (started, progress, done, renew, attach).  It knows nothing of the guest party of its own node:
 * for a job that runs at home it uses the same port, which is short-circuited (peers.h).
 */
#ifndef IOCOM_HOME_H
#define IOCOM_HOME_H

#include <jansson.h>
#include <msgpack.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/base/prediction.h"
#include "agent/cluster/cluster_view.h"
#include "agent/cluster/peers.h"
#include "user/renewal.h"

struct home;
struct journal;
struct profile_store;
struct view_decision;

struct home_ports {
	void *arg;
	/* fills OWN with the vector as of now, with all leases */
	void (*own_vector)(void *arg, struct iocom_vector *own);
	/* Returns true if the local munged does not answer, so every node looks silent. */
	bool (*mute)(void *arg);
	peers_asker ask;
	void *ask_arg;
	/* A deferred answer to another node's question, with ask_arg; the same as peers_answer. */
	void (*answer)(void *arg, uint64_t ticket, enum peer_type type,
		       const struct peer_answer *answer);
	/* W_IO as the feedback controller has it, for policies with one; NULL: the setting's. */
	double (*w_io)(void *arg);
};

struct cluster_view;

struct home_config {
	const struct base *base;
	struct journal *journal;
	struct profile_store *profiles;
	struct matrix *matrix; /* home watches it (cluster_view.h) */
	const struct skews *skews;
	struct home_ports ports;
};

/* A decision made here; all members are borrowed. */
struct home_decision {
	const struct job_order *order;
	const struct rules_request *request;
	const struct cluster_view *view; /* the view on which the decision was made */
	uint64_t seed;
	const struct view_decision *decision;
	bool run;			/* the job was submitted, not only asked about */
	const struct rules_port *ports; /* of a gang: one for each node of the view; NULL: none */
};

/* Observers of this party; members may be NULL. */
struct home_watch {
	void (*decided)(void *arg, const struct home_decision *decision);
	/* A job that was submitted here has begun. */
	void (*started)(void *arg, const char *job);
	/* A job that was submitted here ended at node FROM. */
	void (*finished)(void *arg, const char *from, const struct job_report *report);
	/*
	 * Called when the journal has the end of JOB; NULL: the end of several jobs that never
	 * started.
	 */
	void (*ended)(void *arg, const char *job);
	/* A job that was submitted here exited; it took SLOWDOWN times as long as alone. */
	void (*slowed)(void *arg, double slowdown);
	void *arg;
	struct home_watch *next;
};

/* Returns 0 or -ENOMEM.  The configuration is copied; what it points to is borrowed. */
int home_new(struct home **home, const struct home_config *config, struct iocom_err *err);
/*
 * Loads the leases that an earlier agent gave, and how right its predictions were.  Returns 0 or
 * negative errno with the reason in ERR.
 */
int home_load(struct home *home, struct iocom_err *err);
void home_free(struct home *home);
/* WATCH is the caller's and stays until home_free. */
void home_watch(struct home *home, struct home_watch *watch);
/* Once a second: drops leases that are over. */
void home_chores(struct home *home);
/* Marks jobs lost that never started or ran at nodes that are gone; prunes the journal. */
void home_prune(struct home *home);

/* The view for a decision now, as home's own has it; with FEEDBACK: weighed as the controller does.
 */
struct cluster_view *home_view(struct home *home, bool feedback);

/* --- submissions ------------------------------------------------------------- */

/*
 * Gets the result of a submission once: ANSWER (the callee's), or NULL and WHY.  If the request has
 * a spec and the job is placed at this node, the journal's transaction is still open: the callee
 * starts the job (guest_start_placed), which ends it.
 */
typedef void (*home_placed)(void *arg, json_t *answer, const char *why);
/* Decides REQUEST (borrowed) of UID and, if it is to run, finds a place for it. */
void home_place(struct home *home, uid_t uid, const msgpack_object *request, home_placed placed,
		void *arg);
/* Call it when the client of ARG has left: PLACED is not called. */
void home_forget(struct home *home, const void *arg);

/* --- questions of guests ----------------------------------------------------- */

/* peers_handlers */
int home_on_started(void *home, const struct peer_request *request, uint64_t ticket,
		    struct peer_answer *answer);
int home_on_done(void *home, const struct peer_request *request, uint64_t ticket,
		 struct peer_answer *answer);
int home_on_progress(void *home, const struct peer_request *request, uint64_t ticket,
		     struct peer_answer *answer);
int home_on_renew(void *home, const struct peer_request *request, uint64_t ticket,
		  struct peer_answer *answer);
/* Another node asks for a client that wants to attach: the node where the job is gives a ticket. */
int home_on_attach(void *home, const struct peer_request *request, uint64_t ticket,
		   struct peer_answer *answer);
/*
 * Handles a shim's renewal (FRAME_RENEW's payload); ANSWER is FRAME_RENEWED's.  Returns 0; negative
 * errno with the reason in ERR: no shim of a job with a lease from here sent it, or it is a replay.
 */
int home_renew(void *home, const void *payload, uint32_t length, uint8_t answer[RENEWAL_ANSWER],
	       struct iocom_err *err);

/* --- what others may know ---------------------------------------------------- */

/* Returns true if JOB was lost so recently that the waiting `iocom run` may still restart it. */
bool home_may_follow(const struct home *home, const char *job);

/* Returns whether JOB's node said last that a signal has stopped it. */
bool home_is_stopped(const struct home *home, const char *job);

struct home_counts {
	size_t leases, charges, predictions;
	size_t to_learn; /* runs that wait for the class profiles, which are locked */
	size_t moves;	 /* jobs on their way */
	size_t progress; /* running jobs that say what they have done so far */
	uint64_t charges_lost;
	uint64_t vectors_left_out; /* cluster_view_left_out */
};
void home_count(const struct home *home, struct home_counts *counts);
/*
 * How right the predictions of response times were, by node and policy (outcomes.h).  Returns how
 * many; OUT has room for PREDICTIONS_MAX.
 */
size_t home_predictions(const struct home *home, struct prediction *out);

#endif
