/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* TCP by remote address and job; see monitor_remotes.h. */
#include "user/monitor/monitor_remotes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OTHERS_MAX 4096

/* User space's knowledge of a slot. */
struct known {
	struct monitor_remote_counts last;
	uint64_t changed_ms;
	uint64_t left_ms; /* when it was removed from the index */
	bool in_use, leaving;
};

/* One job's row of other remotes: the sums of freed slots, and its own slot. */
struct other {
	uint64_t cgroup_id;
	struct monitor_remote_counts taken, slot, delta;
	uint64_t changed_ms;
};

struct idle {
	uint64_t changed_ms;
	unsigned slot;
};

struct remotes {
	struct remotes_config config;
	struct known *known;
	struct idle *idle;
	struct other *others; /* sorted by cgroup id */
	size_t nothers;
	struct monitor_remote *rows;
	size_t nrows;
	uint64_t forgotten;
};

/* The slots of one kind, without those that were never taken. */
struct slots {
	unsigned from, to;
};

static struct slots slots_of(const struct remotes *r, bool other)
{
	uint64_t taken = __atomic_load_n(&r->config.taken[other], __ATOMIC_ACQUIRE);
	unsigned all = other ? r->config.other : r->config.named;
	unsigned from = other ? r->config.named : 0;

	return (struct slots){from, from + (taken < all ? (unsigned)taken : all)};
}

static void monitor_remotes_counts_add(struct monitor_remote_counts *into,
				       const struct monitor_remote_counts *from)
{
	into->sent_bytes += from->sent_bytes;
	into->received_bytes += from->received_bytes;
	into->sent_messages += from->sent_messages;
	into->received_messages += from->received_messages;
}

static struct monitor_remote_counts counts_since(const struct monitor_remote_counts *now,
						 const struct monitor_remote_counts *before)
{
	return (struct monitor_remote_counts){
		.sent_bytes = now->sent_bytes - before->sent_bytes,
		.received_bytes = now->received_bytes - before->received_bytes,
		.sent_messages = now->sent_messages - before->sent_messages,
		.received_messages = now->received_messages - before->received_messages,
	};
}

static bool counts_any(const struct monitor_remote_counts *c)
{
	return c->sent_bytes || c->received_bytes || c->sent_messages || c->received_messages;
}

static struct monitor_remote_counts slot_counts(struct remote_slot *slot)
{
	return (struct monitor_remote_counts){
		.sent_bytes = __atomic_load_n(&slot->sent_bytes, __ATOMIC_ACQUIRE),
		.received_bytes = __atomic_load_n(&slot->received_bytes, __ATOMIC_ACQUIRE),
		.sent_messages = __atomic_load_n(&slot->sent_messages, __ATOMIC_ACQUIRE),
		.received_messages = __atomic_load_n(&slot->received_messages, __ATOMIC_ACQUIRE),
	};
}

struct remotes *remotes_new(const struct remotes_config *config)
{
	struct remotes *r = calloc(1, sizeof(*r));
	unsigned n = config->named + config->other;

	if (!r)
		return NULL;
	r->config = *config;
	r->known = calloc(n, sizeof(*r->known));
	r->idle = calloc(n, sizeof(*r->idle));
	r->others = calloc(OTHERS_MAX, sizeof(*r->others));
	r->rows = calloc(config->named + OTHERS_MAX, sizeof(*r->rows));
	if (!r->known || !r->idle || !r->others || !r->rows)
		goto fail;
	for (unsigned i = 0; i < n; i++) {
		config->slots[i].generation = 1;
		if (config->release(config->arg, i, i >= config->named))
			goto fail;
	}
	return r;
fail:
	remotes_free(r);
	return NULL;
}

void remotes_free(struct remotes *r)
{
	if (!r)
		return;
	free(r->known);
	free(r->idle);
	free(r->others);
	free(r->rows);
	free(r);
}

/* Returns where the row of CGROUP_ID is or belongs. */
static size_t other_place(const struct remotes *r, uint64_t cgroup_id)
{
	size_t low = 0, high = r->nothers;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->others[mid].cgroup_id < cgroup_id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Drops the row that has been idle longest. */
static void forget_other(struct remotes *r)
{
	size_t oldest = 0;

	for (size_t i = 1; i < r->nothers; i++)
		if (r->others[i].changed_ms < r->others[oldest].changed_ms)
			oldest = i;
	r->nothers--;
	memmove(&r->others[oldest], &r->others[oldest + 1],
		(r->nothers - oldest) * sizeof(*r->others));
	r->forgotten++;
}

static struct other *other_get(struct remotes *r, uint64_t cgroup_id, uint64_t now_ms)
{
	size_t at = other_place(r, cgroup_id);

	if (at < r->nothers && r->others[at].cgroup_id == cgroup_id)
		return &r->others[at];
	if (r->nothers == OTHERS_MAX) {
		forget_other(r);
		at = other_place(r, cgroup_id);
	}
	memmove(&r->others[at + 1], &r->others[at], (r->nothers - at) * sizeof(*r->others));
	r->nothers++;
	r->others[at] = (struct other){.cgroup_id = cgroup_id, .changed_ms = now_ms};
	return &r->others[at];
}

/* Reads one slot into its row. */
static void read_slot(struct remotes *r, unsigned i, uint64_t now_ms)
{
	struct remote_slot *slot = &r->config.slots[i];
	uint64_t cgroup_id = __atomic_load_n(&slot->cgid, __ATOMIC_ACQUIRE);
	struct monitor_remote_counts now = slot_counts(slot), delta;
	struct known *known = &r->known[i];

	/* A slot without counts may not be in the index yet. */
	if (!cgroup_id || !counts_any(&now))
		return;
	if (!known->in_use)
		*known = (struct known){.in_use = true, .changed_ms = now_ms};
	delta = counts_since(&now, &known->last);
	known->last = now;
	if (counts_any(&delta))
		known->changed_ms = now_ms;
	if (i < r->config.named) {
		struct monitor_remote *row = &r->rows[r->nrows++];

		*row = (struct monitor_remote){
			.cgroup_id = cgroup_id,
			.family = (uint16_t)slot->family,
			.counts = now,
			.delta = delta,
		};
		memcpy(row->address, slot->address, sizeof(row->address));
	} else {
		struct other *other = other_get(r, cgroup_id, now_ms);

		other->slot = now;
		other->delta = delta;
		if (counts_any(&delta))
			other->changed_ms = now_ms;
	}
}

static void report_others(struct remotes *r)
{
	for (size_t i = 0; i < r->nothers; i++) {
		struct other *other = &r->others[i];
		struct monitor_remote *row = &r->rows[r->nrows++];

		*row = (struct monitor_remote){.cgroup_id = other->cgroup_id,
					       .counts = other->taken,
					       .delta = other->delta};
		monitor_remotes_counts_add(&row->counts, &other->slot);
	}
}

/* Frees a slot some time after it left the index; the caller has just read it. */
static int monitor_remotes_take_back(struct remotes *r, unsigned i, uint64_t now_ms)
{
	struct remote_slot *slot = &r->config.slots[i];
	struct known *known = &r->known[i];
	struct other *other = other_get(r, slot->cgid, now_ms);

	monitor_remotes_counts_add(&other->taken, &known->last);
	if (i >= r->config.named)
		memset(&other->slot, 0, sizeof(other->slot));
	slot->sent_bytes = slot->received_bytes = 0;
	slot->sent_messages = slot->received_messages = 0;
	memset(known, 0, sizeof(*known));
	__atomic_store_n(&slot->cgid, 0, __ATOMIC_RELEASE);
	return r->config.release(r->config.arg, i, i >= r->config.named);
}

static void send_away(struct remotes *r, unsigned i, uint64_t now_ms)
{
	struct remote_slot *slot = &r->config.slots[i];
	struct remote_key key = {.cgid = slot->cgid, .family = slot->family};

	memcpy(key.address, slot->address, sizeof(key.address));
	if (r->config.forget(r->config.arg, &key))
		return;
	__atomic_store_n(&slot->generation, slot->generation + 1, __ATOMIC_SEQ_CST);
	r->known[i].leaving = true;
	r->known[i].left_ms = now_ms;
}

static int by_age(const void *a, const void *b)
{
	const struct idle *x = a, *y = b;

	return x->changed_ms < y->changed_ms ? -1 : x->changed_ms > y->changed_ms;
}

/* If less than a quarter of ALL slots is free, removes the longest idle ones until half are free.
 */
static void monitor_remotes_make_room(struct remotes *r, struct slots slots, unsigned all,
				      uint64_t now_ms)
{
	unsigned used = 0, nidle = 0, leave;

	for (unsigned i = slots.from; i < slots.to; i++) {
		const struct known *known = &r->known[i];

		if (!known->in_use || known->leaving)
			continue;
		used++;
		if (now_ms - known->changed_ms >= r->config.idle_ms)
			r->idle[nidle++] = (struct idle){known->changed_ms, i};
	}
	if (used <= all / 4 * 3 || !nidle)
		return;
	leave = used - all / 2;
	qsort(r->idle, nidle, sizeof(*r->idle), by_age);
	for (unsigned i = 0; i < nidle && i < leave; i++)
		send_away(r, r->idle[i].slot, now_ms);
}

static int take_back_left(struct remotes *r, struct slots slots, uint64_t now_ms)
{
	int rc = 0;

	for (unsigned i = slots.from; i < slots.to && !rc; i++)
		if (r->known[i].leaving && now_ms - r->known[i].left_ms >= REMOTES_LEAVE_MS)
			rc = monitor_remotes_take_back(r, i, now_ms);
	return rc;
}

int remotes_read(struct remotes *r, uint64_t now_ms, const struct monitor_remote **rows,
		 size_t *nrows)
{
	struct slots named = slots_of(r, false), other = slots_of(r, true);
	int rc;

	r->nrows = 0;
	for (size_t i = 0; i < r->nothers; i++)
		memset(&r->others[i].delta, 0, sizeof(r->others[i].delta));
	for (unsigned i = named.from; i < named.to; i++)
		read_slot(r, i, now_ms);
	for (unsigned i = other.from; i < other.to; i++)
		read_slot(r, i, now_ms);
	report_others(r);
	rc = take_back_left(r, named, now_ms);
	if (!rc)
		rc = take_back_left(r, other, now_ms);
	monitor_remotes_make_room(r, named, r->config.named, now_ms);
	monitor_remotes_make_room(r, other, r->config.other, now_ms);
	*rows = r->rows;
	*nrows = r->nrows;
	return rc;
}

uint64_t remotes_forgotten(const struct remotes *r)
{
	return r->forgotten;
}
