/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the kernel's audit log is told of a job. A shim that is linked with a libaudit of the test
 * (audit_fake.c) shows each record, and where audit is off, hangs or fails. With the kernel's own
 * audit, where it is enabled (in a virtual machine the test enables it), the records come back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/shim/audit.h"
#include "tests/lib/stage.h"
#include "user/audit_state.h"
#include "user/clock.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}
#define WAIT_MS 30000

static char told_path[128], mode_path[128], off_path[160], other_path[128], real[4096];

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Says how audit is from now on (audit_fake.c), and forgets what was told and found. */
static void audit_is(const char *mode)
{
	write_file(mode_path, mode);
	write_file(told_path, "");
	unlink(off_path);
}

/* The shim waits for its last record, but the first one may end after it. */
static const char *told(unsigned lines)
{
	uint64_t until = clock_boot_ms() + WAIT_MS;

	for (;;) {
		const char *text = stage_read(told_path);
		unsigned n = 0;

		for (const char *c = text; *c; c++)
			n += *c == '\n';
		if (n >= lines || clock_boot_ms() > until)
			return text;
		usleep(10000);
	}
}

static bool told_has(const char *text, const char *expected)
{
	if (!strstr(text, expected))
		print_error("not told: %s\nbut: %s", expected, text);
	return strstr(text, expected);
}

static int setup(void **state)
{
	char command[2 * 4096 + 128];
	struct stage *stage;
	int rc = stage_setup(state);

	if (rc)
		return rc;
	stage = *state;
	strcpy(real, stage->shim);
	snprintf(command, sizeof(command), "cp %.*s/tests/shim/audited_shim %s/iocom-shim",
		 (int)(strrchr(real, '/') - real), real, stage->dir);
	snprintf(told_path, sizeof(told_path), "%s/iocom-shim.told", stage->dir);
	snprintf(mode_path, sizeof(mode_path), "%s/iocom-shim.audit", stage->dir);
	snprintf(off_path, sizeof(off_path), "%s/" AUDIT_OFF_NAME, stage->run);
	snprintf(other_path, sizeof(other_path), "%s/other", stage->dir);
	snprintf(stage->shim, sizeof(stage->shim), "%s/iocom-shim", stage->dir);
	return system(command);
}

static int run(struct stage *stage, const struct want *want, char *job)
{
	struct run_result result;

	snprintf(job, SPEC_JOB_MAX, "stage-%d-%u", getpid(), stage->sequence + 1);
	return stage_run(stage, want, &result);
}

/* Counts the processes of our shim's program, and sends them SIGNAL if it is not 0. */
static unsigned signal_all(const struct stage *stage, int signal)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	char path[64], exe[256];
	unsigned count = 0;
	ssize_t n;

	assert_non_null(proc);
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		n = pid > 0 ? readlink(path, exe, sizeof(exe) - 1) : -1;
		exe[n > 0 ? n : 0] = 0;
		if (n > 0 && !strcmp(exe, stage->shim)) {
			kill(pid, signal);
			count++;
		}
	}
	closedir(proc);
	return count;
}

/* A record may still be under way when the shim has ended. */
static void wait_all(const struct stage *stage)
{
	uint64_t until = clock_boot_ms() + WAIT_MS;

	while (signal_all(stage, 0))
		if (clock_boot_ms() > until)
			fail_msg("a process of the shim does not end");
		else
			usleep(10000);
}

/* --- the text of a record ------------------------------------------------------------- */

static char *encode(const char *name, const char *value, unsigned length)
{
	char *text = NULL;

	(void)length;
	return asprintf(&text, "%s=<%s>", name, value) < 0 ? NULL : text;
}

static char *encode_not(const char *name, const char *value, unsigned length)
{
	(void)name, (void)value, (void)length;
	return NULL;
}

static void test_text(void **state)
{
	static const struct {
		struct audit_event event;
		const char *text;
	} cases[] = {
		{{AUDIT_JOB_STARTED, "n1-00c0ffee-7", "alice", 1000, "", 0, "x"},
		 "op=iocom:job_start id=1000 acct=<alice> job=n1-00c0ffee-7"},
		{{AUDIT_JOB_REFUSED, "n1-00c0ffee-7", "", 1000, "", 0, "no such user"},
		 "op=iocom:job_start id=1000 job=n1-00c0ffee-7 reason=<no such user>"},
		{{AUDIT_JOB_EXITED, "n1-00c0ffee-7", "alice", 1000, "", 3, "x"},
		 "op=iocom:job_end id=1000 acct=<alice> job=n1-00c0ffee-7 exit=3"},
		{{AUDIT_JOB_KILLED, "n1-00c0ffee-7", "alice", 1000, "", 9, ""},
		 "op=iocom:job_end id=1000 acct=<alice> job=n1-00c0ffee-7 sig=9"},
		{{AUDIT_JOB_LOST, "n1-00c0ffee-7", NULL, 0, "", 255, "lease over"},
		 "op=iocom:job_end id=0 job=n1-00c0ffee-7 reason=<lease over>"},
		{{AUDIT_JOB_MOVED, "n1-00c0ffee-7", "alice", 1000, "", 0, "it moved"},
		 "op=iocom:job_end id=1000 acct=<alice> job=n1-00c0ffee-7 reason=<it moved>"},
	};
	struct audit_library library = {.encode = encode};
	char out[AUDIT_RECORD_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(audit_compose(&cases[i].event, &library, out, sizeof(out)), 0);
		assert_string_equal(out, cases[i].text);
		for (size_t size = 1; size <= strlen(out); size++)
			assert_int_equal(audit_compose(&cases[i].event, &library, out, size),
					 -E2BIG);
	}
	library.encode = encode_not;
	assert_int_equal(audit_compose(&cases[0].event, &library, out, sizeof(out)), -ENOMEM);
}

static void test_home(void **state)
{
	char home[64];

	(void)state;
	audit_home("n1-00c0ffee-7", home, sizeof(home));
	assert_string_equal(home, "n1");
	audit_home("rack-2-n1-00c0ffee-7", home, sizeof(home));
	assert_string_equal(home, "rack-2-n1");
	audit_home("x", home, sizeof(home));
	assert_string_equal(home, "x");
}

/* --- the shim's records -------------------------------------------------------------- */

static void test_start_and_end(void **state)
{
	const struct want good = SH("exit 3"), killed = SH("kill -9 $$");
	struct stage *stage = *state;
	char job[SPEC_JOB_MAX], expected[512];
	const char *text;

	audit_is("");
	assert_int_equal(run(stage, &good, job), 3);
	text = told(2);
	snprintf(expected, sizeof(expected),
		 "1105 op=iocom:job_start id=65534 acct=\"nobody\" job=%s hostname=stage "
		 "addr=127.0.0.1 terminal=iocom res=success\n",
		 job);
	assert_true(told_has(text, expected));
	snprintf(expected, sizeof(expected),
		 "1106 op=iocom:job_end id=65534 acct=\"nobody\" job=%s exit=3 hostname=stage "
		 "addr=127.0.0.1 terminal=iocom res=success\n",
		 job);
	assert_true(told_has(text, expected));
	audit_is("");
	assert_int_equal(run(stage, &killed, job), 137);
	assert_true(told_has(told(2), " sig=9 "));
}

/* One record, and no end of what never began. */
static void test_refused(void **state)
{
	const struct want cases[] = {
		SH("true"),
		{.argv = {"/no/such/command", NULL}},
		{.argv = {"true", NULL}, .cwd = "/no/such/directory"},
		{.argv = {"true", NULL}, .uid = 4999, .gid = 4999},
	};
	struct stage *stage = *state;
	char job[SPEC_JOB_MAX], expected[256], directory[96], path[128];
	struct want want;
	const char *text;

	snprintf(directory, sizeof(directory), "%s/pam.d", stage->dir);
	snprintf(path, sizeof(path), "%s/iocom", directory);
	mkdir(directory, 0755);
	write_file(path, "account required pam_deny.so\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		want = cases[i];
		want.pam = i == 0 ? directory : NULL;
		audit_is("");
		assert_in_range(run(stage, &want, job), 125, 127);
		text = told(1);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		snprintf(expected, sizeof(expected), " job=%s reason=", job);
		assert_true(told_has(text, expected));
		assert_true(told_has(text, "1105 op=iocom:job_start "));
		assert_true(told_has(text, "res=failed\n"));
		assert_true((i == 3) == !strstr(text, "acct=\"nobody\""));
	}
}

/* No record, no process, and the next shims do not even try; after a while they do. */
static void test_off(void **state)
{
	static const char *const modes[] = {"d", "n", "p"};
	const struct want want = SH("exit 4");
	struct stage *stage = *state;
	const struct timespec old[2] = {{.tv_sec = time(NULL) - AUDIT_OFF_S - 1},
					{.tv_sec = time(NULL) - AUDIT_OFF_S - 1}};
	char job[SPEC_JOB_MAX];

	for (size_t i = 0; i < 3; i++) {
		audit_is(modes[i]);
		assert_int_equal(run(stage, &want, job), 4);
		wait_all(stage);
		assert_string_equal(stage_read(told_path), "");
		assert_int_equal(access(off_path, F_OK), 0);
		write_file(mode_path, "");
		assert_int_equal(run(stage, &want, job), 4);
		wait_all(stage);
		assert_string_equal(stage_read(told_path), "");
		assert_int_equal(utimensat(AT_FDCWD, off_path, old, 0), 0);
		assert_int_equal(run(stage, &want, job), 4);
		assert_true(told_has(told(2), "exit=4"));
	}
	audit_is("a");
	assert_int_equal(run(stage, &want, job), 4);
	assert_string_equal(stage_read(told_path), "");
	assert_int_equal(access(off_path, F_OK), -1); /* not to have audit needs no note */
}

/* A record that cannot be sent is logged with the job's name; the job does not notice. */
static void test_fails(void **state)
{
	const struct want want = SH("exit 5");
	struct stage *stage = *state;
	char job[SPEC_JOB_MAX], expected[256];
	const char *log;
	int kept = dup(2), fd = open(other_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);

	audit_is("f");
	fflush(stderr);
	dup2(fd, 2);
	assert_int_equal(run(stage, &want, job), 5);
	wait_all(stage);
	dup2(kept, 2);
	close(kept);
	close(fd);
	log = stage_read(other_path);
	snprintf(expected, sizeof(expected), "job %s: no audit record of its start: No buffer",
		 job);
	assert_true(told_has(log, expected));
	snprintf(expected, sizeof(expected), "job %s: no audit record of its end: No buffer", job);
	assert_true(told_has(log, expected));
}

/* An audit system that does not take a record holds up neither the job nor its client. */
static void test_hangs(void **state)
{
	struct want want = SH("read word; echo $word; exit 6");
	struct stage *stage = *state;
	char job[SPEC_JOB_MAX];

	audit_is("h");
	write_file(other_path, "through\n");
	want.in = other_path;
	assert_int_equal(run(stage, &want, job), 6);
	assert_string_equal(stage_read(stage->out), "through\n");
	assert_string_equal(stage_read(told_path), "");
	/* They would end after AUDIT_LIMIT_S. */
	assert_int_equal(signal_all(stage, SIGKILL), 2);
	wait_all(stage);
}

/* --- the kernel's own ----------------------------------------------------------------- */

/* Enables the kernel's audit, as auditd does. It stays so: only in a virtual machine. */
static void enable(void)
{
	struct {
		struct nlmsghdr header;
		struct audit_status status;
	} ask = {
		.header = {.nlmsg_len = sizeof(ask),
			   .nlmsg_type = AUDIT_SET,
			   .nlmsg_flags = NLM_F_REQUEST},
		.status = {.mask = AUDIT_STATUS_ENABLED, .enabled = 1},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);

	assert_int_equal(send(fd, &ask, sizeof(ask), 0), sizeof(ask));
	close(fd);
}

/* Reads records until one has both texts. */
static bool heard(int fd, int type, const char *job, const char *text)
{
	const uint64_t until = clock_boot_ms() + WAIT_MS;
	char buffer[9000];

	while (clock_boot_ms() < until) {
		const struct nlmsghdr *record = (const void *)buffer;
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, 100) != 1)
			continue;
		n = recv(fd, buffer, sizeof(buffer) - 1, 0);
		if (n < (ssize_t)sizeof(*record))
			continue;
		buffer[n] = 0;
		if (record->nlmsg_type == type && strstr(NLMSG_DATA(buffer), job) &&
		    strstr(NLMSG_DATA(buffer), text)) {
			printf("# | %d %s\n", type, (const char *)NLMSG_DATA(buffer));
			return true;
		}
	}
	return false;
}

static void test_kernel(void **state)
{
	const struct want want = SH("exit 7");
	struct sockaddr_nl readers = {.nl_family = AF_NETLINK,
				      .nl_groups = 1 << (AUDIT_NLGRP_READLOG - 1)};
	struct stage *stage = *state;
	struct audit_state audit;
	char job[SPEC_JOB_MAX + 8] = "job=";
	int fd;

	if (getenv("IOCOM_VM"))
		enable();
	if (audit_state_read(&audit) || !audit.enabled)
		skip(); /* this kernel drops records */
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
	assert_int_equal(bind(fd, (struct sockaddr *)&readers, sizeof(readers)), 0);
	strcpy(stage->shim, real);
	unlink(off_path);
	assert_int_equal(run(stage, &want, job + 4), 7);
	assert_true(heard(fd, 1105, job, "res=success"));
	assert_true(heard(fd, 1106, job, "exit=7"));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	      cmocka_unit_test(test_home),
		cmocka_unit_test(test_start_and_end), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_off),	      cmocka_unit_test(test_fails),
		cmocka_unit_test(test_hangs),	      cmocka_unit_test(test_kernel),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("audit", tests, setup, stage_teardown);
}
