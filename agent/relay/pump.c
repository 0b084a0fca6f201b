/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Moves bytes; see relay.h. Each direction has one buffer: a side that does not read stops the
 * other side's writer, as without the relay. When one side ends, the other is told.
 */
#include <errno.h>
#include <mbedtls/net_sockets.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "user/clock.h"
#include "agent/relay/relay.h"
#include "user/wire.h"

#define PIECE 16384 /* size of a TLS record */

struct lane {
	uint8_t data[PIECE];
	size_t at, have;
	bool ended; /* nothing more comes in */
	bool told;  /* the other side knows that */
};

struct pump {
	struct session *session;
	int plain;
	bool tls_waits; /* TLS must write before it can go on */
	struct lane in, out;
	int64_t told_ms; /* when one side was told of the other's end */
};

static void pump_tell(struct pump *p, struct lane *lane)
{
	lane->told = true;
	if (!p->told_ms)
		p->told_ms = (int64_t)clock_boot_ms();
}

/* Each of these returns 1 if bytes moved, 0 if it must wait, or negative errno if its side is
 * broken. */

static int read_tls(struct pump *p)
{
	int n;

	if (p->in.have || p->in.ended)
		return 0;
	n = mbedtls_ssl_read(&p->session->ssl, p->in.data, sizeof(p->in.data));
	if (n > 0) {
		p->in.at = 0;
		p->in.have = (size_t)n;
		return 1;
	}
	if (n == MBEDTLS_ERR_SSL_WANT_READ)
		return 0;
	if (n == MBEDTLS_ERR_SSL_WANT_WRITE) {
		p->tls_waits = true;
		return 0;
	}
	if (n && n != MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY && n != MBEDTLS_ERR_SSL_CONN_EOF)
		return -ECONNRESET;
	p->in.ended = true;
	return 1;
}

static int write_plain(struct pump *p)
{
	ssize_t n;

	if (!p->in.have) {
		if (!p->in.ended || p->in.told)
			return 0;
		shutdown(p->plain, SHUT_WR);
		pump_tell(p, &p->in);
		return 1;
	}
	n = send(p->plain, p->in.data + p->in.at, p->in.have, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	p->in.at += (size_t)n;
	p->in.have -= (size_t)n;
	return 1;
}

static int read_plain(struct pump *p)
{
	ssize_t n;

	if (p->out.have || p->out.ended)
		return 0;
	n = recv(p->plain, p->out.data, sizeof(p->out.data), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	p->out.at = 0;
	p->out.have = (size_t)n;
	p->out.ended = n == 0;
	return 1;
}

static int write_tls(struct pump *p)
{
	mbedtls_ssl_context *ssl = &p->session->ssl;
	int n;

	if (!p->out.have && (!p->out.ended || p->out.told))
		return 0;
	n = p->out.have ? mbedtls_ssl_write(ssl, p->out.data + p->out.at, p->out.have)
			: mbedtls_ssl_close_notify(ssl);
	if (n == MBEDTLS_ERR_SSL_WANT_WRITE || n == MBEDTLS_ERR_SSL_WANT_READ) {
		p->tls_waits = n == MBEDTLS_ERR_SSL_WANT_WRITE;
		return 0;
	}
	if (n < 0)
		return -ECONNRESET;
	if (!p->out.have) {
		shutdown(p->session->fd, SHUT_WR);
		pump_tell(p, &p->out);
		return 1;
	}
	p->out.at += (size_t)n;
	p->out.have -= (size_t)n;
	return 1;
}

static int pump_move(struct pump *p)
{
	int (*const steps[])(struct pump *) = {read_tls, write_plain, read_plain, write_tls};
	bool moved;

	p->tls_waits = false;
	do {
		moved = false;
		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
			int rc = steps[i](p);

			if (rc < 0)
				return rc;
			moved |= rc > 0;
		}
	} while (moved);
	return 0;
}

static void pump_wait_for(const struct pump *p, int limit_ms)
{
	struct pollfd entries[2] = {{.fd = p->session->fd}, {.fd = p->plain}};

	if (!p->in.have && !p->in.ended)
		entries[0].events |= POLLIN;
	if (p->tls_waits)
		entries[0].events |= POLLOUT;
	if (!p->out.have && !p->out.ended)
		entries[1].events |= POLLIN;
	if (p->in.have)
		entries[1].events |= POLLOUT;
	/* An entry without events would wake us all the time once its peer hung up. */
	for (int i = 0; i < 2; i++)
		if (!entries[i].events)
			entries[i].fd = -1;
	(void)poll(entries, 2, limit_ms);
}

int pump_run(struct session *session, int plain)
{
	struct pump p = {.session = session, .plain = plain};
	struct wire tcp = {.fd = session->fd, .silence_s = WIRE_SILENCE_S};
	int rc;

	for (;;) {
		rc = pump_move(&p);
		if (rc || (p.in.told && p.out.told))
			return rc;
		if (p.told_ms && (int64_t)clock_boot_ms() - p.told_ms > RELAY_LINGER_MS)
			return 0;
		pump_wait_for(&p, wire_look_ms(&tcp));
		if (wire_silent(&tcp))
			return -ETIMEDOUT;
	}
}
