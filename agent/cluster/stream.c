/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams from other machines: their port, and their places.  stream_read.c reads the first
 * frame of each, stream_answer.c answers it.
 */
#include "agent/cluster/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/cluster/stream_own.h"

_Static_assert(ADDRESS_LIMIT_MAX > STREAMS_MAX, "each stream has a source");

size_t streams_count(const struct streams *streams)
{
	return streams ? streams->count : 0;
}

size_t streams_bytes(const struct streams *streams)
{
	return streams ? streams->bytes : 0;
}

/*
 * All places are taken: drops the oldest stream of the address with most.  An honest client has
 * sent its start message before its stream is the oldest.
 */
static void stream_make_room(struct streams *streams)
{
	int most = address_limit_most(&streams->sources);
	struct stream *oldest = NULL, *of_all = NULL;

	for (struct stream *s = streams->first; s; s = s->next) {
		of_all = s;
		if (s->source == most)
			oldest = s;
	}
	if (!oldest) /* each address has one stream, and the newcomer's is its first */
		oldest = of_all;
	if (stream_is_time(&streams->crowded_ns))
		log_write(streams->base->log, LOG_L_WARNING,
			  "%d job streams have not begun, most of them from %s: its oldest are "
			  "dropped",
			  STREAMS_MAX, oldest->peer);
	stream_cut(oldest);
}

/*
 * Returns true if a stream from this address is let in and has its source.  With TLS each stream is
 * a process: the address with most streams is refused instead of losing its oldest.
 */
static bool stream_enter(struct streams *streams, struct stream *s, const struct sockaddr *sa)
{
	s->source = address_limit_enter(&streams->sources, sa);
	if (s->source < 0 || streams->count < STREAMS_MAX)
		return s->source >= 0;
	if (streams->tunnels && address_limit_most(&streams->sources) == s->source) {
		address_limit_leave(&streams->sources, s->source);
		s->source = -1;
		return false;
	}
	stream_make_room(streams);
	return true;
}

static void stream_accept_one(struct streams *streams, int fd, const struct sockaddr *sa,
			      socklen_t n)
{
	struct stream *s;
	int one = 1;

	if (descriptors_scarce(fd)) {
		streams->base->counters->descriptors_refused++;
		streams->base->counters->streams_refused++;
		if (stream_is_time(&streams->scarce_ns))
			log_write(streams->base->log, LOG_L_WARNING,
				  "no job stream from other machines: the last %d descriptors are "
				  "for root and the agent; raise its limit of open files",
				  DESCRIPTORS_RESERVED);
		close(fd);
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s || !stream_enter(streams, s, sa)) {
		streams->base->counters->streams_refused++;
		close(fd);
		free(s);
		return;
	}
	s->wrapped = streams->tunnels != NULL;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	s->streams = streams;
	s->fd = fd;
	if (getnameinfo(sa, n, s->peer, sizeof(s->peer), NULL, 0, NI_NUMERICHOST))
		strcpy(s->peer, "?");
	s->entry = (struct loop_fd){.fd = fd, .ready = stream_ready, .arg = s};
	s->timer = (struct loop_timer){.fire = stream_overdue, .arg = s};
	if (loop_add(streams->base->loop, &s->entry, EPOLLIN)) {
		address_limit_leave(&streams->sources, s->source);
		close(fd);
		free(s);
		return;
	}
	s->next = streams->first;
	s->link = &streams->first;
	if (s->next)
		s->next->link = &s->next;
	streams->first = s;
	streams->count++;
	loop_start(streams->base->loop, &s->timer, STREAM_START_NS);
}

static void stream_came(void *arg, int fd, const struct sockaddr *sa, socklen_t n)
{
	struct streams *streams = arg;
	struct loop_share *shares = streams->base->shares;
	uid_t before = loop_share_enter(shares, LOOP_SHARE_STRANGERS);

	stream_accept_one(streams, fd, sa, n);
	if (loop_share_spent(shares, LOOP_SHARE_STRANGERS))
		acceptor_rest(&streams->acceptor);
	loop_share_leave(shares, before);
}

static int listen_one(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, 256) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int stream_listen_at(struct streams *streams, const char *address, unsigned port,
			    struct iocom_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *list = NULL;
	char host[IOCOM_ADDRESS_MAX], service[16];
	size_t n = strlen(address);
	int rc;

	/* Brackets belong to URLs only. */
	snprintf(host, sizeof(host), "%s", address + (*address == '['));
	if (*address == '[' && n > 2)
		host[n - 2] = 0;
	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc)
		return iocom_err_set(err, -EADDRNOTAVAIL, "cannot listen at %s: %s", address,
				     gai_strerror(rc));
	streams->fd = listen_one(list);
	freeaddrinfo(list);
	if (streams->fd >= 0)
		return 0;
	rc = streams->fd;
	return iocom_err_set(
		err, rc, "cannot take job streams at %s port %u: %s%s", address, port,
		strerror(-rc),
		rc == -EADDRINUSE ? "; perhaps by another iocomd: find its owner with `ss -ltnp`, "
				    "or choose --port"
				  : "");
}

int streams_new(struct streams **out, const struct base *base, struct seal *seal,
		const struct tunnels *tunnels, const struct stream_ports *ports,
		struct iocom_err *err)
{
	struct streams *streams = calloc(1, sizeof(*streams));
	int rc;

	if (!streams)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	streams->base = base;
	streams->seal = seal;
	streams->tunnels = tunnels;
	streams->ports = *ports;
	streams->fd = -1;
	streams->unpark = (struct loop_timer){.fire = streams_unpark, .arg = streams};
	rc = stream_listen_at(streams, base->set->listen, base->set->port + 2, err);
	if (!rc) {
		streams->acceptor = (struct acceptor){.came = stream_came, .arg = streams};
		rc = acceptor_start(&streams->acceptor, base, streams->fd);
	}
	if (rc) {
		streams_free(streams);
		return rc;
	}
	*out = streams;
	return 0;
}

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	while (streams->first)
		stream_free(streams->first);
	loop_cancel(streams->base->loop, &streams->unpark);
	acceptor_stop(&streams->acceptor);
	if (streams->fd >= 0)
		close(streams->fd);
	free(streams);
}
