/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A launcher from its command line on; see tasks.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tasks/tasks_own.h"

extern char **environ;

#define FIRST_FD 3

static const char usage[] =
	"usage: %s PLAN-FD CONTROL-FD EXECUTABLE -- COMMAND [ARGUMENT...]\n"
	"Starts the tasks of a gang's part. iocom-shim calls it; iocom-shim(8) tells how.\n";

/* Returns the number of an open descriptor, or -1. */
static int main_fd(const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || *end || fd < FIRST_FD || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0)
		return -1;
	/* Not for the tasks. */
	return fcntl((int)fd, F_SETFD, FD_CLOEXEC) ? -1 : (int)fd;
}

static int main_read_plan(int fd, struct gang_plan *plan, struct iocom_err *err)
{
	struct stat st;
	void *data;
	int rc;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)GANG_PACKED_MAX)
		return iocom_err_set(err, -EBADMSG, "descriptor %d is no plan of a gang", fd);
	data = malloc((size_t)st.st_size);
	if (!data)
		return iocom_err_set(err, -ENOMEM, "there is no memory for the gang's plan");
	if (pread(fd, data, (size_t)st.st_size, 0) != st.st_size)
		rc = iocom_err_set(err, -EIO, "cannot read the gang's plan");
	else
		rc = gang_plan_unpack(plan, data, (size_t)st.st_size, err);
	explicit_bzero(data, (size_t)st.st_size);
	free(data);
	close(fd);
	return rc;
}

/* Signals reach the tasks themselves; the launcher waits for what they do.  Faults are its own. */
static int main_signals(void)
{
	static const int others[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPIPE};
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		sigdelset(&all, others[i]);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &all, NULL))
		return -errno;
	return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int main_init(struct tasks *t, char **argv, const struct tasks_kind *const kinds[],
		     struct iocom_err *err)
{
	int plan = main_fd(argv[1]), rc;

	t->control = main_fd(argv[2]);
	if (plan < 0 || t->control < 0)
		return iocom_err_set(err, -EBADF, "%s and %s are not both open descriptors",
				     argv[1], argv[2]);
	rc = main_read_plan(plan, &t->plan, err);
	if (rc)
		return rc;
	if (t->plan.launch == GANG_LAUNCH_NONE ||
	    (t->plan.launch != GANG_LAUNCH_TASKS && !kinds[t->plan.launch]))
		return iocom_err_set(err, -ENOSYS, "this launcher starts no such gangs");
	t->kind = kinds[t->plan.launch];
	t->executable = argv[3];
	t->argv = argv + 5;
	t->env = environ;
	t->count = t->plan.nodes[t->plan.part].tasks;
	t->ranks = &t->plan.ranks[t->plan.nodes[t->plan.part].first];
	t->list = calloc(t->count, sizeof(*t->list));
	if (!t->list)
		return iocom_err_set(err, -ENOMEM, "there is no memory for %u tasks", t->count);
	for (uint32_t i = 0; i < t->count; i++)
		t->list[i].lines[0].fd = t->list[i].lines[1].fd = -1;
	(void)getrlimit(RLIMIT_NOFILE, &t->files);
	task_sink_init(&t->out, STDOUT_FILENO);
	task_sink_init(&t->err, STDERR_FILENO);
	/* Tasks have pipes of their own then, and no part of these. */
	if (t->plan.label && (fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK | O_APPEND) ||
			      fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK | O_APPEND)))
		return iocom_err_set(err, -errno, "cannot label the tasks' output: %s",
				     strerror(errno));
	return 0;
}

int tasks_main(int argc, char **argv, const struct tasks_kind *const kinds[GANG_LAUNCHES])
{
	struct tasks tasks = {.control = -1};
	struct iocom_err err = {0};
	int signals, status = TASKS_FAILED;

	if (argc < 6 || strcmp(argv[4], "--") != 0) {
		fprintf(stderr, usage, argv[0]);
		return TASKS_FAILED;
	}
	signals = main_signals();
	/* What a task leaves behind is reaped here. */
	if (signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1))
		iocom_err_set(&err, -errno, "cannot prepare a launcher: %s", strerror(errno));
	else if (!main_init(&tasks, argv, kinds, &err))
		status = tasks_life(&tasks, signals);
	if (*err.text)
		fprintf(stderr, "iocom: %s\n", err.text);
	for (uint32_t i = 0; tasks.list && i < tasks.count; i++)
		for (int k = 0; k < 2; k++)
			if (tasks.list[i].lines[k].fd >= 0)
				task_lines_end(&tasks.list[i].lines[k]);
	task_sink_flush(&tasks.out);
	task_sink_flush(&tasks.err);
	task_sink_free(&tasks.out);
	task_sink_free(&tasks.err);
	free(tasks.list);
	free(tasks.watches);
	free(tasks.entries);
	gang_plan_free(&tasks.plan);
	return status;
}
