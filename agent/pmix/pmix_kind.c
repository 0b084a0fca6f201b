/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pmix_kind.h. */
#include "agent/pmix/pmix_kind.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pmix/pmix_own.h"
#include "iocom/array.h"

/* --- what the hub brings ----------------------------------------------------------------- */

/* libpmix frees by this what it was given. */
static void kind_release(void *data)
{
	free(data);
}

/* Hands a copy of DATA to whoever waits by MODEX. */
static void kind_answer(pmix_modex_cbfunc_t modex, void *arg, pmix_status_t status,
			const void *data, size_t length)
{
	char *copy = malloc(length + 1);

	if (!copy) {
		modex(PMIX_ERR_NOMEM, NULL, 0, arg, NULL, NULL);
		return;
	}
	if (length)
		memcpy(copy, data, length);
	modex(status, copy, length, arg, kind_release, copy);
}

static void kind_all(void *arg, const void *data, size_t length)
{
	struct pmix_launch *p = arg;
	pmix_modex_cbfunc_t modex = p->fence;

	p->fence = NULL;
	if (modex)
		kind_answer(modex, p->fence_arg, PMIX_SUCCESS, data, length);
}

static void kind_asked(void *arg, uint32_t from, uint32_t id, uint32_t rank)
{
	struct pmix_launch *p = arg;

	if (pmix_module_ask(p->nspace, rank, from, id) != PMIX_SUCCESS)
		(void)hub_tell(p->hub, from, id, PMIX_ERR_NOT_FOUND, "", 0);
}

static void kind_told(void *arg, uint32_t id, int32_t status, const void *data, size_t length)
{
	struct pmix_launch *p = arg;

	for (size_t i = 0; i < p->nquestions; i++) {
		struct pmix_question q = p->questions[i];

		if (q.id != id)
			continue;
		p->questions[i] = p->questions[--p->nquestions];
		/* The part that had it is gone. */
		kind_answer(q.modex, q.modex_arg,
			    status == -EHOSTUNREACH ? PMIX_ERR_UNREACH : status, data, length);
		return;
	}
}

static const struct hub_calls kind_calls = {
	.all = kind_all, .asked = kind_asked, .told = kind_told};

/* --- what libpmix brings ------------------------------------------------------------------- */

/* The place of RANK among those of this part; COUNT: it is not here. */
static uint32_t kind_place(const struct pmix_launch *p, uint32_t rank)
{
	uint32_t i = 0;

	while (i < p->tasks->count && p->tasks->ranks[i] != rank)
		i++;
	return i;
}

static void kind_mark(const struct pmix_launch *p, bool *marks, uint32_t rank)
{
	uint32_t i = kind_place(p, rank);

	if (i < p->tasks->count)
		marks[i] = true;
}

static int kind_want(struct pmix_launch *p, const struct pmix_event *e)
{
	if (array_reserve(p->questions, p->questions_room, p->nquestions + 1, 8))
		return -ENOMEM;
	p->questions[p->nquestions++] = (struct pmix_question){
		.id = ++p->last_id, .modex = e->modex, .modex_arg = e->modex_arg};
	return hub_ask(p->hub, p->last_id, e->rank);
}

static void kind_abort(struct pmix_launch *p, const struct pmix_event *e)
{
	/* An abort is a failure, whatever number the program gives. */
	int status = tasks_exited(e->status & 0xff ? e->status & 0xff : 1);
	char text[160];

	snprintf(text, sizeof(text), "rank %u on %s called MPI_Abort with status %d", e->rank,
		 tasks_node(p->tasks), e->status);
	hub_abort(p->hub, e->rank, status, text);
	tasks_fail(p->tasks, e->rank, status, text);
}

static void kind_event(struct pmix_launch *p, const struct pmix_event *e)
{
	int rc = 0;

	switch (e->type) {
	case PMIX_EVENT_CONNECTED:
		kind_mark(p, p->connected, e->rank);
		hub_began(p->hub, e->rank, true);
		break;
	case PMIX_EVENT_FINALIZED:
		kind_mark(p, p->finalized, e->rank);
		break;
	case PMIX_EVENT_FENCE:
		p->fence = e->modex;
		p->fence_arg = e->modex_arg;
		rc = hub_fence(p->hub, e->data, e->length);
		break;
	case PMIX_EVENT_WANTED:
		rc = kind_want(p, e);
		break;
	case PMIX_EVENT_KNOWN:
		rc = hub_tell(p->hub, e->part, e->id, e->status, e->data, e->length);
		break;
	case PMIX_EVENT_ABORT:
		kind_abort(p, e);
		break;
	}
	if (rc && e->modex) {
		p->fence = NULL;
		e->modex(PMIX_ERROR, NULL, 0, e->modex_arg, NULL, NULL);
	}
}

static void kind_events(struct pmix_launch *p)
{
	struct pmix_event *event = pmix_events_take(&p->events), *next;

	for (; event; event = next) {
		next = event->next;
		kind_event(p, event);
		pmix_event_free(event);
	}
}

static void kind_ready(struct tasks *tasks, int fd, short events, void *arg)
{
	(void)tasks;
	(void)fd;
	(void)events;
	kind_events(arg);
}

/* --- the kind --------------------------------------------------------------------------------- */

static int kind_no_server(const struct pmix_launch *p, pmix_status_t rc, struct iocom_err *err)
{
	return iocom_err_set(err, -EPROTO, "libpmix %s cannot serve the ranks on node %s: %s",
			     PMIx_Get_version(), tasks_node(p->tasks), PMIx_Error_string(rc));
}

static int kind_serve(struct pmix_launch *p, struct iocom_err *err)
{
	pmix_info_t info[3];
	pmix_status_t rc;
	bool yes = true;

	snprintf(p->nspace, sizeof(p->nspace), "%s", p->tasks->plan.gang);
	PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, p->dir, PMIX_STRING);
	PMIX_INFO_LOAD(&info[1], PMIX_HOSTNAME, tasks_node(p->tasks), PMIX_STRING);
	PMIX_INFO_LOAD(&info[2], PMIX_SERVER_SHARE_TOPOLOGY, &yes, PMIX_BOOL);
	rc = PMIx_server_init(pmix_module(&p->events, p->nspace, p->tasks->plan.tasks), info, 3);
	PMIX_INFO_DESTRUCT(&info[0]);
	PMIX_INFO_DESTRUCT(&info[1]);
	p->serving = rc == PMIX_SUCCESS;
	if (rc == PMIX_SUCCESS)
		rc = pmix_register(p);
	return rc == PMIX_SUCCESS ? 0 : kind_no_server(p, rc, err);
}

static int kind_prepare(struct tasks *tasks, uint16_t *port, struct iocom_err *err)
{
	struct pmix_launch *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return iocom_err_set(err, -ENOMEM, "there is no memory for PMIx");
	tasks->own = p;
	p->tasks = tasks;
	p->lock = -1;
	p->hub = hub_new(tasks, &kind_calls, p);
	p->connected = calloc(tasks->count, sizeof(*p->connected));
	p->finalized = calloc(tasks->count, sizeof(*p->finalized));
	if (!p->hub || !p->connected || !p->finalized || pmix_events_init(&p->events) ||
	    tasks_watch(tasks, p->events.wake, POLLIN, kind_ready, p))
		return iocom_err_set(err, -ENOMEM, "there is no memory for PMIx");
	rc = pmix_dir_make(p, err);
	if (!rc)
		rc = kind_serve(p, err);
	return rc ? rc : hub_listen(p->hub, port, err);
}

static int kind_join(struct tasks *tasks, const char *address, uint16_t port, struct iocom_err *err)
{
	struct pmix_launch *p = tasks->own;

	return hub_join(p->hub, address, port, err);
}

/* Whether the ranks here are more than the processors that they may use. */
static bool kind_crowded(const struct tasks *tasks)
{
	cpu_set_t ours;

	return !sched_getaffinity(0, sizeof(ours), &ours) &&
	       tasks->count > (uint32_t)CPU_COUNT(&ours);
}

static int kind_task(struct tasks *tasks, uint32_t rank, struct task_env *env, int *fd,
		     struct iocom_err *err)
{
	struct pmix_launch *p = tasks->own;
	pmix_status_t rc;
	pmix_proc_t proc;

	(void)fd;
	PMIX_LOAD_PROCID(&proc, p->nspace, rank);
	rc = PMIx_server_setup_fork(&proc, &env->list);
	for (env->count = 0; env->list[env->count];)
		env->count++;
	if (rc != PMIX_SUCCESS)
		return kind_no_server(p, rc, err);
	/*
	 * Open MPI 4 asks its schizo components who has started it: those for other launchers must
	 * not take it for a program on its own, and ess/pmi is the way to any PMIx server.
	 */
	if (task_env_set(env, "OMPI_MCA_schizo", "ompi") ||
	    task_env_set(env, "OMPI_MCA_ess", "pmi") ||
	    /* Ranks that wait give way to the others where there are more than processors. */
	    (kind_crowded(tasks) && !task_env_has(env, "OMPI_MCA_mpi_yield_when_idle") &&
	     task_env_set(env, "OMPI_MCA_mpi_yield_when_idle", "1")) ||
	    /* What its ranks share goes with the launcher's directory. */
	    (!task_env_has(env, "OMPI_MCA_btl_vader_backing_directory") &&
	     task_env_set(env, "OMPI_MCA_btl_vader_backing_directory", "%s", p->dir)))
		return iocom_err_set(err, -ENOMEM, "there is no memory for rank %u", rank);
	return 0;
}

static void kind_ended(struct tasks *tasks, uint32_t rank, int status)
{
	struct pmix_launch *p = tasks->own;
	uint32_t i = kind_place(p, rank);
	char text[160];

	kind_events(p); /* an abort, or its finalize, came before */
	if (status) {
		hub_abort(p->hub, rank, status, NULL);
	} else if (p->connected[i] && !p->finalized[i]) {
		snprintf(text, sizeof(text), "rank %u on %s ended without MPI_Finalize", rank,
			 tasks_node(tasks));
		hub_abort(p->hub, rank, tasks_exited(1), text);
		tasks_fail(tasks, rank, tasks_exited(1), text);
	} else if (!p->connected[i]) {
		hub_began(p->hub, rank, false);
	}
}

static bool kind_done(struct tasks *tasks)
{
	struct pmix_launch *p = tasks->own;

	return hub_done(p->hub);
}

static uint64_t kind_turn(struct tasks *tasks, uint64_t now_ms)
{
	struct pmix_launch *p = tasks->own;

	return hub_turn(p->hub, now_ms);
}

static void kind_stop(struct tasks *tasks)
{
	struct pmix_launch *p = tasks->own;

	if (!p)
		return;
	if (p->hub)
		hub_say_alone(p->hub, "a program of MPICH needs --mpi=pmi1");
	hub_free(p->hub);
	if (p->serving)
		PMIx_server_finalize();
	pmix_dir_remove(p);
	if (p->events.last)
		pmix_events_deinit(&p->events);
	free(p->questions);
	free(p->connected);
	free(p->finalized);
	free(p);
	tasks->own = NULL;
}

const struct tasks_kind pmix_kind = {
	.prepare = kind_prepare,
	.join = kind_join,
	.task = kind_task,
	.ended = kind_ended,
	.done = kind_done,
	.turn = kind_turn,
	.stop = kind_stop,
};
