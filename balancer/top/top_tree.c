/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Arranges rows as a tree: tasks below their parents, or cgroups below their parent cgroups,
 * with their tasks.  /proc tells the parents while tasks come and go, so they may be missing or
 * contradict each other: a row without a visible parent is a root, and a circle is cut open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/top/top_rows.h"

#define NOBODY	   SIZE_MAX
#define CLIMB_MAX  256 /* most steps upwards */
#define RAILS_MAX  63
#define NAME_BYTES 4096

struct node {
	size_t parent, child, next;
	bool seen;
};

struct tree {
	struct top_row *rows;
	size_t n;
	struct node *nodes;
	size_t *index; /* rows sorted by id, jobs by name */
	struct top_row *out;
	size_t nout;
	const struct top_model_options *options;
};

static int top_tree_by_id(const void *a, const void *b, void *arg)
{
	const struct top_row *rows = arg;
	const struct top_row *x = &rows[*(const size_t *)a], *y = &rows[*(const size_t *)b];

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Orders jobs first, by name; the order of tasks does not matter. */
static int by_job(const void *a, const void *b, void *arg)
{
	const struct top_row *rows = arg;
	const struct top_row *x = &rows[*(const size_t *)a], *y = &rows[*(const size_t *)b];

	if (x->is_job != y->is_job)
		return x->is_job ? -1 : 1;
	return x->is_job ? strcmp(x->job, y->job) : 0;
}

static void sort_index(struct tree *t, int (*order)(const void *, const void *, void *))
{
	for (size_t i = 0; i < t->n; i++)
		t->index[i] = i;
	if (t->n)
		qsort_r(t->index, t->n, sizeof(*t->index), order, t->rows);
}

static size_t find_id(const struct tree *t, uint64_t id)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (t->rows[t->index[middle]].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->n && t->rows[t->index[low]].id == id ? t->index[low] : NOBODY;
}

static size_t find_job(const struct tree *t, const char *name)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct top_row *row = &t->rows[t->index[middle]];

		if (row->is_job && strcmp(row->job, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < t->n && t->rows[t->index[low]].is_job &&
	    !strcmp(t->rows[t->index[low]].job, name))
		return t->index[low];
	return NOBODY;
}

/* The nearest ancestor cgroup of PATH that has a row. */
static size_t job_above(const struct tree *t, const char *path)
{
	char name[NAME_BYTES], *slash;
	size_t found;

	if (strlen(path) >= sizeof(name))
		return NOBODY;
	strcpy(name, path);
	while ((slash = strrchr(name, '/')) && slash != name) {
		*slash = 0;
		found = find_job(t, name);
		if (found != NOBODY)
			return found;
	}
	return NOBODY;
}

static size_t parent_task(const struct tree *t, const struct top_row *row)
{
	const json_t *told = json_object_get(row->source, "ppid");
	pid_t parent = 0;

	if (told)
		parent = (pid_t)json_integer_value(told);
	else if (t->options->proc)
		parent = top_proc_parent(t->options->proc, (pid_t)row->value[TOP_PID], row->comm);
	return parent > 0 ? find_id(t, (uint64_t)parent) : NOBODY;
}

/* Returns whether going up from ROW comes back to it or does not end. */
static bool in_circle(const struct tree *t, size_t row)
{
	size_t at = t->nodes[row].parent;

	for (unsigned steps = 0; at != NOBODY; at = t->nodes[at].parent)
		if (at == row || ++steps > CLIMB_MAX)
			return true;
	return false;
}

static void find_parents(struct tree *t)
{
	bool jobs = t->options->jobs;

	sort_index(t, jobs ? by_job : top_tree_by_id);
	for (size_t i = 0; i < t->n; i++) {
		const struct top_row *row = &t->rows[i];

		t->nodes[i].parent = !jobs	   ? parent_task(t, row)
				     : row->is_job ? job_above(t, row->job)
						   : find_job(t, row->job);
	}
	for (size_t i = 0; i < t->n; i++)
		if (in_circle(t, i))
			t->nodes[i].parent = NOBODY;
}

/*
 * Adds each row's work to all rows above it and keeps them visible.  In the view of jobs, a
 * task's work is part of its job's already.
 */
static void top_tree_climb(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->nodes[i].seen = !t->rows[i].context;
	for (size_t i = 0; i < t->n; i++) {
		bool adds = t->options->key != TOP_PID && (!t->options->jobs || t->rows[i].is_job);
		size_t at = t->nodes[i].parent;

		for (; at != NOBODY; at = t->nodes[at].parent) {
			if (adds)
				t->rows[at].weight += t->rows[i].value[t->options->key];
			if (!t->rows[i].context)
				t->nodes[at].seen = true;
		}
	}
	/* Keep only the visible rows. */
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->nodes[i].seen)
			t->rows[kept++] = t->rows[i];
	t->n = kept;
}

static void link_children(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		t->nodes[i].child = t->nodes[i].next = NOBODY;
		t->nodes[i].seen = false;
	}
	for (size_t i = t->n; i-- > 0;) {
		size_t parent = t->nodes[i].parent;

		if (parent == NOBODY)
			continue;
		t->nodes[i].next = t->nodes[parent].child;
		t->nodes[parent].child = i;
	}
}

static void emit(struct tree *t, size_t at, unsigned depth, uint64_t rails)
{
	struct top_row *row = &t->out[t->nout++];

	*row = t->rows[at];
	row->depth = depth;
	row->rails = rails;
	row->last = t->nodes[at].next == NOBODY;
	t->nodes[at].seen = true;
}

/* Walks the row and all rows below it. */
static void top_tree_walk(struct tree *t, size_t root)
{
	unsigned depth = 0;
	uint64_t rails = 0;
	size_t at = root;

	for (;;) {
		emit(t, at, depth, rails);
		if (t->nodes[at].child != NOBODY) {
			/* A line runs beside the following rows to the next sibling. */
			if (depth && depth <= RAILS_MAX && t->nodes[at].next != NOBODY)
				rails |= 1ULL << depth;
			at = t->nodes[at].child;
			depth++;
			continue;
		}
		while (at != root && t->nodes[at].next == NOBODY) {
			at = t->nodes[at].parent;
			depth--;
			if (depth <= RAILS_MAX)
				rails &= ~(1ULL << depth);
		}
		if (at == root)
			return;
		at = t->nodes[at].next;
	}
}

int top_tree_arrange(struct top_row *rows, size_t *n, const struct top_model_options *options)
{
	struct top_model_options o = *options;
	struct tree t = {.rows = rows, .n = *n, .options = &o};
	int rc = 0;

	t.nodes = calloc(*n + 1, sizeof(*t.nodes));
	t.index = calloc(*n + 1, sizeof(*t.index));
	t.out = calloc(*n + 1, sizeof(*t.out));
	if (t.nodes && t.index && t.out) {
		find_parents(&t);
		top_tree_climb(&t);
		if (t.n)
			qsort_r(t.rows, t.n, sizeof(*t.rows), top_row_order, &o);
		find_parents(&t);
		link_children(&t);
		for (size_t i = 0; i < t.n; i++)
			if (t.nodes[i].parent == NOBODY)
				top_tree_walk(&t, i);
		memcpy(rows, t.out, t.nout * sizeof(*rows));
		*n = t.nout;
	} else {
		rc = -ENOMEM;
		*n = 0;
	}
	free(t.nodes);
	free(t.index);
	free(t.out);
	return rc;
}
