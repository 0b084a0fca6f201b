/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See tunnel.h. */
#include "tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients.h"
#include "pack.h"
#include "helper.h"

/* The relay is installed beside the shim. */
static void relay_path(const struct agent *a, char *out, size_t size)
{
	const char *slash = strrchr(a->set.shim, '/');

	snprintf(out, size, "%.*siocom-relay", slash ? (int)(slash + 1 - a->set.shim) : 0,
		 a->set.shim);
}

static int spawn_relay(struct agent *a, char *const argv[], const int *fds, size_t n,
		       struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 16];
	pid_t pid;
	int rc;

	relay_path(a, path, sizeof(path));
	rc = helper_spawn(path, argv, fds, n, &pid);
	return rc ? iocom_err_set(err, rc, "cannot start the TLS relay %s: %s", path, strerror(-rc))
		  : 0;
}

/* With one end of a socketpair, and TCP where it is there; the other end in PLAIN. */
static int spawn_with_pair(struct agent *a, char *const argv[], int tcp, int *plain,
			   struct iocom_err *err)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return iocom_err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	rc = spawn_relay(a, argv, (const int[]){ends[1], tcp}, tcp < 0 ? 1 : 2, err);
	close(ends[1]);
	if (rc)
		close(ends[0]);
	else
		*plain = ends[0];
	return rc;
}

int tunnel_accept(struct agent *a, int fd, int *plain, struct iocom_err *err)
{
	char *const argv[] = {(char *)"iocom-relay", (char *)"server", a->set.tls_certificate,
			      a->set.tls_key,	     a->set.tls_ca,    NULL};

	return spawn_with_pair(a, argv, fd, plain, err);
}

int tunnel_ask(struct agent *a, const struct settings_peer *peer, int *answer,
	       struct iocom_err *err)
{
	char address[IOCOM_ADDRESS_MAX], port[16];
	char *const argv[] = {(char *)"iocom-relay",
			      (char *)"ask",
			      a->set.tls_certificate,
			      a->set.tls_key,
			      a->set.tls_ca,
			      address,
			      address,
			      port,
			      NULL};

	snprintf(address, sizeof(address), "%s", peer->address);
	snprintf(port, sizeof(port), "%u", peer->port + 2u);
	return spawn_with_pair(a, argv, -1, answer, err);
}

void tunnel_request(struct agent *a, struct client *client, const msgpack_object *request)
{
	const struct matrix_entry *e = NULL;
	char name[IOCOM_NAME_MAX], address[IOCOM_ADDRESS_MAX], port[16];
	char *const argv[] = {(char *)"iocom-relay",
			      (char *)"client",
			      a->set.tls_certificate,
			      a->set.tls_key,
			      a->set.tls_ca,
			      name,
			      address,
			      port,
			      NULL};
	struct iocom_err err = {0};
	int fd = client_fd(client);

	if (!a->tls) {
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
	snprintf(address, sizeof(address), "%s", e->vector.address);
	snprintf(port, sizeof(port), "%u", e->vector.port + 2u);
	if (spawn_relay(a, argv, &fd, 1, &err))
		client_error(client, "%s", err.text);
	else
		client_hand_over(client);
}
