/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A view that is copied and indexed for each decision; see rebuilt_view.h. */
#include "tests/lib/rebuilt_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void view_charges_fini(struct view_charges *c)
{
	free(c->list);
	*c = (struct view_charges){0};
}

void view_charge_add(struct view_charges *c, const struct view_charge *charge)
{
	if (c->count == c->room && c->room < VIEW_CHARGES_MAX) {
		size_t room = c->room ? 2 * c->room : 16;
		struct view_charge *grown = realloc(c->list, room * sizeof(*grown));

		if (grown) {
			c->list = grown;
			c->room = room;
		}
	}
	if (c->count == c->room) {
		c->lost++;
		if (!c->count)
			return;
		memmove(c->list, c->list + 1, (c->count - 1) * sizeof(*c->list));
		c->count--;
	}
	c->list[c->count++] = *charge;
}

static bool settled(const struct view_charge *c, const struct matrix *m, uint64_t now_ns)
{
	const struct matrix_entry *e = matrix_find(m, c->node);

	if (!e || !e->alive || now_ns - c->since_ns > VIEW_CHARGE_NS)
		return true;
	return e->vector.boot_id != c->boot_id || e->vector.sequence >= c->sequence;
}

void view_charges_settle(struct view_charges *c, const struct matrix *m, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (!settled(&c->list[i], m, now_ns))
			c->list[kept++] = c->list[i];
	c->count = kept;
}

/* Adds the node and what home placed there since V. */
static int rebuilt_view_add(struct view_file *view, const struct iocom_vector *v, double age_ms,
			    bool home, const struct view_charges *charges)
{
	struct rules_node node;
	int rc;

	view_node(v, age_ms, &node);
	/* The owner's setting is only for other users' jobs: home always accepts its own. */
	node.accepts |= home;
	rc = view_file_add(view, &node);
	for (size_t i = 0; charges && i < charges->count && !rc; i++)
		if (!strcmp(charges->list[i].node, node.name))
			rc = view_file_charge(view, view->nnodes - 1, &charges->list[i].request);
	return rc;
}

int view_build(const struct iocom_vector *self, const struct matrix *m,
	       const struct view_charges *charges, uint64_t now_ns, struct view_file *out)
{
	int rc;

	view_file_init(out, RULES_RATES_WALL);
	view_params(&out->params);
	out->time_ms = (double)now_ns / 1e6;
	rc = rebuilt_view_add(out, self, 0, true, NULL);
	for (size_t i = 0; i < m->count && !rc; i++) {
		const struct matrix_entry *e = matrix_at(m, i);

		if (e->alive)
			rc = rebuilt_view_add(out, &e->vector,
					      (double)matrix_age_ns(e, now_ns) / 1e6, false,
					      charges);
	}
	if (rc)
		view_file_fini(out);
	return rc;
}
