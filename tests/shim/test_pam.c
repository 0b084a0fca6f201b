/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * PAM around a job, with real modules and the test's own service file: which users may run jobs,
 * what a session sets, and that every way out closes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/stage.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}
#define PRIVATE_MAX_KB 2048

static char pam_dir[96], hooked[128];

static void put(const char *directory, const char *name, const char *text, mode_t mode)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* Writes a new service file. DIR in ACCOUNT and SESSION stands for the test's directory. */
static void service(struct stage *stage, const char *account, const char *session)
{
	char text[2048], line[1024] = "";
	const char *at;

	snprintf(pam_dir, sizeof(pam_dir), "%s/pam.d", stage->dir);
	snprintf(hooked, sizeof(hooked), "%s/hooked", stage->dir);
	mkdir(pam_dir, 0755);
	unlink(hooked);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\necho \"$PAM_TYPE $PAM_SERVICE $PAM_USER $PAM_TTY $(id -u)\" >>%s\n"
		 "chmod 644 %s\n",
		 hooked, hooked);
	put(stage->dir, "hook", text, 0755);
	at = strstr(session, "DIR");
	snprintf(line, sizeof(line), "%.*s%s%s", (int)(at ? at - session : 0), session,
		 at ? stage->dir : "", at ? at + 3 : session);
	snprintf(text, sizeof(text),
		 "auth required pam_permit.so\naccount %s\nsession required pam_exec.so quiet "
		 "%s/hook\nsession %s\n",
		 account, stage->dir, line);
	put(pam_dir, "iocom", text, 0644);
}

static int run(struct stage *stage, struct want want, struct run_result *result)
{
	want.pam = pam_dir;
	return stage_run(stage, &want, result);
}

static const char both[] = "open_session iocom nobody iocom 0\n"
			   "close_session iocom nobody iocom 0\n";

static void test_session_around_the_job(void **state)
{
	struct want want = SH("cat $HOOKED; id -u");
	struct stage *stage = *state;
	struct run_result result;
	char variable[160];
	char *env[] = {variable, NULL};

	service(stage, "required pam_permit.so", "required pam_permit.so");
	snprintf(variable, sizeof(variable), "HOOKED=%s", hooked);
	want.env = env;
	assert_int_equal(run(stage, want, &result), 0);
	/* While the job runs the session is open and not yet closed, and the job is still the
	 * user's. */
	assert_string_equal(stage_read(stage->out), "open_session iocom nobody iocom 0\n65534\n");
	assert_string_equal(stage_read(hooked), both);
}

static void test_without(void **state)
{
	struct want want = SH("id -u");
	struct stage *stage = *state;
	struct run_result result;

	service(stage, "required pam_deny.so", "required pam_deny.so");
	assert_int_equal(stage_run(stage, &want, &result), 0); /* PAM was not asked */
	assert_string_equal(stage_read(stage->out), "65534\n");
	assert_string_equal(stage_read(hooked), "");
}

static void test_account_refused(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;

	service(stage, "required pam_deny.so", "required pam_permit.so");
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "node here does not let user nobody in"));
	assert_non_null(strstr(result.text, "refuses the account"));
	assert_non_null(strstr(result.text, pam_dir));
	assert_string_equal(stage_read(stage->out), "");
	assert_string_equal(stage_read(hooked), ""); /* a refused account gets no session */
}

static void test_refusal_leaves_nothing(void **state)
{
	struct want want = SH("echo ran");
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct stage *stage = *state;
	struct run_result result;
	struct job job;
	char path[256];

	service(stage, "required pam_deny.so", "required pam_permit.so");
	want.pam = pam_dir;
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(run_stream(&options, job.client, &result), 125);
	assert_int_equal(stage_reap(&job), 1);
	close(job.leash);
	assert_false(stage_group_exists(stage, job.name));
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job.name);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_session_refused(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;

	service(stage, "required pam_permit.so", "required pam_deny.so");
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "refuses the session"));
	assert_string_equal(stage_read(stage->out), "");
}

static void test_modules_say_why(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;

	service(stage,
		"optional pam_echo.so closed on Sundays\naccount required "
		"pam_deny.so",
		"required pam_permit.so");
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "closed on Sundays"));
}

/* Without our service file PAM would use the service "other": that must never happen. */
static void test_no_service_file(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;
	char path[128];

	service(stage, "required pam_permit.so", "required pam_permit.so");
	put(pam_dir, "other", "account required pam_permit.so\nsession required pam_permit.so\n",
	    0644);
	snprintf(path, sizeof(path), "%s/iocom", pam_dir);
	unlink(path);
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, path));
	assert_string_equal(stage_read(stage->out), "");
}

static void test_access_by_name(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;
	char account[256];

	snprintf(account, sizeof(account), "required pam_access.so accessfile=%s/access",
		 stage->dir);
	service(stage, account, "required pam_permit.so");
	put(stage->dir, "access", "+:nobody:ALL\n-:ALL:ALL\n", 0644);
	assert_int_equal(run(stage, want, &result), 0);
	put(stage->dir, "access", "-:nobody:ALL\n+:ALL:ALL\n", 0644);
	assert_int_equal(run(stage, want, &result), 125);
	assert_non_null(strstr(result.text, "user nobody"));
}

static bool may_raise_limits(void)
{
	const char *at = strstr(stage_read("/proc/self/status"), "CapEff:");

	return at && strtoull(at + 7, NULL, 16) >> CAP_SYS_RESOURCE & 1;
}

static void test_limits_are_the_jobs(void **state)
{
	struct want want = SH("ulimit -Hn; ulimit -Sc; nice; umask; exec sleep 0.3");
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct stage *stage = *state;
	struct run_result result;
	struct job job;
	char path[64], own[512];
	struct rlimit here;

	service(stage, "required pam_permit.so", "required pam_limits.so conf=DIR/limits");
	put(stage->dir, "limits", "nobody hard nofile 77\nnobody - core 0\nnobody - priority 5\n",
	    0644);
	want.umask = 027;
	want.pam = pam_dir;
	options.stdio[1] = open(stage->out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(run_stream(&options, job.client, &result), 0);
	close(options.stdio[1]);
	stage_reap(&job);
	close(job.leash);
	assert_string_equal(stage_read(stage->out), "77\n0\n5\n0027\n");

	/* The shim keeps its own limits if root may raise limits. */
	if (!may_raise_limits())
		return;
	want = (struct want)SH("sed -n '/open files/p' /proc/$PPID/limits");
	getrlimit(RLIMIT_NOFILE, &here);
	assert_int_equal(run(stage, want, &result), 0);
	snprintf(own, sizeof(own), "%s", stage_read(stage->out));
	snprintf(path, sizeof(path), " %llu ", (unsigned long long)here.rlim_max);
	if (!strstr(own, path))
		fail_msg("the shim's limit is not its agent's %s: %s", path, own);
}

static void test_variables_of_the_session(void **state)
{
	struct want want = SH("echo \"[$TICKETS][$KEPT]\"");
	struct stage *stage = *state;
	struct run_result result;
	char old[] = "TICKETS=old", kept[] = "KEPT=kept";
	char *env[] = {old, kept, NULL};

	service(stage, "required pam_permit.so",
		"required pam_env.so readenv=0 conffile=DIR/variables");
	put(stage->dir, "variables", "TICKETS DEFAULT=new\n", 0644);
	want.env = env;
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "[new][kept]\n");
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "[old][kept]\n");
}

static void test_closed_on_every_way_out(void **state)
{
	static const struct {
		struct want want;
		int status;
	} cases[] = {
		{SH("exit 3"), 3},
		{SH("kill -9 $$"), 137},
		{{.argv = {"/no/such/command", NULL}}, 127},
		{{.argv = {"true", NULL}, .cwd = "/no/such/directory"}, 125},
	};
	struct stage *stage = *state;
	struct run_result result;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		service(stage, "required pam_permit.so", "required pam_permit.so");
		assert_int_equal(run(stage, cases[i].want, &result), cases[i].status);
		assert_string_equal(stage_read(hooked), both);
	}
}

/* A client that attaches while a slow module closes the session is served afterwards. */
static void test_attached_while_closing(void **state)
{
	struct launch_ask wish;
	struct run_stream_options leave = {.stdio = {-1, -1, -1}, .leave = true};
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct attach_ask ask = {.node = "here", .from = {0, ATTACH_FIRST, ATTACH_FIRST}};
	struct want want = SH("echo kept; exit 3");
	struct stage *stage = *state;
	struct launch_event event;
	struct run_result result;
	struct job job;
	size_t length;
	void *packed;
	int fd[2];

	service(stage, "required pam_permit.so", "required pam_exec.so quiet DIR/slow");
	put(stage->dir, "slow", "#!/bin/sh\ntest $PAM_TYPE = open_session || sleep 1\n", 0755);
	want.pam = pam_dir;
	want.detach = true;
	job = stage_start(stage, &want);
	assert_int_equal(run_stream(&leave, job.client, &result), 0);
	do
		assert_int_equal(stage_event(job.leash, &event), 0);
	while (event.type != LAUNCH_EXITED);
	usleep(200000);
	snprintf(ask.job, sizeof(ask.job), "%s", job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish = (struct launch_ask){.packed = packed, .length = length};
	assert_int_equal(launch_attach(stage->run, job.name, &wish, fd[1]), 0);
	free(packed);
	close(fd[1]);
	options.stdio[1] = open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_int_equal(run_stream(&options, fd[0], &result), 3);
	close(options.stdio[1]);
	assert_string_equal(stage_read(stage->out), "kept\n");
	assert_int_equal(stage_reap(&job), 0);
	close(job.leash);
}

/* A module that hangs stops its own job from starting, with the reason, and delays no other. */
static void test_module_hangs(void **state)
{
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct want want = SH("echo ran"), other = SH("exit 4");
	struct stage *stage = *state;
	struct run_result result;
	struct job job;
	char path[256];

	service(stage, "required pam_permit.so", "required pam_exec.so quiet DIR/hang");
	put(stage->dir, "hang", "#!/bin/sh\nexec sleep 7781\n", 0755);
	want.pam = pam_dir;
	want.begin_ms = 600;
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_run(stage, &other, &result), 4);
	assert_int_equal(run_stream(&options, job.client, &result), 125);
	assert_non_null(strstr(result.text, "did not answer within 600 ms"));
	assert_non_null(strstr(result.text, pam_dir));
	assert_int_equal(stage_reap(&job), 1);
	close(job.leash);
	/* It was killed; on a busy machine that takes its time. */
	for (int i = 0; i < 200 && stage_count("sleep", "7781"); i++)
		usleep(50000);
	assert_int_equal(stage_count("sleep", "7781"), 0);
	assert_false(stage_group_exists(stage, job.name));
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job.name);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_module_is_slow(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;

	service(stage, "required pam_permit.so", "required pam_exec.so quiet DIR/slow");
	put(stage->dir, "slow", "#!/bin/sh\ntest $PAM_TYPE = close_session || sleep 0.3\n", 0755);
	want.begin_ms = 20000;
	assert_int_equal(run(stage, want, &result), 0);
	assert_string_equal(stage_read(stage->out), "ran\n");
}

static unsigned long shim_kb(struct stage *stage, const char *directory)
{
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct want want = SH("exec sleep 0.3");
	struct launch_event event;
	struct run_result result;
	unsigned long kb;
	struct job job;

	want.pam = directory;
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	kb = (unsigned long)stage_private_kb(job.shim);
	assert_int_equal(run_stream(&options, job.client, &result), 0);
	stage_reap(&job);
	close(job.leash);
	return kb;
}

static void test_memory(void **state)
{
	struct stage *stage = *state;
	unsigned long without, with;

	service(stage, "required pam_unix.so", "required pam_limits.so conf=DIR/limits");
	put(stage->dir, "limits", "nobody hard nofile 77\n", 0644);
	without = shim_kb(stage, NULL);
	with = shim_kb(stage, pam_dir);
	printf("# | a shim's private memory: %lu KB, with PAM (pam_unix, pam_limits) %lu KB\n",
	       without, with);
	if (getenv("IOCOM_SANITIZED"))
		return; /* a sanitizer's shadow memory does not count */
	assert_in_range(without, 1, PRIVATE_MAX_KB);
	assert_in_range(with, 1,
			PRIVATE_MAX_KB); /* a few KB more or less: not all pages are touched */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session_around_the_job),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_account_refused),
		cmocka_unit_test(test_refusal_leaves_nothing),
		cmocka_unit_test(test_session_refused),
		cmocka_unit_test(test_modules_say_why),
		cmocka_unit_test(test_no_service_file),
		cmocka_unit_test(test_access_by_name),
		cmocka_unit_test(test_limits_are_the_jobs),
		cmocka_unit_test(test_variables_of_the_session),
		cmocka_unit_test(test_closed_on_every_way_out),
		cmocka_unit_test(test_attached_while_closing),
		cmocka_unit_test(test_module_hangs),
		cmocka_unit_test(test_module_is_slow),
		cmocka_unit_test(test_memory),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("pam", tests, stage_setup, stage_teardown);
}
