/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Bulletins; see bulletin.h.  Threads and the order of shutdown are as in control.c. */
#include "agent/cluster/bulletin.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/control.h"
#include "agent/cluster/connection_limit.h"
#include "user/pack.h"
#include "balancer/view/vector_codec.h"

#define RECEIVE_BUFFER	 8192
#define RECONNECT_MS	 100
#define RECONNECT_MAX_MS 2000

struct bulletin {
	struct bulletin_config config;
	nng_socket pub, sub;
	bool pub_open, sub_open;
	struct connection_limit *guests; /* of pub */
	struct connection_limit *hosts;	 /* of sub: the publishers that we dialed */
	nng_aio *aio;
	struct loop_post post;
	nng_pipe from;		     /* where the bulletin came from that is being opened */
	struct seal_question *opens; /* NULL: no bulletin is being opened */
	struct seal_question *seals; /* NULL: no bulletin is being sealed */
	msgpack_sbuffer next;	     /* the newest one, to be sealed afterwards; empty: none */
	char dialed[BULLETIN_DIALED_MAX][128];
	size_t ndialed;
};

static void bulletin_pack_vector(msgpack_packer *pk, uint64_t age_ms, const struct iocom_vector *v)
{
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint64(pk, age_ms);
	vector_pack(pk, v);
}

void bulletin_pack(msgpack_sbuffer *out, const struct iocom_vector *own, const struct matrix *m,
		   uint64_t now_ns)
{
	const struct matrix_entry *others[BULLETIN_VECTORS_MAX - 1];
	size_t n = matrix_freshest(m, others, BULLETIN_VECTORS_MAX - 1);
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 3);
	pack_u64(&pk, "v", BULLETIN_VERSION);
	pack_str(&pk, "from", own->name);
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

int bulletin_unpack(const void *data, size_t length, char from[IOCOM_NAME_MAX], uint64_t *bad,
		    bulletin_each each, void *arg)
{
	msgpack_unpacked map;
	uint64_t version = 0;
	int rc;

	from[0] = 0;
	if (unpack_map_of(&map, data, length, BULLETIN_VALUES_MAX))
		return BULLETIN_E_GARBAGE;
	if (unpack_u64(&map.data, "v", &version) ||
	    unpack_str(&map.data, "from", from, IOCOM_NAME_MAX))
		rc = BULLETIN_E_GARBAGE;
	else if (version != BULLETIN_VERSION)
		rc = BULLETIN_E_VERSION;
	else
		rc = unpack_vectors(unpack_get(&map.data, "vectors"), from, bad, each, arg);
	msgpack_unpacked_destroy(&map);
	return rc;
}

/* Counts and logs a refused bulletin. */
static void bulletin_refuse(struct bulletin *b, int reason, const char *why)
{
	struct counters *c = b->config.counters;

	switch (reason) {
	case SEAL_E_FORGED:
	case SEAL_E_REPLAYED:
		c->bulletins_refused_forged++;
		break;
	case SEAL_E_SKEW:
		c->bulletins_refused_skew++;
		break;
	case SEAL_E_GARBAGE:
		c->bulletins_refused_garbage++;
		break;
	default: /* munged did not answer, which is counted */
		break;
	}
	log_provoked(b->config.log, LOG_L_WARNING, "refused a bulletin: %s", why);
}

static void no_news(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	(void)arg;
	(void)v;
	(void)age_ns;
	(void)direct;
}

/* A skewed bulletin only tells which node's clock differs; the rest is not trusted. */
static void tell_skew(struct bulletin *b, const struct seal_answer *a)
{
	char from[IOCOM_NAME_MAX];
	uint64_t bad = 0;

	if (!bulletin_unpack(a->data, a->length, from, &bad, no_news, NULL))
		b->config.skewed(b->config.arg, from, a->ahead_s);
}

static void bulletin_take(struct bulletin *b, const struct seal_answer *a)
{
	struct counters *c = b->config.counters;
	char from[IOCOM_NAME_MAX];
	uint64_t bad = 0;
	int rc = bulletin_unpack(a->data, a->length, from, &bad, b->config.each, b->config.arg);

	c->vectors_refused_garbage += bad;
	if (rc == BULLETIN_E_VERSION) {
		c->bulletins_refused_version++;
		log_provoked(b->config.log, LOG_L_WARNING,
			     "refused a bulletin of node '%s': it runs another version of iocom; "
			     "install the same version on all nodes",
			     from);
	} else if (rc) {
		c->bulletins_refused_garbage++;
		log_provoked(b->config.log, LOG_L_WARNING,
			     "refused a bulletin: it is not a message of iocom");
	}
}

static void bulletin_opened(void *arg, struct seal_answer *a)
{
	struct bulletin *b = arg;

	b->opens = NULL;
	connection_limit_judge(b->hosts, b->from, a->rc);
	if (!a->rc)
		bulletin_take(b, a);
	else
		bulletin_refuse(b, a->rc, a->err.text);
	if (a->rc == SEAL_E_SKEW && a->data)
		tell_skew(b, a);
	nng_recv_aio(b->sub, b->aio);
}

/*
 * Has the bulletin opened; what a connection sent that was cut since is not looked at.  Returns
 * true if BULLETIN_OPENED will be called.
 */
static bool bulletin_open(struct bulletin *b, nng_msg *msg)
{
	struct iocom_err err = {0};
	int rc;

	b->from = nng_msg_get_pipe(msg);
	b->config.counters->bulletins_received++;
	if (connection_limit_is_cut(b->hosts, b->from)) {
		b->config.counters->bulletins_refused_garbage++;
		return false;
	}
	rc = seal_open_message(b->config.seal, SEAL_FOREIGN, nng_msg_body(msg), nng_msg_len(msg),
			       true, bulletin_opened, b, &b->opens, &err);
	if (!rc)
		return true;
	connection_limit_judge(b->hosts, b->from, rc);
	bulletin_refuse(b, rc, err.text);
	return false;
}

static void called(void *arg)
{
	struct bulletin *b = arg;

	loop_post(b->config.loop, &b->post);
}

static void bulletin_run(void *arg)
{
	struct bulletin *b = arg;
	int e = nng_aio_result(b->aio);
	bool opens = false;

	if (!e) {
		nng_msg *msg = nng_aio_get_msg(b->aio);

		nng_aio_set_msg(b->aio, NULL);
		opens = bulletin_open(b, msg);
		nng_msg_free(msg);
	}
	if (!opens && e != NNG_ECLOSED && e != NNG_ECANCELED)
		nng_recv_aio(b->sub, b->aio);
}

static int open_sockets(struct bulletin *b, const char *url)
{
	const struct connection_limit_bounds to_us = {.max = CONNECTION_LIMIT_MAX,
						      .max_of_one = CONNECTION_LIMIT_OF_ONE};
	/* One that was lost may still be known when it is dialed again. */
	const struct connection_limit_bounds dialed = {.max = 2 * BULLETIN_DIALED_MAX,
						       .max_of_one = 2 * BULLETIN_DIALED_MAX};
	int e = nng_pub0_open(&b->pub);

	if (e)
		return e;
	b->pub_open = true;
	e = nng_sub0_open(&b->sub);
	if (e)
		return e;
	b->sub_open = true;
	nng_socket_set_size(b->sub, NNG_OPT_RECVMAXSZ, BULLETIN_BYTES_MAX);
	nng_socket_set_size(b->pub, NNG_OPT_RECVMAXSZ, 1024); /* subscribers send nothing */
	nng_socket_set_int(b->sub, NNG_OPT_RECVBUF, RECEIVE_BUFFER);
	nng_socket_set_ms(b->sub, NNG_OPT_RECONNMINT, RECONNECT_MS);
	nng_socket_set_ms(b->sub, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS);
	e = nng_socket_set(b->sub, NNG_OPT_SUB_SUBSCRIBE, "", 0);
	if (!e)
		e = connection_limit_new(&b->guests, b->pub, &to_us);
	if (!e)
		e = connection_limit_new(&b->hosts, b->sub, &dialed);
	if (!e)
		e = tls_listen(b->config.tls, b->pub, url);
	if (!e)
		e = nng_aio_alloc(&b->aio, called, b);
	return e;
}

int bulletin_new(struct bulletin **out, const struct bulletin_config *config, struct iocom_err *err)
{
	struct bulletin *b = calloc(1, sizeof(*b));
	char url[128];
	int e;

	if (!b)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	b->config = *config;
	b->post = (struct loop_post){.run = bulletin_run, .arg = b};
	msgpack_sbuffer_init(&b->next);
	control_url(url, sizeof(url), config->listen, config->port);
	e = open_sockets(b, url);
	if (e) {
		bulletin_free(b);
		return control_nng_error(e, "publish bulletins at", url, err);
	}
	nng_recv_aio(b->sub, b->aio);
	*out = b;
	return 0;
}

void bulletin_count(struct bulletin *b)
{
	connection_limit_count_into(b->guests, b->config.counters);
	connection_limit_count_into(b->hosts, b->config.counters);
}

size_t bulletin_guests(const struct bulletin *b)
{
	return b ? connection_limit_count(b->guests) : 0;
}

size_t bulletin_payers(const struct bulletin *b)
{
	return b ? connection_limit_payers(b->hosts) : 0;
}

size_t bulletin_dialed(const struct bulletin *b)
{
	return b ? b->ndialed : 0;
}

void bulletin_free(struct bulletin *b)
{
	if (!b)
		return;
	seal_forget(b->config.seal, b->opens);
	seal_forget(b->config.seal, b->seals);
	msgpack_sbuffer_destroy(&b->next);
	if (b->sub_open)
		nng_close(b->sub);
	if (b->aio) {
		nng_aio_stop(b->aio);
		if (b->post.queued && nng_aio_result(b->aio) == 0 && nng_aio_get_msg(b->aio))
			nng_msg_free(nng_aio_get_msg(b->aio));
		loop_unpost(b->config.loop, &b->post);
		nng_aio_free(b->aio);
	}
	if (b->pub_open)
		nng_close(b->pub);
	connection_limit_free(b->guests);
	connection_limit_free(b->hosts);
	free(b);
}

void bulletin_dial(struct bulletin *b, const char *address, uint16_t port)
{
	char url[128];
	int e;

	control_url(url, sizeof(url), address, port);
	for (size_t i = 0; i < b->ndialed; i++)
		if (!strcmp(b->dialed[i], url))
			return;
	if (b->ndialed == BULLETIN_DIALED_MAX) /* we know the others from relayed vectors */
		return;
	e = tls_dial(b->config.tls, b->sub, url);
	if (e) {
		log_write(b->config.log, LOG_L_WARNING, "cannot subscribe to %s: %s", url,
			  nng_strerror(e));
		return;
	}
	snprintf(b->dialed[b->ndialed++], sizeof(b->dialed[0]), "%s", url);
}

static void bulletin_send(struct bulletin *b, const char *credential)
{
	nng_msg *msg = NULL;

	if (nng_msg_alloc(&msg, 0) || nng_msg_append(msg, credential, strlen(credential)) ||
	    nng_sendmsg(b->pub, msg, NNG_FLAG_NONBLOCK)) {
		if (msg)
			nng_msg_free(msg);
		log_write(b->config.log, LOG_L_WARNING, "cannot publish a bulletin");
	} else {
		b->config.counters->bulletins_sent++;
	}
}

static void bulletin_sealed(void *arg, struct seal_answer *a);

static void bulletin_seal(struct bulletin *b, const msgpack_sbuffer *packed)
{
	struct iocom_err err = {0};

	if (seal_message(b->config.seal, packed->data, packed->size, bulletin_sealed, b, &b->seals,
			 &err))
		log_write(b->config.log, LOG_L_WARNING, "cannot seal a bulletin: %s", err.text);
}

static void bulletin_sealed(void *arg, struct seal_answer *a)
{
	struct bulletin *b = arg;

	b->seals = NULL;
	if (a->rc)
		log_write(b->config.log, LOG_L_WARNING, "cannot seal a bulletin: %s", a->err.text);
	else
		bulletin_send(b, a->text);
	if (b->next.size)
		bulletin_seal(b, &b->next);
	msgpack_sbuffer_clear(&b->next);
}

/* While one is being sealed, only the newest of the others waits. */
void bulletin_publish(struct bulletin *b, const struct iocom_vector *own, const struct matrix *m,
		      uint64_t now_ns)
{
	msgpack_sbuffer buffer;

	if (b->seals) {
		msgpack_sbuffer_clear(&b->next);
		bulletin_pack(&b->next, own, m, now_ns);
		return;
	}
	msgpack_sbuffer_init(&buffer);
	bulletin_pack(&buffer, own, m, now_ns);
	bulletin_seal(b, &buffer);
	msgpack_sbuffer_destroy(&buffer);
}
