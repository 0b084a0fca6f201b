/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who hears whom and who tells of whom, over clusters with random names: every node is at most two
 * bulletins away from every other, also if nodes know different parts of the cluster.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "balancer/gossip/gossip.h"

#define NODES_MAX 2000
#define PERIOD	  1000000000ull

static const size_t sizes[] = {2,  3,  17, 31,	32,  33,  34,	41,
			       42, 43, 64, 150, 333, 600, 1000, NODES_MAX};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct cluster {
	size_t n;
	struct gossip_place places[NODES_MAX];
	struct gossip_node nodes[NODES_MAX]; /* what the node in turn knows: others only */
	size_t who[NODES_MAX];		     /* which node nodes[i] is */
	size_t known;
};

static uint64_t draws = 1;

static uint32_t draw(uint32_t below)
{
	draws = draws * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(draws >> 33) % below;
}

static void cluster_init(struct cluster *c, size_t n, unsigned seed)
{
	char name[32];

	c->n = n;
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "rack%u-%zu", seed, i);
		c->places[i] = gossip_place(name);
	}
}

/* SELF knows all, and all are alive. */
static void cluster_know(struct cluster *c, size_t self)
{
	c->known = 0;
	for (size_t i = 0; i < c->n; i++)
		if (i != self) {
			c->who[c->known] = i;
			c->nodes[c->known++] =
				(struct gossip_node){.place = c->places[i], .alive = true};
		}
}

static size_t plan(struct cluster *c, size_t self)
{
	size_t chosen = gossip_plan(&c->places[self], c->nodes, c->known, 0), n = 0;

	for (size_t i = 0; i < c->known; i++)
		n += c->nodes[i].chosen;
	assert_int_equal(n, chosen);
	return chosen;
}

/* --- places ----------------------------------------------------------------------------- */

/* Nodes of different releases agree on these: they may never change. */
static void places_are_fixed(void **state)
{
	struct gossip_place a = gossip_place("node1"), b = gossip_place("node1");
	struct gossip_place other = gossip_place("node2");

	(void)state;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(a.slice, 0xd8ec99f9u);
	assert_int_equal(a.keeps, 0xfa38f952u);
	assert_int_equal(a.draw, 0xbeab194au);
	assert_true(a.slice != other.slice && a.keeps != other.keeps && a.draw != other.draw);
	assert_true(a.slice != a.keeps && a.keeps != a.draw);
}

/* Names that differ in one digit spread over slices evenly, and what a node keeps says nothing of
 * where it belongs: chi-square with 63 degrees of freedom is below 120 but once in 50,000 times. */
static void names_spread(void **state)
{
	static const char *const forms[] = {"node%u", "n%04u", "rack7-%u.example.org", "%u"};
	const unsigned slices = 64, nodes = 6400;

	(void)state;
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		unsigned slice[64] = {0}, keeps[64] = {0}, both[64] = {0};
		double sum[3] = {0};

		for (unsigned i = 0; i < nodes; i++) {
			struct gossip_place place;
			char name[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(name, sizeof(name), forms[f], i);
#pragma GCC diagnostic pop
			place = gossip_place(name);
			slice[place.slice % slices]++;
			keeps[place.keeps % slices]++;
			both[(place.slice % 8) * 8 + place.keeps % 8]++;
		}
		for (unsigned s = 0; s < slices; s++) {
			const double mean = (double)nodes / slices;

			sum[0] += (slice[s] - mean) * (slice[s] - mean) / mean;
			sum[1] += (keeps[s] - mean) * (keeps[s] - mean) / mean;
			sum[2] += (both[s] - mean) * (both[s] - mean) / mean;
		}
		for (int k = 0; k < 3; k++)
			if (sum[k] >= 120)
				fail_msg("%s: chi-square %d is %.0f", forms[f], k, sum[k]);
	}
}

static void numbers_of_slices(void **state)
{
	(void)state;
	for (size_t n = 0; n <= GOSSIP_DIRECT; n++)
		assert_int_equal(gossip_slices(n), 1);
	for (size_t n = GOSSIP_DIRECT + 1; n < 100000; n++) {
		size_t s = gossip_slices(n), kept = gossip_slices_kept(n);

		assert_int_equal(s & (s - 1), 0);
		assert_true(s <= GOSSIP_SLICES_MAX && s >= gossip_slices(n - 1));
		assert_true(s * s >= 2 * n || s * GOSSIP_SLICE_NODES >= n ||
			    s == GOSSIP_SLICES_MAX);
		assert_true(s * s < 8 * n);
		assert_true(kept == s || kept == s / 2 || kept == 1);
	}
	/* However two nodes differ within the lag, who tells tells of all that is expected. */
	for (size_t n = 1; n < 20000; n++)
		assert_true(gossip_slices_kept((size_t)(GOSSIP_LAG * (double)n)) <=
			    gossip_slices(n));
}

/* --- plans ------------------------------------------------------------------------------ */

/* Fails unless SELF, as planned, hears of each that it knows: directly, or from one that it hears
 * and that keeps its slice.  KEPT[k]: the number of slices that node k counts for what it keeps. */
static void assert_reaches(const struct cluster *c, size_t self, const unsigned *kept)
{
	for (size_t i = 0; i < c->known; i++) {
		bool told = c->nodes[i].chosen || !c->nodes[i].alive;

		for (size_t k = 0; k < c->known && !told; k++)
			told = c->nodes[k].chosen && c->nodes[k].alive && !c->nodes[k].mute &&
			       gossip_tells(&c->nodes[k].place, &c->nodes[i].place,
					    kept[c->who[k]]);
		if (!told)
			fail_msg("%zu nodes: %zu hears nothing of %zu", c->n, self, c->who[i]);
	}
}

/* Each node that keeps a slice hears all of it directly, dead ones, too. */
static void assert_keeps(const struct cluster *c, size_t self, unsigned kept)
{
	for (size_t i = 0; i < c->known; i++)
		if (gossip_tells(&c->places[self], &c->nodes[i].place, kept))
			assert_true(c->nodes[i].chosen);
}

/* Large clusters: some nodes only, drawn. */
static size_t stride(size_t n)
{
	return n > 400 ? 1 + n / 200 : 1;
}

static void two_hops(void **state)
{
	struct cluster *c = *state;
	unsigned kept[NODES_MAX];

	for (size_t s = 0; s < SIZES; s++)
		for (unsigned seed = 0; seed < 3; seed++) {
			size_t n = sizes[s], slices = gossip_slices(n), most = 0;

			cluster_init(c, n, seed);
			for (size_t i = 0; i < n; i++)
				kept[i] = gossip_slices_kept(n);
			for (size_t self = draw((uint32_t)stride(n)); self < n; self += stride(n)) {
				size_t chosen;

				cluster_know(c, self);
				chosen = plan(c, self);
				most = chosen > most ? chosen : most;
				assert_keeps(c, self, slices == 1 ? 1 : kept[self]);
				assert_reaches(c, self, kept);
				if (n <= GOSSIP_DIRECT)
					assert_int_equal(chosen, n - 1);
			}
			/* Far fewer than all: a slice, and a keeper of each. */
			if (n >= 1000 && most > slices + 3 * n / kept[0])
				fail_msg("%zu nodes: one hears %zu", n, most);
		}
}

/* Nodes that know different parts of a cluster, and so count other numbers of slices. */
static void nodes_differ(void **state)
{
	struct cluster *c = *state;
	static bool knows[NODES_MAX][NODES_MAX];
	unsigned kept[NODES_MAX];

	for (size_t s = 0; s < SIZES; s++) {
		size_t n = sizes[s];

		cluster_init(c, n, 7);
		for (size_t i = 0; i < n; i++) {
			/* With itself from 78 to 100 %: a factor of less than 1.3 between two. */
			size_t least = n * 78 / 100;
			size_t alive = least + 1 + draw((uint32_t)(n - least)), left = alive - 1;

			for (size_t j = 0; j < n; j++) {
				size_t others = n - j - (j <= i);

				knows[i][j] = j != i && draw((uint32_t)others) < left;
				left -= knows[i][j];
			}
			assert_int_equal(left, 0);
			kept[i] = gossip_slices_kept(alive);
		}
		for (size_t self = 0; self < n; self += stride(n)) {
			c->known = 0;
			for (size_t j = 0; j < n; j++)
				if (knows[self][j]) {
					c->who[c->known] = j;
					c->nodes[c->known++] = (struct gossip_node){
						.place = c->places[j], .alive = true};
				}
			(void)plan(c, self);
			assert_keeps(c, self, kept[self]);
			assert_reaches(c, self, kept);
		}
	}
}

/* Dead nodes are no keepers, and heard only by those that would tell of them. */
static void dead_nodes(void **state)
{
	struct cluster *c = *state;
	unsigned kept[NODES_MAX];
	size_t n = 1000, alive = 1;

	cluster_init(c, n, 3);
	cluster_know(c, 0);
	for (size_t i = 0; i < c->known; i++) {
		c->nodes[i].alive = draw(4) > 0;
		alive += c->nodes[i].alive;
	}
	for (size_t i = 0; i < n; i++)
		kept[i] = gossip_slices_kept(alive);
	(void)plan(c, 0);
	assert_keeps(c, 0, kept[0]);
	assert_reaches(c, 0, kept);
	for (size_t i = 0; i < c->known; i++)
		if (c->nodes[i].chosen && !c->nodes[i].alive)
			assert_true(gossip_tells(&c->places[0], &c->nodes[i].place,
						 gossip_slices_kept(alive)));
}

/* A slice that nobody keeps: its nodes are heard directly, and awaited when they are dead. */
static void orphans(void **state)
{
	struct cluster *c = *state;
	const unsigned slices = gossip_slices(300);
	size_t n = 0, orphans = 0;

	cluster_init(c, NODES_MAX, 5);
	for (size_t i = 0; i < NODES_MAX && n < 300; i++)
		if (c->places[i].keeps % slices != 5)
			c->places[n++] = c->places[i];
	c->n = n;
	assert_int_equal(n, 300);
	for (size_t self = 0; self < n; self++) {
		cluster_know(c, self);
		for (size_t i = 0; i < c->known; i++)
			if (c->nodes[i].place.slice % slices == 5 && i % 2)
				c->nodes[i].alive = false;
		(void)plan(c, self);
		for (size_t i = 0; i < c->known; i++)
			if (c->nodes[i].place.slice % slices == 5) {
				assert_true(c->nodes[i].chosen);
				orphans++;
			}
	}
	assert_true(orphans > n);
}

/* A mute keeper is heard only if it is of this node's slice, or of one that no other tells of. */
static void assert_passed_over(const struct cluster *c, size_t self)
{
	const unsigned slices = gossip_slices(c->n), kept = gossip_slices_kept(c->n);
	bool covered[GOSSIP_SLICES_MAX] = {0};

	for (size_t i = 0; i < c->known; i++)
		if (c->nodes[i].chosen && !c->nodes[i].mute)
			covered[c->nodes[i].place.keeps % slices] = true;
	for (size_t i = 0; i < c->known; i++)
		if (c->nodes[i].chosen && c->nodes[i].mute &&
		    !gossip_tells(&c->places[self], &c->nodes[i].place, kept))
			assert_false(covered[c->nodes[i].place.slice % slices]);
}

/* A keeper that brings nothing is passed over for another, and if it was the only one, its slice is
 * heard directly: until nobody but mute keepers is left. */
static void mute_keepers(void **state)
{
	struct cluster *c = *state;
	unsigned kept[NODES_MAX];
	size_t n = 300;
	uint32_t own;

	cluster_init(c, n, 9);
	for (size_t i = 0; i < n; i++)
		kept[i] = gossip_slices_kept(n);
	own = c->places[0].keeps % kept[0];
	cluster_know(c, 0);
	for (int round = 0; round < 40; round++) {
		size_t mute = 0;

		(void)plan(c, 0);
		assert_reaches(c, 0, kept);
		assert_passed_over(c, 0);
		for (size_t i = 0; i < c->known; i++) {
			/* It is heard as one of a slice, then: nobody else tells of it. */
			if (c->nodes[i].chosen && !c->nodes[i].mute &&
			    c->nodes[i].place.slice % kept[0] != own && draw(2)) {
				c->nodes[i].mute = true;
				mute++;
			}
		}
		if (!mute)
			break;
	}
	for (size_t i = 0; i < c->known; i++)
		c->nodes[i].mute = true;
	assert_int_equal(plan(c, 0), n - 1);
}

/* The same nodes give the same plan, in whatever order they stand. */
static void same_plan(void **state)
{
	struct cluster *c = *state;
	static bool chosen[NODES_MAX];
	size_t n = 700, number;

	cluster_init(c, n, 11);
	for (size_t self = 0; self < n; self += 50) {
		cluster_know(c, self);
		number = plan(c, self);
		for (size_t i = 0; i < c->known; i++)
			chosen[c->who[i]] = c->nodes[i].chosen;
		for (size_t i = c->known - 1; i; i--) {
			size_t j = draw((uint32_t)i + 1), who = c->who[i];
			struct gossip_node node = c->nodes[i];

			c->nodes[i] = c->nodes[j];
			c->who[i] = c->who[j];
			c->nodes[j] = node;
			c->who[j] = who;
		}
		assert_int_equal(plan(c, self), number);
		for (size_t i = 0; i < c->known; i++)
			assert_int_equal(c->nodes[i].chosen, chosen[c->who[i]]);
	}
}

/* All that were chosen in the plan of TURN are tied now, and heard.  Returns how many were not. */
static size_t carry_out(struct cluster *c, size_t self, uint32_t turn)
{
	size_t begun = 0;

	(void)gossip_plan(&c->places[self], c->nodes, c->known, turn);
	for (size_t i = 0; i < c->known; i++) {
		begun += c->nodes[i].chosen && !c->nodes[i].tied;
		c->nodes[i].tied = c->nodes[i].heard = c->nodes[i].chosen;
	}
	return begun;
}

/*
 * A cluster that grows node by node: those that are heard stay, so that few are dialled in all; and
 * when it stands, each slice in turn gets the keeper that it would have had from the beginning.
 */
static void keepers_stay(void **state)
{
	struct cluster *c = *state;
	static bool wanted[NODES_MAX];
	size_t n = 200, begun = 0, chosen, self = 17, late = 0;
	const unsigned slices = gossip_slices(n);

	cluster_init(c, n, 21);
	cluster_know(c, self);
	chosen = plan(c, self);
	for (size_t i = 0; i < c->known; i++)
		wanted[i] = c->nodes[i].chosen;
	for (c->known = 1; c->known < n; c->known++)
		begun += carry_out(c, self, 0);
	c->known--;
	if (begun > 4 * chosen)
		fail_msg("%zu were dialled, %zu are heard in the end", begun, chosen);
	for (unsigned turn = 0; turn < slices; turn++) {
		size_t now = carry_out(c, self, turn);

		assert_true(now <= 1);
		late += now;
		(void)carry_out(c, self, turn);
	}
	assert_true(late > 0);
	for (size_t i = 0; i < c->known; i++)
		assert_int_equal(c->nodes[i].chosen, wanted[i]);
}

/* While the one that comes first is dialled, the one that is heard stays; if it does not answer,
 * nothing is lost. */
static void exchange(void **state)
{
	struct cluster *c = *state;
	size_t n = 200, self = 3, first = 0, other = 0;
	uint32_t turn;

	cluster_init(c, n, 23);
	cluster_know(c, self);
	(void)plan(c, self);
	while (!c->nodes[first].chosen ||
	       gossip_tells(&c->places[self], &c->nodes[first].place, gossip_slices_kept(n)))
		first++;
	turn = c->nodes[first].place.keeps % gossip_slices(n);
	while (other == first || c->nodes[other].place.keeps % gossip_slices(n) != turn)
		other++;
	c->nodes[other].tied = c->nodes[other].heard = true;
	(void)gossip_plan(&c->places[self], c->nodes, c->known, turn + 1);
	assert_true(c->nodes[other].chosen && !c->nodes[first].chosen);
	(void)gossip_plan(&c->places[self], c->nodes, c->known, turn);
	assert_true(c->nodes[other].chosen && c->nodes[first].chosen);
	c->nodes[first].tied = true;
	(void)gossip_plan(&c->places[self], c->nodes, c->known, turn + 1);
	assert_true(c->nodes[other].chosen && c->nodes[first].chosen);
	c->nodes[first].tied = false;
	c->nodes[first].mute = true;
	(void)gossip_plan(&c->places[self], c->nodes, c->known, turn);
	assert_true(c->nodes[other].chosen && !c->nodes[first].chosen);
	c->nodes[first].mute = false;
	c->nodes[first].tied = c->nodes[first].heard = true;
	(void)gossip_plan(&c->places[self], c->nodes, c->known, turn + 1);
	assert_true(!c->nodes[other].chosen && c->nodes[first].chosen);
}

/* Keepers are heard by about as many: no node carries the cluster. */
static void load_is_shared(void **state)
{
	struct cluster *c = *state;
	static unsigned ears[NODES_MAX];
	size_t n = 1000, sum = 0;
	unsigned most = 0;

	memset(ears, 0, sizeof(ears));
	cluster_init(c, n, 13);
	for (size_t self = 0; self < n; self++) {
		cluster_know(c, self);
		sum += plan(c, self);
		for (size_t i = 0; i < c->known; i++)
			ears[c->who[i]] += c->nodes[i].chosen;
	}
	for (size_t i = 0; i < n; i++)
		most = ears[i] > most ? ears[i] : most;
	if (most > 4 * sum / n)
		fail_msg("one is heard by %u, the mean is %zu", most, sum / n);
}

/* --- ties, news, the freshest ------------------------------------------------------------ */

static void ties(void **state)
{
	struct gossip_tie tie = {0};
	uint64_t now = 100 * PERIOD;

	(void)state;
	assert_false(gossip_tie_is_mute(&tie, now, PERIOD)); /* not heard: not expected either */
	assert_false(gossip_tie_set(&tie, false, now));
	assert_true(gossip_tie_set(&tie, true, now));
	assert_false(gossip_tie_set(&tie, true, now + 1));
	/* The first bulletin may take longer than the next. */
	assert_false(gossip_tie_is_mute(&tie, now + GOSSIP_MUTE_FIRST * PERIOD, PERIOD));
	now += GOSSIP_MUTE_FIRST * PERIOD + 1;
	assert_true(gossip_tie_is_mute(&tie, now, PERIOD));
	/* It stays so for a while, given up or not, unless a bulletin comes or the node is back. */
	assert_true(gossip_tie_set(&tie, false, now));
	assert_true(gossip_tie_is_mute(&tie, now + (GOSSIP_MUTE_FOR - 1) * PERIOD, PERIOD));
	assert_false(gossip_tie_is_mute(&tie, now + GOSSIP_MUTE_FOR * PERIOD, PERIOD));
	tie.mute_until_ns = now + 5 * PERIOD;
	gossip_tie_again(&tie);
	assert_false(gossip_tie_is_mute(&tie, now, PERIOD));
	tie = (struct gossip_tie){.on = true, .since_ns = now, .mute_until_ns = now + 50 * PERIOD};
	assert_true(gossip_tie_is_mute(&tie, now + PERIOD, PERIOD));
	tie.heard_ns = now + PERIOD;
	assert_false(gossip_tie_is_mute(&tie, now + PERIOD, PERIOD));
	assert_true(gossip_tie_is_mute(&tie, now + (1 + GOSSIP_MUTE_PERIODS) * PERIOD + 1, PERIOD));
}

static void news(void **state)
{
	(void)state;
	assert_true(gossip_is_news(5 * PERIOD, 5 * PERIOD, PERIOD));
	assert_true(gossip_is_news(5 * PERIOD, (5 + GOSSIP_NEWS_PERIODS) * PERIOD - 1, PERIOD));
	assert_false(gossip_is_news(5 * PERIOD, (5 + GOSSIP_NEWS_PERIODS) * PERIOD, PERIOD));
}

static int newest_first(const void *a, const void *b)
{
	uint64_t x = ((const struct gossip_item *)a)->heard_ns;
	uint64_t y = ((const struct gossip_item *)b)->heard_ns;

	return x > y ? -1 : x < y;
}

/* Against a sort, with many that are equally old. */
static void freshest(void **state)
{
	struct gossip_item items[300], sorted[300];
	bool there[300];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		size_t n = draw(300), max = draw(300), got;
		uint32_t ages = 1 + draw(round % 2 ? 5 : 100000);

		for (size_t i = 0; i < n; i++)
			items[i] = (struct gossip_item){draw(ages), &there[i]};
		memcpy(sorted, items, n * sizeof(*items));
		qsort(sorted, n, sizeof(*sorted), newest_first);
		got = gossip_freshest(items, n, max);
		assert_int_equal(got, n < max ? n : max);
		memset(there, 0, sizeof(there));
		for (size_t i = 0; i < n; i++) { /* none is lost, none is twice */
			size_t at = (size_t)((const bool *)items[i].what - there);

			assert_false(there[at]);
			there[at] = true;
		}
		qsort(items, got, sizeof(*items), newest_first);
		for (size_t i = 0; i < got; i++)
			assert_int_equal(items[i].heard_ns, sorted[i].heard_ns);
	}
}

int main(void)
{
	static struct cluster cluster;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_fixed),
		cmocka_unit_test(names_spread),
		cmocka_unit_test(numbers_of_slices),
		cmocka_unit_test_prestate(two_hops, &cluster),
		cmocka_unit_test_prestate(nodes_differ, &cluster),
		cmocka_unit_test_prestate(dead_nodes, &cluster),
		cmocka_unit_test_prestate(orphans, &cluster),
		cmocka_unit_test_prestate(mute_keepers, &cluster),
		cmocka_unit_test_prestate(same_plan, &cluster),
		cmocka_unit_test_prestate(keepers_stay, &cluster),
		cmocka_unit_test_prestate(exchange, &cluster),
		cmocka_unit_test_prestate(load_is_shared, &cluster),
		cmocka_unit_test(ties),
		cmocka_unit_test(news),
		cmocka_unit_test(freshest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
