/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's I/O on a file system that the nodes share (MODEL 2.11, ours).  Wherever the job runs, one
 * node's disk serves it, that of the server s.  At node k it moves
 *
 *   m(k) = max(0, read - cached(k)) + written                 MB; cached: in k's page cache
 *
 * and that takes, without any wait,
 *
 *   at the disk of s   S(k) = 1000 m(k) / q * s_s(q)          q: the job's request size, KB
 *   on the way         W(k) = 1000 m(k) / min(b_k, b_s)       ms; 0 at k = s
 *
 * If no node is known to be the server, S is 0, and b_k alone counts.  The candidate's own disk
 * does not appear.
 */
#include "balancer/rules/rules_private.h"

#define MS_PER_S  1000.0
#define KB_PER_MB 1000.0

bool rules_is_shared(const struct rules_request *j)
{
	return j->shared.read_mb > 0 || j->shared.written_mb > 0;
}

/* The server's cell; NULL: the view does not have it, or it has no disk. */
static const struct rules_cell *shared_server(const struct rules_decision *d)
{
	const struct rules_shared *s = &d->request->shared;
	const struct rules_cell *c;

	if (!s->served || s->server >= d->view->count)
		return NULL;
	c = &d->view->cells[s->server];
	return c->disk_mb_per_s > 0 ? c : NULL;
}

static double shared_moved_mb(const struct rules_request *j, uint32_t node)
{
	const struct rules_held *cached = rules_cached_at(j, node);
	double read = j->shared.read_mb;

	if (cached != NULL)
		read = cached->mb < read ? read - cached->mb : 0;
	return read + j->shared.written_mb;
}

static double shared_link(const struct rules_decision *d, const struct rules_cell *c,
			  const struct rules_cell *server)
{
	double link = rules_network(d, c), other = server ? rules_network(d, server) : link;

	return other < link ? other : link;
}

static double shared_request_kb(const struct rules_request *j, const struct rules_cell *server)
{
	return j->request_kb > 0 ? j->request_kb : server->request_kb;
}

const struct rules_cell *rules_shared_way(const struct rules_decision *d,
					  const struct rules_cell *c, uint32_t node,
					  struct rules_shared_way *out)
{
	const struct rules_request *j = d->request;
	const struct rules_cell *server;
	double link;

	*out = (struct rules_shared_way){0};
	if (!rules_is_shared(j))
		return NULL;
	server = shared_server(d);
	out->mb = shared_moved_mb(j, node);
	link = shared_link(d, c, server);
	if (!(j->shared.served && j->shared.server == node) && link > 0)
		out->network_ms = MS_PER_S * out->mb / link;
	if (server != NULL) {
		double kb = shared_request_kb(j, server);

		out->requests = out->mb * KB_PER_MB / kb;
		out->disk_ms = out->requests *
			       rules_service_ms(server->fixed_ms, kb, server->disk_mb_per_s);
	}
	return server;
}

double rules_shared_response(const struct rules_decision *d, const struct rules_cell *c,
			     uint32_t node)
{
	struct rules_shared_way way;
	const struct rules_cell *server = rules_shared_way(d, c, node, &way);

	if (server == NULL)
		return way.network_ms;
	return way.network_ms +
	       way.requests * rules_disk_response(d, server, shared_request_kb(d->request, server));
}
