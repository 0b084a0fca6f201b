/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A guest party alone on a stage: the test plays the homes that it asks (gstage_home), the shims
 * that it starts (guest_shims.h), the clients that come, and the clock.  All that is said, and
 * what the guest does, is in the trace (trace.h).
 *
 * The users that it knows are in tests/unit/guest_accounts.h.
 */
#ifndef TEST_GUEST_STAGE_H
#define TEST_GUEST_STAGE_H

#include "agent/guest/guest.h"
#include "agent/jobs/journal.h"
#include "tests/lib/guest_shims.h"
#include "tests/lib/trace.h"

#define GSTAGE_UID	 1000 /* anna */
#define GSTAGE_QUESTIONS 512

struct gstage {
	char dir[64];
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	char jobs_dir[80], run_jobs_dir[96], database[96];
	struct journal *journal;
	struct guest *guest;
	struct iocom_vector own; /* this node's, as the pulse would tell it */
	unsigned samples, changes;

	struct gstage_question {
		enum peer_type type;
		char node[IOCOM_NAME_MAX], job[SPEC_JOB_MAX];
		size_t reports;
		peers_answered answered; /* NULL: it was answered */
		void *arg;
	} questions[GSTAGE_QUESTIONS]; /* that the guest asked */
	size_t nquestions;
	int ask_rc; /* what the port says */

	uint64_t ticket;	   /* of the last question to the guest */
	bool answered;		   /* ... and whether it was answered, */
	struct peer_answer answer; /* which is */
	char said[512];		   /* to the last client: the text that can be read in it */
	bool forged;		   /* credentials are for another job */
	int munged_rc;
};

extern struct gstage gstage;

/* cmocka's fixtures of one test. */
int gstage_setup(void **state);
int gstage_teardown(void **state);
/* The agent is killed, and started again: only the journal, and what the shims say, is left. */
void gstage_restart(void);
/* The same, in its parts. */
void gstage_kill_agent(void);
int gstage_start_agent(void);
/* An agent that stops: questions under way are ended in the order that agent.c has. */
void gstage_stop_agent(void);

/* Lets time pass; in _chores the guest's chores run once a second as well. */
void gstage_pass(uint64_t ms);
void gstage_chores(unsigned seconds);

/* "n2-1-7" is of node n2, at 10.0.0.2:7700, and of anna; it needs nothing. */
struct job_order gstage_order(const char *job);
/* Asks for a place, and waits for the answer. */
const struct peer_grant *gstage_admit(const struct job_order *order);
void gstage_kill(const char *job, uid_t uid, int signal);
/* A client comes with the spec of JOB; what the guest says to him. */
struct gstage_client {
	uid_t uid;
	const char *node; /* NULL: this one */
	bool local;	  /* at this machine's socket */
	bool detach;
	uint64_t spool_bytes;
};
int gstage_come(const char *job, const char *nonce, const struct gstage_client *client);
/* A job that has a place and whose client came. */
void gstage_launch(const struct job_order *order);
/* One that runs, as its home knows; that is traced as one line. */
void gstage_run_order(const struct job_order *order, pid_t pid);
void gstage_run(const char *job, pid_t pid);

/* A client comes to a job that was started before. */
struct gstage_reader {
	uid_t uid;
	const char *node;   /* NULL: this one */
	const char *nonce;  /* NULL: a new one */
	const char *resume; /* NULL: it was not here before */
	bool local;
};
int gstage_attach(const char *job, const struct gstage_reader *reader);

/* The first open question of TYPE about JOB is answered; NULL: nobody answers in time. */
void gstage_home(enum peer_type type, const char *job, const struct peer_answer *answer);
void gstage_home_ok(enum peer_type type, const char *job);
/* How many are open. */
size_t gstage_asked(enum peer_type type, const char *job);

/* What the journal has of each job, and the counters that count something, go to the trace. */
void gstage_show(void);

#endif
