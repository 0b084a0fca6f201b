/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See gathering.h.  The sockets are in an epoll of their own, which is in that of the loop while
 * they are to be read at once, and else is looked at when a timer fires.
 */
#include "agent/net/gathering.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct gathering {
	struct loop *loop, *sockets;
	struct loop_fd entry; /* of `sockets` in `loop` */
	struct loop_timer timer;
	uint64_t every_ns;
	void (*gathered)(void *arg);
	void *arg;
};

static void gathering_ready(void *arg, uint32_t events)
{
	struct gathering *g = arg;

	(void)events;
	(void)loop_look(g->sockets);
	g->gathered(g->arg);
}

static void gathering_due(void *arg)
{
	gathering_read(arg);
}

void gathering_read(struct gathering *g)
{
	gathering_ready(g, 0);
	if (g->every_ns)
		loop_start(g->loop, &g->timer, g->every_ns);
}

void gathering_set(struct gathering *g, uint64_t every_ns)
{
	if (g->every_ns == every_ns)
		return;
	/* If the loop cannot have it, a timer does. */
	if (!every_ns && loop_add(g->loop, &g->entry, EPOLLIN))
		return;
	if (every_ns && g->entry.active)
		loop_remove(g->loop, &g->entry);
	g->every_ns = every_ns;
	if (every_ns)
		loop_start(g->loop, &g->timer, every_ns);
	else
		loop_cancel(g->loop, &g->timer);
}

struct loop *gathering_loop(struct gathering *g)
{
	return g->sockets;
}

int gathering_new(struct gathering **out, struct loop *loop, void (*gathered)(void *arg), void *arg,
		  struct iocom_err *err)
{
	struct gathering *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	g->loop = loop;
	g->gathered = gathered;
	g->arg = arg;
	g->timer = (struct loop_timer){.fire = gathering_due, .arg = g};
	rc = loop_new(&g->sockets, err);
	if (rc) {
		free(g);
		return rc;
	}
	g->entry =
		(struct loop_fd){.fd = loop_pollfd(g->sockets), .ready = gathering_ready, .arg = g};
	rc = loop_add(loop, &g->entry, EPOLLIN);
	if (rc) {
		gathering_free(g);
		return iocom_err_set(err, rc, "cannot watch sockets");
	}
	*out = g;
	return 0;
}

void gathering_free(struct gathering *g)
{
	if (!g)
		return;
	loop_cancel(g->loop, &g->timer);
	loop_remove(g->loop, &g->entry);
	loop_free(g->sockets);
	free(g);
}
