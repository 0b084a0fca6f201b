/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the network part offers: streams that begin a handshake, and renewals of leases.  Each is
 * answered at once, or waits for the loop's time that strangers may have, GATE_STREAMS_MAX at most.
 * Nothing is kept by the number of an offer: a number that comes twice gets two answers.
 */
#include "agent/cluster/stream_own.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/acceptor.h"
#include "agent/base/loop_share.h"
#include "agent/base/seldom.h"
#include "user/wire.h"

#define LEFT_EARLY "the connection has ended"

_Static_assert(STREAM_HELLO_MAX >= GATE_SENTENCE_MAX, "a renewal has room, too");

/* --- answers ---------------------------------------------------------------------------- */

/* Copies WHY, which may quote what others sent, as what the gate lets through.  Returns its length.
 */
static size_t stream_sentence(char out[GATE_SENTENCE_MAX], const char *why)
{
	size_t n = strnlen(why, GATE_SENTENCE_MAX);

	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)why[i] < ' ' || why[i] == 0x7f ? '?' : why[i];
	if (!n)
		out[n++] = '?';
	return n;
}

/* That the network part is gone is no matter: it says nothing more of its offers. */
static void stream_tell(struct streams *streams, const struct gate_message *m, const void *tail,
			size_t n)
{
	int rc = net_part_send(streams->net, m, tail, n, NULL);

	if (rc && rc != -EPIPE &&
	    seldom_again(&streams->full_ns, loop_boot_ns(streams->base->loop), STREAM_START_NS))
		log_write(streams->base->log, LOG_L_WARNING,
			  "cannot tell the network part what became of a job stream: %s",
			  strerror(-rc));
}

/* Says that the stream is taken, or WHY it is refused: then the network part counts it. */
static void stream_over(struct streams *streams, uint64_t id, const char *why)
{
	const struct gate_message m = {.type = GATE_STREAM_OVER,
				       .stream_over = {.id = id, .taken = !why}};
	char sentence[GATE_SENTENCE_MAX];

	stream_tell(streams, &m, sentence, why ? stream_sentence(sentence, why) : 0);
}

static void stream_renewed(struct streams *streams, uint64_t id, const uint8_t *answer,
			   const char *why)
{
	const struct gate_message m = {.type = GATE_RENEWED,
				       .renewed = {.id = id, .answered = !why}};
	char sentence[GATE_SENTENCE_MAX];

	if (why)
		stream_tell(streams, &m, sentence, stream_sentence(sentence, why));
	else
		stream_tell(streams, &m, answer, RENEWAL_ANSWER);
}

/* Refuses O, and logs WHY unless that is too frequent. */
static void stream_offer_refuse(struct streams *streams, const struct stream_offer *o,
				const char *why)
{
	log_provoked(streams->base->log, LOG_L_WARNING, "refused a job stream from %s: %s", o->from,
		     why);
	if (o->renews)
		stream_renewed(streams, o->id, NULL, why);
	else
		stream_over(streams, o->id, why);
}

static void stream_offer_free(struct stream_offer *o)
{
	if (o->fd >= 0)
		wire_close(o->fd);
	free(o);
}

/* --- the descriptor ---------------------------------------------------------------------- */

static bool stream_option_is(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return !getsockopt(fd, SOL_SOCKET, option, &value, &n) && value == wanted;
}

/*
 * Returns why this is no connection over TCP, or NULL.  What it is connected to is no matter: the
 * handshake says whether a client is there.
 */
static const char *stream_fd_wrong(int fd)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	if ((!stream_option_is(fd, SO_DOMAIN, AF_INET) &&
	     !stream_option_is(fd, SO_DOMAIN, AF_INET6)) ||
	    !stream_option_is(fd, SO_TYPE, SOCK_STREAM) ||
	    !stream_option_is(fd, SO_PROTOCOL, IPPROTO_TCP) ||
	    !stream_option_is(fd, SO_ACCEPTCONN, 0))
		return "what the network part offers is no connection over TCP";
	return getpeername(fd, (struct sockaddr *)&peer, &n) ? LEFT_EARLY : NULL;
}

/* Returns 0: O's descriptor can be used; -1: *WHY not. */
static int stream_offer_fd(struct streams *streams, struct stream_offer *o, const char **why)
{
	int flags;

	if (o->fd <= STDERR_FILENO) { /* one of those was closed */
		int fd = fcntl(o->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

		wire_close(o->fd);
		o->fd = fd;
	}
	*why = "this node has too few descriptors left; try again";
	if (o->fd < 0 || descriptors_scarce(o->fd)) {
		streams->base->counters->descriptors_refused++;
		if (seldom_again(&streams->scarce_ns, loop_boot_ns(streams->base->loop),
				 STREAM_START_NS))
			log_write(streams->base->log, LOG_L_WARNING,
				  "no job stream from other machines: the last %d descriptors are "
				  "for root and the agent; raise its limit of open files",
				  DESCRIPTORS_RESERVED);
		return -1;
	}
	*why = stream_fd_wrong(o->fd);
	if (*why)
		return -1;
	/* Others may change the flags again at any time. */
	flags = fcntl(o->fd, F_GETFL);
	*why = LEFT_EARLY;
	return flags < 0 || fcntl(o->fd, F_SETFL, flags | O_NONBLOCK) ||
			       fcntl(o->fd, F_SETFD, FD_CLOEXEC)
		       ? -1
		       : 0;
}

/* --- one offer --------------------------------------------------------------------------- */

static void stream_offer_renew(struct streams *streams, const struct stream_offer *o)
{
	uint8_t answer[RENEWAL_ANSWER];
	struct iocom_err err = {0};

	if (streams->ports.renew(streams->ports.arg, o->first, (uint32_t)o->length, answer, &err))
		stream_offer_refuse(streams, o, err.text);
	else
		stream_renewed(streams, o->id, answer, NULL);
}

/* Returns NULL: S is a stream that has begun, with O's descriptor; or why it is refused. */
static const char *stream_offer_greet(struct stream *s, struct stream_offer *o)
{
	struct loop *loop = s->streams->base->loop;
	const char *why;

	s->fd = o->fd;
	memcpy(s->peer, o->from, sizeof(s->peer));
	s->entry = (struct loop_fd){.fd = o->fd, .ready = stream_ready, .arg = s};
	s->timer = (struct loop_timer){.fire = stream_overdue, .arg = s};
	if (loop_add(loop, &s->entry, EPOLLIN))
		return "this node cannot take job streams now; try again";
	why = stream_greet(s, o);
	if (why) {
		loop_remove(loop, &s->entry);
		return why;
	}
	o->fd = -1;
	stream_enter(s);
	return NULL;
}

static void stream_offer_take(struct streams *streams, struct stream_offer *o)
{
	struct stream *s = NULL;
	const char *why = NULL;

	if (!stream_offer_fd(streams, o, &why)) {
		s = calloc(1, sizeof(*s));
		why = "out of memory";
	}
	if (s) {
		s->streams = streams;
		why = stream_offer_greet(s, o);
	}
	if (!why) {
		stream_over(streams, o->id, NULL);
		return;
	}
	stream_offer_refuse(streams, o, why);
	free(s);
}

static void stream_offer_look(struct streams *streams, struct stream_offer *o)
{
	if (o->renews)
		stream_offer_renew(streams, o);
	else
		stream_offer_take(streams, o);
	stream_offer_free(o);
}

/* --- those that wait --------------------------------------------------------------------- */

void stream_wait(struct streams *streams)
{
	const struct base *base = streams->base;

	if (!streams->unpark.active)
		loop_start(base->loop, &streams->unpark,
			   loop_share_wait_ns(base->shares, LOOP_SHARE_STRANGERS));
}

static void stream_offer_queue(struct streams *streams, struct stream_offer *o)
{
	streams->base->counters->requests_delayed++;
	*streams->last_offer = o;
	streams->last_offer = &o->next;
	streams->offered++;
	stream_wait(streams);
}

static struct stream_offer *stream_offer_pop(struct streams *streams)
{
	struct stream_offer *o = streams->offers;

	if (!o)
		return NULL;
	streams->offers = o->next;
	streams->offered--;
	if (!o->next)
		streams->last_offer = &streams->offers;
	return o;
}

void stream_offers_next(struct streams *streams)
{
	struct loop_share *shares = streams->base->shares;
	uid_t before = loop_share_enter(shares, LOOP_SHARE_STRANGERS);
	struct stream_offer *o = stream_offer_pop(streams);

	if (o)
		stream_offer_look(streams, o);
	loop_share_leave(shares, before);
}

void stream_offers_drop(void *arg)
{
	struct stream_offer *o;

	while ((o = stream_offer_pop(arg)))
		stream_offer_free(o);
}

/* Returns a copy; NULL: no memory. */
static struct stream_offer *stream_offer_new(const struct gate_message *m, const uint8_t *tail,
					     size_t n, const int *fds)
{
	struct stream_offer *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->renews = m->type == GATE_RENEW;
	o->id = o->renews ? m->renew.id : m->stream.id;
	memcpy(o->from, o->renews ? m->renew.from : m->stream.from, sizeof(o->from));
	if (!o->renews)
		o->hello = m->stream.hello;
	o->fd = o->renews ? -1 : fds[0];
	o->length = n;
	memcpy(o->first, tail, n);
	return o;
}

static void stream_offer_came(struct streams *streams, const struct gate_message *m,
			      const uint8_t *tail, size_t n, const int *fds)
{
	struct stream_offer *o = stream_offer_new(m, tail, n, fds);

	if (!o) {
		if (m->type == GATE_RENEW) {
			stream_renewed(streams, m->renew.id, NULL, "out of memory");
			return;
		}
		wire_close(fds[0]);
		stream_over(streams, m->stream.id, "out of memory");
	} else if (streams->offered >= GATE_STREAMS_MAX) {
		stream_offer_refuse(streams, o,
				    "too many job streams wait at this node; try again");
		stream_offer_free(o);
	} else if (streams->offers ||
		   loop_share_spent(streams->base->shares, LOOP_SHARE_STRANGERS)) {
		stream_offer_queue(streams, o);
	} else {
		stream_offer_look(streams, o);
	}
}

/* Whoever is behind it is a stranger: all together are charged as one user (loop_share.h). */
void stream_offered(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
		    const int *fds)
{
	struct streams *streams = arg;
	struct loop_share *shares = streams->base->shares;
	uid_t before = loop_share_enter(shares, LOOP_SHARE_STRANGERS);

	stream_offer_came(streams, m, tail, n, fds);
	loop_share_leave(shares, before);
}
