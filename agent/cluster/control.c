/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control between agents; see control.h.  control_answer.c answers questions, control_ask.c asks
 * them, control_message.c seals and opens them.
 *
 * Threads: nng's callbacks only post to the loop.  Each aio has at most one operation, so one post
 * entry per aio is enough.  Shutdown closes the sockets, stops the aios (no callback runs after
 * that), removes the posts from the queue, then frees the memory.
 */
#include "agent/cluster/control.h"

#include <errno.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>
#include <sys/random.h>

#include "agent/cluster/control_own.h"

int control_new(struct control **out, const struct control_config *config, struct iocom_err *err)
{
	const struct connection_limit_bounds bounds = {
		.max = CONNECTION_LIMIT_MAX, .max_of_one = CONNECTION_LIMIT_OF_ONE, .yield = true};
	struct control *c = calloc(1, sizeof(*c));
	char url[128];
	int e;

	if (!c)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	c->config = *config;
	if (getrandom(&c->next_id, sizeof(c->next_id), 0) < 0)
		c->next_id = 1;
	control_url(url, sizeof(url), config->listen, config->port + 1u);
	e = nng_rep0_open(&c->rep);
	if (!e) {
		c->listening = true;
		nng_socket_set_size(c->rep, NNG_OPT_RECVMAXSZ, MESSAGE_MAX);
		e = connection_limit_new(&c->guests, c->rep, &bounds);
	}
	if (!e)
		e = tls_listen(c->config.tls, c->rep, url);
	if (!e)
		e = control_answer_start(c);
	if (e) {
		control_free(c);
		return control_nng_error(e, "listen for agents at", url, err);
	}
	*out = c;
	return 0;
}

void control_count(struct control *c)
{
	connection_limit_count_into(c->guests, c->config.counters);
}

size_t control_guests(const struct control *c)
{
	return c ? connection_limit_count(c->guests) : 0;
}

size_t control_payers(const struct control *c)
{
	return c ? connection_limit_payers(c->guests) : 0;
}

size_t control_peers(const struct control *c)
{
	return c ? c->npeers : 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	control_ask_cancel(c);
	if (c->listening)
		nng_close(c->rep);
	control_answer_stop(c);
	control_ask_disconnect(c);
	connection_limit_free(c->guests);
	free(c);
}
