/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* TCP connections of gangs; see monitor_pairs.h. */
#include "user/monitor/monitor_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

#define BATCH 512

struct pairs_row {
	struct pair_key key;
	struct pair_value value;
	uint64_t changed_ms;
};

struct pairs_process {
	struct gang_task_key key;
	struct gang_task_value value;
	uint64_t changed_ms;
};

/* Two generations of each: this reading and the one before, both sorted by key. */
struct pairs {
	struct pairs_config config;
	uint64_t *gangs; /* sorted */
	size_t ngangs;
	struct pairs_row *rows[2];
	struct pairs_process *processes[2];
	size_t nrows[2], rows_room[2], nprocesses[2], processes_room[2];
	struct monitor_pair *out;
	struct monitor_gang_task *tasks;
	size_t out_room, tasks_room;
	struct pair_key keys[BATCH];
	struct pair_value values[BATCH];
	struct gang_task_key task_keys[BATCH];
	struct gang_task_value task_values[BATCH];
};

struct pairs *pairs_new(const struct pairs_config *config)
{
	struct pairs *p = calloc(1, sizeof(*p));

	if (p)
		p->config = *config;
	return p;
}

void pairs_free(struct pairs *p)
{
	if (!p)
		return;
	for (int i = 0; i < 2; i++) {
		free(p->rows[i]);
		free(p->processes[i]);
	}
	free(p->gangs);
	free(p->out);
	free(p->tasks);
	free(p);
}

static size_t gang_place(const struct pairs *p, uint64_t cgroup_id)
{
	size_t i = 0;

	while (i < p->ngangs && p->gangs[i] < cgroup_id)
		i++;
	return i;
}

static bool pairs_is_gang(const struct pairs *p, uint64_t cgroup_id)
{
	size_t at = gang_place(p, cgroup_id);

	return at < p->ngangs && p->gangs[at] == cgroup_id;
}

int pairs_add_gang(struct pairs *p, uint64_t cgroup_id)
{
	size_t at = gang_place(p, cgroup_id);

	if (pairs_is_gang(p, cgroup_id))
		return 0;
	if (p->ngangs == GANGS_MAX)
		return -ENOSPC;
	if (!p->gangs)
		p->gangs = malloc(GANGS_MAX * sizeof(*p->gangs));
	if (!p->gangs)
		return -ENOMEM;
	memmove(&p->gangs[at + 1], &p->gangs[at], (p->ngangs - at) * sizeof(*p->gangs));
	p->gangs[at] = cgroup_id;
	p->ngangs++;
	return 0;
}

void pairs_drop_gang(struct pairs *p, uint64_t cgroup_id)
{
	size_t at = gang_place(p, cgroup_id);

	if (!pairs_is_gang(p, cgroup_id))
		return;
	p->ngangs--;
	memmove(&p->gangs[at], &p->gangs[at + 1], (p->ngangs - at) * sizeof(*p->gangs));
}

size_t pairs_gangs(const struct pairs *p)
{
	return p->ngangs;
}

static int row_order(const void *a, const void *b)
{
	return memcmp(&((const struct pairs_row *)a)->key, &((const struct pairs_row *)b)->key,
		      sizeof(struct pair_key));
}

static int process_order(const void *a, const void *b)
{
	return memcmp(&((const struct pairs_process *)a)->key,
		      &((const struct pairs_process *)b)->key, sizeof(struct gang_task_key));
}

/* Reads the table of connections into generation 0. */
static int pairs_take_rows(struct pairs *p)
{
	int n;

	p->nrows[0] = 0;
	while ((n = p->config.read(p->config.arg, !p->nrows[0], p->keys, p->values, BATCH)) > 0) {
		if (p->nrows[0] + (size_t)n > 2 * p->config.most)
			break; /* the table changes faster than it is read */
		if (array_reserve(p->rows[0], p->rows_room[0], p->nrows[0] + (size_t)n, 64))
			return -ENOMEM;
		for (int i = 0; i < n; i++)
			p->rows[0][p->nrows[0]++] =
				(struct pairs_row){.key = p->keys[i], .value = p->values[i]};
	}
	if (p->nrows[0])
		qsort(p->rows[0], p->nrows[0], sizeof(*p->rows[0]), row_order);
	return n < 0 ? n : 0;
}

static int pairs_take_processes(struct pairs *p)
{
	size_t *have = &p->nprocesses[0];
	int n;

	*have = 0;
	while ((n = p->config.read_tasks(p->config.arg, !*have, p->task_keys, p->task_values,
					 BATCH)) > 0) {
		if (*have + (size_t)n > 2 * p->config.most)
			break;
		if (array_reserve(p->processes[0], p->processes_room[0], *have + (size_t)n, 64))
			return -ENOMEM;
		for (int i = 0; i < n; i++)
			p->processes[0][(*have)++] = (struct pairs_process){
				.key = p->task_keys[i], .value = p->task_values[i]};
	}
	if (*have)
		qsort(p->processes[0], *have, sizeof(*p->processes[0]), process_order);
	return n < 0 ? n : 0;
}

static struct monitor_remote_counts pairs_counts(const struct pair_value *v)
{
	return (struct monitor_remote_counts){
		.sent_bytes = v->sent_bytes,
		.received_bytes = v->received_bytes,
		.sent_messages = v->sent_messages,
		.received_messages = v->received_messages,
	};
}

/* Less than before: the element was removed and begins anew. */
static uint64_t pairs_since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static struct monitor_remote_counts pairs_delta(const struct pair_value *now,
						const struct pair_value *before)
{
	return (struct monitor_remote_counts){
		.sent_bytes = pairs_since(now->sent_bytes, before->sent_bytes),
		.received_bytes = pairs_since(now->received_bytes, before->received_bytes),
		.sent_messages = pairs_since(now->sent_messages, before->sent_messages),
		.received_messages = pairs_since(now->received_messages, before->received_messages),
	};
}

static bool pairs_any(const struct monitor_remote_counts *c)
{
	return c->sent_bytes || c->received_bytes || c->sent_messages || c->received_messages;
}

static bool pairs_is_idle(const struct pairs *p, uint64_t cgroup_id, uint64_t idle_ms, size_t n)
{
	bool wanted = pairs_is_gang(p, cgroup_id) && n <= p->config.most / 2;

	return idle_ms >= (wanted ? PAIRS_OLD_MS : PAIRS_IDLE_MS);
}

static int64_t pairs_rank(const struct pairs *p, const struct pairs_row *row)
{
	struct pairs_process wanted = {
		.key = {.cgid = row->key.cgid, .start = row->value.start, .tgid = row->key.tgid}};
	const struct pairs_process *found =
		p->nprocesses[0] ? bsearch(&wanted, p->processes[0], p->nprocesses[0],
					   sizeof(wanted), process_order)
				 : NULL;

	return found && found->value.rank >= 0 ? found->value.rank : -1;
}

static void pairs_end(uint8_t out[16], const struct pair_end *end)
{
	memcpy(out, end->address, 16);
}

/* Says what changed in ROW since the reading before; BEFORE NULL: it is new. */
static void pairs_say(const struct pairs *p, struct pairs_row *row, const struct pairs_row *before,
		      uint64_t now_ms, struct monitor_pair *out)
{
	static const struct pair_value nothing;

	*out = (struct monitor_pair){
		.cgroup_id = row->key.cgid,
		.tgid = row->key.tgid,
		.start_ns = row->value.start,
		.rank = (int32_t)pairs_rank(p, row),
		.family = (uint16_t)row->value.family,
		.local_port = (uint16_t)row->value.local.port,
		.remote_port = (uint16_t)row->value.remote.port,
		.inside = row->value.inside != 0,
		.counts = pairs_counts(&row->value),
		.delta = pairs_delta(&row->value, before ? &before->value : &nothing),
	};
	pairs_end(out->local, &row->value.local);
	pairs_end(out->remote, &row->value.remote);
	row->changed_ms = before && !pairs_any(&out->delta) ? before->changed_ms : now_ms;
}

static int pairs_report_rows(struct pairs *p, uint64_t now_ms)
{
	size_t j = 0, kept = 0;

	if (array_reserve(p->out, p->out_room, p->nrows[0] + 1, 64))
		return -ENOMEM;
	for (size_t i = 0; i < p->nrows[0]; i++) {
		struct pairs_row *row = &p->rows[0][i];
		const struct pairs_row *before = NULL;

		while (j < p->nrows[1] && row_order(&p->rows[1][j], row) < 0)
			j++;
		if (j < p->nrows[1] && !row_order(&p->rows[1][j], row))
			before = &p->rows[1][j];
		pairs_say(p, row, before, now_ms, &p->out[i]);
	}
	/* Forgotten only after what changed was said. */
	for (size_t i = 0; i < p->nrows[0]; i++) {
		const struct pairs_row *row = &p->rows[0][i];

		if (pairs_is_idle(p, row->key.cgid, now_ms - row->changed_ms, p->nrows[0]))
			p->config.remove(p->config.arg, &row->key);
		else
			p->rows[0][kept++] = *row;
	}
	p->nrows[0] = kept;
	return 0;
}

static int pairs_report_tasks(struct pairs *p, uint64_t now_ms)
{
	size_t j = 0, kept = 0;

	if (array_reserve(p->tasks, p->tasks_room, p->nprocesses[0] + 1, 64))
		return -ENOMEM;
	for (size_t i = 0; i < p->nprocesses[0]; i++) {
		struct pairs_process *one = &p->processes[0][i];
		struct gang_task_value was = {0};

		while (j < p->nprocesses[1] && process_order(&p->processes[1][j], one) < 0)
			j++;
		one->changed_ms = now_ms;
		if (j < p->nprocesses[1] && !process_order(&p->processes[1][j], one)) {
			was = p->processes[1][j].value;
			if (was.last_ns == one->value.last_ns)
				one->changed_ms = p->processes[1][j].changed_ms;
		}
		p->tasks[i] = (struct monitor_gang_task){
			.cgroup_id = one->key.cgid,
			.start_ns = one->key.start,
			.tgid = one->key.tgid,
			.rank = one->value.rank < 0 ? -1 : (int32_t)one->value.rank,
			.bursts = pairs_since(one->value.bursts, was.bursts),
			.burst_ns = pairs_since(one->value.burst_ns, was.burst_ns),
		};
	}
	for (size_t i = 0; i < p->nprocesses[0]; i++) {
		const struct pairs_process *one = &p->processes[0][i];

		if (pairs_is_idle(p, one->key.cgid, now_ms - one->changed_ms, p->nprocesses[0]))
			p->config.remove_task(p->config.arg, &one->key);
		else
			p->processes[0][kept++] = *one;
	}
	p->nprocesses[0] = kept;
	return 0;
}

/* The generation of this reading becomes the one before. */
static void pairs_swap(struct pairs *p)
{
#define SWAP(a)                                                                                    \
	do {                                                                                       \
		__typeof__((a)[0]) first = (a)[0];                                                 \
		(a)[0] = (a)[1];                                                                   \
		(a)[1] = first;                                                                    \
	} while (0)
	SWAP(p->rows);
	SWAP(p->nrows);
	SWAP(p->rows_room);
	SWAP(p->processes);
	SWAP(p->nprocesses);
	SWAP(p->processes_room);
#undef SWAP
}

int pairs_read(struct pairs *p, uint64_t now_ms, struct monitor_pairs *out)
{
	size_t n, ntasks;
	int rc;

	*out = (struct monitor_pairs){0};
	if (!p->ngangs && !p->nrows[1] && !p->nprocesses[1])
		return 0;
	/* The processes come last, so that each row's is there. */
	rc = pairs_take_rows(p);
	if (!rc)
		rc = pairs_take_processes(p);
	if (rc)
		return rc;
	n = p->nrows[0];
	ntasks = p->nprocesses[0];
	rc = pairs_report_rows(p, now_ms);
	if (!rc)
		rc = pairs_report_tasks(p, now_ms);
	if (rc)
		return rc;
	*out = (struct monitor_pairs){p->out, n, p->tasks, ntasks};
	pairs_swap(p);
	return 0;
}
