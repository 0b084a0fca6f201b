/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the client of a gang decides while its parts start, run and end.  It has no clock and no
 * descriptor: events come in with the time, and what is to be sent goes out by `send`.  A part is
 *
 *   starting   until its launcher says READY
 *   ready      all parts are: each gets GO, with the place of part 0
 *   begun      its tasks run
 *   ended      its worker process has ended
 *
 * The first failure counts.  Unless --keep-going says otherwise, it ends the other parts: TERM at
 * once, KILL after GANG_KILL_MS, and after GANG_LEAVE_MS more we wait for nobody.
 */
#ifndef IOCOM_GANG_WATCH_H
#define IOCOM_GANG_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "balancer/view/gang_answer.h"
#include "user/gang_plan.h"

#define GANG_KILL_MS  2500 /* launchers kill their own tasks after 2 s */
#define GANG_LEAVE_MS 5000
#define GANG_QUIET_MS                                                                              \
	500 /* a part that ends without a word is explained by another's until then                \
	     */

/* Packets of two bytes from the client's main process to a part's worker; others are messages for
 * the launcher, whose first byte is never 0 or 1. */
enum gang_order { GANG_ORDER_SIGNAL = 0 /* and its number */, GANG_ORDER_LEAVE = 1 };
#define GANG_ORDER 2 /* bytes */

enum gang_part_state { GANG_PART_STARTING, GANG_PART_READY, GANG_PART_BEGUN, GANG_PART_ENDED };

enum gang_failure_kind {
	GANG_FINE,
	GANG_FAILED_RANK,    /* its launcher said so */
	GANG_FAILED_PART,    /* it ended, and its launcher said nothing */
	GANG_FAILED_LATE,    /* not all parts were ready in time */
	GANG_FAILED_STOPPED, /* a signal came before all had begun */
	GANG_TAKEN,	     /* another client has the job now: it goes on without us */
};

/* How a part ended, as its worker reports it. */
struct gang_end {
	int status;		/* the worker's exit status */
	bool lost;		/* contact was lost */
	bool taken;		/* another client took the part */
	bool exited, signalled; /* a launcher ran, and ended so with VALUE */
	int value;
	const char *text; /* a sentence; "": none */
};

struct gang_failure {
	enum gang_failure_kind kind;
	uint32_t part; /* which told of it, or was it */
	uint32_t at;   /* the part where it happened */
	uint32_t rank;
	bool began; /* the rank's part had begun */
	bool signalled;
	bool crash;	/* others fail by it, and may have said so before */
	bool follows;	/* it may only follow from what happened to another part */
	uint32_t value; /* a status or a signal */
	int status;	/* the exit status of the client */
	bool whole;	/* `text` says of the others, too, what became of them */
	char text[512]; /* says what happened better than the numbers; "": nothing does */
};

struct gang_watch {
	const struct gang_answer *gang;
	bool keep_going;
	enum gang_part_state *parts;
	uint32_t ready, begun, ended; /* how many have been so */
	uint16_t port;		      /* at which part 0 listens */
	char address[IOCOM_ADDRESS_MAX];
	struct gang_failure failure; /* the first */
	struct gang_failure quiet;   /* which may follow from another */
	uint64_t quiet_ms;	     /* when that counts as the failure; 0: there is none */
	bool ending;		     /* all parts were told to end */
	int stopped;		     /* the first signal that stops programs; 0: none came */
	uint64_t until_ms;	     /* all must be ready, then begun, by then; 0: they are */
	uint64_t kill_ms, leave_ms;  /* when to send KILL, when to leave; 0: not to be done */
	bool leave;		     /* nobody is waited for any longer */
	void (*send)(void *arg, uint32_t part, const void *data, size_t length);
	void *arg;
};

/*
 * Begins at NOW_MS; ADDRESS is where the other nodes reach part 0.  GANG is borrowed; the caller
 * sets keep_going, send and arg.  Returns 0 or -ENOMEM.
 */
int gang_watch_init(struct gang_watch *watch, const struct gang_answer *gang, const char *address,
		    uint64_t now_ms);
void gang_watch_fini(struct gang_watch *watch);
/* The launcher of PART says something. */
void gang_watch_packet(struct gang_watch *watch, uint32_t part, const void *data, size_t length,
		       uint64_t now_ms);
void gang_watch_ended(struct gang_watch *watch, uint32_t part, const struct gang_end *end,
		      uint64_t now_ms);
/* This program got SIGNAL, which is for all tasks. */
void gang_watch_signal(struct gang_watch *watch, int signal, uint64_t now_ms);
/* Does what is due.  Returns the milliseconds until something is; -1: nothing will be. */
int gang_watch_time(struct gang_watch *watch, uint64_t now_ms);
/* Sends ORDER, with VALUE, to all parts that have not ended. */
void gang_watch_order(struct gang_watch *watch, enum gang_order order, int value);
/* All parts have begun, and nothing ends them. */
static inline bool gang_watch_runs(const struct gang_watch *watch)
{
	return watch->begun == watch->gang->nparts && !watch->ending;
}
/*
 * Returns whether what failed may only follow from what another agent did: a signal that ends
 * programs came from outside, or contact was lost.
 */
bool gang_watch_follows(const struct gang_watch *watch);
/*
 * Writes what failed as a sentence.  WORD is "rank" or "task".  "" if nothing did, or if it is what
 * our own signal asked for, or, UNREAD, what the reader of our output did by leaving.
 */
void gang_watch_sentence(const struct gang_watch *watch, const char *word, bool unread, char *out,
			 size_t size);

#endif
