/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reaches the target: connection, credential, first frame; see run.h. */
#include "balancer/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "balancer/client.h"
#include "user/frame.h"
#include "user/pack.h"

/* Waits until a connection is established.  Returns 0 or negative errno. */
static int await_connection(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int error = 0, n;

	do
		n = poll(&p, 1, RUN_CONNECT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		return -errno;
	return -error;
}

/* Returns a blocking, connected TCP socket, or negative errno. */
static int run_connect_one(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	int one = 1, rc = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, info->ai_addr, info->ai_addrlen))
		rc = errno == EINPROGRESS ? await_connection(fd) : -errno;
	if (!rc && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int connect_tcp(const struct run_target *target, const char *node, int *fd,
		       struct iocom_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	char port[16];
	int rc;

	snprintf(port, sizeof(port), "%u", target->port);
	rc = getaddrinfo(target->address, port, &hints, &list);
	if (rc)
		return iocom_err_set(err, -EHOSTUNREACH, "node %s has no usable address '%s': %s",
				     node, target->address, gai_strerror(rc));
	rc = -EHOSTUNREACH;
	for (const struct addrinfo *at = list; at && rc < 0; at = at->ai_next)
		rc = run_connect_one(at);
	freeaddrinfo(list);
	if (rc < 0)
		return iocom_err_set(
			err, rc,
			"node %s cannot be reached at %s port %u: %s (is iocomd running there?)",
			node, target->address, target->port, strerror(-rc));
	*fd = rc;
	return 0;
}

/* Asks this machine's agent, which has the TLS key, for a relay to the target. */
static int connect_relay(const struct run_target *target, const char *node, int *fd,
			 struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc = client_connect(target->run_dir, fd, err);

	if (rc)
		return rc;
	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", "tunnel");
	pack_str(&pk, "node", node);
	rc = client_send(*fd, buffer.data, buffer.size, err);
	msgpack_sbuffer_destroy(&buffer);
	if (rc) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

static int connect_target(const struct run_target *target, const char *node, int *fd,
			  struct iocom_err *err)
{
	if (!*target->address)
		return client_connect(target->run_dir, fd, err);
	return target->tls ? connect_relay(target, node, fd, err)
			   : connect_tcp(target, node, fd, err);
}

/* Sends the first frame: the credential, and under KEY what it is bound to. */
static int send_first(int fd, uint8_t type, const char *node, const char *key, const void *packed,
		      size_t length, const char *credential, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "cred", credential);
	pack_bin(&pk, key, packed, length);
	rc = frame_write(fd, type, buffer.data, (uint32_t)buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	/* An agent that refuses closes early; its sentence is still to be read. */
	if (rc == -EPIPE || rc == -ECONNRESET)
		return 0;
	return rc ? iocom_err_set(err, rc, "cannot send the job to node %s: %s", node,
				  strerror(-rc))
		  : 0;
}

/*
 * Opens a connection and sends the first frame.  Frees PACKED and CREDENTIAL.  Returns as
 * run_connect does.
 */
static int open_with(const struct run_target *target, uint8_t type, const char *node,
		     const char *key, void *packed, size_t length, char *credential, int *fd,
		     struct iocom_err *err)
{
	int rc = connect_target(target, node, fd, err);

	if (!rc)
		rc = send_first(*fd, type, node, key, packed, length, credential, err);
	if (rc && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	free(packed);
	free(credential);
	return rc;
}

int run_connect(const struct run_target *target, const struct spec *spec, int *fd,
		struct iocom_err *err)
{
	char *credential = NULL;
	void *packed = NULL;
	size_t length = 0;
	int rc = spec_pack(spec, &packed, &length, err);

	*fd = -1;
	if (!rc && *target->address)
		rc = spec_seal(spec, packed, length, target->munge_socket, &credential, err);
	if (!rc)
		return open_with(target, FRAME_START, spec->node, "spec", packed, length,
				 credential, fd, err);
	free(packed);
	return rc;
}

int run_connect_attach(const struct run_target *target, const struct attach_ask *ask, int *fd,
		       struct iocom_err *err)
{
	char *credential = NULL;
	void *packed = NULL;
	size_t length = 0;
	int rc = attach_pack(ask, &packed, &length);

	*fd = -1;
	if (rc)
		return iocom_err_set(err, rc, "out of memory");
	if (*target->address)
		rc = attach_seal(ask, packed, length, target->munge_socket, &credential, err);
	if (!rc)
		return open_with(target, FRAME_ATTACH, ask->node, "ask", packed, length, credential,
				 fd, err);
	free(packed);
	return rc;
}
