/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_spawn.h. */
#include "agent/gate/net_spawn.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/spawn.h"
#include "user/trust.h"

static int net_spawn_user(struct net_spawn *spawn, const struct base *base, struct iocom_err *err)
{
	const char *name = base->set->net_user;
	const struct passwd *user = getpwnam(name);

	if (!user && !strcmp(name, SETTINGS_NET_USER)) {
		log_write(base->log, LOG_L_WARNING,
			  "there is no user %s: the network part runs as %s, which other services "
			  "may use, too (systemd-sysusers, or useradd --system %s)",
			  name, NET_USER_FALLBACK, name);
		user = getpwnam(NET_USER_FALLBACK);
	}
	if (!user)
		return iocom_err_set(err, -ENOENT,
				     "there is no user %s for the network part (--net-user)", name);
	if (!user->pw_uid || !user->pw_gid)
		return iocom_err_set(err, -EPERM,
				     "the network part may not run as root, or in root's group, as "
				     "%s would (--net-user)",
				     name);
	spawn->uid = user->pw_uid;
	spawn->gid = user->pw_gid;
	return 0;
}

int net_spawn_init(struct net_spawn *spawn, const struct base *base, struct iocom_err *err)
{
	int rc = net_spawn_user(spawn, base, err);

	if (rc)
		return rc;
	snprintf(spawn->program, sizeof(spawn->program), "%s", base->set->net_program);
	snprintf(spawn->room, sizeof(spawn->room), "%s/net", base->set->run_dir);
	if (mkdir(spawn->room, 0555) && errno != EEXIST)
		return iocom_err_set(err, -errno, "cannot make the directory %s: %s", spawn->room,
				     strerror(errno));
	(void)chmod(spawn->room, 0555); /* whatever the umask is */
	rc = trust_path(spawn->room, 0, err);
	return rc ? rc : net_log_open(&spawn->log, base->loop, base->log, err);
}

void net_spawn_fini(struct net_spawn *spawn)
{
	net_log_close(&spawn->log);
}

int net_spawn_start(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	struct net_spawn *spawn = arg;
	const int fds[] = {fd, spawn->log.writer};
	char uid[16], gid[16];
	char *argv[] = {(char *)"iocom-net", uid, gid, (char *)spawn->room, NULL};
	pid_t pid;
	int rc;

	snprintf(uid, sizeof(uid), "%u", (unsigned)spawn->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)spawn->gid);
	net_log_flush(&spawn->log);
	rc = spawn_spawn(spawn->program, argv, fds, 2, &pid);
	if (rc)
		return iocom_err_set(err, rc, "cannot start the network part %s: %s",
				     spawn->program, strerror(-rc));
	spawn->pid = pid;
	*pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (*pidfd >= 0)
		return 0;
	rc = -errno;
	kill(pid, SIGKILL);
	return iocom_err_set(err, rc, "cannot watch the network part: %s", strerror(-rc));
}

uint64_t net_spawn_waited_ns(void *arg)
{
	const struct net_spawn *spawn = arg;
	uint64_t waited_ns = 0;
	char path[32];
	FILE *f;

	/* Its second number; linux: Documentation/scheduler/sched-stats.rst. */
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)spawn->pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*u %" SCNu64, &waited_ns) != 1)
		waited_ns = 0;
	fclose(f);
	return waited_ns;
}
