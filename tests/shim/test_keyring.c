/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The session keyring of a job: neither the agent's nor another job's, also if the user's quota of
 * keys is full, if another user laid a trap, if PAM makes one, or if the kernel has no keys. The
 * test, which plays the agent, has a session keyring with a key in it. Its users are new ones, so
 * that nobody else uses up their quota.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/refuse_keys.h"
#include "tests/lib/stage.h"
#include "user/clock.h"
#include "user/keyring.h"

#define NOBODY	  65534
#define AGENT_KEY "iocom-test-agent"
#define USERS	  8
#define WAIT_MS	  30000

static uid_t first_user;
static unsigned users; /* how many of them were used */
static int32_t agents_ring, agents_key;

static long keyctl(int operation, long a, long b)
{
	return syscall(SYS_keyctl, operation, a, b, 0l, 0l);
}

static uid_t new_user(void)
{
	assert_true(users < USERS);
	return first_user + users++;
}

static void become(uid_t uid)
{
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the new uid has cleared it */
}

static pid_t in_child(void (*run)(uid_t uid, int fd), uid_t uid, int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(uid, fd);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

/* --- jobs ------------------------------------------------------------------------------ */

/* A job of UID that runs SCRIPT with `keys` on its PATH. */
static struct want job_of(const struct stage *stage, uid_t uid, const char *script)
{
	static char path[128];
	static char *env[] = {path, NULL};
	static gid_t group;
	static struct account account = {.groups = &group, .ngroups = 1};
	static char name[] = "tester";

	snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", stage->dir);
	group = account.gid = uid;
	account.uid = uid;
	account.name = name;
	return (struct want){.argv = {"/bin/sh", "-c", script, NULL},
			     .env = env,
			     .uid = uid,
			     .gid = uid,
			     .account = uid == NOBODY ? NULL : &account};
}

static const char *said(struct stage *stage, uid_t uid, const char *script)
{
	struct want want = job_of(stage, uid, script);
	struct run_result result;
	int status = stage_run(stage, &want, &result);

	if (status == 125)
		print_message("%s\n", result.text);
	assert_int_not_equal(status, 125);
	return stage_read(stage->out);
}

/* Starts a job that goes on, and returns its first output. */
static const char *said_first(struct stage *stage, struct job *job, int *out, uid_t uid,
			      const char *script)
{
	static char text[256];
	struct want want = job_of(stage, uid, script);
	uint64_t until = clock_boot_ns() + WAIT_MS * CLOCK_NS_PER_MS;
	char path[128];
	ssize_t n = 0;

	snprintf(path, sizeof(path), "%s/open/first-%u", stage->dir, stage->sequence);
	want.cwd = path;
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(chmod(path, 0777), 0);
	*job = stage_start(stage, &want);
	assert_int_equal(job->rc, 0);
	strcat(path, "/said");
	*out = -1;
	while ((n <= 0 || text[n - 1] != '\n') && clock_boot_ns() < until) {
		if (*out < 0)
			*out = open(path, O_RDONLY | O_CLOEXEC);
		n = *out < 0 ? 0 : pread(*out, text, sizeof(text) - 1, 0);
		usleep(5000);
	}
	assert_true(n > 0 && text[n - 1] == '\n');
	text[n - 1] = 0;
	return text;
}

static void end(const struct stage *stage, struct job *job, int out)
{
	assert_int_equal(stage_signal(stage, job->name, SIGKILL), 0);
	close(job->client);
	stage_reap(job);
	close(job->leash);
	close(out);
}

/* --- keys of others --------------------------------------------------------------------- */

static void test_not_the_agents(void **state)
{
	struct stage *stage = *state;
	uid_t uid = new_user();
	char script[256], want[128];

	snprintf(script, sizeof(script), "keys find %s; keys read %d; keys read %d", AGENT_KEY,
		 agents_key, agents_ring);
	snprintf(want, sizeof(want), "no: %s\nno: %s\nno: %s\n", strerror(ENOKEY), strerror(EACCES),
		 strerror(EACCES));
	assert_string_equal(said(stage, uid, script), want);
	assert_string_equal(said(stage, NOBODY, script), want);
	assert_int_not_equal(strtol(said(stage, uid, "keys ring s"), NULL, 10), agents_ring);
}

/* A job of root is no exception. Root owns both keyrings, and owners may list them. */
static void test_not_the_agents_for_root(void **state)
{
	struct stage *stage = *state;
	struct want want = job_of(stage, 0, "keys find " AGENT_KEY "; keys ring s");
	struct run_result result;
	char *rest;

	want.account = NULL;
	want.root = want.allow_root = true;
	assert_int_equal(stage_run(stage, &want, &result), 0);
	rest = strchr(stage_read(stage->out), '\n');
	assert_non_null(rest);
	assert_int_not_equal(strtol(rest, NULL, 10), agents_ring);
	assert_memory_equal(stage_read(stage->out), "no: ", 4);
}

static void test_not_the_agents_by_a_spare(void **state)
{
	struct stage *stage = *state;
	struct launch_spare spare = {0};
	struct want want = job_of(stage, new_user(), "keys find " AGENT_KEY "; keys ring s");
	struct run_result result;

	launch_spare_make(&spare, stage->shim, stage->scope);
	assert_true(spare.waits);
	want.spare = &spare;
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_false(spare.waits);
	assert_memory_equal(stage_read(stage->out), "no: ", 4);
	launch_spare_drop(&spare);
}

static void test_not_another_users(void **state)
{
	struct stage *stage = *state;
	uid_t a = new_user(), b = new_user();
	char script[256], want[256];
	struct job job;
	int out;

	snprintf(script, sizeof(script),
		 "keys find iocom-test-a; keys read %s; keys add s iocom-test-b b >added;"
		 "keys find iocom-test-b",
		 said_first(stage, &job, &out, a,
			    "keys add s iocom-test-a secret >said; exec sleep 1000"));
	snprintf(want, sizeof(want), "no: %s\nno: %s\n", strerror(ENOKEY), strerror(EACCES));
	strcat(want, "b\n");
	{
		struct want with = job_of(stage, b, script);
		char path[128];
		struct run_result result;

		snprintf(path, sizeof(path), "%s/open", stage->dir);
		with.cwd = path;
		assert_int_equal(stage_run(stage, &with, &result), 0);
	}
	assert_string_equal(stage_read(stage->out), want);
	end(stage, &job, out);
}

/* Jobs of one user have what is in the user's keyring in common, and nothing else. */
static void test_same_user(void **state)
{
	struct stage *stage = *state;
	uid_t uid = new_user();
	int32_t key, session, user;
	char script[256], want[256];
	struct job job;
	int out;

	assert_int_equal(sscanf(said_first(stage, &job, &out, uid,
					   "echo $(keys add u iocom-test-u u-value) $(keys ring s) "
					   "$(keys ring u) $(keys add s iocom-test-s secret) "
					   ">said; exec sleep 1000"),
				"%d %d %d", &key, &session, &user),
			 3);
	assert_true(key > 0 && session > 0 && user > 0);
	snprintf(script, sizeof(script),
		 "keys find iocom-test-u; keys find iocom-test-s; keys list s; keys drop u %d;"
		 "[ $(keys ring s) != %d ] && echo differs",
		 key, session);
	snprintf(want, sizeof(want), "u-value\nno: %s\n%d\ndiffers\n", strerror(ENOKEY), user);
	assert_string_equal(said(stage, uid, script), want);
	end(stage, &job, out);
}

/* --- a full quota ------------------------------------------------------------------------- */

/* Adds keys until the quota is full, says so, and keeps them. */
static void fill(int fd)
{
	char name[32];
	int n = 0;

	if (keyring_join_new() <= 0)
		_exit(2);
	do
		snprintf(name, sizeof(name), "%d", n);
	while (syscall(SYS_add_key, "user", name, "x", 1ul, KEY_SPEC_SESSION_KEYRING) > 0 &&
	       n++ < 100000);
	if (errno != EDQUOT || write(fd, "f", 1) != 1)
		_exit(3);
	pause();
}

static void fill_alone(uid_t uid, int fd)
{
	become(uid);
	fill(fd);
}

static void fill_beside_shared(uid_t uid, int fd)
{
	become(uid);
	if (keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_SESSION_KEYRING, 0) <= 0)
		_exit(4);
	fill(fd);
}

/* Makes a keyring that looks like UID's shared one and that everybody may use. */
static void lay_trap(uid_t uid, int fd)
{
	char name[64];
	long ring;

	become(first_user + USERS);
	snprintf(name, sizeof(name), "_uid_ses.%u", uid);
	ring = keyctl(KEYCTL_JOIN_SESSION_KEYRING, (long)name, 0);
	if (ring <= 0 || keyctl(KEYCTL_SETPERM, ring, 0x3f3f3f3f) || write(fd, "t", 1) != 1)
		_exit(5);
	pause();
}

/* Runs RUN in a process that goes on, and waits until it said that it is ready. */
static pid_t started(void (*run)(uid_t uid, int fd), uid_t uid)
{
	struct pollfd p = {.events = POLLIN};
	char byte;
	pid_t pid;
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = in_child(run, uid, fd[1]);
	close(fd[1]);
	p.fd = fd[0];
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(read(fd[0], &byte, 1), 1);
	close(fd[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_full_quota(void **state)
{
	struct stage *stage = *state;
	uid_t uid = new_user();
	pid_t filler = started(fill_beside_shared, uid);
	const char *text = said(stage, uid,
				"[ $(keys ring s) = $(keys ring us) ] && echo shared;"
				"keys find " AGENT_KEY);
	char want[128];

	snprintf(want, sizeof(want), "shared\nno: %s\n", strerror(ENOKEY));
	assert_string_equal(text, want);
	stop(filler);
}

static void assert_refused(struct stage *stage, uid_t uid, const char *why)
{
	struct want want = job_of(stage, uid, "echo ran");
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 125);
	if (!strstr(result.text, why))
		fail_msg("'%s' is not in: %s", why, result.text);
	assert_string_equal(stage_read(stage->out), "");
}

static void test_full_quota_without_shared(void **state)
{
	uid_t uid = new_user();
	pid_t filler = started(fill_alone, uid);

	assert_refused(*state, uid, "and no keyring that its jobs can share");
	stop(filler);
}

static void test_trap(void **state)
{
	uid_t uid = new_user();
	pid_t trap = started(lay_trap, uid), filler = started(fill_beside_shared, uid);

	assert_refused(*state, uid, "would share is another user's");
	stop(filler);
	stop(trap);
}

/* --- kernels and filters that refuse ------------------------------------------------------ */

struct filtered {
	bool all;  /* the three system calls; else keyctl only */
	int error; /* 0: they seem to succeed */
	int status;
	const char *says;
	int check;
	const char *sentence;
};

/* Runs in a process of its own, because filters stay. Returns 0 if all is as F says. */
static int refuses(struct stage *stage, const struct filtered *f)
{
	struct want want = job_of(stage, NOBODY, "echo ran");
	struct iocom_err err = {0};
	struct run_result result;
	int rc, status;

	if (refuse_keys(f->error, f->all))
		return 1;
	rc = keyring_check(&err);
	status = stage_run(stage, &want, &result);
	if (rc == f->check && !strncmp(err.text, f->sentence, strlen(f->sentence)) &&
	    status == f->status && (!f->says || strstr(result.text, f->says)) &&
	    !strcmp(stage_read(stage->out), status ? "" : "ran\n"))
		return 0;
	print_message("%d %s; %d %s\n", rc, err.text, status, status ? result.text : "");
	return 1;
}

static void test_refused(void **state)
{
	static const char none[] = "the kernel, or a filter of system calls, refuses keys",
			  partly[] = "a filter of system calls refuses keyctl, but not add_key",
			  agents[] = "must not use the agent's: ";
	static const struct filtered cases[] = {
		{true, ENOSYS, 0, NULL, KEYRING_E_NONE, none},
		{true, EPERM, 0, NULL, KEYRING_E_NONE, none},
		{false, EPERM, 125, agents, -EPERM, partly},
		{false, ENOSYS, 125, agents, -EPERM, partly},
		{false, 0, 125, agents, 0, ""},
	};
	struct stage *stage = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;
		pid_t pid = fork();

		stage->sequence++;
		if (pid == 0)
			_exit(refuses(stage, &cases[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			fail_msg("case %zu", i);
	}
}

/* --- PAM -------------------------------------------------------------------------------- */

/*
 * The session has KEYINIT, then a module that empties the session keyring if EMPTIED, then one that
 * adds a key to it, as Kerberos' and AFS' do.
 */
static const char *said_with_pam(struct stage *stage, const char *keyinit, bool emptied)
{
	struct want want = job_of(
		stage, NOBODY, "keys find iocom-test-ticket; keys list s | grep -x $(keys ring u)");
	struct run_result result;
	char directory[96], path[128], text[512];
	FILE *file;

	snprintf(directory, sizeof(directory), "%s/pam.d", stage->dir);
	mkdir(directory, 0755);
	snprintf(path, sizeof(path), "%s/iocom", directory);
	snprintf(text, sizeof(text),
		 "auth required pam_permit.so\naccount required pam_permit.so\n%s"
		 "%ssession required pam_exec.so quiet type=open_session %s/keys clear s\n"
		 "session required pam_exec.so quiet type=open_session %s/keys add s "
		 "iocom-test-ticket ticket\n",
		 keyinit, emptied ? "" : "#", stage->dir, stage->dir);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	want.pam = directory;
	assert_int_equal(stage_run(stage, &want, &result), 0);
	return stage_read(stage->out);
}

static void test_pam(void **state)
{
	void *library = dlopen("libpam.so.0", RTLD_NOW | RTLD_LOCAL);
	const char *text;
	char want[128];

	if (!library) {
		print_message("no libpam here\n");
		skip();
	}
	dlclose(library);
	/* What the modules put into the keyring of the user's session is the job's. */
	for (int emptied = 0; emptied < 2; emptied++) {
		text = said_with_pam(*state, "session required pam_keyinit.so force revoke\n",
				     emptied);
		assert_memory_equal(text, "ticket\n", 7);
		assert_true(strtol(text + 7, NULL, 10) > 0); /* the user's keyring is linked */
	}
	/* Without pam_keyinit it would be root's. */
	snprintf(want, sizeof(want), "no: %s\n", strerror(ENOKEY));
	for (int i = 0; i < 2; i++) {
		text = said_with_pam(*state, i ? "session required pam_keyinit.so\n" : "", false);
		assert_memory_equal(text, want, strlen(want));
		assert_true(strtol(text + strlen(want), NULL, 10) > 0);
	}
	/* The agent's is as it was. */
	assert_int_equal(keyring_session(), agents_ring);
	assert_int_equal(syscall(SYS_request_key, "user", "iocom-test-ticket", NULL, 0), -1);
}

/* --- all of it ---------------------------------------------------------------------------- */

static void measure(uid_t uid, int fd)
{
	enum { TIMES = 300 };
	uint64_t begin = clock_boot_ns(), us;

	(void)uid;
	for (int i = 0; i < TIMES; i++)
		if (keyring_take_own(0))
			_exit(1);
	us = (clock_boot_ns() - begin) / TIMES / 1000;
	if (write(fd, &us, sizeof(us)) != sizeof(us))
		_exit(1);
}

/* Prints what a keyring adds to each start. As root, whose quota is not used up by this. */
static void test_cost(void **state)
{
	uint64_t us;
	int fd[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = in_child(measure, 0, fd[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(fd[0], &us, sizeof(us)), sizeof(us));
	printf("# | a session keyring of the job's own: %lu us a start\n", (unsigned long)us);
	close(fd[0]);
	close(fd[1]);
}

static int setup(void **state)
{
	char self[4000], command[4400];
	const struct stage *stage;
	ssize_t n;

	if (stage_setup(state))
		return -1;
	stage = *state;
	/* BUILD/tests/shim/test_keyring, BUILD/tests/tools/keys */
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = 0;
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(self, '/');

		if (slash)
			*slash = 0;
	}
	snprintf(command, sizeof(command),
		 "cp %s/tools/keys %s/keys && chmod 755 %s/keys && mkdir -m 1777 %s/open", self,
		 stage->dir, stage->dir, stage->dir);
	if (system(command))
		return -1;
	first_user = 0x40000000u + ((unsigned)time(NULL) & 0xfffffu) * 256 +
		     (unsigned)getpid() % 16 * 16;
	agents_ring = keyring_join_new();
	agents_key = (int32_t)syscall(SYS_add_key, "user", AGENT_KEY, "agent", 5ul,
				      KEY_SPEC_SESSION_KEYRING);
	return agents_ring > 0 && agents_key > 0 ? 0 : -1;
}

/* Removes the two keyrings that the kernel keeps for each user. */
static void forget(uid_t uid, int fd)
{
	long shared, own;

	(void)fd;
	become(uid);
	shared = keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_SESSION_KEYRING, 0);
	own = keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0);
	keyctl(KEYCTL_INVALIDATE, shared, 0);
	keyctl(KEYCTL_INVALIDATE, own, 0);
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < users; i++)
		waitpid(in_child(forget, first_user + i, -1), NULL, 0);
	return stage_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_the_agents),
		cmocka_unit_test(test_not_the_agents_for_root),
		cmocka_unit_test(test_not_the_agents_by_a_spare),
		cmocka_unit_test(test_not_another_users),
		cmocka_unit_test(test_same_user),
		cmocka_unit_test(test_full_quota),
		cmocka_unit_test(test_full_quota_without_shared),
		cmocka_unit_test(test_trap),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_pam),
		cmocka_unit_test(test_cost),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	if (keyring_check(NULL)) {
		printf("1..0 # SKIP this kernel has no keys\n");
		return 0;
	}
	return cmocka_run_group_tests_name("keyring", tests, setup, teardown);
}
