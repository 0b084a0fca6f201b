/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom doctor`: the agent's network part (iocom-net), what it may and who it is. */
#include <ctype.h>
#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/doctor/doctor.h"

#define CHECK  "network-part"
#define ADVICE "sudo systemd-sysusers, or: sudo useradd --system iocom-net"

/* What /proc tells of a process. */
struct net_status {
	char name[32];
	int parent;
	unsigned uid;
	unsigned long long capabilities; /* effective */
	int seccomp;			 /* 2: a filter */
};

static bool net_read(const char *pid, struct net_status *s)
{
	char path[64], line[256];
	FILE *f;

	*s = (struct net_status){.uid = (unsigned)-1, .seccomp = -1};
	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		(void)!sscanf(line, "Name: %31s", s->name);
		(void)!sscanf(line, "PPid: %d", &s->parent);
		(void)!sscanf(line, "Uid: %u", &s->uid);
		(void)!sscanf(line, "CapEff: %llx", &s->capabilities);
		(void)!sscanf(line, "Seccomp: %d", &s->seccomp);
	}
	fclose(f);
	return s->seccomp >= 0;
}

/* Returns the pid of the network part of agent PARENT; 0: there is none. */
static pid_t net_find(pid_t parent, struct net_status *s)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && net_read(entry->d_name, s) &&
		    s->parent == parent && !strcmp(s->name, "iocom-net"))
			found = (pid_t)atoi(entry->d_name);
	if (proc)
		closedir(proc);
	return found;
}

static void net_running(struct doctor *d)
{
	const struct passwd *user;
	struct net_status s;
	pid_t pid = net_find(d->agent_pid, &s);
	json_t *object;

	if (!pid) {
		doctor_add(d, CHECK, DOCTOR_BROKEN, "see the agent's log",
			   "the agent has none now: it hears no other node, and serves no metrics");
		return;
	}
	user = getpwuid(s.uid);
	if (!s.uid || s.capabilities)
		object = doctor_add(d, CHECK, DOCTOR_BROKEN, "install iocomd and iocom-net anew",
				    "iocom-net, pid %d, has rights (uid %u, capabilities %llx)",
				    (int)pid, s.uid, s.capabilities);
	else if (s.seccomp != 2)
		object = doctor_add(d, CHECK, DOCTOR_DEGRADED, NULL,
				    "iocom-net, pid %d, has no filter of system calls: it is built "
				    "with a sanitizer",
				    (int)pid);
	else if (user && strcmp(user->pw_name, d->set.net_user) != 0)
		object = doctor_add(d, CHECK, DOCTOR_DEGRADED, ADVICE,
				    "iocom-net, pid %d, runs as %s, which other services may use, "
				    "too: there was no user %s",
				    (int)pid, user->pw_name, d->set.net_user);
	else
		object = doctor_add(d, CHECK, DOCTOR_OK, NULL,
				    "iocom-net, pid %d, runs as %s, without capabilities, filtered",
				    (int)pid, d->set.net_user);
	json_object_set_new(object, "pid", json_integer(pid));
}

/* What an agent that begins would find. */
static void net_not_running(struct doctor *d)
{
	const struct passwd *user = getpwnam(d->set.net_user);

	/* Beside this program it need not be: the agent looks beside its own. */
	if (d->set.net_program[0] && access(d->set.net_program, X_OK))
		doctor_add(d, CHECK, DOCTOR_BROKEN, "correct net_program in the configuration",
			   "the program iocom-net is not at %s", d->set.net_program);
	else if (user && (!user->pw_uid || !user->pw_gid))
		doctor_add(d, CHECK, DOCTOR_BROKEN, "choose another --net-user",
			   "it may not run as root, or in root's group, as %s would",
			   d->set.net_user);
	else if (!user)
		doctor_add(d, CHECK,
			   strcmp(d->set.net_user, SETTINGS_NET_USER) ? DOCTOR_BROKEN
								      : DOCTOR_DEGRADED,
			   ADVICE, "there is no user %s for it", d->set.net_user);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "iocom-net would run as %s", d->set.net_user);
}

void doctor_net(struct doctor *d)
{
	if (!d->configured)
		doctor_add(d, CHECK, DOCTOR_SKIPPED, NULL,
			   "the configuration says if it is needed");
	else if (!settings_networked(&d->set) && !d->set.metrics.address[0])
		doctor_add(d, CHECK, DOCTOR_SKIPPED, NULL,
			   "none is needed: neither peers, nor an address to listen at, nor "
			   "metrics are configured");
	else if (d->agent_pid)
		net_running(d);
	else
		net_not_running(d);
}
