/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See signals.h. */
#include "agent/guest/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "user/clock.h"

struct signals_sent {
	struct signals_sent *next;
	struct agent *agent;
	char job[SPEC_JOB_MAX];
	uid_t owner;
	struct loop_fd entry;
	struct loop_timer timer;
	signals_done done; /* NULL: nobody waits any more */
	void *arg;
};

static void signals_answered(struct signals_sent *s, int rc)
{
	struct agent *a = s->agent;
	struct iocom_err err = {0};

	for (struct signals_sent **p = &a->signalled; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	loop_cancel(a->loop, &s->timer);
	loop_remove(a->loop, &s->entry);
	close(s->entry.fd);
	if (rc)
		iocom_err_set(&err, rc, "cannot signal job %s: %s", s->job, strerror(-rc));
	if (s->done)
		s->done(s->arg, rc, err.text);
	free(s);
}

static void signals_ready(void *arg, uint32_t events)
{
	struct signals_sent *s = arg;
	int rc = launch_signal_answer(s->entry.fd);

	(void)events;
	if (rc != -EAGAIN)
		signals_answered(s, rc);
}

/* It was asked all the same: it obeys when it wakes. */
static void signals_overdue(void *arg)
{
	signals_answered(arg, -ETIMEDOUT);
}

size_t signals_count(const struct agent *a)
{
	size_t n = 0;

	for (const struct signals_sent *s = a->signalled; s; s = s->next)
		n++;
	return n;
}

static bool signals_has_room(const struct agent *a, uid_t owner)
{
	unsigned all = 0, own = 0;

	for (const struct signals_sent *s = a->signalled; s; s = s->next) {
		all++;
		own += s->owner == owner;
	}
	return all < SIGNALS_MAX && (!owner || own < SIGNALS_OF_ONE);
}

/* Asks JOB's shim; 0 or negative errno. */
static int signals_ask(struct agent *a, const struct job *job, int signal, signals_done done,
		       void *arg)
{
	struct signals_sent *s;
	int fd = launch_signal_ask(a->run_jobs_dir, job->order.job, signal), rc;

	if (fd < 0)
		return fd;
	s = calloc(1, sizeof(*s));
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	*s = (struct signals_sent){.agent = a, .owner = job->order.uid, .done = done, .arg = arg};
	memcpy(s->job, job->order.job, sizeof(s->job));
	s->entry = (struct loop_fd){.fd = fd, .ready = signals_ready, .arg = s};
	s->timer = (struct loop_timer){.fire = signals_overdue, .arg = s};
	rc = loop_add(a->loop, &s->entry, EPOLLIN);
	if (rc) {
		close(fd);
		free(s);
		return rc;
	}
	s->next = a->signalled;
	a->signalled = s;
	loop_start(a->loop, &s->timer, SIGNALS_WAIT_MS * CLOCK_NS_PER_MS);
	return 0;
}

/* Whose jobs there are is nobody else's business: the sentence is one. */
static int none_of_his(const struct agent *a, const char *name, int rc, struct iocom_err *err)
{
	return iocom_err_set(err, rc, "no job of yours named %s runs at node %s", name,
			     a->set.name);
}

int signals_send(struct agent *a, const char *name, uid_t uid, int signal, signals_done done,
		 void *arg, struct iocom_err *err)
{
	const struct job *job = jobs_find(&a->jobs, name);
	int rc;

	if (!job || job->state == JOB_ENDED || job->state == JOB_LEASED)
		return none_of_his(a, name, -ESRCH, err);
	if (uid != 0 && uid != job->order.uid)
		return none_of_his(a, name, -EPERM, err);
	if (!signal)
		return 0;
	if (!signals_has_room(a, job->order.uid)) {
		a->counters.signals_refused++;
		return iocom_err_set(err, -EAGAIN,
				     "cannot signal job %s: too many signals wait for supervisors "
				     "that do not answer",
				     name);
	}
	rc = signals_ask(a, job, signal, done, arg);
	return rc ? iocom_err_set(err, rc, "cannot signal job %s: %s", name, strerror(-rc)) : 0;
}

void signals_forget(struct agent *a, const void *arg)
{
	for (struct signals_sent *s = a->signalled; s; s = s->next)
		if (s->arg == arg)
			s->done = NULL;
}

void signals_stop(struct agent *a)
{
	while (a->signalled)
		signals_answered(a->signalled, -ECANCELED);
}
