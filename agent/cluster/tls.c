/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See tls.h. */
#include "agent/cluster/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <nng/supplemental/tls/tls.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1 << 20)

struct tls {
	nng_tls_config *server, *client;
};

/* Reads FILE into a string, malloc'ed.  A SECRET file that others may read is refused. */
static int tls_slurp(const char *what, const char *file, bool secret, char **out,
		     struct iocom_err *err)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st;
	ssize_t n = -1;

	*out = NULL;
	if (fd < 0 || fstat(fd, &st))
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		rc = -EFBIG;
	if (!rc && secret && st.st_mode & (S_IRWXG | S_IRWXO) & ~S_IRGRP)
		rc = iocom_err_set(err, -EACCES,
				   "other users can read or write the %s %s, which belongs to root "
				   "alone: chmod 600 %s",
				   what, file, file);
	else if (!rc)
		*out = malloc((size_t)st.st_size + 1);
	if (*out)
		n = read(fd, *out, (size_t)st.st_size);
	if (n >= 0)
		(*out)[n] = 0;
	else if (!rc)
		rc = *out ? -errno : -ENOMEM;
	if (fd >= 0)
		close(fd);
	if (rc && !err->text[0])
		iocom_err_set(err, rc, "cannot read the %s %s: %s", what, file, strerror(-rc));
	return rc;
}

static int tls_check(int e, const char *what, const char *file, struct iocom_err *err)
{
	if (!e)
		return 0;
	return iocom_err_set(err, e == NNG_ENOMEM ? -ENOMEM : -EINVAL, "cannot use the %s %s: %s",
			     what, file, nng_strerror(e));
}

struct files {
	const char *certificate, *key, *ca;	     /* file names */
	char *certificate_text, *key_text, *ca_text; /* the files' contents */
};

/* nng would accept a certificate and key that do not match, and every handshake would fail. */
static int check_pair(const struct files *f, struct iocom_err *err)
{
	mbedtls_x509_crt certificate;
	mbedtls_pk_context key;
	int rc;

	mbedtls_x509_crt_init(&certificate);
	mbedtls_pk_init(&key);
	rc = mbedtls_x509_crt_parse(&certificate, (const unsigned char *)f->certificate_text,
				    strlen(f->certificate_text) + 1);
	if (!rc)
		rc = mbedtls_pk_parse_key(&key, (const unsigned char *)f->key_text,
					  strlen(f->key_text) + 1, NULL, 0);
	if (!rc && mbedtls_pk_check_pair(&certificate.pk, &key))
		rc = iocom_err_set(
			err, -EINVAL,
			"the tls_certificate %s and the tls_key %s do not belong together",
			f->certificate, f->key);
	else if (rc)
		rc = iocom_err_set(
			err, -EINVAL,
			"the tls_certificate %s or the tls_key %s is not a valid PEM file",
			f->certificate, f->key);
	mbedtls_x509_crt_free(&certificate);
	mbedtls_pk_free(&key);
	return rc;
}

static int configure(nng_tls_config **out, nng_tls_mode mode, const struct files *f,
		     struct iocom_err *err)
{
	int rc = tls_check(nng_tls_config_alloc(out, mode), "library", "nng", err);

	if (!rc)
		rc = tls_check(nng_tls_config_ca_chain(*out, f->ca_text, NULL), "tls_ca", f->ca,
			       err);
	if (!rc)
		rc = tls_check(
			nng_tls_config_own_cert(*out, f->certificate_text, f->key_text, NULL),
			"tls_certificate with its tls_key", f->certificate, err);
	if (!rc)
		rc = tls_check(nng_tls_config_auth_mode(*out, NNG_TLS_AUTH_MODE_REQUIRED),
			       "library", "nng", err);
	if (!rc)
		rc = tls_check(nng_tls_config_version(*out, NNG_TLS_1_2, NNG_TLS_1_2), "library",
			       "nng", err);
	return rc;
}

int tls_new(struct tls **out, const char *certificate, const char *key, const char *ca,
	    struct iocom_err *err)
{
	struct files f = {.certificate = certificate, .key = key, .ca = ca};
	struct tls *tls = calloc(1, sizeof(*tls));
	int rc = tls ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");

	if (!rc)
		rc = tls_slurp("tls_certificate", certificate, false, &f.certificate_text, err);
	if (!rc)
		rc = tls_slurp("tls_key", key, true, &f.key_text, err);
	if (!rc)
		rc = tls_slurp("tls_ca", ca, false, &f.ca_text, err);
	if (!rc)
		rc = check_pair(&f, err);
	if (!rc)
		rc = configure(&tls->server, NNG_TLS_MODE_SERVER, &f, err);
	if (!rc)
		rc = configure(&tls->client, NNG_TLS_MODE_CLIENT, &f, err);
	if (f.key_text)
		explicit_bzero(f.key_text, strlen(f.key_text));
	free(f.certificate_text);
	free(f.key_text);
	free(f.ca_text);
	if (rc)
		tls_free(tls);
	else
		*out = tls;
	return rc;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	if (tls->server)
		nng_tls_config_free(tls->server);
	if (tls->client)
		nng_tls_config_free(tls->client);
	free(tls);
}

int tls_listen(const struct tls *tls, nng_socket socket, const char *url)
{
	nng_listener listener;
	char secret[160];
	int e;

	if (!tls)
		return nng_listen(socket, url, NULL, 0);
	snprintf(secret, sizeof(secret), "tls+%s", url);
	e = nng_listener_create(&listener, socket, secret);
	if (e)
		return e;
	e = nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tls->server);
	if (!e)
		e = nng_listener_start(listener, 0);
	if (e)
		nng_listener_close(listener);
	return e;
}

int tls_dial(const struct tls *tls, nng_socket socket, const char *url)
{
	char secret[160];
	nng_dialer dialer;
	int e;

	if (!tls)
		return nng_dial(socket, url, NULL, NNG_FLAG_NONBLOCK);
	snprintf(secret, sizeof(secret), "tls+%s", url);
	e = nng_dialer_create(&dialer, socket, secret);
	if (e)
		return e;
	e = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tls->client);
	if (!e)
		e = nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
	if (e)
		nng_dialer_close(dialer);
	return e;
}
