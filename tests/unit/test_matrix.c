/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The load matrix: the newest vector wins, silent nodes are dropped, and no old vector comes
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/matrix.h"

#define S 1000000000ull

static struct iocom_vector make(const char *name, uint64_t boot, uint64_t sequence, uint64_t time)
{
	struct iocom_vector v = {
		.boot_id = boot, .sequence = sequence, .time_ns = time, .period_ms = 1000};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

static int put(struct matrix *m, const char *name, uint64_t boot, uint64_t sequence, uint64_t time,
	       uint64_t age, uint64_t now)
{
	struct iocom_vector v = make(name, boot, sequence, time);

	return matrix_put(m, &v, age, now);
}

static void test_newest(void **state)
{
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	assert_int_equal(put(&m, "me", 1, 1, 1, 0, 10 * S), MATRIX_E_OWN);
	assert_int_equal(put(&m, "b", 1, 5, 100, 0, 10 * S), 0);
	assert_int_equal(put(&m, "b", 1, 5, 100, 0, 11 * S),
			 MATRIX_E_OLD); /* the same vector, relayed again */
	assert_int_equal(put(&m, "b", 1, 4, 90, 0, 11 * S), MATRIX_E_OLD);
	assert_int_equal(matrix_find(&m, "b")->heard_ns, 10 * S);
	assert_int_equal(put(&m, "b", 1, 6, 110, 0, 12 * S), 0);
	/* another boot: compare the node's own times */
	assert_int_equal(put(&m, "b", 2, 1, 105, 0, 12 * S), MATRIX_E_OLD);
	assert_int_equal(put(&m, "b", 2, 1, 120, 0, 12 * S), 0);
	assert_int_equal(put(&m, "b", 1, 7, 115, 0, 12 * S), MATRIX_E_OLD);
	assert_int_equal(m.count, 1);
	matrix_fini(&m);
}

/* Who told of all nodes lied of them; who tells of them next counts. */
static void test_doubt(void **state)
{
	struct iocom_vector lie = make("b", 1, UINT64_MAX, UINT64_MAX);
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	lie.period_ms = 3600000;
	assert_int_equal(matrix_put(&m, &lie, 0, 10 * S), 0);
	strcpy(lie.name, "nobody");
	assert_int_equal(matrix_put(&m, &lie, 0, 10 * S), 0);
	assert_int_equal(put(&m, "b", 1, 6, 101, 0, 11 * S), MATRIX_E_OLD);
	matrix_doubt(&m);
	assert_int_equal(put(&m, "b", 1, 6, 101, 0, 11 * S), 0);
	assert_int_equal(put(&m, "b", 1, 5, 100, 0, 11 * S), MATRIX_E_OLD); /* as ever */
	assert_int_equal(put(&m, "b", 1, 7, 102, 0, 38 * S), 0);
	assert_int_equal(matrix_expire(&m, 40 * S), 0);
	assert_int_equal(matrix_expire(&m, 40 * S + 1), 1);
	assert_null(matrix_find(&m, "nobody"));
	assert_true(matrix_find(&m, "b")->alive);
	assert_int_equal(m.count, 1);
	matrix_fini(&m);
}

static int hear(struct matrix *m, const struct iocom_vector *v, uint64_t now)
{
	return matrix_hear(m, v, 0, true, now);
}

/* A node is believed about itself: others cannot say that it leaves, or use up its numbers. */
static void test_own_word(void **state)
{
	struct iocom_vector own = make("b", 1, 5, 100), lie = make("b", 1, UINT64_MAX, UINT64_MAX);
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	lie.period_ms = 3600000;
	assert_int_equal(hear(&m, &own, 10 * S), 0);
	assert_int_equal(matrix_put(&m, &lie, 0, 10 * S), MATRIX_E_OLD);
	lie.bits = IOCOM_BIT_LEAVES;
	assert_int_equal(matrix_put(&m, &lie, 0, 12 * S), MATRIX_E_OLD);
	lie.boot_id = 2;
	assert_int_equal(matrix_put(&m, &lie, 0, 12 * S), MATRIX_E_OLD);
	assert_true(matrix_find(&m, "b")->alive);
	/* what was told before it was heard, or while it was not, ends with its own word */
	lie.boot_id = 1;
	assert_int_equal(matrix_put(&m, &lie, 0, 12 * S + 1), MATRIX_E_LEFT);
	own.sequence = 6;
	assert_int_equal(hear(&m, &own, 13 * S), 0);
	assert_true(matrix_find(&m, "b")->alive);
	assert_int_equal(hear(&m, &own, 13 * S), MATRIX_E_OLD); /* but not the same word twice */
	/* if only others hear it, it is not lost */
	own.sequence = 7;
	assert_int_equal(matrix_put(&m, &own, 0, 14 * S), MATRIX_E_OLD);
	own.sequence = 8;
	assert_int_equal(matrix_put(&m, &own, S / 2, 15 * S + S / 2), 0);
	assert_int_equal(matrix_expire(&m, 16 * S + 1), 0);
	matrix_fini(&m);
}

/* Where it is known from others only, a lie ends three of its periods after the last one. */
static void test_overtaken(void **state)
{
	struct iocom_vector lie = make("b", 1, UINT64_MAX, UINT64_MAX);
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	lie.period_ms = 3600000;
	assert_int_equal(matrix_put(&m, &lie, 0, 10 * S), 0);
	for (unsigned s = 11; s <= 13; s++)
		assert_int_equal(put(&m, "b", 1, s, s, 0, s * S), MATRIX_E_OLD);
	assert_int_equal(put(&m, "b", 1, 13, 13, 0, 14 * S), MATRIX_E_OLD); /* the same again */
	assert_int_equal(put(&m, "b", 1, 12, 12, 0, 14 * S), MATRIX_E_OLD);
	assert_int_equal(put(&m, "b", 1, 14, 14, 0, 14 * S), 0);
	assert_int_equal(matrix_find(&m, "b")->vector.sequence, 14);
	/* that it leaves is no better as a lie */
	lie.bits = IOCOM_BIT_LEAVES;
	assert_int_equal(matrix_put(&m, &lie, 0, 15 * S), MATRIX_E_LEFT);
	assert_int_equal(put(&m, "b", 1, 19, 19, 0, 19 * S), MATRIX_E_OLD);
	assert_int_equal(put(&m, "b", 1, 20, 20, 0, 20 * S), 0);
	/* another start of the agent, with a time that is behind */
	lie.bits = 0;
	assert_int_equal(matrix_put(&m, &lie, 0, 20 * S), 0);
	assert_int_equal(put(&m, "b", 7, 1, 24, 0, 24 * S), MATRIX_E_OLD);
	assert_int_equal(put(&m, "b", 7, 2, 25, 0, 25 * S), 0);
	matrix_fini(&m);
}

/* One that invents nodes leaves room for those that others tell of. */
static void test_inventor(void **state)
{
	struct matrix m;
	char name[24];
	unsigned told = 0;

	(void)state;
	matrix_init(&m, "me");
	assert_false(matrix_may_tell(&m, "liar", "x", 10 * S)); /* who is that? */
	assert_int_equal(put(&m, "liar", 1, 1, 1, 0, 10 * S), 0);
	assert_int_equal(put(&m, "good", 1, 1, 1, 0, 10 * S), 0);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		if (!matrix_may_tell(&m, "liar", name, 10 * S))
			continue;
		assert_int_equal(put(&m, name, 1, 1, 1, 0, 10 * S), 0);
		told++;
	}
	assert_int_equal(told, MATRIX_TOLD_NEW);
	assert_true(matrix_may_tell(&m, "liar", "good", 10 * S)); /* known */
	assert_true(matrix_may_tell(&m, "liar", "x7", 10 * S));
	assert_true(matrix_may_tell(&m, "good", "y", 10 * S));
	/* after a while it may again, and after an hour as often */
	assert_false(matrix_may_tell(&m, "liar", "y", 13 * S));
	assert_true(matrix_may_tell(&m, "liar", "y", 14 * S));
	assert_false(matrix_may_tell(&m, "liar", "y", 14 * S));
	for (told = 0; matrix_may_tell(&m, "liar", "y", 14 * S + MATRIX_FORGET_NS); told++)
		;
	assert_int_equal(told, MATRIX_TOLD_NEW);
	matrix_fini(&m);
}

static void test_silence(void **state)
{
	const struct matrix_entry *list[4];
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	put(&m, "b", 1, 5, 100, 0, 10 * S);
	put(&m, "a", 1, 5, 100, 2 * S, 10 * S); /* relayed, 2 s old */
	assert_int_equal(put(&m, "c", 1, 1, 1, 3 * S + 1, 10 * S), MATRIX_E_SILENT);
	assert_int_equal(matrix_told(&m, 10 * S, list, 4), 2);
	assert_int_equal(matrix_expire(&m, 11 * S), 0);
	assert_int_equal(matrix_expire(&m, 11 * S + 1), 1); /* a was silent for 3 periods */
	assert_false(matrix_find(&m, "a")->alive);
	assert_int_equal(matrix_told(&m, 11 * S, list, 4), 1);
	assert_string_equal(list[0]->vector.name, "b");
	/* an old vector, relayed late, does not restore the node; a new one does */
	assert_int_equal(put(&m, "a", 1, 5, 100, 0, 12 * S), MATRIX_E_OLD);
	assert_int_equal(put(&m, "a", 1, 6, 101, 0, 12 * S), 0);
	assert_true(matrix_find(&m, "a")->alive);
	/* a dropped node may come back with a clock that was set back */
	assert_int_equal(matrix_expire(&m, 20 * S), 2);
	assert_int_equal(put(&m, "a", 9, 1, 1, 0, 20 * S), 0);
	assert_int_equal(matrix_expire(&m, 20 * S + MATRIX_FORGET_NS), 1);
	assert_null(matrix_find(&m, "b")); /* the node is forgotten */
	assert_non_null(matrix_find(&m, "a"));
	matrix_fini(&m);
}

/* Everybody tells of the nodes of a slice that nobody keeps: else newcomers never learn of them. */
static void test_orphans(void **state)
{
	enum { NODES = 150 };
	const struct matrix_entry *told[NODES];
	struct gossip_keepers keepers;
	struct matrix m;
	unsigned orphans = 0;
	char name[16];
	size_t n;

	(void)state;
	matrix_init(&m, "me");
	gossip_keepers_init(&keepers, &m.place, NODES + 1);
	for (unsigned i = 0, seed = 0; i < NODES; seed++) {
		struct gossip_place place;

		snprintf(name, sizeof(name), "n%u", seed);
		place = gossip_place(name);
		if (place.keeps % keepers.slices == (m.place.keeps + 1) % keepers.slices)
			continue; /* nobody keeps this slice */
		assert_int_equal(put(&m, name, 1, 1, 1, 0, 10 * S), 0);
		gossip_keepers_add(&keepers, &place);
		i++;
	}
	n = matrix_told(&m, 12 * S, told, NODES);
	for (size_t i = 0; i < m.count; i++) {
		const struct matrix_entry *e = matrix_at(&m, i);
		bool found = false;

		if (!gossip_is_orphan(&keepers, &e->place))
			continue;
		for (size_t k = 0; k < n; k++)
			found = found || told[k] == e;
		assert_true(found);
		orphans++;
	}
	assert_true(orphans > 0);
	assert_true(n < NODES);
	matrix_fini(&m);
}

/* A node whose agent stops says so in its last vector, and is dropped at once. */
static void test_left(void **state)
{
	struct iocom_vector last = make("b", 1, 6, 101);
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	last.bits = IOCOM_BIT_LEAVES;
	assert_int_equal(matrix_put(&m, &last, 0, 10 * S), MATRIX_E_SILENT); /* never heard of */
	assert_int_equal(m.count, 0);
	put(&m, "b", 1, 5, 100, 0, 10 * S);
	assert_int_equal(matrix_put(&m, &last, 0, 11 * S), MATRIX_E_LEFT);
	assert_false(matrix_find(&m, "b")->alive);
	assert_true(matrix_find(&m, "b")->left);
	assert_int_equal(matrix_put(&m, &last, 0, 11 * S), MATRIX_E_OLD);
	/* It was not found silent, and what others still relay does not bring it back. */
	assert_int_equal(put(&m, "b", 1, 5, 100, S, 12 * S), MATRIX_E_OLD);
	assert_int_equal(matrix_expire(&m, 40 * S), 0);
	/* Its next start does, even with a clock that was set back. */
	assert_int_equal(put(&m, "b", 2, 1, 50, 0, 41 * S), 0);
	assert_true(matrix_find(&m, "b")->alive && !matrix_find(&m, "b")->left);
	matrix_fini(&m);
}

/* What a watcher was told last, and how often. */
struct told {
	const struct matrix_entry *entry;
	bool alive;
	int times;
};

static void told_of(void *arg, struct matrix_entry *entry)
{
	struct told *told = arg;

	*told = (struct told){entry, entry->alive, told->times + 1};
}

static void test_watched(void **state)
{
	struct told told = {0};
	struct matrix m;

	(void)state;
	matrix_init(&m, "me");
	put(&m, "b", 1, 5, 100, 0, 10 * S);
	matrix_watch(&m, told_of, &told);
	put(&m, "b", 1, 5, 100, 0, 10 * S); /* nothing new */
	put(&m, "me", 1, 5, 100, 0, 10 * S);
	assert_int_equal(told.times, 0);
	put(&m, "b", 1, 6, 101, 0, 11 * S);
	assert_true(told.times == 1 && told.entry == matrix_find(&m, "b") && told.alive);
	for (char name[] = "c"; *name < 'x'; (*name)++) { /* an entry stays where it is */
		put(&m, name, 1, 1, 1, 0, 13 * S);
		*name -= 'c' - 'A';
		put(&m, name, 1, 1, 1, 0, 13 * S);
		*name += 'c' - 'A';
	}
	assert_ptr_equal(matrix_at(&m, m.count - 22), matrix_find(&m, "b"));
	assert_int_equal(told.times, 43);
	assert_int_equal(matrix_expire(&m, 15 * S), 1);
	assert_true(told.times == 44 && told.entry == matrix_find(&m, "b") && !told.alive);
	matrix_expire(&m, 15 * S); /* told once */
	assert_int_equal(told.times, 44);
	matrix_watch(&m, NULL, NULL);
	put(&m, "b", 1, 7, 102, 0, 16 * S);
	assert_int_equal(told.times, 44);
	matrix_fini(&m);
}

static void test_many(void **state)
{
	struct matrix m;
	char name[16];

	(void)state;
	matrix_init(&m, "me");
	for (unsigned i = 0; i < MATRIX_NODES_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i * 7919 % MATRIX_NODES_MAX);
		assert_int_equal(put(&m, name, 1, 1, 1, 0, S), 0);
	}
	assert_int_equal(put(&m, "one-more", 1, 1, 1, 0, S), MATRIX_E_FULL);
	for (size_t i = 1; i < m.count; i++)
		assert_true(strcmp(matrix_at(&m, i - 1)->vector.name,
				   matrix_at(&m, i)->vector.name) < 0);
	assert_int_equal(put(&m, "n77", 1, 2, 2, 0, 2 * S), 0);
	matrix_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest),	  cmocka_unit_test(test_own_word),
		cmocka_unit_test(test_overtaken), cmocka_unit_test(test_inventor),
		cmocka_unit_test(test_silence),	  cmocka_unit_test(test_left),
		cmocka_unit_test(test_orphans),	  cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_watched),	  cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
