/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocomd: one agent, from its start to its stop.  agent_ground.c sets up what it stands on,
 * agent_parts.c its parts; what each part does is in its own folder.
 *
 * Order of the start: checks that fail cheaply come first (root, run directory, databases, munged,
 * ports), then the monitor, then what others can see.  Signals are blocked before threads start, so
 * that they all inherit the mask.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_own.h"
#include "agent/base/accounts.h"
#include "agent/base/audit_line.h"
#include "agent/cluster/stream.h"
#include "agent/guest/guest.h"
#include "agent/home/home.h"
#include "agent/jobs/journal.h"
#include "agent/jobs/journal_thread.h"
#include "agent/metrics/metrics.h"
#include "balancer/profile/profile.h"
#include "user/cgroup.h"
#include "user/clock.h"
#include "user/keyring.h"
#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"

#define CHORES_NS      CLOCK_NS_PER_S
#define PRUNE_FIRST_NS (5 * CLOCK_NS_PER_S) /* soon, so that short-lived agents prune, too */
#define PRUNE_NS       (60 * CLOCK_NS_PER_S)
#define FAREWELL_MS    200  /* how long a stopping agent waits for its last bulletin to leave */
#define SHIMS_LEAVE_MS 1000 /* how long a stopping agent waits for shims that are about to end */

static void agent_chores(void *arg)
{
	struct agent *a = arg;

	guest_chores(a->guest);
	owner_part_chores(a->owner);
	feedback_chores(a->feedback);
	moves_chores(a->moves);
	if (a->caches)
		data_caches_chores(a->caches);
	home_chores(a->home);
	gangs_chores(a->gangs);
	peers_chores(&a->peers);
	front_chores(&a->front);
	if (clock_boot_ns() >= a->prune_due_ns) {
		home_prune(a->home);
		guest_spool_prune(a->guest);
		a->prune_due_ns = clock_boot_ns() + PRUNE_NS;
	}
	loop_start(a->base.loop, &a->chores, CHORES_NS);
}

static int begin(struct agent *a, struct iocom_err *err)
{
	int rc;

	owner_part_begin(a->owner, a->guest);
	rc = pulse_start(&a->pulse, err);
	if (!rc)
		rc = home_load(a->home, err);
	if (!rc)
		rc = guest_recover(a->guest, err);
	if (!rc)
		rc = gangs_load(a->gangs, err);
	if (!rc)
		feedback_begin(a->feedback);
	if (!rc)
		rc = front_start(&a->front, err);
	if (rc)
		return rc;
	peers_dial(&a->peers);
	guest_begin(a->guest);
	a->chores = (struct loop_timer){.fire = agent_chores, .arg = a, .lax_ns = CHORES_NS / 4};
	a->prune_due_ns = clock_boot_ns() + PRUNE_FIRST_NS;
	loop_start(a->base.loop, &a->chores, 0);
	tick_start(&a->tick, a->base.loop, &a->counters, pulse_ends_ns(&a->pulse));
	watchdog_start(&a->watchdog, a->base.loop);
	return 0;
}

static void say_where(struct agent *a)
{
	if (a->peers.seal)
		log_write(&a->log, LOG_L_INFO, "node %s, listening at %s ports %u to %u",
			  a->set->name, a->set->listen, a->set->port, a->set->port + 2);
	else
		log_write(&a->log, LOG_L_INFO, "node %s, this machine only", a->set->name);
}

static void say_keys(struct agent *a)
{
	struct iocom_err err;
	int rc = keyring_check(&err);

	if (rc)
		log_write(&a->log, rc < 0 ? LOG_L_ERROR : LOG_L_WARNING, "%s", err.text);
}

/* An older version's configuration still loads. */
static void say_retired(struct agent *a)
{
	struct iocom_err sentence;

	if (settings_retired(a->set, &sentence))
		log_write(&a->log, LOG_L_WARNING, "%s", sentence.text);
}

int agent_start(struct agent **out, struct settings *set, struct iocom_err *err)
{
	struct agent *a;
	int rc;

	*out = NULL;
	if (geteuid() != 0)
		return iocom_err_set(err, -EPERM,
				     "iocomd measures the kernel and starts jobs of all users: run "
				     "it as root");
	if (access(set->shim[0] ? set->shim : "iocom-shim", X_OK))
		return iocom_err_set(err, -ENOENT,
				     "the program iocom-shim is not at %s; name it with --shim",
				     set->shim[0] ? set->shim : "its place beside iocomd");
	a = calloc(1, sizeof(*a));
	if (!a)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	a->set = set;
	log_init(&a->log, "iocomd");
	a->log.level = set->log_level;
	a->lock_fd = a->state_lock_fd = a->uptime_fd = a->signals.fd = -1;
	a->streams_fd = a->metrics_fd = -1;
	rc = agent_make_ground(a, err);
	if (!rc)
		rc = agent_make_parts(a, err);
	if (!rc)
		rc = begin(a, err);
	if (rc) {
		agent_stop(a);
		return rc;
	}
	say_where(a);
	audit_line_write(&a->log);
	say_keys(a);
	say_retired(a);
	*out = a;
	return 0;
}

int agent_run(struct agent *a)
{
	return loop_run(a->base.loop);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void agent_stop(struct agent *a)
{
	int saved = errno;

	if (a->peers.bulletin &&
	    a->pulse.started_ns) { /* the others need not wait until they find this node silent */
		pulse_leave(&a->pulse);
		net_part_drain(a->net, FAREWELL_MS);
	}
	journal_thread_free(a->journal_thread); /* answers that wait for the disk still leave */
	streams_free(a->streams);
	guest_stop(a->guest);
	feedback_stop(a->feedback);
	owner_part_free(a->owner);
	peers_stop(&a->peers); /* this ends decisions under way */
	front_stop(&a->front);
	metrics_free(a->metrics);
	net_part_free(a->net);
	net_spawn_fini(&a->net_spawn);
	guest_free(a->guest);
	gangs_free(a->gangs);
	home_free(a->home);
	moves_free(a->moves);
	feedback_free(a->feedback);
	profile_close(a->profiles);
	journal_close(a->journal);
	sample_names_free(a->names);
	if (a->monitor ||
	    a->synthetic) /* one of these means that this agent held the directories' locks */
		cgroup_tidy(a->set->scope_cgroup, SHIMS_LEAVE_MS);
	while (waitpid(-1, NULL, WNOHANG) > 0) /* children that ended meanwhile */
		;
	monitor_free(a->monitor);
	host_fini(&a->host);
	synthetic_free(a->synthetic);
	data_caches_free(a->caches);
	pulse_fini(&a->pulse);
	peers_free(&a->peers);
	accounts_free(a->accounts);
	close_if_open(a->streams_fd);
	close_if_open(a->metrics_fd);
	close_if_open(a->signals.fd);
	loop_free(a->base.loop);
	close_if_open(a->uptime_fd);
	close_if_open(a->state_lock_fd);
	close_if_open(a->lock_fd);
	free(a);
	errno = saved;
}
