/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See asker.h. */
#include "tests/lib/asker.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/clock.h"

#define ANSWER_MS 5000

int asker_new(struct asker *asker, const char *name, const char *to, const char *munge,
	      struct iocom_err *err)
{
	*asker = (struct asker){.fd = -1, .self = {.boot_id = 1}};
	snprintf(asker->self.name, sizeof(asker->self.name), "%s", name);
	snprintf(asker->to, sizeof(asker->to), "%s", to);
	asker->sessions = sessions_new(&asker->self, &asker->counters);
	if (!asker->sessions)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return seals_new(&asker->seals, munge, err);
}

void asker_free(struct asker *asker)
{
	if (asker->fd >= 0)
		close(asker->fd);
	sessions_free(asker->sessions);
	seals_free(&asker->seals);
}

static bool asker_send(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t put = send(fd, at, n, MSG_NOSIGNAL);

		if (put <= 0)
			return false;
		at += put;
		n -= (size_t)put;
	}
	return true;
}

/* The protocol header of nng's REQ, both ways. */
int asker_connect(struct asker *asker, const char *host, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	uint8_t answer[8];

	if (asker->fd >= 0)
		close(asker->fd);
	asker->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (asker->fd < 0)
		return -errno;
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		return -EINVAL;
	if (connect(asker->fd, (struct sockaddr *)&to, sizeof(to)))
		return -errno;
	if (!asker_send(asker->fd, "\0SP\0\0\x30\0\0", 8) ||
	    recv(asker->fd, answer, 8, MSG_WAITALL) != 8)
		return -ECONNRESET;
	return 0;
}

ssize_t asker_exchange(struct asker *asker, const void *data, size_t length, unsigned limit_ms,
		       uint8_t **answer)
{
	const struct timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
	const uint32_t id = htobe32(0x80000001u);
	uint64_t n = htobe64(4 + length);
	ssize_t got;

	*answer = NULL;
	setsockopt(asker->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!asker_send(asker->fd, &n, sizeof(n)) || !asker_send(asker->fd, &id, sizeof(id)) ||
	    !asker_send(asker->fd, data, length))
		return -EPIPE;
	got = recv(asker->fd, &n, sizeof(n), MSG_WAITALL);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	n = be64toh(n);
	if (got != (ssize_t)sizeof(n) || n < 4 || n > ASKER_MESSAGE_MAX)
		return -ECONNRESET;
	*answer = malloc(n);
	if (!*answer || recv(asker->fd, *answer, n, MSG_WAITALL) != (ssize_t)n) {
		free(*answer);
		*answer = NULL;
		return -ECONNRESET;
	}
	memmove(*answer, *answer + 4, n - 4);
	return (ssize_t)n - 4;
}

int asker_hello(struct asker *asker, struct greeting *g, msgpack_sbuffer *out,
		struct iocom_err *err)
{
	char *credential = NULL;
	msgpack_sbuffer claim;
	int rc;

	msgpack_sbuffer_init(&claim);
	msgpack_sbuffer_init(out);
	greeting_begin(g, &asker->self, asker->to, &claim);
	rc = seals_message(&asker->seals, claim.data, claim.size, &credential, err);
	if (!rc)
		rc = greeting_hello(g, credential, out);
	msgpack_sbuffer_destroy(&claim);
	free(credential);
	return rc;
}

static int asker_welcomed(struct asker *asker, struct greeting *g, const uint8_t *answer,
			  size_t length, struct iocom_err *err)
{
	char *credential = NULL;
	void *data = NULL;
	size_t n = 0;
	int rc = greeting_welcomed(g, answer, length, &credential, err);

	if (!rc)
		rc = seals_open(&asker->seals, credential, strlen(credential), &data, &n, err);
	if (!rc)
		rc = greeting_trust(g, &asker->self, data, n, err);
	free(credential);
	free(data);
	return rc;
}

int asker_greet(struct asker *asker, struct iocom_err *err)
{
	uint8_t *answer = NULL;
	msgpack_sbuffer hello;
	struct greeting g;
	ssize_t n = 0;
	int rc = asker_hello(asker, &g, &hello, err);

	if (!rc)
		n = asker_exchange(asker, hello.data, hello.size, ANSWER_MS, &answer);
	if (!rc && n <= 0)
		rc = iocom_err_set(err, -ECONNRESET, "the agent does not answer the greeting");
	if (!rc)
		rc = asker_welcomed(asker, &g, answer, (size_t)n, err);
	if (!rc)
		asker->session = sessions_add(asker->sessions, &g, "x", clock_boot_ns());
	greeting_end(&g);
	msgpack_sbuffer_destroy(&hello);
	free(answer);
	return rc;
}

void asker_seal(struct asker *asker, const msgpack_sbuffer *plain, msgpack_sbuffer *out)
{
	uint8_t *sealed = malloc(plain->size + SESSION_OVERHEAD);

	msgpack_sbuffer_init(out);
	if (!sealed)
		return;
	session_seal(asker->sessions, asker->session, plain->data, plain->size, sealed);
	msgpack_sbuffer_write(out, (char *)sealed, plain->size + SESSION_OVERHEAD);
	free(sealed);
}

int asker_open(struct asker *asker, uint8_t *message, size_t length, const uint8_t **data,
	       size_t *n)
{
	return session_open(asker->sessions, asker->session, message, length, data, n);
}
