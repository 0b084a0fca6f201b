/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One local connection: the frames sent to it, its pending output and the bounds of that, and its
 * end.  A dropped client is freed in the next round of the loop, so that a function that is
 * answering it can go on using the pointer.
 */
#include "agent/front/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/base/seldom.h"
#include "balancer/view/json_text.h"
#include "iocom/array.h"

const struct ucred *client_who(const struct client *client)
{
	return &client->who;
}

bool client_is_remote(const struct client *c)
{
	return c->told;
}

bool client_is_gone(const struct client *c)
{
	return c->dead;
}

bool client_has_output(const struct client *c)
{
	return c->out_end > c->out_start;
}

void client_drop(struct client *c)
{
	struct clients *clients = c->clients;
	struct loop *loop = clients->config.base->loop;

	if (c->dead)
		return;
	c->dead = true;
	for (const struct clients_watch *w = clients->watches; w; w = w->next)
		w->closed(w->arg, c);
	if (!c->told)
		loop_remove(loop, &c->entry);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	clients->count--;
	if (!clients->reap.active)
		loop_start(loop, &clients->reap, 0);
}

void client_free(struct client *c)
{
	free(c->in);
	free(c->out);
	free(c->spec);
	free(c);
}

void client_log_foreign(const struct client *c, const char *what, const char *job)
{
	log_provoked(c->clients->config.base->log, LOG_L_WARNING,
		     "refused uid %u to %s job %s: it is another user's", (unsigned)c->who.uid,
		     what, job);
}

/* --- what a user costs ------------------------------------------------------------ */

bool client_may_ask(struct client *c)
{
	const struct base *base = c->clients->config.base;

	return !loop_share_spent(base->shares, c->who.uid) &&
	       request_limit_take(&c->clients->rates, c->who.uid, base->set->user_requests_per_s,
				  loop_boot_ns(base->loop));
}

void client_charge(struct client *c, uint64_t cost_ns)
{
	const struct base *base = c->clients->config.base;

	request_limit_charge(&c->clients->rates, c->who.uid, base->set->user_requests_per_s,
			     cost_ns, loop_boot_ns(base->loop));
}

uid_t client_enter(const struct client *c)
{
	return loop_share_enter(c->clients->config.base->shares, c->who.uid);
}

void client_leave(const struct base *base, uid_t before)
{
	loop_share_leave(base->shares, before);
}

/* --- output ------------------------------------------------------------------------- */

void client_events(struct client *c)
{
	bool pending = c->out_end > c->out_start;
	uint32_t wanted = c->half || c->parked ? 0 : EPOLLRDHUP;

	if (c->told)
		return;
	/* A half-closed client's end of file waits until all answers have left. */
	if (!c->busy && !c->parked && !(c->half && pending))
		wanted |= EPOLLIN;
	if (pending && !c->parked)
		wanted |= EPOLLOUT;
	loop_change(c->clients->config.base->loop, &c->entry, wanted);
}

void client_flush(struct client *c)
{
	while (!c->dead && c->out_end > c->out_start) {
		ssize_t n = send(c->fd, c->out + c->out_start, c->out_end - c->out_start,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			client_drop(c);
			return;
		}
		c->out_start += (size_t)n;
		c->active_ns = loop_boot_ns(c->clients->config.base->loop);
	}
	if (c->out_start == c->out_end) {
		c->out_start = c->out_end = 0;
		if (c->out_room > CLIENT_OUTPUT_MAX / 16) { /* a long listing was sent */
			free(c->out);
			c->out = NULL;
			c->out_room = 0;
		}
	}
	if (!c->dead)
		client_events(c);
}

bool client_may_hold(const struct client *c, size_t more)
{
	size_t held = more;

	for (const struct client *o = c->clients->first; o && c->who.uid; o = o->next)
		if (!o->dead && o->who.uid == c->who.uid)
			held += o->in_room + o->out_room + o->spec_length;
	return !c->who.uid || held <= CLIENT_BYTES_OF_ONE;
}

static int out_reserve(struct client *c, size_t more)
{
	size_t need = c->out_end + more;
	size_t room = array_room(c->out_room, need, CLIENT_FIRST_BUFFER);

	/* A single document may be larger: a reading of very many tasks. */
	if (c->out_end && need > CLIENT_OUTPUT_MAX)
		return -ENOSPC;
	if (room > c->out_room && !client_may_hold(c, room - c->out_room))
		return -ENOSPC;
	return array_reserve(c->out, c->out_room, need, CLIENT_FIRST_BUFFER);
}

static int put_frame(struct client *c, enum frame_type type, const char *text, size_t n)
{
	if (n > (type == FRAME_JSON ? FRAME_DOCUMENT_MAX : FRAME_PAYLOAD_MAX) ||
	    out_reserve(c, n + FRAME_HEADER))
		return -ENOSPC;
	frame_header(c->out + c->out_end, (uint8_t)type, (uint32_t)n);
	memcpy(c->out + c->out_end + FRAME_HEADER, text, n);
	c->out_end += n + FRAME_HEADER;
	c->active_ns = loop_boot_ns(c->clients->config.base->loop);
	client_flush(c);
	return 0;
}

bool clients_is_time(const struct clients *clients, uint64_t *said_ns)
{
	return seldom_again(said_ns, loop_boot_ns(clients->config.base->loop), CLIENT_STUCK_NS);
}

void client_crowded_out(struct client *c)
{
	struct clients *clients = c->clients;

	clients->config.base->counters->clients_dropped++;
	if (clients_is_time(clients, &clients->heavy_ns))
		log_write(clients->config.base->log, LOG_L_WARNING,
			  "dropped connections of uid %u: together they hold more than %u MiB of "
			  "memory",
			  (unsigned)c->who.uid, CLIENT_BYTES_OF_ONE >> 20);
	client_drop(c);
}

void client_send_frame(struct client *c, enum frame_type type, const char *text)
{
	if (!c->dead && c->told)
		c->told(c->told_arg, type == FRAME_JSON, text, strlen(text));
	else if (!c->dead && put_frame(c, type, text, strlen(text)))
		client_crowded_out(c);
}

/* Moves pending output to the front, so that a stream does not run out of room. */
static void out_compact(struct client *c)
{
	if (!c->out_start || c->out_start < c->out_room / 2)
		return;
	memmove(c->out, c->out + c->out_start, c->out_end - c->out_start);
	c->out_end -= c->out_start;
	c->out_start = 0;
}

void client_watches(struct client *c)
{
	c->busy = false;
	c->watches = true;
	client_events(c);
}

void client_streams(struct client *c)
{
	c->busy = false;
	c->streams = true;
	client_events(c);
}

bool client_offer(struct client *c, const char *text, size_t n, size_t backlog)
{
	const struct base *base = c->clients->config.base;
	uid_t before = client_enter(c);
	bool put = !c->dead && !c->told && c->out_end - c->out_start + n + FRAME_HEADER <= backlog;

	if (put) {
		out_compact(c);
		put = put_frame(c, FRAME_JSON, text, n) == 0;
	}
	client_leave(base, before);
	return put;
}

void client_json(struct client *c, json_t *document)
{
	const struct base *base = c->clients->config.base;
	uid_t before = client_enter(c);
	/* Numbers are exact: `explain` on a saved view must decide on the same numbers. */
	char *text = json_text_dump(document, NULL);

	json_decref(document);
	c->busy = false;
	client_send_frame(c, text ? FRAME_JSON : FRAME_ERROR, text ? text : "out of memory");
	free(text);
	client_leave(base, before);
}

void client_error(struct client *c, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->busy = false;
	client_send_frame(c, FRAME_ERROR, text);
}
