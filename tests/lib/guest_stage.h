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
	struct iocom_vector own; /* this node's vector, as the pulse would make it */
	unsigned samples, changes;

	struct gstage_question {
		enum peer_type type;
		char node[IOCOM_NAME_MAX], job[SPEC_JOB_MAX];
		size_t reports;
		peers_answered answered; /* NULL: the question was answered */
		void *arg;
	} questions[GSTAGE_QUESTIONS]; /* the questions that the guest asked */
	size_t nquestions;
	int ask_rc; /* what the port for questions returns */

	uint64_t ticket;	   /* the guest's answer to the last question */
	bool answered;		   /* whether the guest has answered it */
	struct peer_answer answer; /* the answer */
	char said[512];		   /* the readable text that the last client got */
	bool sealed;		   /* the last client's stream has keys */
	bool client_stays;	   /* clients that come are not heard before gstage_hear */
	int client;		   /* the last one that stays */
	bool forged;		   /* credentials bind another job */
	int munged_rc;
};

extern struct gstage gstage;

/* cmocka's fixtures of one test. */
int gstage_setup(void **state);
int gstage_teardown(void **state);
/* Kills the agent and starts it again: only the journal and the shims know what was before. */
void gstage_restart(void);
/* The same, in its parts. */
void gstage_kill_agent(void);
int gstage_start_agent(void);
/* Stops the agent: open questions end in the order of agent.c. */
void gstage_stop_agent(void);

/* These let time pass; gstage_chores also runs the guest's chores once a second. */
void gstage_pass(uint64_t ms);
void gstage_chores(unsigned seconds);

/* Makes an order: "n2-1-7" is a job of user anna from node n2, at 10.0.0.2:7700, without needs. */
struct job_order gstage_order(const char *job);
/* Asks for a place, and waits for the answer. */
const struct peer_grant *gstage_admit(const struct job_order *order);
void gstage_kill(const char *job, uid_t uid, int signal);
/*
 * A client that comes with the spec of JOB. The functions below return what the guest says to it.
 */
struct gstage_client {
	uid_t uid;
	const char *node; /* NULL: this node */
	bool local;	  /* the client comes through this machine's socket */
	bool detach;
	uint64_t spool_bytes;
};
int gstage_come(const char *job, const char *nonce, const struct gstage_client *client);
/* What the client that stays was told, and it leaves. */
const char *gstage_hear(void);
/* Starts a job: it gets a place, and its client comes. */
void gstage_launch(const struct job_order *order);
/* Starts a job that runs and whose home knows that; the trace shows it as one line. */
void gstage_run_order(const struct job_order *order, pid_t pid);
void gstage_run(const char *job, pid_t pid);

/* A client comes to a job that was started before. */
struct gstage_reader {
	uid_t uid;
	const char *node;   /* NULL: this node */
	const char *nonce;  /* NULL: a new nonce */
	const char *resume; /* NULL: the client was not here before */
	bool local;
	/* NULL: a client of another node asks for one; else this one, "" is none */
	const char *ticket;
	const char *stream; /* the job that its stream is for; NULL: the same */
};
int gstage_attach(const char *job, const struct gstage_reader *reader);

/*
 * Another node asks for a ticket of JOB for UID; the trace shows a refusal.  Returns the answer, or
 * NULL if it was refused.
 */
const struct peer_attach *gstage_ticket(const char *job, uid_t uid);

/* Answers the first open question of TYPE about JOB; with NULL no answer comes in time. */
void gstage_home(enum peer_type type, const char *job, const struct peer_answer *answer);
void gstage_home_ok(enum peer_type type, const char *job);
/* Returns how many questions are open. */
size_t gstage_asked(enum peer_type type, const char *job);

/* Writes what the journal has of each job, and the counters above 0, to the trace. */
void gstage_show(void);

#endif
