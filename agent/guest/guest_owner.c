/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the node's owner may do with guests, the jobs of other nodes: let them in or not, see what
 * they need, expel them.
 *
 *   expelled -> it can move: home sends it to another node, or half of the grace has gone
 *            -> it runs: SIGTERM -> after the grace SIGKILL -> its supervisor is late: its cgroup
 *               is killed
 *
 * The job's record keeps that for an agent that starts meanwhile.
 */
#include "agent/guest/guest_own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/guest/signals.h"
#include "balancer/settings/owner/owner.h"
#include "user/process_stat.h"
#include "user/account.h"
#include "user/clock.h"
#include "user/record.h"

#define OWNER_SHIM_LATE_NS (2 * CLOCK_NS_PER_S)	 /* by then a supervisor has killed its job */
#define OWNER_AGAIN_NS	   (5 * CLOCK_NS_PER_S)	 /* until home is asked again to move a job */
#define OWNER_MOVE_LATE_NS (30 * CLOCK_NS_PER_S) /* past its grace, for one that is on its way */
#define PTS_MAJOR	   136			 /* of /dev/pts/0 to 255; seven more follow */
#define PTS_MAJORS	   8

static bool guest_owner_counts(const struct guest *guest, const struct job *job)
{
	return job->state != JOB_ENDED && !guest_is_home(guest, &job->order);
}

void guest_use(const struct guest *guest, struct guest_use *use)
{
	*use = (struct guest_use){0};
	for (const struct job *job = guest->jobs.first; job; job = job->next) {
		const struct need *need = &job->order.need;

		if (!guest_owner_counts(guest, job))
			continue;
		use->jobs++;
		use->memory_mb += need->value[NEED_MEMORY_MB];
		use->disk_mb_per_s +=
			need->value[NEED_IO_PER_S] * need->value[NEED_IO_SIZE_KB] / 1e3;
	}
}

bool guest_owner_admits(struct guest *guest, const struct job_order *order,
			const struct account *user, struct peer_grant *g)
{
	const struct guest_asking asking = {.order = order, .user = user};
	char why[PEER_TEXT_MAX] = "";

	if (!guest->ports->owner)
		return true;
	if (guest->ports->owner(guest->ports->arg, &asking, why, sizeof(why)))
		return true;
	guest_admit_refuse(g, "owner", why);
	return false;
}

/* --- expelling --- */

/* Opens JOB's record; negative errno. */
static int guest_owner_record(const struct guest *guest, const struct job *job)
{
	char path[PATH_MAX];
	int dir = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s/%s", guest->jobs_dir, job->order.job) <
	    (int)sizeof(path))
		dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 && dir != -ENAMETOOLONG ? -errno : dir;
}

static void guest_owner_keep(const struct guest *guest, const struct job *job)
{
	struct record_expelled kept = {.due_ns = job->expelled.due_ns,
				       .asked = job->expelled.asked};
	int dir = guest_owner_record(guest, job);
	int rc = dir;

	memcpy(kept.why, job->expelled.why, sizeof(kept.why));
	if (dir >= 0) {
		rc = record_write_expelled(dir, &kept);
		close(dir);
	}
	/* A job without a record has not begun: a new agent would not let it. */
	if (rc && rc != -ENOENT)
		log_write(guest->base->log, LOG_L_WARNING,
			  "job %s is expelled, but the next start of this agent will not know it: "
			  "%s",
			  job->order.job, strerror(-rc));
}

void guest_owner_found(struct guest *guest, struct job *job)
{
	uint64_t most_ns = loop_boot_ns(guest->base->loop) + OWNER_GRACE_MAX_S * CLOCK_NS_PER_S;
	struct record_expelled kept;
	int dir = guest_owner_record(guest, job);
	uint64_t now_ns;
	int rc = dir;

	if (dir >= 0) {
		rc = record_read_expelled(dir, &kept);
		close(dir);
	}
	if (rc == -ENOENT)
		return;
	if (rc) {
		log_write(guest->base->log, LOG_L_WARNING,
			  "job %s may have been expelled: its record cannot be read: %s",
			  job->order.job, strerror(-rc));
		return;
	}
	memcpy(job->expelled.why, kept.why, sizeof(kept.why));
	job->expelled.due_ns = kept.due_ns < most_ns ? kept.due_ns : most_ns;
	job->expelled.asked = kept.asked;
	now_ns = most_ns - OWNER_GRACE_MAX_S * CLOCK_NS_PER_S;
	if (job->expelled.due_ns > now_ns)
		job->expelled.stay_ns = now_ns + (job->expelled.due_ns - now_ns) / 2;
	log_write(guest->base->log, LOG_L_INFO, "job %s of uid %u from %s: still %s",
		  job->order.job, (unsigned)job->order.uid, job->order.home, kept.why);
}

static void guest_owner_away_told(void *arg, const char *name, bool moves, const char *why)
{
	struct guest *guest = arg;
	struct job *job = jobs_find(&guest->jobs, name);

	if (!job || moves)
		return;
	/* Its home may be busy, or start again: until the time is up it is asked again. */
	job->expelled.away = false;
	job->expelled.again_ns = loop_boot_ns(guest->base->loop) + OWNER_AGAIN_NS;
	log_provoked(guest->base->log, LOG_L_INFO, "job %s does not move yet: %s", name, why);
}

/*
 * A job that can move goes on elsewhere, if there is a place.  Returns true while that is not known
 * yet: then nothing else is done to it.  A signal would go along with a job that is on its way.
 */
static bool guest_owner_sends_away(struct guest *guest, struct job *job, uint64_t now)
{
	const struct peer_away why = {.cause = "owner"};
	bool moves = job->move.number || job->move.held;
	struct iocom_err err = {0};

	job->expelled.began |= moves;
	if (moves)
		return now < job->expelled.due_ns + OWNER_MOVE_LATE_NS;
	if (job->expelled.began || now >= job->expelled.stay_ns || guest_move_hindrance(job))
		return false; /* it was on its way and stayed, or there is no time, or it cannot */
	if (job->expelled.away || now < job->expelled.again_ns)
		return true;
	job->expelled.away = true;
	if (guest_away(guest, job->order.job, &why, guest_owner_away_told, guest, &err))
		guest_owner_away_told(guest, job->order.job, false, err.text);
	return true;
}

static void guest_owner_signal(struct guest *guest, struct job *job, uint64_t now)
{
	int rc = 0;

	if (!job->expelled.asked && guest_owner_sends_away(guest, job, now))
		return;
	if (!job->expelled.asked) {
		rc = signals_expel(guest, job, SIGTERM, job->expelled.why);
		job->expelled.asked = true;
		guest_owner_keep(guest, job);
	} else if (now >= job->expelled.due_ns && !job->expelled.killed) {
		rc = signals_expel(guest, job, SIGKILL, job->expelled.why);
		job->expelled.killed = true;
	} else if (now >= job->expelled.due_ns + OWNER_SHIM_LATE_NS) {
		guest->launcher->kill(guest->base->set->scope_cgroup, job->order.uid,
				      job->order.job);
	}
	if (rc)
		log_write(guest->base->log, LOG_L_WARNING, "cannot expel job %s: %s",
			  job->order.job, strerror(-rc));
}

void guest_owner_chores(struct guest *guest)
{
	uint64_t now = loop_boot_ns(guest->base->loop);

	for (struct job *job = guest->jobs.first; job; job = job->next)
		if (job->expelled.why[0] && job->state == JOB_RUNNING)
			guest_owner_signal(guest, job, now);
}

size_t guest_expel(struct guest *guest, const char *name, const char *why, uint32_t grace_s)
{
	uint64_t due_ns = loop_boot_ns(guest->base->loop) + grace_s * CLOCK_NS_PER_S;
	size_t found = 0;

	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (!guest_owner_counts(guest, job) || (*name && strcmp(name, job->order.job) != 0))
			continue;
		found++;
		if (job->expelled.why[0] && job->expelled.due_ns <= due_ns)
			continue;
		job->expelled.due_ns = due_ns;
		job->expelled.stay_ns = due_ns - grace_s * CLOCK_NS_PER_S / 2;
		snprintf(job->expelled.why, sizeof(job->expelled.why), "%s", why);
		guest_owner_keep(guest, job);
		guest->base->counters->jobs_expelled++;
		log_write(guest->base->log, LOG_L_INFO, "job %s of uid %u from %s: %s",
			  job->order.job, (unsigned)job->order.uid, job->order.home, why);
	}
	guest_owner_chores(guest);
	return found;
}

/* --- terminals --- */

/* Returns the number of the controlling terminal in /dev/pts of PID, or -1. */
static int guest_owner_terminal(pid_t pid)
{
	char stat[512];
	int device = 0;

	if (process_stat(pid, stat, sizeof(stat)) ||
	    sscanf(stat, "%*c %*d %*d %*d %d", &device) != 1)
		return -1;
	if (major((dev_t)device) < PTS_MAJOR || major((dev_t)device) >= PTS_MAJOR + PTS_MAJORS)
		return -1;
	return (int)((major((dev_t)device) - PTS_MAJOR) * 256 + minor((dev_t)device));
}

size_t guest_terminals(const struct guest *guest, unsigned *numbers, size_t max)
{
	size_t n = 0;

	for (const struct job *job = guest->jobs.first; job && n < max; job = job->next) {
		int number = job->state == JOB_RUNNING && job->pid > 0
				     ? guest_owner_terminal(job->pid)
				     : -1;

		if (number >= 0)
			numbers[n++] = (unsigned)number;
	}
	return n;
}
