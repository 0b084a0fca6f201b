/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions to other agents as bytes: the network part sends them and brings the answers.  It also
 * keeps the time, and says why there is no answer; one that does not, but is no hung process
 * (net_part.h), is not waited for.  What is asked while it starts again waits for it, as long as an
 * answer may take.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/control_own.h"
#include "user/clock.h"

#define WAIT_NS (CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS)
/* The network part has given up long before. */
#define OVERDUE_NS (2 * CONTROL_TIMEOUT_MS * CLOCK_NS_PER_MS)

struct exchange {
	struct exchange *next;
	struct control *control;
	struct gate_place at;
	uint64_t id; /* at the gate; 0: nothing is asked */
	exchange_answered answered;
	void *arg;
	/* What is asked when the network part is there; NULL: nothing. */
	uint8_t *waiting;
	size_t length;
	uint64_t since_ns;
	struct loop_timer overdue; /* of what is asked, or waits */
	bool connected, cut;	   /* of the last question, which failed */
};

static const char starts_again[] = "the network part starts again just now";

/* Nothing of X is under way any more, nor waits. */
static void exchange_rest(struct exchange *x)
{
	loop_cancel(x->control->config.loop, &x->overdue);
	x->id = 0;
	free(x->waiting);
	x->waiting = NULL;
}

bool exchange_connected(const struct exchange *x)
{
	return x->connected;
}

bool exchange_cut(const struct exchange *x)
{
	return x->cut;
}

static void exchange_ended(struct exchange *x, int rc, uint8_t *answer, size_t n, const char *why)
{
	exchange_rest(x);
	x->answered(x->arg, rc, answer, n, why); /* this may free X */
}

static void exchange_overdue(void *arg)
{
	struct exchange *x = arg;

	if (x->waiting) {
		exchange_ended(x, -ECONNRESET, NULL, 0, starts_again);
		return;
	}
	(void)net_part_send_id(x->control->config.net, GATE_FORGET, x->id);
	exchange_ended(x, -ETIMEDOUT, NULL, 0, "the network part of this node says nothing");
}

struct exchange *exchange_new(struct control *c, const struct gate_place *at,
			      exchange_answered answered, void *arg)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->control = c;
	x->at = *at;
	x->answered = answered;
	x->arg = arg;
	x->overdue = (struct loop_timer){.fire = exchange_overdue, .arg = x};
	x->next = c->exchanges;
	c->exchanges = x;
	return x;
}

static int exchange_ask(struct exchange *x, const void *data, size_t length, uint64_t since_ns)
{
	const struct gate_message m = {.type = GATE_ASK,
				       .ask = {.id = ++x->control->last_exchange,
					       .at = x->at,
					       .since_ns = since_ns,
					       .limit_ms = CONTROL_TIMEOUT_MS}};
	int rc = net_part_send(x->control->config.net, &m, data, length, NULL);

	if (rc)
		return rc;
	x->id = m.ask.id;
	x->connected = x->cut = false;
	loop_start(x->control->config.loop, &x->overdue, OVERDUE_NS);
	return 0;
}

static int exchange_wait(struct exchange *x, const void *data, size_t length, uint64_t since_ns)
{
	x->waiting = malloc(length);
	if (!x->waiting)
		return -ENOMEM;
	memcpy(x->waiting, data, length);
	x->length = length;
	x->since_ns = since_ns;
	loop_start(x->control->config.loop, &x->overdue, WAIT_NS);
	return 0;
}

int exchange_send(struct exchange *x, const void *data, size_t length, uint64_t since_ns,
		  struct iocom_err *err)
{
	int rc = exchange_ask(x, data, length, since_ns);

	if (rc == -EPIPE)
		rc = exchange_wait(x, data, length, since_ns);
	return rc ? iocom_err_set(err, rc, "the network part cannot take the question: %s",
				  strerror(-rc))
		  : 0;
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	for (struct exchange **p = &x->control->exchanges; *p; p = &(*p)->next) {
		if (*p != x)
			continue;
		*p = x->next;
		break;
	}
	if (x->id)
		(void)net_part_send_id(x->control->config.net, GATE_FORGET, x->id);
	exchange_rest(x);
	free(x);
}

static void exchange_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			      const int *fds)
{
	struct control *c = arg;
	char why[GATE_SENTENCE_MAX + 1] = "";

	(void)fds;
	for (struct exchange *x = c->exchanges; x; x = x->next) {
		if (!x->id || x->id != m->answered.id)
			continue;
		if (m->answered.rc && n)
			memcpy(why, tail, n);
		else if (m->answered.rc)
			snprintf(why, sizeof(why), "%s", strerror(-m->answered.rc));
		x->connected = m->answered.connected;
		x->cut = m->answered.cut;
		exchange_ended(x, m->answered.rc, tail, n, why);
		return;
	}
}

void exchange_start(struct control *c)
{
	net_part_serve(c->config.net, GATE_ANSWERED, exchange_received, c);
}

static struct exchange *exchange_under_way(struct control *c)
{
	for (struct exchange *x = c->exchanges; x; x = x->next)
		if (x->id)
			return x;
	return NULL;
}

void exchange_down(struct control *c)
{
	struct exchange *x;

	/* The end of one may begin or end others. */
	while ((x = exchange_under_way(c)))
		exchange_ended(x, -ECONNRESET, NULL, 0, "the network part has ended");
}

static struct exchange *exchange_waiting(struct control *c)
{
	for (struct exchange *x = c->exchanges; x; x = x->next)
		if (x->waiting)
			return x;
	return NULL;
}

void exchange_up(struct control *c)
{
	struct exchange *x;

	while ((x = exchange_waiting(c))) {
		uint8_t *question = x->waiting;

		x->waiting = NULL;
		if (exchange_ask(x, question, x->length, x->since_ns))
			exchange_ended(x, -ECONNRESET, NULL, 0, starts_again);
		free(question);
	}
}
