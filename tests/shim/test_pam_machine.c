/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The PAM service file that `make install` installs, on a machine whose accounts are the test's
 * own: in a private mount namespace copies lie over /etc/shadow, limits.conf and the login records.
 * And the order of PAM's calls, seen by a module of the test (pam_witness.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/stage.h"
#include "user/clock.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}
#define SHADOW	"nobody:*:%ld:0:%s:7:%s:%s:\nroot:*:%ld:0:99999:7:::\n"
#define SECRET	"iocom-test-secret"
#define TIMES	20 /* of a refusal that must reach the client each time */
#define MEASURE 25 /* jobs with and without PAM, in turns */

static char pam_dir[96], witnessed[128], witness[4200];

/* What holds records of logins. They must stay as they are, or stay absent. */
static const char *const logins[] = {"/run/utmp", "/var/log/wtmp", "/var/log/btmp",
				     "/var/log/lastlog"};
static bool present[sizeof(logins) / sizeof(*logins)];

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
}

static void put(const struct stage *stage, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", stage->dir, name);
	write_file(path, text);
}

/* Lays the file NAME of the stage's directory, with TEXT, over PATH in our namespace. */
static int cover(const struct stage *stage, const char *name, const char *text, const char *path)
{
	char from[256];

	put(stage, name, text);
	snprintf(from, sizeof(from), "%s/%s", stage->dir, name);
	return mount(from, path, NULL, MS_BIND, NULL);
}

/* Sets nobody's account: days since 1970 of the password's last change, and shadow(5)'s fields. */
static void account(const struct stage *stage, long changed, const char *valid,
		    const char *inactive, const char *expires)
{
	long today = (long)(time(NULL) / 86400);
	char text[256];

	snprintf(text, sizeof(text), SHADOW, changed < 0 ? today : changed, valid, inactive,
		 expires, today);
	put(stage, "shadow", text); /* the same inode: the mount shows it */
}

/* Installs the project's service file; the modules' own files are in the test's directory. */
static void sample(const struct stage *stage)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "sed 's|pam_nologin.so|& file=%s/nologin|' agent/iocom.pam >%s/iocom", stage->dir,
		 pam_dir);
	assert_int_equal(system(command), 0);
	account(stage, -1, "99999", "", "");
}

static void service(const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/iocom", pam_dir);
	write_file(path, text);
}

static int run(struct stage *stage, struct want want, struct run_result *result)
{
	want.pam = pam_dir;
	return stage_run(stage, &want, result);
}

static int setup(void **state)
{
	struct stage *stage;
	char name[16];
	int rc = stage_setup(state);

	if (rc)
		return rc;
	stage = *state;
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	snprintf(witness, sizeof(witness), "%s", stage->shim);
	snprintf(strrchr(witness, '/'), 40, "/tests/shim/pam_witness.so");
	snprintf(witnessed, sizeof(witnessed), "%s/witnessed", stage->dir);
	snprintf(pam_dir, sizeof(pam_dir), "%s/pam.d", stage->dir);
	mkdir(pam_dir, 0755);
	for (size_t i = 0; i < sizeof(logins) / sizeof(*logins); i++) {
		snprintf(name, sizeof(name), "login%zu", i);
		present[i] = !access(logins[i], F_OK);
		if (present[i] && cover(stage, name, "", logins[i]))
			return -1;
	}
	return cover(stage, "shadow", "", "/etc/shadow") ||
	       cover(stage, "limits", "", "/etc/security/limits.conf") ||
	       cover(stage, "groups", "", "/etc/security/group.conf");
}

/* --- the service file as it is installed ---------------------------------------------- */

static void test_lets_in(void **state)
{
	struct want want = SH("id -u");
	struct stage *stage = *state;
	struct run_result result;

	sample(stage);
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "65534\n");
}

static void test_no_logins(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;
	char path[128];

	sample(stage);
	put(stage, "nologin", "back at noon\nafter the repair\n");
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "user nobody in: back at noon after the repair ("));
	assert_non_null(strstr(result.text, "refuses the account"));
	assert_string_equal(stage_read(stage->out), "");
	put(stage, "nologin", "back at noon\n");
	want.pam = NULL;
	assert_int_equal(stage_run(stage, &want, &result), 0); /* without PAM nobody looks */
	snprintf(path, sizeof(path), "%s/nologin", stage->dir);
	unlink(path);
	assert_int_equal(run(stage, want, &result), 0);
}

static void test_expired(void **state)
{
	static const struct {
		long changed;
		const char *valid, *inactive, *expires, *says;
	} cases[] = {
		{-1, "99999", "", "100", "expired"},   /* the account */
		{100, "30", "", "", "expired"},	       /* the password: a new one is wanted */
		{100, "30", "5", "", "expired"},       /* and it is too late for that */
		{0, "99999", "", "", "administrator"}, /* the administrator wants a new one */
	};
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;

	sample(stage);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		account(stage, cases[i].changed, cases[i].valid, cases[i].inactive,
			cases[i].expires);
		assert_int_equal(run(stage, want, &result), 125);
		if (!strstr(result.text, cases[i].says) ||
		    !strstr(result.text, "refuses the account"))
			fail_msg("case %zu: %s", i, result.text);
		assert_string_equal(stage_read(stage->out), "");
	}
	/* A warning is no reason: this password expires within the 7 days. */
	account(stage, (long)(time(NULL) / 86400) - 28, "30", "", "");
	assert_int_equal(run(stage, want, &result), 0);
}

/* The limits of limits.conf hold, also against a job that wants more. */
static void test_limits(void **state)
{
	struct want want = SH("ulimit -Hn; ulimit -Sn; ulimit -n 99 && echo more");
	struct stage *stage = *state;
	struct run_result result;

	sample(stage);
	put(stage, "limits", "nobody hard nofile 77\nnobody soft nofile 33\n");
	assert_int_not_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "77\n33\n");
	want.limit =
		(struct spec_limit){.resource = RLIMIT_NOFILE, .soft = 200, .hard = RLIM_INFINITY};
	assert_int_not_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "77\n77\n");
	put(stage, "limits", "");
}

static void test_login_records(void **state)
{
	struct want want = SH("true");
	struct stage *stage = *state;
	struct run_result result;
	struct stat st;

	sample(stage);
	assert_int_equal(run(stage, want, &result), 0);
	for (size_t i = 0; i < sizeof(logins) / sizeof(*logins); i++) {
		if (!present[i])
			assert_int_equal(access(logins[i], F_OK), -1);
		else if (stat(logins[i], &st) || st.st_size)
			fail_msg("%s was written to", logins[i]);
	}
}

/* The job sees none of root's keys, which lie in the session keyring of the shim's parent. */
static void test_keyring(void **state)
{
	struct want want = SH("! grep " SECRET " /proc/keys && id -u");
	struct stage *stage = *state;
	struct run_result result;

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ||
	    syscall(SYS_add_key, "user", SECRET, "x", 1, KEY_SPEC_SESSION_KEYRING) < 0)
		skip(); /* this kernel has no keyrings */
	assert_non_null(strstr(stage_read("/proc/keys"), SECRET));
	sample(stage);
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "65534\n");
	assert_non_null(strstr(stage_read("/proc/keys"), SECRET));
}

/* --- credentials ---------------------------------------------------------------------- */

static void service_witnessed(const struct stage *stage, const char *session)
{
	char text[3 * 4600];

	put(stage, "witnessed", "");
	snprintf(text, sizeof(text),
		 "auth required %s %s\naccount required %s %s\nsession required %s %s\n"
		 "session required %s\n",
		 witness, witnessed, witness, witnessed, witness, witnessed, session);
	service(text);
}

static void test_order(void **state)
{
	struct want want = SH("cat $SEEN");
	struct stage *stage = *state;
	struct run_result result;
	char seen[160];
	char *env[] = {seen, NULL};

	snprintf(seen, sizeof(seen), "SEEN=%s", witnessed);
	want.env = env;
	service_witnessed(stage, "pam_permit.so");
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "account\nestablish\nopen\n");
	assert_string_equal(stage_read(witnessed), "account\nestablish\nopen\nclose\ndelete\n");
	/* A refused session: what was set up is taken down. */
	service_witnessed(stage, "pam_deny.so");
	assert_int_equal(run(stage, want, &result), 125);
	assert_string_equal(stage_read(witnessed), "account\nestablish\nopen\ndelete\n");
}

static void test_credentials_fail(void **state)
{
	static const char rest[] =
		"account required pam_permit.so\nsession required pam_permit.so\n";
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;
	char text[256];

	service(rest);
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "has no auth line"));
	assert_non_null(strstr(result.text, "auth required pam_permit.so"));
	assert_string_equal(stage_read(stage->out), "");
	snprintf(text, sizeof(text), "auth required pam_deny.so\n%s", rest);
	service(text);
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "refuses the credentials"));
	assert_null(strstr(result.text, "no auth line"));
	assert_string_equal(stage_read(stage->out), "");
}

/* Groups that a module adds are the job's, beside the user's own; the shim does not keep them. */
static void test_groups(void **state)
{
	struct want want = SH("id -G; grep Groups /proc/$PPID/status");
	struct stage *stage = *state;
	struct run_result result;
	char own[256], expected[512];

	service("auth required pam_permit.so\naccount required pam_permit.so\n"
		"session required pam_permit.so\n");
	assert_int_equal(run(stage, want, &result), 0);
	snprintf(own, sizeof(own), "%s", stage_read(stage->out));
	assert_memory_equal(own, "65534\n", 6);
	snprintf(expected, sizeof(expected), "65534 4 6\n%s", own + 6);
	service("auth required pam_permit.so\nauth required pam_group.so\n"
		"account required pam_permit.so\nsession required pam_permit.so\n");
	put(stage, "groups", "iocom;*;nobody;Al0000-2400;adm,disk\n");
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), expected);
	put(stage, "groups", "iocom;*;daemon;Al0000-2400;adm,disk\n");
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), own);
}

/* However soon the refusal comes, the client learns the reason. */
static void test_refused_at_once(void **state)
{
	struct want want = SH("echo ran"), detached = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;

	service("auth required pam_permit.so\naccount optional pam_echo.so closed on Sundays\n"
		"account required pam_deny.so\n");
	detached.detach = true;
	for (int i = 0; i < TIMES; i++) {
		assert_int_equal(run(stage, i % 2 ? want : detached, &result), 125);
		if (!strstr(result.text, "user nobody in: closed on Sundays"))
			fail_msg("refusal %d: %s", i, result.text);
	}
}

/* --- the cost ----------------------------------------------------------------------- */

/* CPU time of our ended children: the shim and the job. */
static uint64_t children_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void test_cost(void **state)
{
	struct want want = {.argv = {"/bin/true", NULL}};
	uint64_t ns[2] = {0}, cpu_us[2] = {0}, began, before_us;
	struct stage *stage = *state;
	struct run_result result;

	sample(stage);
	for (int i = 0; i < 2 * MEASURE; i++) {
		want.pam = i % 2 ? pam_dir : NULL;
		before_us = children_us();
		began = clock_boot_ns();
		assert_int_equal(stage_run(stage, &want, &result), 0);
		ns[i % 2] += clock_boot_ns() - began;
		cpu_us[i % 2] += children_us() - before_us;
	}
	printf("# | a job without PAM %.2f ms (%.2f ms of CPU), with the installed service file "
	       "%.2f ms (%.2f)\n",
	       (double)ns[0] / MEASURE / 1e6, (double)cpu_us[0] / MEASURE / 1e3,
	       (double)ns[1] / MEASURE / 1e6, (double)cpu_us[1] / MEASURE / 1e3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lets_in),
		cmocka_unit_test(test_no_logins),
		cmocka_unit_test(test_expired),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_login_records),
		cmocka_unit_test(test_keyring),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_credentials_fail),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_cost),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("pam_machine", tests, setup, stage_teardown);
}
