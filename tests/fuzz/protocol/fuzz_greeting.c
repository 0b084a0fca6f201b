/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is read of greetings, of any bytes: HELLO and WELCOME as they come from strangers, the
 * payload of a WELCOME, and the claims in credentials, which only a node of the cluster could have
 * made. The first byte chooses.
 */
#include <errno.h>
#include <sodium.h>

#include "agent/cluster/greeting.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/channel/version.h"
#include "user/pack.h"

enum what { HELLO, WELCOME, PAYLOAD, CLAIM_OF_HELLO, CLAIM_OF_WELCOME, WHATS };

static const struct greeting_self self_a = {"red", "a", 11}, self_b = {"red", "b", 22};
static const uint8_t psk[NOISE_KEY] = {1, 2, 3}; /* of each hello here */
static const char credential[] = "MUNGE:AwQDAAA=:";

/* Node a's HELLO; its claim is added to CLAIM. */
static void hello_of_a(struct greeting *a, msgpack_sbuffer *claim, msgpack_sbuffer *hello)
{
	msgpack_packer pk;

	msgpack_sbuffer_init(claim);
	msgpack_sbuffer_init(hello);
	greeting_begin(a, &self_a, "b", claim);
	msgpack_sbuffer_clear(claim);
	memcpy(a->psk, psk, sizeof(a->psk));
	msgpack_packer_init(&pk, claim, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 6);
	pack_str(&pk, "type", "hello");
	pack_str(&pk, "cluster", "red");
	pack_str(&pk, "from", "a");
	pack_str(&pk, "to", "b");
	pack_u64(&pk, "boot_id", 11);
	pack_bin(&pk, "psk", psk, sizeof(psk));
	must(!greeting_hello(a, credential, hello));
}

/* Node b has accepted it and would answer; CLAIM is of its welcome. */
static void welcomes(struct greeting *b, msgpack_sbuffer *claim)
{
	msgpack_sbuffer out;

	must(!strcmp(b->node, "a") && b->boot_id == 11 && b->version && claim->size);
	msgpack_sbuffer_init(&out);
	must(!greeting_welcome(b, credential, &out));
	must(out.size <= GREETING_WELCOME_MAX && out.data[0] == SESSION_WELCOME);
	msgpack_sbuffer_destroy(&out);
}

static void fuzz_hello(const uint8_t *data, size_t size)
{
	msgpack_sbuffer claim, unused, answer;
	struct iocom_err err = {0};
	struct greeting a, b = {0};
	struct greeting_head head = {0};
	int rc = greeting_heard(&head, data, size, &err);

	must(rc == 0 || rc == -EPROTO || rc == -EBADMSG);
	must(!rc == !*err.text);
	must(rc || (head.credential >= (const char *)data &&
		    head.credential + head.length <= (const char *)data + size));
	hello_of_a(&a, &claim, &unused);
	msgpack_sbuffer_init(&answer);
	rc = greeting_accept(&b, &self_b, CHANNEL_VERSION_MAX, data, size, claim.data, claim.size,
			     &answer, &err);
	must(rc == 0 || rc == -EACCES || rc == -EBADMSG);
	if (!rc && b.version)
		welcomes(&b, &answer);
	greeting_end(&a);
	greeting_end(&b);
	msgpack_sbuffer_destroy(&answer);
	msgpack_sbuffer_destroy(&unused);
	msgpack_sbuffer_destroy(&claim);
}

/* Whatever a stranger answers, it is no WELCOME. */
static void fuzz_welcome(const uint8_t *data, size_t size)
{
	msgpack_sbuffer claim, hello;
	struct iocom_err err = {0};
	struct greeting a;
	char *text;
	int rc;

	hello_of_a(&a, &claim, &hello);
	rc = greeting_welcomed(&a, data, size, &text, &err);
	must(!text && rc == (size && data[0] == SESSION_REFUSED ? -EPROTO : -EBADMSG));
	must_end(err.text, sizeof(err.text));
	for (const char *c = err.text; *c; c++)
		must(*c >= ' ' && *c < 0x7f);
	greeting_end(&a);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_destroy(&hello);
}

/* Node b puts DATA into its WELCOME; it has what nodes of the cluster have. */
static void fuzz_payload(const uint8_t *data, size_t size)
{
	uint8_t prologue[256] = "iocom session", message[GREETING_WELCOME_MAX + 64];
	size_t n = sizeof("iocom session"), head;
	msgpack_sbuffer claim, hello;
	struct iocom_err err = {0};
	struct noise noise;
	struct greeting a;
	char *text;
	int rc;

	hello_of_a(&a, &claim, &hello);
	if (size <= GREETING_HEAD_MAX + 64) {
		head = hello.size - 3 - NOISE_HANDSHAKE;
		memcpy(prologue + n, hello.data + 3, head);
		noise_begin(&noise, false, psk, prologue, n + head);
		must(!noise_read(&noise, hello.data + 3 + head, NOISE_HANDSHAKE, NULL));
		message[0] = SESSION_WELCOME;
		must(!noise_write(&noise, data, size, message + 1));
		rc = greeting_welcomed(&a, message, 1 + NOISE_HANDSHAKE + size, &text, &err);
		must(rc == 0 || rc == -EBADMSG);
		must(!rc == !!text && !rc == !*err.text);
		must(rc || (a.version >= CHANNEL_VERSION_MIN && a.version <= CHANNEL_VERSION_MAX));
		must(rc || strlen(text) <= size);
		noise_end(&noise);
		free(text);
	}
	greeting_end(&a);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_destroy(&hello);
}

/* DATA is what munged found in the credential of node a's HELLO. */
static void fuzz_claim_of_hello(const uint8_t *data, size_t size)
{
	msgpack_sbuffer claim, hello, answer;
	struct iocom_err err = {0};
	struct greeting a, b = {0};
	char node[IOCOM_NAME_MAX];
	int rc;

	hello_of_a(&a, &claim, &hello);
	msgpack_sbuffer_init(&answer);
	rc = greeting_accept(&b, &self_b, CHANNEL_VERSION_MAX, hello.data, hello.size, data, size,
			     &answer, &err);
	must(rc == 0 || rc == -EACCES || rc == -EBADMSG);
	must(!rc == !*err.text && !rc == !!answer.size);
	must_end(b.node, sizeof(b.node));
	greeting_sender(data, size, node);
	must_end(node, sizeof(node));
	if (!rc)
		must(b.node[0] && strcmp(b.node, "b") != 0 && !strcmp(node, b.node));
	greeting_end(&a);
	greeting_end(&b);
	msgpack_sbuffer_destroy(&answer);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_destroy(&hello);
}

/* DATA is what munged found in the credential of the WELCOME for node a, which asked node b. */
static void fuzz_claim_of_welcome(const uint8_t *data, size_t size)
{
	struct greeting a = {.node = "b"}, whoever = {0};
	struct iocom_err err = {0};
	int rc;

	memcpy(a.hash, psk, sizeof(a.hash)); /* any that the inputs know */
	memcpy(whoever.hash, psk, sizeof(whoever.hash));
	rc = greeting_trust(&a, &self_a, data, size, &err);
	must(rc == 0 || rc == -EACCES);
	must(!rc == !*err.text && !strcmp(a.node, "b"));
	if (!greeting_trust(&whoever, &self_a, data, size, NULL))
		must(whoever.node[0] && strcmp(whoever.node, "a") != 0);
	else
		must(rc != 0);
	must_end(whoever.node, sizeof(whoever.node));
}

static void put(enum what what, const msgpack_sbuffer *buffer, FILE *out)
{
	fputc(what, out);
	fwrite(buffer->data, 1, buffer->size, out);
}

bool sample(int n, FILE *out)
{
	msgpack_sbuffer claim, hello, other;
	msgpack_packer pk;
	struct greeting a;

	hello_of_a(&a, &claim, &hello);
	if (n == HELLO) {
		put(HELLO, &hello, out);
	} else if (n == WELCOME) {
		msgpack_sbuffer_init(&other);
		greeting_refuse(PEER_C_MUTE, "munged does not answer", &other);
		put(WELCOME, &other, out);
		msgpack_sbuffer_destroy(&other);
	} else if (n == PAYLOAD) {
		pack_begin(&pk, &other, 2);
		pack_u64(&pk, "v", CHANNEL_VERSION_MAX);
		pack_str(&pk, "cred", credential);
		put(PAYLOAD, &other, out);
		msgpack_sbuffer_destroy(&other);
	} else if (n == CLAIM_OF_HELLO) {
		put(CLAIM_OF_HELLO, &claim, out);
	} else {
		pack_begin(&pk, &other, 6);
		pack_str(&pk, "type", "welcome");
		pack_str(&pk, "cluster", "red");
		pack_str(&pk, "from", "b");
		pack_str(&pk, "to", "a");
		pack_u64(&pk, "boot_id", 22);
		pack_bin(&pk, "hash", psk, sizeof(psk));
		put(CLAIM_OF_WELCOME, &other, out);
		msgpack_sbuffer_destroy(&other);
	}
	greeting_end(&a);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_destroy(&hello);
	return n < WHATS;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const fuzz[WHATS])(const uint8_t *data, size_t size) = {
		[HELLO] = fuzz_hello,
		[WELCOME] = fuzz_welcome,
		[PAYLOAD] = fuzz_payload,
		[CLAIM_OF_HELLO] = fuzz_claim_of_hello,
		[CLAIM_OF_WELCOME] = fuzz_claim_of_welcome,
	};

	if (size)
		fuzz[data[0] % WHATS](data + 1, size - 1); /* which ends where the message ends */
	return 0;
}
