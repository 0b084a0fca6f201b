/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The start of a task, from fork to exec.  A launcher of MPI programs has threads, so that the
 * child prepares nothing itself: its environment and arguments are there before.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/tasks/tasks.h"
#include "user/execute.h"

#define FDS_EACH   3  /* of a task in its launcher: two outputs, and what its kind has */
#define FDS_OTHERS 64 /* and of the launcher itself */

int tasks_check_limits(const struct tasks *tasks, struct iocom_err *err)
{
	rlim_t wanted = (rlim_t)tasks->count * FDS_EACH + FDS_OTHERS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return iocom_err_set(err, -errno, "cannot read the limit of open files: %s",
				     strerror(errno));
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur < wanted)
		return iocom_err_set(err, -EMFILE,
				     "the limit of %llu open files (ulimit -Hn) forbids %u tasks "
				     "on node %s, which need %llu",
				     (unsigned long long)limit.rlim_cur, tasks->count,
				     tasks_node(tasks), (unsigned long long)wanted);
	return 0;
}

/* What the child needs to know; it only reads it. */
struct birth {
	const struct tasks *tasks;
	uint32_t rank;
	char *const *env;
	int fd;		       /* of its kind; -1 */
	int ends[2];	       /* of its labelled outputs; -1: it inherits ours */
	const cpu_set_t *cpus; /* NULL: all of ours */
	struct rlimit files;   /* what the user's limit was */
	pid_t parent;
};

static void start_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int start_stdio(const struct birth *b)
{
	if (b->rank != 0) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			return -errno;
	}
	for (int i = 0; i < 2; i++)
		if (b->ends[i] >= 0 && dup2(b->ends[i], STDOUT_FILENO + i) < 0)
			return -errno;
	return 0;
}

static int start_steps(const struct birth *b)
{
	const struct tasks *t = b->tasks;
	int rc = start_stdio(b);

	if (rc)
		return rc;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != b->parent)
		return -ECHILD;
	if (b->cpus && sched_setaffinity(0, sizeof(*b->cpus), b->cpus))
		return -errno;
	if (b->fd >= 0 && fcntl(b->fd, F_SETFD, 0))
		return -errno;
	(void)setrlimit(RLIMIT_NOFILE, &b->files);
	start_signals();
	return execute_command(t->executable, t->argv, b->env);
}

static _Noreturn void start_child(const struct birth *b)
{
	int rc = start_steps(b);

	dprintf(STDERR_FILENO, "iocom: task %u cannot run %s on node %s: %s\n", b->rank,
		b->tasks->argv[0], tasks_node(b->tasks), strerror(-rc));
	_exit(execute_status(rc));
}

/* How many processors of its own each task can have; 0: there are too few. */
static int start_share(const struct tasks *t, cpu_set_t *ours)
{
	if (sched_getaffinity(0, sizeof(*ours), ours))
		return 0;
	return CPU_COUNT(ours) / (int)t->count;
}

void tasks_say_unbound(const struct tasks *t)
{
	cpu_set_t ours;

	CPU_ZERO(&ours);
	if (t->plan.bind && !start_share(t, &ours))
		fprintf(stderr,
			"iocom: the %u tasks on node %s are bound to none of its processors: "
			"they may use %d\n",
			t->count, tasks_node(t), CPU_COUNT(&ours));
}

/*
 * The processors of task I: an equal number of those that the launcher may use, none shared.
 * Returns false if there are too few.
 */
static bool start_processors(const struct tasks *t, uint32_t i, cpu_set_t *out)
{
	cpu_set_t ours;
	int each = start_share(t, &ours), seen = 0;

	CPU_ZERO(out);
	for (int cpu = 0; cpu < CPU_SETSIZE && each > 0; cpu++) {
		if (!CPU_ISSET(cpu, &ours))
			continue;
		if (seen / each == (int)i)
			CPU_SET(cpu, out);
		seen++;
	}
	return each > 0;
}

static int start_environment(const struct tasks *t, uint32_t i, struct task_env *env)
{
	const struct gang_plan *p = &t->plan;
	size_t room = (size_t)p->nnodes * (IOCOM_NAME_MAX + 1) + 1, at = 0;
	char *names = malloc(room);
	int rc = names ? task_env_copy(env, t->env) : -ENOMEM;

	for (uint32_t k = 0; k < p->nnodes && !rc; k++)
		at += (size_t)snprintf(names + at, room - at, "%s%s", k ? "," : "",
				       p->nodes[k].name);
	if (!rc)
		rc = task_env_set(env, "IOCOM_GANG", "%s", p->gang);
	if (!rc)
		rc = task_env_set(env, "IOCOM_TASK", "%u", t->ranks[i]);
	if (!rc)
		rc = task_env_set(env, "IOCOM_TASKS", "%u", p->tasks);
	if (!rc)
		rc = task_env_set(env, "IOCOM_LOCAL_TASK", "%u", i);
	if (!rc)
		rc = task_env_set(env, "IOCOM_LOCAL_TASKS", "%u", t->count);
	if (!rc)
		rc = task_env_set(env, "IOCOM_NODES", "%s", names);
	free(names);
	return rc;
}

/* Makes the pipes of task I's labelled outputs.  Returns 0 or -errno. */
static int start_pipes(struct tasks *t, uint32_t i, int theirs[2])
{
	for (int k = 0; k < 2; k++) {
		struct task_lines *lines = &t->list[i].lines[k];
		int ends[2];

		if (pipe2(ends, O_CLOEXEC))
			return -errno;
		theirs[k] = ends[1];
		*lines = (struct task_lines){
			.fd = ends[0], .rank = t->ranks[i], .sink = k ? &t->err : &t->out};
		if (fcntl(ends[0], F_SETFL, O_NONBLOCK))
			return -errno;
	}
	return 0;
}

static int start_no_process(const struct tasks *t, uint32_t i, int rc, struct iocom_err *err)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	if (rc != -EAGAIN)
		return iocom_err_set(err, rc, "cannot start task %u on node %s: %s", t->ranks[i],
				     tasks_node(t), strerror(-rc));
	(void)getrlimit(RLIMIT_NPROC, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		return iocom_err_set(
			err, rc,
			"the limit of processes of the job's cgroup (pids.max) or of "
			"the machine forbids %u tasks on node %s, which has started %u",
			t->count, tasks_node(t), i);
	return iocom_err_set(err, rc,
			     "the limit of %llu processes (ulimit -u) forbids %u tasks on node %s, "
			     "which has started %u",
			     (unsigned long long)limit.rlim_cur, t->count, tasks_node(t), i);
}

int tasks_start(struct tasks *t, uint32_t i, struct iocom_err *err)
{
	struct task *task = &t->list[i];
	struct task_env env = {0};
	struct birth b = {.tasks = t, .rank = t->ranks[i], .fd = -1, .ends = {-1, -1}};
	cpu_set_t cpus;
	int rc = start_environment(t, i, &env);

	if (rc)
		iocom_err_set(err, rc, "there is no memory for the environment of task %u", b.rank);
	if (!rc && t->kind && t->kind->task)
		rc = t->kind->task(t, b.rank, &env, &b.fd, err);
	if (!rc && t->plan.label && (rc = start_pipes(t, i, b.ends)))
		iocom_err_set(err, rc, "cannot make pipes for task %u: %s", b.rank, strerror(-rc));
	if (!rc) {
		b.env = env.list;
		b.parent = getpid();
		b.cpus = t->plan.bind && start_processors(t, i, &cpus) ? &cpus : NULL;
		b.files = t->files;
		task->pid = fork();
		if (task->pid == 0)
			start_child(&b);
		if (task->pid < 0) {
			rc = -errno;
			task->pid = 0;
			start_no_process(t, i, rc, err);
		}
	}
	for (int k = 0; k < 2; k++)
		if (b.ends[k] >= 0)
			close(b.ends[k]);
	if (b.fd >= 0)
		close(b.fd);
	task_env_free(&env);
	return rc;
}
