/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job journal, STATE_DIR/iocom.db (SQLite, WAL): what was submitted here
 * and how it was decided (home), what ran here and whether its home knows how
 * it ended (target), and small facts of this node.
 *
 *   home:    starting -> running -> exited | killed | failed | lost
 *   target:             running -> exited | killed | failed | lost; acked by home
 *
 * A job id is accepted once, ever, at a target: its row is there, or its
 * sequence is not above the high-water mark that pruning leaves per home and boot.
 *
 * A journal that cannot be written (-ENOSPC, -EIO) refuses the submission: the
 * sentence says what to do.
 *
 * A commit reaches the kernel's memory only, so that it costs little: a killed agent loses nothing,
 * a power cut the newest commits.  Whoever tells somebody what they say waits until the disk has
 * them (journal_when_durable); one sync serves all that wait.  What survives a power cut is always
 * a beginning of the sequence of commits, so what only leads to a later commit need not wait.
 */
#ifndef IOCOM_JOURNAL_H
#define IOCOM_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "iocom/vector.h"
#include "user/renewal.h"
#include "user/spec.h"

struct journal;

/* What an expectation was made from: bits of `basis`. */
#define JOURNAL_BASIS_TOLD    1 /* needs told by options */
#define JOURNAL_BASIS_LEARNED 2 /* needs learned from earlier runs of the class */

/*
 * How long home expected a job to take, from its submission to its end.  The factors are the
 * corrections (agent/home/outcomes.h) that the times contain: there_ms / there_factor is what the
 * rules alone expected, but for the way there, which no factor multiplies.
 */
struct journal_expectation {
	double there_ms, home_ms; /* at the node it was given to, and at home; 0: not known */
	double there_factor, home_factor; /* 1: no correction; 0: not known */
	int basis;
	bool balanced; /* iocom chose the node: the user did not, and it is no login or worker */
};

/* A job as listings and both tables know it; texts are borrowed for the call. */
struct journal_job {
	const char *job, *class_name, *command, *home, *node, *policy, *state;
	const char *text; /* why it failed or is lost; NULL or "" */
	uid_t uid;
	uint64_t submit_ns, start_ns, end_ns; /* 0: not yet */
	int exit_kind, exit_value;
	pid_t pid;
	bool at_home; /* listed from the home table */
	bool worker;  /* journal_submit: of iocom batch, so that nobody's last job is one */
	struct journal_expectation expectation; /* of the home table */
	/*
	 * The measured response in ms, of the home table: what its user waited for, from the
	 * submission to the end, by the clock of home; home.c says how.  0: it has not ended, or
	 * cannot be known.
	 */
	double wall_ms;
	double slowdown; /* wall_ms over the time alone (job_report.h), of the home table; 0:
			    unknown */
	/*
	 * Of the home table: the tasks of a gang, or of a part, whose gang is GANG, else "" or NULL
	 * (user/gang_name.h).  A gang has no node, and its parts are rows of their own.
	 */
	uint32_t tasks;
	const char *gang;
};

/*
 * Opens or creates PATH.  A file of an older layout is copied first and then migrated (database.h).
 * Returns 0 or negative errno with the reason in ERR.
 */
int journal_open(struct journal **journal, const char *path, struct iocom_err *err);
/* Returns the copy that this opening made before it migrated the file; "": none. */
const char *journal_backup(const struct journal *journal);
void journal_close(struct journal *journal); /* NULL is fine */
/*
 * What is written between the two reaches the file together, or not at all; one write to the disk's
 * cache instead of many.  They do not nest.  Returns 0 or negative errno: nothing of it is in the
 * journal.
 */
int journal_begin(struct journal *j, struct iocom_err *err);
int journal_commit(struct journal *j, struct iocom_err *err);
/* Returns true between journal_begin and its end. */
bool journal_is_open(const struct journal *j);
/* Commits if journal_is_open.  Returns as journal_commit. */
int journal_settle(struct journal *j, struct iocom_err *err);
/* Instead of journal_commit: nothing of it is in the journal. */
void journal_cancel(struct journal *j);

/* --- what the disk has -------------------------------------------------------- */

/* Whoever waits for the disk.  The caller's; it stays until DONE is called or it is forgotten. */
struct journal_wait {
	/* RC 0: the disk has the commits; negative errno: it is unknown whether it has them. */
	void (*done)(void *arg, int rc);
	void *arg;
	uint64_t position; /* set by journal_when_durable: the last commit that is waited for */
	bool waiting;
	struct journal_wait *next;
};

/* How the disk is asked; journal_thread.h has the agent's. */
struct journal_disk {
	/*
	 * Begins to sync what is committed, and does not wait: journal_synced is called later,
	 * from the loop.  REPAIR: a sync has failed, and the kernel may have dropped what it could
	 * not write, so that everything is to be written anew.
	 */
	void (*begin)(void *arg, bool repair);
	void *arg;
};

/*
 * From now on the journal is synced through DISK; NULL: nobody syncs it, and nobody waits (in
 * tests, and when the agent ends).  Those who wait are then forgotten.
 */
void journal_set_disk(struct journal *j, const struct journal_disk *disk);
/* Tells how the sync ended that DISK began: 0 or negative errno.  Calls those that waited for it.
 */
void journal_synced(struct journal *j, int rc);
/*
 * The number of the newest commit; a transaction that is open counts as one, and so do commits
 * between which nobody asked for the number.
 */
uint64_t journal_position(struct journal *j);
bool journal_is_durable(const struct journal *j, uint64_t position);
/*
 * Waits for all that is committed, and for the open transaction, even if it fails then.  Returns
 * true: WAIT's `done` is called later, once; false: the disk has all, and it is not called.
 */
bool journal_when_durable(struct journal *j, struct journal_wait *wait);
/* WAIT is not called any more.  Fine if it does not wait. */
void journal_forget(struct journal *j, struct journal_wait *wait);
/* How many rows were ever changed: whether a handler wrote anything. */
uint64_t journal_changes(const struct journal *j);

/* As home. */
int journal_submit(struct journal *j, const struct journal_job *job, struct iocom_err *err);
/*
 * PLACE: the answer document, what `iocom explain` prints.  EXPECTED: what home expects of the job
 * there; NULL: nothing.
 */
int journal_placed(struct journal *j, const char *job, const char *node, const char *place,
		   const struct journal_expectation *expected, struct iocom_err *err);
int journal_home_state(struct journal *j, const char *job, const char *state, uint64_t start_ns,
		       pid_t pid, struct iocom_err *err);
/*
 * Fails at END_NS those that an earlier agent of NODE submitted and placed nowhere, or at NODE
 * itself, whose part of the journal knows nothing of them: what their start would need was in that
 * agent's memory.  Returns how many, or negative errno with the reason in ERR.
 */
int journal_home_unbegun(struct journal *j, const char *node, uint64_t end_ns,
			 struct iocom_err *err);
/*
 * Fails those that were placed before BEFORE_NS, a day before it if their data goes along, and
 * never started.  Returns how many.
 */
int journal_home_stale(struct journal *j, uint64_t before_ns);
/*
 * Calls lost what was submitted before BEFORE_NS and runs at a node for which GONE says
 * true; how many.  A report that comes all the same corrects it.
 */
int journal_home_lost(struct journal *j, uint64_t before_ns,
		      bool (*gone)(void *arg, const char *node), void *arg);
/* JOB's `wall_ms` and `slowdown` are kept with its end. */
int journal_home_end(struct journal *j, const struct journal_job *job, struct iocom_err *err);
/* What home wants to know of a job when it has ended, to compare it with what was expected. */
struct journal_expected {
	uint64_t submit_ns; /* CLOCK_REALTIME of home */
	char policy[32];
	struct journal_expectation expectation;
	/* placement_ask, from the kept decision; below 0: unknown */
	int64_t input_bytes, input_id;
	char shared_server[IOCOM_NAME_MAX];
};
/* Returns 0, -ENOENT, -EIO. */
int journal_home_expected(struct journal *j, const char *job, struct journal_expected *out,
			  struct iocom_err *err);

/* --- gangs: journal_gang.c ------------------------------------------------------------- */

/* Calls EACH for the parts of GANG, in the order of their numbers.  Returns 0 or -EIO. */
int journal_gang_parts(struct journal *j, const char *gang,
		       void (*each)(void *arg, const struct journal_job *job), void *arg);
/*
 * Calls EACH for the gangs that have not ended, or that have a part that has not.  Returns 0 or
 * -EIO.
 */
int journal_gangs(struct journal *j, void (*each)(void *arg, const struct journal_job *job),
		  void *arg);
/*
 * Writes why GANG is to end, and how that is called: KIND and VALUE as of a job's end.  Its parts
 * may still run, and then it goes on.
 */
int journal_gang_fails(struct journal *j, const char *gang, int kind, int value, const char *text,
		       struct iocom_err *err);

/*
 * The moves of a job that was submitted here (journal_move.c).  A move is `asked` and then, once,
 * `resumed` (the job goes on at TARGET) or `aborted` (it stays at SOURCE).
 */
struct journal_move {
	uint64_t number; /* 1 is a job's first */
	char source[IOCOM_NAME_MAX], target[IOCOM_NAME_MAX];
	char state[12];
	uint64_t asked_ns, decided_ns; /* CLOCK_REALTIME; 0: not yet */
	uint64_t frozen_ms, dump_ms, bytes;
	char text[256]; /* why it was aborted */
	/* Who asked: "" a user, a policy's name, or "owner"; and what a policy expected (2.2, 2.4).
	 */
	char cause[32];
	double here_ms, there_ms, cost_ms; /* 0: not known */
};
/* Notes that JOB is to move.  Fills MOVE's number.  Returns 0 or negative errno. */
int journal_move_ask(struct journal *j, const char *job, struct journal_move *move,
		     struct iocom_err *err);
/* Notes that MOVE of JOB, which is not decided, goes to its target, and not to another node. */
int journal_move_turn(struct journal *j, const char *job, const struct journal_move *move,
		      struct iocom_err *err);
/*
 * Decides MOVE of JOB, whose members say how: the one decision.  Returns 0: it is decided so now,
 * and a job that is resumed is at its target; -EALREADY: it was decided before, or is not known.
 */
int journal_move_decide(struct journal *j, const char *job, const struct journal_move *move,
			struct iocom_err *err);
/* Returns move NUMBER of JOB, 0: its last; -ENOENT. */
int journal_move_get(struct journal *j, const char *job, uint64_t number, struct journal_move *move,
		     struct iocom_err *err);
/* Calls EACH for the moves of JOB, the first one first. */
int journal_moves(struct journal *j, const char *job,
		  void (*each)(void *arg, const struct journal_move *move), void *arg);
/*
 * Corrects a decision: MOVE of JOB, which was resumed, is aborted after all, because its target has
 * shown that nothing of it ran there, and its source holds it still.  Returns as
 * journal_move_decide.
 */
int journal_move_undo(struct journal *j, const char *job, const struct journal_move *move,
		      struct iocom_err *err);
/* The state of a job at a node where it came and never ran: it may come again. */
#define JOURNAL_STAYED "stayed"
/* Of a job that was here and has left, and may come again. */
int journal_left(struct journal *j, const char *job, uint64_t end_ns, const char *text,
		 struct iocom_err *err);
/* Returns whether UID's job (0: anybody's) was here, has left, and has not come again. */
bool journal_has_left(struct journal *j, const char *job, uid_t uid);
/*
 * The same as journal_accept, of a job that comes from another node.  It may have been lost here,
 * with nothing left of it, on an earlier way: its home knows where it runs.
 */
int journal_arrive(struct journal *j, const struct journal_job *job, const void *order,
		   size_t length, struct iocom_err *err);

/* A job that was submitted here and has ended; the texts are borrowed for the call. */
struct journal_outcome {
	const char *job, *class_name, *policy, *node, *home;
	uid_t uid;
	uint64_t submit_ns, end_ns;
	double wall_ms, slowdown;	      /* journal_job */
	double expected_ms, expected_home_ms; /* journal_expectation; 0: not known */
	double there_factor, home_factor;
	int basis;
	bool balanced, moved; /* moved: it ran at another node than home */
	int exit_kind, exit_value;
};
#define JOURNAL_OUTCOMES_MAX 10000
/*
 * Calls EACH for the jobs that were submitted here since SINCE_NS (CLOCK_REALTIME), have ended,
 * and have a measured response, also those of which nothing was expected, but no gangs; newest
 * first, at most JOURNAL_OUTCOMES_MAX.  UID -1: everybody's.  Returns 0 or -EIO.
 */
int journal_outcomes(struct journal *j, uint64_t since_ns, uid_t uid,
		     void (*each)(void *arg, const struct journal_outcome *outcome), void *arg);
/* Where a page of outcomes begins: behind JOB, which was submitted at SUBMIT_NS. */
struct journal_mark {
	uint64_t submit_ns; /* 0: at the newest */
	const char *job;
};
/* Does the same for at most MAX jobs from FROM on. */
int journal_outcomes_from(struct journal *j, uint64_t since_ns, uid_t uid,
			  const struct journal_mark *from, size_t max,
			  void (*each)(void *arg, const struct journal_outcome *outcome),
			  void *arg);
/* The node a job was placed at, its owner and class.  Returns 0 or -ENOENT, -EIO. */
int journal_home_get(struct journal *j, const char *job, char node[IOCOM_NAME_MAX], uid_t *uid,
		     char class_name[64], bool *ended, struct iocom_err *err);
/* What JOB's node said last of what its ranks sent and received (user/exchange/exchange.h). */
int journal_talk_put(struct journal *j, const char *job, const void *report, size_t length,
		     struct iocom_err *err);
/* REPORT is malloc'ed.  Returns 0; -ENOENT: nothing is known; -EIO, -ENOMEM. */
int journal_talk_get(struct journal *j, const char *job, void **report, size_t *length,
		     struct iocom_err *err);
/* JOB "last" means UID's newest job.  TEXT is malloc'ed.  Returns 0, -ENOENT, -EIO. */
int journal_place(struct journal *j, const char *job, uid_t uid, char **text, uid_t *owner,
		  struct iocom_err *err);

/*
 * Attempts of restartable jobs (leases.h).  A row of NEXT "" holds its lease; NEXT is set
 * once, to the attempt that follows: from then on it is fenced.
 */
struct journal_lease {
	char first[SPEC_JOB_MAX], next[SPEC_JOB_MAX], node[IOCOM_NAME_MAX], state[16];
	uint32_t attempt, restarts, lease_ms;
	uid_t uid;
	int exit_kind, exit_value;
	uint64_t end_ns; /* CLOCK_REALTIME */
	bool ended;	 /* the job's end was told */
};
int journal_lease_begin(struct journal *j, const char *job, const char *first, uint32_t attempt,
			uint32_t restarts, uint32_t lease_ms, const uint8_t secret[RENEWAL_SECRET],
			struct iocom_err *err);
/* Fences JOB, which ends as lost where no end was told.  Returns 0; -ESTALE fenced before; -EIO. */
int journal_lease_fence(struct journal *j, const char *job, const char *next, uint64_t now_ns,
			struct iocom_err *err);
/* Returns 0; -ENOENT: there is no restartable job of that name; -EIO. */
int journal_lease_get(struct journal *j, const char *job, struct journal_lease *lease,
		      struct iocom_err *err);
/* Calls EACH for the leases of jobs that are not over and were placed at another node than OWN. */
int journal_leases(struct journal *j, const char *own,
		   void (*each)(void *arg, const char *job, uid_t uid, uint32_t lease_ms,
				const uint8_t *secret /* NULL: an older build wrote it */),
		   void *arg, struct iocom_err *err);
/*
 * Replaces JOB by the last attempt that followed it, if there is one.  Returns how many followed;
 * -EIO.
 */
int journal_lease_last(struct journal *j, char job[SPEC_JOB_MAX], struct iocom_err *err);
/* Returns 0; -ENOENT: there is no lease of that name, or none with a secret. */
int journal_lease_secret(struct journal *j, const char *job, uint8_t secret[RENEWAL_SECRET],
			 struct iocom_err *err);
/*
 * The job has moved: from now on a shim with SECRET renews its lease, and no other.  Returns 0;
 * -EIO.
 */
int journal_lease_hand_on(struct journal *j, const char *job, const uint8_t secret[RENEWAL_SECRET],
			  struct iocom_err *err);
/*
 * Notes that the shim with that secret used NUMBER.  Returns 0; -EALREADY: it is not larger than
 * those before; -EIO.
 */
int journal_lease_number(struct journal *j, const char *job, uint64_t number,
			 struct iocom_err *err);

/* Functions of the target.  ORDER is the admission message, which is kept for a restart. */
#define JOURNAL_E_SEEN 1
/* Returns 0; JOURNAL_E_SEEN: this id was accepted before; negative errno. */
int journal_accept(struct journal *j, const struct journal_job *job, const void *order,
		   size_t length, struct iocom_err *err);
int journal_started(struct journal *j, const char *job, uint64_t start_ns, pid_t pid,
		    uint64_t cgroup_id, struct iocom_err *err);
/* REPORT is what home must be told. */
int journal_end(struct journal *j, const struct journal_job *job, const void *report, size_t length,
		struct iocom_err *err);
int journal_acked(struct journal *j, const char *job, struct iocom_err *err);
/*
 * Ended jobs whose home has not acknowledged, at most MAX, oldest first; the next call
 * goes on behind them, so that a home that is gone does not keep the others waiting.
 */
int journal_pending(struct journal *j, size_t max,
		    void (*each)(void *arg, const char *job, const char *home, const void *order,
				 size_t order_length, const void *report, size_t length),
		    void *arg);
/* Calls EACH for the jobs that were running when the agent last looked. */
int journal_unfinished(struct journal *j,
		       void (*each)(void *arg, const char *job, uint64_t start_ns,
				    uint64_t cgroup_id, const void *order, size_t length),
		       void *arg);

/* Newest first, both tables (home first, each job once); UID -1: everybody's. */
int journal_list(struct journal *j, uid_t uid, bool ended_too, size_t max,
		 void (*each)(void *arg, const struct journal_job *job), void *arg);

/*
 * Does the same for the jobs, ended ones too, whose names fit PATTERN (a glob of SQLite), the
 * newest MAX.
 */
int journal_named(struct journal *j, uid_t uid, const char *pattern, size_t max,
		  void (*each)(void *arg, const struct journal_job *job), void *arg);

/*
 * One job, by the home table first; "last" is UID's newest of those submitted here. EACH is called
 * once or not at all.  Returns 0 or -EIO.
 */
int journal_find(struct journal *j, const char *job, uid_t uid,
		 void (*each)(void *arg, const struct journal_job *job), void *arg);
/* Puts the name of UID's newest job, if there is one, in place of JOB if that is "last".  As above.
 */
int journal_last(struct journal *j, uid_t uid, char job[SPEC_JOB_MAX]);

/*
 * Messages of other agents that were obeyed, by their sender's name and number, for as long as
 * their credentials could be shown again; they outlive the agent, munged's own memory does not
 * outlive munged.  Returns 0; JOURNAL_E_SEEN: obeyed before; negative errno.
 */
int journal_nonce(struct journal *j, const char *from, uint64_t id, uint64_t now_s, uint64_t keep_s,
		  struct iocom_err *err);

/* A fact is a number; it is 0 if it is absent. */
double journal_fact(struct journal *j, const char *name);
int journal_set_fact(struct journal *j, const char *name, double value);
/*
 * Keeps the newest KEEP ended jobs that are younger than OLDEST_NS.  A report that its home has not
 * acknowledged for OLDEST_NS is given up.
 */
int journal_prune(struct journal *j, uint32_t keep, uint64_t oldest_ns, struct iocom_err *err);

/* Splits "HOME-BOOT-SEQUENCE", or that of a part's gang.  Returns 0 or -EINVAL. */
int journal_split(const char *job, char source[SPEC_JOB_MAX], uint64_t *sequence);

#define JOURNAL_MARKS_MAX 10000 /* homes' starts whose high-water marks are kept */
struct journal_rows {
	uint64_t home, target, marks, nonces;
};
/* How many rows there are; 0 for what cannot be read. */
void journal_rows(struct journal *j, struct journal_rows *rows);

#endif
