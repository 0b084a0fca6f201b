/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control between agents; see control.h.  control_answer.c answers questions, control_ask.c asks
 * them and control_exchange.c hands them to the network part, control_greet.c begins sessions,
 * control_message.c seals and opens messages in them.
 */
#include "agent/cluster/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "agent/base/complaints.h"
#include "agent/cluster/control_own.h"

static struct base control_base(const struct control *c)
{
	return (struct base){.loop = c->config.loop,
			     .log = c->config.log,
			     .counters = c->config.counters,
			     .complaints = c->config.complaints};
}

void control_complain(const struct control *c, const char *sender, const char *what,
		      const char *why)
{
	const struct base base = control_base(c);

	base_complain(&base, sender, "%s: %s", what, why);
}

void control_settle(const struct control *c, const char *sender)
{
	const struct base base = control_base(c);

	base_settle(&base, sender);
}

static void control_down(void *arg)
{
	struct control *c = arg;

	control_answer_stop(c);
	exchange_down(c);
}

static void control_up(void *arg)
{
	exchange_up(arg);
}

int control_new(struct control **out, const struct control_config *config, struct iocom_err *err)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	c->config = *config;
	c->sessions = sessions_new(&c->config.self, config->counters);
	if (!c->sessions) {
		free(c);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	if (getrandom(&c->next_id, sizeof(c->next_id), 0) < 0)
		c->next_id = 1;
	control_answer_start(c);
	exchange_start(c);
	c->watch = (struct net_watch){.up = control_up, .down = control_down, .arg = c};
	net_part_watch(config->net, &c->watch);
	*out = c;
	return 0;
}

void control_expire(struct control *c)
{
	sessions_expire(c->sessions, loop_boot_ns(c->config.loop));
}

size_t control_sessions(const struct control *c)
{
	return c ? sessions_count(c->sessions) : 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	control_greet_stop(c);
	control_ask_cancel(c);
	net_part_unwatch(c->config.net, &c->watch);
	net_part_serve(c->config.net, GATE_ANSWERED, NULL, NULL);
	net_part_serve(c->config.net, GATE_HELLO, NULL, NULL);
	net_part_serve(c->config.net, GATE_QUESTION, NULL, NULL);
	control_answer_stop(c);
	sessions_free(c->sessions);
	free(c);
}
