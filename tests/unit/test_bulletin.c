/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Bulletins: unpacking returns what was packed, and damage is refused and never read past. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/net/net_bulletin.h"
#include "user/pack.h"
#include "balancer/view/vector_codec.h"

static struct iocom_vector make(const char *name)
{
	struct iocom_vector v = {
		.port = 7700,
		.boot_id = UINT64_MAX,
		.sequence = 12,
		.time_ns = 1700000000123456789,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1.5,
		.cpu_burst = 2.5,
		.run_queue = 0.25,
		.memory_mb = 24000,
		.explicit_per_ms = 0.5,
		.disks = 1,
		.disk_utilisation = 1,
		.disk_mb_per_s = 20,
		.cpu_sharers = 1.75,
		.disk_sharers = 0.5,
		.cpu_left_ms = 2000,
		.disk_left_ms = 1e10,
		.network_mb_per_s = 125,
		.bits = 3,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	snprintf(v.address, sizeof(v.address), "10.0.0.1");
	return v;
}

struct got {
	struct iocom_vector v[BULLETIN_VECTORS_MAX];
	uint64_t age[BULLETIN_VECTORS_MAX];
	size_t n, direct;
};

static void each(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	struct got *g = arg;

	assert_true(g->n < BULLETIN_VECTORS_MAX);
	g->age[g->n] = age_ns;
	g->v[g->n++] = *v;
	g->direct += direct;
}

static void fill(struct matrix *m, unsigned n)
{
	matrix_init(m, "me");
	for (unsigned i = 0; i < n; i++) {
		char name[16];
		struct iocom_vector v;

		snprintf(name, sizeof(name), "n%u", i);
		v = make(name);
		matrix_put(m, &v, 0, 1000000000ull + i);
	}
}

/* Packs and unpacks what "me" tells of N others, AT ns after they were heard; returns its size. */
static size_t round_trip(unsigned n, uint64_t at, struct got *got)
{
	struct iocom_vector own = make("me");
	struct bulletin_sender from;
	msgpack_sbuffer b;
	struct matrix m;
	uint64_t bad = 0;
	size_t size;

	fill(&m, n);
	msgpack_sbuffer_init(&b);
	bulletin_pack(&b, &own, &m, at, 1795000000123ull);
	size = b.size;
	memset(got, 0, sizeof(*got));
	assert_int_equal(bulletin_unpack(b.data, b.size, &from, &bad, NULL, each, got), 0);
	assert_string_equal(from.from, "me");
	assert_int_equal(from.at_ms, 1795000000123);
	assert_int_equal(bad, 0);
	assert_int_equal(got->direct, 1);
	assert_memory_equal(&got->v[0], &own, sizeof(own));
	msgpack_sbuffer_destroy(&b);
	matrix_fini(&m);
	return size;
}

static void test_round_trip(void **state)
{
	static struct got got;
	bool told[GOSSIP_DIRECT] = {false};

	(void)state;
	assert_true(round_trip(GOSSIP_DIRECT - 1, 1500000000ull, &got) < 256 * GOSSIP_DIRECT);
	assert_int_equal(got.n, GOSSIP_DIRECT); /* all, in a small cluster */
	for (unsigned i = 1; i < got.n; i++) {
		unsigned node = (unsigned)atoi(got.v[i].name + 1);

		assert_false(told[node]);
		told[node] = true;
		assert_true(got.age[i] == 499000000 || got.age[i] == 500000000); /* in whole ms */
	}
}

/* Of a large one each tells of its slice, and of what is news. */
static void test_slice(void **state)
{
	enum { NODES = 300 };
	const struct gossip_place me = gossip_place("me");
	struct gossip_place places[NODES];
	struct gossip_keepers keepers;
	unsigned slice = 0, news;
	static struct got got;

	(void)state;
	gossip_keepers_init(&keepers, &me, NODES + 1);
	for (unsigned i = 0; i < NODES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		places[i] = gossip_place(name);
		gossip_keepers_add(&keepers, &places[i]);
	}
	for (unsigned i = 0; i < NODES; i++)
		slice += gossip_tells(&me, &places[i], keepers.slices) ||
			 gossip_is_orphan(&keepers, &places[i]);
	assert_in_range(slice, 2, NODES / 4);
	(void)round_trip(NODES, 3500000000ull, &got); /* three seconds after they were heard */
	assert_int_equal(got.n, 1 + slice);
	(void)round_trip(NODES, 1500000000ull, &got);
	news = got.n - 1 - slice;
	assert_int_equal(news, GOSSIP_NEWS_MAX);
	assert_true(atoi(got.v[1].name + 1) >= NODES - 2 * GOSSIP_NEWS_MAX); /* the latest */
}

/* A user may declare more than any machine has. The other nodes must still hear of this node. */
static void test_declared_beyond_range(void **state)
{
	struct iocom_vector own = make("me");
	static struct got got;
	struct bulletin_sender from;
	msgpack_sbuffer b;
	struct matrix m;
	uint64_t bad = 0;

	(void)state;
	own.explicit_per_ms = 4e12;
	own.memory_requested_mb = 4e15;
	own.cpu_left_ms = INFINITY;
	own.cpu_sharers = 4e9;
	vector_bound(&own);
	fill(&m, 0);
	msgpack_sbuffer_init(&b);
	bulletin_pack(&b, &own, &m, 1500000000ull, 1795000000123ull);
	memset(&got, 0, sizeof(got));
	assert_int_equal(bulletin_unpack(b.data, b.size, &from, &bad, NULL, each, &got), 0);
	assert_int_equal(bad, 0);
	assert_int_equal(got.n, 1);
	assert_true(got.v[0].explicit_per_ms >= 1e6);
	assert_true(got.v[0].cpu_left_ms >= 1e11 && got.v[0].cpu_sharers >= 1e6);
	msgpack_sbuffer_destroy(&b);
	matrix_fini(&m);
}

static void test_out_of_range(void **state)
{
	enum { COUNT = 12 };
	struct iocom_vector vs[COUNT];
	msgpack_sbuffer b;
	msgpack_packer pk;
	static struct got got;
	struct bulletin_sender from;
	uint64_t bad = 0;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		vs[i] = make("x");
	vs[1].run_queue = -1;
	vs[2].disk_utilisation = 2;
	vs[3].cores = 0;
	vs[4].name[0] = 0;
	vs[5].memory_mb = 1.0 / 0.0;
	vs[6].cpu_burst = 0;
	vs[7].cpu_sharers = 1.1e7;
	vs[8].disk_sharers = -0.5;
	vs[9].cpu_left_ms = 1.1e12;
	vs[10].disk_left_ms = NAN;
	vs[11].disk_parallel = -1;
	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 4);
	pack_u64(&pk, "v", BULLETIN_VERSION);
	pack_str(&pk, "from", "x");
	pack_u64(&pk, "at", 1);
	pack_key(&pk, "vectors");
	msgpack_pack_array(&pk, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		msgpack_pack_array(&pk, 2);
		msgpack_pack_uint64(&pk, 0);
		vector_pack(&pk, &vs[i]);
	}
	memset(&got, 0, sizeof(got));
	assert_int_equal(bulletin_unpack(b.data, b.size, &from, &bad, NULL, each, &got), 0);
	assert_int_equal(got.n, 1);
	assert_int_equal(bad, COUNT - 1);
	msgpack_sbuffer_destroy(&b);
}

/* What an older agent sends is refused, with its name. */
static void test_older(void **state)
{
	struct bulletin_sender from;
	msgpack_sbuffer b;
	msgpack_packer pk;
	uint64_t bad = 0;

	(void)state;
	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 2);
	pack_u64(&pk, "v", BULLETIN_VERSION - 1);
	pack_str(&pk, "from", "old");
	assert_int_equal(bulletin_unpack(b.data, b.size, &from, &bad, NULL, each, NULL),
			 BULLETIN_E_VERSION);
	assert_string_equal(from.from, "old");
	msgpack_sbuffer_destroy(&b);
}

static size_t vector_packed(const struct iocom_vector *v, struct iocom_vector *back)
{
	msgpack_sbuffer b;
	msgpack_packer pk;
	msgpack_unpacked u;
	size_t n;

	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	vector_pack(&pk, v);
	msgpack_unpacked_init(&u);
	assert_int_equal(msgpack_unpack_next(&u, b.data, b.size, NULL), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(vector_unpack(&u.data, back), 0);
	msgpack_unpacked_destroy(&u);
	n = b.size;
	msgpack_sbuffer_destroy(&b);
	return n;
}

/* The use of caches takes room in bulletins only of nodes that have any. */
static void test_caches(void **state)
{
	struct iocom_vector own = make("n1"), back;
	size_t without = vector_packed(&own, &back);
	json_t *document = json_object();

	(void)state;
	assert_memory_equal(&back, &own, sizeof(own));
	assert_int_equal(vector_json(&own, document), 0);
	assert_null(json_object_get(document, "cache_mb"));
	own.cache_refused = 1;
	own.cache_mb = 12.5;
	own.cache_files = 3;
	own.cache_hits = 4;
	own.cache_misses = 5;
	own.cache_evicted = 6;
	assert_true(vector_packed(&own, &back) <= without + 6 * 5 + 5);
	assert_memory_equal(&back, &own, sizeof(own));
	assert_int_equal(vector_json(&own, document), 0);
	assert_int_equal(json_integer_value(json_object_get(document, "cache_hits")), 4);
	assert_int_equal(vector_json_read(document, &back), 0);
	assert_true(back.cache_mb == 12.5 && back.cache_evicted == 6);
	json_decref(document);
}

/* A node with slots tells them behind the caches, which it has or not. */
static void test_slots(void **state)
{
	struct iocom_vector own = make("own"), back;
	json_t *document = json_object();

	(void)state;
	assert_int_equal(vector_json(&own, document), 0);
	assert_null(json_object_get(document, "slots"));
	own.slots = 64;
	own.slots_free = 7;
	(void)vector_packed(&own, &back);
	assert_memory_equal(&back, &own, sizeof(own));
	assert_int_equal(vector_json(&own, document), 0);
	assert_null(json_object_get(document, "cache_jobs"));
	assert_int_equal(vector_json_read(document, &back), 0);
	assert_int_equal(back.slots, 64);
	assert_int_equal(back.slots_free, 7);
	own.cache_jobs = 3;
	(void)vector_packed(&own, &back);
	assert_memory_equal(&back, &own, sizeof(own));
	json_decref(document);
}

/* A newer agent adds keys to the map and values to the end of a vector: this one skips them. */
static void test_newer(void **state)
{
	struct iocom_vector own = make("new");
	struct bulletin_sender from;
	msgpack_sbuffer b, vector;
	static struct got got;
	msgpack_packer pk;
	uint64_t bad = 0;

	(void)state;
	own.slots = own.slots_free = 1; /* else the last values are not sent */
	msgpack_sbuffer_init(&vector);
	msgpack_packer_init(&pk, &vector, msgpack_sbuffer_write);
	vector_pack(&pk, &own);
	assert_int_equal((uint8_t)vector.data[0], 0xdc); /* an array with a length of 16 bits */
	vector.data[2]++;
	msgpack_pack_double(&pk, 3.5);
	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 5);
	pack_u64(&pk, "v", BULLETIN_VERSION + 1);
	pack_str(&pk, "from", "new");
	pack_str(&pk, "mood", "good");
	pack_u64(&pk, "at", 1);
	pack_key(&pk, "vectors");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_array(&pk, 2);
	msgpack_pack_uint64(&pk, 0);
	msgpack_sbuffer_write(&b, vector.data, vector.size);
	memset(&got, 0, sizeof(got));
	assert_int_equal(bulletin_unpack(b.data, b.size, &from, &bad, NULL, each, &got), 0);
	assert_int_equal(got.n, 1);
	assert_memory_equal(&got.v[0], &own, sizeof(own));
	msgpack_sbuffer_destroy(&b);
	msgpack_sbuffer_destroy(&vector);
}

/* --- seals ------------------------------------------------------------------------ */

/* Seals the words "load N" with KEY; the caller destroys OUT. */
static void seal_words(struct bulletin_key *key, int n, msgpack_sbuffer *out)
{
	msgpack_sbuffer plain;
	char words[32];

	snprintf(words, sizeof(words), "load %d", n);
	msgpack_sbuffer_init(&plain);
	msgpack_sbuffer_write(&plain, words, strlen(words) + 1);
	msgpack_sbuffer_init(out);
	assert_int_equal(bulletin_seal(key, "n1", &plain, out), 0);
	msgpack_sbuffer_destroy(&plain);
}

/* Opens a copy of MESSAGE. */
static int open_words(struct bulletin_key *key, const msgpack_sbuffer *message, char *words)
{
	struct bulletin_head head;
	char *copy = malloc(message->size);
	const void *plain;
	size_t n;
	int rc;

	memcpy(copy, message->data, message->size);
	rc = bulletin_head_read(&head, copy, message->size);
	if (!rc)
		rc = bulletin_open(key, &head, copy, message->size, &plain, &n);
	if (!rc) {
		assert_string_equal(head.from, "n1");
		assert_int_equal(head.epoch, key->epoch);
		snprintf(words, 32, "%.*s", (int)n, (const char *)plain);
	}
	free(copy);
	return rc;
}

static void test_sealed(void **state)
{
	struct bulletin_key sender, receiver, late, other;
	msgpack_sbuffer first, second, third;
	char words[32];

	(void)state;
	bulletin_epoch(&sender);
	bulletin_epoch(&other);
	assert_true(sender.epoch != other.epoch);
	receiver = sender;
	seal_words(&sender, 1, &first);
	seal_words(&sender, 2, &second);
	late = sender; /* a subscriber that comes now */
	seal_words(&sender, 3, &third);
	assert_int_equal(open_words(&receiver, &first, words), 0);
	assert_string_equal(words, "load 1");
	assert_int_equal(open_words(&receiver, &first, words), -EALREADY);
	assert_int_equal(open_words(&receiver, &third, words), 0); /* one may be lost */
	assert_string_equal(words, "load 3");
	assert_int_equal(open_words(&receiver, &second, words), -EALREADY);
	assert_int_equal(open_words(&late, &second, words), -EALREADY);
	assert_int_equal(open_words(&late, &third, words), 0);
	assert_int_equal(open_words(&other, &third, words), -EBADMSG);
	msgpack_sbuffer_destroy(&first);
	msgpack_sbuffer_destroy(&second);
	msgpack_sbuffer_destroy(&third);
}

/* Every bit counts: of the head, too; and so does the end. */
static void test_sealed_damage(void **state)
{
	struct bulletin_key sender, receiver;
	msgpack_sbuffer message;
	char words[32];

	(void)state;
	bulletin_epoch(&sender);
	receiver = sender;
	seal_words(&sender, 1, &message);
	for (size_t i = 0; i < 8 * message.size; i++) {
		message.data[i / 8] ^= (char)(1 << (i % 8));
		assert_int_not_equal(open_words(&receiver, &message, words), 0);
		message.data[i / 8] ^= (char)(1 << (i % 8));
	}
	for (; message.size; message.size--) {
		msgpack_sbuffer cut = message;

		cut.size--;
		assert_int_not_equal(open_words(&receiver, &cut, words), 0);
	}
	assert_int_equal(receiver.next, 0);
	msgpack_sbuffer_destroy(&message);
}

/* After the last number none is new: nobody opens it, or all before it could come again. */
static void test_sealed_last(void **state)
{
	struct bulletin_key sender, receiver;
	msgpack_sbuffer first, last;
	char words[32];

	(void)state;
	bulletin_epoch(&sender);
	receiver = sender;
	seal_words(&sender, 1, &first);
	sender.next = UINT64_MAX;
	seal_words(&sender, 2, &last);
	assert_int_equal(open_words(&receiver, &first, words), 0);
	assert_int_equal(open_words(&receiver, &last, words), -EBADMSG);
	assert_int_equal(open_words(&receiver, &first, words), -EALREADY);
	msgpack_sbuffer_destroy(&first);
	msgpack_sbuffer_destroy(&last);
}

static void test_sealed_older(void **state)
{
	static const char munge[] = "MUNGE:AwQFAACU1zVt2Uk2fHP0Aqw9ZGhO1wAAAAAAAAAAAAAAAAAA:";
	static const char next[64] = "iB\002\002n1";
	struct bulletin_head head;

	(void)state;
	assert_int_equal(bulletin_head_read(&head, munge, sizeof(munge) - 1), -EPROTO);
	assert_int_equal(bulletin_head_read(&head, next, sizeof(next)), -EPROTO);
	assert_int_equal(bulletin_head_read(&head, next + 1, sizeof(next) - 1), -EBADMSG);
}

/* Damage: cut everywhere, and bytes changed by a seeded generator. */
static void test_damage(void **state)
{
	struct iocom_vector own = make("me");
	struct bulletin_sender from;
	static struct got got;
	msgpack_sbuffer b;
	struct matrix m;
	uint64_t bad = 0;
	unsigned seed = 1;

	(void)state;
	fill(&m, 2);
	msgpack_sbuffer_init(&b);
	bulletin_pack(&b, &own, &m, 2000000000ull, 1795000000123ull);
	for (size_t n = 0; n < b.size; n++) {
		char *copy =
			malloc(n + 1); /* a block of its own, so that reading past it is noticed */

		memcpy(copy, b.data, n);
		got.n = 0;
		assert_int_equal(bulletin_unpack(copy, n, &from, &bad, NULL, each, &got),
				 BULLETIN_E_GARBAGE);
		free(copy);
	}
	for (int i = 0; i < 20000; i++) {
		char *copy = malloc(b.size);

		memcpy(copy, b.data, b.size);
		for (int k = 0; k < 3; k++)
			copy[rand_r(&seed) % b.size] = (char)rand_r(&seed);
		got.n = 0;
		bulletin_unpack(copy, b.size, &from, &bad, NULL, each, &got);
		free(copy);
	}
	msgpack_sbuffer_destroy(&b);
	matrix_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_declared_beyond_range),
		cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_newer),
		cmocka_unit_test(test_caches),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_sealed_damage),
		cmocka_unit_test(test_sealed_last),
		cmocka_unit_test(test_sealed_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
