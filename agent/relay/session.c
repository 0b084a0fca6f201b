/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The TLS side of a relay; see relay.h. */
#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "user/frame.h"
#include "agent/relay/relay.h"

static int random_bytes(void *arg, unsigned char *out, size_t n)
{
	(void)arg;
	while (n) {
		ssize_t got = getrandom(out, n, 0);

		if (got < 0 && errno != EINTR)
			return MBEDTLS_ERR_PK_BAD_INPUT_DATA;
		if (got > 0) {
			out += got;
			n -= (size_t)got;
		}
	}
	return 0;
}

static int session_read_file(int rc, const char *what, const char *file, struct iocom_err *err)
{
	char why[128];

	if (!rc)
		return 0;
	/* A positive RC counts the certificates that could not be read. */
	if (rc > 0)
		snprintf(why, sizeof(why), "%d of its certificates are damaged", rc);
	else
		mbedtls_strerror(rc, why, sizeof(why));
	return iocom_err_set(err, -EINVAL, "cannot use the %s %s: %s", what, file, why);
}

static int read_files(struct session *s, const char *certificate, const char *key, const char *ca,
		      struct iocom_err *err)
{
	int rc = session_read_file(mbedtls_x509_crt_parse_file(&s->own, certificate),
				   "tls_certificate", certificate, err);

	if (!rc)
		rc = session_read_file(mbedtls_pk_parse_keyfile(&s->key, key, NULL), "tls_key", key,
				       err);
	if (!rc)
		rc = session_read_file(mbedtls_x509_crt_parse_file(&s->ca, ca), "tls_ca", ca, err);
	return rc;
}

int session_init(struct session *s, bool server, const char *certificate, const char *key,
		 const char *ca, struct iocom_err *err)
{
	int rc;

	s->fd = s->first = -1;
	mbedtls_ssl_init(&s->ssl);
	mbedtls_ssl_config_init(&s->config);
	mbedtls_x509_crt_init(&s->own);
	mbedtls_x509_crt_init(&s->ca);
	mbedtls_pk_init(&s->key);
	rc = read_files(s, certificate, key, ca, err);
	if (rc)
		return rc;
	rc = mbedtls_ssl_config_defaults(&s->config,
					 server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
					 MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
	if (!rc)
		rc = mbedtls_ssl_conf_own_cert(&s->config, &s->own, &s->key);
	mbedtls_ssl_conf_rng(&s->config, random_bytes, NULL);
	mbedtls_ssl_conf_ca_chain(&s->config, &s->ca, NULL);
	mbedtls_ssl_conf_authmode(&s->config, MBEDTLS_SSL_VERIFY_REQUIRED);
	mbedtls_ssl_conf_min_version(&s->config, MBEDTLS_SSL_MAJOR_VERSION_3,
				     MBEDTLS_SSL_MINOR_VERSION_3);
	if (!rc)
		rc = mbedtls_ssl_setup(&s->ssl, &s->config);
	/* We check no names: every machine with a certificate of this CA belongs to the cluster. */
	if (!rc && !server)
		rc = mbedtls_ssl_set_hostname(&s->ssl, NULL);
	return rc ? iocom_err_set(err, -ENOMEM, "cannot set up TLS (mbedTLS error -0x%04x)",
				  (unsigned)-rc)
		  : 0;
}

void session_deinit(struct session *s)
{
	mbedtls_ssl_free(&s->ssl);
	mbedtls_ssl_config_free(&s->config);
	mbedtls_x509_crt_free(&s->own);
	mbedtls_x509_crt_free(&s->ca);
	mbedtls_pk_free(&s->key);
}

/* --- the socket ----------------------------------------------------------------- */

static int session_give(void *arg, const unsigned char *data, size_t n)
{
	const struct session *s = arg;
	ssize_t put = send(s->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (put >= 0)
		return (int)put;
	if (errno == EAGAIN || errno == EINTR)
		return MBEDTLS_ERR_SSL_WANT_WRITE;
	return errno == EPIPE || errno == ECONNRESET ? MBEDTLS_ERR_NET_CONN_RESET
						     : MBEDTLS_ERR_NET_SEND_FAILED;
}

static int session_take(void *arg, unsigned char *data, size_t n)
{
	struct session *s = arg;
	ssize_t got = recv(s->fd, data, n, MSG_DONTWAIT);

	if (got > 0 && s->first < 0)
		s->first = data[0];
	if (got >= 0)
		return (int)got;
	if (errno == EAGAIN || errno == EINTR)
		return MBEDTLS_ERR_SSL_WANT_READ;
	return errno == ECONNRESET ? MBEDTLS_ERR_NET_CONN_RESET : MBEDTLS_ERR_NET_RECV_FAILED;
}

/* --- the handshake ---------------------------------------------------------------- */

static int64_t session_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A peer without TLS reads our frames, so one can tell it why the connection ends. */
static int without_tls(struct session *s, struct iocom_err *err)
{
	static const char both[] =
		"set tls_certificate, tls_key and tls_ca at all nodes, or at none";
	char text[256];

	if (s->config.endpoint == MBEDTLS_SSL_IS_SERVER) {
		int n = snprintf(
			text, sizeof(text),
			"this node takes encrypted job streams only, and this one is not: %s",
			both);

		(void)frame_write(s->fd, FRAME_ERROR, text, (uint32_t)n);
	}
	return iocom_err_set(err, -EPROTO, "it speaks without TLS, this node with: %s", both);
}

static int session_failed(struct session *s, int rc, struct iocom_err *err)
{
	char why[256];

	if (s->first == 'i' || rc == MBEDTLS_ERR_SSL_INVALID_RECORD)
		return without_tls(s, err);
	switch (rc) {
	case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
		mbedtls_x509_crt_verify_info(why, sizeof(why), "",
					     mbedtls_ssl_get_verify_result(&s->ssl));
		why[strcspn(why, "\n")] = 0;
		return iocom_err_set(err, -EACCES,
				     "its certificate is not one of the CA in tls_ca: %s", why);
	case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
		return iocom_err_set(err, -EACCES, "it shows no certificate");
	case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
		return iocom_err_set(err, -EACCES,
				     "it refuses this node's certificate (tls_certificate): it "
				     "trusts another CA, or the certificate is not valid now");
	case 0:
	case MBEDTLS_ERR_SSL_CONN_EOF:
	case MBEDTLS_ERR_NET_CONN_RESET:
		return iocom_err_set(err, -ECONNRESET,
				     "it closed the connection during the TLS handshake");
	default:
		mbedtls_strerror(rc, why, sizeof(why));
		return iocom_err_set(err, -EPROTO, "the TLS handshake failed: %s", why);
	}
}

/* Closing with unread input would reset the connection and destroy our last message. */
static void session_drain(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t until = session_now_ms() + RELAY_DRAIN_MS, left;
	char waste[512];

	shutdown(fd, SHUT_WR);
	while ((left = until - session_now_ms()) > 0 && poll(&p, 1, (int)left) > 0)
		if (recv(fd, waste, sizeof(waste), MSG_DONTWAIT) <= 0)
			return;
}

static int shake(struct session *s, int fd, struct iocom_err *err)
{
	int64_t until = session_now_ms() + RELAY_HANDSHAKE_MS, left;
	int rc;

	s->fd = fd;
	mbedtls_ssl_set_bio(&s->ssl, s, session_give, session_take, NULL);
	while ((rc = mbedtls_ssl_handshake(&s->ssl)) != 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (s->first == 'i' ||
		    (rc != MBEDTLS_ERR_SSL_WANT_READ && rc != MBEDTLS_ERR_SSL_WANT_WRITE))
			return session_failed(s, rc, err);
		if (rc == MBEDTLS_ERR_SSL_WANT_WRITE)
			p.events = POLLOUT;
		left = until - session_now_ms();
		if (left <= 0 || (poll(&p, 1, (int)left) == 0))
			return iocom_err_set(err, -ETIMEDOUT,
					     "the TLS handshake took longer than %d s",
					     RELAY_HANDSHAKE_MS / 1000);
	}
	return 0;
}

int session_handshake(struct session *s, int fd, struct iocom_err *err)
{
	int rc = shake(s, fd, err);

	if (rc)
		session_drain(fd);
	return rc;
}
