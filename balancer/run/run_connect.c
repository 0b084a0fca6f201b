/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reaches the target: connection, handshake, credential, first frame; see run.h. */
#include "balancer/run/run.h"
#include "balancer/run/run_stream.h"

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
#include <time.h>
#include <unistd.h>

#include "balancer/client.h"
#include "user/frame.h"
#include "user/pack.h"

#define AGAIN_TIMES 3
#define AGAIN_NS    (50 * 1000000l)

/* Waits until a connection is established.  Returns 0 or negative errno. */
static int await_connection(int fd, uint64_t until_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int error = 0, n;

	do {
		uint64_t now_ms = run_now_ms();

		n = poll(&p, 1, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		return -errno;
	return -error;
}

/* Returns a blocking, connected TCP socket, or negative errno. */
static int run_connect_one(const struct addrinfo *info, uint64_t until_ms)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	int one = 1, rc = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, info->ai_addr, info->ai_addrlen))
		rc = errno == EINPROGRESS ? await_connection(fd, until_ms) : -errno;
	if (!rc && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int connect_tcp(const struct run_target *target, const char *node, uint64_t until_ms,
		       int *fd, struct iocom_err *err)
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
		rc = run_connect_one(at, until_ms);
	freeaddrinfo(list);
	if (rc < 0)
		return iocom_err_set(
			err, rc,
			"node %s cannot be reached at %s port %u: %s (is iocomd running there?)",
			node, target->address, target->port, strerror(-rc));
	*fd = rc;
	return 0;
}

/* What the first frame of a stream says. */
struct run_first {
	uint8_t type;
	const char *key;	 /* the name of what the credential is bound to */
	const struct spec *spec; /* of FRAME_START; NULL: ASK is of FRAME_ATTACH */
	const struct attach_ask *ask;
	void *packed;
	size_t length;
	char *credential; /* NULL for this machine */
};

static int first_seal(struct run_first *first, const char *munge_socket, struct iocom_err *err)
{
	if (first->spec)
		return spec_seal(first->spec, first->packed, first->length, munge_socket,
				 &first->credential, err);
	return attach_seal(first->ask, first->packed, first->length, munge_socket,
			   &first->credential, err);
}

/* Makes one attempt; WORDLESS: the other end has closed, and said nothing. */
static int connect_once(const struct run_target *target, const struct stream_hello *hello,
			struct run_first *first, uint64_t until_ms, int *fd,
			struct records *records, bool *wordless, struct iocom_err *err)
{
	struct run_handshake shake;
	int rc = connect_tcp(target, hello->node, until_ms, fd, err);

	if (!rc)
		rc = run_handshake_begin(&shake, target, *fd, hello, err);
	if (rc)
		return rc;
	if (!first->credential)
		rc = first_seal(first, target->munge_socket, err);
	if (rc) {
		noise_end(&shake.noise);
		return rc;
	}
	rc = run_handshake_end(&shake, until_ms, records, err);
	*wordless = shake.wordless;
	return rc;
}

/*
 * Connects to another machine and does the handshake for HELLO; RECORDS gets the keys.  Munged
 * makes the credential of FIRST while the target computes.  What the target's network part had of
 * it is lost when that starts again: so it is tried a few times.  Returns 0 or negative errno.
 */
static int connect_secure(const struct run_target *target, const struct stream_hello *hello,
			  struct run_first *first, int *fd, struct records *records,
			  struct iocom_err *err)
{
	const struct timespec pause = {.tv_nsec = AGAIN_NS};
	uint64_t until_ms = run_now_ms() + RUN_CONNECT_MS;
	bool wordless = false;
	int rc = connect_once(target, hello, first, until_ms, fd, records, &wordless, err);

	for (int i = 1; rc && wordless && i < AGAIN_TIMES; i++) {
		close(*fd);
		*fd = -1;
		wordless = false;
		nanosleep(&pause, NULL);
		rc = connect_once(target, hello, first, until_ms, fd, records, &wordless, err);
	}
	return rc;
}

/* Sends all of a message; blocks.  Returns 0 or negative errno. */
static int send_whole(int fd, const uint8_t *at, size_t length)
{
	while (length) {
		ssize_t n = send(fd, at, length, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Sends one frame in records. */
static int send_sealed(int fd, struct records *records, uint8_t type,
		       const msgpack_sbuffer *payload)
{
	uint8_t header[FRAME_HEADER];
	const struct iovec pieces[] = {{header, sizeof(header)}, {payload->data, payload->size}};
	size_t length = records_size(sizeof(header) + payload->size);
	uint8_t *sealed = payload->size > FRAME_PAYLOAD_MAX ? NULL : malloc(length);
	int rc;

	if (!sealed)
		return payload->size > FRAME_PAYLOAD_MAX ? -EMSGSIZE : -ENOMEM;
	frame_header(header, type, (uint32_t)payload->size);
	rc = records_seal(records, pieces, 2, sealed);
	if (!rc)
		rc = send_whole(fd, sealed, length);
	free(sealed);
	return rc;
}

/* Sends the first frame: the credential, and what it is bound to. */
static int send_first(const struct run_target *target, int fd, struct records *records,
		      const char *node, const struct run_first *first, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "cred", first->credential);
	pack_bin(&pk, first->key, first->packed, first->length);
	if (*target->address)
		rc = send_sealed(fd, records, first->type, &buffer);
	else
		rc = frame_write(fd, first->type, buffer.data, (uint32_t)buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	/* An agent that refuses closes early; its sentence is still to be read. */
	if (rc == -EPIPE || rc == -ECONNRESET)
		return 0;
	return rc ? iocom_err_set(err, rc, "cannot send the job to node %s: %s", node,
				  strerror(-rc))
		  : 0;
}

/* Opens a connection and sends FIRST, which it frees.  Returns as run_connect does. */
static int open_with(const struct run_target *target, const struct stream_hello *hello,
		     struct run_first *first, int *fd, struct records *records,
		     struct iocom_err *err)
{
	int rc = *target->address ? connect_secure(target, hello, first, fd, records, err)
				  : client_connect(target->run_dir, fd, err);

	if (!rc)
		rc = send_first(target, *fd, records, hello->node, first, err);
	if (rc && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	free(first->packed);
	free(first->credential);
	return rc;
}

int run_target_key(struct run_target *target, const char *key, struct iocom_err *err)
{
	if (!*target->address || !secret_parse(target->key, key))
		return 0;
	return iocom_err_set(err, -EPROTO, "the agent's answer has no usable 'key'");
}

int run_connect(const struct run_target *target, const struct spec *spec, int *fd,
		struct records *records, struct iocom_err *err)
{
	struct run_first first = {.type = FRAME_START, .key = "spec", .spec = spec};
	struct stream_hello hello;
	int rc = spec_pack(spec, &first.packed, &first.length, err);

	*fd = -1;
	if (rc) {
		free(first.packed);
		return rc;
	}
	stream_hello_fill(&hello, STREAM_KIND_START, spec->job, spec->node, "");
	return open_with(target, &hello, &first, fd, records, err);
}

int run_connect_attach(const struct run_target *target, const struct attach_ask *ask, int *fd,
		       struct records *records, struct iocom_err *err)
{
	struct run_first first = {.type = FRAME_ATTACH, .key = "ask", .ask = ask};
	struct stream_hello hello;
	int rc = attach_pack(ask, &first.packed, &first.length);

	*fd = -1;
	if (rc)
		return iocom_err_set(err, rc, "out of memory");
	stream_hello_fill(&hello, STREAM_KIND_ATTACH, ask->job, ask->node, target->ticket);
	return open_with(target, &hello, &first, fd, records, err);
}
