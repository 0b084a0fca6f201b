/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The links to other nodes; see links.h. */
#include "agent/measure/links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* of the kernel's enum in net/tcp_states.h, which programs cannot include */
#define LINKS_ESTABLISHED 1
#define LINKS_SLOTS	  (2 * LINKS_SOCKETS_MAX)
#define LINKS_RTT_UNKNOWN UINT32_MAX
#define LINKS_ANSWER	  65536

/* A connection at the last look. */
struct links_slot {
	uint64_t cookie, acked, received, look;
};

struct links_peer {
	struct link_rate rate;
	uint64_t sent, received; /* since the last look */
	uint32_t min_rtt_us;
};

struct links {
	struct links_peer *peers; /* sorted by address */
	size_t npeers;
	struct links_slot *slots; /* by cookie; of the last look and this one */
	struct links_slot *kept;  /* scratch, as many */
	size_t nslots;
	uint64_t look, now_ns, before_ns, dropped;
};

struct links *links_new(void)
{
	struct links *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->peers = calloc(LINKS_PEERS_MAX, sizeof(*l->peers));
	l->slots = calloc(LINKS_SLOTS, sizeof(*l->slots));
	l->kept = calloc(LINKS_SLOTS, sizeof(*l->kept));
	if (l->peers && l->slots && l->kept)
		return l;
	links_free(l);
	return NULL;
}

void links_free(struct links *l)
{
	if (!l)
		return;
	free(l->peers);
	free(l->slots);
	free(l->kept);
	free(l);
}

/* Returns the index of the first peer whose address is not before ADDRESS. */
static size_t links_place(const struct links *l, const char *address)
{
	size_t from = 0, to = l->npeers;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (strcmp(l->peers[middle].rate.address, address) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct links_peer *links_peer(const struct links *l, const char *address)
{
	size_t at = links_place(l, address);

	return at < l->npeers && !strcmp(l->peers[at].rate.address, address) ? &l->peers[at] : NULL;
}

int links_watch(struct links *l, const char *address)
{
	struct links_peer *p;
	size_t at;

	if (!*address || links_peer(l, address))
		return 0;
	if (l->npeers == LINKS_PEERS_MAX)
		return -ENOSPC;
	at = links_place(l, address);
	p = &l->peers[at];
	memmove(p + 1, p, (l->npeers++ - at) * sizeof(*p));
	*p = (struct links_peer){.rate.round_trip_ms = -1, .min_rtt_us = LINKS_RTT_UNKNOWN};
	strncpy(p->rate.address, address, sizeof(p->rate.address) - 1);
	return 0;
}

const struct link_rate *links_find(const struct links *l, const char *address)
{
	const struct links_peer *p = links_peer(l, address);

	return p ? &p->rate : NULL;
}

size_t links_count(const struct links *l)
{
	return l ? l->npeers : 0;
}

size_t links_sockets(const struct links *l)
{
	return l ? l->nslots : 0;
}

uint64_t links_dropped(const struct links *l)
{
	return l ? l->dropped : 0;
}

/* --- a look ----------------------------------------------------------------------------- */

static struct links_slot *links_slot(struct links_slot *slots, uint64_t cookie)
{
	size_t at = (size_t)((cookie * 0x9e3779b97f4a7c15u) >> 32) % LINKS_SLOTS;

	while (slots[at].cookie && slots[at].cookie != cookie)
		at = (at + 1) % LINKS_SLOTS;
	return &slots[at];
}

/* Forgets connections that the look before did not see. */
static void links_forget(struct links *l)
{
	struct links_slot *all = l->slots;

	memset(l->kept, 0, LINKS_SLOTS * sizeof(*l->kept));
	l->nslots = 0;
	for (size_t i = 0; i < LINKS_SLOTS; i++)
		if (all[i].cookie && all[i].look == l->look) {
			*links_slot(l->kept, all[i].cookie) = all[i];
			l->nslots++;
		}
	l->slots = l->kept;
	l->kept = all;
}

void links_begin(struct links *l, uint64_t now_ns)
{
	links_forget(l);
	l->look++;
	l->before_ns = l->now_ns;
	l->now_ns = now_ns;
	for (size_t i = 0; i < l->npeers; i++) {
		struct links_peer *p = &l->peers[i];

		p->sent = p->received = 0;
		p->rate.connections = 0;
		p->min_rtt_us = LINKS_RTT_UNKNOWN;
	}
}

void links_note(struct links *l, const struct link_socket *s)
{
	struct links_peer *p = links_peer(l, s->address);
	struct links_slot *slot;
	uint64_t acked = 0;

	if (!p || !s->cookie)
		return;
	slot = links_slot(l->slots, s->cookie);
	if (!slot->cookie && l->nslots >= LINKS_SOCKETS_MAX) {
		l->dropped++;
		return;
	}
	p->rate.connections++;
	if (s->min_rtt_us < p->min_rtt_us)
		p->min_rtt_us = s->min_rtt_us;
	if (!slot->cookie)
		l->nslots++;
	else if (s->acked >= slot->acked && s->received >= slot->received) {
		acked = s->acked - slot->acked;
		p->sent += acked;
		p->received += s->received - slot->received;
	}
	*slot = (struct links_slot){s->cookie, s->acked, s->received, l->look};
	if (acked >= LINKS_BULK_BYTES && !s->app_limited && s->delivery_bytes_per_s) {
		p->rate.tcp_mb_per_s = (double)s->delivery_bytes_per_s / 1e6;
		p->rate.tcp_ns = l->now_ns;
	}
}

void links_end(struct links *l)
{
	double s = l->before_ns && l->now_ns > l->before_ns
			   ? (double)(l->now_ns - l->before_ns) / 1e9
			   : 0;

	for (size_t i = 0; i < l->npeers; i++) {
		struct links_peer *p = &l->peers[i];
		struct link_rate *r = &p->rate;
		uint64_t bytes = p->sent > p->received ? p->sent : p->received;

		if (p->min_rtt_us != LINKS_RTT_UNKNOWN) {
			r->round_trip_ms = p->min_rtt_us / 1e3;
			r->round_trip_ns = l->now_ns;
		}
		r->carried_mb_per_s = s > 0 ? (double)bytes / 1e6 / s : 0;
		if (r->carried_mb_per_s > r->at_least_mb_per_s) {
			r->at_least_mb_per_s = r->carried_mb_per_s;
			r->at_least_ns = l->now_ns;
		}
	}
}

void links_port(const struct links *l, const struct iocom_vector *v, struct rules_port *port)
{
	const struct link_rate *r = l && *v->address ? links_find(l, v->address) : NULL;

	port->mb_per_s = v->network_mb_per_s;
	port->busy_mb_per_s =
		v->sent_mb_per_s > v->received_mb_per_s ? v->sent_mb_per_s : v->received_mb_per_s;
	port->round_trip_ms = 0;
	if (!r)
		return;
	if (!(port->mb_per_s > 0))
		port->mb_per_s = r->tcp_mb_per_s;
	if (port->mb_per_s > 0 && port->mb_per_s < r->at_least_mb_per_s)
		port->mb_per_s = r->at_least_mb_per_s;
	if (r->round_trip_ns)
		port->round_trip_ms = r->round_trip_ms;
}

/* --- the kernel's answer -------------------------------------------------------------------- */

static void links_address(const struct inet_diag_msg *m, char out[IOCOM_ADDRESS_MAX])
{
	const struct in6_addr *six = (const struct in6_addr *)m->id.idiag_dst;

	*out = 0;
	if (m->idiag_family == AF_INET)
		inet_ntop(AF_INET, m->id.idiag_dst, out, IOCOM_ADDRESS_MAX);
	else if (m->idiag_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six))
		inet_ntop(AF_INET, &m->id.idiag_dst[3], out, IOCOM_ADDRESS_MAX);
	else if (m->idiag_family == AF_INET6)
		inet_ntop(AF_INET6, six, out, IOCOM_ADDRESS_MAX);
}

static void links_info(const void *data, size_t length, struct link_socket *out)
{
	struct tcp_info info = {0};

	memcpy(&info, data, length < sizeof(info) ? length : sizeof(info));
	out->acked = info.tcpi_bytes_acked;
	out->received = info.tcpi_bytes_received;
	out->min_rtt_us = info.tcpi_min_rtt ? info.tcpi_min_rtt : LINKS_RTT_UNKNOWN;
	out->delivery_bytes_per_s = info.tcpi_delivery_rate;
	out->app_limited = info.tcpi_delivery_rate_app_limited;
}

int links_parse(const void *message, size_t length, struct link_socket *out)
{
	const size_t least = offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof(uint64_t);
	struct inet_diag_msg m;
	size_t at = NLMSG_ALIGN(sizeof(m)), step;

	*out = (struct link_socket){0};
	if (length < at)
		return -EINVAL;
	memcpy(&m, message, sizeof(m));
	links_address(&m, out->address);
	out->cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0];
	if (!*out->address || !out->cookie)
		return -EINVAL;
	while (length - at >= sizeof(struct nlattr)) {
		struct nlattr a;

		memcpy(&a, (const char *)message + at, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > length - at)
			return -EINVAL;
		if ((a.nla_type & NLA_TYPE_MASK) == INET_DIAG_INFO) {
			if (a.nla_len - sizeof(a) < least)
				return -EINVAL;
			links_info((const char *)message + at + sizeof(a), a.nla_len - sizeof(a),
				   out);
			return 0;
		}
		step = (size_t)NLA_ALIGN(a.nla_len);
		if (step > length - at)
			break;
		at += step;
	}
	return -EINVAL;
}

/*
 * The older form of the request: only it may ask for all families at once, and each answer costs a
 * walk through the kernel's table, whose size is the machine's and not the number of connections.
 */
static int links_ask(int fd)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req request;
	} ask = {
		.header = {.nlmsg_len = sizeof(ask),
			   .nlmsg_type = TCPDIAG_GETSOCK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.idiag_family = AF_UNSPEC,
			    .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			    .idiag_states = 1 << LINKS_ESTABLISHED},
	};
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (sendto(fd, &ask, sizeof(ask), 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

/* Takes the messages of one datagram.  Returns 1 after the last, 0, or negative errno. */
static int links_take(struct links *l, const char *buffer, size_t length)
{
	size_t at = 0;

	while (length - at >= sizeof(struct nlmsghdr)) {
		struct link_socket s;
		struct nlmsghdr h;
		int32_t error = 0;

		memcpy(&h, buffer + at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > length - at)
			return -EBADMSG;
		if (h.nlmsg_type == NLMSG_DONE)
			return 1;
		if (h.nlmsg_type == NLMSG_ERROR) {
			if (h.nlmsg_len >= sizeof(h) + sizeof(error))
				memcpy(&error, buffer + at + sizeof(h), sizeof(error));
			return error < 0 ? error : -EBADMSG;
		}
		if (!links_parse(buffer + at + sizeof(h), h.nlmsg_len - sizeof(h), &s))
			links_note(l, &s);
		if (NLMSG_ALIGN(h.nlmsg_len) > length - at)
			break;
		at += NLMSG_ALIGN(h.nlmsg_len);
	}
	return 0;
}

static int links_dump(struct links *l, int fd, char *buffer)
{
	int rc = links_ask(fd);

	while (!rc) {
		struct sockaddr_nl from = {0};
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(fd, buffer, LINKS_ANSWER, 0, (struct sockaddr *)&from, &size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		if (from.nl_pid) /* only the kernel may tell */
			continue;
		rc = links_take(l, buffer, (size_t)n);
	}
	return rc < 0 ? rc : 0;
}

int links_look(struct links *l, uint64_t now_ns, struct iocom_err *err)
{
	const struct timeval patience = {.tv_sec = 1};
	char *buffer = malloc(LINKS_ANSWER);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), rc;

	rc = !buffer ? -ENOMEM : fd < 0 ? -errno : 0;
	if (!rc && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		rc = -errno;
	if (!rc) {
		links_begin(l, now_ns);
		rc = links_dump(l, fd, buffer);
		links_end(l);
	}
	if (rc)
		iocom_err_set(
			err, rc,
			"cannot ask the kernel for TCP connections (sock_diag): %s; rates and "
			"round trips of links stay as they are",
			strerror(-rc));
	if (fd >= 0)
		close(fd);
	free(buffer);
	return rc;
}
