/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See metrics_file.h.
 *
 * Who has a descriptor of a text may keep it, and its memory is root's.  So a text's file is
 * emptied when the second one after it comes: what it costs to keep descriptors is two texts, and
 * who was about to read one had a period for it.
 */
#include "agent/metrics/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/base/question_thread.h"

struct metrics_file {
	const struct base *base;
	void (*have)(void *arg, int fd);
	void *arg;
	struct question_thread *thread;
	struct metrics_page *page; /* newer than the text, and nobody wanted it yet; or NULL */
	int fd;			   /* the newest text that was made */
	int before;		   /* the one before it; -1: none */
	bool making;
};

struct metrics_file_task {
	struct question_task task;
	struct metrics_file *file;
	struct metrics_page *page;
	int fd; /* the text, or negative errno */
};

/* --- the text, in the thread ------------------------------------------------------------- */

static int metrics_file_write(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		text += n;
		length -= (size_t)n;
	}
	return 0;
}

/*
 * Returns a file with TEXT that nobody can write to or make longer, or negative errno.  It can be
 * emptied.
 */
static int metrics_file_seal(const char *text, size_t length)
{
	int fd = memfd_create("iocom-metrics", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc = fd < 0 ? -errno : metrics_file_write(fd, text, length);

	if (!rc && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL))
		rc = -errno;
	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

static void metrics_file_run(struct question_task *task)
{
	struct metrics_file_task *t = (struct metrics_file_task *)task;
	size_t length;
	char *text;

	t->fd = metrics_page_render(t->page, &text, &length);
	if (t->fd)
		return;
	t->fd = metrics_file_seal(text, length);
	free(text);
}

static void metrics_file_task_free(struct question_task *task)
{
	struct metrics_file_task *t = (struct metrics_file_task *)task;

	if (t->fd >= 0)
		close(t->fd);
	metrics_page_free(t->page);
	free(t);
}

/* --- the loop ------------------------------------------------------------------------------ */

static void metrics_file_failed(struct metrics_file *f, int rc)
{
	log_write(f->base->log, LOG_L_ERROR,
		  "cannot make the text of /metrics: %s; it shows an older reading", strerror(-rc));
}

/* Frees the memory of the text in FD, whoever has a descriptor of it. */
static void metrics_file_drop(int fd)
{
	if (fd < 0)
		return;
	(void)!ftruncate(fd, 0); /* it never fails: nothing forbids it */
	close(fd);
}

static void metrics_file_keep(struct metrics_file *f, struct metrics_file_task *t)
{
	if (t->fd < 0) {
		metrics_file_failed(f, t->fd);
		return;
	}
	metrics_file_drop(f->before);
	f->before = f->fd;
	f->fd = t->fd;
	t->fd = -1;
}

static void metrics_file_done(struct question_task *task, int rc)
{
	struct metrics_file_task *t = (struct metrics_file_task *)task;
	struct metrics_file *f = t->file;

	f->making = false;
	if (rc) { /* the thread still has the task */
		metrics_file_failed(f, rc);
	} else {
		metrics_file_keep(f, t);
		metrics_file_task_free(task);
	}
	f->have(f->arg, f->fd);
}

/* Has the text of the newest page made. */
static int metrics_file_make(struct metrics_file *f)
{
	struct metrics_file_task *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->task = (struct question_task){
		.run = metrics_file_run, .done = metrics_file_done, .free = metrics_file_task_free};
	t->file = f;
	t->page = f->page;
	t->fd = -1;
	f->page = NULL;
	rc = question_thread_ask(f->thread, &t->task);
	f->making = !rc;
	return rc;
}

void metrics_file_want(struct metrics_file *f)
{
	int rc;

	if (f->making)
		return;
	if (f->page) {
		rc = metrics_file_make(f);
		if (!rc)
			return;
		metrics_file_failed(f, rc);
	}
	f->have(f->arg, f->fd);
}

void metrics_file_put(struct metrics_file *f, struct metrics_page *page)
{
	metrics_page_free(f->page);
	f->page = page;
}

int metrics_file_new(struct metrics_file **out, const struct base *base,
		     void (*have)(void *arg, int fd), void *arg, struct iocom_err *err)
{
	struct metrics_file *f = calloc(1, sizeof(*f));
	int rc;

	*out = NULL;
	if (!f)
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	f->base = base;
	f->have = have;
	f->arg = arg;
	f->before = -1;
	f->fd = metrics_file_seal("", 0);
	if (f->fd < 0)
		rc = iocom_err_set(err, f->fd, "metrics: cannot make a file in memory: %s",
				   strerror(-f->fd));
	else
		rc = question_thread_new(&f->thread, base->loop, METRICS_FILE_LIMIT_MS, 1, err);
	if (rc) {
		metrics_file_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void metrics_file_free(struct metrics_file *f)
{
	int saved = errno;

	if (!f)
		return;
	question_thread_free(f->thread);
	metrics_page_free(f->page);
	metrics_file_drop(f->before);
	metrics_file_drop(f->fd);
	free(f);
	errno = saved;
}
