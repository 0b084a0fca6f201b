/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See join.h. */
#include "user/exchange/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

struct said {
	const struct exchange_row *row;
	int32_t part;
};

/* The cells while they are collected: one for each connection and direction. */
struct cells {
	struct pattern_cell *list;
	size_t n, room;
};

static int said_order(const void *a, const void *b)
{
	const struct said *x = a, *y = b;
	uint64_t xs, ys;

	if (x->row->connection != y->row->connection)
		return x->row->connection < y->row->connection ? -1 : 1;
	if (x->row->second != y->row->second)
		return x->row->second - y->row->second;
	xs = x->row->sum.sent_bytes + x->row->sum.received_bytes;
	ys = y->row->sum.sent_bytes + y->row->sum.received_bytes;
	if (xs != ys)
		return xs > ys ? -1 : 1;
	if (x->part != y->part)
		return x->part - y->part;
	return x->row->rank - y->row->rank;
}

static void join_refuse(struct join *j, const struct exchange_row *row)
{
	exchange_sum_add(&j->refused, &row->sum);
	j->refused_rows++;
}

/* Whether PART may speak of RANK. */
static bool join_may(struct join *j, int32_t part, int32_t rank, bool planned)
{
	if (rank < 0)
		return true;
	if ((uint32_t)rank >= j->tasks)
		return false;
	if (!planned && j->ranks[rank].part < 0)
		j->ranks[rank].part = part;
	return j->ranks[rank].part == part;
}

static uint32_t join_tasks(const struct join_part *parts, size_t nparts)
{
	int32_t most = -1;

	for (size_t p = 0; p < nparts; p++) {
		const struct exchange *x = parts[p].said;

		for (size_t i = 0; x && i < x->nrows; i++)
			if (x->rows[i].rank > most)
				most = x->rows[i].rank;
		for (size_t i = 0; x && i < x->ntasks; i++)
			if (x->tasks[i].rank > most)
				most = x->tasks[i].rank;
	}
	return (uint32_t)(most + 1);
}

static void join_take_tasks(struct join *j, int32_t part, const struct exchange *x, bool planned)
{
	for (size_t i = 0; i < x->ntasks; i++) {
		const struct exchange_task *t = &x->tasks[i];
		struct join_rank *rank;

		if (!join_may(j, part, t->rank, planned)) {
			j->refused_rows++;
			continue;
		}
		rank = &j->ranks[t->rank];
		rank->cpu_us = exchange_add(rank->cpu_us, t->cpu_us);
		rank->bursts = exchange_add(rank->bursts, t->bursts);
		rank->burst_us = exchange_add(rank->burst_us, t->burst_us);
	}
}

/* Collects what may be true of all parts' rows, sorted by connection and end. */
static size_t join_collect(struct join *j, const struct join_part *parts, bool planned,
			   struct said *all)
{
	size_t n = 0;

	for (size_t p = 0; p < j->nparts; p++) {
		const struct exchange *x = parts[p].said;

		if (!x)
			continue;
		join_take_tasks(j, (int32_t)p, x, planned);
		exchange_sum_add(&j->rest, &x->rest);
		j->rest_rows += x->rest_rows;
		for (size_t i = 0; i < x->nrows; i++) {
			if (join_may(j, (int32_t)p, x->rows[i].rank, planned))
				all[n++] = (struct said){&x->rows[i], (int32_t)p};
			else
				join_refuse(j, &x->rows[i]);
		}
	}
	qsort(all, n, sizeof(*all), said_order);
	return n;
}

static int cells_add(struct cells *c, const struct pattern_cell *cell)
{
	if (array_reserve(c->list, c->room, c->n + 1, 64))
		return -ENOMEM;
	c->list[c->n++] = *cell;
	return 0;
}

/* The rows of one end: N from the first.  Of two parts, it is refused: an end is at one node. */
struct join_side {
	const struct said *rows;
	size_t n;
	bool refused;
};

static struct join_side join_side(struct join *j, const struct said *rows, size_t n)
{
	struct join_side side = {rows, n, false};

	for (size_t i = 1; i < n; i++)
		side.refused |= rows[i].part != rows[0].part;
	for (size_t i = 0; side.refused && i < n; i++)
		join_refuse(j, rows[i].row);
	return side;
}

/* The rank at an end: that of its row with most bytes. */
static int32_t side_rank(const struct join_side *side)
{
	for (size_t i = 0; i < side->n; i++)
		if (side->rows[i].row->rank >= 0)
			return side->rows[i].row->rank;
	return -1;
}

static int join_row(struct join *j, struct cells *cells, const struct said *said,
		    const struct join_side *other)
{
	const struct exchange_row *row = said->row;
	struct join_rank *rank;
	int32_t peer;
	bool inside;

	if (row->rank < 0) {
		exchange_sum_add(&j->no_rank, &row->sum);
		return 0;
	}
	rank = &j->ranks[row->rank];
	rank->talked = true;
	if (!other->n || other->refused) {
		exchange_sum_add(&rank->outside, &row->sum);
		return 0;
	}
	peer = side_rank(other);
	if (peer < 0) {
		exchange_sum_add(&rank->unranked, &row->sum);
		return 0;
	}
	inside = other->rows[0].part == said->part;
	exchange_sum_add(inside ? &rank->inside : &rank->link, &row->sum);
	return cells_add(cells, &(struct pattern_cell){.from = (uint32_t)row->rank,
						       .to = (uint32_t)peer,
						       .inside = inside,
						       .bytes = row->sum.sent_bytes,
						       .messages = row->sum.sent_messages});
}

static int join_connections(struct join *j, const struct said *all, size_t n, struct cells *cells)
{
	size_t end, middle;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i = end) {
		struct join_side sides[2];

		for (end = i; end < n && all[end].row->connection == all[i].row->connection;)
			end++;
		for (middle = i; middle < end && !all[middle].row->second;)
			middle++;
		sides[0] = join_side(j, all + i, middle - i);
		sides[1] = join_side(j, all + middle, end - middle);
		for (int s = 0; s < 2; s++)
			for (size_t k = 0; k < sides[s].n && !sides[s].refused && !rc; k++)
				rc = join_row(j, cells, &sides[s].rows[k], &sides[!s]);
	}
	return rc;
}

static int cell_order(const void *a, const void *b)
{
	const struct pattern_cell *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static void join_cells(struct join *j, struct cells *cells)
{
	size_t n = 0;

	if (cells->n)
		qsort(cells->list, cells->n, sizeof(*cells->list), cell_order);
	for (size_t i = 0; i < cells->n; i++) {
		struct pattern_cell *last = n ? &cells->list[n - 1] : NULL;

		if (!last || cell_order(last, &cells->list[i])) {
			cells->list[n++] = cells->list[i];
			continue;
		}
		last->bytes = exchange_add(last->bytes, cells->list[i].bytes);
		last->messages = exchange_add(last->messages, cells->list[i].messages);
	}
	j->cells = cells->list;
	j->ncells = n;
}

/* Equations (5) and (6) of MODEL 1.7. */
static void join_loads(struct join *j, double mb_per_s)
{
	struct join_rank *master;

	for (uint32_t r = 0; r < j->tasks; r++) {
		const struct exchange_sum *link = &j->ranks[r].link;

		j->ranks[r].com_ms = ((double)link->sent_bytes + (double)link->received_bytes) /
				     (mb_per_s * 1e3);
	}
	if (!j->tasks)
		return;
	j->master = j->pattern.kind == PATTERN_MASTER ? j->pattern.master : 0;
	master = &j->ranks[j->master];
	for (uint32_t r = 0; r < j->tasks; r++) {
		struct join_rank *slave = &j->ranks[r];

		if (r == j->master || slave->part == master->part)
			continue;
		slave->l_com_ms = slave->com_ms;
		master->l_com_ms += slave->com_ms;
	}
	for (uint32_t r = 0; r < j->tasks; r++)
		if (j->ranks[r].part >= 0)
			j->part_com_ms[j->ranks[r].part] += j->ranks[r].l_com_ms;
}

/* Shares what each part did at the disk among its ranks. */
static int join_disks(struct join *j, const struct join_part *parts)
{
	uint32_t *ranks = calloc(j->nparts + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (uint32_t r = 0; r < j->tasks; r++)
		if (j->ranks[r].part >= 0)
			ranks[j->ranks[r].part]++;
	for (uint32_t r = 0; r < j->tasks; r++) {
		int32_t part = j->ranks[r].part;

		if (part >= 0 && parts[part].said)
			j->ranks[r].disk_ms =
				(double)parts[part].said->disk_us / 1e3 / (double)ranks[part];
	}
	free(ranks);
	return 0;
}

static void join_phases(struct join *j)
{
	struct join_phases *p = &j->phases;
	double n = 0;

	for (uint32_t r = 0; r < j->tasks; r++) {
		const struct join_rank *k = &j->ranks[r];
		double bursts = (double)k->bursts, cpu, com, disk;

		if (!k->bursts)
			continue;
		n++;
		cpu = (double)k->cpu_us / 1e3 / bursts;
		com = k->com_ms / bursts;
		disk = k->disk_ms / bursts;
		p->number += bursts;
		p->cpu_ms += cpu;
		p->com_ms += com;
		p->disk_ms += disk;
		p->burst_ms += (double)k->burst_us / 1e3 / bursts;
		if (cpu + com + disk > p->slowest_ms)
			p->slowest_ms = cpu + com + disk;
	}
	if (n < 1)
		return;
	p->number /= n;
	p->cpu_ms /= n;
	p->com_ms /= n;
	p->disk_ms /= n;
	p->burst_ms /= n;
}

static int join_pattern(struct join *j)
{
	int32_t *part = calloc(j->tasks + 1, sizeof(*part));
	int rc;

	if (!part)
		return -ENOMEM;
	for (uint32_t r = 0; r < j->tasks; r++)
		part[r] = j->ranks[r].part;
	rc = pattern_find(&j->pattern, j->tasks, part, j->cells, j->ncells);
	free(part);
	return rc;
}

int join_parts(struct join *j, const struct join_part *parts, size_t nparts, uint32_t tasks,
	       const int32_t *owner, double mb_per_s)
{
	struct cells cells = {0};
	struct said *all;
	size_t rows = 0, n;
	int rc = -ENOMEM;

	*j = (struct join){.tasks = tasks ? tasks : join_tasks(parts, nparts), .nparts = nparts};
	if (j->tasks > EXCHANGE_RANKS_MAX)
		j->tasks = EXCHANGE_RANKS_MAX;
	for (size_t p = 0; p < nparts; p++)
		rows += parts[p].said ? parts[p].said->nrows : 0;
	j->ranks = calloc(j->tasks + 1, sizeof(*j->ranks));
	j->part_com_ms = calloc(nparts + 1, sizeof(*j->part_com_ms));
	all = calloc(rows + 1, sizeof(*all));
	if (j->ranks && j->part_com_ms && all) {
		for (uint32_t r = 0; r < j->tasks; r++)
			j->ranks[r].part =
				owner && tasks && owner[r] < (int32_t)nparts ? owner[r] : -1;
		n = join_collect(j, parts, owner && tasks, all);
		rc = join_connections(j, all, n, &cells);
		join_cells(j, &cells);
	}
	free(all);
	if (!rc)
		rc = join_pattern(j);
	if (!rc)
		rc = join_disks(j, parts);
	if (!rc) {
		join_loads(j, mb_per_s);
		join_phases(j);
	}
	return rc;
}

void join_fini(struct join *j)
{
	free(j->ranks);
	free(j->part_com_ms);
	free(j->cells);
	*j = (struct join){0};
}
