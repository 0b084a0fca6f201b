/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs of an older agent (functions in launch.h).  A job's record says what it
 * was; whether its shim lives is asked in this order, which no race defeats:
 *
 *   record `exit` is there          over: that is the outcome
 *   control socket takes the leash  alive
 *   lock on the directory is held   alive but busy ending: look again
 *   otherwise                       the shim was killed: what is left of the job
 *                                   is killed too, its outcome is unknown
 */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "clock.h"
#include "frame.h"
#include "pack.h"
#include "record.h"

#define TRIES	     100
#define TRY_PAUSE_NS 20000000L
#define LOOK_MS	     4000 /* for all tries together */
#define LEASH_MS     2000 /* for a shim's answer */
#define SIGNAL_MS    250  /* the agent serves nobody meanwhile */

/*
 * Connects to RUN_DIR/JOB.sock, and waits LIMIT_MS for an answer on it; a
 * descriptor or negative errno.  A shim that hangs (its job's directory may be
 * on a file system that does not answer) takes no connection: -EAGAIN, for a
 * connect that waits would hang with it.
 */
static int control_connect(const char *run_dir, const char *job, unsigned limit_ms)
{
	struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int directory, fd, rc = 0;

	if (!spec_job_valid(job))
		return -EINVAL;
	/* Through the directory's descriptor: a socket's name holds 107 bytes only. */
	directory = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		rc = -errno;
	else if (snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s.sock", directory,
			  job) >= (int)sizeof(sa.sun_path))
		rc = -ENAMETOOLONG;
	else if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		rc = -errno;
	close(directory);
	if (rc) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	fcntl(fd, F_SETFL, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static int control_ask(int fd, const char *op, int signal)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", op);
	pack_u64(&pk, "signal", (uint64_t)signal);
	rc = frame_write(fd, FRAME_REQUEST, buffer.data, (uint32_t)buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

int launch_signal(const char *run_dir, const char *job, int signal)
{
	int fd = control_connect(run_dir, job, SIGNAL_MS);
	msgpack_unpacked message;
	struct frame frame;
	uint64_t result = 0;
	int rc;

	if (fd < 0)
		return fd == -ENOENT || fd == -ECONNREFUSED ? -ESRCH : fd;
	rc = control_ask(fd, "signal", signal);
	if (!rc)
		rc = frame_read(fd, &frame, 4096, NULL);
	if (rc) /* asked all the same: it obeys when it wakes */
		rc = rc == -EAGAIN ? -ETIMEDOUT : -EIO;
	close(fd);
	if (rc)
		return rc;
	if (unpack_map(&message, frame.payload, frame.length)) {
		frame_free(&frame);
		return -EBADMSG;
	}
	rc = unpack_u64(&message.data, "result", &result) ? -EBADMSG : -(int)result;
	msgpack_unpacked_destroy(&message);
	frame_free(&frame);
	return rc;
}

/* Takes over the leash of a living shim.  0 or negative errno. */
static int take_leash(const char *run_dir, struct launch_found *f)
{
	int fd = control_connect(run_dir, f->job, LEASH_MS);
	int rc;

	if (fd < 0)
		return fd;
	rc = control_ask(fd, "leash", 0);
	/* The answer is the event "started"; a byte of it is waited for, at most LEASH_MS. */
	for (char byte; !rc && recv(fd, &byte, 1, MSG_PEEK) != 1;)
		rc = -EIO;
	if (!rc)
		rc = launch_read(fd, &f->started);
	if (rc) {
		close(fd);
		return rc;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	f->leash = fd;
	return 0;
}

/* The shim was killed: its job ends here too, and nobody knows how it went. */
static void bury(const struct record_start *start, struct launch_found *f)
{
	char name[SPEC_JOB_MAX + 8];
	struct cgroup_mounts mounts;
	struct timespec now;
	struct cgroup group;

	snprintf(name, sizeof(name), "jobs/%s", start->job);
	if (!cgroup_mounts_read("/proc/self/mounts", &mounts, NULL) &&
	    !cgroup_name(&mounts, start->scope, name, &group, NULL))
		cgroup_remove(&group, 2000);
	clock_gettime(CLOCK_REALTIME, &now);
	f->last.kind = 3;
	f->last.value = 255;
	f->last.end_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(f->last.text, sizeof(f->last.text),
		 "the job's supervisor was killed; the job was ended, its outcome is unknown");
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
	memcpy(f->last.text, end.text, sizeof(f->last.text));
	return 0;
}

/* Fills F from the open directory DIR.  As launch_outcome; TAKE: a living shim's leash. */
static int look(int dir, const char *run_dir, bool take, struct launch_found *f)
{
	uint64_t until_ns = clock_boot_ns() + LOOK_MS * CLOCK_NS_PER_MS;
	struct record_start start;
	int rc = record_read_start(dir, &start);

	f->leash = -1;
	f->last.type = LAUNCH_EXITED;
	f->started.type = LAUNCH_STARTED;
	memcpy(f->last.job, f->job, sizeof(f->job));
	memcpy(f->started.job, f->job, sizeof(f->job));
	snprintf(start.job, sizeof(start.job), "%s", f->job);
	f->uid = start.uid;
	f->start_ns = start.start_ns;
	f->started.cgroup_id = start.cgroup_id;
	memcpy(f->command, start.command, sizeof(f->command));
	memcpy(f->class_name, start.class_name, sizeof(f->class_name));
	for (int i = 0; i < TRIES && clock_boot_ns() < until_ns; i++) {
		if (!take_exit(dir, f))
			return 0;
		if (take && !take_leash(run_dir, f))
			return 0;
		if (!record_lock(dir)) {
			/* It may have written its exit between the two looks. */
			if (take_exit(dir, f))
				bury(&start, f);
			return 0;
		}
		nanosleep(&(struct timespec){.tv_nsec = TRY_PAUSE_NS}, NULL);
	}
	return rc ? rc : -EAGAIN;
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
	int rc;

	*f = (struct launch_found){.leash = -1};
	if (dir < 0)
		return dir;
	snprintf(f->job, sizeof(f->job), "%s", job);
	rc = look(dir, run_dir, false, f);
	close(dir);
	return rc;
}

int launch_recover(const char *jobs_dir, const char *run_dir,
		   int (*found)(void *arg, const struct launch_found *f), void *arg,
		   struct iocom_err *err)
{
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

		if (dir < 0)
			continue; /* not a job's directory */
		snprintf(f.job, sizeof(f.job), "%.95s", entry->d_name);
		if (!look(dir, run_dir, true, &f))
			rc = found(arg, &f);
		close(dir);
	}
	closedir(all);
	return rc;
}

void launch_forget(const char *jobs_dir, const char *run_dir, const char *job)
{
	char path[1024 + SPEC_JOB_MAX + 8];

	record_remove(jobs_dir, job);
	if (spec_job_valid(job) &&
	    snprintf(path, sizeof(path), "%s/%s.sock", run_dir, job) < (int)sizeof(path))
		unlink(path);
}
