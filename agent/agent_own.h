/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the agent share.  They alone know all of its parts. */
#ifndef IOCOM_AGENT_OWN_H
#define IOCOM_AGENT_OWN_H

#include "agent/agent.h"
#include "agent/base/complaints.h"
#include "agent/base/loop_share.h"
#include "agent/base/tick.h"
#include "agent/base/watchdog.h"
#include "agent/cluster/peers.h"
#include "agent/feedback/feedback.h"
#include "agent/moves/moves.h"
#include "agent/front/front.h"
#include "agent/gate/net_spawn.h"
#include "agent/guest/user_limits.h"
#include "agent/measure/data_caches.h"
#include "agent/measure/host.h"
#include "agent/measure/pulse.h"
#include "agent/measure/synthetic.h"
#include "agent/owner/owner_part.h"

struct agent {
	struct settings
		*set; /* the caller owns it; changed while the agent is set up, and by a reload */
	struct logger log;
	struct counters counters;
	struct complaints complaints;
	struct base base;
	struct loop_share shares;
	int lock_fd;	   /* RUN_DIR/run.lock: one agent per run directory */
	int state_lock_fd; /* STATE_DIR/state.lock: one agent per journal */
	char jobs_dir[SETTINGS_PATH_MAX + 8], run_jobs_dir[SETTINGS_PATH_MAX + 8];
	int uptime_fd; /* uptime_mark.h */
	struct host host;
	struct monitor *monitor; /* NULL, too, if the load is synthetic */
	struct synthetic *synthetic;
	struct sample_names *names;
	const char *disk_names[SETTINGS_DISKS_MAX + 1];
	struct accounts *accounts;
	struct journal *journal;
	struct journal_thread *journal_thread;
	struct profile_store *profiles;

	struct net_spawn net_spawn;
	struct net_part *net;	    /* NULL: nothing comes from the network */
	int streams_fd, metrics_fd; /* listeners; -1: none */

	struct pulse pulse;
	struct data_caches *caches;
	struct peers peers;
	struct user_limits user_limits;
	struct owner_part *owner;
	struct guest *guest;
	struct home *home;
	struct gangs *gangs;
	struct feedback *feedback;
	struct moves *moves;
	struct guest_watch ran_watch, left_watch;
	struct home_watch submitted_watch;
	struct front front;
	struct streams *streams; /* NULL: this agent serves its own machine only */
	struct metrics *metrics; /* NULL: metrics are not served */
	struct pulse_watch peers_watch;

	struct loop_fd signals;
	/* Reads the settings again; NULL: nobody can. */
	int (*read_settings)(void *arg, struct settings *next, struct iocom_err *err);
	void *read_arg;
	struct loop_timer chores;
	struct tick tick;
	struct watchdog watchdog;
	uint64_t prune_due_ns; /* CLOCK_BOOTTIME */
};

/*
 * agent_ground.c: sets up what must exist before anybody hears of this agent.  Returns 0 or
 * negative errno with the reason in ERR; agent_stop frees what was made.
 */
int agent_make_ground(struct agent *a, struct iocom_err *err);
/*
 * agent_net.c: starts the network part, with what agents and streams need if NETWORKED, and with
 * /metrics if the settings say so; else a->net stays NULL.  Returns the same.
 */
int agent_make_net(struct agent *a, bool networked, struct iocom_err *err);
/* agent_reload.c: reads the settings again, on SIGHUP. */
void agent_reload(struct agent *a);
/* agent_parts.c: makes the parts and wires them to each other.  Returns the same. */
int agent_make_parts(struct agent *a, struct iocom_err *err);
/* agent_moves.c: behind guest and home. */
int agent_make_moves(struct agent *a, struct iocom_err *err);

#endif
