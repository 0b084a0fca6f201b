/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The nodes of the cluster; see peers.h.  Questions and answers are in peer_requests.c. */
#include "agent/cluster/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/peer_requests.h"
#include "agent/cluster/probe.h"
#include "agent/cluster/tunnel.h"

#define HELLO_EVERY  15 /* seconds, as calls of peers_chores */
#define DIRECT_NODES 64 /* in a cluster of up to 64 nodes, each hears all others directly */

/* --- what is heard ------------------------------------------------------------- */

static void peers_joined(struct peers *p, const struct iocom_vector *v)
{
	log_write(p->base->log, LOG_L_INFO, "node %s at %s:%u is here", v->name, v->address,
		  v->port);
	if (p->matrix.count <= DIRECT_NODES && v->address[0])
		bulletin_dial(p->bulletin, v->address, v->port);
	p->chores = 0; /* the next peers_chores greets it */
}

static void peers_heard(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	struct peers *p = arg;
	struct counters *counters = p->base->counters;
	const struct matrix_entry *e = matrix_find(&p->matrix, v->name);
	bool joins = !e || !e->alive;

	if (direct)
		skews_forget(&p->skews, v->name);
	switch (matrix_put(&p->matrix, v, age_ns, loop_boot_ns(p->base->loop))) {
	case 0:
		counters->vectors_accepted++;
		if (joins)
			peers_joined(p, v);
		break;
	case MATRIX_E_OWN:
		if (direct && v->boot_id != p->base->boot_id) {
			counters->vectors_refused_name++;
			log_write(p->base->log, LOG_L_WARNING,
				  "another node also calls itself %s (at %s:%u); give each its own "
				  "--name",
				  v->name, v->address, v->port);
		}
		break;
	case MATRIX_E_OLD:
		counters->vectors_refused_old += direct;
		break;
	case MATRIX_E_FULL:
		counters->vectors_refused_full++;
		break;
	default:
		break;
	}
}

static void peers_skewed(void *arg, const char *node, int64_t ahead_s)
{
	struct peers *p = arg;

	skews_note(&p->skews, node, ahead_s, loop_boot_ns(p->base->loop));
}

static int peers_on_hello(void *arg, const struct peer_request *r, uint64_t ticket,
			  struct peer_answer *answer)
{
	struct peers *p = arg;

	(void)ticket;
	if (p->bulletin)
		bulletin_dial(p->bulletin, r->hello.address, r->hello.port);
	answer->ok = true;
	return 0;
}

/* --- set-up -------------------------------------------------------------------- */

static int make_tunnels(struct peers *p, struct iocom_err *err)
{
	bool shared = false;
	int rc = tunnels_new(&p->tunnels, p->base, &shared, err);

	if (rc || !p->tls) /* without TLS relays only probe silent peers */
		return rc;
	if (shared)
		log_write(p->base->log, LOG_L_WARNING,
			  "TLS relays run as nobody, which other services may use too; create a "
			  "user 'iocom', or name one in relay_user");
	else
		log_write(p->base->log, LOG_L_INFO, "TLS relays run as uid %u",
			  (unsigned)tunnels_uid(p->tunnels));
	return 0;
}

static int peers_listen(struct peers *p, struct iocom_err *err)
{
	const struct settings *set = p->base->set;
	const struct bulletin_config b = {
		.loop = p->base->loop,
		.seal = p->seal,
		.log = p->base->log,
		.counters = p->base->counters,
		.listen = set->listen,
		.port = (uint16_t)set->port,
		.each = peers_heard,
		.arg = p,
		.tls = p->tls,
		.skewed = peers_skewed,
	};
	const struct control_config c = {
		.loop = p->base->loop,
		.seal = p->seal,
		.log = p->base->log,
		.counters = p->base->counters,
		.name = set->name,
		.listen = set->listen,
		.port = (uint16_t)set->port,
		.handler = peer_requests_handle,
		.arg = p,
		.tls = p->tls,
	};
	int rc = bulletin_new(&p->bulletin, &b, err);

	return rc ? rc : control_new(&p->control, &c, err);
}

int peers_start(struct peers *p, const struct base *base, struct journal *journal,
		struct seal *seal, struct iocom_err *err)
{
	const struct settings *set = base->set;
	int rc = 0;

	p->base = base;
	p->journal = journal;
	p->seal = seal;
	matrix_init(&p->matrix, set->name);
	peers_serve(p, PEER_HELLO, peers_on_hello, p);
	if (!seal)
		return 0;
	if (set->tls_ca[0])
		rc = tls_new(&p->tls, set->tls_certificate, set->tls_key, set->tls_ca, err);
	if (!rc)
		rc = make_tunnels(p, err);
	if (!rc)
		rc = peers_listen(p, err);
	return rc ? rc : probes_new(&p->probes, base, &p->matrix, p->tunnels, err);
}

void peers_stop(struct peers *p)
{
	probes_free(p->probes);
	p->probes = NULL;
	bulletin_free(p->bulletin);
	p->bulletin = NULL;
	control_free(p->control);
	p->control = NULL;
	peer_requests_stop(p);
}

void peers_free(struct peers *p)
{
	matrix_fini(&p->matrix);
	tls_free(p->tls);
	tunnels_free(p->tunnels);
	seal_free(p->seal);
	*p = (struct peers){0};
}

void peers_dial(struct peers *p)
{
	const struct settings *set = p->base->set;

	for (size_t i = 0; p->bulletin && i < set->npeers; i++)
		if (!settings_is_self(set, &set->peers[i]))
			bulletin_dial(p->bulletin, set->peers[i].address, set->peers[i].port);
}

/* --- as time goes by ------------------------------------------------------------- */

void peers_period(void *arg)
{
	struct peers *p = arg;
	size_t n = matrix_expire(&p->matrix, loop_boot_ns(p->base->loop));

	p->base->counters->nodes_dropped += n;
	if (n)
		log_write(p->base->log, LOG_L_WARNING,
			  "%zu node%s silent for %d periods: no jobs go there until heard again", n,
			  n == 1 ? "" : "s", MATRIX_SILENT_PERIODS);
	if (p->control) {
		control_count(p->control);
		bulletin_count(p->bulletin);
	}
}

void peers_publish(void *arg, const struct iocom_vector *own, uint64_t now_ns)
{
	struct peers *p = arg;

	if (p->bulletin)
		bulletin_publish(p->bulletin, own, &p->matrix, now_ns);
}

void peers_chores(struct peers *p)
{
	if (p->probes)
		probes_run(p->probes);
	if (p->chores++ % HELLO_EVERY == 0)
		peer_requests_hello(p);
}

bool peers_mute(const struct peers *p)
{
	return p->seal && seal_down(p->seal);
}
