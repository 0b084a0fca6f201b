/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the lines of a recording; see recording.h. */
#include "balancer/view/recording_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/plan_json.h"

static int fields(struct recording *r, const json_t *object, enum recording_table table, void *base)
{
	size_t n;
	const struct field *list = recording_fields(table, &n);

	return field_read(&r->reader, object, list, n, base);
}

int recording_expected(struct recording *r, const char *key, const char *wanted)
{
	field_enter(&r->reader, key, 0);
	return field_expected(&r->reader, wanted, json_object_get(r->document, key));
}

/* Takes "node" out of OBJECT; the other members describe the node. */
static int take_index(struct recording *r, json_t *object, uint64_t most, uint32_t *index)
{
	size_t mark = field_enter(&r->reader, "node", 0);
	uint64_t number;
	int rc = field_large(&r->reader, json_object_get(object, "node"), most, &number);

	if (rc)
		return rc;
	field_leave(&r->reader, mark);
	*index = (uint32_t)number;
	json_object_del(object, "node");
	return 0;
}

static int recording_lines_take_name(struct recording *r, uint32_t index, const char *name)
{
	int rc = recording_state_name(&r->state, index, name);

	if (rc != -EEXIST)
		return rc;
	field_enter(&r->reader, "name", 0);
	return field_fail(&r->reader, "expected a name of its own, found that of another node");
}

static int recording_lines_node_line(struct recording *r)
{
	struct recording_state *s = &r->state;
	struct view_node *node;
	uint32_t index;
	int rc = take_index(r, r->document, s->n < RECORDING_NODES_MAX ? s->n : s->n - 1, &index);
	struct view_node copy;

	if (!rc && index == s->n)
		rc = recording_state_add(s);
	if (rc)
		return rc;
	json_object_del(r->document, "record");
	json_object_del(r->document, "time_ms");
	node = &s->nodes[index];
	copy = *node;
	rc = view_machine_read(&r->reader, r->document, &copy);
	if (!rc)
		rc = recording_lines_take_name(r, index, copy.node.name);
	if (!rc)
		*node = copy; /* node->tasks still points to its own array */
	r->line.kind = RECORDING_NODE;
	r->line.node = index;
	return rc;
}

static int vector_line(struct recording *r)
{
	uint32_t index;
	int rc = r->state.n ? take_index(r, r->document, r->state.n - 1, &index)
			    : recording_expected(r, "node", "a node that was told before");

	if (rc)
		return rc;
	json_object_del(r->document, "record");
	json_object_del(r->document, "time_ms");
	r->line.kind = RECORDING_NODE;
	r->line.node = index;
	return view_load_read(&r->reader, r->document, r->header.params.rates,
			      &r->state.nodes[index]);
}

static int submit_line(struct recording *r)
{
	struct recording_job *j = &r->line.job;
	int rc;

	r->line.kind = RECORDING_SUBMIT;
	*j = (struct recording_job){.tasks = 1, .requests = -1, .request_kb = 250};
	rc = fields(r, r->document, RECORDING_T_JOB, j);
	if (!rc && !j->id[0])
		rc = recording_expected(r, "job", "the job's id");
	if (!rc && j->home >= r->state.n)
		rc = recording_expected(r, "home", "the number of a node that was told before");
	if (!rc && (j->tasks < 1 || j->tasks > VIEW_TASKS_MAX))
		rc = recording_expected(r, "tasks", "a whole number from 1 to 1000000");
	return rc;
}

static int finish_line(struct recording *r)
{
	struct recording_finish *f = &r->line.finish;
	const json_t *measured = json_object_get(r->document, "measured");
	int rc;

	r->line.kind = RECORDING_FINISH;
	*f = (struct recording_finish){.has_measured = measured != NULL};
	rc = fields(r, r->document, RECORDING_T_FINISH, f);
	if (!rc && !f->id[0])
		rc = recording_expected(r, "job", "the job's id");
	if (!rc && f->node >= r->state.n)
		rc = recording_expected(r, "node", "the number of a node that was told before");
	if (!rc && measured) {
		field_enter(&r->reader, "measured", 0);
		rc = fields(r, measured, RECORDING_T_MEASURED, &f->measured);
	}
	return rc;
}

static int recording_lines_changed_node(struct recording *r, json_t *object)
{
	size_t n = r->nchanged;
	int rc;

	if (!json_is_object(object))
		return field_expected(&r->reader, "a node", object);
	rc = r->state.n ? take_index(r, object, r->state.n - 1, &r->indexes[n])
			: field_fail(&r->reader, "no node was told before");
	if (rc)
		return rc;
	view_node_init(&r->changed[n], r->indexes[n]);
	r->nchanged++;
	return view_node_read(&r->reader, object, r->header.params.rates, &r->changed[n]);
}

static int decision_changed(struct recording *r)
{
	const json_t *list = json_object_get(r->document, "changed");
	size_t mark, i;
	json_t *object;
	int rc = 0;

	if (!list)
		return 0;
	if (!json_is_array(list))
		return recording_expected(r, "changed", "a list of nodes");
	r->changed = calloc(json_array_size(list) + 1, sizeof(*r->changed));
	r->indexes = calloc(json_array_size(list) + 1, sizeof(*r->indexes));
	if (!r->changed || !r->indexes)
		return -ENOMEM;
	mark = field_enter(&r->reader, "changed", 0);
	json_array_foreach (list, i, object) {
		size_t inner = field_enter(&r->reader, NULL, i);

		rc = recording_lines_changed_node(r, object);
		if (rc)
			return rc;
		field_leave(&r->reader, inner);
	}
	field_leave(&r->reader, mark);
	return 0;
}

static int ordered_node(struct recording *r, const json_t *value)
{
	uint64_t number;
	int rc = field_large(&r->reader, value, r->state.n - 1, &number);

	if (rc)
		return rc;
	if (r->place[number] != VIEW_NOWHERE)
		return field_fail(&r->reader, "node %u is there twice", (unsigned int)number);
	r->place[number] = (uint32_t)r->norder;
	r->order[r->norder++] = (uint32_t)number;
	return 0;
}

static int decision_order(struct recording *r)
{
	const json_t *list = json_object_get(r->document, "nodes");
	const json_t *value;
	size_t mark, i;

	if (!list)
		return 0;
	if (!json_is_array(list) || !r->state.n)
		return recording_expected(r, "nodes",
					  "a list of the numbers of nodes that were told before");
	r->order = calloc(r->state.n, sizeof(*r->order));
	r->place = calloc(r->state.n, sizeof(*r->place));
	if (!r->order || !r->place)
		return -ENOMEM;
	for (uint32_t k = 0; k < r->state.n; k++)
		r->place[k] = VIEW_NOWHERE;
	mark = field_enter(&r->reader, "nodes", 0);
	json_array_foreach ((json_t *)list, i, value) {
		size_t inner = field_enter(&r->reader, NULL, i);
		int rc = ordered_node(r, value);

		if (rc)
			return rc;
		field_leave(&r->reader, inner);
	}
	field_leave(&r->reader, mark);
	if (r->place[r->line.decision.home] == VIEW_NOWHERE)
		return recording_expected(r, "home", "one of \"nodes\"");
	return 0;
}

static int decision_line(struct recording *r)
{
	struct recording_decision *d = &r->line.decision;
	size_t mark;
	int rc;

	r->line.kind = RECORDING_DECISION;
	*d = (struct recording_decision){.seed = r->header.seed};
	memcpy(d->policy, r->header.policy, sizeof(d->policy));
	rc = fields(r, r->document, RECORDING_T_DECISION, d);
	if (!rc && d->home >= r->state.n)
		rc = recording_expected(r, "home", "the number of a node that was told before");
	r->params = r->header.params;
	if (!rc)
		rc = view_params_read(&r->reader, r->document, &r->params);
	if (!rc)
		rc = decision_order(r);
	if (!rc)
		rc = decision_changed(r);
	if (rc)
		return rc;
	mark = field_enter(&r->reader, "request", 0);
	rc = view_job_read(&r->reader, json_object_get(r->document, "request"), r->params.rates,
			   &(const struct view_places){r->state.names, r->place}, &r->request,
			   &r->own);
	if (rc)
		return rc;
	field_leave(&r->reader, mark);
	d->answer = json_object_get(r->document, "plan");
	if (!json_is_object(d->answer))
		return recording_expected(r, "plan", "an object");
	d->params = &r->params;
	d->request = &r->request;
	d->changed = r->changed;
	d->indexes = r->indexes;
	d->nchanged = r->nchanged;
	d->order = r->order;
	d->norder = r->norder;
	return 0;
}

static int end_line(struct recording *r)
{
	const struct recording_end *end = &r->line.end;
	const struct {
		const char *key;
		const double *value;
	} shares[] = {
		{"others_cpu", &end->others_cpu},
		{"others_disk", &end->others_disk},
		{"stolen", &end->stolen},
		{"crowded", &end->crowded},
	};
	const json_t *lines = json_object_get(r->document, "lines");
	char wanted[64];
	int rc;

	r->line.kind = RECORDING_END;
	r->line.end = RECORDING_END_UNKNOWN;
	r->whole = true;
	snprintf(wanted, sizeof(wanted), "%llu lines, with this one: some are missing",
		 (unsigned long long)r->line.number);
	if (lines && json_integer_value(lines) != (json_int_t)r->line.number)
		return recording_expected(r, "lines", wanted);
	rc = fields(r, r->document, RECORDING_T_END, &r->line.end);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]) && !rc; i++)
		if (*shares[i].value > 1)
			rc = recording_expected(r, shares[i].key,
						"a share between 0 and 1, or null");
	return rc;
}

int recording_header_read(struct recording *r)
{
	struct recording_header *h = &r->header;
	const json_t *version = json_object_get(r->document, "version");
	enum rules_rates rates;
	int rc;

	*h = (struct recording_header){.seed = 1};
	if (json_integer_value(version) != RECORDING_VERSION)
		return recording_expected(r, "version", "1, the version that this program reads");
	rc = fields(r, r->document, RECORDING_T_HEADER, h);
	if (!rc)
		rc = view_rates_read(&r->reader, r->document, &rates);
	if (rc)
		return rc;
	rules_params_default(&h->params, rates);
	return view_params_read(&r->reader, r->document, &h->params);
}

int recording_line_read(struct recording *r, const char *record)
{
	static const struct {
		const char *record;
		int (*read)(struct recording *r);
	} kinds[] = {
		{"node", recording_lines_node_line},
		{"vector", vector_line},
		{"submit", submit_line},
		{"finish", finish_line},
		{"decision", decision_line},
		{"end", end_line},
	};
	const json_t *time = json_object_get(r->document, "time_ms");
	double before = r->line.time_ms;

	if (!json_is_number(time) || json_number_value(time) < before)
		return recording_expected(r, "time_ms",
					  "a time not before that of the line before");
	r->line = (struct recording_line){.time_ms = json_number_value(time), .number = r->number};
	for (size_t i = 0; i < FIELD_COUNT_OF(kinds); i++)
		if (!strcmp(record, kinds[i].record))
			return kinds[i].read(r);
	return recording_expected(
		r, "record",
		"\"node\", \"vector\", \"submit\", \"decision\", \"finish\" or \"end\"");
}
