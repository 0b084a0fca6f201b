/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams from other machines: their places.  stream_offer.c gets them from the network part,
 * stream_secure.c does the handshake, stream_read.c reads the first frame of each, and
 * stream_answer.c answers it.
 */
#include "agent/cluster/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/listen.h"
#include "agent/base/seldom.h"
#include "agent/cluster/seal.h"
#include "agent/cluster/stream_own.h"
#include "user/wire.h"

/* A stream of which munged is asked keeps its place. */
_Static_assert(STREAMS_MAX > 2 * SEAL_QUESTIONS_MAX, "one can be dropped for others");

size_t streams_count(const struct streams *streams)
{
	return streams ? streams->count : 0;
}

size_t streams_bytes(const struct streams *streams)
{
	return streams ? streams->bytes : 0;
}

void stream_free(struct stream *s)
{
	struct loop *loop = s->streams->base->loop;

	seal_forget(s->streams->seal, s->opens);
	loop_cancel(loop, &s->timer);
	loop_remove(loop, &s->entry);
	if (s->fd >= 0)
		wire_close(s->fd);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->streams->count--;
	s->streams->bytes -= s->room;
	records_erase(&s->secure.records);
	free(s->data);
	free(s);
}

/*
 * All places are taken: drops the oldest that has not begun.  An honest client has sent its start
 * message before its stream is the oldest.
 */
static void stream_make_room(struct streams *streams)
{
	struct stream *oldest = NULL;

	for (struct stream *s = streams->first; s; s = s->next)
		if (!s->opens)
			oldest = s;
	if (seldom_again(&streams->crowded_ns, loop_boot_ns(streams->base->loop), STREAM_START_NS))
		log_write(
			streams->base->log, LOG_L_WARNING,
			"%d job streams have not begun: the oldest are dropped, the first of them "
			"from %s",
			STREAMS_MAX, oldest->peer);
	stream_cut(oldest);
}

void stream_enter(struct stream *s)
{
	struct streams *streams = s->streams;

	if (streams->count >= STREAMS_MAX)
		stream_make_room(streams);
	s->next = streams->first;
	s->link = &streams->first;
	if (s->next)
		s->next->link = &s->next;
	streams->first = s;
	streams->count++;
	loop_start(streams->base->loop, &s->timer, STREAM_START_NS);
}

int streams_listen(int *listener, const char *address, uint16_t port, struct iocom_err *err)
{
	struct listen_address at;
	int rc = listen_find(&at, address, port, true, err);

	*listener = -1;
	if (rc)
		return rc;
	rc = listen_open(listener, &at);
	if (!rc)
		return 0;
	return iocom_err_set(
		err, rc, "cannot take job streams at %s port %u: %s%s", address, port,
		strerror(-rc),
		rc == -EADDRINUSE ? "; perhaps by another iocomd: find its owner with `ss -ltnp`, "
				    "or choose --port"
		: rc == -EADDRNOTAVAIL ? "; no network device of this machine has it: set listen "
					 "to one that `ip address` shows"
				       : "");
}

int streams_new(struct streams **out, const struct base *base, struct net_part *net,
		struct seal *seal, const struct stream_ports *ports, struct iocom_err *err)
{
	struct streams *streams = calloc(1, sizeof(*streams));

	*out = NULL;
	if (!streams)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	streams->base = base;
	streams->net = net;
	streams->seal = seal;
	streams->ports = *ports;
	streams->last_offer = &streams->offers;
	streams->pairs = (struct loop_timer){.fire = streams_make_pair, .arg = streams};
	noise_pair_new(&streams->pair);
	streams->unpark = (struct loop_timer){.fire = streams_unpark, .arg = streams};
	streams->watch = (struct net_watch){.down = stream_offers_drop, .arg = streams};
	net_part_serve(net, GATE_STREAM, stream_offered, streams);
	net_part_serve(net, GATE_RENEW, stream_offered, streams);
	net_part_watch(net, &streams->watch);
	*out = streams;
	return 0;
}

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	net_part_unwatch(streams->net, &streams->watch);
	net_part_serve(streams->net, GATE_STREAM, NULL, NULL);
	net_part_serve(streams->net, GATE_RENEW, NULL, NULL);
	stream_offers_drop(streams);
	while (streams->first)
		stream_free(streams->first);
	loop_cancel(streams->base->loop, &streams->unpark);
	loop_cancel(streams->base->loop, &streams->pairs);
	explicit_bzero(&streams->pair, sizeof(streams->pair));
	free(streams);
}
