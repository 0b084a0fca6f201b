/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A real shim between a played agent and the real client: the job itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/leash.h"
#include "agent/shim/order.h"
#include "tests/lib/stage.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}

/* --- how a job ends --- */

static void test_statuses(void **state)
{
	struct run_result result;
	struct stage *stage = *state;
	static const struct {
		struct want want;
		int status;
	} cases[] = {
		{SH("exit 0"), 0},
		{SH("exit 3"), 3},
		{SH("exit 255"), 255},
		{SH("kill -9 $$"), 137},
		{SH("kill -TERM $$"), 143},
		{{.argv = {"/no/such/command", NULL}}, 127},
		{{.argv = {"no-such-command", NULL}}, 127},
		{{.argv = {"/etc/passwd", NULL}}, 126},
		{{.argv = {"/etc", NULL}}, 126},
		{{.argv = {"true", NULL}}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = stage_run(stage, &cases[i].want, &result);

		if (status != cases[i].status)
			print_message("case %zu: %d, not %d (%s)\n", i, status, cases[i].status,
				      result.text);
		assert_int_equal(status, cases[i].status);
	}
}

static void test_script_without_interpreter(void **state)
{
	struct want want = {.argv = {NULL, "a b", NULL}};
	struct stage *stage = *state;
	struct run_result result;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/script", stage->dir);
	fd = open(path, O_WRONLY | O_CREAT, 0755);
	assert_int_equal(write(fd, "echo \"[$1]\"\n", 12), 12);
	close(fd);
	want.argv[0] = path;
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "[a b]\n");
}

static void test_started_and_exited(void **state)
{
	struct want want = SH("sleep 0.2; exit 4");
	struct launch_event event;
	struct stage *stage = *state;
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct run_result result;
	struct stat st;
	char path[512];
	struct job job = stage_start(stage, &want);

	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	assert_string_equal(event.job, job.name);
	assert_int_equal(kill(event.pid, 0), 0);
	snprintf(path, sizeof(path), "%s/%s/jobs/user@65534/%s", stage->v2, stage->scope, job.name);
	assert_int_equal(stat(path, &st), 0);
	assert_true(event.cgroup_id == st.st_ino);
	assert_int_equal(run_stream(&options, job.client, &result), 4);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_EXITED);
	assert_int_equal(event.kind, 0);
	assert_int_equal(event.value, 4);
	assert_in_range(event.wall_ms, 190, 5000);
	assert_in_range(event.max_rss_kb, 100, 100000);
	assert_in_range(event.begin_us, 1, event.cpu_us - 1);
	assert_int_equal(stage_event(job.leash, &event), -EPIPE);
	assert_int_equal(stage_reap(&job), 0);
	assert_false(stage_group_exists(stage, job.name));
	close(job.leash);
	launch_forget(stage->jobs, stage->run, job.name);
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job.name);
	assert_int_equal(access(path, F_OK), -1);
}

/* Waits until PID catches SIGNAL, so that a shell's trap is really there. */
static void wait_caught(pid_t pid, int signal)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	for (int i = 0; i < 1000; i++) {
		const char *at = strstr(stage_read(path), "SigCgt:");

		if (at && strtoull(at + 7, NULL, 16) >> (signal - 1) & 1)
			return;
		usleep(10000);
	}
	fail_msg("process %d never caught signal %d", pid, signal);
}

static void test_signals(void **state)
{
	struct want want =
		SH("trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.05; done");
	struct stage *stage = *state;
	struct launch_event event;
	struct job job = stage_start(stage, &want);
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct run_result result;

	options.stdio[1] = open(stage->out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(stage_event(job.leash, &event), 0);
	wait_caught(event.pid, SIGTERM);
	/* Through the control socket, like an agent that did not start the shim. */
	assert_int_equal(stage_signal(stage, job.name, SIGTERM), 0);
	assert_int_equal(run_stream(&options, job.client, &result), 7);
	assert_non_null(strstr(stage_read(stage->out), "term"));
	close(options.stdio[1]);
	close(job.leash);
	stage_reap(&job);
	assert_int_equal(stage_signal(stage, job.name, SIGTERM), -ESRCH);
}

static int killer(const struct stage *stage, const char *name)
{
	pid_t pid = fork();
	int rc = -ESRCH;

	if (pid == 0) {
		usleep(300000);
		/* A slow machine's job has not begun yet. */
		for (int i = 0; i < 300 && rc == -ESRCH; i++) {
			rc = stage_signal(stage, name, SIGKILL);
			usleep(rc ? 100000 : 0);
		}
		_exit(rc ? 1 : 0);
	}
	return pid;
}

static void test_kill_takes_all(void **state)
{
	struct want want = SH("setsid sleep 987 & setsid sleep 987 & trap '' TERM INT; wait");
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct stage *stage = *state;
	struct run_result result;
	struct job job = stage_start(stage, &want);
	int status;
	pid_t pid = killer(stage, job.name);

	assert_int_equal(run_stream(&options, job.client, &result), 137);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(stage_count("sleep", "987"), 0);
	close(job.leash);
	stage_reap(&job);
}

/* --- exactly the user's process --- */

static void test_identity(void **state)
{
	struct want want = SH("id -u; id -g; id -G; umask; pwd; ulimit -Sn; echo \"[$FOO]\"; "
			      "grep -E '^(Cap(Prm|Eff|Inh|Amb)|NoNewPrivs|SigBlk|SigIgn)' "
			      "/proc/self/status; ls /proc/self/fd | wc -l; env | wc -l");
	char *env[] = {(char *)"FOO=a b", (char *)"PATH=/usr/bin:/bin", NULL};
	struct stage *stage = *state;
	struct run_result result;
	const char *text;

	want.cwd = "/usr";
	want.umask = 027;
	want.env = env;
	want.limit = (struct spec_limit){RLIMIT_NOFILE, 123, RLIM_INFINITY};
	assert_int_equal(stage_run(stage, &want, &result), 0);
	text = stage_read(stage->out);
	/* ls itself has 0, 1, 2 and the directory; sh adds PWD to the environment */
	assert_string_equal(text, "65534\n65534\n65534\n0027\n/usr\n123\n[a b]\n"
				  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
				  "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
				  "CapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"
				  "NoNewPrivs:\t0\n4\n3\n");
}

/* What the agent looked up is not looked up again; a user who is not in the group is refused. */
static void test_account(void **state)
{
	struct want want = SH("id -u; id -g; id -G");
	struct stage *stage = *state;
	gid_t groups[] = {65534, 3999998};
	struct account account = {.uid = 65534,
				  .gid = 65534,
				  .name = (char *)"nobody",
				  .groups = groups,
				  .ngroups = 2};
	struct run_result result;

	want.account = &account;
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "65534\n65534\n65534 3999998\n");
	groups[0] = 3999997;
	assert_int_equal(stage_run(stage, &want, &result), 125);
	assert_non_null(strstr(result.text, "user nobody is not a member of group 65534"));
	/* Too many groups for an order: the shim asks the database, where the groups differ. */
	account.groups = calloc(SHIM_GROUPS_MAX + 1, sizeof(gid_t));
	account.ngroups = SHIM_GROUPS_MAX + 1;
	assert_non_null(account.groups);
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "65534\n65534\n65534\n");
	free(account.groups);
}

static void test_way_back_is_closed(void **state)
{
	/* What a hostile job would try; everything must fail. */
	struct want want = {.argv = {"/usr/bin/python3", "-c",
				     "import os\n"
				     "for f in (lambda: os.setuid(0), lambda: os.setgid(0),\n"
				     "          lambda: os.setgroups([0]), lambda: os.seteuid(0),\n"
				     "          lambda: open('/etc/shadow'),\n"
				     "          lambda: os.kill(os.getppid(), 0)):\n"
				     "  try: f(); print('open')\n"
				     "  except PermissionError: print('closed')\n",
				     NULL}};
	struct stage *stage = *state;
	struct run_result result;

	if (access("/usr/bin/python3", X_OK))
		skip();
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out),
			    "closed\nclosed\nclosed\nclosed\nclosed\nclosed\n");
}

static void test_refusals(void **state)
{
	struct want root = {.argv = {"/bin/true", NULL}, .root = true};
	struct want unknown = {.argv = {"/bin/true", NULL}, .uid = 3999999, .gid = 1};
	struct want group = {.argv = {"/bin/true", NULL}, .uid = 65534, .gid = 4};
	struct want directory = {.argv = {"/bin/true", NULL}, .cwd = "/no/such/directory"};
	struct want closed = {.argv = {"/bin/true", NULL}, .cwd = "/root"};
	struct stage *stage = *state;
	struct run_result result;

	assert_int_equal(stage_run(stage, &root, &result), 125);
	assert_non_null(strstr(result.text, "allow_root"));
	assert_int_equal(stage_run(stage, &unknown, &result), 125);
	assert_non_null(strstr(result.text, "3999999"));
	assert_int_equal(stage_run(stage, &group, &result), 125);
	assert_non_null(strstr(result.text, "group 4"));
	assert_int_equal(stage_run(stage, &directory, &result), 125);
	assert_non_null(strstr(result.text, "/no/such/directory"));
	if (chmod("/root", 0700) == 0) {
		assert_int_equal(stage_run(stage, &closed, &result), 125);
		assert_non_null(strstr(result.text, "/root"));
	}
}

static void test_once(void **state)
{
	struct want want = {.argv = {"/bin/true", NULL}};
	struct stage *stage = *state;
	struct run_result result;
	struct job job;

	assert_int_equal(stage_run(stage, &want, &result), 0);
	stage->sequence--; /* the same name again */
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, -EEXIST);
	close(job.client);
}

static void test_record_on_full_disk(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;
	char path[128], full[160];
	char zeros[4096] = {0};
	int status, fd;

	snprintf(path, sizeof(path), "%s/full", stage->dir);
	mkdir(path, 0700);
	if (mount("tmpfs", path, "tmpfs", 0, "size=64k"))
		skip();
	snprintf(full, sizeof(full), "%s/fill", path);
	fd = open(full, O_WRONLY | O_CREAT, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
	want.jobs = path;
	status = stage_run(stage, &want, &result);
	umount(path);
	assert_int_equal(status, 125);
	assert_non_null(strstr(result.text, "full"));
	assert_string_equal(stage_read(stage->out), "");
}

static void test_closed_descriptors(void **state)
{
	struct want want = SH("readlink /proc/self/fd/0 >&2");
	struct stage *stage = *state;
	struct run_result result;

	want.closed = 3;
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->err), "/dev/null\n");
}

/* An agent that closes with the end unread has not taken it, so it must be on the disk. */
static void test_end_is_taken(void **state)
{
	const struct record_exit end = {.value = 3};
	struct lease lease = {0};
	char room[256];

	(void)state;
	for (int read_it = 0; read_it < 2; read_it++) {
		struct leash leash;
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		leash_init(&leash, ends[0], "a-1-1");
		leash_exited(&leash, &end);
		leash_hear(&leash, &lease); /* nothing has come yet */
		assert_true(leash.fd >= 0 && !leash.taken);
		if (read_it)
			assert_true(recv(ends[1], room, sizeof(room), 0) > 0);
		close(ends[1]);
		leash_hear(&leash, &lease);
		assert_int_equal(leash.fd, -1);
		assert_int_equal(leash.taken, read_it);
		leash_deinit(&leash);
	}
}

/* An agent that was gone before has not taken it either. */
static void test_end_is_not_taken(void **state)
{
	const struct record_exit end = {.value = 3};
	struct lease lease = {0};
	struct leash leash;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	leash_init(&leash, ends[0], "a-1-1");
	close(ends[1]);
	leash_hear(&leash, &lease);
	leash_exited(&leash, &end);
	assert_int_equal(leash.fd, -1);
	assert_false(leash.taken);
	leash_deinit(&leash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_script_without_interpreter),
		cmocka_unit_test(test_started_and_exited),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_kill_takes_all),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_way_back_is_closed),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_record_on_full_disk),
		cmocka_unit_test(test_closed_descriptors),
		cmocka_unit_test(test_end_is_taken),
		cmocka_unit_test(test_end_is_not_taken),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("shim", tests, stage_setup, stage_teardown);
}
