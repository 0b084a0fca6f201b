/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See part_talk.h. */
#include "agent/guest/part_talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "user/exchange/exchange.h"

struct part_process {
	uint64_t start_ns;
	uint32_t tgid;
	int32_t rank;
	uint64_t cpu_ns, bursts, burst_ns;
};

/* One connection of one process, which is named by its index: its rank may be known later. */
struct part_row {
	uint64_t connection;
	uint32_t process;
	bool second, inside;
	struct exchange_sum sum;
};

struct part_talk {
	bool late;
	struct part_process *processes;
	size_t nprocesses, process_room;
	struct part_row *rows; /* sorted, between two readings */
	size_t nrows, row_room;
	struct exchange_sum rest;
	uint64_t rest_rows;
};

struct part_talk *part_talk_new(bool late)
{
	struct part_talk *t = calloc(1, sizeof(*t));

	if (t)
		t->late = late;
	return t;
}

void part_talk_free(struct part_talk *t)
{
	if (!t)
		return;
	free(t->processes);
	free(t->rows);
	free(t);
}

/* Returns the index of the process, new if necessary; UINT32_MAX: there is no room. */
static uint32_t part_talk_process(struct part_talk *t, uint32_t tgid, uint64_t start_ns,
				  int32_t rank)
{
	for (size_t i = t->nprocesses; i-- > 0;) {
		struct part_process *p = &t->processes[i];

		if (p->tgid != tgid || p->start_ns != start_ns)
			continue;
		if (rank >= 0)
			p->rank = rank;
		return (uint32_t)i;
	}
	if (t->nprocesses == PART_TASKS_MAX ||
	    array_reserve(t->processes, t->process_room, t->nprocesses + 1, 16))
		return UINT32_MAX;
	t->processes[t->nprocesses] =
		(struct part_process){.start_ns = start_ns, .tgid = tgid, .rank = rank};
	return (uint32_t)t->nprocesses++;
}

static int part_row_order(const void *a, const void *b)
{
	const struct part_row *x = a, *y = b;

	if (x->connection != y->connection)
		return x->connection < y->connection ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->second - y->second;
}

static struct exchange_sum part_talk_sum(const struct monitor_remote_counts *c)
{
	return (struct exchange_sum){
		.sent_bytes = c->sent_bytes,
		.received_bytes = c->received_bytes,
		.sent_messages = c->sent_messages,
		.received_messages = c->received_messages,
	};
}

/* Adds PAIR to its row among the first SORTED ones, or appends one. */
static void part_talk_add(struct part_talk *t, size_t sorted, const struct monitor_pair *pair)
{
	struct exchange_sum sum = part_talk_sum(&pair->delta);
	struct part_row row = {.inside = pair->inside, .sum = sum}, *known;

	if (!sum.sent_bytes && !sum.received_bytes && !sum.received_messages)
		return;
	row.process = part_talk_process(t, pair->tgid, pair->start_ns, pair->rank);
	row.connection = exchange_connection(pair->family, pair->local, pair->local_port,
					     pair->remote, pair->remote_port, &row.second);
	known = sorted ? bsearch(&row, t->rows, sorted, sizeof(row), part_row_order) : NULL;
	if (known) {
		exchange_sum_add(&known->sum, &sum);
		known->inside |= row.inside;
	} else if (row.process == UINT32_MAX || t->nrows == PART_ROWS_MAX ||
		   array_reserve(t->rows, t->row_room, t->nrows + 1, 16)) {
		exchange_sum_add(&t->rest, &sum);
		t->rest_rows++;
	} else {
		t->rows[t->nrows++] = row;
	}
}

/* Sorts the rows, and joins those of one connection that was made twice between two readings. */
static void part_talk_sort(struct part_talk *t)
{
	size_t n = 0;

	qsort(t->rows, t->nrows, sizeof(*t->rows), part_row_order);
	for (size_t i = 0; i < t->nrows; i++) {
		if (n && !part_row_order(&t->rows[n - 1], &t->rows[i]))
			exchange_sum_add(&t->rows[n - 1].sum, &t->rows[i].sum);
		else
			t->rows[n++] = t->rows[i];
	}
	t->nrows = n;
}

static void part_talk_take_bursts(struct part_talk *t, const struct monitor_gang_task *task)
{
	uint32_t i = part_talk_process(t, task->tgid, task->start_ns, task->rank);

	if (i == UINT32_MAX)
		return;
	t->processes[i].bursts += task->bursts;
	t->processes[i].burst_ns += task->burst_ns;
}

/* The last processes of a part are those that run. */
static void part_talk_take_cpu(struct part_talk *t, uint64_t cgroup_id,
			       const struct monitor_sample *sample)
{
	for (size_t i = 0; t->nprocesses && i < sample->ntasks; i++) {
		const struct iocom_task *task = &sample->tasks[i];

		if (task->cgroup_id != cgroup_id)
			continue;
		for (size_t j = t->nprocesses; j-- > 0;) {
			struct part_process *p = &t->processes[j];

			if (p->tgid != (uint32_t)task->pid || p->start_ns != task->start_ns)
				continue;
			p->cpu_ns = task->load.cpu_ns;
			break;
		}
	}
}

uint64_t part_talk_take(struct part_talk *t, uint64_t cgroup_id,
			const struct monitor_sample *sample)
{
	uint64_t before = t->rest_rows;
	size_t sorted = t->nrows;

	for (size_t i = 0; i < sample->pairs.n; i++)
		if (sample->pairs.list[i].cgroup_id == cgroup_id)
			part_talk_add(t, sorted, &sample->pairs.list[i]);
	if (t->nrows > sorted)
		part_talk_sort(t);
	for (size_t i = 0; i < sample->pairs.ntasks; i++)
		if (sample->pairs.tasks[i].cgroup_id == cgroup_id)
			part_talk_take_bursts(t, &sample->pairs.tasks[i]);
	part_talk_take_cpu(t, cgroup_id, sample);
	return t->rest_rows - before;
}

static int by_rank(const void *a, const void *b)
{
	const struct exchange_task *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sums up the processes of each rank. */
static void part_talk_tasks(const struct part_talk *t, struct exchange *x)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nprocesses; i++) {
		const struct part_process *p = &t->processes[i];

		if (p->rank >= 0)
			x->tasks[x->ntasks++] = (struct exchange_task){
				.rank = p->rank,
				.cpu_us = p->cpu_ns / 1000,
				.bursts = p->bursts,
				.burst_us = p->burst_ns / 1000,
			};
	}
	qsort(x->tasks, x->ntasks, sizeof(*x->tasks), by_rank);
	for (size_t i = 0; i < x->ntasks; i++) {
		if (!n || x->tasks[n - 1].rank != x->tasks[i].rank) {
			x->tasks[n++] = x->tasks[i];
			continue;
		}
		x->tasks[n - 1].cpu_us += x->tasks[i].cpu_us;
		x->tasks[n - 1].bursts += x->tasks[i].bursts;
		x->tasks[n - 1].burst_us += x->tasks[i].burst_us;
	}
	x->ntasks = n;
}

/* Sums up the processes of one rank that use one end. */
static void part_talk_rows(const struct part_talk *t, struct exchange *x)
{
	for (size_t i = 0; i < t->nrows; i++) {
		const struct part_row *row = &t->rows[i];
		int32_t rank = t->processes[row->process].rank;
		struct exchange_row *same = NULL;

		for (size_t j = x->nrows; j-- > 0 && x->rows[j].connection == row->connection;)
			if (x->rows[j].rank == rank && x->rows[j].second == row->second)
				same = &x->rows[j];
		if (same)
			exchange_sum_add(&same->sum, &row->sum);
		else
			x->rows[x->nrows++] = (struct exchange_row){
				.connection = row->connection,
				.rank = rank,
				.second = row->second,
				.inside = row->inside,
				.sum = row->sum,
			};
	}
}

int part_talk_pack(const struct part_talk *t, double disk_ms, void **data, size_t *length)
{
	struct exchange x = {.rest = t->rest,
			     .rest_rows = t->rest_rows,
			     .late = t->late,
			     .disk_us = disk_ms > 0 ? (uint64_t)(disk_ms * 1e3) : 0};
	int rc = -ENOMEM;

	if (!t->nrows && !t->rest_rows)
		return -ENODATA;
	x.rows = calloc(t->nrows + 1, sizeof(*x.rows));
	x.tasks = calloc(t->nprocesses + 1, sizeof(*x.tasks));
	if (x.rows && x.tasks) {
		part_talk_rows(t, &x);
		part_talk_tasks(t, &x);
		rc = exchange_pack(&x, data, length);
	}
	exchange_fini(&x);
	return rc;
}
