/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocomd: one agent per node.  agent.c sets it up and tears it down, pulse.c
 * reads and tells loads, place.c decides where a submitted job runs, guest.c
 * is what runs here, clients.c and cli_requests.c serve this machine's CLI, stream.c
 * takes jobs that arrive.
 */
#ifndef IOCOM_AGENT_H
#define IOCOM_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/cluster/bulletin.h"
#include "agent/cluster/control.h"
#include "agent/base/counters.h"
#include "agent/measure/host.h"
#include "agent/jobs/jobs.h"
#include "agent/guest/spool_quota.h"
#include "agent/jobs/journal.h"
#include "agent/guest/launch.h"
#include "user/log.h"
#include "agent/base/loop.h"
#include "agent/cluster/matrix.h"
#include "user/monitor/monitor.h"
#include "balancer/settings/profile.h"
#include "agent/cluster/seal.h"
#include "balancer/settings/settings.h"
#include "agent/cluster/skews.h"
#include "agent/cluster/tls.h"
#include "agent/measure/vector.h"
#include "agent/cluster/rebuilt_view.h"

struct sample_names;
struct clients;
struct streams;
struct place;
struct recorders;
struct metrics;
struct probes;
struct tunnels;
struct lease_held;
struct accounts;
struct paths;
struct replays;
struct leaving;
struct wait;

struct agent {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct loop *loop;
	int lock_fd;	   /* RUN_DIR/run.lock: one agent per run directory */
	int state_lock_fd; /* STATE_DIR/state.lock: and per journal */
	char jobs_dir[SETTINGS_PATH_MAX + 8], run_jobs_dir[SETTINGS_PATH_MAX + 8];

	struct host host;
	struct host_reading host_now; /* as of host_ns, CLOCK_BOOTTIME */
	uint64_t host_ns;
	struct monitor *monitor;
	int counting_fd; /* STATE_DIR/counting: until when we counted */
	struct sample_names *names;
	const char *disk_names[SETTINGS_DISKS_MAX + 1];
	struct vector_state measured;
	struct vector_self self;
	struct iocom_vector own; /* as last told */
	uint64_t sequence;	 /* of the last vector told */
	uint64_t own_ns;	 /* when (CLOCK_BOOTTIME) */
	uint64_t period_began_ns, sampled_ns;
	struct monitor_sample last; /* the reading of sampled_ns; its arrays are the monitor's */
	bool has_last;		    /* ... and not yet rewritten */
	uint64_t started_ns;	    /* CLOCK_BOOTTIME */
	/* Of the last reading; the monitor's, rewritten in place by the next. */
	const struct monitor_drop *drops;
	size_t ndrops, ndegraded;
	unsigned looks;

	struct matrix matrix;
	struct skews skews;
	struct view_charges charges;
	struct seal *seal; /* NULL: this machine only */
	struct tls *tls;   /* NULL: without */
	struct bulletin *bulletin;
	struct control *control;
	struct paths *paths;
	struct accounts *accounts;
	struct journal *journal;
	struct journal_rows rows; /* as counted at rows_ns (CLOCK_BOOTTIME); limits.c */
	uint64_t rows_ns;
	struct profile_store *profiles;
	struct jobs jobs;
	uint64_t job_sequence;
	struct place *places;	   /* decisions under way */
	struct lease_held *leases; /* of restartable jobs submitted here (leases.h) */
	size_t nleases;
	struct clients *clients;
	struct streams *streams;
	struct tunnels *tunnels;	      /* relays of jobs that left; NULL: without TLS */
	struct probes *probes;		      /* of silent peers; NULL: this machine only */
	struct recorders *recorders;	      /* NULL: nobody records */
	struct metrics *metrics;	      /* NULL: not served */
	struct replays *replays;	      /* NULL: none yet */
	struct leaving *leaving;	      /* ended jobs whose shims still serve their clients */
	struct signals_sent *signalled;	      /* signals whose shims have not answered yet */
	struct wait *waits;		      /* clients that wait for ends */
	uint64_t spool_kept_bytes;	      /* output of jobs that are over, as last looked at */
	struct spool_quota_users spool_users; /* ... by user */

	struct loop_fd signals;
	struct loop_timer tick;	   /* looks and readings */
	struct loop_timer publish; /* a significant change, delayed by at most 100 ms */
	struct loop_timer settle;  /* ended jobs wait for one reading */
	uint64_t settled_ns;	   /* when (CLOCK_BOOTTIME) */
	struct loop_timer starts;  /* jobs that run are told of, unless they end first */
	struct launch_spare spare; /* a shim for the next job */
	struct loop_timer respare; /* ... is started, not while one begins */
	struct loop_timer chores;  /* leases, reports, retention */
	uint64_t chores_count;
	uint64_t prune_due_ns; /* CLOCK_BOOTTIME; chores_count begins anew with each new node */
};

/* Sets all up (everything or nothing).  0 or negative errno with the sentence. */
int agent_start(struct agent *a, struct iocom_err *err);
/* Until SIGTERM or SIGINT.  0 or negative errno. */
int agent_run(struct agent *a);
/* Running jobs are left alone. */
void agent_stop(struct agent *a);

/* --- pulse.c --- */
#define TICK_NOTICE_MS 100 /* significant changes are told at once, at most so often */
int tick_start(struct agent *a, struct iocom_err *err);
/* Reads the monitor now; everybody who watches gets it. */
void tick_sample(struct agent *a);
/* This node's vector as of now, with fresh memory and all leases; not told to anyone. */
void tick_own_vector(struct agent *a, struct iocom_vector *v);
/* Something worth telling happened: told at once, at most every 100 ms. */
void tick_changed(struct agent *a);

/* --- guest.c --- */
enum target_verdict_size { TARGET_TEXT_MAX = 256 };
struct target_grant {
	bool granted;
	char nonce[SPEC_NONCE_MAX];
	uint64_t boot_id, sequence; /* the first vector that counts the job */
	char reason[24];	    /* path-missing, memory, owner, overloaded, ... */
	char text[TARGET_TEXT_MAX];
};
/* Grants ORDER of this node itself a lease, or refuses.  Idempotent by job id. */
void target_admit(struct agent *a, const struct job_order *order, struct target_grant *grant);
/* Judges ORDER of another node with fresh numbers; DONE is told, now or later, once. */
typedef void (*target_admitted)(void *arg, const struct job_order *order,
				const struct target_grant *grant);
void target_admit_guest(struct agent *a, const struct job_order *order, target_admitted done,
			void *arg);
/*
 * A job stream's FRAME_START.  LOCAL: who the kernel says it is, or NULL (then
 * the credential decides).  0: FD is taken; else negative errno with the sentence.
 */
int target_start(struct agent *a, int fd, const void *payload, uint32_t length,
		 const struct ucred *local, struct iocom_err *err);
/* After a restart: jobs of an earlier agent. */
int target_recover(struct agent *a, struct iocom_err *err);
void target_settle(void *agent); /* timer: ended jobs */
void target_starts(void *agent); /* timer: jobs that run and are not told of */
/* A spare shim, where none waits. */
void target_respare(void *agent);
void target_expire(struct agent *a);
/* Tells homes again what they have not acknowledged. */
void target_report_pending(struct agent *a);
void target_stop(struct agent *a);

/* --- peer_requests.c: what other agents ask and tell --- */
int home_handle(void *agent, const struct control_head *head, const msgpack_object *body,
		msgpack_sbuffer *answer);
/* A job submitted here started, ended; FROM is the node that says so.  0 or -EACCES. */
int home_started(struct agent *a, const char *from, const char *job, uint64_t start_ns, pid_t pid);
int home_ended(struct agent *a, const char *from, const struct job_report *report);
/* Makes this node known to a peer that may not have us among its own. */
void home_hello(struct agent *a);

/* --- place.c --- */
struct client;
/* Handles op "place"; answers CLIENT now or later. */
void place_request(struct agent *a, struct client *client, const msgpack_object *request);
/* The client is gone: a decision under way for it is dropped. */
void place_forget(struct agent *a, const struct client *client);

/* --- cli_requests.c: the other requests of the CLI --- */
void ops_request(struct agent *a, struct client *client, const msgpack_object *request);
json_t *ops_top(struct agent *a, const struct monitor_sample *sample,
		const struct iocom_disk *before, size_t nbefore, uid_t uid);
void ops_forget(struct agent *a, const struct client *client);
struct journal_job;
/* A job as listings have it: a new object. */
json_t *ops_job_json(struct agent *a, const struct journal_job *job);
/* Somebody asks for what is another's: root should see it. */
void ops_log_foreign(struct agent *a, const struct client *client, const char *what,
		     const char *job);

/* --- explain.c --- */
void explain_request(struct agent *a, struct client *client, const msgpack_object *request);

/* --- profiles.c: what classes of jobs were measured to need --- */
void profiles_request(struct agent *a, struct client *client, const msgpack_object *request);

/* A journal failure: counted, logged. */
void agent_journal_failed(struct agent *a, const struct iocom_err *err);
/* credential_open (spec.h) by this agent's munged; counted where that does not answer. */
int agent_credential(struct agent *a, struct credential *credential, const char *text,
		     struct iocom_err *err);

#endif
