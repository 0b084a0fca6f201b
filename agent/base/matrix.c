/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The load matrix; see matrix.h. */
#include "agent/base/matrix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void matrix_init(struct matrix *m, const char *self)
{
	*m = (struct matrix){0};
	strncpy(m->self, self, sizeof(m->self) - 1);
	m->place = gossip_place(m->self);
}

void matrix_fini(struct matrix *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->entries[i]);
	free(m->entries);
	*m = (struct matrix){0};
}

void matrix_watch(struct matrix *m, matrix_changed *changed, void *arg)
{
	m->changed = changed;
	m->arg = arg;
}

/* Called for an ENTRY that has a newer vector or was dropped. */
static void matrix_tell(struct matrix *m, struct matrix_entry *entry)
{
	m->generation++;
	if (m->changed)
		m->changed(m->arg, entry);
}

/* Returns where NAME is or would be; FOUND says whether it is there. */
static size_t locate(const struct matrix *m, const char *name, bool *found)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(m->entries[mid]->vector.name, name);

		if (order == 0) {
			*found = true;
			return mid;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*found = false;
	return low;
}

static uint64_t silence_ns(const struct iocom_vector *v)
{
	return (uint64_t)v->period_ms * 1000000ull * MATRIX_SILENT_PERIODS;
}

/* How long ENTRY may be silent. */
static uint64_t matrix_patience_ns(const struct matrix_entry *e)
{
	uint64_t ns = silence_ns(&e->vector);

	return e->doubted && ns > MATRIX_DOUBT_NS ? MATRIX_DOUBT_NS : ns;
}

static bool newer(const struct matrix_entry *e, const struct iocom_vector *v)
{
	if (e->doubted)
		return true;
	if (v->boot_id == e->vector.boot_id)
		return v->sequence > e->vector.sequence;
	return !e->alive || v->time_ns > e->vector.time_ns;
}

/* Nothing newer came for so long, but V, and before it another one with a lower number. */
static bool matrix_is_overtaken(struct matrix_entry *e, const struct iocom_vector *v,
				uint64_t now_ns)
{
	bool goes_up = e->rival_boot_id == v->boot_id && v->sequence > e->rival_sequence;

	if (e->rival_boot_id != v->boot_id || goes_up) {
		e->rival_boot_id = v->boot_id;
		e->rival_sequence = v->sequence;
	}
	return goes_up && matrix_age_ns(e, now_ns) > silence_ns(v);
}

static bool matrix_believes(struct matrix_entry *e, const struct iocom_vector *v, bool direct,
			    uint64_t now_ns)
{
	if (direct && e->relayed)
		return true;
	if (!direct && e->direct_ns && e->alive && !e->doubted &&
	    now_ns - e->direct_ns <= MATRIX_DIRECT_PERIODS * 1000000ull * e->vector.period_ms)
		return false;
	return newer(e, v) || matrix_is_overtaken(e, v, now_ns);
}

static int matrix_reserve(struct matrix *m)
{
	size_t room = m->room ? 2 * m->room : 16;
	struct matrix_entry **grown;

	if (m->count < m->room)
		return 0;
	grown = realloc(m->entries, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->entries = grown;
	m->room = room;
	return 0;
}

static int matrix_insert(struct matrix *m, size_t at)
{
	struct matrix_entry *e;

	if (m->count == MATRIX_NODES_MAX)
		return MATRIX_E_FULL;
	e = calloc(1, sizeof(*e));
	if (!e || matrix_reserve(m)) {
		free(e);
		return -ENOMEM;
	}
	memmove(&m->entries[at + 1], &m->entries[at], (m->count - at) * sizeof(*m->entries));
	m->entries[at] = e;
	m->count++;
	return 0;
}

int matrix_hear(struct matrix *m, const struct iocom_vector *v, uint64_t age_ns, bool direct,
		uint64_t now_ns)
{
	bool found, leaves = v->bits & IOCOM_BIT_LEAVES;
	struct matrix_entry *e;
	size_t at;
	int rc;

	if (!strcmp(v->name, m->self))
		return MATRIX_E_OWN;
	if (age_ns > silence_ns(v))
		return MATRIX_E_SILENT;
	at = locate(m, v->name, &found);
	if (found && !matrix_believes(m->entries[at], v, direct, now_ns))
		return MATRIX_E_OLD;
	if (!found && leaves)
		return MATRIX_E_SILENT;
	if (!found) {
		rc = matrix_insert(m, at);
		if (rc)
			return rc;
		m->entries[at]->place = gossip_place(v->name);
	}
	e = m->entries[at];
	e->vector = *v;
	e->heard_ns = now_ns > age_ns ? now_ns - age_ns : 0;
	if (e->alive == leaves) {
		e->turned_ns = now_ns;
		gossip_tie_again(&e->tie);
	}
	e->alive = !leaves;
	e->left = leaves;
	e->doubted = false;
	e->relayed = !direct;
	if (direct)
		e->direct_ns = now_ns;
	e->rival_boot_id = e->rival_sequence = 0;
	e->count++;
	matrix_tell(m, e);
	return leaves ? MATRIX_E_LEFT : 0;
}

int matrix_put(struct matrix *m, const struct iocom_vector *v, uint64_t age_ns, uint64_t now_ns)
{
	return matrix_hear(m, v, age_ns, false, now_ns);
}

/* The account fills up within an hour. */
bool matrix_may_tell(struct matrix *m, const char *teller, const char *name, uint64_t now_ns)
{
	const uint64_t one_ns = MATRIX_FORGET_NS / MATRIX_TOLD_NEW;
	struct matrix_entry *e;

	if (matrix_entry_of(m, name))
		return true;
	e = matrix_entry_of(m, teller);
	if (!e)
		return false;
	if (e->told_new_ns < now_ns)
		e->told_new_ns = now_ns;
	if (e->told_new_ns - now_ns > MATRIX_FORGET_NS - one_ns)
		return false;
	e->told_new_ns += one_ns;
	return true;
}

void matrix_doubt(struct matrix *m)
{
	for (size_t i = 0; i < m->count; i++)
		m->entries[i]->doubted = true;
}

size_t matrix_expire(struct matrix *m, uint64_t now_ns)
{
	size_t dropped = 0, kept = 0;

	for (size_t i = 0; i < m->count; i++) {
		struct matrix_entry *e = m->entries[i];
		uint64_t age = matrix_age_ns(e, now_ns);

		if (e->alive && age > matrix_patience_ns(e)) {
			e->alive = false;
			matrix_tell(m, e);
			dropped++;
		}
		if (!e->alive && (e->doubted || age > MATRIX_FORGET_NS)) {
			free(e);
			continue;
		}
		m->entries[kept++] = e;
	}
	m->count = kept;
	return dropped;
}

uint64_t matrix_due_ns(const struct matrix *m)
{
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < m->count; i++) {
		const struct matrix_entry *e = m->entries[i];
		uint64_t silent = e->heard_ns + matrix_patience_ns(e) + 1;

		if (e->alive && silent < due)
			due = silent;
	}
	return due;
}

struct matrix_entry *matrix_entry_of(const struct matrix *m, const char *name)
{
	bool found;
	size_t at = locate(m, name, &found);

	return found ? m->entries[at] : NULL;
}

const struct matrix_entry *matrix_find(const struct matrix *m, const char *name)
{
	return matrix_entry_of(m, name);
}

/* What the search for those that are told of has found. */
struct matrix_tale {
	const struct matrix *m;
	uint64_t now_ns;
	struct gossip_keepers keepers;
	struct gossip_item *items;
};

static bool matrix_is_news(const struct matrix_entry *e, uint64_t now_ns)
{
	return (e->alive || e->left) &&
	       gossip_is_news(e->turned_ns, now_ns, (uint64_t)e->vector.period_ms * 1000000ull);
}

static bool matrix_is_kept(const struct matrix_tale *tale, const struct matrix_entry *e)
{
	return e->alive && (gossip_tells(&tale->m->place, &e->place, tale->keepers.slices) ||
			    gossip_is_orphan(&tale->keepers, &e->place));
}

/* The entries that this node keeps, or the news of the others. */
static size_t matrix_tale_fill(const struct matrix_tale *tale, bool news, size_t max,
			       const struct matrix_entry **out)
{
	const struct matrix *m = tale->m;
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct matrix_entry *e = m->entries[i];
		bool own = matrix_is_kept(tale, e);

		if (news ? !own && matrix_is_news(e, tale->now_ns) : own)
			tale->items[n++] = (struct gossip_item){
				.heard_ns = news ? e->turned_ns : e->heard_ns, .what = e};
	}
	n = gossip_freshest(tale->items, n, max);
	for (size_t i = 0; i < n; i++)
		out[i] = tale->items[i].what;
	return n;
}

size_t matrix_told(const struct matrix *m, uint64_t now_ns, const struct matrix_entry **out,
		   size_t max)
{
	struct matrix_tale tale = {.m = m, .now_ns = now_ns};
	size_t alive = 1, n;

	for (size_t i = 0; i < m->count; i++)
		alive += m->entries[i]->alive;
	gossip_keepers_init(&tale.keepers, &m->place, alive);
	for (size_t i = 0; i < m->count; i++)
		if (m->entries[i]->alive)
			gossip_keepers_add(&tale.keepers, &m->entries[i]->place);
	tale.items = malloc((m->count + 1) * sizeof(*tale.items));
	if (!tale.items)
		return 0;
	n = matrix_tale_fill(&tale, true, max < GOSSIP_NEWS_MAX ? max : GOSSIP_NEWS_MAX, out);
	n += matrix_tale_fill(&tale, false, max - n, out + n);
	free(tale.items);
	return n;
}
