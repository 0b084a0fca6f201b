/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A worker of `iocom batch`: it runs one command at a time and keeps the next ones queued.  A
 * command runs in the worker's session and group, so that a signal to the job reaches it; its
 * input is /dev/null.  It has ended when its first process has: what descendants write after
 * that is dropped.
 */
#include "user/clock.h"
#include "balancer/batch/batch.h"
#include "balancer/placement_request.h"
#include "balancer/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 256
#define LONG_MS	  20 /* when a command runs longer, those queued behind it are given back */
#define HELD_NS	  2000000u
#define PIPE_MAX  (2 * (BATCH_PIECE_MAX + BATCH_HEADER))

enum entry { ENTRY_IN, ENTRY_OUT, ENTRY_ERR, ENTRY_CHILD, ENTRIES };

struct worker {
	int in, out, children; /* commands, results, signalfd of SIGCHLD */
	bool ended;	       /* no more commands will come */
	struct queue commands, results;
	uint64_t held_ns; /* when the oldest result was queued */
	pid_t pid;	  /* 0: no command runs */
	uint32_t sequence;
	uint64_t began_ns;
	int pipes[2]; /* our ends of its standard output and error */
	bool gave_back;
	uint8_t piece[BATCH_PIECE_MAX];
};

/* Sends all results; a slow reader slows the commands down.  Returns 0 or negative errno. */
static int flush(struct worker *w)
{
	while (w->results.length) {
		ssize_t n = write(w->out, queue_front(&w->results), w->results.length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		queue_drop(&w->results, (size_t)n);
	}
	return 0;
}

static int result(struct worker *w, enum batch_kind kind, const void *data, size_t length)
{
	int rc;

	if (!w->results.length)
		w->held_ns = clock_read_ns(CLOCK_MONOTONIC);
	rc = batch_put(&w->results, kind, w->sequence, data, length);
	return !rc && w->results.length > PIPE_MAX ? flush(w) : rc;
}

/* Starts WORDS, or LINE in a shell if there are no words.  Returns 0 or a positive errno. */
static int batch_worker_spawn(struct worker *w, char *line, char **words, const int ends[2])
{
	char *shell[] = {(char *)"/bin/sh", (char *)"-c", line, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, set;
	int e;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &set);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], 1);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
	e = *words ? posix_spawnp(&w->pid, words[0], &actions, &attributes, words, environ)
		   : posix_spawn(&w->pid, shell[0], &actions, &attributes, shell, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return e;
}

/*
 * Reports that a command could not be started, with the sentence and exit status of `iocom run`.
 * We check the executable for the reason, because posix_spawnp's errno only tells of the last PATH
 * directory.
 */
static int not_started(struct worker *w, const char *name, bool plain, int e)
{
	char *executable = plain ? placement_request_resolve(name, ".", getenv("PATH")) : NULL;
	struct iocom_err err = {0};
	int status = executable ? run_executable_check(name, executable, &err) : 0;
	char text[512];
	int n, rc;

	if (!status) {
		status = e == ENOENT ? 127 : 126;
		iocom_err_set(&err, status, "%.300s: %s", name, strerror(e));
	}
	free(executable);
	n = snprintf(text, sizeof(text), "iocom batch: %.480s\n", err.text);
	rc = result(w, BATCH_ERR, text, (size_t)n);
	w->pid = 0;
	return rc ? rc : batch_put_end(&w->results, w->sequence, status << 8, 0);
}

static int make_pipes(int ours[2], int theirs[2])
{
	int ends[2];

	ours[0] = ours[1] = theirs[0] = theirs[1] = -1;
	for (int i = 0; i < 2; i++) {
		if (pipe2(ends, O_CLOEXEC))
			return -errno;
		ours[i] = ends[0];
		theirs[i] = ends[1];
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void close_both(int ends[2])
{
	for (int i = 0; i < 2; i++) {
		if (ends[i] >= 0)
			close(ends[i]);
		ends[i] = -1;
	}
}

/* Begins the next command.  Returns 0 or negative errno. */
static int batch_worker_begin(struct worker *w)
{
	struct batch_message m;
	ssize_t n = batch_take(queue_front(&w->commands), w->commands.length, &m);
	char *line, *words[WORDS_MAX] = {NULL};
	int theirs[2], rc;

	if (n <= 0 || m.kind != BATCH_COMMAND || memchr(m.data, 0, m.length))
		return -EPROTO;
	line = strndup((const char *)m.data, m.length);
	w->sequence = m.sequence;
	queue_drop(&w->commands, (size_t)n);
	rc = line ? make_pipes(w->pipes, theirs) : -ENOMEM;
	if (!rc) {
		w->began_ns = clock_read_ns(CLOCK_MONOTONIC);
		w->gave_back = false;
		batch_words(line, words, WORDS_MAX);
		rc = batch_worker_spawn(w, line, words, theirs);
		close_both(theirs);
		if (rc) {
			close_both(w->pipes);
			rc = not_started(w, *words ? *words : line, *words, rc);
		}
	}
	free(line);
	return rc;
}

static bool has_command(const struct worker *w)
{
	struct batch_message m;

	return w->commands.length &&
	       batch_take(queue_front(&w->commands), w->commands.length, &m) != 0;
}

/* Reads a piece of output I.  Returns 1: got some, 0: none now or never again, negative errno. */
static int batch_worker_move(struct worker *w, int i)
{
	ssize_t n = w->pipes[i] < 0 ? -1 : read(w->pipes[i], w->piece, sizeof(w->piece));

	if (n > 0) {
		int rc = result(w, i ? BATCH_ERR : BATCH_OUT, w->piece, (size_t)n);

		return rc ? rc : 1;
	}
	if (n == 0) {
		close(w->pipes[i]);
		w->pipes[i] = -1;
	}
	return 0;
}

/* Gives the commands queued behind a long one back, for other workers. */
static int give_back(struct worker *w)
{
	uint32_t current = w->sequence;
	struct batch_message m;
	ssize_t n;
	int rc = 0;

	w->gave_back = true;
	while (!rc && w->commands.length &&
	       (n = batch_take(queue_front(&w->commands), w->commands.length, &m)) > 0) {
		w->sequence = m.sequence;
		rc = result(w, BATCH_BACK, NULL, 0);
		queue_drop(&w->commands, (size_t)n);
	}
	w->sequence = current;
	return rc ? rc : flush(w);
}

/* Reaps after SIGCHLD; orphaned descendants may have become our children, too. */
static int batch_worker_reap(struct worker *w)
{
	struct signalfd_siginfo info;
	int status, rc = 0;
	pid_t pid;

	while (read(w->children, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != w->pid)
			continue;
		for (int i = 0; i < 2 && !rc; i++)
			while ((rc = batch_worker_move(w, i)) > 0)
				;
		close_both(w->pipes);
		w->pid = 0;
		if (!rc)
			rc = batch_put_end(&w->results, w->sequence, status,
					   clock_read_ns(CLOCK_MONOTONIC) - w->began_ns);
	}
	return rc;
}

static int take_commands(struct worker *w)
{
	ssize_t n = read(w->in, w->piece, sizeof(w->piece));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		w->ended = true;
	return n > 0 ? queue_push(&w->commands, w->piece, (size_t)n) : 0;
}

/* Sends the results when we are idle, when no command is queued, or after HELD_NS. */
static int flush_if_due(struct worker *w)
{
	if (!w->results.length)
		return 0;
	return w->pid == 0 || !has_command(w) ||
			       clock_read_ns(CLOCK_MONOTONIC) - w->held_ns > HELD_NS
		       ? flush(w)
		       : 0;
}

static int batch_worker_step(struct worker *w)
{
	struct pollfd entries[ENTRIES] = {
		{.fd = w->ended ? -1 : w->in, .events = POLLIN},
		{.fd = w->pid ? w->pipes[0] : -1, .events = POLLIN},
		{.fd = w->pid ? w->pipes[1] : -1, .events = POLLIN},
		{.fd = w->pid ? w->children : -1, .events = POLLIN},
	};
	/* Wake up to send held results and to notice that a command is a long one. */
	int wait_ms = w->results.length ? 2 : w->pid && !w->gave_back ? LONG_MS : -1;
	int rc = 0, n = poll(entries, ENTRIES, wait_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (entries[ENTRY_IN].revents)
		rc = take_commands(w);
	for (int i = 0; i < 2 && rc >= 0; i++)
		if (entries[ENTRY_OUT + i].revents)
			rc = batch_worker_move(w, i);
	if (rc >= 0 && entries[ENTRY_CHILD].revents)
		rc = batch_worker_reap(w);
	if (rc >= 0 && w->pid &&
	    clock_read_ns(CLOCK_MONOTONIC) - w->began_ns > LONG_MS * 1000000u && has_command(w))
		rc = give_back(w);
	return rc < 0 ? rc : 0;
}

/* Replaces descriptors 0 and 1, which the commands inherit, by /dev/null. */
static int batch_worker_take_over(struct worker *w)
{
	sigset_t set;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (null < 0 || sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	w->in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	w->out = fcntl(1, F_DUPFD_CLOEXEC, 3);
	w->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->in < 0 || w->out < 0 || w->children < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		return -errno;
	return 0;
}

int batch_worker(void)
{
	struct worker *w = calloc(1, sizeof(*w));
	int rc = w ? batch_worker_take_over(w) : -ENOMEM;

	if (!rc)
		w->pipes[0] = w->pipes[1] = -1;
	while (!rc && (!w->ended || w->pid || has_command(w))) {
		if (!w->pid && has_command(w))
			rc = batch_worker_begin(w);
		if (!rc)
			rc = flush_if_due(w);
		if (!rc && (w->pid || !has_command(w)))
			rc = batch_worker_step(w);
	}
	if (!rc)
		rc = flush(w);
	if (w) {
		queue_free(&w->commands);
		queue_free(&w->results);
	}
	free(w);
	return rc ? 1 : 0;
}
