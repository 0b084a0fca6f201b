/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A cluster in memory: nodes n1, n2, ... each with the home party and the guest party of an agent,
 * a journal and a log of its own, on one virtual clock.  What they ask each other goes as bytes
 * over a bus that a test can make slow, lossy or forgetful; what a node asks itself goes through
 * the agent's own peers.c.  Jobs are those of shims.h.
 *
 *   a question -> packed -> the bus -> the journal has its number -> the party -> commit -> answer
 *
 * All that happens is written down, with the time since the beginning, and compared with a file
 * of tests/golden (GOLDEN_UPDATE=1 rewrites it).
 */
#ifndef IOCOM_TESTS_PARTIES_H
#define IOCOM_TESTS_PARTIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/base.h"
#include "agent/cluster/peers.h"
#include "agent/guest/guest.h"
#include "agent/home/home.h"
#include "agent/jobs/journal.h"
#include "balancer/settings/profile.h"

#define PARTIES_MAX	   6
#define PARTIES_LATENCY_MS 1
#define PARTIES_UID	   65534 /* nobody: every machine has him */
#define PARTIES_RULES_MAX  8

/* One node.  A test may change `set` and `load`. */
struct party {
	struct parties *all;
	char jobs_dir[128], run_jobs_dir[128], database[128];
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct journal *journal;
	struct profile_store *profiles;
	struct peers peers;
	struct guest *guest;
	struct home *home;
	struct home_watch watch;
	struct pulse_jobs jobs;
	struct iocom_vector load; /* without the jobs */
	uint64_t sequence;	  /* of the last vector that was told */
	bool runs, mute;
	bool cut;	   /* nothing passes between it and the others */
	uint64_t handling; /* the ticket of the question that is being handled */
	bool early;	   /* ... whose answer is held */
	struct peer_answer held;
};

/* What becomes of some messages on the bus. */
struct bus_rule {
	const char *from, *to; /* NULL: any */
	enum peer_type type;
	bool answers; /* the answers to such questions, not the questions */
	enum {
		BUS_LOSE = 1,
		BUS_DELAY,
		BUS_TWICE,	 /* the same message is shown again after DELAY_MS */
		BUS_AGAIN,	 /* another message says the same after DELAY_MS */
		BUS_SPOIL,	 /* the answer is incomplete */
		BUS_OLD,	 /* the answer says nothing of leases */
		BUS_UNREACHABLE, /* the question cannot be asked */
	} what;
	unsigned delay_ms;
	unsigned times; /* 0: always */
};

/* Who submits; TOLD counts its answers. */
struct party_client {
	struct party *at;
	unsigned told;
	json_t *answer; /* or NULL and WHY */
	char why[600];
};

struct party_submission {
	uid_t uid;	  /* 0: PARTIES_UID */
	const char *node; /* NULL: any */
	const char *cwd;  /* NULL: "/" */
	const char *again;
	bool restartable;
	unsigned restarts;
	double memory_mb;
	bool home_dir;
	bool ask_only; /* not to be run */
};

struct parties {
	struct loop *loop;
	struct party nodes[PARTIES_MAX];
	unsigned count;
	struct accounts *accounts;
	char dir[64];
	uint64_t begun_ns, chores_ns; /* CLOCK_BOOTTIME */
	struct bus_rule rules[PARTIES_RULES_MAX];
	struct bus_call *calls;
	struct bus_message *messages;
	uint64_t numbers; /* given to calls, messages and tickets */
	FILE *trace, *log, *outside;
	char *trace_text, *log_text;
	size_t trace_size, log_size, log_seen;
	bool quiet;	  /* nothing is written down */
	char broken[256]; /* what must always hold, and did not; "" */
	void (*on_decided)(struct party *party);
};

/* COUNT nodes that run, n1 with much to do and the others with less the lower their number. */
void parties_begin(struct parties *all, unsigned count);
/* What must always hold did; all is freed.  Once more is fine. */
void parties_end(struct parties *all);
/* NAME, "n1" for the first. */
struct party *party_of(struct parties *all, const char *name);
/* An agent goes as SIGTERM has it; nobody hears it any more. */
void party_stop(struct party *party);
/* A new one takes its place. */
void party_start(struct party *party);
void parties_rule(struct parties *all, const struct bus_rule *rule);
void parties_no_rules(struct parties *all);
/* Time passes: messages, timers, and each second the chores. */
void parties_pass(struct parties *all, unsigned ms);
/* What home does once a minute. */
void party_prune(struct party *party);
/* PARTY's load is told to all. */
void party_publish(struct party *party);

void party_place(struct party *party, struct party_client *client,
		 const struct party_submission *submission);
void party_leave(struct party_client *client);
void party_client_end(struct party_client *client);
/* The client opens its stream where its job has a place; CLASS_NAME: see shims.h.  As guest_start.
 */
int party_launch(struct party_client *client, const char *class_name, struct iocom_err *err);
void parties_finish(struct parties *all, const char *job, uint8_t kind, uint32_t value);
/* A member of the answer that is a text; "": there is none. */
const char *party_answer(const struct party_client *client, const char *key);
/* "n2:owner n3:memory": who refused, in what order. */
const char *party_refusals(const struct party_client *client);

/* How home's, or the target's, journal has JOB: "failed 3 text"; "" it has not. */
const char *party_journal(struct party *party, const char *job);
size_t party_jobs(struct party *party);

__attribute__((format(printf, 3, 4))) void parties_note(struct parties *all, const char *who,
							const char *fmt, ...);
/* What the journals and counters say is written down, and all is compared. */
void parties_golden(struct parties *all, const char *name);

#endif
