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
#include "agent/gang/gangs.h"
#include "agent/guest/guest.h"
#include "agent/home/home.h"
#include "agent/jobs/journal.h"
#include "balancer/profile/profile.h"

#define PARTIES_MAX	   6
#define PARTIES_LATENCY_MS 1
#define PARTIES_UID	   65534 /* nobody, a user of every machine */
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
	struct gangs *gangs;
	struct home_watch watch;
	struct pulse_jobs jobs;
	struct iocom_vector load; /* the load without the jobs */
	uint64_t sequence;	  /* the sequence of the last published vector */
	bool runs, mute;
	bool cut;	   /* no message passes between this node and the others */
	uint64_t handling; /* the ticket of the question that is being handled */
	bool early;	   /* the answer of that question is held */
	struct peer_answer held;
};

/* A rule for some messages on the bus. */
struct bus_rule {
	const char *from, *to; /* NULL: any */
	enum peer_type type;
	bool answers; /* the rule is for answers, not for questions */
	enum {
		BUS_LOSE = 1,
		BUS_DELAY,
		BUS_TWICE,	 /* the same message is shown again after DELAY_MS */
		BUS_AGAIN,	 /* another message says the same after DELAY_MS */
		BUS_SPOIL,	 /* the answer is incomplete */
		BUS_OLD,	 /* the answer does not mention leases */
		BUS_UNREACHABLE, /* the question cannot be asked */
	} what;
	unsigned delay_ms;
	unsigned times; /* 0: always */
};

/* A client that submits jobs; TOLD counts the answers that it got. */
struct party_client {
	struct party *at;
	unsigned told;
	json_t *answer; /* NULL: there is no answer, and WHY says why */
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
	bool ask_only; /* the client only asks where the job would run */
	bool detach, named;
	unsigned tasks, per_node; /* tasks 0: no gang; per_node 0: not said */
	const char *only;	  /* NULL: any */
	bool oversubscribe, keep_going;
	const char *class_name; /* NULL: none */
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
	uint64_t numbers; /* the last number given to a call, message or ticket */
	FILE *trace, *log, *outside;
	char *trace_text, *log_text;
	size_t trace_size, log_size, log_seen;
	bool quiet;	  /* nothing is written to the trace */
	char broken[256]; /* the first broken rule of those that must always hold; "": none */
	void (*on_decided)(struct party *party);
};

/* Starts COUNT nodes: n1 is busy, and of the others a lower number means less load. */
void parties_begin(struct parties *all, unsigned count);
/* Checks that the rules that must always hold did hold, and frees all. It may be called again. */
void parties_end(struct parties *all);
/* Returns the node NAME; "n1" is the first. */
struct party *party_of(struct parties *all, const char *name);
/* Stops an agent as SIGTERM does; it sends nothing more. */
void party_stop(struct party *party);
/* A new one takes its place. */
void party_start(struct party *party);
void parties_rule(struct parties *all, const struct bus_rule *rule);
void parties_no_rules(struct parties *all);
/* Lets time pass: messages and timers, and the chores each second. */
void parties_pass(struct parties *all, unsigned ms);
/* Does what home does once a minute. */
void party_prune(struct party *party);
/* Tells PARTY's load to all nodes. */
void party_publish(struct party *party);

void party_place(struct party *party, struct party_client *client,
		 const struct party_submission *submission);
void party_leave(struct party_client *client);
void party_client_end(struct party_client *client);
/*
 * The client opens its stream at the node where its job has a place. CLASS_NAME: see shims.h.
 * Returns as guest_start does.
 */
int party_launch(struct party_client *client, const char *class_name, struct iocom_err *err);
/* The same for part NUMBER of a gang, at its node. */
int party_launch_part(struct party_client *client, unsigned number, struct iocom_err *err);
void parties_finish(struct parties *all, const char *job, uint8_t kind, uint32_t value);
/* The same with what its shim says of the end. */
void parties_fail(struct parties *all, const char *job, uint8_t kind, uint32_t value,
		  const char *text);
/* Returns a text member of the answer; "": there is none. */
const char *party_answer(const struct party_client *client, const char *key);
/* Returns "n2:owner n3:memory": the nodes that refused, in order, with their reasons. */
const char *party_refusals(const struct party_client *client);

/*
 * Returns how the journal of home or target has JOB: "failed 3 text"; "": it does not have the job.
 */
const char *party_journal(struct party *party, const char *job);
size_t party_jobs(struct party *party);

__attribute__((format(printf, 3, 4))) void parties_note(struct parties *all, const char *who,
							const char *fmt, ...);
/* Writes what the journals and counters have to the trace, and compares the trace. */
void parties_golden(struct parties *all, const char *name);

#endif
