/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What an agent stands on: its directories, which no other agent may use, its loop and signals, and
 * its databases.
 */
#include "agent/agent_own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "agent/base/spawn.h"
#include "agent/jobs/journal.h"
#include "agent/jobs/journal_thread.h"
#include "balancer/profile/profile.h"
#include "user/data_stage.h"
#include "user/trust.h"

/* Makes the name of the new directory PATH durable.  Returns 0 or negative errno. */
static int agent_sync_name(const char *path)
{
	char above[SETTINGS_PATH_MAX + 32];
	int fd, rc;

	snprintf(above, sizeof(above), "%s/..", path);
	fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc == -EINVAL ? 0 : rc; /* a file system that knows no sync */
}

/* Makes PATH and its parents, with these modes whatever the umask is; they survive a power cut. */
static int agent_make_directory(const char *path, mode_t mode, struct iocom_err *err)
{
	char part[SETTINGS_PATH_MAX + 16];
	size_t n = strlen(path);
	mode_t wanted;
	int rc;

	if (n >= sizeof(part))
		return iocom_err_set(err, -ENAMETOOLONG, "path too long: %s", path);
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		wanted = i == n ? mode : 0755;
		rc = mkdir(part, wanted) || chmod(part, wanted) ? -errno : agent_sync_name(part);
		if (rc && rc != -EEXIST)
			return iocom_err_set(err, rc, "cannot make the directory %s: %s", part,
					     strerror(-rc));
	}
	return 0;
}

/*
 * Locks DIRECTORY for one agent: two agents on one journal would each call the other's jobs lost.
 */
static int agent_lock_directory(const char *directory, const char *what, int *fd,
				struct iocom_err *err)
{
	char lock[SETTINGS_PATH_MAX + 16];

	snprintf(lock, sizeof(lock), "%s/%s.lock", directory, what);
	*fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*fd < 0)
		return iocom_err_set(err, -errno, "cannot write in the %s directory %s: %s", what,
				     directory, strerror(errno));
	if (flock(*fd, LOCK_EX | LOCK_NB))
		return iocom_err_set(err, -EBUSY,
				     "another iocomd already runs on %s; stop it, or choose "
				     "another --%s-dir",
				     directory, what);
	return 0;
}

/*
 * Jobs of all users pass through this directory.  What killed supervisors left in it is removed by
 * a process of its own, since it may be much.
 */
static int agent_data_directory(struct agent *a, struct iocom_err *err)
{
	char *argv[] = {(char *)"iocom-data", (char *)DATA_SWEEP_WORD, (char *)a->set->data_dir,
			NULL};
	int rc = agent_make_directory(a->set->data_dir, 0711, err);
	pid_t pid;

	if (!rc)
		rc = trust_path(a->set->data_dir, 0, err);
	if (rc) {
		iocom_err_prefix(err, "data directory (--data-dir)");
		return rc;
	}
	rc = spawn_spawn(a->set->shim, argv, NULL, 0, &pid);
	if (rc)
		log_write(&a->log, LOG_L_WARNING, "cannot start %s to tidy %s: %s", a->set->shim,
			  a->set->data_dir, strerror(-rc));
	return 0;
}

static int agent_directories(struct agent *a, struct iocom_err *err)
{
	int rc;

	snprintf(a->jobs_dir, sizeof(a->jobs_dir), "%s/jobs", a->set->state_dir);
	snprintf(a->run_jobs_dir, sizeof(a->run_jobs_dir), "%s/jobs", a->set->run_dir);
	rc = agent_make_directory(a->set->run_dir, 0755, err);
	if (!rc)
		rc = agent_make_directory(a->run_jobs_dir, 0700, err);
	if (!rc)
		rc = trust_path(a->set->run_dir, 0, err);
	if (!rc)
		rc = trust_path(a->run_jobs_dir, 0, err);
	if (rc) {
		iocom_err_prefix(err, "run directory (--run-dir)");
		return rc;
	}
	rc = agent_lock_directory(a->set->run_dir, "run", &a->lock_fd, err);
	if (rc)
		return rc;
	rc = agent_make_directory(a->set->state_dir, 0700, err);
	if (!rc)
		rc = agent_make_directory(a->jobs_dir, 0700, err);
	if (!rc)
		rc = trust_path(a->set->state_dir, 0, err);
	if (!rc)
		rc = trust_path(a->jobs_dir, 0, err);
	if (rc) {
		iocom_err_prefix(err, "state directory (--state-dir)");
		return rc;
	}
	rc = agent_lock_directory(a->set->state_dir, "state", &a->state_lock_fd, err);
	return rc ? rc : agent_data_directory(a, err);
}

/* Also checks SQLite's own files beside PATH, because SQLite would read them. */
static int agent_trust_database(const char *path, struct iocom_err *err)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	char file[SETTINGS_PATH_MAX + 32];
	int rc = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends) && !rc; i++) {
		snprintf(file, sizeof(file), "%s%s", path, ends[i]);
		rc = trust_file(file, err);
	}
	return rc;
}

/* Logs that FILE was migrated; BACKUP "": it was not. */
static void agent_tell_migrated(struct agent *a, const char *file, const char *backup)
{
	if (*backup)
		log_write(&a->log, LOG_L_INFO,
			  "%s was brought to this version's layout; as it was it is in %s", file,
			  backup);
}

static int agent_databases(struct agent *a, struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 16];
	const char *aside, *why;
	int rc;

	/*
	 * The files hold data of all users: only root may read them, even in a directory that
	 * others can read.
	 */
	umask(077);
	snprintf(path, sizeof(path), "%s/iocom.db", a->set->state_dir);
	rc = agent_trust_database(path, err);
	if (!rc)
		rc = journal_open(&a->journal, path, err);
	if (!rc)
		rc = journal_thread_new(&a->journal_thread, &a->base, a->journal, path, err);
	if (rc)
		return rc;
	agent_tell_migrated(a, path, journal_backup(a->journal));
	snprintf(path, sizeof(path), "%s/profile.db", a->set->state_dir);
	rc = agent_trust_database(path, err);
	if (!rc)
		rc = profile_renew(&a->profiles, path, err);
	if (rc)
		return rc;
	agent_tell_migrated(a, path, profile_backup(a->profiles));
	aside = profile_aside(a->profiles, &why);
	if (*aside) {
		a->counters.profiles_renewed++;
		log_write(&a->log, LOG_L_WARNING,
			  "%s; they are kept as %s, and learning begins anew", why, aside);
	}
	if (profile_swept(a->profiles))
		log_write(
			&a->log, LOG_L_WARNING,
			"%u entries of the class profiles %s had numbers that no run can have and "
			"were removed",
			profile_swept(a->profiles), path);
	return 0;
}

static void agent_signalled(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(a->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
			continue;
		}
		if (info.ssi_signo == SIGHUP) {
			agent_reload(a);
			continue;
		}
		log_write(&a->log, LOG_L_INFO, "stopping (signal %u); running jobs go on",
			  info.ssi_signo);
		loop_stop(a->base.loop);
	}
}

static int agent_catch_signals(struct agent *a, struct iocom_err *err)
{
	sigset_t set;
	int fd, rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return iocom_err_set(err, -errno, "cannot watch for signals: %s", strerror(errno));
	a->signals = (struct loop_fd){.fd = fd, .ready = agent_signalled, .arg = a};
	rc = loop_add(a->base.loop, &a->signals, EPOLLIN);
	return rc ? iocom_err_set(err, rc, "cannot watch for signals: %s", strerror(-rc)) : 0;
}

static int agent_make_base(struct agent *a, struct iocom_err *err)
{
	int rc;

	a->base.log = &a->log;
	a->base.counters = &a->counters;
	a->base.set = a->set;
	a->base.complaints = &a->complaints;
	while (!a->base.boot_id)
		if (getrandom(&a->base.boot_id, sizeof(a->base.boot_id), 0) < 0)
			return iocom_err_set(err, -errno, "no random bytes: %s", strerror(errno));
	rc = loop_new(&a->base.loop, err);
	if (rc)
		return rc;
	loop_share_init(&a->shares, a->base.loop);
	a->base.shares = &a->shares;
	return 0;
}

/*
 * Raises the descriptor limit for streams, clients and leashes; each job gets its user's own limit.
 */
static void agent_allow_descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int agent_make_ground(struct agent *a, struct iocom_err *err)
{
	int rc = agent_directories(a, err);

	agent_allow_descriptors();
	if (!rc)
		rc = agent_make_base(a, err);
	if (!rc)
		rc = accounts_new(&a->accounts, &a->counters, err);
	if (!rc)
		rc = agent_catch_signals(a, err);
	return rc ? rc : agent_databases(a, err);
}
