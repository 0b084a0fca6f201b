/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_bulletin.h.  nng publishes; subscriptions are the loop's own. */
#include "agent/net/net_bulletin.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/complaints.h"
#include "agent/base/tcp_url.h"
#include "agent/base/seal_refusal.h"
#include "agent/net/address_budget.h"
#include "agent/net/connection_limit.h"
#include "agent/net/gathering.h"
#include "agent/net/names.h"
#include "agent/net/net_error.h"
#include "agent/net/subscription.h"
#include "user/clock.h"
#include "user/pack.h"
#include "balancer/view/vector_codec.h"

/* Between questions to one publisher; each that is not answered makes it twice as long. */
#define ASK_KEY_NS     CLOCK_NS_PER_S
#define ASK_KEY_MAX_NS (8 * CLOCK_NS_PER_S)
/*
 * A silent one is dialled anew so often: after a cut TCP itself waits ever longer between its
 * tries, for minutes in the end.
 */
#define REDIAL_NS (3 * CLOCK_NS_PER_S)
#define RECONNECT_NS                                                                               \
	(2 * CLOCK_NS_PER_S) /* if there is no connection: TCP's own first two tries               \
			      */
/*
 * In a large cluster bulletins gather for so long; in a small one what changes is known at once.
 * How long one waited counts in its age, and what this node relays it reads just before.
 */
#define GATHER_NS  (200 * CLOCK_NS_PER_MS)
#define LOOK_UP_NS (15 * CLOCK_NS_PER_S) /* between questions for a silent one's address */

/* A node whose bulletins we subscribe to. */
struct publisher {
	struct net_bulletin *bulletin;
	struct gate_place at;
	struct subscription *subscription; /* NULL: it was never found */
	char numeric[IOCOM_ADDRESS_MAX];   /* where it is dialled; "": nowhere yet */
	uint64_t looked_ns;		   /* when its name was looked up */
	uint64_t dialed_ns;
	uint64_t heard_ns;	   /* when something of it came */
	char node[IOCOM_NAME_MAX]; /* who has given the key */
	struct bulletin_key key;
	uint64_t first; /* the number from which bulletins are sealed for this node */
	bool told;	/* that its host is not found */
	bool asked;	/* for a key, without an answer yet */
	uint64_t asked_ns, ask_wait_ns;
};

struct net_bulletin {
	struct net_bulletin_config config;
	nng_socket pub;
	bool pub_open;
	struct connection_limit *guests; /* of pub */
	struct gathering *gathering;
	struct address_budget hosts; /* what publishers pay for messages of no use */
	struct bulletin_key own;
	const struct publisher *hearing; /* whose bulletin is being taken */
	struct publisher *publishers[BULLETIN_DIALED_MAX];
	size_t npublishers;
};

static void bulletin_pack_vector(msgpack_packer *pk, uint64_t age_ms, const struct iocom_vector *v)
{
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint64(pk, age_ms);
	vector_pack(pk, v);
}

void bulletin_pack(msgpack_sbuffer *out, const struct iocom_vector *own, const struct matrix *m,
		   uint64_t now_ns, uint64_t at_ms)
{
	const struct matrix_entry *others[BULLETIN_VECTORS_MAX - 1];
	size_t n = matrix_told(m, now_ns, others, BULLETIN_VECTORS_MAX - 1);
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 4);
	pack_u64(&pk, "v", BULLETIN_VERSION);
	pack_str(&pk, "from", own->name);
	pack_u64(&pk, "at", at_ms);
	pack_key(&pk, "vectors");
	msgpack_pack_array(&pk, n + 1);
	bulletin_pack_vector(&pk, 0, own);
	for (size_t i = 0; i < n; i++)
		bulletin_pack_vector(&pk, matrix_age_ns(others[i], now_ns) / 1000000,
				     &others[i]->vector);
}

static int unpack_vectors(const msgpack_object *list, const char *from, uint64_t *bad,
			  bulletin_each each, void *arg)
{
	if (!list || list->type != MSGPACK_OBJECT_ARRAY ||
	    list->via.array.size > BULLETIN_VECTORS_MAX)
		return BULLETIN_E_GARBAGE;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		const msgpack_object *o = &list->via.array.ptr[i];
		const msgpack_object *pair = o->via.array.ptr;
		struct iocom_vector v;

		if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 2 ||
		    pair[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    pair[0].via.u64 > UINT32_MAX || vector_unpack(&pair[1], &v)) {
			++*bad;
			continue;
		}
		each(arg, &v, pair[0].via.u64 * 1000000ull, !strcmp(v.name, from));
	}
	return 0;
}

int bulletin_unpack(const void *data, size_t length, struct bulletin_sender *sender, uint64_t *bad,
		    bulletin_may may, bulletin_each each, void *arg)
{
	msgpack_unpacked map;
	uint64_t version = 0;
	int rc;

	*sender = (struct bulletin_sender){0};
	if (unpack_map_of(&map, data, length, BULLETIN_VALUES_MAX))
		return BULLETIN_E_GARBAGE;
	if (unpack_u64(&map.data, "v", &version) ||
	    unpack_str(&map.data, "from", sender->from, sizeof(sender->from)))
		rc = BULLETIN_E_GARBAGE;
	else if (version < BULLETIN_VERSION)
		rc = BULLETIN_E_VERSION;
	else if (unpack_u64(&map.data, "at", &sender->at_ms) || sender->at_ms > INT64_MAX)
		rc = BULLETIN_E_GARBAGE;
	else if (may && !may(arg, sender))
		rc = 0;
	else
		rc = unpack_vectors(unpack_get(&map.data, "vectors"), sender->from, bad, each, arg);
	msgpack_unpacked_destroy(&map);
	return rc;
}

static void bulletin_tell(struct net_bulletin *b, const struct publisher *p, enum peer_cause cause,
			  const char *why)
{
	if (b->config.trouble)
		b->config.trouble(b->config.arg, &p->at, cause, why);
}

static void bulletin_refuse_version(struct net_bulletin *b, const struct publisher *p,
				    const char *from)
{
	b->config.base->counters->bulletins_refused_version++;
	base_complain(b->config.base, from,
		      "refused a bulletin of %s%s: it runs another version of iocom; install the "
		      "same version on all nodes",
		      *from ? "node " : "a node", from);
	if (p)
		bulletin_tell(b, p, PEER_C_VERSION, "it runs another version of iocom");
}

/* --- judging ---------------------------------------------------------------------- */

/* Counts and logs a refused bulletin; RC is bulletin_open's. */
static int bulletin_refuse(struct net_bulletin *b, int rc, const char *from)
{
	struct counters *c = b->config.base->counters;
	bool garbage = rc == BULLETIN_E_GARBAGE;

	if (garbage)
		c->bulletins_refused_garbage++;
	else
		c->bulletins_refused_forged++;
	base_complain(b->config.base, from, "refused a bulletin%s%s: %s",
		      *from ? " in the name of node " : "", from,
		      garbage		? "it is not a message of iocom"
		      : rc == -EALREADY ? "it was here before (a replay)"
					: "it was not made by that node");
	return garbage ? SEAL_E_GARBAGE : rc == -EALREADY ? SEAL_E_REPLAYED : SEAL_E_FORGED;
}

/* Returns true if the sender's clock and ours are near enough. */
static bool bulletin_is_timely(struct net_bulletin *b, const struct bulletin_sender *sender)
{
	int64_t now_ms = (int64_t)(loop_real_ns(b->config.base->loop) / CLOCK_NS_PER_MS);
	int64_t ahead_s = ((int64_t)sender->at_ms - now_ms) / 1000;

	if (ahead_s <= SEAL_TTL_S && ahead_s >= -SEAL_TTL_S)
		return true;
	b->config.base->counters->bulletins_refused_skew++;
	base_complain(b->config.base, sender->from,
		      "refused a bulletin of node %s: made %lld s %s this machine's time (at most "
		      "%d s are accepted): it was delayed, or the clocks differ; synchronise them",
		      sender->from, (long long)(ahead_s > 0 ? ahead_s : -ahead_s),
		      ahead_s > 0 ? "after" : "before", SEAL_TTL_S);
	b->config.skewed(b->config.arg, sender->from, ahead_s);
	return false;
}

/* Whether what publisher `hearing` says is to be believed. */
static bool bulletin_is_its(void *arg, const struct bulletin_sender *sender)
{
	struct net_bulletin *b = arg;

	if (strcmp(sender->from, b->hearing->node) != 0) {
		bulletin_refuse(b, -EBADMSG, b->hearing->node);
		return false;
	}
	if (!bulletin_is_timely(b, sender))
		return false;
	base_settle(b->config.base, b->hearing->node);
	return true;
}

static void bulletin_hand_on(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	const struct net_bulletin *b = arg;

	b->config.each(b->config.arg, v, age_ns + subscription_waited_ns(b->hearing->subscription),
		       direct);
}

/* Takes what publisher P has sealed; what is wrong in it is no fault of the connection. */
static void bulletin_take(struct net_bulletin *b, const struct publisher *p, const void *data,
			  size_t n)
{
	struct bulletin_sender sender;
	uint64_t bad = 0;
	int rc;

	b->hearing = p;
	rc = bulletin_unpack(data, n, &sender, &bad, bulletin_is_its, bulletin_hand_on, b);
	b->hearing = NULL;
	b->config.base->counters->vectors_refused_garbage += bad;
	if (rc == BULLETIN_E_VERSION)
		bulletin_refuse_version(b, p, sender.from);
	else if (rc)
		bulletin_refuse(b, rc, p->node);
}

/* --- keys ------------------------------------------------------------------------- */

/* Returns where the publisher at AT stands; npublishers: there is none. */
static size_t publisher_index(const struct net_bulletin *b, const struct gate_place *at)
{
	size_t i = 0;

	while (i < b->npublishers && !gate_place_is(&b->publishers[i]->at, at->address, at->port))
		i++;
	return i;
}

static struct publisher *publisher_at(const struct net_bulletin *b, const struct gate_place *at)
{
	size_t i = publisher_index(b, at);

	return i < b->npublishers ? b->publishers[i] : NULL;
}

static void publisher_ask(struct net_bulletin *b, struct publisher *p)
{
	uint64_t now = loop_boot_ns(b->config.base->loop);

	if (p->asked || (p->asked_ns && now - p->asked_ns < p->ask_wait_ns))
		return;
	p->asked = true;
	p->asked_ns = now;
	p->ask_wait_ns = p->ask_wait_ns ? 2 * p->ask_wait_ns : ASK_KEY_NS;
	if (p->ask_wait_ns > ASK_KEY_MAX_NS)
		p->ask_wait_ns = ASK_KEY_MAX_NS;
	b->config.ask_key(b->config.arg, &p->at);
}

void net_bulletin_epoch(struct net_bulletin *b, const struct bulletin_key *key)
{
	b->own = *key;
}

void net_bulletin_key(struct net_bulletin *b, const struct gate_publisher *publisher)
{
	struct publisher *p = publisher_at(b, &publisher->at);

	if (!p)
		return;
	p->asked = false;
	if (publisher->given)
		p->ask_wait_ns = 0;
	/* An answer that was overtaken must not make us take a bulletin a second time. */
	if (!publisher->given || p->key.epoch == publisher->key.epoch)
		return;
	snprintf(p->node, sizeof(p->node), "%s", publisher->node);
	p->key = publisher->key;
	p->first = publisher->key.next;
}

/*
 * Opens a bulletin of publisher P.  Returns 0; enum seal_refusal: a fault of who sent it.  What
 * cannot be judged costs little, as what is here twice does: a bulletin of another version, or of
 * an epoch whose key is not here yet.  Nobody may send many.
 */
static int bulletin_hear(struct net_bulletin *b, struct publisher *p, void *body, size_t length)
{
	struct bulletin_head head;
	const void *plain;
	bool known;
	size_t n;
	int rc = bulletin_head_read(&head, body, length);

	if (rc == -EPROTO) {
		bulletin_refuse_version(b, p, "");
		return SEAL_E_REPLAYED;
	}
	if (rc)
		return bulletin_refuse(b, BULLETIN_E_GARBAGE, "");
	known = head.epoch == p->key.epoch && !strcmp(head.from, p->node);
	/* One from before the key was given may have waited here meanwhile. */
	if (!known || head.number < p->first) {
		b->config.base->counters->bulletins_refused_key++;
		if (!known)
			publisher_ask(b, p);
		return SEAL_E_REPLAYED;
	}
	rc = bulletin_open(&p->key, &head, body, length, &plain, &n);
	if (rc)
		return bulletin_refuse(b, rc, head.from);
	bulletin_take(b, p, plain, n);
	return 0;
}

/* A message of publisher P was judged; garbage and forged seals end the connection. */
static void publisher_judge(struct publisher *p, int refusal)
{
	struct net_bulletin *b = p->bulletin;
	bool junk = refusal == SEAL_E_GARBAGE || refusal == SEAL_E_FORGED;
	uint64_t now = loop_boot_ns(b->config.base->loop);
	uint8_t key[ADDRESS_LIMIT_KEY];

	address_limit_key_of(subscription_address(p->subscription), key);
	if (!refusal) {
		address_budget_earn(&b->hosts, key, now);
		return;
	}
	address_budget_pay(&b->hosts, key, junk ? ADDRESS_BUDGET_UNIT_NS : ADDRESS_BUDGET_STALE_NS,
			   now);
	/* Whoever repeats what others sealed loses the connection when the budget is spent. */
	if (!junk && address_budget_has(&b->hosts, key, now))
		return;
	b->config.base->counters->connections_cut++;
	subscription_cut(p->subscription);
}

static bool publisher_may(void *arg, const struct sockaddr *to)
{
	const struct publisher *p = arg;
	struct net_bulletin *b = p->bulletin;
	uint8_t key[ADDRESS_LIMIT_KEY];
	bool may;

	address_limit_key_of(to, key);
	may = address_budget_has(&b->hosts, key, loop_boot_ns(b->config.base->loop));
	b->config.base->counters->addresses_refused += !may;
	return may;
}

static void publisher_came(void *arg, void *message, size_t length)
{
	struct publisher *p = arg;
	struct net_bulletin *b = p->bulletin;

	b->config.base->counters->bulletins_received++;
	p->heard_ns = loop_boot_ns(b->config.base->loop);
	publisher_judge(p, bulletin_hear(b, p, message, length));
}

static void bulletin_gathered(void *arg)
{
	const struct net_bulletin *b = arg;

	b->config.taken(b->config.arg);
}

static int open_sockets(struct net_bulletin *b, const char *url)
{
	const struct connection_limit_bounds to_us = {.max = CONNECTION_LIMIT_MAX,
						      .max_of_one = CONNECTION_LIMIT_OF_ONE};
	int e = nng_pub0_open(&b->pub);

	if (e)
		return e;
	b->pub_open = true;
	nng_socket_set_size(b->pub, NNG_OPT_RECVMAXSZ, 1024); /* subscribers send nothing */
	e = connection_limit_new(&b->guests, b->pub, &to_us);
	if (!e)
		e = nng_listen(b->pub, url, NULL, 0);
	return e;
}

int net_bulletin_new(struct net_bulletin **out, const struct net_bulletin_config *config,
		     struct iocom_err *err)
{
	struct net_bulletin *b = calloc(1, sizeof(*b));
	char url[128];
	int e, rc;

	*out = NULL;
	if (!b)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	b->config = *config;
	rc = gathering_new(&b->gathering, config->base->loop, bulletin_gathered, b, err);
	if (rc) {
		free(b);
		return rc;
	}
	tcp_url(url, sizeof(url), config->listen, config->port);
	e = open_sockets(b, url);
	if (e) {
		net_bulletin_free(b);
		return net_error(e, "publish bulletins at", url, 0, err);
	}
	*out = b;
	return 0;
}

void net_bulletin_count(struct net_bulletin *b, struct gate_counts *counts)
{
	if (!b)
		return;
	connection_limit_count_into(b->guests, b->config.base->counters);
	counts->bulletin_guests = (uint32_t)connection_limit_count(b->guests);
	counts->bulletin_payers =
		(uint32_t)address_budget_count(&b->hosts, loop_boot_ns(b->config.base->loop));
	counts->dialed = (uint32_t)b->npublishers;
}

static void publisher_free(struct publisher *p)
{
	names_forget(p->bulletin->config.names, p);
	subscription_free(p->subscription);
	explicit_bzero(p, sizeof(*p));
	free(p);
}

void net_bulletin_free(struct net_bulletin *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->npublishers; i++)
		publisher_free(b->publishers[i]);
	b->npublishers = 0;
	gathering_free(b->gathering);
	if (b->pub_open)
		nng_close(b->pub);
	connection_limit_free(b->guests);
	explicit_bzero(b, sizeof(*b));
	free(b);
}

/* --- dialling --------------------------------------------------------------------- */

/* Says so once, until it is found. */
static void publisher_not_found(struct publisher *p, const char *why)
{
	const struct base *base = p->bulletin->config.base;

	base->counters->hosts_unresolved++;
	if (!p->numeric[0] && !p->told)
		log_write(base->log, LOG_L_WARNING, "cannot find the node at %s port %u: %s",
			  p->at.address, p->at.port, why);
	p->told = true;
	bulletin_tell(p->bulletin, p, PEER_C_NAME, why);
}

static struct subscription *publisher_subscribe(struct publisher *p)
{
	const struct subscription_config config = {.loop = p->bulletin->config.base->loop,
						   .reads = gathering_loop(p->bulletin->gathering),
						   .message_max = BULLETIN_BYTES_MAX,
						   .may = publisher_may,
						   .came = publisher_came,
						   .arg = p};

	return subscription_new(&config);
}

/* Dials P at ADDRESS, and no longer where it was dialled. */
static void publisher_dial(struct publisher *p, const char *address)
{
	const struct base *base = p->bulletin->config.base;
	int rc = -ENOMEM;

	p->dialed_ns = loop_boot_ns(base->loop);
	if (!p->subscription)
		p->subscription = publisher_subscribe(p);
	if (p->subscription)
		rc = subscription_dial(p->subscription, address, p->at.port);
	if (rc)
		log_write(base->log, LOG_L_WARNING, "cannot subscribe to %s port %u: %s", address,
			  p->at.port, strerror(-rc));
	else if (address != p->numeric)
		snprintf(p->numeric, sizeof(p->numeric), "%s", address);
}

/* Where the publisher is: dials it there, if it is not being dialled there already. */
static void publisher_found(void *arg, const struct names_answer *answer)
{
	struct publisher *p = arg;

	if (!answer->n)
		publisher_not_found(p, answer->why);
	if (answer->n && strcmp(p->numeric, answer->addresses[0]) != 0)
		publisher_dial(p, answer->addresses[0]);
}

static void publisher_look_up(struct publisher *p)
{
	struct net_bulletin *b = p->bulletin;

	p->looked_ns = loop_boot_ns(b->config.base->loop);
	if (names_ask(b->config.names, p->at.address, publisher_found, p))
		b->config.base->counters->hosts_unresolved++;
}

const struct gate_place *net_bulletin_hearing(const struct net_bulletin *b)
{
	return b->hearing ? &b->hearing->at : NULL;
}

const char *net_bulletin_teller(const struct net_bulletin *b)
{
	return b->hearing ? b->hearing->node : NULL;
}

void net_bulletin_dial(struct net_bulletin *b, const struct gate_place *at)
{
	struct publisher *p;

	if (publisher_at(b, at) || b->npublishers == BULLETIN_DIALED_MAX)
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return; /* root asks again with its next plan */
	b->publishers[b->npublishers++] = p;
	*p = (struct publisher){.bulletin = b, .at = *at};
	publisher_look_up(p);
	publisher_ask(b, p);
}

void net_bulletin_undial(struct net_bulletin *b, const struct gate_place *at)
{
	size_t i = publisher_index(b, at);

	if (i == b->npublishers)
		return;
	publisher_free(b->publishers[i]);
	b->publishers[i] = b->publishers[--b->npublishers];
}

/* A node that is silent may have another address now: names are looked up again from time to time.
 */
static void bulletin_look_up(struct net_bulletin *b, uint64_t now)
{
	for (size_t i = 0; i < b->npublishers; i++) {
		struct publisher *p = b->publishers[i];
		uint64_t redial_ns;

		if (now - p->looked_ns >= LOOK_UP_NS && now - p->heard_ns >= LOOK_UP_NS)
			publisher_look_up(p);
		redial_ns = p->subscription && subscription_connects(p->subscription) ? RECONNECT_NS
										      : REDIAL_NS;
		if (p->numeric[0] && now - p->dialed_ns >= redial_ns &&
		    now - p->heard_ns >= REDIAL_NS)
			publisher_dial(p, p->numeric);
	}
}

static void bulletin_send(struct net_bulletin *b, const msgpack_sbuffer *sealed)
{
	nng_msg *msg = NULL;

	if (nng_msg_alloc(&msg, 0) || nng_msg_append(msg, sealed->data, sealed->size) ||
	    nng_sendmsg(b->pub, msg, NNG_FLAG_NONBLOCK)) {
		if (msg)
			nng_msg_free(msg);
		log_write(b->config.base->log, LOG_L_WARNING, "cannot publish a bulletin");
	} else {
		b->config.base->counters->bulletins_sent++;
	}
}

void net_bulletin_publish(struct net_bulletin *b, const struct iocom_vector *own,
			  const struct matrix *m)
{
	uint64_t now;
	uint64_t at_ms = own->time_ns / CLOCK_NS_PER_MS; /* it is published when it is measured */
	msgpack_sbuffer plain, sealed;

	gathering_set(b->gathering, m->count < GOSSIP_DIRECT ? 0 : GATHER_NS);
	gathering_read(b->gathering);
	now = loop_boot_ns(b->config.base->loop);
	bulletin_look_up(b, now);
	msgpack_sbuffer_init(&plain);
	msgpack_sbuffer_init(&sealed);
	bulletin_pack(&plain, own, m, now, at_ms);
	if (bulletin_seal(&b->own, own->name, &plain, &sealed))
		log_write(b->config.base->log, LOG_L_WARNING, "no memory for a bulletin");
	else
		bulletin_send(b, &sealed);
	msgpack_sbuffer_destroy(&plain);
	msgpack_sbuffer_destroy(&sealed);
}
