/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See tunnel.h. */
#include "agent/cluster/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/places.h"
#include "agent/base/spawn.h"

#define TUNNELS_USER  "iocom"
#define NOBODY	      65534
#define ARGUMENTS_MAX 16

struct tunnel {
	pid_t pid;
	uid_t uid;
};

struct tunnels {
	const struct base *base;
	char uid[16], gid[16]; /* the relays run as these */
	size_t count;
	struct tunnel list[TUNNELS_MAX];
};

/* Looks up the relays' user once, at the start: directory services may be slow. */
static int take_user(struct tunnels *tunnels, const char *user, bool *shared, struct iocom_err *err)
{
	const struct passwd *found = getpwnam(*user ? user : TUNNELS_USER);
	uid_t uid = found ? found->pw_uid : NOBODY;
	gid_t gid = found ? found->pw_gid : NOBODY;

	if (!found && *user)
		return iocom_err_set(err, -EINVAL, "relay_user: there is no user '%s'", user);
	if (uid == 0 || gid == 0) {
		if (*user)
			return iocom_err_set(err, -EINVAL,
					     "relay_user: '%s' is root, or in root's group; relays "
					     "must be neither",
					     user);
		uid = gid = NOBODY;
	}
	*shared = uid == NOBODY;
	snprintf(tunnels->uid, sizeof(tunnels->uid), "%u", (unsigned)uid);
	snprintf(tunnels->gid, sizeof(tunnels->gid), "%u", (unsigned)gid);
	return 0;
}

int tunnels_new(struct tunnels **out, const struct base *base, bool *shared, struct iocom_err *err)
{
	int rc;

	*out = calloc(1, sizeof(**out));
	if (!*out)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	(*out)->base = base;
	rc = take_user(*out, base->set->relay_user, shared, err);
	if (rc) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

uid_t tunnels_uid(const struct tunnels *tunnels)
{
	return (uid_t)strtoul(tunnels->uid, NULL, 10);
}

size_t tunnels_count(const struct tunnels *tunnels)
{
	return tunnels ? tunnels->count : 0;
}

void tunnels_free(struct tunnels *tunnels)
{
	free(tunnels);
}

void tunnels_reaped(struct tunnels *tunnels, pid_t pid)
{
	for (size_t i = 0; tunnels && i < tunnels->count; i++)
		if (tunnels->list[i].pid == pid) {
			tunnels->list[i] = tunnels->list[--tunnels->count];
			return;
		}
}

/* The relay is installed beside the shim. */
static void relay_path(const struct settings *set, char *out, size_t size)
{
	const char *slash = strrchr(set->shim, '/');

	snprintf(out, size, "%.*siocom-relay", slash ? (int)(slash + 1 - set->shim) : 0, set->shim);
}

/* ARGV: the arguments from the role on. */
static int spawn_relay(const struct tunnels *t, char *const argv[], const int *fds, size_t n,
		       pid_t *pid, struct iocom_err *err)
{
	char *all[ARGUMENTS_MAX] = {(char *)"iocom-relay", (char *)"--as", (char *)t->uid,
				    (char *)t->gid};
	char path[SETTINGS_PATH_MAX + 16];
	int rc;

	for (size_t i = 0; argv[i] && i + 5 < ARGUMENTS_MAX; i++)
		all[i + 4] = argv[i];
	relay_path(t->base->set, path, sizeof(path));
	rc = spawn_spawn(path, all, fds, n, pid);
	return rc ? iocom_err_set(err, rc, "cannot start the TLS relay %s: %s", path, strerror(-rc))
		  : 0;
}

/*
 * Spawns a relay with one end of a socketpair, and with TCP if that is set; PLAIN gets the other
 * end.
 */
static int spawn_with_pair(const struct tunnels *t, char *const argv[], int tcp, int *plain,
			   struct iocom_err *err)
{
	int ends[2], rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return iocom_err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	rc = spawn_relay(t, argv, (const int[]){ends[1], tcp}, tcp < 0 ? 1 : 2, &pid, err);
	close(ends[1]);
	if (rc)
		close(ends[0]);
	else
		*plain = ends[0];
	return rc;
}

int tunnel_accept(const struct tunnels *t, int fd, int *plain, struct iocom_err *err)
{
	char *const argv[] = {(char *)"server", (char *)t->base->set->tls_certificate,
			      (char *)t->base->set->tls_key, (char *)t->base->set->tls_ca, NULL};

	return spawn_with_pair(t, argv, fd, plain, err);
}

int tunnel_ask(const struct tunnels *t, const struct settings_peer *peer, int *answer,
	       struct iocom_err *err)
{
	char address[IOCOM_ADDRESS_MAX], port[16];
	char *const argv[] = {(char *)"ask",
			      (char *)t->base->set->tls_certificate,
			      (char *)t->base->set->tls_key,
			      (char *)t->base->set->tls_ca,
			      address,
			      address,
			      port,
			      NULL};

	snprintf(address, sizeof(address), "%s", peer->address);
	snprintf(port, sizeof(port), "%u", peer->port + 2u);
	return spawn_with_pair(t, argv, -1, answer, err);
}

static int tunnels_room(const struct tunnels *tunnels, uid_t uid, struct iocom_err *err)
{
	static const struct places places = {
		.what = "streams to other nodes",
		.limit = "tunnels",
		.one = "tunnels",
		.max = TUNNELS_MAX,
		.of_root = TUNNELS_OF_ROOT,
		.of_one = TUNNELS_OF_ONE,
	};
	size_t own = 0;

	for (size_t i = 0; i < tunnels->count; i++)
		own += tunnels->list[i].uid == uid;
	return places_ask(&places, uid, tunnels->count, own, tunnels->base->counters, err);
}

int tunnels_open(struct tunnels *t, uid_t uid, int fd, const struct iocom_vector *node,
		 struct iocom_err *err)
{
	char name[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX], port[16];
	char *const argv[] = {(char *)"client",
			      (char *)t->base->set->tls_certificate,
			      (char *)t->base->set->tls_key,
			      (char *)t->base->set->tls_ca,
			      name,
			      address,
			      port,
			      NULL};
	struct tunnel tunnel = {.uid = uid};
	int rc;

	if (tunnels_room(t, uid, err)) {
		t->base->counters->tunnels_refused++;
		return -EAGAIN;
	}
	snprintf(name, sizeof(name), "%s", node->name);
	snprintf(address, sizeof(address), "%s", node->address);
	snprintf(port, sizeof(port), "%u", node->port + 2u);
	rc = spawn_relay(t, argv, &fd, 1, &tunnel.pid, err);
	if (!rc)
		t->list[t->count++] = tunnel;
	return rc;
}
