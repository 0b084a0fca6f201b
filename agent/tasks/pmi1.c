/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pmi1.h. */
#include "agent/tasks/pmi1.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/tasks/hub.h"
#include "agent/tasks/pmi1_keys.h"
#include "agent/tasks/pmi1_line.h"

#define PMI1_MAPPING	"PMI_process_mapping"
#define PMI1_UNREAD_MAX 65536 /* of answers that a rank has not read: it asks no more meanwhile */

struct pmi1_rank {
	struct pmi1 *pmi1;
	uint32_t rank;
	int fd; /* -1: closed */
	char text[PMI1_LINE_MAX];
	size_t length;
	struct queue out;
	bool inited, finalized, waits; /* at a barrier */
	bool spawns; /* within a request of several lines, which is refused at its end */
};

struct pmi1 {
	struct tasks *tasks;
	struct hub *hub;
	struct pmi1_keys keys;
	struct pmi1_rank *ranks; /* of this part */
	uint32_t waiting;	 /* ranks at the barrier */
};

int pmi1_mapping(const struct gang_plan *plan, char *out, size_t size)
{
	uint32_t *node = calloc(plan->tasks, sizeof(*node));
	size_t at = (size_t)snprintf(out, size, "(vector");

	if (!node)
		return -ENOMEM;
	for (uint32_t k = 0; k < plan->nnodes; k++)
		for (uint32_t i = 0; i < plan->nodes[k].tasks; i++)
			node[plan->ranks[plan->nodes[k].first + i]] = k;
	for (uint32_t i = 0, n; i < plan->tasks && at < size; i += n) {
		for (n = 1; i + n < plan->tasks && node[i + n] == node[i];)
			n++;
		at += (size_t)snprintf(out + at, size - at, ",(%u,1,%u)", node[i], n);
	}
	free(node);
	if (at + 2 > size)
		return -E2BIG;
	strcpy(out + at, ")");
	return 0;
}

/* --- answers ---------------------------------------------------------------------------- */

static void pmi1_flush(struct pmi1_rank *r)
{
	while (r->out.length && r->fd >= 0) {
		ssize_t n = send(r->fd, queue_front(&r->out), r->out.length,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* what is closed shows when it is read */
		queue_drop(&r->out, (size_t)n);
	}
	tasks_watch_events(r->pmi1->tasks, r->fd,
			   (short)((r->out.length < PMI1_UNREAD_MAX ? POLLIN : 0) |
				   (r->out.length ? POLLOUT : 0)));
}

__attribute__((format(printf, 2, 3))) static int pmi1_answer(struct pmi1_rank *r, const char *fmt,
							     ...)
{
	char text[PMI1_LINE_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (r->fd < 0)
		return 0; /* it hears nothing any more */
	if (n < 0 || n >= (int)sizeof(text) || queue_push(&r->out, text, (size_t)n))
		return -ENOMEM;
	pmi1_flush(r);
	return 0;
}

/* --- requests ----------------------------------------------------------------------------- */

static void pmi1_all(void *arg, const void *data, size_t length)
{
	struct pmi1 *p = arg;
	int rc = pmi1_keys_learn(&p->keys, data, length);

	if (rc) {
		tasks_fail(p->tasks, p->tasks->ranks[0], tasks_exited(TASKS_FAILED),
			   rc == -ENOSPC ? "the ranks have put too many keys"
					 : "another launcher sent no keys and values");
		return;
	}
	p->waiting = 0;
	for (uint32_t i = 0; i < p->tasks->count; i++)
		if (p->ranks[i].waits) {
			p->ranks[i].waits = false;
			(void)pmi1_answer(&p->ranks[i], "cmd=barrier_out\n");
		}
}

static const struct hub_calls pmi1_calls = {.all = pmi1_all};

static int pmi1_barrier(struct pmi1_rank *r)
{
	struct pmi1 *p = r->pmi1;
	struct queue fresh = p->keys.fresh;
	int rc;

	if (r->waits)
		return -EBADMSG;
	r->waits = true;
	if (++p->waiting < p->tasks->count)
		return 0;
	p->keys.fresh = (struct queue){0};
	rc = hub_fence(p->hub, fresh.length ? (const void *)queue_front(&fresh) : "", fresh.length);
	queue_free(&fresh);
	return rc;
}

static int pmi1_abort(struct pmi1_rank *r, const struct pmi1_line *line)
{
	const char *code = pmi1_line_get(line, "exitcode");
	int status = code ? atoi(code) & 0xff : 1;
	char text[160];

	snprintf(text, sizeof(text), "rank %u on %s called MPI_Abort with status %d", r->rank,
		 tasks_node(r->pmi1->tasks), status);
	/* An abort is a failure, whatever number the program gives. */
	status = tasks_exited(status ? status : 1);
	hub_abort(r->pmi1->hub, r->rank, status, text);
	tasks_fail(r->pmi1->tasks, r->rank, status, text);
	return 0;
}

static int pmi1_put(struct pmi1_rank *r, const struct pmi1_line *line)
{
	const char *key = pmi1_line_get(line, "key"), *value = pmi1_line_get(line, "value");
	int rc = key && value ? pmi1_keys_put(&r->pmi1->keys, key, value, true) : -EINVAL;

	if (rc == -EINVAL)
		return pmi1_answer(r, "cmd=put_result rc=-1 msg=bad_key_or_value\n");
	return rc ? rc : pmi1_answer(r, "cmd=put_result rc=0 msg=success\n");
}

static int pmi1_get(struct pmi1_rank *r, const struct pmi1_line *line)
{
	const char *key = pmi1_line_get(line, "key");
	const char *value = key ? pmi1_keys_get(&r->pmi1->keys, key) : NULL;

	if (!value)
		return pmi1_answer(r, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
	return pmi1_answer(r, "cmd=get_result rc=0 msg=success value=%s\n", value);
}

static int pmi1_init(struct pmi1_rank *r, const struct pmi1_line *line)
{
	const char *version = pmi1_line_get(line, "pmi_version");

	if (!version || strcmp(version, "1") != 0)
		return pmi1_answer(r,
				   "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
	r->inited = true;
	hub_began(r->pmi1->hub, r->rank, true);
	return pmi1_answer(r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static int pmi1_finalize(struct pmi1_rank *r)
{
	r->finalized = true;
	return pmi1_answer(r, "cmd=finalize_ack\n");
}

/* Returns 0 or negative errno: the rank is at fault, or there is no memory. */
static int pmi1_obey(struct pmi1_rank *r, const struct pmi1_line *line)
{
	const char *cmd = pmi1_line_get(line, "cmd");

	if (!cmd)
		return -EBADMSG;
	if (!strcmp(cmd, "init"))
		return pmi1_init(r, line);
	if (!strcmp(cmd, "get_maxes"))
		return pmi1_answer(r, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n",
				   PMI1_KEY_MAX, PMI1_KEY_MAX, PMI1_VALUE_MAX);
	if (!strcmp(cmd, "get_appnum"))
		return pmi1_answer(r, "cmd=appnum appnum=0\n");
	if (!strcmp(cmd, "get_my_kvsname"))
		return pmi1_answer(r, "cmd=my_kvsname kvsname=gang\n");
	if (!strcmp(cmd, "get_universe_size"))
		return pmi1_answer(r, "cmd=universe_size size=%u\n", r->pmi1->tasks->plan.tasks);
	if (!strcmp(cmd, "put"))
		return pmi1_put(r, line);
	if (!strcmp(cmd, "get"))
		return pmi1_get(r, line);
	if (!strcmp(cmd, "barrier_in"))
		return pmi1_barrier(r);
	if (!strcmp(cmd, "finalize"))
		return pmi1_finalize(r);
	if (!strcmp(cmd, "abort"))
		return pmi1_abort(r, line);
	/* What is not known here (names that are published, for one) is refused. */
	return pmi1_answer(r, "cmd=%.40s_result rc=-1 msg=not_supported\n", cmd);
}

/* MPI_Comm_spawn: several lines from "mcmd=spawn" to "endcmd", perhaps several of these. */
static int pmi1_spawn(struct pmi1_rank *r, const char *text)
{
	r->spawns = strcmp(text, "endcmd") != 0;
	if (r->spawns)
		return 0;
	dprintf(STDERR_FILENO,
		"iocom: rank %u on %s wants to start more ranks (MPI_Comm_spawn), which a gang "
		"cannot have\n",
		r->rank, tasks_node(r->pmi1->tasks));
	return pmi1_answer(r, "cmd=spawn_result rc=-1 msg=not_supported\n");
}

static int pmi1_take(struct pmi1_rank *r, char *text)
{
	struct pmi1_line line;

	if (r->spawns || !strncmp(text, "mcmd=spawn", strlen("mcmd=spawn")))
		return pmi1_spawn(r, text);
	return pmi1_line_parse(&line, text) ? -EBADMSG : pmi1_obey(r, &line);
}

/* Takes whole lines from what has come. */
static int pmi1_lines(struct pmi1_rank *r)
{
	char *end;
	int rc = 0;

	while (!rc && (end = memchr(r->text, '\n', r->length))) {
		size_t n = (size_t)(end - r->text) + 1;

		*end = 0;
		rc = memchr(r->text, 0, n - 1) ? -EBADMSG : pmi1_take(r, r->text);
		r->length -= n;
		memmove(r->text, end + 1, r->length);
	}
	return rc || r->length < sizeof(r->text) ? rc : -EBADMSG;
}

static void pmi1_close(struct pmi1_rank *r)
{
	if (r->fd < 0)
		return;
	tasks_unwatch(r->pmi1->tasks, r->fd);
	close(r->fd);
	r->fd = -1;
	queue_free(&r->out);
}

static void pmi1_ready(struct tasks *tasks, int fd, short events, void *arg)
{
	struct pmi1_rank *r = arg;
	char text[160];
	ssize_t n = 0;
	int rc = 0;

	if (events & POLLOUT)
		pmi1_flush(r);
	if (!(events & ~POLLOUT))
		return;
	n = recv(fd, r->text + r->length, sizeof(r->text) - r->length, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		r->length += (size_t)n;
		rc = pmi1_lines(r);
	}
	if (n > 0 && !rc)
		return;
	pmi1_close(r); /* if it was too early, its end will show it */
	if (rc) {
		if (rc == -ENOSPC)
			snprintf(text, sizeof(text), "rank %u on %s has put too many keys", r->rank,
				 tasks_node(tasks));
		else
			snprintf(text, sizeof(text),
				 "rank %u on %s spoke no PMI-1 to its launcher: %s", r->rank,
				 tasks_node(tasks), strerror(-rc));
		hub_abort(r->pmi1->hub, r->rank, tasks_exited(TASKS_FAILED), text);
		tasks_fail(tasks, r->rank, tasks_exited(TASKS_FAILED), text);
	}
}

/* --- the kind --------------------------------------------------------------------------------- */

static int pmi1_prepare(struct tasks *tasks, uint16_t *port, struct iocom_err *err)
{
	char mapping[PMI1_VALUE_MAX];
	struct pmi1 *p = calloc(1, sizeof(*p));

	if (!p)
		return iocom_err_set(err, -ENOMEM, "there is no memory for PMI-1");
	tasks->own = p;
	p->tasks = tasks;
	p->hub = hub_new(tasks, &pmi1_calls, p);
	p->ranks = calloc(tasks->count, sizeof(*p->ranks));
	if (!p->hub || !p->ranks)
		return iocom_err_set(err, -ENOMEM, "there is no memory for PMI-1");
	for (uint32_t i = 0; i < tasks->count; i++)
		p->ranks[i] = (struct pmi1_rank){.pmi1 = p, .rank = tasks->ranks[i], .fd = -1};
	/* Without it ranks of a node do not share memory, but run. */
	if (!pmi1_mapping(&tasks->plan, mapping, sizeof(mapping)) &&
	    pmi1_keys_put(&p->keys, PMI1_MAPPING, mapping, false))
		return iocom_err_set(err, -ENOMEM, "there is no memory for PMI-1");
	return hub_listen(p->hub, port, err);
}

static int pmi1_join(struct tasks *tasks, const char *address, uint16_t port, struct iocom_err *err)
{
	struct pmi1 *p = tasks->own;

	return hub_join(p->hub, address, port, err);
}

static struct pmi1_rank *pmi1_rank_of(struct pmi1 *p, uint32_t rank)
{
	uint32_t i = 0;

	while (p->ranks[i].rank != rank)
		i++;
	return &p->ranks[i];
}

static int pmi1_task(struct tasks *tasks, uint32_t rank, struct task_env *env, int *fd,
		     struct iocom_err *err)
{
	struct pmi1_rank *r = pmi1_rank_of(tasks->own, rank);
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return iocom_err_set(err, -errno, "cannot make a socket for rank %u: %s", rank,
				     strerror(errno));
	r->fd = ends[0];
	*fd = ends[1];
	if (tasks_watch(tasks, r->fd, POLLIN, pmi1_ready, r) ||
	    task_env_set(env, "PMI_FD", "%d", ends[1]) ||
	    task_env_set(env, "PMI_RANK", "%u", rank) ||
	    task_env_set(env, "PMI_SIZE", "%u", tasks->plan.tasks) ||
	    task_env_set(env, "PMI_SPAWNED", "0") ||
	    task_env_set(env, "MPI_LOCALNRANKS", "%u", tasks->count))
		return iocom_err_set(err, -ENOMEM, "there is no memory for rank %u", rank);
	return 0;
}

static void pmi1_ended(struct tasks *tasks, uint32_t rank, int status)
{
	struct pmi1 *p = tasks->own;
	struct pmi1_rank *r = pmi1_rank_of(p, rank);
	char text[160];

	/* It may have said more than was read yet. */
	if (r->fd >= 0)
		pmi1_ready(tasks, r->fd, POLLIN, r);
	pmi1_close(r);
	if (status) {
		hub_abort(p->hub, rank, status, NULL);
	} else if (r->inited && !r->finalized) {
		snprintf(text, sizeof(text), "rank %u on %s ended without MPI_Finalize", rank,
			 tasks_node(tasks));
		hub_abort(p->hub, rank, tasks_exited(1), text);
		tasks_fail(tasks, rank, tasks_exited(1), text);
	} else if (!r->inited) {
		hub_began(p->hub, rank, false);
	}
}

static bool pmi1_done(struct tasks *tasks)
{
	struct pmi1 *p = tasks->own;

	return hub_done(p->hub);
}

static uint64_t pmi1_turn(struct tasks *tasks, uint64_t now_ms)
{
	struct pmi1 *p = tasks->own;

	return hub_turn(p->hub, now_ms);
}

static void pmi1_stop(struct tasks *tasks)
{
	struct pmi1 *p = tasks->own;

	if (!p)
		return;
	for (uint32_t i = 0; p->ranks && i < tasks->count; i++)
		pmi1_close(&p->ranks[i]);
	if (p->hub)
		hub_say_alone(p->hub, "a program of Open MPI needs --mpi=pmix");
	hub_free(p->hub);
	pmi1_keys_free(&p->keys);
	free(p->ranks);
	free(p);
	tasks->own = NULL;
}

const struct tasks_kind pmi1_kind = {
	.prepare = pmi1_prepare,
	.join = pmi1_join,
	.task = pmi1_task,
	.ended = pmi1_ended,
	.done = pmi1_done,
	.turn = pmi1_turn,
	.stop = pmi1_stop,
};
