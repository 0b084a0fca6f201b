/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* TLS between agents over nng: which agents can talk, which files and settings are accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/settings/settings.h"
#include "agent/cluster/tls.h"

#define PATIENCE_MS 10000
#define REFUSED_MS  700 /* a handshake takes a few ms */

static char directory[] = "/tmp/iocom-tls-XXXXXX";

#define MAKE                                                                                       \
	"cd %s && new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2' && "       \
	"for ca in ca other; do openssl req -x509 $new -subj /CN=$ca -keyout $ca.key -out "        \
	"$ca.pem || exit 1; done && for n in a b; do openssl req $new -subj /CN=$n -keyout "       \
	"$n.key -out $n.csr && openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key "             \
	"-CAcreateserial -days 2 -out $n.pem || exit 1; done && chmod 600 *.key && "               \
	"cp a.key open.key && chmod 644 open.key && echo garbage >garbage.pem"

static int setup(void **state)
{
	char command[1200];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(command, sizeof(command), "{ " MAKE "; } >/dev/null 2>&1", directory);
	return system(command);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static int make(struct tls **tls, const char *certificate, const char *key, const char *ca,
		struct iocom_err *err)
{
	const char *names[3] = {certificate, key, ca};
	char path[3][128];

	for (int i = 0; i < 3; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", directory, names[i]);
	*err = (struct iocom_err){0};
	return tls_new(tls, path[0], path[1], path[2], err);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/*
 * Sends a question from CLIENT to SERVER. Returns 0 or an error of nng. TRIPS more are for
 * measuring.
 */
static int ask(const struct tls *client, const struct tls *server, int patience_ms, int trips)
{
	char url[64], text[8];
	nng_socket rep, req;
	double began = now_ms(), first;
	size_t n = sizeof(text);
	int e;

	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", 30000 + getpid() % 2000);
	assert_int_equal(nng_rep0_open(&rep), 0);
	assert_int_equal(nng_req0_open(&req), 0);
	nng_socket_set_ms(req, NNG_OPT_SENDTIMEO, patience_ms);
	nng_socket_set_ms(rep, NNG_OPT_RECVTIMEO, patience_ms);
	nng_socket_set_ms(req, NNG_OPT_RECVTIMEO, patience_ms);
	assert_int_equal(tls_listen(server, rep, url), 0);
	assert_int_equal(tls_dial(client, req, url), 0);
	e = nng_send(req, (void *)"load?", 6, 0);
	if (!e)
		e = nng_recv(rep, text, &n, 0);
	first = now_ms() - began;
	began = now_ms();
	for (int i = 0; i < trips && !e; i++) {
		n = sizeof(text);
		if (nng_send(rep, text, 6, 0) || nng_recv(req, text, &n, 0) ||
		    nng_send(req, text, 6, 0) || nng_recv(rep, text, &n, 0))
			e = NNG_ECLOSED;
	}
	if (trips && !e)
		printf("# | nng %s: first message %.1f ms, round trip %.0f us\n",
		       server ? "with TLS" : "without", first, (now_ms() - began) * 1e3 / trips);
	nng_close(req);
	nng_close(rep);
	return e;
}

static void test_hear_each_other(void **state)
{
	struct tls *a = NULL, *b = NULL;
	struct iocom_err err;

	(void)state;
	assert_int_equal(make(&a, "a.pem", "a.key", "ca.pem", &err), 0);
	assert_int_equal(make(&b, "b.pem", "b.key", "ca.pem", &err), 0);
	assert_int_equal(ask(a, b, PATIENCE_MS, 300), 0);
	assert_int_equal(ask(b, a, PATIENCE_MS, 0), 0);
	assert_int_equal(ask(NULL, NULL, PATIENCE_MS, 300), 0);
	tls_free(a);
	tls_free(b);
}

static void test_one_side_only(void **state)
{
	struct tls *a = NULL;
	struct iocom_err err;

	(void)state;
	assert_int_equal(make(&a, "a.pem", "a.key", "ca.pem", &err), 0);
	assert_int_not_equal(ask(a, NULL, REFUSED_MS, 0), 0);
	assert_int_not_equal(ask(NULL, a, REFUSED_MS, 0), 0);
	tls_free(a);
}

/* Each of the two agents refuses the other, whichever of them dials. */
static void test_another_authority(void **state)
{
	struct tls *a = NULL, *foreign = NULL, *naive = NULL;
	struct iocom_err err;

	(void)state;
	assert_int_equal(make(&a, "a.pem", "a.key", "ca.pem", &err), 0);
	/* The first is signed by another authority, the second trusts another. */
	assert_int_equal(make(&foreign, "other.pem", "other.key", "ca.pem", &err), 0);
	assert_int_equal(make(&naive, "b.pem", "b.key", "other.pem", &err), 0);
	assert_int_not_equal(ask(foreign, a, REFUSED_MS, 0), 0);
	assert_int_not_equal(ask(a, foreign, REFUSED_MS, 0), 0);
	assert_int_not_equal(ask(naive, a, REFUSED_MS, 0), 0);
	assert_int_not_equal(ask(a, naive, REFUSED_MS, 0), 0);
	tls_free(a);
	tls_free(foreign);
	tls_free(naive);
}

static void test_files(void **state)
{
	static const struct {
		const char *certificate, *key, *ca, *says;
		int rc;
	} cases[] = {
		{"no.pem", "a.key", "ca.pem", "tls_certificate", -ENOENT},
		{"a.pem", "no.key", "ca.pem", "tls_key", -ENOENT},
		{"a.pem", "a.key", "no.pem", "tls_ca", -ENOENT},
		{"a.pem", "open.key", "ca.pem", "chmod 600", -EACCES},
		{"garbage.pem", "a.key", "ca.pem", "tls_certificate", -EINVAL},
		{"a.pem", "a.key", "garbage.pem", "tls_ca", -EINVAL},
		{"a.pem", "b.key", "ca.pem", "do not belong together", -EINVAL},
		{".", "a.key", "ca.pem", "tls_certificate", -EFBIG},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tls *tls = NULL;
		struct iocom_err err;

		assert_int_equal(make(&tls, cases[i].certificate, cases[i].key, cases[i].ca, &err),
				 cases[i].rc);
		assert_null(tls);
		if (!strstr(err.text, cases[i].says))
			fail_msg("case %zu: no '%s' in '%s'", i, cases[i].says, err.text);
	}
}

static int set(struct settings *s, const char *key, const char *value, struct iocom_err *err)
{
	*err = (struct iocom_err){0};
	return config_set(&settings_program, key, value, s, err);
}

static void test_settings(void **state)
{
	static struct settings s;
	struct iocom_err err;

	(void)state;
	strcpy(s.name, "n1");
	s.port = 7700;
	assert_int_equal(settings_complete(&s, &err), 0);
	assert_int_equal(set(&s, "tls_certificate", "relative.pem", &err), -EINVAL);
	assert_int_equal(set(&s, "tls_certificate", "/x/n1.pem", &err), 0);
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--tls-key"));
	assert_int_equal(set(&s, "tls_key", "/x/n1.key", &err), 0);
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_int_equal(set(&s, "tls_ca", "/x/ca.pem", &err), 0);
	assert_int_equal(settings_complete(&s, &err), 0);

	assert_int_equal(set(&s, "pam", "on", &err), 0);
	assert_int_equal(s.pam, SETTINGS_PAM_ON);
	assert_int_equal(set(&s, "pam", "auto", &err), 0);
	assert_int_equal(s.pam, SETTINGS_PAM_AUTO);
	assert_int_equal(set(&s, "pam", "off", &err), 0);
	assert_int_equal(s.pam, SETTINGS_PAM_OFF);
	assert_int_equal(set(&s, "pam", "yes", &err), 0);
	assert_int_equal(s.pam, SETTINGS_PAM_ON);
	assert_int_equal(set(&s, "pam", "no", &err), 0);
	assert_int_equal(s.pam, SETTINGS_PAM_OFF);
	assert_int_equal(set(&s, "pam", "maybe", &err), -EINVAL);
	assert_non_null(strstr(err.text, "auto, on (yes) or off (no)"));
	assert_int_equal(set(&s, "user_jobs_max", "-1", &err), -EINVAL);
	assert_int_equal(set(&s, "user_requests_per_s", "many", &err), -EINVAL);
	assert_int_equal(set(&s, "user_jobs_max", "0", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hear_each_other),	  cmocka_unit_test(test_one_side_only),
		cmocka_unit_test(test_another_authority), cmocka_unit_test(test_files),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests_name("tls", tests, setup, teardown);
}
