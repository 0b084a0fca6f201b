/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Serves this machine's programs: each request of the CLI (clients.h) has a function that asks the
 * parts below and answers its client.  A new request needs a handler and a row in requests.c.
 */
#ifndef IOCOM_FRONT_H
#define IOCOM_FRONT_H

#include <jansson.h>
#include <msgpack.h>

#include "agent/base/base.h"
#include "agent/cluster/peers.h"
#include "agent/front/clients.h"
#include "agent/gang/gangs.h"
#include "agent/guest/guest.h"
#include "agent/home/home.h"
#include "agent/jobs/journal.h"
#include "agent/measure/machine_time.h"
#include "agent/measure/pulse.h"

struct accounts;
struct feedback;
struct moves;
struct forwarded;
struct gather;
struct links;
struct look;
struct owner_part;
struct profile_store;
struct recorders;
struct streams;
struct told;
struct top_watch;
struct user_limits;
struct wait;

/* All members are borrowed, except those that front/ itself keeps. */
struct front {
	const struct base *base;
	struct pulse *pulse;
	struct peers *peers;
	struct guest *guest;
	struct owner_part *owner;  /* NULL: no rules are kept here */
	struct feedback *feedback; /* NULL: there is no feedback controller */
	const struct moves *moves; /* NULL: no policy moves jobs */
	struct home *home;
	struct gangs *gangs;
	struct journal *journal;
	struct profile_store *profiles;
	struct accounts *accounts;
	struct streams *streams;	       /* NULL: this agent serves its own machine only */
	const char *unified;		       /* the cgroup2 mount, or "" */
	struct sample_names *names;	       /* names of cgroups; NULL: none */
	const struct user_limits *user_limits; /* NULL: none are set */

	struct clients *clients;
	struct top_watch *tops;	     /* clients of `iocom top` */
	struct wait *waits;	     /* clients of `iocom wait` */
	struct journal_wait ended;   /* an end that a transaction may still undo */
	struct told *told;	     /* answers that wait for the disk */
	struct kill *kills;	     /* signals under way */
	struct gather *gathers;	     /* clients that ask other nodes */
	struct forwarded *forwarded; /* requests of users of other nodes */
	struct look *looks;	     /* their `iocom top` */
	struct attach *attaches;     /* clients that want to attach to jobs of other nodes */
	struct recorders *recorders; /* NULL: nobody records */
	struct links *links;	     /* to other nodes; NULL: there was none yet */
	bool links_refused;	     /* the kernel does not tell; the log has it */
	struct machine_time machine; /* at the last whole period while somebody recorded */
	struct journal_rows rows;    /* counts as of rows_ns (CLOCK_BOOTTIME); limits.c */
	uint64_t rows_ns;
	struct pulse_watch pulse_watch;
	struct guest_watch guest_watch;
	struct home_watch home_watch;
	struct clients_watch clients_watch;
};

/*
 * Begins to serve.  FRONT's borrowed members are set.  Returns 0 or negative errno with the reason
 * in ERR.
 */
int front_start(struct front *front, struct iocom_err *err);
/* Sends recorders their end line and drops all clients. */
void front_stop(struct front *front);
/* Call it once a second. */
void front_chores(struct front *front);

/* --- requests: see requests.c ------------------------------------------------- */

typedef void front_request(struct front *front, struct client *client,
			   const msgpack_object *request);
front_request attach_request, explain_request, feedback_request, gather_request, jobs_request,
	kill_request, look_request, migrate_request, nodes_request, owner_request, profiles_request,
	reach_request, record_request, report_request, status_request, submit_request,
	talks_request, top_request, wait_request;

/* --- top_request.c --- */

void top_sampled(struct front *front, const struct monitor_sample *sample);
void top_forget(struct front *front, const struct client *client);
/* Makes the newest reading one of this moment. */
void top_fresh(struct front *front);
/* The document of SAMPLE for user UID; BEFORE: the disks at the reading before.  NULL: no memory.
 */
json_t *top_json(struct front *front, const struct monitor_sample *sample,
		 const struct iocom_disk *before, size_t nbefore, uid_t uid);

/* --- gather.c: what clients ask other nodes --- */

#define GATHERS_MAX	 64 /* requests to other nodes under way */
#define GATHERS_OF_ROOT	 4
#define GATHERS_OF_ONE	 16
#define GATHER_NODES_MAX 64 /* nodes that one of them asks */

size_t gathers_count(const struct front *front);
void gather_forget(struct front *front, const struct client *client);
void gathers_stop(struct front *front);

/* --- forwarded.c: what users of other nodes ask --- */

#define FORWARDED_MAX	    8 /* of control's GATE_QUESTIONS_MAX: the others are never kept busy */
#define FORWARDED_OF_ONE    4
#define OWNER_QUESTIONS_MAX 4 /* beside them: requests to this node's owner */

/* The handler of PEER_USER; ARG is the struct front. */
int front_on_user(void *arg, const struct peer_request *request, uint64_t ticket,
		  struct peer_answer *answer);
/* Those under way: to this node's OWNER, or all others. */
size_t forwarded_count(const struct front *front, bool owner);
void forwarded_stop(struct front *front);

/* --- look_request.c: their `iocom top` --- */

#define LOOKS_MAX     32
#define LOOKS_OF_ROOT 2
#define LOOKS_OF_ONE  8

size_t looks_count(const struct front *front);
void looks_sampled(struct front *front, const struct monitor_sample *sample);
void looks_chores(struct front *front); /* once a second */
void looks_stop(struct front *front);

/* --- migrate_request.c --- */

struct journal_move;
json_t *migrate_json(const struct journal_move *move);
void migrate_forget(struct front *front, const struct client *client);

/* --- kill_request.c --- */

void kill_forget(struct front *front, const struct client *client);
/* --- attach_request.c --- */
void attach_forget(struct front *front, const struct client *client);

/* --- owner_request.c --- */

/*
 * Serves a request of a user of node FROM ("": this one); BOUND: it was made for this start of the
 * agent.
 */
void owner_request_from(struct front *front, struct client *client, const msgpack_object *request,
			const char *from, bool bound);

/* --- told.c --- */

/*
 * Sends ANSWER, which it takes, as client_json does, but not before the disk has all that the
 * journal has by now.  If the disk fails, the client gets an error.
 */
void told_answer(struct front *front, struct client *client, json_t *answer);
void told_forget(struct front *front, const struct client *client);

/* --- waits.c --- */

/*
 * Tells the clients that wait for JOB, whose end the journal has; NULL: for any job.  Within a
 * transaction they are told after it, if it does not fail.
 */
void waits_ended(struct front *front, const char *job);
/* `done` of front->ended. */
void waits_committed(void *front, int rc);
/* Tells clients of lost jobs that nobody has run again in time. */
void waits_chores(struct front *front);
void waits_forget(struct front *front, const struct client *client);

#endif
