/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See greeting.h. */
#include "agent/cluster/greeting.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/channel/version.h"
#include "user/pack.h"

#define PROLOGUE     "iocom session"
#define SENTENCE_MAX 240

/* What a credential of a greeting says. */
struct greeting_claim {
	char type[16];
	char cluster[GREETING_CLUSTER_MAX];
	char from[IOCOM_NAME_MAX], to[IOCOM_NAME_MAX];
	uint64_t boot_id;
	uint8_t bytes[NOISE_KEY]; /* psk or hash */
};

_Static_assert(NOISE_KEY == NOISE_HASH, "psk and hash fit into the same field");

static void claim_pack(const char *type, const struct greeting_self *self, const char *to,
		       const char *key, const uint8_t bytes[NOISE_KEY], msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 6);
	pack_str(&pk, "type", type);
	pack_str(&pk, "cluster", self->cluster);
	pack_str(&pk, "from", self->name);
	pack_str(&pk, "to", to);
	pack_u64(&pk, "boot_id", self->boot_id);
	pack_bin(&pk, key, bytes, NOISE_KEY);
}

static int claim_bytes(const msgpack_object *map, const char *key, uint8_t out[NOISE_KEY])
{
	const msgpack_object *o = unpack_get(map, key);

	if (!o || o->type != MSGPACK_OBJECT_BIN || o->via.bin.size != NOISE_KEY)
		return -EBADMSG;
	memcpy(out, o->via.bin.ptr, NOISE_KEY);
	return 0;
}

static int claim_unpack(struct greeting_claim *claim, const char *key, const void *data,
			size_t length)
{
	msgpack_unpacked map;
	int rc = 0;

	*claim = (struct greeting_claim){0};
	if (unpack_map(&map, data, length))
		return -EBADMSG;
	if (unpack_str(&map.data, "type", claim->type, sizeof(claim->type)) ||
	    unpack_str(&map.data, "cluster", claim->cluster, sizeof(claim->cluster)) ||
	    unpack_str(&map.data, "from", claim->from, sizeof(claim->from)) || !claim->from[0] ||
	    unpack_str(&map.data, "to", claim->to, sizeof(claim->to)) ||
	    unpack_u64(&map.data, "boot_id", &claim->boot_id) ||
	    claim_bytes(&map.data, key, claim->bytes))
		rc = -EBADMSG;
	msgpack_unpacked_destroy(&map);
	return rc;
}

static const char *greeting_cluster(const char *name)
{
	return *name ? name : "without a name";
}

/* Checks what both kinds of claim have in common.  A claim "to" nobody is for whoever is here. */
static int claim_judge(const struct greeting_claim *claim, const char *type,
		       const struct greeting_self *self, enum peer_cause *cause,
		       struct iocom_err *err)
{
	if (strcmp(claim->type, type) != 0)
		return iocom_err_set(err, -EACCES, "the credential was made for another purpose");
	*cause = PEER_C_CLUSTER;
	if (strcmp(claim->cluster, self->cluster) != 0)
		return iocom_err_set(err, -EACCES,
				     "node %s belongs to the cluster %s, node %s to the cluster %s "
				     "(setting cluster)",
				     claim->from, greeting_cluster(claim->cluster), self->name,
				     greeting_cluster(self->cluster));
	*cause = PEER_C_NONE;
	if (claim->to[0] && strcmp(claim->to, self->name) != 0)
		return iocom_err_set(err, -EACCES, "it is for node '%s', this is node '%s'",
				     claim->to, self->name);
	if (strcmp(claim->from, self->name) != 0)
		return 0;
	*cause = claim->boot_id == self->boot_id ? PEER_C_SELF : PEER_C_SAME_NAME;
	return iocom_err_set(err, -EACCES,
			     "it claims to come from this node itself: two nodes call "
			     "themselves %s, or an address in `peers` is this node's own",
			     self->name);
}

void greeting_end(struct greeting *g)
{
	sodium_memzero(g, sizeof(*g));
}

/* --- the asker ------------------------------------------------------------------ */

void greeting_begin(struct greeting *g, const struct greeting_self *self, const char *node,
		    msgpack_sbuffer *credential)
{
	if (sodium_init() < 0)
		abort(); /* the kernel has random bytes once it has booted */
	*g = (struct greeting){0};
	snprintf(g->node, sizeof(g->node), "%s", node);
	randombytes_buf(g->psk, sizeof(g->psk));
	claim_pack("hello", self, node, "psk", g->psk, credential);
}

/* Begins the handshake; HEAD as it is on the wire. */
static void greeting_noise(struct greeting *g, bool asks, const void *head, size_t length)
{
	uint8_t prologue[sizeof(PROLOGUE) + GREETING_HEAD_MAX];

	memcpy(prologue, PROLOGUE, sizeof(PROLOGUE));
	memcpy(prologue + sizeof(PROLOGUE), head, length);
	noise_begin(&g->noise, asks, g->psk, prologue, sizeof(PROLOGUE) + length);
	sodium_memzero(g->psk, sizeof(g->psk));
}

int greeting_hello(struct greeting *g, const char *credential, msgpack_sbuffer *out)
{
	uint8_t begin[3] = {SESSION_HELLO}, message[NOISE_HANDSHAKE];
	msgpack_sbuffer head;
	msgpack_packer pk;
	int rc = 0;

	pack_begin(&pk, &head, 3);
	pack_u64(&pk, "min", CHANNEL_VERSION_MIN);
	pack_u64(&pk, "max", CHANNEL_VERSION_MAX);
	pack_str(&pk, "cred", credential);
	if (head.size > GREETING_HEAD_MAX) {
		rc = -EMSGSIZE;
	} else {
		begin[1] = (uint8_t)(head.size >> 8);
		begin[2] = (uint8_t)head.size;
		greeting_noise(g, true, head.data, head.size);
		rc = noise_write(&g->noise, NULL, 0, message);
		memcpy(g->hash, g->noise.h, sizeof(g->hash));
	}
	if (!rc && (msgpack_sbuffer_write(out, (char *)begin, sizeof(begin)) ||
		    msgpack_sbuffer_write(out, head.data, head.size) ||
		    msgpack_sbuffer_write(out, (char *)message, sizeof(message))))
		rc = -ENOMEM;
	msgpack_sbuffer_destroy(&head);
	return rc;
}

/* Copies a stranger's sentence: no control character of it reaches a terminal or a log. */
static int greeting_refused(struct greeting *g, const uint8_t *text, size_t length,
			    struct iocom_err *err)
{
	char why[SENTENCE_MAX + 1];
	size_t n;

	if (length && text[0] < PEER_CAUSES) {
		g->cause = (enum peer_cause)text[0];
		text++;
		length--;
	}
	n = length < SENTENCE_MAX ? length : SENTENCE_MAX;

	for (size_t i = 0; i < n; i++)
		why[i] = text[i] >= ' ' && text[i] < 0x7f ? (char)text[i] : '?';
	why[n] = 0;
	return iocom_err_set(err, -EPROTO, "%s", why);
}

/* Reads the payload of the WELCOME. */
static int take_welcome(struct greeting *g, const void *payload, size_t length, char **credential,
			struct iocom_err *err)
{
	const msgpack_object *cred;
	msgpack_unpacked map;
	uint64_t version;
	int rc = 0;

	if (unpack_map(&map, payload, length))
		return iocom_err_set(err, -EBADMSG, "the answer is malformed");
	cred = unpack_get(&map.data, "cred");
	if (unpack_u64(&map.data, "v", &version) || version < CHANNEL_VERSION_MIN ||
	    version > CHANNEL_VERSION_MAX || !cred || cred->type != MSGPACK_OBJECT_STR)
		rc = iocom_err_set(err, -EBADMSG, "the answer is malformed");
	if (!rc) {
		g->version = (unsigned)version;
		*credential = strndup(cred->via.str.ptr, cred->via.str.size);
		if (!*credential)
			rc = iocom_err_set(err, -ENOMEM, "out of memory");
	}
	msgpack_unpacked_destroy(&map);
	return rc;
}

int greeting_welcomed(struct greeting *g, const void *message, size_t length, char **credential,
		      struct iocom_err *err)
{
	uint8_t payload[GREETING_HEAD_MAX];
	const uint8_t *at = message;

	*credential = NULL;
	g->cause = PEER_C_MUTE;
	if (length && at[0] == SESSION_REFUSED)
		return greeting_refused(g, at + 1, length - 1, err);
	g->cause = PEER_C_VERSION;
	if (length < 1 + NOISE_HANDSHAKE || length > GREETING_WELCOME_MAX ||
	    at[0] != SESSION_WELCOME)
		return iocom_err_set(err, -EBADMSG,
				     "the peer does not speak iocom's protocol, or an older "
				     "version of it; install the same version on all nodes");
	g->cause = PEER_C_KEY;
	if (noise_read(&g->noise, at + 1, length - 1, payload))
		return iocom_err_set(err, -EBADMSG,
				     "the answer does not come from a node of this cluster");
	g->cause = PEER_C_VERSION;
	return take_welcome(g, payload, length - 1 - NOISE_HANDSHAKE, credential, err);
}

int greeting_trust(struct greeting *g, const struct greeting_self *self, const void *data,
		   size_t length, struct iocom_err *err)
{
	struct greeting_claim claim;
	int rc;

	g->cause = PEER_C_NONE;
	if (claim_unpack(&claim, "hash", data, length))
		return iocom_err_set(err, -EACCES, "the credential says nothing about a session");
	rc = claim_judge(&claim, "welcome", self, &g->cause, err);
	if (rc)
		return rc;
	if (strcmp(claim.to, self->name) != 0 ||
	    sodium_memcmp(claim.bytes, g->hash, sizeof(g->hash)) != 0)
		return iocom_err_set(err, -EACCES,
				     "the credential belongs to another conversation");
	if (g->node[0] && strcmp(g->node, claim.from) != 0)
		return iocom_err_set(err, -EACCES, "node '%s' answers in place of node '%s'",
				     claim.from, g->node);
	memcpy(g->node, claim.from, sizeof(g->node));
	g->boot_id = claim.boot_id;
	return 0;
}

/* --- the answerer --------------------------------------------------------------- */

static int greeting_bad(struct iocom_err *err)
{
	return iocom_err_set(err, -EBADMSG, "it is not a message of iocom");
}

int greeting_accept(struct greeting *g, const struct greeting_self *self, unsigned version,
		    const void *message, size_t length, const void *data, size_t data_length,
		    msgpack_sbuffer *credential, struct iocom_err *err)
{
	const uint8_t *at, *noise;
	struct greeting_claim claim;
	size_t head_length;
	int rc;

	*g = (struct greeting){0};
	if (greeting_parts(message, length, &at, &head_length, &noise) ||
	    claim_unpack(&claim, "psk", data, data_length))
		return greeting_bad(err);
	rc = claim_judge(&claim, "hello", self, &g->cause, err);
	if (rc) {
		sodium_memzero(claim.bytes, sizeof(claim.bytes));
		return rc;
	}
	g->version = version;
	memcpy(g->psk, claim.bytes, sizeof(g->psk));
	sodium_memzero(claim.bytes, sizeof(claim.bytes));
	memcpy(g->node, claim.from, sizeof(g->node));
	g->boot_id = claim.boot_id;
	greeting_noise(g, false, at, head_length);
	if (noise_read(&g->noise, noise, NOISE_HANDSHAKE, NULL))
		return iocom_err_set(err, -EACCES,
				     "the message was not made by who made its credential");
	memcpy(g->hash, g->noise.h, sizeof(g->hash));
	claim_pack("welcome", self, claim.from, "hash", g->hash, credential);
	return 0;
}

int greeting_welcome(struct greeting *g, const char *credential, msgpack_sbuffer *out)
{
	uint8_t message[GREETING_WELCOME_MAX];
	msgpack_sbuffer payload;
	msgpack_packer pk;
	int rc = 0;

	pack_begin(&pk, &payload, 2);
	pack_u64(&pk, "v", g->version);
	pack_str(&pk, "cred", credential);
	message[0] = SESSION_WELCOME;
	if (payload.size > GREETING_HEAD_MAX)
		rc = -EMSGSIZE;
	if (!rc)
		rc = noise_write(&g->noise, payload.data, payload.size, message + 1);
	if (!rc && msgpack_sbuffer_write(out, (char *)message, 1 + NOISE_HANDSHAKE + payload.size))
		rc = -ENOMEM;
	msgpack_sbuffer_destroy(&payload);
	return rc;
}

void greeting_refuse(enum peer_cause cause, const char *why, msgpack_sbuffer *out)
{
	const char head[] = {SESSION_REFUSED, (char)cause};
	size_t n = strlen(why);

	(void)msgpack_sbuffer_write(out, head, sizeof(head));
	(void)msgpack_sbuffer_write(out, why, n < SENTENCE_MAX ? n : SENTENCE_MAX);
}

void greeting_sender(const void *data, size_t length, char node[IOCOM_NAME_MAX])
{
	struct greeting_claim claim;

	if (claim_unpack(&claim, "psk", data, length) && claim_unpack(&claim, "hash", data, length))
		claim.from[0] = 0;
	memcpy(node, claim.from, IOCOM_NAME_MAX);
	sodium_memzero(claim.bytes, sizeof(claim.bytes));
}
