/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pattern.h. */
#include "user/exchange/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A pair of ranks, A < B, and what they sent each other. */
struct couple {
	uint32_t a, b;
	double bytes;
};

struct judged {
	uint32_t tasks;
	const int32_t *part;
	int32_t *sorted; /* the parts of all ranks */
	bool inside;	 /* pairs on one node are seen, too */
	struct couple *list;
	size_t n;
	double total;
};

/* Whether a pair belongs to a pattern. */
typedef bool pattern_has(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b);

static bool has_all(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	(void)p;
	(void)tasks;
	return a != b;
}

static bool has_master(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	(void)tasks;
	return a == p->master || b == p->master;
}

static bool has_chain(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	(void)p;
	(void)tasks;
	return b - a == 1;
}

static bool has_ring(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	(void)p;
	return b - a == 1 || b - a == tasks - 1;
}

static bool has_grid(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	(void)tasks;
	return (b - a == 1 && b % p->columns) || b - a == p->columns;
}

static bool has_torus(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	return has_grid(p, tasks, a, b) || (b - a == p->columns - 1 && a % p->columns == 0) ||
	       b - a == (p->rows - 1) * p->columns;
}

static int couple_order(const void *x, const void *y)
{
	const struct couple *p = x, *q = y;

	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	return (p->b > q->b) - (p->b < q->b);
}

static int part_order(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static int pattern_parts(struct judged *j)
{
	j->sorted = calloc(j->tasks + 1, sizeof(*j->sorted));
	if (!j->sorted)
		return -ENOMEM;
	if (j->tasks)
		memcpy(j->sorted, j->part, j->tasks * sizeof(*j->sorted));
	qsort(j->sorted, j->tasks, sizeof(*j->sorted), part_order);
	return 0;
}

/* Sums both directions of each pair. */
static int pattern_couples(struct judged *j, const struct pattern_cell *cells, size_t n)
{
	size_t kept = 0;

	j->list = calloc(n + 1, sizeof(*j->list));
	if (!j->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct pattern_cell *c = &cells[i];

		if (c->from == c->to || !c->bytes)
			continue;
		j->inside |= c->inside;
		j->total += (double)c->bytes;
		j->list[j->n++] =
			(struct couple){c->from < c->to ? c->from : c->to,
					c->from < c->to ? c->to : c->from, (double)c->bytes};
	}
	qsort(j->list, j->n, sizeof(*j->list), couple_order);
	for (size_t i = 0; i < j->n; i++) {
		if (kept && !couple_order(&j->list[kept - 1], &j->list[i]))
			j->list[kept - 1].bytes += j->list[i].bytes;
		else
			j->list[kept++] = j->list[i];
	}
	j->n = kept;
	return 0;
}

/* Whether what a pair sends could be seen. */
static bool pattern_seen(const struct judged *j, uint32_t a, uint32_t b)
{
	return j->inside || j->part[a] < 0 || j->part[a] != j->part[b];
}

/* Counts all pairs that could be seen: those of different parts, by the sorted list of parts. */
static size_t pattern_all_pairs(const struct judged *j)
{
	size_t n = (size_t)j->tasks * (j->tasks - 1) / 2, same = 1;

	for (uint32_t i = 1; !j->inside && i <= j->tasks; i++) {
		if (i < j->tasks && j->sorted[i] >= 0 && j->sorted[i] == j->sorted[i - 1]) {
			same++;
			continue;
		}
		n -= same * (same - 1) / 2;
		same = 1;
	}
	return n;
}

/*
 * Counts the pairs of a pattern that could be seen, without a look at each of up to 8 million: but
 * for a master's, they have one of few distances.
 */
static size_t pattern_pairs(const struct judged *j, const struct pattern *p, pattern_has *has)
{
	const uint32_t distances[] = {1, j->tasks - 1, p->columns, p->columns - 1,
				      (p->rows - 1) * p->columns};
	size_t n = 0;

	if (has == has_all)
		return pattern_all_pairs(j);
	for (uint32_t a = 0; has == has_master && a < j->tasks; a++)
		n += a != p->master && pattern_seen(j, a, p->master);
	for (size_t d = 0; has != has_master && d < sizeof(distances) / sizeof(*distances); d++) {
		bool again = !distances[d] || distances[d] >= j->tasks;

		for (size_t k = 0; k < d; k++)
			again |= distances[k] == distances[d];
		for (uint32_t a = 0; !again && a + distances[d] < j->tasks; a++)
			n += pattern_seen(j, a, a + distances[d]) &&
			     has(p, j->tasks, a, a + distances[d]);
	}
	return n;
}

/* Fills the numbers of P; returns whether they make it so. */
static bool pattern_try(const struct judged *j, struct pattern *p, pattern_has *has)
{
	size_t pairs, used = 0;
	double bytes = 0;

	for (size_t i = 0; i < j->n; i++)
		if (has(p, j->tasks, j->list[i].a, j->list[i].b))
			bytes += j->list[i].bytes;
	p->share = bytes / j->total;
	if (p->share < PATTERN_SHARE)
		return false; /* its pairs need not be counted */
	pairs = pattern_pairs(j, p, has);
	for (size_t i = 0; i < j->n; i++)
		used += has(p, j->tasks, j->list[i].a, j->list[i].b) &&
			j->list[i].bytes * (double)pairs >= bytes / 10;
	p->coverage = pairs ? (double)used / (double)pairs : 0;
	return p->share >= PATTERN_SHARE && p->coverage >= PATTERN_COVERAGE;
}

/* The rank that is an end of most bytes. */
static int pattern_busiest(const struct judged *j, uint32_t *busiest)
{
	double *bytes = calloc(j->tasks, sizeof(*bytes));

	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < j->n; i++) {
		bytes[j->list[i].a] += j->list[i].bytes;
		bytes[j->list[i].b] += j->list[i].bytes;
	}
	*busiest = 0;
	for (uint32_t r = 1; r < j->tasks; r++)
		if (bytes[r] > bytes[*busiest])
			*busiest = r;
	free(bytes);
	return 0;
}

/* Tries the grids, those nearest to a square first. */
static bool pattern_try_grids(const struct judged *j, struct pattern *p)
{
	uint32_t rows = 1;

	while ((rows + 1) * (rows + 1) <= j->tasks)
		rows++;
	for (; rows >= 2; rows--) {
		if (j->tasks % rows)
			continue;
		for (int turned = 0; turned < 2; turned++) {
			p->rows = turned ? j->tasks / rows : rows;
			p->columns = j->tasks / p->rows;
			if (p->columns < 2)
				continue;
			p->wraps = false;
			if (pattern_try(j, p, has_grid))
				return true;
			p->wraps = true;
			if (pattern_try(j, p, has_torus))
				return true;
		}
	}
	return false;
}

/* Whether the last rank and the first talk, which makes a chain a ring. */
static bool pattern_closes(const struct judged *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->list[i].a == 0 && j->list[i].b == j->tasks - 1)
			return j->list[i].bytes * 10 * j->tasks >= j->total;
	return false;
}

static void pattern_judge(const struct judged *j, struct pattern *p, uint32_t busiest)
{
	*p = (struct pattern){.kind = PATTERN_MASTER, .master = busiest};
	if (j->tasks > 2 && pattern_pairs(j, p, has_master) < pattern_pairs(j, p, has_all) &&
	    pattern_try(j, p, has_master))
		return;
	*p = (struct pattern){.kind = PATTERN_RING};
	if (j->tasks > 3 && pattern_closes(j) && pattern_try(j, p, has_ring))
		return;
	*p = (struct pattern){.kind = PATTERN_CHAIN};
	if (j->tasks > 3 && pattern_try(j, p, has_chain))
		return;
	*p = (struct pattern){.kind = PATTERN_GRID};
	if (j->tasks > 3 && pattern_try_grids(j, p))
		return;
	*p = (struct pattern){.kind = PATTERN_ALL};
	if (!pattern_try(j, p, has_all))
		p->kind = PATTERN_IRREGULAR;
}

int pattern_find(struct pattern *p, uint32_t tasks, const int32_t *part,
		 const struct pattern_cell *cells, size_t ncells)
{
	struct judged j = {.tasks = tasks, .part = part};
	uint32_t busiest;
	int rc = pattern_couples(&j, cells, ncells);

	if (!rc)
		rc = pattern_parts(&j);

	*p = (struct pattern){.kind = PATTERN_NONE};
	if (!rc && j.total > 0 && tasks == 2)
		*p = (struct pattern){.kind = PATTERN_PAIR, .share = 1, .coverage = 1};
	else if (!rc && j.total > 0)
		rc = pattern_busiest(&j, &busiest);
	if (!rc && j.total > 0 && tasks > 2)
		pattern_judge(&j, p, busiest);
	free(j.list);
	free(j.sorted);
	return rc;
}

bool pattern_pair(const struct pattern *p, uint32_t tasks, uint32_t a, uint32_t b)
{
	static pattern_has *const has[PATTERNS] = {
		[PATTERN_PAIR] = has_all,   [PATTERN_MASTER] = has_master,
		[PATTERN_RING] = has_ring,  [PATTERN_CHAIN] = has_chain,
		[PATTERN_GRID] = has_torus, [PATTERN_ALL] = has_all,
	};
	pattern_has *one = p->kind == PATTERN_GRID && !p->wraps ? has_grid : has[p->kind];

	return a != b && one && (a < b ? one(p, tasks, a, b) : one(p, tasks, b, a));
}

const char *pattern_name(enum pattern_kind kind)
{
	static const char *const names[PATTERNS] = {
		[PATTERN_NONE] = "none",
		[PATTERN_PAIR] = "pair",
		[PATTERN_MASTER] = "master-slaves",
		[PATTERN_RING] = "ring",
		[PATTERN_CHAIN] = "nearest-neighbour (chain)",
		[PATTERN_GRID] = "nearest-neighbour (grid)",
		[PATTERN_ALL] = "all-to-all",
		[PATTERN_IRREGULAR] = "irregular",
	};

	return names[kind];
}
