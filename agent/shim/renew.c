/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See renew.h. */
#include "agent/shim/renew.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

/* Takes a numeric address. Cluster addresses are numeric, so no name is looked up here. */
static bool take_address(struct renew *renew, const struct order_renew *from)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&renew->home;
	struct sockaddr_in *four = (struct sockaddr_in *)&renew->home;
	char host[sizeof(from->address)];
	size_t n = strlen(from->address);

	/* An IPv6 address may have brackets, as in URLs. */
	memcpy(host, from->address + (*from->address == '['), sizeof(host) - 1);
	host[sizeof(host) - 1] = 0;
	if (*from->address == '[' && n > 2)
		host[n - 2] = 0;
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(from->port);
		renew->home_length = sizeof(*four);
		return true;
	}
	if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(from->port);
	renew->home_length = sizeof(*six);
	return true;
}

static uint64_t between_ms(const struct renew *renew)
{
	return renew->lease_ms / RENEW_PART;
}

void renew_init(struct renew *renew, const struct order *order, const char *job, uint64_t now_ms)
{
	*renew = (struct renew){.fd = -1, .job = job, .lease_ms = order->renew.lease_ms};
	memcpy(renew->secret, order->renew.secret, sizeof(renew->secret));
	renew->able = order->renew.wanted && take_address(renew, &order->renew);
	renew->next_ms = now_ms + between_ms(renew);
}

void renew_deinit(struct renew *renew)
{
	if (renew->fd >= 0)
		close(renew->fd);
	renew->fd = -1;
	renew->able = false;
}

uint64_t renew_due(const struct renew *renew)
{
	return renew->able ? renew->next_ms : UINT64_MAX;
}

struct pollfd renew_poll(const struct renew *renew)
{
	return (struct pollfd){.fd = renew->fd, .events = renew->connected ? POLLIN : POLLOUT};
}

/* Ends this try. The next one begins MS after this one began. */
static void renew_over(struct renew *renew, uint64_t ms, uint64_t now_ms)
{
	if (renew->fd >= 0)
		close(renew->fd);
	renew->fd = -1;
	renew->next_ms = renew->asked_ms + ms;
	if (renew->next_ms <= now_ms)
		renew->next_ms = now_ms + 1;
}

static void renew_failed(struct renew *renew, uint64_t now_ms)
{
	renew_over(renew, between_ms(renew) / RENEW_AGAIN, now_ms);
}

static void renew_begin(struct renew *renew, uint64_t now_ms)
{
	uint64_t limit_ms = between_ms(renew) < RENEW_TRY_MS ? between_ms(renew) : RENEW_TRY_MS;

	/* The lease counts from this moment, which is before home receives the request. */
	renew->asked_ms = now_ms;
	renew->number++;
	renew->have = 0;
	renew->connected = false;
	renew->fd = socket(renew->home.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (renew->fd < 0 ||
	    (connect(renew->fd, (struct sockaddr *)&renew->home, renew->home_length) &&
	     errno != EINPROGRESS))
		renew_failed(renew, now_ms);
	else
		renew->next_ms = now_ms + limit_ms;
}

/* Sends a few hundred bytes: an empty socket takes them whole, or the try fails. */
static bool renew_ask(struct renew *renew)
{
	uint8_t frame[FRAME_HEADER + RENEWAL_ASK_MAX];
	size_t n = renewal_ask_pack(frame + FRAME_HEADER, renew->secret, renew->job, renew->number);

	frame_header(frame, FRAME_RENEW, (uint32_t)n);
	n += FRAME_HEADER;
	renew->connected = true;
	return send(renew->fd, frame, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/*
 * Returns true with home's answer in RENEWED. Returns false if the answer is incomplete, or the try
 * failed.
 */
static bool hear(struct renew *renew, bool *renewed, uint64_t now_ms)
{
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;
	ssize_t n = recv(renew->fd, renew->answer + renew->have,
			 sizeof(renew->answer) - renew->have, MSG_DONTWAIT);
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	renew->have += n > 0 ? (size_t)n : 0;
	rc = frame_parse(renew->answer, renew->have, RENEWAL_ANSWER, &type, &payload, &length,
			 &consumed);
	if (rc == FRAME_E_MORE && n > 0)
		return false;
	if (rc || type != FRAME_RENEWED ||
	    renewal_answer_open(renew->secret, renew->job, renew->number, payload, length,
				renewed)) {
		renew_failed(renew, now_ms);
		return false;
	}
	return true;
}

bool renew_serve(struct renew *renew, short revents, struct lease *lease, uint64_t now_ms)
{
	bool renewed;

	if (!renew->able)
		return false;
	if (renew->fd >= 0 && revents && !renew->connected && !renew_ask(renew))
		renew_failed(renew, now_ms);
	else if (renew->fd >= 0 && revents && renew->connected && hear(renew, &renewed, now_ms)) {
		lease_hear(lease, renewed ? renew->asked_ms + renew->lease_ms : 0);
		renew_over(renew, between_ms(renew), now_ms);
		return true;
	}
	if (now_ms < renew->next_ms)
		return false;
	if (renew->fd >= 0)
		renew_failed(renew, now_ms); /* it took too long */
	else
		renew_begin(renew, now_ms);
	return false;
}
