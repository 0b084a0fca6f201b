/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The steps from fork to exec, one by one: what each gives the job, and that the job never runs
 * if one fails, or if the kernel only says that it was done (a filter of system calls plays that
 * kernel).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/child.h"
#include "tests/lib/stage.h"

#define NOBODY 65534
#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}

/* A job run by a process that PREPARE changed for good. */
struct changed {
	int status;
	struct run_result result;
	char out[4096];
};

static struct changed *run_changed(struct stage *stage, const struct want *want,
				   void (*prepare)(const void *arg), const void *arg)
{
	static struct changed *shared;
	pid_t pid;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	*shared = (struct changed){.status = -1};
	stage->sequence++;
	pid = fork();
	if (pid == 0) {
		prepare(arg);
		shared->status = stage_run(stage, want, &shared->result);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	snprintf(shared->out, sizeof(shared->out), "%.4000s", stage_read(stage->out));
	return shared;
}

/* --- steps that fail, and steps that only seem to be done ---------------------------- */

struct filtered {
	long call;
	int error; /* 0: it seems to succeed */
};

/* From now on the system call CALL does nothing and returns -ERROR. */
static void filter(const void *arg)
{
	const struct filtered *f = arg;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)f->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)f->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	/* As root, without PR_SET_NO_NEW_PRIVS, which would be inherited. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
}

static void test_failed_steps(void **state)
{
	static const struct {
		struct filtered filtered;
		const char *says;
	} cases[] = {
		{{SYS_setgroups, EPERM}, "cannot become uid 65534"},
		{{SYS_setresgid, EPERM}, "cannot become uid 65534"},
		{{SYS_setresuid, EAGAIN}, "cannot become uid 65534"},
		{{SYS_capset, EPERM}, "cannot become uid 65534"},
		{{SYS_capget, EPERM}, "could not drop its privileges for good"},
		{{SYS_getresuid, EPERM}, "could not drop its privileges for good"},
		{{SYS_prlimit64, EPERM}, "limits"},
		{{SYS_close_range, EPERM}, "cannot set up the job"},
		/* The kernel says that the step was done, but did nothing. */
		{{SYS_setresuid, 0}, "could not drop its privileges for good"},
		{{SYS_setresgid, 0}, "could not drop its privileges for good"},
		{{SYS_setgroups, 0}, "could not drop its privileges for good"},
	};
	struct want want = SH("echo ran");
	struct stage *stage = *state;

	want.limit = (struct spec_limit){RLIMIT_NOFILE, 123, RLIM_INFINITY};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct changed *c;

		/* A sanitizer asks for limits before anything of ours runs. */
		if (getenv("IOCOM_SANITIZED") && cases[i].filtered.call == SYS_prlimit64)
			continue;
		c = run_changed(stage, &want, filter, &cases[i].filtered);
		if (c->status != 125 || !strstr(c->result.text, cases[i].says))
			print_message("case %zu: %d (%s)\n", i, c->status, c->result.text);
		assert_int_equal(c->status, 125);
		assert_non_null(strstr(c->result.text, cases[i].says));
		assert_string_equal(c->out, "");
	}
}

static void nothing(const void *arg)
{
	(void)arg;
}

static void test_without_filter(void **state)
{
	const struct want want = SH("echo ran");
	const struct changed *c = run_changed(*state, &want, nothing, NULL);

	assert_int_equal(c->status, 0);
	assert_string_equal(c->out, "ran\n");
}

/* --- cgroup --------------------------------------------------------------------------- */

/* The job tells its cgroup as its very first action; only the line of v2 counts. */
static void assert_in_group(const struct stage *stage, const char *text)
{
	const char *line = strstr(text, "0::");
	char wanted[160];

	assert_non_null(line);
	snprintf(wanted, sizeof(wanted), "/%s/jobs/user@65534/stage-", stage->scope);
	assert_non_null(strstr(line, wanted));
}

static void test_cgroup(void **state)
{
	const struct want want = SH("cat /proc/self/cgroup; (setsid cat /proc/self/cgroup)");
	struct stage *stage = *state;
	const struct changed *c = run_changed(stage, &want, nothing, NULL);
	const char *second;

	assert_int_equal(c->status, 0);
	assert_in_group(stage, c->out);
	second = strstr(c->out, "0::") + 1;
	assert_in_group(stage, second);
}

static void test_cgroup_without_clone3(void **state)
{
	static const struct filtered no_clone3 = {SYS_clone3, ENOSYS};
	const struct want want = SH("cat /proc/self/cgroup");
	struct stage *stage = *state;
	const struct changed *c = run_changed(stage, &want, filter, &no_clone3);

	assert_int_equal(c->status, 0);
	assert_in_group(stage, c->out);
}

static void test_cgroup_in_use(void **state)
{
	const struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct run_result result;
	char path[512], procs[560];
	pid_t pid;
	int fd;

	assert_int_equal(stage_run(stage, &want, &result), 0); /* makes the groups above */
	snprintf(path, sizeof(path), "%s/%s/jobs/user@65534", stage->v2, stage->scope);
	assert_int_equal(mkdir(path, 0755), 0); /* the end of the job removed it */
	snprintf(path, sizeof(path), "%s/%s/jobs/user@65534/stage-%d-%u", stage->v2, stage->scope,
		 getpid(), stage->sequence + 1);
	assert_int_equal(mkdir(path, 0755), 0);
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	assert_true(dprintf(fd, "%d\n", (int)pid) > 0);
	close(fd);
	assert_int_equal(stage_run(stage, &want, &result), 125);
	assert_non_null(strstr(result.text, "cgroup"));
	assert_string_equal(stage_read(stage->out), "");
	assert_int_equal(kill(pid, 0), 0); /* the process that was there before still lives */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 100 && rmdir(path) && errno == EBUSY; i++)
		usleep(10000);
	assert_int_equal(access(path, F_OK), -1);
}

/* --- groups ------------------------------------------------------------------------------ */

/* Adds nobody to two more groups, only in this mount namespace. */
static void more_groups(const void *arg)
{
	const struct stage *stage = arg;
	char path[128], copy[400];

	snprintf(path, sizeof(path), "%s/group", stage->dir);
	snprintf(copy, sizeof(copy),
		 "cp /etc/group %s && echo 'iocoma:x:64998:nobody\n"
		 "iocomb:x:64999:nobody,daemon\niocomc:x:64997:daemon' >>%s",
		 path, path);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    system(copy) || mount(path, "/etc/group", NULL, MS_BIND, NULL))
		_exit(1);
}

static void test_groups(void **state)
{
	const struct want want = SH("id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' '");
	struct stage *stage = *state;
	const struct changed *c = run_changed(stage, &want, more_groups, stage);

	assert_int_equal(c->status, 0);
	assert_string_equal(c->out, "64998 64999 65534 ");
}

static void agents_groups(const void *arg)
{
	gid_t many[] = {0, 4, 27, 42};

	(void)arg;
	if (syscall(SYS_setgroups, 4, many))
		_exit(1);
}

static void test_agents_groups_are_not_inherited(void **state)
{
	const struct want want = SH("id -G");
	const struct changed *c = run_changed(*state, &want, agents_groups, NULL);

	assert_int_equal(c->status, 0);
	assert_string_equal(c->out, "65534\n");
}

/* --- umask, directory, environment, limits ------------------------------------------------- */

static void test_umask(void **state)
{
	static const struct {
		mode_t umask;
		const char *says;
	} cases[] = {{0, "0000\n"}, {077, "0077\n"}, {0777, "0777\n"}};
	struct stage *stage = *state;
	struct run_result result;

	for (size_t i = 0; i < 3; i++) {
		struct want want = SH("umask");

		want.umask = cases[i].umask;
		assert_int_equal(stage_run(stage, &want, &result), 0);
		assert_string_equal(stage_read(stage->out), cases[i].says);
	}
}

static void test_directory(void **state)
{
	char own[128], parent[128], inside[192], out[200];
	struct want want = SH("pwd");
	struct stage *stage = *state;
	struct run_result result;

	snprintf(own, sizeof(own), "%s/own", stage->dir);
	assert_int_equal(mkdir(own, 0700), 0);
	want.cwd = own;
	/* Root could enter the directory, but the user may not, and there is no other directory. */
	assert_int_equal(stage_run(stage, &want, &result), 125);
	assert_non_null(strstr(result.text, own));
	assert_non_null(strstr(result.text, "as uid 65534"));
	assert_string_equal(stage_read(stage->out), "");
	assert_int_equal(chown(own, NOBODY, NOBODY), 0);
	assert_int_equal(stage_run(stage, &want, &result), 0);
	snprintf(out, sizeof(out), "%s\n", own);
	assert_string_equal(stage_read(stage->out), out);
	/* The path has a directory that only root may pass. */
	snprintf(parent, sizeof(parent), "%s/parent", stage->dir);
	snprintf(inside, sizeof(inside), "%s/inside", parent);
	assert_int_equal(mkdir(parent, 0700) || mkdir(inside, 0777), 0);
	want.cwd = inside;
	assert_int_equal(stage_run(stage, &want, &result), 125);
	assert_int_equal(chmod(parent, 0711), 0);
	assert_int_equal(stage_run(stage, &want, &result), 0);
	/* A file is no directory. */
	want.cwd = "/etc/passwd";
	assert_int_equal(stage_run(stage, &want, &result), 125);
}

static void agents_environment(const void *arg)
{
	(void)arg;
	setenv("SECRET", "of the agent", 1);
	setenv("LD_LIBRARY_PATH", "/nowhere", 1);
}

static void test_environment(void **state)
{
	char *env[] = {(char *)"PATH=/usr/bin:/bin",
		       (char *)"LD_DEBUG_OUTPUT=/x",
		       (char *)"BASH_ENV=/x",
		       (char *)"ODD",
		       (char *)"=odd",
		       NULL};
	struct want want = {.argv = {"/bin/cat", "/proc/self/environ", NULL}};
	const struct changed *c;

	want.env = env;
	c = run_changed(*state, &want, agents_environment, NULL);
	assert_int_equal(c->status, 0);
	/*
	 * Exactly the user's environment. In the kernel's form a NUL ends each variable, so the
	 * second comparison starts after the first NUL.
	 */
	assert_string_equal(c->out, "PATH=/usr/bin:/bin");
	assert_string_equal(c->out + sizeof("PATH=/usr/bin:/bin"), "");
	want.argv[0] = "/usr/bin/env";
	want.argv[1] = NULL;
	c = run_changed(*state, &want, agents_environment, NULL);
	assert_non_null(strstr(c->out, "LD_DEBUG_OUTPUT=/x\n"));
	assert_non_null(strstr(c->out, "BASH_ENV=/x\n"));
	assert_null(strstr(c->out, "SECRET"));
	assert_null(strstr(c->out, "LD_LIBRARY_PATH"));
}

static void low_hard_limit(const void *arg)
{
	const struct rlimit low = {200, 300};

	(void)arg;
	if (setrlimit(RLIMIT_NOFILE, &low))
		_exit(1);
}

/* The job gets the user's own limits, up to this machine's hard limits. */
static void test_limits(void **state)
{
	static const struct {
		rlim_t soft, hard;
		const char *says;
	} cases[] = {
		{250, RLIM_INFINITY, "250\n300\n"},
		{4000, RLIM_INFINITY, "300\n300\n"},
		{RLIM_INFINITY, RLIM_INFINITY, "300\n300\n"},
		{4000, 5000, "300\n300\n"},
		{250, 299, "250\n299\n"},
		{150, 150, "150\n150\n"},
		{250, 301, "250\n300\n"},
	};
	struct want want = SH("ulimit -Sn; ulimit -Hn");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct changed *c;

		want.limit = (struct spec_limit){RLIMIT_NOFILE, cases[i].soft, cases[i].hard};
		want.root = want.allow_root = false;
		c = run_changed(*state, &want, low_hard_limit, NULL);
		assert_string_equal(c->out, cases[i].says);
		/* Root may raise its hard limits, but a job of root gets no higher ones either. */
		want.root = want.allow_root = true;
		c = run_changed(*state, &want, low_hard_limit, NULL);
		assert_string_equal(c->out, cases[i].says);
	}
}

static void test_several_limits(void **state)
{
	static const struct spec_limit limits[] = {
		{RLIMIT_NOFILE, 60, 70},
		{RLIMIT_NPROC, 3000, 4000},
		{RLIMIT_CORE, 0, 0},
		{RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY},
	};
	struct want want = SH("grep -E '^Max (core|proc|open)' /proc/self/limits | tr -s ' '; "
			      "ulimit -n 71 || echo no more");
	struct stage *stage = *state;
	struct run_result result;

	want.limits = limits;
	want.nlimits = sizeof(limits) / sizeof(limits[0]);
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "Max core file size 0 0 bytes \n"
						    "Max processes 3000 4000 processes \n"
						    "Max open files 60 70 files \nno more\n");
}

static bool may_raise_limits(void)
{
	const char *at = strstr(stage_read("/proc/self/status"), "CapEff:");

	return at && strtoull(at + 7, NULL, 16) >> CAP_SYS_RESOURCE & 1;
}

/*
 * Starts a child whose session has the hard limit SESSION for files, and whose user had HARD at
 * home, while the agent has 300. Returns the job's soft and hard limits.
 */
static const char *limits_of_session(struct stage *stage, rlim_t session, rlim_t soft, rlim_t hard)
{
	static char path[] = "PATH=/usr/bin:/bin", *env[] = {path, NULL}, text[64];
	static char *argv[] = {(char *)"/bin/sh", (char *)"-c",
			       (char *)"echo $(ulimit -Sn) $(ulimit -Hn)", NULL};
	struct identity identity = {.uid = NOBODY, .gid = NOBODY};
	struct order order = {
		.uid = NOBODY,
		.gid = NOBODY,
		.begin_ms = 60000,
		.spec = {.node = "here",
			 .executable = argv[0],
			 .cwd = (char *)"/",
			 .argv = argv,
			 .env = env,
			 .limits = {{RLIMIT_NOFILE, soft, hard}},
			 .nlimits = 1},
	};
	const struct rlimit agents = {200, 300};
	struct cgroup_mounts mounts;
	struct cgroup group;
	struct iocom_err err;
	struct child child;
	struct pollfd p = {.events = POLLIN};
	ssize_t n;

	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, stage->scope, "jobs/session", &group, NULL), 0);
	assert_int_equal(cgroup_create(&group, NULL), 0);
	identity.session.set = true;
	for (int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &identity.session.limits[i]);
	identity.session.limits[RLIMIT_NOFILE] = (struct rlimit){session, session};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &agents), 0);
	assert_int_equal(child_start(&child, &order, &identity, &group, NULL, &err), 0);
	p.fd = child.stdio[1];
	assert_int_equal(poll(&p, 1, 30000), 1);
	n = read(p.fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	waitpid(child.pid, NULL, 0);
	for (int i = 0; i < 3; i++)
		close(child.stdio[i]);
	close(child.pidfd);
	cgroup_remove(&group, 2000);
	return text;
}

/* PAM may raise the limits above the agent's. Then its hard limits hold, and the user's own. */
static void test_limits_of_the_session(void **state)
{
	struct stage *stage = *state;
	struct rlimit before;

	if (!may_raise_limits()) {
		print_message("root may not raise limits here (no CAP_SYS_RESOURCE)\n");
		skip();
	}
	getrlimit(RLIMIT_NOFILE, &before);
	assert_string_equal(limits_of_session(stage, 1000, 500, 700), "500 700\n");
	assert_string_equal(limits_of_session(stage, 1000, 900, 5000), "900 1000\n");
	assert_string_equal(limits_of_session(stage, 1000, 5000, 5000), "1000 1000\n");
	assert_string_equal(limits_of_session(stage, 1000, RLIM_INFINITY, RLIM_INFINITY),
			    "1000 1000\n");
	assert_string_equal(limits_of_session(stage, 100, 500, 700), "100 100\n");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* --- what the agent had ----------------------------------------------------------------- */

/* Leaves descriptors open for children, and signals blocked and ignored. */
static void careless(const void *arg)
{
	sigset_t all;

	(void)arg;
	for (int fd = 20; fd < 40; fd++)
		if (dup2(STDERR_FILENO, fd) != fd)
			_exit(1);
	for (int i = 1; i < _NSIG; i++)
		if (i != SIGCHLD)
			signal(i, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	umask(0777);
}

static char grep[] = "grep", pattern[] = "^Sig(Blk|Ign)", status[] = "/proc/self/status";
static char ls[] = "ls", descriptors[] = "/proc/self/fd", extended[] = "-E";

static void test_nothing_is_inherited(void **state)
{
	/* Not with a shell, which would clear its signal mask. */
	const struct want signals = {.argv = {grep, extended, pattern, status, NULL}};
	const struct want files = {.argv = {ls, descriptors, NULL}};
	const struct changed *c = run_changed(*state, &signals, careless, NULL);

	assert_int_equal(c->status, 0);
	assert_string_equal(c->out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	c = run_changed(*state, &files, careless, NULL);
	assert_string_equal(c->out, "0\n1\n2\n3\n"); /* 3: the directory itself */
}

/* Returns what the same program prints when it is started normally. */
static const char *start_plainly(const struct stage *stage, char *const *argv)
{
	int fd = open(stage->out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	pid_t pid = fork();

	if (pid == 0) {
		careless(NULL);
		dup2(fd, STDOUT_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fd);
	waitpid(pid, NULL, 0);
	return stage_read(stage->out);
}

/* This shows that the test above can fail. */
static void test_others_do_inherit(void **state)
{
	char *signals[] = {grep, extended, pattern, status, NULL},
	     *files[] = {ls, descriptors, NULL};
	const char *text = start_plainly(*state, signals);

	assert_non_null(strstr(text, "SigIgn:"));
	assert_null(strstr(text, "SigIgn:\t0000000000000000"));
	assert_null(strstr(text, "SigBlk:\t0000000000000000"));
	assert_non_null(strstr(start_plainly(*state, files), "\n20\n"));
}

static void test_session(void **state)
{
	/* pid, parent, group, session, terminal, and the group in front of it */
	const struct want want = SH("set -- $(cat /proc/$$/stat); echo $(($1 == $5)) "
				    "$(($1 == $6)) $7 $8; exec 3</dev/tty");
	struct stage *stage = *state;
	struct run_result result;

	assert_int_not_equal(stage_run(stage, &want, &result), 0); /* this job has no terminal */
	assert_string_equal(stage_read(stage->out), "1 1 0 -1\n");
}

static void favoured(const void *arg)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	(void)arg;
	if (fd < 0 || write(fd, "500", 3) != 3 || setpriority(PRIO_PROCESS, 0, 5))
		_exit(1);
	close(fd);
}

static void test_agents_standing_is_not_inherited(void **state)
{
	const struct want want =
		SH("cat /proc/self/oom_score_adj; set -- $(cat /proc/$$/stat); echo ${19}");
	const struct changed *c = run_changed(*state, &want, favoured, NULL);

	assert_int_equal(c->status, 0);
	assert_string_equal(c->out, "0\n0\n");
}

/* The agent has SCORE, as by OOMScoreAdjust= of its unit. */
static void scored(const void *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t n = (ssize_t)strlen(score);

	if (fd < 0 || write(fd, score, (size_t)n) != n)
		_exit(1);
	close(fd);
}

/* Memory is taken from jobs, not from agents and shims, and no job can get back what they have. */
static void test_score_of_the_unit(void **state)
{
	const struct want want = SH("cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj; "
				    "(echo -1 >/proc/self/oom_score_adj) 2>&- && echo lower; "
				    "echo 1 >/proc/self/oom_score_adj && "
				    "echo 0 >/proc/self/oom_score_adj && echo higher");
	/* Without CAP_SYS_RESOURCE not even root can lower it. */
	const char *score = may_raise_limits() ? "-900" : "900";
	const struct changed *c = run_changed(*state, &want, scored, score);
	char says[64];

	snprintf(says, sizeof(says), "0\n%s\nhigher\n", score);
	assert_int_equal(c->status, 0);
	assert_string_equal(c->out, says);
}

/* --- devices of the agent's unit ------------------------------------------------------------ */

/* Puts this process into a v1 group that may use all devices but /dev/zero. */
static void without_zero(const void *arg)
{
	const char *group = arg;
	char path[400];
	int deny, procs;

	snprintf(path, sizeof(path), "%s/devices.deny", group);
	deny = open(path, O_WRONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	procs = open(path, O_WRONLY | O_CLOEXEC);
	if (deny < 0 || write(deny, "c 1:5 rwm", 9) != 9 || procs < 0 || write(procs, "0", 1) != 1)
		_exit(1);
	close(deny);
	close(procs);
}

/* Returns what a job of an agent in the group NAME of devices says of /dev/zero and its group. */
static const char *zero_of_job(struct stage *stage, const struct cgroup_mounts *mounts,
			       const char *name)
{
	const struct want want = SH("head -c 1 /dev/zero 2>&- | wc -c; "
				    "grep devices /proc/self/cgroup | cut -d: -f3");
	const struct changed *c;
	char group[360];

	snprintf(group, sizeof(group), "%s/%s", mounts->devices, name);
	assert_true(!mkdir(group, 0755) || errno == EEXIST);
	c = run_changed(stage, &want, without_zero, group);
	for (int i = 0; i < 100 && rmdir(group) && errno == EBUSY; i++)
		usleep(10000);
	assert_int_equal(c->status, 0);
	return c->out;
}

static void test_devices_of_the_unit(void **state)
{
	char name[64], says[80];
	struct cgroup_mounts mounts;

	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	if (!mounts.devices[0]) {
		print_message("devices of the unit: on cgroup v2 they stay with its cgroup\n");
		skip();
	}
	snprintf(name, sizeof(name), "iocom-stage-%d.service", getpid());
	assert_string_equal(zero_of_job(*state, &mounts, name), "1\n/\n");
	/* A group that no service manager made is the administrator's wish for the jobs, too. */
	snprintf(name, sizeof(name), "iocom-stage-%d", getpid());
	snprintf(says, sizeof(says), "0\n/%s\n", name);
	assert_string_equal(zero_of_job(*state, &mounts, name), says);
}

/* --- exec --------------------------------------------------------------------------------- */

static void test_exec_errors(void **state)
{
	static char big[200000];
	struct want missing = {.argv = {"/no/such", NULL}};
	struct want loop = {.argv = {NULL, NULL}};
	struct want unreadable = {.argv = {NULL, NULL}};
	struct want long_word = {.argv = {"/bin/true", big, NULL}};
	struct stage *stage = *state;
	struct run_result result;
	char path[128];
	int fd;

	memset(big, 'x', sizeof(big) - 1); /* an argument that is too long: E2BIG */
	assert_int_equal(stage_run(stage, &missing, &result), 127);
	assert_int_equal(result.kind, 2);
	assert_int_equal(stage_run(stage, &long_word, &result), 126);
	assert_non_null(strstr(result.text, strerror(E2BIG)));
	snprintf(path, sizeof(path), "%s/loop", stage->dir);
	assert_int_equal(symlink(path, path), 0);
	loop.argv[0] = path;
	assert_int_equal(stage_run(stage, &loop, &result), 126);
	assert_non_null(strstr(result.text, strerror(ELOOP)));
	/* Root could run this program, the user may not. */
	snprintf(path, sizeof(path), "%s/roots", stage->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "#!/bin/sh\necho ran\n", 19), 19);
	close(fd);
	unreadable.argv[0] = path;
	assert_int_equal(stage_run(stage, &unreadable, &result), 126);
	assert_string_equal(stage_read(stage->out), "");
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(stage_run(stage, &unreadable, &result), 0);
	assert_string_equal(stage_read(stage->out), "ran\n");
}

/*
 * A user can delay the opening of a program with a lease on its file. That must delay nobody
 * else.
 */
static void test_exec_that_hangs(void **state)
{
	struct want want = {.argv = {NULL, NULL}, .begin_ms = 500};
	struct stage *stage = *state;
	struct run_result result;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/leased", stage->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_int_equal(write(fd, "#!/bin/sh\necho ran\n", 19), 19);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	signal(SIGIO, SIG_IGN); /* a process opens the file */
	if (fcntl(fd, F_SETLEASE, F_WRLCK)) {
		print_message("no leases here: %s\n", strerror(errno));
		skip();
	}
	want.argv[0] = path;
	assert_int_equal(stage_run(stage, &want, &result), 125);
	assert_non_null(strstr(result.text, "did not begin on node here within 500 ms"));
	assert_non_null(strstr(result.text, path));
	assert_string_equal(stage_read(stage->out), "");
	assert_int_equal(stage_count("/bin/sh", path), 0);
	close(fd);
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "ran\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_filter),
		cmocka_unit_test(test_failed_steps),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_cgroup_without_clone3),
		cmocka_unit_test(test_cgroup_in_use),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_agents_groups_are_not_inherited),
		cmocka_unit_test(test_umask),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_several_limits),
		cmocka_unit_test(test_limits_of_the_session),
		cmocka_unit_test(test_nothing_is_inherited),
		cmocka_unit_test(test_others_do_inherit),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_agents_standing_is_not_inherited),
		cmocka_unit_test(test_score_of_the_unit),
		cmocka_unit_test(test_devices_of_the_unit),
		cmocka_unit_test(test_exec_errors),
		cmocka_unit_test(test_exec_that_hangs),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("child", tests, stage_setup, stage_teardown);
}
