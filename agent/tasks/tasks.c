/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The life of a launcher; see tasks.h. */
#include "agent/tasks/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/tasks/tasks_own.h"
#include "iocom/array.h"
#include "user/clock.h"
#include "user/ending_signal.h"
#include "user/execute.h"

/* --- descriptors --------------------------------------------------------------------- */

int tasks_watch(struct tasks *t, int fd, short events, tasks_ready *ready, void *arg)
{
	size_t watches = t->room, entries = t->room;

	if (array_reserve(t->watches, watches, t->nwatches + 1, 16) ||
	    array_reserve(t->entries, entries, t->nwatches + 1, 16))
		return -ENOMEM;
	t->room = watches;
	t->watches[t->nwatches++] =
		(struct tasks_watch){.fd = fd, .events = events, .ready = ready, .arg = arg};
	return 0;
}

void tasks_watch_events(struct tasks *t, int fd, short events)
{
	for (size_t i = 0; i < t->nwatches; i++)
		if (t->watches[i].fd == fd)
			t->watches[i].events = events;
}

void tasks_unwatch(struct tasks *t, int fd)
{
	for (size_t i = 0; i < t->nwatches; i++)
		if (t->watches[i].fd == fd)
			t->watches[i].fd = -1;
}

/* Drops the entries of removed descriptors; nobody goes over them now. */
static void tasks_tidy(struct tasks *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nwatches; i++)
		if (t->watches[i].fd >= 0)
			t->watches[n++] = t->watches[i];
	t->nwatches = n;
}

void tasks_turn(struct tasks *t, uint64_t until_ms)
{
	uint64_t now_ms = clock_boot_ms();
	size_t n;
	int limit = until_ms == UINT64_MAX	? -1
		    : until_ms <= now_ms	? 0
		    : until_ms - now_ms > 60000 ? 60000
						: (int)(until_ms - now_ms);

	tasks_tidy(t);
	n = t->nwatches;
	for (size_t i = 0; i < n; i++)
		/* poll would tell of an end for which nobody asks, again and again. */
		t->entries[i] = (struct pollfd){.fd = t->watches[i].events ? t->watches[i].fd : -1,
						.events = t->watches[i].events};
	if (poll(t->entries, n, limit) <= 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct pollfd entry = t->entries[i];

		/* One that was removed meanwhile has another number here. */
		if (entry.revents && t->watches[i].fd == entry.fd)
			t->watches[i].ready(t, entry.fd, entry.revents, t->watches[i].arg);
	}
}

/* --- the client ------------------------------------------------------------------------ */

static void tasks_say(struct tasks *t, const struct gang_message *message)
{
	uint8_t data[GANG_MESSAGE_MAX];
	size_t n = gang_message_pack(message, data);

	if (t->control >= 0)
		(void)!send(t->control, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tasks_hear(struct tasks *t, int fd, short events, void *arg)
{
	uint8_t data[GANG_MESSAGE_MAX];
	struct gang_message message;
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	(void)events;
	(void)arg;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* The job's supervisor has gone: nobody would end these tasks. */
		kill(0, SIGKILL);
		_exit(TASKS_FAILED);
	}
	if (gang_message_unpack(&message, data, (size_t)n) || message.type != GANG_GO || t->going)
		return; /* what a later client may say */
	t->going = true;
	t->go_port = message.port;
	memcpy(t->go_address, message.address, sizeof(t->go_address));
}

/* --- ends -------------------------------------------------------------------------------- */

static int tasks_status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool tasks_crash(int status)
{
	return WIFSIGNALED(status) && gang_crash_signal(WTERMSIG(status));
}

static bool tasks_has_rank(const struct tasks *t, uint32_t rank)
{
	const struct gang_node *node = t->plan.nodes ? &t->plan.nodes[t->plan.part] : NULL;

	for (uint32_t i = 0; node && i < node->tasks; i++)
		if (t->plan.ranks[node->first + i] == rank)
			return true;
	return !node;
}

/* Notes the first failure, or a crash from which it followed, and tells the client of it. */
static void tasks_failed(struct tasks *t, uint32_t rank, int status, const char *text, bool crash)
{
	struct gang_message message = {
		.type = GANG_FAILED,
		.rank = rank,
		.signalled = WIFSIGNALED(status),
		.crash = crash,
		.value = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)),
	};

	if (t->has_status && (!crash || t->crashed))
		return;
	t->crashed = crash;
	t->status = tasks_has_rank(t, rank) ? tasks_status_of(status) : 128 + SIGTERM;
	t->has_status = true;
	if (text)
		snprintf(message.text, sizeof(message.text), "%s", text);
	tasks_say(t, &message);
}

/* Ends the others, at once if it is CLEAR why: only ranks of MPI fail by each other's crash. */
static void tasks_end_others(struct tasks *t, bool clear)
{
	if (clear || !t->kind)
		t->term_at_ms = 0;
	else if (!t->failing)
		t->term_at_ms = clock_boot_ms() + TASKS_MOMENT_MS;
	t->failing = true;
	if (t->term_at_ms || t->termed)
		return;
	t->termed = true;
	t->kill_at_ms = clock_boot_ms() + TASKS_KILL_MS;
	kill(0, SIGTERM); /* this process has it blocked */
}

void tasks_fail(struct tasks *t, uint32_t rank, int status, const char *text)
{
	if (t->failing)
		return;
	tasks_failed(t, rank, status, text, false);
	tasks_end_others(t, !t->running);
}

static void tasks_kill(struct tasks *t)
{
	t->killed = true;
	for (uint32_t i = 0; i < t->count; i++)
		if (t->list[i].pid > 0 && !t->list[i].ended)
			kill(t->list[i].pid, SIGKILL);
}

/* CALM: nothing had ended tasks from outside when this one ended. */
static void task_ended(struct tasks *t, struct task *task, int status, bool calm)
{
	/* What ends tasks may make one abort before we have heard of either. */
	bool crash = calm && tasks_crash(status) && !(t->told && WTERMSIG(status) == SIGABRT);

	task->ended = true;
	t->running--;
	t->quiet_ms = clock_boot_ms();
	if (t->kind && t->kind->ended)
		t->kind->ended(t, task->rank, status);
	if (!status)
		return;
	tasks_failed(t, task->rank, status, NULL, crash && !t->plan.keep_going);
	if (!t->plan.keep_going && (crash || !t->failing))
		tasks_end_others(t, crash || !t->running);
}

static void tasks_reap(struct tasks *t, bool calm)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (uint32_t i = 0; i < t->count; i++)
			if (t->list[i].pid == pid && !t->list[i].ended) {
				task_ended(t, &t->list[i], status, calm);
				break;
			}
}

/* Whether a signal ends a process that does not mind it. */
static bool tasks_fatal(int signal)
{
	return signal != SIGPIPE && signal != SIGCHLD && signal != SIGCONT && signal != SIGWINCH &&
	       signal != SIGURG && signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU;
}

/*
 * Hands a signal for this process group on to tasks that have made one of their own, as timeout(1)
 * does: as first process of a job such a program would not have, and would have got the signal.
 */
static void tasks_pass_on(const struct tasks *t, int signal)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const struct task *task = &t->list[i];

		if (task->pid > 0 && !task->ended && getpgid(task->pid) != getpgrp())
			kill(task->pid, signal);
	}
}

void tasks_signal(struct tasks *t, int fd, short events, void *arg)
{
	struct signalfd_siginfo info;
	bool calm = !t->told && !t->termed;

	(void)events;
	(void)arg;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal == SIGCHLD)
			continue;
		tasks_pass_on(t, signal);
		if (signal_asks_to_end(signal) && info.ssi_pid != (uint32_t)getpid())
			t->told = true;
		/* There is no task to end, before the first and after the last. */
		if (!t->running && tasks_fatal(signal) && info.ssi_pid != (uint32_t)getpid())
			t->ended_by = signal;
	}
	tasks_reap(t, calm);
}

/* --- labelled output ---------------------------------------------------------------------- */

static void tasks_output(struct tasks *t, int fd, short events, void *arg)
{
	struct task_lines *lines = arg;

	(void)events;
	t->quiet_ms = clock_boot_ms();
	if (task_lines_read(lines))
		tasks_unwatch(t, fd);
	task_sink_flush(lines->sink);
}

static void tasks_drain(struct tasks *t, int fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	t->quiet_ms = clock_boot_ms();
	task_sink_flush(arg);
}

/*
 * Reads from tasks only while there is room for what they say.  When nobody reads it any more,
 * their pipes are closed: they get SIGPIPE, as without labels.
 */
static void tasks_throttle(struct tasks *t)
{
	for (size_t i = 0; i < t->nwatches; i++) {
		struct tasks_watch *w = &t->watches[i];

		if (w->fd < 0)
			continue;
		if (w->ready == tasks_drain) {
			w->events = ((struct task_sink *)w->arg)->waits.length ? POLLOUT : 0;
		} else if (w->ready == tasks_output) {
			struct task_lines *lines = w->arg;

			w->events = task_sink_full(lines->sink) ? 0 : POLLIN;
			if (lines->sink->fd < 0) {
				w->fd = -1;
				task_lines_end(lines);
			}
		}
	}
}

/* Until when, in ms of CLOCK_BOOTTIME, labelled output may still come; 0: there is none. */
static uint64_t tasks_output_until(const struct tasks *t)
{
	/* A slow reader gets all, as from a task that writes itself. */
	if (t->out.waits.length || t->err.waits.length)
		return t->ended_by ? 0 : UINT64_MAX;
	for (uint32_t i = 0; i < t->count && t->plan.label; i++)
		if (t->list[i].lines[0].fd >= 0 || t->list[i].lines[1].fd >= 0)
			return t->quiet_ms + TASKS_SILENCE_MS;
	return 0;
}

/* --- the life ------------------------------------------------------------------------------- */

/* One turn: until something happens, at most UNTIL_MS. */
static void tasks_live(struct tasks *t, uint64_t until_ms)
{
	uint64_t now_ms = clock_boot_ms(), due_ms = UINT64_MAX;

	if (t->kind && t->kind->turn)
		due_ms = t->kind->turn(t, now_ms);
	if (t->failing && !t->termed && t->term_at_ms < due_ms)
		due_ms = t->term_at_ms;
	if (t->termed && !t->killed && t->kill_at_ms < due_ms)
		due_ms = t->kill_at_ms;
	if (t->plan.label)
		tasks_throttle(t);
	tasks_turn(t, due_ms < until_ms ? due_ms : until_ms);
	if (t->failing && !t->termed && clock_boot_ms() >= t->term_at_ms)
		tasks_end_others(t, true);
	if (t->termed && !t->killed && clock_boot_ms() >= t->kill_at_ms)
		tasks_kill(t);
}

/* Waits for the ends of all tasks, and for what their outputs still hold. */
static void tasks_wait_end(struct tasks *t)
{
	while (t->running)
		tasks_live(t, UINT64_MAX);
	if (t->failing)
		tasks_end_others(t, true); /* what they have left behind */
	/* Other parts may need this one a little longer. */
	while (!t->failing && !t->ended_by && t->kind && t->kind->done && !t->kind->done(t))
		tasks_live(t, UINT64_MAX);
	while (clock_boot_ms() < tasks_output_until(t))
		tasks_live(t, tasks_output_until(t));
	/* What a task has left behind may hold its pipes open, and says nothing. */
	for (uint32_t i = 0; i < t->count && t->plan.label; i++)
		for (int k = 0; k < 2; k++) {
			struct task_lines *lines = &t->list[i].lines[k];

			if (lines->fd < 0)
				continue;
			tasks_unwatch(t, lines->fd);
			task_lines_end(lines);
		}
	while (clock_boot_ms() < tasks_output_until(t))
		tasks_live(t, tasks_output_until(t));
}

/* Waits for GO.  Returns 0; the exit status: this part does not begin. */
static int tasks_wait_go(struct tasks *t)
{
	uint64_t until_ms = clock_boot_ms() + GANG_BEGIN_S * 1000u;

	while (!t->going && !t->ended_by && !t->failing && clock_boot_ms() < until_ms)
		tasks_live(t, until_ms);
	if (t->failing)
		return t->status;
	if (t->ended_by)
		return 128 + t->ended_by;
	if (!t->going)
		fprintf(stderr,
			"iocom: the other parts of gang %s were not ready within %d s, so node %s "
			"started none of its tasks\n",
			t->plan.gang, GANG_BEGIN_S, tasks_node(t));
	return t->going ? 0 : TASKS_FAILED;
}

/* A signal to the process group that has not been looked at yet; 0: none. */
static int tasks_pending(void)
{
	sigset_t set;

	if (sigpending(&set))
		return 0;
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&set, i) == 1 && tasks_fatal(i))
			return i;
	return 0;
}

/*
 * Whether a signal has come while tasks are started.  It found those that were there, and perhaps
 * not the last; the others, from I on, are not started.
 */
static bool tasks_start_ended(struct tasks *t, uint32_t i)
{
	int signal = tasks_pending();

	if (!signal)
		return false;
	if (i > 0)
		kill(t->list[i - 1].pid, signal);
	if (i < t->count)
		tasks_fail(t, t->ranks[i], signal, NULL);
	return true;
}

static int tasks_start_all(struct tasks *t, struct iocom_err *err)
{
	int rc = 0;

	tasks_say_unbound(t);
	for (uint32_t i = 0; i < t->count && !rc && !t->failing; i++) {
		struct task *task = &t->list[i];

		if (tasks_start_ended(t, i))
			break;
		task->rank = t->ranks[i];
		t->started++;
		rc = tasks_start(t, i, err);
		t->running += !rc;
		for (int k = 0; k < 2 && !rc && t->plan.label; k++)
			if (tasks_watch(t, task->lines[k].fd, POLLIN, tasks_output,
					&task->lines[k]))
				rc = iocom_err_set(err, -ENOMEM,
						   "there is no memory for the output of task %u",
						   task->rank);
	}
	if (!rc && !t->failing)
		tasks_start_ended(t, t->count);
	/* Nobody here reads it; so task 0 that closes it is heard of. */
	if (!rc) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (null >= 0)
			dup2(null, STDIN_FILENO);
		if (null > STDIN_FILENO)
			close(null);
	}
	return rc;
}

static int tasks_run(struct tasks *t)
{
	const struct gang_message begun = {.type = GANG_BEGUN};
	struct iocom_err err = {0};
	int rc = 0;

	if (t->kind && t->kind->join)
		rc = t->kind->join(t, t->go_address, t->go_port, &err);
	if (!rc)
		rc = tasks_start_all(t, &err);
	if (rc) {
		fprintf(stderr, "iocom: %s\n", err.text);
		tasks_fail(t, t->ranks[0], tasks_exited(TASKS_FAILED), err.text);
	} else if (!t->failing) {
		tasks_say(t, &begun);
	}
	tasks_wait_end(t);
	return t->status;
}

static int tasks_ready_to_go(struct tasks *t, int signals, struct iocom_err *err)
{
	struct gang_message ready = {.type = GANG_READY};
	int rc = execute_check(t->executable, t->env);

	if (rc) {
		iocom_err_set(err, rc,
			      rc == -ENOENT ? "%s: command not found on node %s"
					    : "%s: cannot be executed on node %s",
			      t->argv[0], tasks_node(t));
		return execute_status(rc);
	}
	rc = tasks_check_limits(t, err);
	if (!rc && t->kind && t->kind->prepare)
		rc = t->kind->prepare(t, &ready.port, err);
	if (!rc && (tasks_watch(t, signals, POLLIN, tasks_signal, NULL) ||
		    tasks_watch(t, t->control, POLLIN, tasks_hear, NULL) ||
		    (t->plan.label && (tasks_watch(t, STDOUT_FILENO, 0, tasks_drain, &t->out) ||
				       tasks_watch(t, STDERR_FILENO, 0, tasks_drain, &t->err)))))
		rc = iocom_err_set(err, -ENOMEM, "there is no memory for the launcher");
	if (rc)
		return TASKS_FAILED;
	tasks_say(t, &ready);
	return 0;
}

int tasks_life(struct tasks *t, int signals)
{
	struct iocom_err err = {0};
	int status = tasks_ready_to_go(t, signals, &err);

	if (status)
		fprintf(stderr, "iocom: %s\n", err.text);
	if (!status)
		status = tasks_wait_go(t);
	if (!status)
		status = tasks_run(t);
	if (t->kind && t->kind->stop)
		t->kind->stop(t);
	return status;
}
