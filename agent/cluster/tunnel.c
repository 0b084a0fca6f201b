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

#include "agent/front/clients.h"
#include "user/pack.h"
#include "agent/base/spawn.h"

#define TUNNELS_USER  "iocom"
#define NOBODY	      65534
#define ARGUMENTS_MAX 16

struct tunnel {
	pid_t pid;
	uid_t uid;
};

struct tunnels {
	char uid[16], gid[16]; /* of the relays */
	size_t count;
	struct tunnel list[TUNNELS_MAX];
};

/* Looked up once, at the start: directory services may be slow. */
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
					     "relay_user: '%s' is root, or of root's group; relays "
					     "are to be neither",
					     user);
		uid = gid = NOBODY;
	}
	*shared = uid == NOBODY;
	snprintf(tunnels->uid, sizeof(tunnels->uid), "%u", (unsigned)uid);
	snprintf(tunnels->gid, sizeof(tunnels->gid), "%u", (unsigned)gid);
	return 0;
}

int tunnels_new(struct tunnels **out, const char *user, bool *shared, struct iocom_err *err)
{
	int rc;

	*out = calloc(1, sizeof(**out));
	if (!*out)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = take_user(*out, user, shared, err);
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

static bool tunnel_has_room(const struct tunnels *tunnels, uid_t uid)
{
	size_t own = 0;

	for (size_t i = 0; i < tunnels->count; i++)
		own += tunnels->list[i].uid == uid;
	return tunnels->count < TUNNELS_MAX && (!uid || own < TUNNELS_OF_ONE);
}

/* The relay is installed beside the shim. */
static void relay_path(const struct agent *a, char *out, size_t size)
{
	const char *slash = strrchr(a->set.shim, '/');

	snprintf(out, size, "%.*siocom-relay", slash ? (int)(slash + 1 - a->set.shim) : 0,
		 a->set.shim);
}

/* ARGV: from the role on. */
static int spawn_relay(struct agent *a, char *const argv[], const int *fds, size_t n, pid_t *pid,
		       struct iocom_err *err)
{
	char *all[ARGUMENTS_MAX] = {(char *)"iocom-relay", (char *)"--as", a->tunnels->uid,
				    a->tunnels->gid};
	char path[SETTINGS_PATH_MAX + 16];
	int rc;

	for (size_t i = 0; argv[i] && i + 5 < ARGUMENTS_MAX; i++)
		all[i + 4] = argv[i];
	relay_path(a, path, sizeof(path));
	rc = spawn_spawn(path, all, fds, n, pid);
	return rc ? iocom_err_set(err, rc, "cannot start the TLS relay %s: %s", path, strerror(-rc))
		  : 0;
}

/* With one end of a socketpair, and TCP where it is there; the other end in PLAIN. */
static int spawn_with_pair(struct agent *a, char *const argv[], int tcp, int *plain,
			   struct iocom_err *err)
{
	int ends[2], rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return iocom_err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	rc = spawn_relay(a, argv, (const int[]){ends[1], tcp}, tcp < 0 ? 1 : 2, &pid, err);
	close(ends[1]);
	if (rc)
		close(ends[0]);
	else
		*plain = ends[0];
	return rc;
}

int tunnel_accept(struct agent *a, int fd, int *plain, struct iocom_err *err)
{
	char *const argv[] = {(char *)"server", a->set.tls_certificate, a->set.tls_key,
			      a->set.tls_ca, NULL};

	return spawn_with_pair(a, argv, fd, plain, err);
}

int tunnel_ask(struct agent *a, const struct settings_peer *peer, int *answer,
	       struct iocom_err *err)
{
	char address[IOCOM_ADDRESS_MAX], port[16];
	char *const argv[] = {(char *)"ask",  a->set.tls_certificate,
			      a->set.tls_key, a->set.tls_ca,
			      address,	      address,
			      port,	      NULL};

	snprintf(address, sizeof(address), "%s", peer->address);
	snprintf(port, sizeof(port), "%u", peer->port + 2u);
	return spawn_with_pair(a, argv, -1, answer, err);
}

void tunnel_request(struct agent *a, struct client *client, const msgpack_object *request)
{
	const struct matrix_entry *e = NULL;
	char name[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX], port[16];
	char *const argv[] = {(char *)"client",
			      a->set.tls_certificate,
			      a->set.tls_key,
			      a->set.tls_ca,
			      name,
			      address,
			      port,
			      NULL};
	struct tunnel tunnel = {.uid = client_who(client)->uid};
	struct iocom_err err = {0};
	int fd = client_fd(client);

	if (!a->tunnels) {
		client_error(client, "this agent has no TLS (tls_certificate, tls_key, tls_ca)");
		return;
	}
	if (unpack_str(request, "node", name, sizeof(name))) {
		client_error(client, "the request names no node");
		return;
	}
	e = matrix_find(&a->matrix, name);
	if (!e || !e->vector.address[0]) {
		client_error(client, "node %s is not known here", name);
		return;
	}
	if (!tunnel_has_room(a->tunnels, tunnel.uid)) {
		a->counters.tunnels_refused++;
		client_error(client,
			     "%d of your jobs have streams to other nodes, the limit of a "
			     "user here",
			     TUNNELS_OF_ONE);
		return;
	}
	snprintf(address, sizeof(address), "%s", e->vector.address);
	snprintf(port, sizeof(port), "%u", e->vector.port + 2u);
	if (spawn_relay(a, argv, &fd, 1, &tunnel.pid, &err)) {
		client_error(client, "%s", err.text);
		return;
	}
	a->tunnels->list[a->tunnels->count++] = tunnel;
	client_hand_over(client);
}
