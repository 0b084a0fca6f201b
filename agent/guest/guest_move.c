/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs that move, at both of their nodes.  Where the job is: home asks whether it may move, then
 * says where to; the node there is called, and the job's shim gets the connection.  At both: when
 * the job is held, home is asked what it decides, again and again until it has.
 *
 *   movable -> move -> (shims) held -> home: leave | stay
 *                       there: held -> home: go | abort
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/base/question_thread.h"
#include "agent/guest/guest_own.h"
#include "agent/guest/move_call.h"
#include "agent/guest/signals.h"
#include "user/clock.h"
#include "user/record.h"

#define MOVE_ANSWER_NS	 (15 * CLOCK_NS_PER_S) /* for a shim to freeze its job */
#define MOVE_ASK_SOON_NS (200 * CLOCK_NS_PER_MS)
#define MOVE_OBEY_NS	 (60 * CLOCK_NS_PER_S) /* for a shim to let a job that came run, or end */

/* --- may it move? -------------------------------------------------------------------------- */

/* Why JOB cannot move, as far as this agent knows; its shim knows more.  NULL: it may. */
static const char *move_hindrance(const struct job *job)
{
	if (job->state != JOB_RUNNING || job->late)
		return "it is not running yet, or its supervisor does not answer";
	if (job->move.number || job->move.held)
		return "it is on its way already";
	if (job->order.gang_tasks)
		return "it is a part of a parallel job";
	if (job->order.data)
		return "its data went along with it to this node";
	return NULL;
}

/* Returns the job that home's question R is about; NULL: ANSWER says why not. */
static struct job *move_job(struct guest *guest, const struct peer_request *r,
			    struct peer_answer *answer)
{
	struct job *job = jobs_find(&guest->jobs, r->job);
	const char *why;

	if (!job || strcmp(job->order.home, r->from) != 0) {
		peer_answer_refuse(answer, "no job of yours named %s runs here", r->job);
		return NULL;
	}
	why = move_hindrance(job);
	if (!why)
		return job;
	peer_answer_refuse(answer, "%s", why);
	return NULL;
}

int guest_on_movable(void *arg, const struct peer_request *r, uint64_t ticket,
		     struct peer_answer *answer)
{
	struct guest *guest = arg;
	const struct job *job = move_job(guest, r, answer);
	struct job_order order;

	(void)ticket;
	if (!job)
		return 0;
	order = job->order;
	job_order_forget(&order);		  /* the next attempt gets a secret of its own */
	order.move = order.move ? order.move : 1; /* home gives it its number */
	order.processor = guest->config.processor;
	order.done_cpu_ms += (double)job->load.cpu_ns / 1e6 * guest->config.cpu_speed;
	order.done_requests += (double)(job->load.explicit_ops + job->load.implicit_ops);
	msgpack_sbuffer_destroy(&guest->order_packed);
	msgpack_sbuffer_init(&guest->order_packed);
	job_order_pack(&order, &guest->order_packed);
	answer->ok = true;
	answer->order.packed = guest->order_packed.data;
	answer->order.length = guest->order_packed.size;
	return 0;
}

/* --- the call, and the shim's answer --------------------------------------------------------- */

/* Home's question, until the shim has begun. */
struct moving {
	struct question_task task; /* the call */
	struct moving *next;
	struct guest *guest;
	uint64_t ticket;
	struct peer_move to;
	char job[SPEC_JOB_MAX];
	void *packed; /* the spec */
	size_t length;
	/* What the thread has found. */
	int fd;
	struct records records;
	struct iocom_err err;
	/* The shim's answer. */
	struct loop_fd entry;
	struct loop_timer timer;
};

static void moving_free_task(struct question_task *task)
{
	struct moving *m = (struct moving *)task;

	if (m->fd >= 0)
		close(m->fd);
	records_erase(&m->records);
	explicit_bzero(m->to.key, sizeof(m->to.key));
	free(m->packed);
	free(m);
}

/* Answers home and frees M. */
static void moving_end(struct moving *m, int rc, const char *why)
{
	struct guest *guest = m->guest;
	struct job *job = jobs_find(&guest->jobs, m->job);
	struct peer_answer answer = {.ok = rc == 0, .error = rc};

	if (rc && job && job->move.number == m->to.number)
		job->move.number = 0;
	if (rc)
		peer_answer_refuse(&answer, "%s", *why ? why : strerror(-rc));
	guest->ports->answer(guest->ports->ask_arg, m->ticket, PEER_MOVE, &answer);
	moving_free_task(&m->task);
}

/* Stops waiting for the shim; M is no longer in the list. */
static void moving_unwait(struct moving *m)
{
	struct guest *guest = m->guest;

	for (struct moving **p = &guest->moving; *p; p = &(*p)->next)
		if (*p == m) {
			*p = m->next;
			break;
		}
	loop_cancel(guest->base->loop, &m->timer);
	loop_remove(guest->base->loop, &m->entry);
}

static void moving_ready(void *arg, uint32_t events)
{
	struct moving *m = arg;
	struct iocom_err err = {0};
	int rc = m->guest->launcher->move_answer(m->entry.fd, &err);

	(void)events;
	if (rc == -EAGAIN)
		return;
	moving_unwait(m);
	close(m->entry.fd);
	moving_end(m, rc, err.text);
}

static void moving_overdue(void *arg)
{
	struct moving *m = arg;

	moving_unwait(m);
	close(m->entry.fd);
	moving_end(m, -ETIMEDOUT, "its supervisor does not answer");
}

/* Gives the connection to the shim. */
static int moving_ask_shim(struct moving *m, struct iocom_err *err)
{
	struct guest *guest = m->guest;
	struct job *job = jobs_find(&guest->jobs, m->job);
	int fd, rc;

	if (!job || job->state != JOB_RUNNING)
		return iocom_err_set(err, -ESRCH, "it has ended");
	fd = guest->launcher->move_ask(guest->run_jobs_dir, m->job, guest->base->set->criu,
				       guest->base->set->moves_precopy, &m->records, m->fd);
	if (fd < 0)
		return iocom_err_set(err, fd, "its supervisor cannot be asked: %s", strerror(-fd));
	m->entry = (struct loop_fd){.fd = fd, .ready = moving_ready, .arg = m};
	m->timer = (struct loop_timer){.fire = moving_overdue, .arg = m};
	rc = loop_add(guest->base->loop, &m->entry, EPOLLIN);
	if (rc) {
		close(fd);
		return iocom_err_set(err, rc, "%s", strerror(-rc));
	}
	close(m->fd);
	m->fd = -1;
	m->next = guest->moving;
	guest->moving = m;
	loop_start(guest->base->loop, &m->timer, MOVE_ANSWER_NS);
	return 0;
}

static void moving_run(struct question_task *task)
{
	struct moving *m = (struct moving *)task;

	m->fd = move_call(&m->to, m->job, m->packed, m->length, &m->records, &m->err);
}

static void moving_called(struct question_task *task, int rc)
{
	struct moving *m = (struct moving *)task;
	struct guest *guest = m->guest;
	struct iocom_err err = {0};

	if (rc) { /* the thread frees M */
		struct peer_answer answer = {.error = rc};
		struct job *job = jobs_find(&guest->jobs, m->job);

		if (job)
			job->move.number = 0;
		peer_answer_refuse(&answer, "the call of node %s took too long", m->to.node);
		guest->ports->answer(guest->ports->ask_arg, m->ticket, PEER_MOVE, &answer);
		return;
	}
	if (m->fd < 0) {
		moving_end(m, m->fd, m->err.text);
		return;
	}
	rc = moving_ask_shim(m, &err);
	if (rc)
		moving_end(m, rc, err.text);
}

/* The spec as the shim there needs it: what the job is comes with its images. */
static int move_spec(const struct job *job, const struct peer_move *to, struct moving *m,
		     struct iocom_err *err)
{
	char *argv[] = {(char *)job->order.command, NULL}, *env[] = {NULL};
	struct spec spec = {
		.executable = (char *)job->order.executable,
		.cwd = (char *)job->order.cwd,
		.argv = argv,
		.env = env,
		.umask = 022,
		.detach = !job->attached,
		.migratable = true,
	};

	if (!*job->order.executable)
		spec.executable = argv[0];
	snprintf(spec.job, sizeof(spec.job), "%s", job->order.job);
	snprintf(spec.node, sizeof(spec.node), "%s", to->node);
	snprintf(spec.nonce, sizeof(spec.nonce), "%s", to->nonce);
	snprintf(spec.class_name, sizeof(spec.class_name), "%s", job->order.class_name);
	return spec_pack(&spec, &m->packed, &m->length, err);
}

static int move_begin(struct guest *guest, struct job *job, const struct peer_move *to,
		      uint64_t ticket, struct iocom_err *err)
{
	struct moving *m;
	int rc = 0;

	if (!guest->calls)
		rc = question_thread_new(&guest->calls, guest->base->loop, 2 * MOVE_CALL_MS,
					 MOVE_CALLS_MAX, err);
	if (rc)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	m->task = (struct question_task){
		.run = moving_run, .done = moving_called, .free = moving_free_task};
	m->guest = guest;
	m->ticket = ticket;
	m->to = *to;
	m->fd = -1;
	memcpy(m->job, job->order.job, sizeof(m->job));
	rc = move_spec(job, to, m, err);
	if (rc) {
		moving_free_task(&m->task);
		return rc;
	}
	job->move.number = to->number;
	memcpy(job->move.target, to->node, sizeof(job->move.target));
	rc = question_thread_ask(guest->calls, &m->task);
	if (!rc)
		return 0;
	job->move.number = 0;
	guest->base->counters->moves_refused++;
	return iocom_err_set(err, rc, "too many jobs move at a time");
}

int guest_on_move(void *arg, const struct peer_request *r, uint64_t ticket,
		  struct peer_answer *answer)
{
	struct guest *guest = arg;
	struct job *job = move_job(guest, r, answer);
	struct iocom_err err = {0};

	if (!job)
		return 0;
	if (!move_begin(guest, job, &r->move, ticket, &err))
		return PEERS_LATER;
	peer_answer_refuse(answer, "%s", err.text);
	return 0;
}

/* --- held: home decides ----------------------------------------------------------------------- */

struct move_question {
	struct guest *guest;
	char job[SPEC_JOB_MAX];
};

static void move_ask_home(struct guest *guest, struct job *job);

static void move_obeyed(void *arg, int rc, const char *why)
{
	struct move_question *q = arg;
	struct job *job = jobs_find(&q->guest->jobs, q->job);

	(void)why;
	/* Otherwise home is asked again, and says the same. */
	if (job && (!rc || rc == -EALREADY)) {
		job->move.held = false;
		job->move.number = 0;
	}
	if (job)
		job->move.asking = false;
	free(q);
}

/* Tells the shim.  Takes Q. */
static void move_obey(struct move_question *q, struct job *job, enum peer_decision decision)
{
	static const enum launch_decision words[PEER_DECISIONS] = {
		[PEER_STAY] = LAUNCH_STAY,
		[PEER_LEAVE] = LAUNCH_LEAVE,
		[PEER_GO] = LAUNCH_GO,
		[PEER_ABORT] = LAUNCH_ABORT,
	};
	bool fits = job->move.said.there ? decision == PEER_GO || decision == PEER_ABORT
					 : decision == PEER_STAY || decision == PEER_LEAVE;

	/* It may run when home says so, and has renewed its lease for this node. */
	if (decision == PEER_GO && fits && job->lease.fenced)
		decision = PEER_ABORT;
	if (decision == PEER_GO && fits && !guest_lease_runs(q->guest, job)) {
		job->move.asking = false;
		job->move.asked_ns = loop_boot_ns(q->guest->base->loop);
		if (!job->lease.asking)
			guest_lease_ask(q->guest, job);
		free(q);
		return;
	}
	job->move.asking = fits;
	if (fits && !job->move.told)
		job->move.told_ns = loop_boot_ns(q->guest->base->loop);
	job->move.told |= fits;
	if (fits && !signals_decide(q->guest, job, words[decision], move_obeyed, q))
		return;
	job->move.asking = false;
	job->move.asked_ns = loop_boot_ns(q->guest->base->loop);
	free(q);
}

static void move_decided(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct move_question *q = arg;
	struct job *job = jobs_find(&q->guest->jobs, q->job);

	(void)why;
	if (job && job->move.held && !rc && answer->ok) {
		move_obey(q, job, answer->decision);
		return;
	}
	if (job)
		job->move.asking = false;
	free(q);
}

static void move_ask_home(struct guest *guest, struct job *job)
{
	struct peer_request request = {.type = PEER_HELD, .held = job->move.said};
	const struct job_order *o = &job->order;
	struct move_question *q = malloc(sizeof(*q));
	struct iocom_err err = {0};

	if (!q)
		return;
	q->guest = guest;
	memcpy(q->job, o->job, sizeof(q->job));
	memcpy(request.job, o->job, sizeof(request.job));
	request.held.number = job->move.said.there ? o->move : job->move.number;
	job->move.asking = true;
	job->move.asked_ns = loop_boot_ns(guest->base->loop);
	if (!guest->ports->ask(guest->ports->ask_arg, o->home, o->home_address, o->home_port,
			       &request, move_decided, q, &err))
		return;
	job->move.asking = false;
	free(q);
}

/* JOB came, and its shim holds it until it is told what home decided. */
static bool move_awaits_word(const struct job *job)
{
	return job->move.held && job->move.said.there && !job->move.told;
}

void guest_move_leased(struct guest *guest, struct job *job)
{
	if (move_awaits_word(job) && !job->move.asking)
		move_ask_home(guest, job);
}

void guest_move_held(struct guest *guest, struct job *job, const struct launch_event *e)
{
	job->move.held = true;
	job->move.told = false;
	if (e->type == LAUNCH_READY)
		job->lease.until_ns = 0; /* whatever was assumed */
	job->move.said = (struct peer_held){
		.there = e->type == LAUNCH_READY,
		.failed = e->failed,
		.frozen_ms = e->frozen_ms,
		.dump_ms = e->dump_ms,
		.bytes = e->bytes,
	};
	snprintf(job->move.said.text, sizeof(job->move.said.text), "%s", e->text);
	if (!e->failed && *e->text)
		log_write(guest->base->log, LOG_L_INFO, "job %s is held to move: %.255s",
			  job->order.job, e->text);
	if (!job->move.asking)
		move_ask_home(guest, job);
}

/*
 * The job came, and its shim does not do what it is told.  The source stands still until it runs
 * here, so that must end: what there is of it is killed, and nobody knows whether it has run.
 */
static bool move_is_disobeyed(const struct job *job, uint64_t now)
{
	return job->move.held && job->move.said.there && job->move.told &&
	       job->state != JOB_ENDED && now - job->move.told_ns >= MOVE_OBEY_NS;
}

void guest_move_chores(struct guest *guest)
{
	uint64_t now = loop_boot_ns(guest->base->loop);

	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (move_is_disobeyed(job, now)) {
			guest_shim_close(guest, job);
			guest_lost(
				guest, job,
				"it moved here, and its supervisor does not answer; it was ended");
		} else if (job->move.held && !job->move.asking && job->state != JOB_ENDED &&
			   now - job->move.asked_ns >= MOVE_ASK_SOON_NS) {
			move_ask_home(guest, job);
		}
	}
}

void guest_move_stop(struct guest *guest)
{
	while (guest->moving) {
		struct moving *m = guest->moving;

		moving_unwait(m);
		close(m->entry.fd);
		moving_free_task(&m->task);
	}
	question_thread_free(guest->calls);
	guest->calls = NULL;
	msgpack_sbuffer_destroy(&guest->order_packed);
	msgpack_sbuffer_init(&guest->order_packed);
}

/* --- the end here ------------------------------------------------------------------------------
 */

/*
 * It came here by a move, and its shim waits for a decision, or is not that far.  What an earlier
 * agent told a shim is not known, so there only one that says that it waits has run nothing.
 */
bool guest_move_never_ran(const struct job *job)
{
	bool coming = job->order.move && job->state == JOB_LAUNCHING && !job->found;

	return move_awaits_word(job) || (coming && !job->move.told);
}

bool guest_move_waits(const struct job *job)
{
	return job->order.move && (job->state == JOB_LAUNCHING || move_awaits_word(job));
}

const char *guest_move_hindrance(const struct job *job)
{
	return job->order.migratable || job->order.move ? move_hindrance(job)
							: "it was not started with --migratable";
}

bool guest_move_left(const struct job *job)
{
	return job->end.kind == RECORD_MOVED;
}

bool guest_move_is_elsewhere(const struct guest *guest, const char *job, uid_t uid)
{
	const struct job *known = jobs_find(&guest->jobs, job);

	if (known)
		return known->state == JOB_ENDED && guest_move_left(known) &&
		       (uid == 0 || uid == known->order.uid);
	return journal_has_left(guest->journal, job, uid);
}

bool guest_move_stayed(const struct job *job)
{
	return job->order.move && job->end.kind == 3 && job->end.value == LAUNCH_NEVER;
}
