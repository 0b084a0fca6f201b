/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Settings: defaults, file, flags, and every kind of mistake with its place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "balancer/settings/settings.h"

static char path[] = "/tmp/iocom-test-config-XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int load(struct settings *s, struct iocom_err *err, const char *a, const char *b)
{
	char *argv[] = {(char *)"iocomd", (char *)"--config", path, (char *)a, (char *)b, NULL};

	memset(s, 0, sizeof(*s));
	*err = (struct iocom_err){0};
	return config_load(&settings_program, a ? 5 : 3, argv, s, err);
}

static void test_precedence(void **state)
{
	struct iocom_err err;
	struct settings s;

	(void)state;
	write_file("# comment\n[iocom]\n  period = 2.5\nport=7900 ; why\nstate_dir = /x\n"
		   "accept_jobs = off\npeers = a, b:7800\nlisten = 10.0.0.1\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_true(s.period_s == 2.5);
	assert_int_equal(s.port, 7900);
	assert_string_equal(s.state_dir, "/x");
	assert_string_equal(s.run_dir, "/run/iocom"); /* the default */
	assert_false(s.accept_jobs);
	assert_int_equal(s.npeers, 2);
	assert_string_equal(s.peers[1].address, "b");
	assert_int_equal(s.peers[1].port, 7800);
	assert_int_equal(settings_complete(&s, &err), 0);
	assert_int_equal(s.peers[0].port, 7900);
	assert_string_equal(s.address, "10.0.0.1");
	assert_true(s.sensitivity == 0.25);
	assert_int_equal(load(&s, &err, "--period", "3"), 0);
	assert_true(s.period_s == 3); /* the flag overrides the file */
}

/* Peers could not reach a node that listens nowhere: it must not seem to be in a cluster. */
static void test_peers_need_listen(void **state)
{
	struct iocom_err err;
	struct settings s;

	(void)state;
	write_file("[iocom]\npeers = n2.lab, n3.lab\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "peers are named (n2.lab ...), but no address to listen"));
	write_file("[iocom]\npeers = n2.lab\nlisten = 10.0.0.1\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(settings_complete(&s, &err), 0);
}

/* What the controller must be on for is known when all settings are read, in any order. */
static void test_feedback_policies(void **state)
{
	struct iocom_err err;
	struct settings s;

	(void)state;
	write_file("[iocom]\npolicy = WAL-FC\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'wal-fc' needs the feedback controller"));
	write_file("[iocom]\npolicy = feedback+io-re\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "take 'io-re'"));
	write_file("[iocom]\npolicy = wal-fc\nfeedback = on\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(settings_complete(&s, &err), 0);
}

struct mistake {
	const char *file, *says;
};

static void test_mistakes(void **state)
{
	static const struct mistake mistakes[] = {
		{"[iocom]\nperiod = 1\nthis is no setting\n", ":3: malformed line"},
		{"[iocom]\nperjod = 1\n", ":2: unknown key 'perjod'"},
		{"[iocom]\n\nperiod = soon\n", ":3: period: expected a number, not 'soon'"},
		{"[iocom]\nperiod = nan\n", "expected a number"},
		{"[iocom]\nperiod = 0\n", "expected a number from 0.05 to 3600"},
		{"[iocom]\nport = 1.5\n", "whole number"},
		{"[iocom]\nport = 65534\n", "from 1 to 65533"},
		{"[iocom]\npolicy = best\n", "unknown policy 'best'; known: nlb"},
		{"[iocom]\npolicy = best\n", "zatti-real"},
		{"[iocom]\nfeedback = yes\n", "expected off, dry-run or on, not 'yes'"},
		{"[iocom]\nfeedback_min = 1\n", "from 0.001 to 0.999"},
		{"[iocom]\naccept_jobs = maybe\n", "expected yes or no"},
		{"[iocom]\nname = a/b\n", "node name"},
		{"[iocom]\npeers = h:port\n", "ADDRESS:PORT"},
		{"[iocom]\nscope = disk=loop0\n", "a scope needs cgroup="},
		{"[iocom]\nscope = cgroup=../x\n", "not a usable path"},
		{"[iocom]\nmetrics_listen = localhost\n", "expected a numeric address"},
		{"[iocom]\ncluster = lab one\n", "expected a cluster's name"},
		{"[iocom]\nsensitivity = 0\n", "0.01"},
		{"[iocom]\nmetrics_listen = 127.0.0.1:0\n", "with a port from 1"},
		{"[iocom]\nmetrics_listen = [::1:7703\n", "expected [ADDRESS]:PORT"},
		{"[iocom]\nmetrics_max_jobs = 10001\n", "from 0 to 10000"},
		{"period = 1\n", ":1: key 'period' is before any section"},
		{"[other]\nperiod = 1\n", ":2: key 'period' is in section [other]"},
		{"[iocom]\nperiod = 1\nperiod = x\nport = y\n", ":3:"}, /* the first bad line */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		struct iocom_err err;
		struct settings s;
		int rc;

		write_file(mistakes[i].file);
		rc = load(&s, &err, NULL, NULL);
		if (rc >= 0 || strncmp(err.text, path, strlen(path)) ||
		    !strstr(err.text, mistakes[i].says))
			fail_msg("case %zu: rc %d, said: %s", i, rc, err.text);
	}
}

static void test_metrics_port(void **state)
{
	struct iocom_err err;
	struct settings s;

	(void)state;
	write_file("[iocom]\nmetrics_listen = [::1]\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(settings_complete(&s, &err), 0);
	assert_string_equal(s.metrics.address, "[::1]");
	assert_int_equal(s.metrics.port, 7703); /* the port follows from the agent's port */
	assert_int_equal(s.metrics_max_jobs, 200);
	assert_int_equal(load(&s, &err, "--port", "65533"), 0);
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--metrics-listen needs a port"));
	assert_int_equal(load(&s, &err, "--metrics-listen", "0.0.0.0:9100"), 0);
	assert_int_equal(settings_complete(&s, &err), 0);
	assert_int_equal(s.metrics.port, 9100);
	assert_int_equal(load(&s, &err, "--metrics-listen", ""), 0);
	assert_int_equal(settings_complete(&s, &err), 0);
	assert_string_equal(s.metrics.address, ""); /* no address */
}

static void test_long_line(void **state)
{
	char text[1000] = "[iocom]\nname = ";
	struct iocom_err err;
	struct settings s;

	(void)state;
	memset(text + strlen(text), 'a', 900);
	text[940] = 0;
	write_file(text);
	assert_true(load(&s, &err, NULL, NULL) < 0);
	assert_non_null(strstr(err.text, ":2: line longer than"));
}

/* An agent that reads its settings again neither waits for a writer nor reads without end. */
static void test_no_plain_file(void **state)
{
	struct iocom_err err;
	struct settings s;

	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(&s, &err, NULL, NULL), -EINVAL);
	assert_non_null(strstr(err.text, "is not a plain file"));
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(load(&s, &err, NULL, NULL), -EINVAL);
	assert_non_null(strstr(err.text, "is not a plain file"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(load(&s, &err, NULL, NULL), -EINVAL);
	assert_non_null(strstr(err.text, ":1: a NUL byte"));
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(load(&s, &err, NULL, NULL), 0); /* an empty one */
	unlink(path);
	write_file("[iocom]\n");
	assert_int_equal(truncate(path, 1 << 21), 0);
	assert_int_equal(load(&s, &err, NULL, NULL), -EFBIG);
	assert_non_null(strstr(err.text, "larger than 1 MiB"));
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(load(&s, &err, NULL, NULL), -EINVAL);
	assert_non_null(strstr(err.text, ":2: a NUL byte"));
}

static void test_flags(void **state)
{
	struct iocom_err err;
	struct settings s;

	(void)state;
	write_file("");
	assert_int_equal(load(&s, &err, "--period", "x"), CONFIG_E_USAGE);
	assert_non_null(strstr(err.text, "--period: expected a number"));
	assert_int_equal(load(&s, &err, "--no-such", "x"), CONFIG_E_USAGE);
	assert_non_null(strstr(err.text, "--no-such"));
	assert_int_equal(load(&s, &err, "stray", "x"), CONFIG_E_USAGE);
	assert_int_equal(load(&s, &err, "--name", "n1"), 0);
	assert_string_equal(s.name, "n1");
	assert_int_equal(load(&s, &err, "--help", ""), CONFIG_E_HELP);
	assert_int_equal(load(&s, &err, "--version", ""), CONFIG_E_VERSION);
	unlink(path);
	assert_int_equal(load(&s, &err, NULL, NULL), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

/* A configuration of an older version loads, and what is said of it names each place. */
static void test_retired(void **state)
{
	static const char why[] = "not used any more: nodes always encrypt what they send each "
				  "other, without certificates; remove ";
	struct iocom_err err;
	struct settings s;
	char says[1024];

	(void)state;
	write_file("[iocom]\nperiod = 2\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_false(settings_retired(&s, &err));

	write_file("[iocom]\n\ntls_ca =\nperiod = 2\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_true(s.period_s == 2);
	assert_int_equal(settings_complete(&s, &err), 0);
	assert_true(settings_retired(&s, &err));
	snprintf(says, sizeof(says), "tls_ca (line 3 of %s) is %sit", path, why);
	assert_string_equal(err.text, says);

	write_file("[iocom]\ntls_certificate = relative\ntls_key = /k\ntls-ca = /c\n"
		   "relay_user = root\nport = 7800\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_int_equal(s.port, 7800);
	assert_true(settings_retired(&s, &err));
	snprintf(says, sizeof(says),
		 "tls_certificate (line 2 of %s), tls_key (line 3), tls-ca (line 4), "
		 "relay_user (line 5) are %sthem",
		 path, why);
	assert_string_equal(err.text, says);

	write_file("[iocom]\n");
	assert_int_equal(load(&s, &err, "--relay-user", "iocom"), 0);
	assert_true(settings_retired(&s, &err));
	snprintf(says, sizeof(says), "--relay-user is %sit", why);
	assert_string_equal(err.text, says);

	/* Any number of such lines is read, and the sections are minded. */
	write_file("[iocom]\n");
	for (int i = 0; i < 100; i++) {
		FILE *f = fopen(path, "a");

		assert_non_null(f);
		fputs("tls_certificate = /x\n", f);
		fclose(f);
	}
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	assert_true(settings_retired(&s, &err));
	assert_non_null(strstr(err.text, why));
	write_file("tls_key = /k\n");
	assert_int_equal(load(&s, &err, NULL, NULL), -EINVAL);
	assert_non_null(strstr(err.text, "before any section"));
}

static int set(struct settings *s, const char *key, const char *value, struct iocom_err *err)
{
	*err = (struct iocom_err){0};
	return config_set(&settings_program, key, value, s, err);
}

static void test_users(void **state)
{
	struct settings s = {0};
	struct iocom_err err;

	(void)state;
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
	assert_int_equal(set(&s, "state_dir", "relative", &err), -EINVAL);
}

static void test_scope(void **state)
{
	struct iocom_err err = {0};
	struct settings s = {0};

	(void)state;
	assert_int_equal(config_set(&settings_program, "scope",
				    "cgroup=/a/b,disk=loop3+/dev/loop4,mount=/mnt/d", &s, &err),
			 0);
	assert_true(s.scoped);
	assert_string_equal(s.scope_cgroup, "a/b");
	assert_int_equal(s.nscope_disks, 2);
	assert_string_equal(s.scope_disks[1], "loop4");
	assert_string_equal(s.scope_mount, "/mnt/d");
}

static void test_peers(void **state)
{
	struct iocom_err err = {0};
	struct settings s = {0};

	(void)state;
	assert_int_equal(
		config_set(&settings_program, "peers", "[::1]:7800, [fe80::1], x", &s, &err), 0);
	assert_int_equal(s.npeers, 3);
	assert_string_equal(s.peers[0].address, "[::1]");
	assert_int_equal(s.peers[0].port, 7800);
	assert_string_equal(s.peers[1].address, "[fe80::1]");
	assert_int_equal(s.peers[1].port, 0);
}

/* Reading each text again gives the same setting. */
static void test_texts(void **state)
{
	static const char *const values[][2] = {
		{"name", "n1"},
		{"peers", "10.0.0.1:7700,[::1]:99,host"},
		{"scope", "cgroup=a/b,disk=vda+sdb,mount=/mnt/x"},
		{"metrics-listen", "[::1]:7703"},
		{"pam", "on"},
		{"log-level", "debug"},
		{"period", "0.25"},
		{"port", "7800"},
		{"accept-jobs", "no"},
		{"deny-users", "a, @b"},
	};
	struct settings s = {0}, again = {0};
	struct iocom_err err;

	(void)state;
	write_file("[iocom]\n");
	assert_int_equal(load(&s, &err, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		assert_int_equal(
			config_set(&settings_program, values[i][0], values[i][1], &s, NULL), 0);
	for (size_t i = 0; i < settings_program.nkeys; i++) {
		const struct config_key *key = &settings_program.keys[i];
		char *text = settings_text(&s, key), *twice;

		assert_non_null(text);
		for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++)
			if (!strcmp(values[v][0], key->name))
				assert_string_equal(text, values[v][1]);
		if (config_set(&settings_program, key->name, text, &again, &err))
			fail_msg("%s: '%s': %s", key->name, text, err.text);
		twice = settings_text(&again, key);
		assert_string_equal(text, twice);
		free(text);
		free(twice);
	}
}

static void test_wildcard(void **state)
{
	struct iocom_err err = {0};
	struct settings s = {.name = "n", .listen = "0.0.0.0"};

	(void)state;
	assert_int_equal(settings_complete(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--address"));
}

/* The peers of a node that tells them a loopback address would never hear it. */
static void test_address_of_one_machine(void **state)
{
	static const struct {
		const char *listen, *address, *peer;
		bool fine;
	} rows[] = {
		{"127.0.0.1", "", "192.0.2.1", false},
		{"127.9.0.1", "", "2001:db8::1", false},
		{"[::1]", "", "192.0.2.1", false},
		{"192.0.2.2", "127.0.0.1", "192.0.2.1", false},
		{"127.0.0.1", "", "127.0.0.2", true},
		{"::1", "", "[::1]", true},
		{"127.0.0.1", "", "another", true}, /* a name may be this machine's */
		{"127.0.0.1", "192.0.2.2", "192.0.2.1", true},
		{"192.0.2.2", "", "127.0.0.1", true},
		{"128.0.0.1", "", "192.0.2.1", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct iocom_err err = {0};
		struct settings s = {.name = "n", .npeers = 1, .port = 7700};

		strcpy(s.listen, rows[i].listen);
		strcpy(s.address, rows[i].address);
		strcpy(s.peers[0].address, rows[i].peer);
		assert_int_equal(settings_complete(&s, &err), rows[i].fine ? 0 : -EINVAL);
		if (!rows[i].fine)
			assert_non_null(strstr(err.text, "; set listen to the address"));
	}
}

static void test_help(void **state)
{
	char *help = config_help(&settings_program);

	(void)state;
	assert_non_null(help);
	for (size_t i = 0; i < settings_program.nkeys; i++)
		assert_non_null(strstr(help, settings_program.keys[i].name));
	free(help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peers_need_listen),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_feedback_policies),
		cmocka_unit_test(test_metrics_port),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_no_plain_file),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_scope),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_wildcard),
		cmocka_unit_test(test_address_of_one_machine),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_retired),
		cmocka_unit_test(test_users),
	};
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return 1;
	close(fd);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
