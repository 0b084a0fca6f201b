/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See signals.h. */
#include "agent/guest/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/base/places.h"
#include "user/clock.h"

struct signals_sent {
	struct signals_sent *next;
	struct guest *guest;
	char job[SPEC_JOB_MAX];
	uid_t owner;
	struct loop_fd entry;
	struct loop_timer timer;
	signals_done done; /* NULL: nobody waits for the answer any more */
	void *arg;
};

static void signals_answered(struct signals_sent *s, int rc)
{
	struct guest *guest = s->guest;
	struct iocom_err err = {0};

	for (struct signals_sent **p = &guest->signalled; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	loop_cancel(guest->base->loop, &s->timer);
	loop_remove(guest->base->loop, &s->entry);
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
	int rc = s->guest->launcher->signal_answer(s->entry.fd);

	(void)events;
	if (rc != -EAGAIN)
		signals_answered(s, rc);
}

/* The shim took the request: a stopped shim obeys when it continues. */
static void signals_overdue(void *arg)
{
	signals_answered(arg, -ETIMEDOUT);
}

size_t signals_count(const struct guest *guest)
{
	size_t n = 0;

	for (const struct signals_sent *s = guest->signalled; s; s = s->next)
		n++;
	return n;
}

static int signals_room(const struct guest *guest, uid_t owner, struct iocom_err *err)
{
	static const struct places places = {
		.what = "signals that wait for supervisors that do not answer",
		.limit = "signals",
		.one = "signals",
		.max = SIGNALS_MAX,
		.of_root = SIGNALS_OF_ROOT,
		.of_one = SIGNALS_OF_ONE,
	};
	size_t all = 0, own = 0;

	for (const struct signals_sent *s = guest->signalled; s; s = s->next) {
		all++;
		own += s->owner == owner;
	}
	return places_ask(&places, owner, all, own, guest->base->counters, err);
}

/* Waits for the answer on FD of JOB's shim; FD may be a negative errno.  0 or negative errno. */
static int signals_await(struct guest *guest, const struct job *job, int fd, signals_done done,
			 void *arg)
{
	struct signals_sent *s;
	int rc;

	if (fd < 0)
		return fd;
	s = calloc(1, sizeof(*s));
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	*s = (struct signals_sent){
		.guest = guest, .owner = job->order.uid, .done = done, .arg = arg};
	memcpy(s->job, job->order.job, sizeof(s->job));
	s->entry = (struct loop_fd){.fd = fd, .ready = signals_ready, .arg = s};
	s->timer = (struct loop_timer){.fire = signals_overdue, .arg = s};
	rc = loop_add(guest->base->loop, &s->entry, EPOLLIN);
	if (rc) {
		close(fd);
		free(s);
		return rc;
	}
	s->next = guest->signalled;
	guest->signalled = s;
	loop_start(guest->base->loop, &s->timer, SIGNALS_WAIT_MS * CLOCK_NS_PER_MS);
	return 0;
}

/* Asks JOB's shim; 0 or negative errno. */
static int signals_ask(struct guest *guest, const struct job *job, int signal, signals_done done,
		       void *arg)
{
	return signals_await(
		guest, job,
		guest->launcher->signal_ask(guest->run_jobs_dir, job->order.job, signal), done,
		arg);
}

int signals_expel(struct guest *guest, const struct job *job, int signal, const char *why)
{
	return signals_await(
		guest, job,
		guest->launcher->expel_ask(guest->run_jobs_dir, job->order.job, signal, why), NULL,
		NULL);
}

int signals_decide(struct guest *guest, const struct job *job, enum launch_decision decision,
		   signals_done done, void *arg)
{
	return signals_await(
		guest, job,
		guest->launcher->decide_ask(guest->run_jobs_dir, job->order.job, decision), done,
		arg);
}

/* Which jobs exist is secret from other users: all cases get the same sentence. */
static int none_of_his(const struct guest *guest, const char *name, int rc, struct iocom_err *err)
{
	return iocom_err_set(err, rc, "no job of yours named %s runs at node %s", name,
			     guest->base->set->name);
}

int signals_send(struct guest *guest, const char *name, uid_t uid, int signal, signals_done done,
		 void *arg, struct iocom_err *err)
{
	const struct job *job = jobs_find(&guest->jobs, name);
	struct iocom_err full = {0};
	int rc;

	if (!job || job->state == JOB_ENDED || job->state == JOB_LEASED)
		return none_of_his(guest, name, -ESRCH, err);
	if (uid != 0 && uid != job->order.uid)
		return none_of_his(guest, name, -EPERM, err);
	if (!signal)
		return 0;
	if (signals_room(guest, job->order.uid, &full)) {
		guest->base->counters->signals_refused++;
		return iocom_err_set(err, -EAGAIN, "cannot signal job %s: %.250s", name, full.text);
	}
	rc = signals_ask(guest, job, signal, done, arg);
	return rc ? iocom_err_set(err, rc, "cannot signal job %s: %s", name, strerror(-rc)) : 0;
}

void signals_stop(struct guest *guest)
{
	while (guest->signalled)
		signals_answered(guest->signalled, -ECANCELED);
}

/* --- a question of a home: PEER_KILL ------------------------------------------- */

struct killing {
	struct guest *guest;
	uint64_t ticket;
};

static void signals_told(void *arg, int rc, const char *why)
{
	struct killing *k = arg;
	struct peer_answer answer = {.ok = rc == 0, .error = rc};

	snprintf(answer.text, sizeof(answer.text), "%s", why);
	k->guest->ports->answer(k->guest->ports->ask_arg, k->ticket, PEER_KILL, &answer);
	free(k);
}

int guest_on_kill(void *arg, const struct peer_request *r, uint64_t ticket,
		  struct peer_answer *answer)
{
	struct killing *k = malloc(sizeof(*k));
	struct iocom_err err = {0};
	int rc;

	if (!k)
		return -ENOMEM;
	*k = (struct killing){arg, ticket};
	rc = signals_send(arg, r->job, r->kill.uid, r->kill.signal, signals_told, k, &err);
	if (!rc && r->kill.signal)
		return PEERS_LATER;
	free(k);
	answer->ok = rc == 0;
	answer->error = rc;
	if (rc)
		peer_answer_refuse(answer, "%s", err.text);
	return 0;
}
