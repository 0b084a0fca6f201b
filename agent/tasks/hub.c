/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See hub.h. */
#include "agent/tasks/hub.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/tasks/hub_line.h"
#include "iocom/array.h"
#include "user/clock.h"

#define HUB_REST_MS  100
#define HUB_DRAINS   64
#define HUB_DRAIN_MS 1000
#define HUB_ASKS_MAX 65536 /* questions to parts that have not connected yet */

/* What one part has given for the fence that is being collected. */
struct hub_given {
	uint8_t *data;
	uint32_t length;
	bool there;
};

struct hub {
	struct tasks *tasks;
	const struct gang_plan *plan;
	const struct hub_calls *calls;
	void *arg;
	int listen;		/* -1: none */
	struct hub_line *up;	/* to part 0; NULL in part 0 */
	struct hub_line **down; /* in part 0: to part K, at K; NULL: not connected */
	bool *joined;		/* in part 0: part K has been connected */
	uint32_t njoined;
	uint64_t join_until_ms;			     /* in part 0, from GO on */
	struct hub_line *unproven[HUB_UNPROVEN_MAX]; /* the oldest first */
	size_t nunproven;
	struct hub_given *given; /* in part 0: of each part */
	uint32_t ngiven;
	uint32_t *part_of;	  /* of each rank */
	struct hub_message *asks; /* in part 0: questions to parts that have not connected yet */
	size_t nasks, asks_room;
	bool failed, said_done;
	uint64_t rest_until_ms; /* no connection is accepted: descriptors are short */
	bool began, without;	/* what hub_began has told of this part; in part 0, of all */
	uint32_t without_rank;
};

static int hub_take(void *arg, struct hub_line *line, const struct hub_message *m);
static void hub_ready(struct tasks *tasks, int fd, short events, void *arg);
static void hub_broken(struct hub *hub, struct hub_line *line, int rc);

struct hub *hub_new(struct tasks *tasks, const struct hub_calls *calls, void *arg)
{
	const struct gang_plan *plan = &tasks->plan;
	struct hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return NULL;
	*hub = (struct hub){.tasks = tasks, .plan = plan, .calls = calls, .arg = arg, .listen = -1};
	hub->join_until_ms = UINT64_MAX;
	hub->down = calloc(plan->nnodes, sizeof(struct hub_line *));
	hub->joined = calloc(plan->nnodes, sizeof(*hub->joined));
	hub->given = calloc(plan->nnodes, sizeof(*hub->given));
	hub->part_of = calloc(plan->tasks, sizeof(*hub->part_of));
	if (!hub->down || !hub->joined || !hub->given || !hub->part_of) {
		hub_free(hub);
		return NULL;
	}
	for (uint32_t k = 0; k < plan->nnodes; k++)
		for (uint32_t i = 0; i < plan->nodes[k].tasks; i++)
			hub->part_of[plan->ranks[plan->nodes[k].first + i]] = k;
	return hub;
}

uint32_t hub_part_of(const struct hub *hub, uint32_t rank)
{
	return hub->part_of[rank];
}

static void hub_line_drop(struct hub *hub, struct hub_line *line)
{
	tasks_unwatch(hub->tasks, line->fd);
	hub_line_deinit(line);
	free(line);
}

static void hub_forget_given(struct hub *hub)
{
	for (uint32_t k = 0; k < hub->plan->nnodes && hub->given; k++) {
		free(hub->given[k].data);
		hub->given[k] = (struct hub_given){0};
	}
	hub->ngiven = 0;
}

/* Sends MESSAGE on LINE, and waits for its sending next time.  A broken line shows when served. */
static void hub_send(struct hub *hub, struct hub_line *line, const struct hub_message *m)
{
	(void)hub_line_send(line, m);
	tasks_watch_events(hub->tasks, line->fd, hub_line_events(line));
}

static void hub_send_all(struct hub *hub, const struct hub_message *m)
{
	for (uint32_t k = 0; k < hub->plan->nnodes; k++)
		if (hub->down[k])
			hub_send(hub, hub->down[k], m);
	if (hub->up)
		hub_send(hub, hub->up, m);
}

/* Waits a little until what was said is on its way. */
static void hub_drain(struct hub_line *line)
{
	struct pollfd p = {.fd = line->fd, .events = POLLOUT};

	for (int i = 0;
	     i < HUB_DRAINS && line->state == HUB_OPEN && (hub_line_events(line) & POLLOUT) &&
	     poll(&p, 1, HUB_DRAIN_MS) > 0 && !hub_line_flush(line);
	     i++)
		;
}

/* Sends "done", once; part 0 does so when it has heard it of all. */
static void hub_say_done(struct hub *hub)
{
	const struct hub_message done = {.op = HUB_DONE};

	if (!hub->said_done)
		hub_send_all(hub, &done);
	hub->said_done = true;
}

bool hub_done(struct hub *hub)
{
	if (hub->plan->part) {
		/* What is said before the handshake is over waits for it. */
		if (hub->up && hub->up->state == HUB_OPEN)
			hub_say_done(hub);
		return !hub->up || (hub->said_done && !(hub_line_events(hub->up) & POLLOUT));
	}
	for (uint32_t k = 1; k < hub->plan->nnodes; k++)
		if (!hub->joined[k] || (hub->down[k] && !hub->down[k]->done))
			return false;
	return true;
}

void hub_free(struct hub *hub)
{
	if (!hub)
		return;
	if (hub->down && hub->tasks->failing)
		hub_abort(hub, hub->tasks->ranks ? hub->tasks->ranks[0] : 0,
			  tasks_exited(hub->tasks->status), NULL);
	else if (hub->down)
		hub_say_done(hub);
	for (uint32_t k = 0; hub->down && k < hub->plan->nnodes; k++)
		if (hub->down[k]) {
			hub_drain(hub->down[k]);
			hub_line_drop(hub, hub->down[k]);
		}
	for (size_t i = 0; i < hub->nunproven; i++)
		hub_line_drop(hub, hub->unproven[i]);
	if (hub->up) {
		hub_drain(hub->up);
		hub_line_drop(hub, hub->up);
	}
	if (hub->listen >= 0) {
		tasks_unwatch(hub->tasks, hub->listen);
		close(hub->listen);
	}
	hub_forget_given(hub);
	free(hub->given);
	free(hub->part_of);
	free(hub->asks);
	free(hub->joined);
	free(hub->down);
	free(hub);
}

/* --- failures ---------------------------------------------------------------------------- */

void hub_abort(struct hub *hub, uint32_t rank, int status, const char *text)
{
	const struct hub_message m = {
		.op = HUB_ABORT,
		.id = (uint32_t)status,
		.rank = rank,
		.data = text,
		.length = text ? (uint32_t)strlen(text) : 0,
	};

	if (hub->failed)
		return;
	hub->failed = true;
	hub_send_all(hub, &m);
}

/* In part 0: some ranks wait for one that will not come. */
static void hub_check_began(struct hub *hub)
{
	uint32_t rank = hub->without_rank;
	char text[256];

	if (!hub->began || !hub->without || hub->failed)
		return;
	snprintf(text, sizeof(text),
		 "rank %u on %s ended without MPI_Init, which other ranks have called", rank,
		 hub->plan->nodes[hub->part_of[rank]].name);
	hub_abort(hub, rank, tasks_exited(1), text);
	tasks_fail(hub->tasks, rank, tasks_exited(1), text);
}

void hub_began(struct hub *hub, uint32_t rank, bool began)
{
	const struct hub_message m = {.op = began ? HUB_BEGAN : HUB_WITHOUT, .rank = rank};
	bool *known = began ? &hub->began : &hub->without;

	if (*known)
		return;
	*known = true;
	if (!began)
		hub->without_rank = rank;
	if (!hub->plan->part)
		hub_check_began(hub);
	else if (hub->up)
		hub_send(hub, hub->up, &m);
}

void hub_say_alone(const struct hub *hub, const char *hint)
{
	if (hub->plan->part || hub->plan->tasks < 2 || hub->began || !hub->without || hub->failed ||
	    hub->tasks->failing)
		return;
	fprintf(stderr, "iocom: none of the %u ranks called MPI_Init, so each ran alone; %s\n",
		hub->plan->tasks, hint);
}

/* This part, and all others, fail by PART for a reason that is no rank's end. */
static void hub_fail(struct hub *hub, uint32_t part, int value, const char *text)
{
	uint32_t rank = hub->plan->ranks[hub->plan->nodes[part].first];

	hub_abort(hub, rank, tasks_exited(value), text);
	tasks_fail(hub->tasks, rank, tasks_exited(value), text);
}

static void hub_lost(struct hub *hub, uint32_t part, int rc)
{
	int value = TASKS_FAILED;
	uint32_t by = hub->plan->part;
	char text[256];

	if (rc == -EACCES)
		snprintf(text, sizeof(text), "what listens on node %s is no launcher of gang %s",
			 hub->plan->nodes[part].name, hub->plan->gang);
	else if (rc == -EPIPE || rc == -ECONNRESET) {
		by = part;
		snprintf(text, sizeof(text), "the launcher on node %s has ended",
			 hub->plan->nodes[part].name);
	} else {
		value = TASKS_LOST;
		snprintf(text, sizeof(text), "contact between nodes %s and %s was lost: %s",
			 tasks_node(hub->tasks), hub->plan->nodes[part].name, strerror(-rc));
	}
	hub_fail(hub, by, value, text);
}

/* --- connections --------------------------------------------------------------------------- */

static void hub_forget_unproven(struct hub *hub, const struct hub_line *line)
{
	size_t i = 0;

	while (hub->unproven[i] != line)
		i++;
	memmove(&hub->unproven[i], &hub->unproven[i + 1],
		(--hub->nunproven - i) * sizeof(struct hub_line *));
}

/* Part K is who it said: its first sealed message has opened.  Returns 0, or -EBUSY: it is here. */
static int hub_prove(struct hub *hub, struct hub_line *line)
{
	if (hub->joined[line->part])
		return -EBUSY;
	hub_forget_unproven(hub, line);
	hub->down[line->part] = line;
	hub->joined[line->part] = true;
	hub->njoined++;
	/* What it was asked before it came. */
	for (size_t i = 0; i < hub->nasks;) {
		if (hub->asks[i].to != line->part) {
			i++;
			continue;
		}
		hub_send(hub, line, &hub->asks[i]);
		hub->asks[i] = hub->asks[--hub->nasks];
	}
	line->proven = true;
	return 0;
}

static void hub_accept(struct tasks *tasks, int fd, short events, void *arg)
{
	struct hub *hub = arg;
	uint64_t now_ms = clock_boot_ms();
	struct hub_line *line;
	int client;

	(void)events;
	if (hub->nunproven == HUB_UNPROVEN_MAX) {
		/* A part needs no longer than its messages take: who keeps silent makes room. */
		if (now_ms < hub->unproven[0]->since_ms + HUB_YOUNG_MS) {
			tasks_watch_events(tasks, fd, 0); /* hub_turn goes on with it */
			return;
		}
		hub_broken(hub, hub->unproven[0], -ETIMEDOUT);
	}
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	line = client < 0 ? NULL : calloc(1, sizeof(*line));
	if (!line || tasks_watch(tasks, client, POLLIN, hub_ready, hub)) {
		if (client >= 0)
			close(client);
		free(line);
		/* Descriptors or memory are short, and a moment later perhaps no more. */
		hub->rest_until_ms = now_ms + HUB_REST_MS;
		tasks_watch_events(tasks, fd, 0);
		return;
	}
	hub_line_init(line, client, false, hub->plan, now_ms);
	hub->unproven[hub->nunproven++] = line;
}

int hub_listen(struct hub *hub, uint16_t *port, struct iocom_err *err)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	struct sockaddr_in old = {.sin_family = AF_INET};
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);
	int off = 0;

	if (hub->plan->part || hub->plan->nnodes == 1)
		return 0;
	hub->listen = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (hub->listen >= 0 &&
	    (setsockopt(hub->listen, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	     bind(hub->listen, (struct sockaddr *)&any, sizeof(any)))) {
		close(hub->listen);
		hub->listen = -1;
	}
	if (hub->listen < 0) {
		hub->listen = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (hub->listen < 0 || bind(hub->listen, (struct sockaddr *)&old, sizeof(old)))
			return iocom_err_set(err, -errno,
					     "cannot listen for the gang's other parts: %s",
					     strerror(errno));
	}
	if (listen(hub->listen, GANG_PARTS_MAX) ||
	    getsockname(hub->listen, (struct sockaddr *)&at, &n) ||
	    tasks_watch(hub->tasks, hub->listen, POLLIN, hub_accept, hub))
		return iocom_err_set(err, -errno, "cannot listen for the gang's other parts: %s",
				     strerror(errno));
	*port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					       : ((struct sockaddr_in *)&at)->sin_port);
	return 0;
}

/* Begins a connection.  Returns the socket or negative errno. */
static int hub_connect(const char *address, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *at;
	char service[8];
	int fd, rc;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(*address ? address : "127.0.0.1", service, &hints, &at))
		return -EINVAL;
	fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -errno : 0;
	if (!rc && connect(fd, at->ai_addr, at->ai_addrlen) && errno != EINPROGRESS) {
		rc = -errno;
		close(fd);
	}
	freeaddrinfo(at);
	return rc ? rc : fd;
}

int hub_join(struct hub *hub, const char *address, uint16_t port, struct iocom_err *err)
{
	const char *node = hub->plan->nodes[0].name;
	int fd;

	if (!hub->plan->part) {
		hub->join_until_ms = clock_boot_ms() + HUB_JOIN_MS;
		return 0;
	}
	fd = hub_connect(address, port);
	if (fd < 0)
		return iocom_err_set(err, fd,
				     "node %s cannot connect to %s port %u, where the launcher on "
				     "node %s listens: %s",
				     tasks_node(hub->tasks), address, port, node, strerror(-fd));
	hub->up = calloc(1, sizeof(*hub->up));
	if (!hub->up || tasks_watch(hub->tasks, fd, POLLOUT, hub_ready, hub)) {
		close(fd);
		free(hub->up);
		hub->up = NULL;
		return iocom_err_set(err, -ENOMEM, "there is no memory for a connection to node %s",
				     node);
	}
	hub_line_init(hub->up, fd, true, hub->plan, clock_boot_ms());
	return 0;
}

/* The line with FD, or NULL. */
static struct hub_line *hub_line_of(struct hub *hub, int fd)
{
	if (hub->up && hub->up->fd == fd)
		return hub->up;
	for (size_t i = 0; i < hub->nunproven; i++)
		if (hub->unproven[i]->fd == fd)
			return hub->unproven[i];
	for (uint32_t k = 0; k < hub->plan->nnodes; k++)
		if (hub->down[k] && hub->down[k]->fd == fd)
			return hub->down[k];
	return NULL;
}

static void hub_broken(struct hub *hub, struct hub_line *line, int rc)
{
	bool counts = line->proven || line == hub->up, done = line->done;
	uint32_t part = line == hub->up ? 0 : line->part;

	if (line == hub->up) {
		hub->up = NULL;
	} else if (line->proven) {
		hub->down[part] = NULL;
	} else {
		hub_forget_unproven(hub, line);
	}
	hub_line_drop(hub, line);
	/* A stranger who comes and goes harms nobody. */
	if (counts && !done && !hub->failed)
		hub_lost(hub, part, rc);
}

static void hub_ready(struct tasks *tasks, int fd, short events, void *arg)
{
	struct hub *hub = arg;
	struct hub_line *line = hub_line_of(hub, fd);
	int rc;

	if (!line) {
		tasks_unwatch(tasks, fd);
		return;
	}
	rc = hub_line_serve(line, events, hub_take, hub);
	if (rc)
		hub_broken(hub, line, rc);
	else
		tasks_watch_events(tasks, fd, hub_line_events(line));
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A part has not come: its node cannot reach this one, or its launcher hangs. */
static void hub_missed(struct hub *hub)
{
	char text[256];
	uint32_t k = 1;

	while (hub->joined[k])
		k++;
	snprintf(text, sizeof(text),
		 "the launcher on node %s has not connected to that on node %s within %d s",
		 hub->plan->nodes[k].name, tasks_node(hub->tasks), HUB_JOIN_MS / 1000);
	hub_fail(hub, hub->plan->part, TASKS_FAILED, text);
}

/* Strangers, and who waits behind them. */
static uint64_t hub_turn_unproven(struct hub *hub, uint64_t now_ms)
{
	uint64_t young_until_ms;

	while (hub->nunproven && now_ms >= hub->unproven[0]->since_ms + HUB_PROVE_MS)
		hub_broken(hub, hub->unproven[0], -ETIMEDOUT);
	if (hub->listen >= 0 && now_ms < hub->rest_until_ms)
		return hub->rest_until_ms;
	if (hub->listen >= 0 && !hub->nunproven)
		tasks_watch_events(hub->tasks, hub->listen, POLLIN);
	if (!hub->nunproven || hub->listen < 0)
		return UINT64_MAX;
	young_until_ms = hub->unproven[0]->since_ms + HUB_YOUNG_MS;
	if (hub->nunproven < HUB_UNPROVEN_MAX || now_ms >= young_until_ms)
		tasks_watch_events(hub->tasks, hub->listen, POLLIN);
	else
		return young_until_ms;
	return hub->unproven[0]->since_ms + HUB_PROVE_MS;
}

uint64_t hub_turn(struct hub *hub, uint64_t now_ms)
{
	uint64_t due_ms = hub_turn_unproven(hub, now_ms);

	if (!hub->plan->part && hub->njoined + 1 < hub->plan->nnodes && !hub->failed) {
		if (now_ms >= hub->join_until_ms)
			hub_missed(hub);
		else
			due_ms = sooner(due_ms, hub->join_until_ms);
	}
	if (hub->up && hub->up->state != HUB_OPEN) {
		uint64_t until_ms = hub->up->since_ms + HUB_JOIN_MS;

		if (now_ms >= until_ms)
			hub_broken(hub, hub->up, -ETIMEDOUT);
		else
			due_ms = sooner(due_ms, until_ms);
	}
	return due_ms;
}

/* --- what is said ---------------------------------------------------------------------------- */

/* All parts have given: each gets everything. */
static int hub_complete(struct hub *hub)
{
	struct hub_message m = {.op = HUB_ALL};
	uint64_t length = 0;
	uint8_t *data;

	for (uint32_t k = 0; k < hub->plan->nnodes; k++)
		length += hub->given[k].length;
	if (length > HUB_MESSAGE_MAX)
		return -E2BIG;
	data = malloc(length + 1);
	if (!data)
		return -ENOMEM;
	for (uint32_t k = 0; k < hub->plan->nnodes; k++) {
		memcpy(data + m.length, hub->given[k].data, hub->given[k].length);
		m.length += hub->given[k].length;
	}
	hub_forget_given(hub);
	m.data = data;
	hub_send_all(hub, &m);
	hub->calls->all(hub->arg, data, length);
	free(data);
	return 0;
}

static int hub_give(struct hub *hub, uint32_t part, const void *data, uint32_t length)
{
	struct hub_given *given = &hub->given[part];

	/* A part gives its next bytes when it has got the last ones. */
	if (given->there)
		return -EBADMSG;
	given->data = malloc((size_t)length + 1);
	if (!given->data)
		return -ENOMEM;
	if (length)
		memcpy(given->data, data, length);
	given->length = length;
	given->there = true;
	return ++hub->ngiven == hub->plan->nnodes ? hub_complete(hub) : 0;
}

int hub_fence(struct hub *hub, const void *data, size_t length)
{
	struct hub_message m = {.op = HUB_FENCE, .data = data, .length = (uint32_t)length};

	if (length > HUB_MESSAGE_MAX)
		return -E2BIG;
	if (!hub->plan->part)
		return hub_give(hub, 0, data, (uint32_t)length);
	if (!hub->up)
		return -EPIPE;
	hub_send(hub, hub->up, &m);
	return 0;
}

/* Keeps a question until the part that it is for has connected.  Returns 0 or -ENOMEM. */
static int hub_ask_later(struct hub *hub, const struct hub_message *m)
{
	if (hub->nasks == HUB_ASKS_MAX ||
	    array_reserve(hub->asks, hub->asks_room, hub->nasks + 1, 4))
		return -ENOMEM;
	hub->asks[hub->nasks] = *m;
	hub->asks[hub->nasks].data = NULL;
	hub->asks[hub->nasks++].length = 0;
	return 0;
}

/* Passes a message on to part m->to, or to this one.  Returns 0, or -EBADMSG: nobody is there. */
static int hub_route(struct hub *hub, const struct hub_message *m)
{
	if (m->to >= hub->plan->nnodes || m->from >= hub->plan->nnodes ||
	    m->rank >= hub->plan->tasks)
		return -EBADMSG;
	if (m->to != hub->plan->part) {
		struct hub_line *line = hub->plan->part ? hub->up : hub->down[m->to];

		if (line)
			hub_send(hub, line, m);
		else if (m->op == HUB_ASK &&
			 (hub->plan->part || hub->joined[m->to] || hub_ask_later(hub, m)))
			return hub_tell(hub, m->from, m->id, -EHOSTUNREACH, "", 0);
		return 0;
	}
	if (m->op == HUB_ASK && hub->part_of[m->rank] != hub->plan->part)
		return -EBADMSG;
	if (m->op == HUB_ASK && hub->calls->asked)
		hub->calls->asked(hub->arg, m->from, m->id, m->rank);
	else if (m->op == HUB_TELL && hub->calls->told)
		hub->calls->told(hub->arg, m->id, m->status, m->data, m->length);
	return 0;
}

int hub_ask(struct hub *hub, uint32_t id, uint32_t rank)
{
	const struct hub_message m = {.op = HUB_ASK,
				      .from = hub->plan->part,
				      .to = rank < hub->plan->tasks ? hub->part_of[rank] : 0,
				      .id = id,
				      .rank = rank};

	return rank < hub->plan->tasks ? hub_route(hub, &m) : -EINVAL;
}

int hub_tell(struct hub *hub, uint32_t to, uint32_t id, int32_t status, const void *data,
	     size_t length)
{
	const struct hub_message m = {.op = HUB_TELL,
				      .from = hub->plan->part,
				      .to = to,
				      .id = id,
				      .status = status,
				      .data = data,
				      .length = (uint32_t)length};

	return length > HUB_MESSAGE_MAX ? -E2BIG : hub_route(hub, &m);
}

static int hub_take_abort(struct hub *hub, const struct hub_message *m)
{
	char text[256];
	uint32_t n = m->length < sizeof(text) - 1 ? m->length : sizeof(text) - 1;

	if (m->rank >= hub->plan->tasks)
		return -EBADMSG;
	if (n)
		memcpy(text, m->data, n);
	text[n] = 0;
	/* Part 0 tells it to the others. */
	hub_abort(hub, m->rank, (int)m->id, n ? text : NULL);
	/* This part's end may reach the client before the other's word. */
	tasks_fail(hub->tasks, m->rank, (int)m->id, n ? text : NULL);
	return 0;
}

static int hub_take(void *arg, struct hub_line *line, const struct hub_message *m)
{
	struct hub *hub = arg;
	bool above = line == hub->up;

	if (!line->proven && hub_prove(hub, line))
		return -EBUSY;
	switch (m->op) {
	case HUB_HERE:
		return 0;
	case HUB_FENCE:
		return above ? -EBADMSG : hub_give(hub, line->part, m->data, m->length);
	case HUB_ALL:
		if (!above)
			return -EBADMSG;
		hub->calls->all(hub->arg, m->data, m->length);
		return 0;
	case HUB_ASK:
	case HUB_TELL:
		return !above && m->from != line->part ? -EBADMSG : hub_route(hub, m);
	case HUB_ABORT:
		return hub_take_abort(hub, m);
	case HUB_BEGAN:
	case HUB_WITHOUT:
		if (above || m->rank >= hub->plan->tasks)
			return -EBADMSG;
		hub_began(hub, m->rank, m->op == HUB_BEGAN);
		return 0;
	case HUB_DONE:
		line->done = true;
		return 0;
	default:
		return -EBADMSG;
	}
}
