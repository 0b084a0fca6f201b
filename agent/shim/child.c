/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The steps from fork to exec, in this order:
 *
 *   cgroup       clone3 puts the child into it, so that no fork can escape; the child joins
 *                v1 groups (and v2 on old kernels) before it does anything else
 *   namespaces   a migratable job has its own pids and its own /proc, and its first process is
 *                iocom-init, which starts the command (agent/init/init.h)
 *   leader       setsid; an empty signal mask, default handlers; the agent's priority and
 *                out-of-memory score are reset
 *   stdio        the terminal, or the pipes, or /dev/null where the caller had it closed
 *   session      the limits and the priority that PAM set, if PAM is used (pam.h)
 *   privilege    groups, gid, uid, capabilities; then a proof that none can come back
 *   keyring      a session keyring of the job's own, which the user owns, instead of the agent's
 *   the user's   umask, limits, directory: these steps have only the user's rights
 *   exec         closes all other descriptors; the user's environment appears only
 *                here, so that root's code never sees an LD_* variable of the user
 *
 * A step that fails is reported through a pipe that exec closes, and so is the CPU time of all
 * steps, just before exec.
 */
#include "agent/shim/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/beside.h"
#include "agent/shim/tty.h"
#include "user/clock.h"
#include "user/execute.h"
#include "user/keyring.h"
#include "user/privilege.h"

#define KILLED_MS 1000

enum stage {
	STAGE_READY,
	STAGE_CGROUP,
	STAGE_SESSION,
	STAGE_STDIO,
	STAGE_PAM,
	STAGE_IDENTITY,
	STAGE_PROOF,
	STAGE_KEYRING,
	STAGE_LIMITS,
	STAGE_DIRECTORY,
	STAGE_NAMESPACES,
	STAGE_LAUNCHER,
	STAGE_INIT,
	STAGE_EXEC,
};

/* The child sends this when a step fails, and with STAGE_READY before it calls exec. */
struct report {
	int stage;
	int error; /* errno; of STAGE_READY: its CPU time so far in us */
};

struct pipes {
	int in[2], out[2], err[2], report[2], status[2];
	struct tty tty; /* replaces the first three */
};

static void pipes_close(struct pipes *pipes)
{
	int *all = &pipes->in[0];

	for (size_t i = 0; i < 10; i++)
		if (all[i] >= 0)
			close(all[i]);
	tty_close(&pipes->tty);
}

/*
 * Makes a pipe for each stream that the caller had open; a closed one stays -1. The pipes belong
 * to the user, who may open them again (/dev/stderr) as on the home node.
 */
static int pipes_make(struct pipes *pipes, const struct spec *spec, const struct identity *identity)
{
	int *ends[3] = {pipes->in, pipes->out, pipes->err};
	uint32_t closed = spec->tty.wanted ? 7 : spec->closed;
	int rc;

	memset(pipes, 0xff, sizeof(*pipes));
	if (spec->tty.wanted) {
		rc = tty_open(&pipes->tty, &spec->tty, identity->uid, identity->gid);
		if (rc)
			return rc;
	}
	for (int i = 0; i < 3; i++) {
		int ours = i == 0; /* we write to its input and read its outputs */

		if (closed & 1u << i)
			continue;
		if (pipe2(ends[i], O_CLOEXEC) || fcntl(ends[i][ours], F_SETFL, O_NONBLOCK) ||
		    fchown(ends[i][0], identity->uid, identity->gid))
			goto failed;
	}
	if (!pipe2(pipes->report, O_CLOEXEC) &&
	    (!spec->migratable || !pipe2(pipes->status, O_CLOEXEC)))
		return 0;
failed:
	rc = -errno;
	pipes_close(pipes);
	return rc;
}

/*
 * Uses the bare system call because the C library reserves signals 32 and 33, which its
 * posix_spawn left ignored in this process.
 */
static void reset_signals(void)
{
	/* this is the kernel's struct sigaction; all zero means SIG_DFL */
	const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} standard = {0};
	sigset_t none;

	for (int i = 1; i < _NSIG; i++)
		syscall(SYS_rt_sigaction, i, &standard, NULL, sizeof(standard.mask));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Resets the out-of-memory score and the priority. The shim keeps the agent's score: its death
 * frees next to nothing and costs a job. By writing 0 as root we also make 0 the least that the job
 * may choose for itself. Best effort: a value that we cannot reset is what the administrator chose
 * for all processes of the agent.
 */
static void reset_standing(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "0", 1);
		close(fd);
	}
	(void)setpriority(PRIO_PROCESS, 0, 0);
}

static int set_stdio(const struct pipes *pipes)
{
	const int slave = pipes->tty.slave;
	const int theirs[3] = {slave >= 0 ? slave : pipes->in[0],
			       slave >= 0 ? slave : pipes->out[1],
			       slave >= 0 ? slave : pipes->err[1]};
	int rc = slave >= 0 ? tty_take(slave) : 0;

	if (rc)
		return rc;
	for (int i = 0; i < 3; i++) {
		int fd = theirs[i] >= 0 ? theirs[i] : open("/dev/null", O_RDWR | O_CLOEXEC);

		/*
		 * All our descriptors are above 2 (see main), so dup2 always clears
		 * close-on-exec.
		 */
		if (fd < 0 || dup2(fd, i) < 0)
			return -errno;
	}
	return 0;
}

/* This step may raise hard limits, so it must come before the privilege is dropped. */
static int set_session(const struct pam_settings *session)
{
	for (int i = 0; session->set && i < RLIM_NLIMITS; i++)
		if (setrlimit((__rlimit_resource_t)i, &session->limits[i]))
			return -errno;
	if (session->set && setpriority(PRIO_PROCESS, 0, session->priority))
		return -errno;
	return 0;
}

/*
 * Sets the user's soft and hard limits. This machine's hard limits (the agent's, or those that PAM
 * gave) hold as well, also for a job of root, which could raise them.
 */
static int set_limits(const struct spec *spec)
{
	for (size_t i = 0; i < spec->nlimits; i++) {
		struct rlimit limit;
		__rlimit_resource_t which = (__rlimit_resource_t)spec->limits[i].resource;

		if (getrlimit(which, &limit))
			return -errno;
		if (spec->limits[i].hard < limit.rlim_max)
			limit.rlim_max = spec->limits[i].hard;
		limit.rlim_cur = spec->limits[i].soft < limit.rlim_max ? spec->limits[i].soft
								       : limit.rlim_max;
		if (setrlimit(which, &limit))
			return -errno;
	}
	return 0;
}

/* Best effort: without it the steps count as the job's. */
static void child_say_ready(int fd)
{
	uint64_t cpu_us = clock_cpu_ns() / 1000;
	struct report report = {
		.stage = STAGE_READY,
		.error = cpu_us < INT_MAX ? (int)cpu_us : 0,
	};

	(void)!write(fd, &report, sizeof(report));
}

/* The job sees its own pids in /proc, and all else as it is on the node, also what is mounted
 * later. */
static int child_own_proc(void)
{
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	return 0;
}

/*
 * Becomes PROGRAM, one of ours, which starts the job's command: its arguments are the descriptors A
 * and B, which it inherits, the executable, and after "--" the job's own.
 */
static struct report child_through(const char *program, int a, int b, const struct spec *spec,
				   enum stage stage)
{
	char first[12], second[12];
	size_t n = 0, at = 0;
	char **words;

	while (spec->argv[n])
		n++;
	words = calloc(n + 6, sizeof(*words));
	if (!words)
		return (struct report){stage, ENOMEM};
	snprintf(first, sizeof(first), "%d", a);
	snprintf(second, sizeof(second), "%d", b);
	words[at++] = (char *)program;
	words[at++] = first;
	words[at++] = second;
	words[at++] = spec->executable;
	words[at++] = (char *)"--";
	memcpy(&words[at], spec->argv, n * sizeof(*words));
	if (fcntl(a, F_SETFD, 0) || fcntl(b, F_SETFD, 0))
		return (struct report){stage, errno};
	execve(program, words, spec->env);
	return (struct report){stage, errno};
}

/* Becomes the launcher of a gang's part, for a command that can be started. */
static struct report child_launch(const struct gang_launcher *launcher, const struct spec *spec)
{
	int rc = execute_check(spec->executable, spec->env);

	if (rc)
		return (struct report){STAGE_EXEC, -rc};
	return child_through(launcher->program, launcher->plan, launcher->control, spec,
			     STAGE_LAUNCHER);
}

static struct report child_steps(const struct order *order, const struct identity *identity,
				 const struct cgroup *group, bool in_v2, const struct pipes *pipes,
				 const struct gang_launcher *launcher)
{
	const struct spec *spec = &order->spec;
	char init[PATH_MAX];
	int rc = cgroup_enter(group, !in_v2);

	if (rc)
		return (struct report){STAGE_CGROUP, -rc};
	rc = spec->migratable ? beside(init, "iocom-init") : 0;
	if (!rc && spec->migratable)
		rc = child_own_proc();
	if (rc)
		return (struct report){STAGE_NAMESPACES, -rc};
	if (setsid() < 0)
		return (struct report){STAGE_SESSION, errno};
	reset_signals();
	reset_standing();
	rc = set_stdio(pipes);
	if (rc)
		return (struct report){STAGE_STDIO, -rc};
	rc = set_session(&identity->session);
	if (rc)
		return (struct report){STAGE_PAM, -rc};
	rc = privilege_drop(identity->uid, identity->gid, identity->groups, identity->ngroups);
	if (rc)
		return (struct report){STAGE_IDENTITY, -rc};
	rc = privilege_prove_dropped(identity->uid, identity->gid, identity->groups,
				     identity->ngroups);
	if (rc)
		return (struct report){STAGE_PROOF, -rc};
	rc = keyring_take_own(identity->keyring);
	if (rc < 0)
		return (struct report){STAGE_KEYRING, -rc};
	umask(spec->umask);
	rc = set_limits(spec);
	if (rc)
		return (struct report){STAGE_LIMITS, -rc};
	if (chdir(spec->cwd))
		return (struct report){STAGE_DIRECTORY, errno};
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC))
		return (struct report){STAGE_STDIO, errno};
	child_say_ready(pipes->report[1]);
	if (launcher && launcher->program[0])
		return child_launch(launcher, spec);
	if (spec->migratable)
		return child_through(init, pipes->status[1], pipes->report[1], spec, STAGE_INIT);
	rc = execute_command(spec->executable, spec->argv, spec->env);
	return (struct report){STAGE_EXEC, -rc};
}

/*
 * Makes the child with clone3 in the cgroup, or else with fork. Returns 0 in the child. IN_V2
 * says whether the child is in the v2 cgroup already.  NAMESPACES: CLONE_NEW* flags; with some
 * there is no else.
 */
static pid_t child_spawn(const struct cgroup *group, uint64_t namespaces, int *pidfd, bool *in_v2)
{
	int directory = cgroup_open(group);
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_INTO_CGROUP | namespaces,
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)(directory < 0 ? 0 : directory),
	};
	pid_t pid = -1;

	*in_v2 = true;
	if (directory >= 0) {
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (pid != 0)
			close(directory);
	}
	if (pid >= 0)
		return pid;
	*in_v2 = false;
	if (namespaces) {
		args.flags &= ~CLONE_INTO_CGROUP;
		args.cgroup = 0;
		return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	}
	pid = fork();
	if (pid > 0) {
		*pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (*pidfd < 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return -1;
		}
	}
	return pid;
}

static int child_explain_keyring(const struct report *report, const struct order *order,
				 struct iocom_err *err)
{
	const char *node = order->spec.node;

	if (report->error == EDQUOT)
		return iocom_err_set(
			err, -EDQUOT,
			"cannot give the job a session keyring on node %s: uid %u has "
			"as many keys there as it may have "
			"(/proc/sys/kernel/keys/maxkeys, maxbytes), and no keyring that "
			"its jobs can share",
			node, order->uid);
	if (report->error == EKEYREJECTED)
		return iocom_err_set(err, -EKEYREJECTED,
				     "cannot give the job a session keyring on node %s: uid %u has "
				     "as many keys there as it may have, and the keyring "
				     "_uid_ses.%u that its jobs would share is another user's",
				     node, order->uid, order->uid);
	return iocom_err_set(err, -report->error,
			     "cannot give the job a session keyring of its own on node %s, and it "
			     "must not use the agent's: %s",
			     node, strerror(report->error));
}

/* Translates the child's report into a sentence and into the result of child_start. */
static int child_explain(const struct report *report, const struct order *order,
			 struct iocom_err *err)
{
	const struct spec *spec = &order->spec;
	const char *why = strerror(report->error);
	const char *node = spec->node;

	switch (report->stage) {
	case STAGE_EXEC:
		if (report->error == ENOENT)
			return iocom_err_set(err, 127, "%s: command not found on node %s",
					     spec->argv[0], node);
		return iocom_err_set(err, 126, "%s: cannot be executed on node %s: %s",
				     spec->argv[0], node, why);
	case STAGE_DIRECTORY:
		return iocom_err_set(
			err, -report->error,
			"cannot enter the working directory %s on node %s as uid %u: %s", spec->cwd,
			node, order->uid, why);
	case STAGE_CGROUP:
		return iocom_err_set(err, -report->error,
				     "cannot enter the job's cgroup on node %s: %s", node, why);
	case STAGE_IDENTITY:
		return iocom_err_set(err, -report->error,
				     "cannot become uid %u, gid %u on node %s: %s", order->uid,
				     order->gid, node, why);
	case STAGE_PROOF:
		return iocom_err_set(
			err, -EPERM,
			"node %s could not drop its privileges for good; the job was not "
			"started",
			node);
	case STAGE_KEYRING:
		return child_explain_keyring(report, order, err);
	case STAGE_NAMESPACES:
		return iocom_err_set(err, -report->error,
				     "cannot give the job pids and a /proc of its own on node %s, "
				     "as --migratable needs: %s",
				     node, why);
	case STAGE_INIT:
		return iocom_err_set(err, -report->error,
				     "cannot start iocom-init, the first process of a "
				     "--migratable job, on node %s: %s",
				     node, why);
	case STAGE_LAUNCHER:
		return iocom_err_set(err, -report->error,
				     "cannot start the launcher of the gang's tasks on node %s: %s",
				     node, why);
	case STAGE_PAM:
		return iocom_err_set(err, -report->error,
				     "cannot set the limits that PAM gave on node %s: %s", node,
				     why);
	case STAGE_LIMITS:
		return iocom_err_set(err, -report->error,
				     "cannot set the job's limits on node %s: %s", node, why);
	default:
		return iocom_err_set(err, -report->error, "cannot set up the job on node %s: %s",
				     node, why);
	}
}

/* Returns 1 when FD is readable within LIMIT_MS, else 0. */
static int await(int fd, uint32_t limit_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, (int)limit_ms);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* Returns 1 with the child's next report; 0: exec has succeeded (end of file); -ETIMEDOUT. */
static int await_report(int fd, uint32_t limit_ms, struct report *report)
{
	ssize_t n;

	if (!await(fd, limit_ms))
		return -ETIMEDOUT;
	do
		n = read(fd, report, sizeof(*report));
	while (n < 0 && errno == EINTR);
	/* iocom-init says only why it could not start the command. */
	if (n == (ssize_t)sizeof(int))
		*report = (struct report){.stage = STAGE_EXEC, .error = report->stage};
	return n == (ssize_t)sizeof(*report) || n == (ssize_t)sizeof(int) ? 1 : 0;
}

/*
 * Waits until exec succeeds (returns 0) or the child reports a failed step (returns 1). Returns
 * -ETIMEDOUT after LIMIT_MS: the user may have stopped the child, or the file
 * system of the directory or program may not answer. BEGIN_US gets the CPU time of the steps.
 */
static int await_exec(int fd, uint32_t limit_ms, struct report *report, uint64_t *begin_us)
{
	uint64_t start_ms = clock_boot_ms(), passed_ms;
	int rc = await_report(fd, limit_ms, report);

	if (rc != 1 || report->stage != STAGE_READY)
		return rc;
	*begin_us = (uint64_t)report->error;
	passed_ms = clock_boot_ms() - start_ms;
	return await_report(fd, passed_ms < limit_ms ? limit_ms - (uint32_t)passed_ms : 0, report);
}

/*
 * Kills a child that did not reach exec. It dies before it runs anything of the user's, but
 * perhaps only when the kernel lets go of it.
 */
static int child_give_up(const struct child *child, const struct order *order,
			 const struct cgroup *group, struct iocom_err *err)
{
	const struct spec *spec = &order->spec;

	cgroup_kill(group);
	if (await(child->pidfd, KILLED_MS))
		waitpid(child->pid, NULL, 0);
	close(child->pidfd);
	return iocom_err_set(
		err, -ETIMEDOUT,
		"the job did not begin on node %s within %u ms: the file system of its "
		"directory %.120s or of its program %.120s does not answer, or it was "
		"stopped",
		spec->node, order->begin_ms, spec->cwd, spec->executable);
}

static void take_ends(struct child *child, struct pipes *pipes)
{
	child->status = pipes->status[0];
	pipes->status[0] = -1;
	if (pipes->tty.slave >= 0) {
		child->stdio[0] = pipes->tty.in;
		child->stdio[1] = pipes->tty.out;
		pipes->tty.in = pipes->tty.out = -1;
		return;
	}
	child->stdio[0] = pipes->in[1];
	child->stdio[1] = pipes->out[0];
	child->stdio[2] = pipes->err[0];
	pipes->in[1] = pipes->out[0] = pipes->err[0] = -1;
}

static void run_child(const struct order *order, const struct identity *identity,
		      const struct cgroup *group, bool in_v2, const struct pipes *pipes,
		      const struct gang_launcher *launcher)
{
	struct report report = child_steps(order, identity, group, in_v2, pipes, launcher);
	ssize_t n = write(pipes->report[1], &report, sizeof(report));

	_exit(n == (ssize_t)sizeof(report) ? 127 : 126);
}

int child_start(struct child *child, const struct order *order, const struct identity *identity,
		const struct cgroup *group, const struct gang_launcher *launcher,
		struct iocom_err *err)
{
	struct report report = {0};
	struct pipes pipes;
	bool in_v2;
	int rc = pipes_make(&pipes, &order->spec, identity);

	*child = (struct child){.pidfd = -1, .stdio = {-1, -1, -1}, .status = -1};
	if (rc)
		return iocom_err_set(err, rc, "cannot make %s for the job on node %s: %s",
				     order->spec.tty.wanted ? "a terminal" : "pipes",
				     order->spec.node, strerror(-rc));
	child->pid = child_spawn(group, order->spec.migratable ? CLONE_NEWPID | CLONE_NEWNS : 0,
				 &child->pidfd, &in_v2);
	if (child->pid < 0) {
		rc = -errno;
		pipes_close(&pipes);
		return iocom_err_set(err, rc, "cannot make a process on node %s: %s",
				     order->spec.node, strerror(-rc));
	}
	if (child->pid == 0)
		run_child(order, identity, group, in_v2, &pipes, launcher);
	close(pipes.report[1]);
	pipes.report[1] = -1;
	if (pipes.status[1] >= 0)
		close(pipes.status[1]);
	pipes.status[1] = -1;
	rc = await_exec(pipes.report[0], order->begin_ms, &report, &child->begin_us);
	if (rc < 0) {
		rc = child_give_up(child, order, group, err);
	} else if (rc) {
		waitpid(child->pid, NULL, 0);
		close(child->pidfd);
		rc = child_explain(&report, order, err);
	} else {
		take_ends(child, &pipes);
	}
	pipes_close(&pipes);
	return rc;
}
