/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's side of the handshake of a job stream (user/channel/stream_hello.h).  Until the
 * target has proven itself, anybody may be at the other end: somebody who listens at the port while
 * no agent runs there, or who is on the way.  So all that it learns are the names in the first
 * message, and all that it can say is why there is no stream.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "balancer/run/run.h"
#include "balancer/run/run_stream.h"
#include "user/frame.h"
#include "user/utf8.h"

#define ANSWER_MAX 1024 /* a welcome, or a sentence */

_Static_assert(ANSWER_MAX >= STREAM_WELCOME_MAX, "a welcome has room");

struct answer {
	uint8_t bytes[FRAME_HEADER + ANSWER_MAX];
	size_t have;
	uint8_t type;
	const uint8_t *payload;
	uint32_t length;
};

/* Receives once.  Returns 0; -ETIMEDOUT; -EPIPE: closed; other errno. */
static int handshake_receive(int fd, uint64_t until_ms, struct answer *a)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now_ms = run_now_ms();
	ssize_t n;
	int ready = poll(&p, 1, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);

	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (ready == 0)
		return -ETIMEDOUT;
	n = recv(fd, a->bytes + a->have, sizeof(a->bytes) - a->have, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	a->have += (size_t)n;
	return n ? 0 : -EPIPE;
}

/*
 * Reads the answer.  Who is honest sends nothing after it before we speak again.  Returns 0;
 * negative errno.
 */
static int handshake_hear(int fd, uint64_t until_ms, struct answer *a)
{
	int rc = 0, parsed = FRAME_E_MORE;
	size_t consumed = 0;

	a->have = 0;
	while (!rc && parsed == FRAME_E_MORE && a->have < sizeof(a->bytes)) {
		rc = handshake_receive(fd, until_ms, a);
		parsed = frame_parse(a->bytes, a->have, ANSWER_MAX, &a->type, &a->payload,
				     &a->length, &consumed);
	}
	if (rc && parsed)
		return rc;
	return parsed || consumed != a->have ? -EBADMSG : 0;
}

/* Copies a sentence from anybody: it must do nothing to our user's terminal. */
static void handshake_sentence(const struct answer *a, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)a->length, (const char *)a->payload);
	utf8_plain(out);
}

static const char *handshake_so(const struct stream_hello *hello)
{
	return hello->kind == STREAM_KIND_START ? "the job did not start" : "cannot attach";
}

static int handshake_failed(const struct run_target *target, const struct stream_hello *hello,
			    int rc, struct iocom_err *err)
{
	const char *what = rc == -ETIMEDOUT ? " in time" : "";

	return iocom_err_set(err, -EACCES,
			     "%s: the program at %s port %u did not prove to be node %s%s, and "
			     "nothing of the job was sent to it",
			     handshake_so(hello), target->address, target->port, hello->node, what);
}

/* Anybody can say this: only the address is known. */
static int handshake_refused(const struct run_target *target, const struct stream_hello *hello,
			     const struct answer *a, struct iocom_err *err)
{
	char text[400];

	handshake_sentence(a, text, sizeof(text));
	return iocom_err_set(err, -EACCES,
			     "%s: the program at %s port %u, which has not proven to be node %s, "
			     "says: %s",
			     handshake_so(hello), target->address, target->port, hello->node, text);
}

int run_handshake_begin(struct run_handshake *shake, const struct run_target *target, int fd,
			const struct stream_hello *hello, struct iocom_err *err)
{
	uint8_t out[STREAM_HELLO_MAX];
	size_t length;
	int rc;

	*shake = (struct run_handshake){.target = target, .hello = hello, .fd = fd};
	rc = stream_hello_pack(&shake->noise, hello, target->key, target->pair, out, &length);
	if (rc)
		return iocom_err_set(err, rc, "the names of the job are too long");
	rc = frame_write(fd, FRAME_HELLO, out, (uint32_t)length);
	/* Who refuses at once may have said why. */
	shake->sent = rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
	return 0;
}

int run_handshake_end(struct run_handshake *shake, uint64_t until_ms, struct records *records,
		      struct iocom_err *err)
{
	struct stream_welcome welcome;
	struct answer a = {0};
	int rc = shake->sent;

	if (!rc)
		rc = handshake_hear(shake->fd, until_ms, &a);
	shake->wordless = (rc == -EPIPE || rc == -ECONNRESET) && !a.have;
	if (!rc && a.type == FRAME_WELCOME &&
	    !stream_welcome_unpack(&shake->noise, shake->hello, a.payload, a.length, &welcome,
				   records))
		return 0;
	noise_end(&shake->noise);
	if (rc || a.type != FRAME_ERROR)
		return handshake_failed(shake->target, shake->hello, rc, err);
	return handshake_refused(shake->target, shake->hello, &a, err);
}

int run_handshake(const struct run_target *target, int fd, const struct stream_hello *hello,
		  uint64_t until_ms, struct records *records, struct iocom_err *err)
{
	struct run_handshake shake;
	int rc = run_handshake_begin(&shake, target, fd, hello, err);

	return rc ? rc : run_handshake_end(&shake, until_ms, records, err);
}
