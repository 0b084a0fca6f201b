/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The nodes, their ties, and a bulletin; see spread.h. */
#include "sim/gossip/spread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RELAYED_MAX   255 /* as agent/net/net_bulletin.h has it */
#define HELLO_PERIODS 15u
#define COUNTED	      64u /* at a time */
#define PREFETCHED    4u  /* ears ahead */
#define LINE	      16u /* vectors' times in a line of the cache */
#define LINES	      8u
#define PAGE	      (2u << 20)

/* --- ties --------------------------------------------------------------------------- */

static size_t spread_tie_at(const struct spread_node *node, uint32_t who)
{
	size_t low = 0, high = node->nties;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (node->ties[mid].who < who)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct spread_tie *spread_tie_find(const struct spread_node *node, uint32_t who)
{
	size_t at = spread_tie_at(node, who);

	return at < node->nties && node->ties[at].who == who ? &node->ties[at] : NULL;
}

/* Makes room for one more of *LIST, of SIZE bytes each. */
static bool spread_grow(struct spread *s, void **list, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (n < *room)
		return true;
	grown = realloc(*list, more * size);
	s->failed = s->failed || !grown;
	if (!grown)
		return false;
	*list = grown;
	*room = more;
	return true;
}

static struct spread_tie *spread_tie_make(struct spread *s, struct spread_node *node, uint32_t who)
{
	struct spread_tie *found = spread_tie_find(node, who);
	size_t at = spread_tie_at(node, who);

	if (found || !spread_grow(s, (void **)&node->ties, &node->ties_room, node->nties,
				  sizeof(*node->ties)))
		return found;
	memmove(&node->ties[at + 1], &node->ties[at], (node->nties - at) * sizeof(*node->ties));
	node->nties++;
	node->ties[at] = (struct spread_tie){.who = who};
	return &node->ties[at];
}

static void spread_ear_set(struct spread *s, uint32_t speaker, uint32_t ear, bool on, uint32_t now)
{
	struct spread_node *node = &s->nodes[speaker];

	if (on) {
		if (spread_grow(s, (void **)&node->ears, &node->ears_room, node->nears,
				sizeof(*node->ears)))
			node->ears[node->nears++] = (struct spread_ear){.who = ear, .since = now};
		return;
	}
	for (size_t i = 0; i < node->nears; i++)
		if (node->ears[i].who == ear) {
			node->ears[i] = node->ears[--node->nears];
			return;
		}
}

void spread_tie_set(struct spread *s, uint32_t self, uint32_t who, bool on, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	struct spread_tie *tie = on ? spread_tie_make(s, node, who) : spread_tie_find(node, who);

	if (!tie || !gossip_tie_set(&tie->tie, on, now * SPREAD_NS_PER_MS))
		return;
	node->on = on ? node->on + 1 : node->on - 1;
	spread_ear_set(s, who, self, on, now);
	s->dials += on && s->measures;
}

/* --- a bulletin ----------------------------------------------------------------------- */

uint32_t spread_count(const struct spread *s, uint32_t self, uint32_t now)
{
	const uint32_t *made = spread_row(s, self);
	uint32_t silent_ms = s->silent_ms, count = 0, j = 0;

	for (; j + COUNTED <= s->n; j += COUNTED) /* in this form compilers make vectors of it */
		for (uint32_t k = 0; k < COUNTED; k++)
			count += now - made[j + k] <= silent_ms;
	for (; j < s->n; j++)
		count += now - made[j] <= silent_ms;
	return count;
}

/* The first node whose key is not less than KEY. */
static uint32_t spread_from(const struct spread *s, uint64_t key)
{
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->nodes[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t spread_reversed(uint32_t x)
{
	uint32_t y = 0;

	for (int bit = 0; bit < 32; bit++)
		y |= (x >> bit & 1) << (31 - bit);
	return y;
}

/* Finds the nodes of the slice that NODE keeps. */
static void spread_find_own(const struct spread *s, struct spread_node *node)
{
	unsigned slices = s->setup->plan == GOSSIP_SLICED ? gossip_slices_kept(node->alive) : 1;
	uint64_t wide = (1ull << 32) / slices;
	uint64_t key = slices == 1 ? 0 : spread_reversed(node->place.keeps) / wide * wide;

	node->own_from = spread_from(s, key);
	node->own_to = spread_from(s, key + wide);
}

/* Adds the freshest MOST of the slice that SELF keeps, or of all. */
static size_t spread_tell_own(struct spread *s, uint32_t self, uint32_t now, size_t most)
{
	const struct spread_node *node = &s->nodes[self];
	const uint32_t *made = spread_row(s, self);
	size_t n = 0;

	for (uint32_t j = node->own_from; j < node->own_to; j++) {
		s->told[n] = j;
		n += now - made[j] <= s->silent_ms;
	}
	if (n <= most)
		return n;
	for (size_t i = 0; i < n; i++)
		s->items[i] = (struct gossip_item){.heard_ns = made[s->told[i]],
						   .what = &made[s->told[i]]};
	n = gossip_freshest(s->items, n, most);
	for (size_t i = 0; i < n; i++)
		s->told[i] = (uint32_t)((const uint32_t *)s->items[i].what - made);
	return n;
}

/* Adds the latest news that are not of its slice to the TOLD that are there. */
static size_t spread_tell_news(struct spread *s, uint32_t self, uint32_t now, size_t told)
{
	const struct spread_node *node = &s->nodes[self];
	size_t n = told;

	for (uint32_t back = 1; back <= SPREAD_NEWS && back <= node->nnews; back++) {
		const struct spread_news *news = &node->news[(node->nnews - back) % SPREAD_NEWS];
		bool twice = news->who >= node->own_from && news->who < node->own_to;

		if (n == told + GOSSIP_NEWS_MAX ||
		    !gossip_is_news(news->since, now, SPREAD_PERIOD_MS))
			break;
		twice = twice || (node->orphans &&
				  gossip_is_orphan(&node->keepers, &s->nodes[news->who].place));
		for (size_t i = told; i < n; i++)
			twice = twice || s->told[i] == news->who;
		if (!twice && spread_is_alive(s, self, news->who, now))
			s->told[n++] = news->who;
	}
	return n;
}

/* Adds the nodes of slices that nobody keeps to the TOLD that are there. */
static size_t spread_tell_orphans(struct spread *s, uint32_t self, uint32_t now, size_t told)
{
	const struct spread_node *node = &s->nodes[self];

	for (uint32_t j = 0; j < s->n && node->orphans && told < RELAYED_MAX; j++)
		if (j != self && (j < node->own_from || j >= node->own_to) &&
		    gossip_is_orphan(&node->keepers, &s->nodes[j].place) &&
		    spread_is_alive(s, self, j, now))
			s->told[told++] = j;
	return told;
}

/* What SELF tells of is in s->told; returns how many. */
static size_t spread_tell(struct spread *s, uint32_t self, uint32_t now)
{
	if (s->setup->plan == GOSSIP_FRESHEST)
		return spread_tell_own(s, self, now, s->setup->relay);
	return spread_tell_news(
		s, self, now,
		spread_tell_orphans(s, self, now, spread_tell_own(s, self, now, RELAYED_MAX)));
}

/* SELF hears of WHO, which it did not count as there. */
static void spread_newcomer(struct spread *s, uint32_t self, uint32_t who, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	struct spread_tie *tie = spread_tie_find(node, who);

	s->learned_ms = now;
	node->replan = true;
	if (who < node->own_from || who >= node->own_to)
		node->news[node->nnews++ % SPREAD_NEWS] =
			(struct spread_news){.who = who, .since = now};
	if (tie)
		gossip_tie_again(&tie->tie);
}

static void spread_hear(struct spread *s, struct spread_ear *ear, uint32_t from, size_t n,
			uint32_t now)
{
	uint32_t self = ear->who;
	struct spread_node *node = &s->nodes[self];
	uint32_t *mine = spread_row(s, self);
	const uint32_t *theirs = spread_row(s, from);
	uint64_t bytes = s->setup->head_bytes + (n + 1) * s->setup->vector_bytes;
	uint64_t news = 1;

	if (!node->up || (s->parted && node->other_half != s->nodes[from].other_half) ||
	    now < ear->since + s->setup->dial_ms)
		return;
	ear->heard = now;
	node->heard++;
	if (now - mine[from] > s->silent_ms)
		spread_newcomer(s, self, from, now);
	mine[from] = now;
	for (size_t i = 0; i < n; i++) {
		uint32_t j = s->told[i];

		if (theirs[j] <= mine[j]) /* itself, too: SPREAD_SELF */
			continue;
		if (now - mine[j] > s->silent_ms)
			spread_newcomer(s, self, j, now);
		mine[j] = theirs[j];
		news++;
	}
	if (!s->measures)
		return;
	s->bulletins++;
	s->vectors += n + 1;
	s->news += news;
	node->bytes += bytes;
	s->nodes[from].sent += bytes;
}

/* What the ear at AT touches comes from memory meanwhile: most of the time went there. */
static void spread_prefetch(const struct spread *s, const struct spread_node *node, size_t at,
			    size_t n)
{
	const uint32_t *row;

	if (at + 2 * PREFETCHED < node->nears)
		__builtin_prefetch(&s->nodes[node->ears[at + 2 * PREFETCHED].who]);
	if (at + PREFETCHED >= node->nears)
		return;
	row = spread_row(s, node->ears[at + PREFETCHED].who);
	for (size_t i = 0; i < n && i < LINES * LINE; i += LINE)
		__builtin_prefetch(&row[s->told[i]]);
	__builtin_prefetch(&row[node - s->nodes]);
}

void spread_publish(struct spread *s, uint32_t self, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	size_t n;

	spread_plan(s, self, now);
	spread_find_own(s, node);
	if (s->scenario == GOSSIP_FLAP ||
	    now / SPREAD_PERIOD_MS % HELLO_PERIODS == node->number % HELLO_PERIODS)
		spread_hello(s, self, now);
	n = spread_tell(s, self, now);
	for (size_t i = 0; i < node->nears; i++) {
		spread_prefetch(s, node, i, n);
		spread_hear(s, &node->ears[i], self, n, now);
	}
}

/* --- the nodes ------------------------------------------------------------------------ */

void spread_restart(struct spread *s, uint32_t self)
{
	struct spread_node *node = &s->nodes[self];
	uint32_t *made = spread_row(s, self);

	memset(made, 0, s->n * sizeof(*made));
	made[self] = SPREAD_SELF;
	for (size_t i = 0; i < node->nties; i++)
		if (node->ties[i].tie.on)
			spread_ear_set(s, node->ties[i].who, self, false, 0);
	node->nties = 0;
	node->on = node->mute = 0;
	node->nnews = 0;
	node->replan = true;
}

static int spread_by_key(const void *a, const void *b)
{
	const struct spread_node *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int spread_by_phase(const void *a, const void *b, void *arg)
{
	const struct spread_node *nodes = arg;
	const struct spread_node *x = &nodes[*(const uint32_t *)a],
				 *y = &nodes[*(const uint32_t *)b];

	if (x->phase != y->phase)
		return x->phase < y->phase ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void spread_init_nodes(struct spread *s)
{
	char name[24];

	for (uint32_t i = 0; i < s->n; i++) {
		struct spread_node *node = &s->nodes[i];

		snprintf(name, sizeof(name), "node%u", i);
		node->place = gossip_place(name);
		node->key = spread_reversed(node->place.slice);
		node->number = i;
		node->phase = (uint32_t)sim_random_integer(&s->random, 0, SPREAD_PERIOD_MS - 1);
		node->up = node->replan = true;
		node->peer = i < s->setup->peers;
		node->alive = s->n;
	}
	qsort(s->nodes, s->n, sizeof(*s->nodes), spread_by_key);
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t *made = spread_row(s, i);

		s->order[i] = i;
		s->by_number[s->nodes[i].number] = i;
		spread_find_own(s, &s->nodes[i]);
		for (uint32_t j = 0; j < s->n; j++)
			made[j] = SPREAD_BEGIN * SPREAD_PERIOD_MS;
		made[i] = SPREAD_SELF;
	}
	qsort_r(s->order, s->n, sizeof(*s->order), spread_by_phase, s->nodes);
}

/* Zeros, in large pages where there are: rows are read across, and half of the time went into
 * finding the pages. */
static uint32_t *spread_square(size_t n)
{
	size_t bytes = (n * n * sizeof(uint32_t) + PAGE - 1) / PAGE * PAGE;
	void *square = aligned_alloc(PAGE, bytes);

	if (!square)
		return NULL;
	(void)madvise(square, bytes, MADV_HUGEPAGE);
	return memset(square, 0, bytes);
}

bool spread_init(struct spread *s, const struct gossip_setup *setup, enum gossip_scenario scenario)
{
	size_t n = setup->nodes;

	*s = (struct spread){
		.setup = setup,
		.scenario = scenario,
		.n = setup->nodes,
		.silent_ms = setup->silent * SPREAD_PERIOD_MS,
		.random = sim_random_stream(setup->seed, 0x676f73736970, (uint64_t)scenario),
		.nodes = calloc(n, sizeof(*s->nodes)),
		.made = spread_square(n),
		.order = calloc(n, sizeof(*s->order)),
		.by_number = calloc(n, sizeof(*s->by_number)),
		.plan = calloc(n, sizeof(*s->plan)),
		.items = calloc(n, sizeof(*s->items)),
		.told = calloc(n + 1 + GOSSIP_NEWS_MAX, sizeof(*s->told)),
	};
	if (!s->nodes || !s->made || !s->order || !s->by_number || !s->plan || !s->items ||
	    !s->told)
		return false;
	spread_init_nodes(s);
	return true;
}

void spread_deinit(struct spread *s)
{
	for (uint32_t i = 0; s->nodes && i < s->n; i++) {
		free(s->nodes[i].ties);
		free(s->nodes[i].ears);
	}
	free(s->nodes);
	free(s->made);
	free(s->order);
	free(s->by_number);
	free(s->plan);
	free(s->items);
	free(s->told);
}
