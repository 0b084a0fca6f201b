/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See move_call.h. */
#include "agent/guest/move_call.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/channel/stream_hello.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/pack.h"
#include "user/utf8.h"
#include "user/wire.h"

/* Waits for EVENTS.  Returns 0, -ETIMEDOUT or another negative errno. */
static int call_wait(int fd, short events, uint64_t until_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now_ms = clock_boot_ms();
	int n = poll(&p, 1, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);

	return n > 0 ? 0 : n == 0 ? -ETIMEDOUT : errno == EINTR ? 0 : -errno;
}

/* Returns a connection that does not block, or negative errno. */
static int call_connect_one(const struct addrinfo *info, uint64_t until_ms)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	int one = 1, error = 0, rc = 0;
	socklen_t length = sizeof(error);

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, info->ai_addr, info->ai_addrlen))
		rc = errno == EINPROGRESS ? call_wait(fd, POLLOUT, until_ms) : -errno;
	if (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		rc = -errno;
	if (!rc)
		rc = -error;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int call_connect(const struct peer_move *to, uint64_t until_ms)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST, /* a node's address is numeric */
	};
	struct addrinfo *list = NULL;
	char host[IOCOM_ADDRESS_MAX], port[16];
	size_t n = strlen(to->address);
	int rc = -EHOSTUNREACH;

	/* An IPv6 address may have brackets, as in URLs. */
	snprintf(host, sizeof(host), "%s", to->address + (*to->address == '['));
	if (*to->address == '[' && n > 2)
		host[n - 2] = 0;
	snprintf(port, sizeof(port), "%u", to->port);
	if (getaddrinfo(host, port, &hints, &list))
		return rc;
	for (const struct addrinfo *at = list; at && rc < 0; at = at->ai_next)
		rc = call_connect_one(at, until_ms);
	freeaddrinfo(list);
	return rc;
}

/* Reads one frame in clear into BUFFER.  Returns 0 or negative errno. */
static int call_hear(int fd, uint64_t until_ms, uint8_t *buffer, size_t size, uint8_t *type,
		     const uint8_t **payload, uint32_t *length)
{
	size_t have = 0, consumed = 0;
	int rc = 0, parsed = FRAME_E_MORE;

	while (!rc && parsed == FRAME_E_MORE && have < size) {
		ssize_t n;

		rc = call_wait(fd, POLLIN, until_ms);
		n = rc ? 0 : recv(fd, buffer + have, size - have, MSG_DONTWAIT);
		if (!rc && n == 0)
			rc = -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			rc = -errno;
		have += n > 0 ? (size_t)n : 0;
		parsed = frame_parse(buffer, have, STREAM_WELCOME_MAX, type, payload, length,
				     &consumed);
	}
	if (rc && parsed)
		return rc;
	return parsed || consumed != have ? -EBADMSG : 0;
}

/* The handshake, which shows that both ends know the key. */
static int call_greet(int fd, const struct peer_move *to, const char *job, uint64_t until_ms,
		      struct records *records)
{
	uint8_t out[STREAM_HELLO_MAX], answer[FRAME_HEADER + STREAM_WELCOME_MAX], type;
	struct stream_welcome welcome;
	struct stream_hello hello;
	const uint8_t *payload;
	struct noise noise;
	size_t n;
	uint32_t length;
	int rc;

	stream_hello_fill(&hello, STREAM_KIND_START, job, to->node, "");
	rc = stream_hello_pack(&noise, &hello, to->key, NULL, out, &n);
	if (rc)
		return rc;
	rc = frame_write(fd, FRAME_HELLO, out, (uint32_t)n);
	if (!rc)
		rc = call_hear(fd, until_ms, answer, sizeof(answer), &type, &payload, &length);
	if (!rc && type == FRAME_WELCOME)
		return stream_welcome_unpack(&noise, &hello, payload, length, &welcome, records);
	noise_end(&noise);
	return rc ? rc : -EACCES;
}

/* What the other node says, for its users: it must do nothing to a terminal. */
static int call_refused(const uint8_t *text, uint32_t length, struct iocom_err *err)
{
	char plain[200];

	snprintf(plain, sizeof(plain), "%.*s", (int)(length < 190 ? length : 190),
		 (const char *)text);
	utf8_plain(plain);
	return iocom_err_set(err, -ECONNREFUSED, "%s", plain);
}

/*
 * Waits until the shim there says that it is ready, or why it cannot (agent/shim/move/transfer.h).
 * It says nothing else before the job comes, so nothing of the stream is lost with WIRE.
 */
static int call_await_begin(struct wire *wire, uint64_t until_ms, struct iocom_err *err)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc;

	while ((rc = wire_next(wire, &type, &payload, &length)) == FRAME_E_MORE) {
		rc = call_wait(wire->fd, POLLIN, until_ms);
		if (!rc)
			rc = wire_fill(wire);
		if (rc < 0)
			return rc;
	}
	if (!rc && type == FRAME_MOVE && length == 1 && payload[0] == FRAME_MOVE_BEGIN)
		return 0;
	if (!rc && type == FRAME_MOVE && length && payload[0] == FRAME_MOVE_REFUSED)
		return call_refused(payload + 1, length - 1, err);
	if (!rc && type == FRAME_ERROR)
		return call_refused(payload, length, err);
	return -EBADMSG;
}

/* Sends FRAME_START in records.  RECORDS are what they are after the answer. */
static int call_start(int fd, const void *packed, size_t length, uint64_t until_ms,
		      struct records *records, struct iocom_err *err)
{
	msgpack_sbuffer message;
	msgpack_packer pk;
	struct wire wire;
	int rc = wire_init(&wire, fd, records);

	if (rc)
		return rc;
	pack_begin(&pk, &message, 1);
	pack_bin(&pk, "spec", packed, length);
	rc = wire_send(&wire, FRAME_START, NULL, 0, message.data, message.size);
	while (!rc && !wire_idle(&wire)) {
		rc = call_wait(fd, POLLOUT, until_ms);
		if (!rc)
			rc = wire_flush(&wire);
	}
	if (!rc)
		rc = call_await_begin(&wire, until_ms, err);
	msgpack_sbuffer_destroy(&message);
	*records = *wire_records(&wire);
	wire.fd = -1;
	wire_deinit(&wire);
	return rc;
}

int move_call(const struct peer_move *to, const char *job, const void *packed, size_t length,
	      struct records *records, struct iocom_err *err)
{
	uint64_t until_ms = clock_boot_ms() + MOVE_CALL_MS;
	int fd = call_connect(to, until_ms), rc;

	if (fd < 0)
		return iocom_err_set(err, fd, "node %s cannot be reached at %s port %u: %s",
				     to->node, to->address, to->port, strerror(-fd));
	rc = call_greet(fd, to, job, until_ms, records);
	if (!rc)
		rc = call_start(fd, packed, length, until_ms, records, err);
	if (!rc)
		return fd;
	close(fd);
	if (*err->text)
		return rc;
	return iocom_err_set(err, rc, "node %s does not take the job: %s", to->node, strerror(-rc));
}
