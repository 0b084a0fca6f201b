/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gate_message.h. */
#include "agent/gate/gate_message.h"

#include <errno.h>
#include <string.h>

#include "agent/base/peer_cause.h"
#include "agent/base/seal_refusal.h"
#include "balancer/view/vector_codec.h"
#include "user/log.h"

/* A part of a body that not every run of bytes may be. */
struct gate_field {
	enum { GATE_STRING = 1, GATE_BOOL } kind;
	size_t offset, size;
};

#define BODY_STRING(member, field)                                                                 \
	{                                                                                          \
		GATE_STRING, offsetof(struct gate_message, member.field) - GATE_BODY,              \
			sizeof(((struct gate_message *)0)->member.field)                           \
	}
#define BODY_BOOL(member, field)                                                                   \
	{                                                                                          \
		GATE_BOOL, offsetof(struct gate_message, member.field) - GATE_BODY, 1              \
	}
#define GATE_BODY	offsetof(struct gate_message, setup)
#define GATE_FIELDS_MAX 6

_Static_assert(sizeof(bool) == 1, "a bool is checked as a byte");

struct gate_rule {
	const char *name; /* NULL: no such type */
	enum gate_side side;
	size_t size;	    /* of the body */
	size_t least, most; /* bytes of the tail */
	size_t fds;	    /* GATE_SETUP: it says itself */
	bool text;	    /* the tail is a sentence */
	struct gate_field fields[GATE_FIELDS_MAX];
};

#define BODY(member) sizeof(((struct gate_message *)0)->member)

static const struct gate_rule gate_rules[GATE_TYPES] = {
	[GATE_SETUP] = {.name = "setup",
			.side = GATE_TO_NET,
			.size = BODY(setup),
			.fields = {BODY_STRING(setup, name), BODY_STRING(setup, listen),
				   BODY_BOOL(setup, systemd), BODY_BOOL(setup, networked),
				   BODY_BOOL(setup, streams), BODY_BOOL(setup, http)}},
	[GATE_PEER] = {.name = "peer",
		       .side = GATE_TO_NET,
		       .size = BODY(place),
		       .fields = {BODY_STRING(place, address)}},
	[GATE_DIAL] = {.name = "dial",
		       .side = GATE_TO_NET,
		       .size = BODY(place),
		       .fields = {BODY_STRING(place, address)}},
	[GATE_UNDIAL] = {.name = "undial",
			 .side = GATE_TO_NET,
			 .size = BODY(place),
			 .fields = {BODY_STRING(place, address)}},
	[GATE_EPOCH] = {.name = "epoch", .side = GATE_TO_NET, .size = BODY(epoch)},
	[GATE_PUBLISH] = {.name = "publish", .side = GATE_TO_NET, .size = BODY(publish)},
	[GATE_PUBLISHER_KEY] = {.name = "publisher-key",
				.side = GATE_TO_NET,
				.size = BODY(publisher),
				.fields = {BODY_STRING(publisher, at.address),
					   BODY_STRING(publisher, node),
					   BODY_BOOL(publisher, given)}},
	[GATE_ASK] = {.name = "ask",
		      .side = GATE_TO_NET,
		      .size = BODY(ask),
		      .least = 1,
		      .most = GATE_CONTROL_MAX,
		      .fields = {BODY_STRING(ask, at.address)}},
	[GATE_FORGET] = {.name = "forget", .side = GATE_TO_NET, .size = BODY(id)},
	[GATE_REPLY] = {.name = "reply",
			.side = GATE_TO_NET,
			.size = BODY(reply),
			.least = 0,
			.most = GATE_CONTROL_MAX,
			.fields = {BODY_BOOL(reply, judged), BODY_BOOL(reply, last)}},
	[GATE_STREAM_OVER] = {.name = "stream-over",
			      .side = GATE_TO_NET,
			      .size = BODY(stream_over),
			      .least = 0,
			      .most = GATE_SENTENCE_MAX,
			      .text = true,
			      .fields = {BODY_BOOL(stream_over, taken)}},
	[GATE_RENEWED] = {.name = "renewed",
			  .side = GATE_TO_NET,
			  .size = BODY(renewed),
			  .least = 1,
			  .most = GATE_SENTENCE_MAX,
			  .fields = {BODY_BOOL(renewed, answered)}},
	[GATE_PAGE] = {.name = "page", .side = GATE_TO_NET, .size = BODY(id), .fds = 1},
	[GATE_PING] = {.name = "ping", .side = GATE_TO_NET, .size = BODY(id)},

	[GATE_READY] = {.name = "ready",
			.side = GATE_TO_ROOT,
			.size = BODY(ready),
			.least = 0,
			.most = GATE_SENTENCE_MAX,
			.text = true},
	[GATE_VECTOR] = {.name = "vector",
			 .side = GATE_TO_ROOT,
			 .size = BODY(vector),
			 .least = 0,
			 .most = (GATE_VECTORS - 1) * BODY(vector),
			 .fields = {BODY_BOOL(vector, direct), BODY_STRING(vector, at.address)}},
	[GATE_ASK_KEY] = {.name = "ask-key",
			  .side = GATE_TO_ROOT,
			  .size = BODY(place),
			  .fields = {BODY_STRING(place, address)}},
	[GATE_SKEWED] = {.name = "skewed",
			 .side = GATE_TO_ROOT,
			 .size = BODY(skewed),
			 .fields = {BODY_STRING(skewed, node)}},
	[GATE_TROUBLE] = {.name = "trouble",
			  .side = GATE_TO_ROOT,
			  .size = BODY(trouble),
			  .least = 0,
			  .most = GATE_SENTENCE_MAX,
			  .text = true,
			  .fields = {BODY_STRING(trouble, at.address)}},
	[GATE_ANSWERED] = {.name = "answered",
			   .side = GATE_TO_ROOT,
			   .size = BODY(answered),
			   .least = 0,
			   .most = GATE_CONTROL_MAX,
			   .fields = {BODY_BOOL(answered, connected), BODY_BOOL(answered, cut)}},
	[GATE_HELLO] = {.name = "hello",
			.side = GATE_TO_ROOT,
			.size = BODY(hello),
			.least = 1,
			.most = GATE_CONTROL_MAX,
			.fields = {BODY_STRING(hello, from)}},
	[GATE_QUESTION] = {.name = "question",
			   .side = GATE_TO_ROOT,
			   .size = BODY(question),
			   .least = 1,
			   .most = GATE_CONTROL_MAX,
			   .fields = {BODY_BOOL(question, proven), BODY_STRING(question, from)}},
	[GATE_STREAM] = {.name = "stream",
			 .side = GATE_TO_ROOT,
			 .size = BODY(stream),
			 .least = 1,
			 .most = STREAM_HELLO_MAX,
			 .fds = 1,
			 .fields = {BODY_STRING(stream, from), BODY_STRING(stream, hello.job),
				    BODY_STRING(stream, hello.node),
				    BODY_STRING(stream, hello.ticket)}},
	[GATE_RENEW] = {.name = "renew",
			.side = GATE_TO_ROOT,
			.size = BODY(renew),
			.least = 1,
			.most = GATE_SENTENCE_MAX,
			.fields = {BODY_STRING(renew, from)}},
	[GATE_WANT_PAGE] = {.name = "want-page", .side = GATE_TO_ROOT, .size = BODY(id)},
	[GATE_COUNTS] = {.name = "counts", .side = GATE_TO_ROOT, .size = BODY(counts)},
	[GATE_PONG] = {.name = "pong", .side = GATE_TO_ROOT, .size = BODY(id)},
};

static const struct gate_rule *gate_rule(uint32_t type)
{
	return type < GATE_TYPES && gate_rules[type].name ? &gate_rules[type] : NULL;
}

bool gate_place_is(const struct gate_place *place, const char *address, uint16_t port)
{
	return place->port == port && !strcmp(place->address, address);
}

size_t gate_body_size(enum gate_type type)
{
	const struct gate_rule *rule = gate_rule(type);

	return rule ? rule->size : 0;
}

const char *gate_type_name(uint32_t type)
{
	const struct gate_rule *rule = gate_rule(type);

	return rule ? rule->name : "unknown";
}

size_t gate_fds_of(const struct gate_message *m)
{
	if (m->type == GATE_SETUP)
		return (size_t)m->setup.streams + (size_t)m->setup.http;
	return gate_rules[m->type].fds;
}

/* Returns true if TEXT of N bytes, which ends in a NUL or not, has no control character. */
static bool gate_text_plain(const uint8_t *text, size_t n)
{
	for (size_t i = 0; i < n && text[i]; i++)
		if (text[i] < ' ' || text[i] == 0x7f)
			return false;
	return true;
}

/* Checks the parts of BODY of which not all bytes are a value of their type. */
static bool gate_fields_good(const struct gate_rule *rule, const uint8_t *body)
{
	for (size_t i = 0; i < GATE_FIELDS_MAX && rule->fields[i].kind; i++) {
		const struct gate_field *f = &rule->fields[i];
		const uint8_t *at = body + f->offset;

		if (f->kind == GATE_BOOL && *at > 1)
			return false;
		if (f->kind == GATE_STRING &&
		    (!memchr(at, 0, f->size) || !gate_text_plain(at, f->size)))
			return false;
	}
	return true;
}

/* Checks what must be right before the body may be looked at as a structure. */
static bool gate_bytes_good(uint32_t type, const uint8_t *body)
{
	switch (type) {
	case GATE_PUBLISH:
		return vector_is_good(body);
	case GATE_VECTOR:
		return vector_is_good(body + offsetof(struct gate_vector, vector));
	default:
		return true;
	}
}

/* The tail of a GATE_VECTOR is more of its bodies. */
static bool gate_vectors_good(const struct gate_rule *rule, const uint8_t *tail, size_t n)
{
	for (size_t at = 0; at < n; at += rule->size)
		if (n - at < rule->size || !gate_fields_good(rule, tail + at) ||
		    !gate_bytes_good(GATE_VECTOR, tail + at))
			return false;
	return true;
}

static bool gate_in_range(const struct gate_message *m, size_t tail)
{
	switch (m->type) {
	case GATE_REPLY:
		return m->reply.verdict >= -1 && m->reply.verdict < SEAL_E_REFUSALS;
	case GATE_READY:
		return m->ready.rc <= 0 && m->ready.rc > -4096;
	case GATE_ANSWERED:
		return m->answered.rc <= 0 && m->answered.rc > -4096 && (m->answered.rc || tail) &&
		       (!m->answered.rc || tail <= GATE_SENTENCE_MAX);
	case GATE_SKEWED:
		return m->skewed.node[0] != 0;
	case GATE_TROUBLE:
		return m->trouble.at.address[0] && m->trouble.cause < PEER_CAUSES;
	case GATE_HELLO:
		return m->hello.credential <= tail &&
		       m->hello.credential_length <= tail - m->hello.credential;
	case GATE_STREAM:
		return m->stream.hello.kind == STREAM_KIND_START ||
		       m->stream.hello.kind == STREAM_KIND_ATTACH;
	default:
		return true;
	}
}

/* Whether the tail is text: for some types that depends on what they say. */
static bool gate_tail_is_text(const struct gate_rule *rule, const struct gate_message *m)
{
	return rule->text || (m->type == GATE_ANSWERED && m->answered.rc) ||
	       (m->type == GATE_RENEWED && !m->renewed.answered);
}

int gate_message_read(struct gate_message *m, enum gate_side side, const void *packet,
		      size_t length, size_t nfds, const uint8_t **tail, size_t *n, const char **why)
{
	const uint8_t *at = packet;
	const struct gate_rule *rule;
	uint32_t type, tail_length;

	*why = "its length is wrong";
	if (length < GATE_HEAD)
		return -EBADMSG;
	memcpy(&type, at, sizeof(type));
	memcpy(&tail_length, at + sizeof(type), sizeof(tail_length));
	rule = gate_rule(type);
	if (!rule || rule->side != side) {
		*why = "its type is not one that comes this way";
		return -EBADMSG;
	}
	if (tail_length < rule->least || tail_length > rule->most ||
	    length != GATE_HEAD + rule->size + tail_length)
		return -EBADMSG;
	*why = "a value is out of range";
	if (!gate_fields_good(rule, at + GATE_HEAD) || !gate_bytes_good(type, at + GATE_HEAD))
		return -EBADMSG;
	memset(m, 0, sizeof(*m));
	m->type = (enum gate_type)type;
	memcpy((char *)m + GATE_BODY, at + GATE_HEAD, rule->size);
	*tail = at + GATE_HEAD + rule->size;
	*n = tail_length;
	if (!gate_in_range(m, tail_length) ||
	    (type == GATE_VECTOR && !gate_vectors_good(rule, *tail, *n)) ||
	    (gate_tail_is_text(rule, m) && (memchr(*tail, 0, *n) || !gate_text_plain(*tail, *n))))
		return -EBADMSG;
	*why = "it has too many or too few descriptors";
	return nfds == gate_fds_of(m) ? 0 : -EBADMSG;
}
