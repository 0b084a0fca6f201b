/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Recovers the jobs of an older agent (declared in launch.h).  A job's record describes the job;
 * whether its shim lives is checked in this order, which no race defeats:
 *
 *   record `exit` is there          over: that is the outcome
 *   control socket takes the leash  alive; if stopped, it answers later
 *   lock on the directory is held   alive but beginning, ending, or its socket
 *                                   is full: busy, look again later
 *   record `start` is missing       the shim was killed before it began, or there
 *                                   never was one: no process of the job ran
 *   otherwise                       the shim was killed: what is left of the job
 *                                   is killed too, its outcome is unknown
 *
 * The agent takes the lock when it makes the directory and passes it to the shim: a beginning shim
 * always has it.  The kernel drops the lock exactly when the process that holds it ends, so no pid,
 * which another process may have by now, is needed.  A shim of a later version counts as busy until
 * it is gone; then its record tells the outcome.
 *
 * No check waits for a shim for longer than a moment: a shim that hangs or is stopped must not keep
 * a new agent from the others.
 */
#include "agent/guest/launch_control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/shim/order.h"
#include "user/cgroup.h"
#include "user/cgroup_guests.h"
#include "user/clock.h"
#include "user/leash_wire.h"
#include "user/pack.h"
#include "user/record.h"

#define GROUPS	  3   /* where a job's cgroup may be */
#define ANSWER_MS 100 /* wait this long for the answers of all found shims */

/*
 * Takes over the leash of a living shim.  Waits until UNTIL_NS for its answer, the event "started";
 * a later answer is the first event on the leash.  Returns 0 or negative errno.
 */
static int take_leash(const char *run_dir, uint64_t until_ns, struct launch_found *f)
{
	int fd = shim_control_connect(run_dir, f->job);
	uint64_t now_ns = clock_boot_ns();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct launch_event event;
	int rc;

	if (fd < 0)
		return fd;
	rc = shim_control_ask(fd, "leash", 0, NULL);
	if (!rc && now_ns < until_ns)
		(void)poll(&p, 1, (int)((until_ns - now_ns) / CLOCK_NS_PER_MS) + 1);
	if (!rc)
		rc = launch_read(fd, &event);
	if (rc && rc != -EAGAIN) {
		close(fd);
		return rc;
	}
	if (!rc)
		f->started = event;
	f->leash = fd;
	return 0;
}

/*
 * Finds where a job's cgroup may be: [0] below its user's, [1] the same of guests, [2] where older
 * agents made it.  Returns 0 or negative errno.
 */
static int groups_of(const char *scope_cgroup, uid_t uid, const char *job,
		     struct cgroup groups[GROUPS])
{
	char name[SPEC_JOB_MAX + 32], flat[SPEC_JOB_MAX + 8];
	struct cgroup_mounts mounts;
	int rc = spec_job_valid(job) ? cgroup_user_job(name, sizeof(name), uid, job) : -EINVAL;

	if (!rc)
		rc = cgroup_mounts_read("/proc/self/mounts", &mounts, NULL);
	if (!rc)
		rc = cgroup_name(&mounts, scope_cgroup, name, &groups[0], NULL);
	if (!rc)
		rc = cgroup_guests_job(name, sizeof(name), uid, job);
	if (!rc)
		rc = cgroup_name(&mounts, scope_cgroup, name, &groups[1], NULL);
	snprintf(flat, sizeof(flat), "jobs/%s", job);
	return rc ? rc : cgroup_name(&mounts, scope_cgroup, flat, &groups[2], NULL);
}

static void bury_groups(const char *scope_cgroup, uid_t uid, const char *job)
{
	struct cgroup groups[GROUPS];

	if (groups_of(scope_cgroup, uid, job, groups))
		return;
	for (int i = 0; i < GROUPS; i++) {
		cgroup_remove(&groups[i], 2000);
		if (i < GROUPS - 1)
			cgroup_user_leave(&groups[i]);
	}
}

/* The processes with which its data goes along, or that move it, have a group beside the job's. */
void launch_bury(const char *scope_cgroup, uid_t uid, const char *job)
{
	static const char *const beside[] = {"", DATA_GROUP, MOVE_GROUP};
	char name[SPEC_JOB_MAX + 16];

	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", job, beside[i]);
		bury_groups(scope_cgroup, uid, name);
	}
}

void launch_kill(const char *scope_cgroup, uid_t uid, const char *job)
{
	struct cgroup groups[GROUPS];

	if (groups_of(scope_cgroup, uid, job, groups))
		return;
	for (int i = 0; i < GROUPS; i++)
		cgroup_kill(&groups[i]);
}

/*
 * The shim was killed: ends its job too, with an unknown outcome unless it never BEGAN.  DIR is
 * locked; the exit record written there keeps a late shim (an older agent's, which takes the lock
 * itself) from beginning the job.
 */
static void bury(int dir, const struct record_start *start, bool began, bool ended,
		 struct launch_found *f)
{
	struct record_exit end = {.kind = 3, .value = began || ended ? 255 : LAUNCH_NEVER};
	struct timespec now;

	launch_bury(start->scope, start->uid, start->job);
	clock_gettime(CLOCK_REALTIME, &now);
	f->last.kind = end.kind;
	f->last.value = end.value;
	f->last.end_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(f->last.text, sizeof(f->last.text), "%s",
		 ended ? "the job's record is damaged, or of another version of iocom; its outcome "
			 "is unknown"
		 : began ? "the job's supervisor was killed; the job was ended, its outcome is "
			   "unknown"
			 : "it never began: its agent or its supervisor ended first");
	if (ended)
		return; /* leave it to a program that can read it */
	end.end_ns = f->last.end_ns;
	memcpy(end.text, f->last.text, sizeof(end.text));
	(void)record_write_exit(dir, &end,
				NULL); /* may fail on a full disk; the outcome is reported anyway */
}

static int take_exit(int dir, struct launch_found *f)
{
	struct record_exit end;
	int rc = record_read_exit(dir, &end);

	if (rc)
		return rc;
	f->last.pid = end.pid;
	f->last.kind = end.kind;
	f->last.value = end.value;
	f->last.end_ns = end.end_ns;
	f->last.wall_ms = end.wall_ms;
	f->last.max_rss_kb = end.max_rss_kb;
	f->last.oom_kills = end.oom_kills;
	f->last.forks_refused = end.forks_refused;
	f->last.cpu_us = end.cpu_us;
	f->last.begin_us = end.begin_us;
	memcpy(f->last.text, end.text, sizeof(f->last.text));
	return 0;
}

/*
 * Fills F from the open directory DIR, like launch_outcome.  Takes a living shim's leash and waits
 * for its answer until UNTIL_NS.
 */
static void launch_recover_look(int dir, const char *run_dir, uint64_t until_ns,
				struct launch_found *f)
{
	struct record_start start;
	bool began =
		record_read_start(dir, &start) != -ENOENT; /* START is all 0 when there is none */
	int rc;

	f->leash = -1;
	f->last.type = LAUNCH_EXITED;
	f->started.type = LAUNCH_STARTED;
	memcpy(f->last.job, f->job, sizeof(f->job));
	memcpy(f->started.job, f->job, sizeof(f->job));
	snprintf(start.job, sizeof(start.job), "%s", f->job);
	f->uid = start.uid;
	f->start_ns = start.start_ns;
	f->spooled = record_spool_bytes(dir) >= 0;
	f->started.cgroup_id = start.cgroup_id;
	memcpy(f->command, start.command, sizeof(f->command));
	memcpy(f->class_name, start.class_name, sizeof(f->class_name));
	if (!take_exit(dir, f))
		return;
	rc = take_leash(run_dir, until_ns, f);
	if (!rc)
		return;
	f->busy = record_lock(dir) != 0;
	f->newer = f->busy && rc == -EPROTONOSUPPORT;
	/* The shim may have written its exit since the first check. */
	rc = f->busy ? 0 : take_exit(dir, f);
	if (rc && !began) /* or its start */
		began = record_read_start(dir, &start) != -ENOENT;
	if (rc)
		bury(dir, &start, began, rc != -ENOENT, f);
}

static int open_job(const char *jobs_dir, const char *job)
{
	char path[1024 + SPEC_JOB_MAX + 2];
	int fd;

	if (!spec_job_valid(job) ||
	    snprintf(path, sizeof(path), "%s/%s", jobs_dir, job) >= (int)sizeof(path))
		return -EINVAL;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int launch_outcome(const char *jobs_dir, const char *run_dir, const char *job,
		   struct launch_found *f)
{
	int dir = open_job(jobs_dir, job);

	*f = (struct launch_found){.leash = -1};
	if (dir < 0)
		return dir;
	snprintf(f->job, sizeof(f->job), "%s", job);
	launch_recover_look(dir, run_dir, 0, f);
	close(dir);
	return 0;
}

int launch_recover(const char *jobs_dir, const char *run_dir,
		   int (*found)(void *arg, const struct launch_found *f), void *arg,
		   struct iocom_err *err)
{
	uint64_t until_ns = clock_boot_ns() + ANSWER_MS * CLOCK_NS_PER_MS;
	const struct dirent *entry;
	DIR *all = opendir(jobs_dir);
	int rc = 0;

	if (!all && errno == ENOENT)
		return 0;
	if (!all)
		return iocom_err_set(err, -errno, "cannot read the jobs' records in %s: %s",
				     jobs_dir, strerror(errno));
	while (!rc && (entry = readdir(all))) {
		struct launch_found f = {.leash = -1};
		int dir = open_job(jobs_dir, entry->d_name);

		if (dir < 0) {					      /* not a job's directory */
			record_remove_spare(jobs_dir, entry->d_name); /* its agent is gone */
			continue;
		}
		snprintf(f.job, sizeof(f.job), "%.95s", entry->d_name);
		launch_recover_look(dir, run_dir, until_ns, &f);
		rc = found(arg, &f);
		close(dir);
	}
	closedir(all);
	return rc;
}

int64_t launch_forget(const char *jobs_dir, const char *run_dir, const char *job)
{
	char path[1024 + SPEC_JOB_MAX + 8];
	int dir = open_job(jobs_dir, job);
	int64_t kept = -ENOENT;

	if (dir >= 0) {
		/* A shim that is not done may still have to keep output that its client lost. */
		kept = record_lock(dir) ? -EBUSY : record_spool_bytes(dir);
		close(dir);
	}
	if (kept == -EBUSY)
		return kept;
	if (kept == -ENOENT)
		record_remove(jobs_dir, job);
	/* A killed shim left it. */
	if (spec_job_valid(job) &&
	    snprintf(path, sizeof(path), "%s/%s.sock", run_dir, job) < (int)sizeof(path))
		unlink(path);
	return kept == -ENOENT ? 0 : kept;
}

int launch_owner(const char *jobs_dir, const char *job, uid_t *uid)
{
	struct record_start start;
	int dir = open_job(jobs_dir, job);
	int rc = dir < 0 ? -ENOENT : record_read_start(dir, &start);

	if (dir >= 0)
		close(dir);
	if (!rc)
		*uid = start.uid;
	return rc ? -ENOENT : 0;
}

int launch_secret(const char *jobs_dir, const char *job, uint8_t secret[SECRET_BYTES])
{
	struct record_start start;
	int dir = open_job(jobs_dir, job);
	int rc = dir < 0 ? -ENOENT : record_read_start(dir, &start);

	if (dir < 0)
		return rc;
	close(dir);
	if (!rc && start.keyed)
		memcpy(secret, start.secret, SECRET_BYTES);
	explicit_bzero(start.secret, sizeof(start.secret));
	if (rc)
		return -ENOENT;
	return start.keyed ? 0 : -ENODATA;
}
