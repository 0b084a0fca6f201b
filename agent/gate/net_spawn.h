/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Starts the network part as a process of its own, iocom-net (agent/net/main.c). */
#ifndef IOCOM_NET_SPAWN_H
#define IOCOM_NET_SPAWN_H

#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/gate/net_log.h"
#include "agent/gate/net_part.h"

#define NET_USER_FALLBACK "nobody"

struct net_spawn {
	char program[SETTINGS_PATH_MAX];
	char room[SETTINGS_PATH_MAX + 8]; /* an empty directory, which becomes its root */
	uid_t uid;
	gid_t gid;
	pid_t pid; /* of the one that was started last */
	struct net_log log;
};

/*
 * Finds the user that BASE's settings name (the default's absence is logged, and nobody stands in),
 * makes the empty directory, and opens the pipe of its log.  net_spawn_fini after an error, too.
 * Returns 0; -ENOENT, -EPERM (that user is root) and others with
 * the reason in ERR.
 */
int net_spawn_init(struct net_spawn *spawn, const struct base *base, struct iocom_err *err);
void net_spawn_fini(struct net_spawn *spawn); /* of zeroes is fine */
/* A net_start.start with a struct net_spawn. */
int net_spawn_start(void *spawn, int fd, int *pidfd, struct iocom_err *err);
/* A net_start.waited_ns with a struct net_spawn. */
uint64_t net_spawn_waited_ns(void *spawn);

#endif
