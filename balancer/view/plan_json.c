/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Writes a plan as the answer of a view file; see plan_json.h. */
#include "balancer/view/plan_json.h"

#include "balancer/view/gang_json.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/json_field.h"

/* JSON has no infinity: write the largest number instead. */
static double bounded(double value)
{
	return value > DBL_MAX ? DBL_MAX : value < -DBL_MAX ? -DBL_MAX : value;
}

static json_t *reason_json(const struct plan_answer *a, const struct rules_reason *r, bool texts)
{
	enum rules_criterion c = r->criterion;
	const char *name = rules_criterion_name(c), *node = a->name(a->arg, r->node);

	if (!texts)
		return json_pack("{s:s,s:s,s:f,s:f,s:b}", "criterion", name, "node", node, "left",
				 bounded(r->left), "right", bounded(r->right), "holds", r->holds);
	return json_pack("{s:s,s:s,s:s,s:f,s:f,s:s,s:s,s:b,s:s}", "criterion", name, "source",
			 rules_criterion_source(c), "node", node, "left", bounded(r->left), "right",
			 bounded(r->right), "unit", rules_criterion_unit(c, a->rates), "relation",
			 rules_criterion_relation(c), "holds", r->holds, "text",
			 rules_criterion_text(c));
}

static json_t *move_json(const struct plan_answer *a, const struct rules_move *m)
{
	return json_pack("{s:s,s:I,s:s,s:f}", "node", a->name(a->arg, a->home), "task",
			 (json_int_t)m->task, "to", a->name(a->arg, m->to), "cost_effectiveness",
			 bounded(m->cost_effectiveness));
}

/* Makes a list of nodes' names.  json_array_append_new fails for a NULL list or item, too. */
static json_t *plan_json_names(const struct plan_answer *a, const uint32_t *list, uint32_t n)
{
	json_t *out = json_array();

	for (uint32_t i = 0; out && i < n; i++) {
		if (json_array_append_new(out, json_string(a->name(a->arg, list[i])))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *moves_json(const struct plan_answer *a)
{
	json_t *out = json_array();

	for (size_t i = 0; out && i < a->nmoves; i++) {
		if (json_array_append_new(out, move_json(a, &a->moves[i]))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *reasons_json(const struct plan_answer *a, bool texts)
{
	json_t *out = json_array();

	for (uint32_t i = 0; out && i < a->plan->nreasons; i++) {
		if (json_array_append_new(out, reason_json(a, &a->plan->reasons[i], texts))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *refused_json(const struct rules_plan *plan)
{
	json_t *out = json_object();
	int rc = 0;

	for (int i = 0; out && i < RULES_CRITERIA && !rc; i++)
		if (plan->refused[i])
			rc = field_set(out, rules_criterion_name((enum rules_criterion)i),
				       json_integer(plan->refused[i]));
	if (rc) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *plan_answer_json(const struct plan_answer *a, bool texts)
{
	const struct rules_plan *plan = a->plan;
	const uint32_t most = sizeof(plan->tied) / sizeof(*plan->tied);
	uint32_t shown = plan->ntied < most ? plan->ntied : most;
	json_t *out =
		json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "policy", a->policy, "home",
			  a->name(a->arg, a->home), "node", a->name(a->arg, plan->node), "nodes",
			  plan_json_names(a, a->nodes, a->ntasks), "tied",
			  plan_json_names(a, plan->tied, shown), "migrate", moves_json(a),
			  "candidates", plan_json_names(a, plan->candidates, plan->ncandidates),
			  "refused_counts", refused_json(plan), "reasons", reasons_json(a, texts));

	if (out && plan->ntied > shown)
		json_object_set_new(out, "tied_count", json_integer(plan->ntied));
	if (out && plan->queued)
		json_object_set_new(out, "queued", json_true());
	if (out && a->gang)
		json_object_set_new(out, "gang", gang_json(a->gang, a->name, a->arg));
	return out;
}

static const char *view_name(const void *arg, uint32_t node)
{
	return rules_view_name(arg, node);
}

json_t *plan_json(const struct view_decision *d, bool texts)
{
	const struct plan_answer answer = {
		.policy = d->policy.name,
		.home = d->home,
		.plan = &d->plan,
		.nodes = d->nodes,
		.ntasks = d->ntasks,
		.moves = d->moves,
		.nmoves = d->nmoves,
		.rates = d->rates,
		.name = view_name,
		.arg = d->view,
		.gang = d->is_gang ? &d->gang : NULL,
	};

	return plan_answer_json(&answer, texts);
}

/* --- the expectation ------------------------------------------------------------ */

static const struct {
	const char *key;
	size_t offset;
	double least, most;
} expected[] = {
	{"there_ms", offsetof(struct rules_expectation, there_ms), 0, DBL_MAX},
	{"home_ms", offsetof(struct rules_expectation, home_ms), 0, DBL_MAX},
	{"there_factor", offsetof(struct rules_expectation, there_factor), RULES_CORRECTION_MIN,
	 RULES_CORRECTION_MAX},
	{"home_factor", offsetof(struct rules_expectation, home_factor), RULES_CORRECTION_MIN,
	 RULES_CORRECTION_MAX},
};

#define EXPECTED (sizeof(expected) / sizeof(expected[0]))

json_t *expectation_json(const struct rules_expectation *e)
{
	json_t *out = json_object();

	for (size_t i = 0; out && i < EXPECTED; i++) {
		double value = *(const double *)((const char *)e + expected[i].offset);

		if (field_set(out, expected[i].key, json_real(value))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

int expectation_read(struct rules_expectation *e, const json_t *object)
{
	struct rules_expectation read = {.known = true};

	*e = (struct rules_expectation){.known = false};
	if (!object)
		return 0;
	for (size_t i = 0; i < EXPECTED; i++) {
		const json_t *value = json_object_get(object, expected[i].key);
		double number = json_number_value(value);

		if (!json_is_number(value) || number < expected[i].least ||
		    number > expected[i].most)
			return -EPROTO;
		*(double *)((char *)&read + expected[i].offset) = number;
	}
	*e = read;
	return 0;
}

/* --- reading -------------------------------------------------------------------- */

static int plan_text(const json_t *object, const char *key, const char **out)
{
	const json_t *value = json_object_get(object, key);

	*out = value ? json_string_value(value) : "";
	return *out ? 0 : -EPROTO;
}

static int plan_number(const json_t *object, const char *key, double *out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_number_value(value);
	return !value || json_is_number(value) ? 0 : -EPROTO;
}

static int plan_flag(const json_t *object, const char *key, bool *out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_is_true(value);
	return !value || json_is_boolean(value) ? 0 : -EPROTO;
}

static int plan_read_reason(const json_t *value, void *at)
{
	struct plan_reason *r = at;

	return !json_is_object(value) || plan_text(value, "criterion", &r->criterion) ||
			       plan_text(value, "source", &r->source) ||
			       plan_text(value, "node", &r->node) ||
			       plan_text(value, "unit", &r->unit) ||
			       plan_text(value, "relation", &r->relation) ||
			       plan_text(value, "text", &r->text) ||
			       plan_number(value, "left", &r->left) ||
			       plan_number(value, "right", &r->right) ||
			       plan_flag(value, "holds", &r->holds)
		       ? -EPROTO
		       : 0;
}

static int plan_read_move(const json_t *value, void *at)
{
	struct plan_move *m = at;

	return !json_is_object(value) || plan_text(value, "node", &m->node) ||
			       plan_text(value, "to", &m->to) ||
			       plan_number(value, "task", &m->task)
		       ? -EPROTO
		       : 0;
}

static int plan_read_name(const json_t *value, void *at)
{
	*(const char **)at = json_string_value(value);
	return json_is_string(value) ? 0 : -EPROTO;
}

/* Reads the list KEY, whose items have SIZE bytes, with READ: *OUT is malloc'ed. */
static int plan_read_list(const json_t *object, const char *key, size_t size,
			  int (*read)(const json_t *value, void *at), void **out, size_t *count)
{
	const json_t *list = json_object_get(object, key);
	size_t n = json_array_size(list);

	if (!list)
		return 0;
	if (!json_is_array(list))
		return -EPROTO;
	*out = calloc(n + 1, size);
	if (!*out)
		return -ENOMEM;
	for (; *count < n; ++*count)
		if (read(json_array_get(list, *count), (char *)*out + *count * size))
			return -EPROTO;
	return 0;
}

static int plan_read_names(const json_t *object, const char *key, const char ***out, size_t *count)
{
	void *list = NULL;
	int rc = plan_read_list(object, key, sizeof(**out), plan_read_name, &list, count);

	*out = list;
	return rc;
}

static int plan_read_lists(struct plan_record *r)
{
	void *reasons = NULL, *moves = NULL;
	int rc = plan_read_list(r->document, "reasons", sizeof(*r->reasons), plan_read_reason,
				&reasons, &r->nreasons);

	r->reasons = reasons;
	if (!rc)
		rc = plan_read_list(r->document, "migrate", sizeof(*r->moves), plan_read_move,
				    &moves, &r->nmoves);
	r->moves = moves;
	if (!rc)
		rc = plan_read_names(r->document, "nodes", &r->nodes, &r->nnodes);
	if (!rc)
		rc = plan_read_names(r->document, "tied", &r->tied, &r->ntied);
	if (!rc)
		rc = plan_read_names(r->document, "candidates", &r->candidates, &r->ncandidates);
	return rc;
}

int plan_record_take(struct plan_record *r, json_t *document)
{
	int rc;

	*r = (struct plan_record){.document = document};
	rc = json_is_object(document) && !plan_text(document, "policy", &r->policy) &&
			     !plan_text(document, "home", &r->home) &&
			     !plan_text(document, "node", &r->node) &&
			     !plan_flag(document, "queued", &r->queued)
		     ? plan_read_lists(r)
		     : -EPROTO;
	if (rc)
		plan_record_fini(r);
	return rc;
}

void plan_record_fini(struct plan_record *r)
{
	free(r->reasons);
	free(r->moves);
	free(r->nodes);
	free(r->tied);
	free(r->candidates);
	json_decref(r->document);
	*r = (struct plan_record){.policy = "", .home = "", .node = ""};
}

/* --- comparing ------------------------------------------------------------------ */

static bool is_text(const char *key)
{
	return !strcmp(key, "source") || !strcmp(key, "unit") || !strcmp(key, "relation") ||
	       !strcmp(key, "text");
}

static bool number_same(double a, double b, double tolerance)
{
	return a == b || fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static bool members_in(const json_t *a, const json_t *b, double tolerance)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)a, key, value)
		if (!is_text(key) && !plan_json_same(value, json_object_get(b, key), tolerance))
			return false;
	return true;
}

bool plan_json_same(const json_t *a, const json_t *b, double tolerance)
{
	if (!a || !b)
		return a == b;
	if (json_is_number(a) && json_is_number(b))
		return number_same(json_number_value(a), json_number_value(b), tolerance);
	if (json_is_object(a) && json_is_object(b))
		return members_in(a, b, tolerance) && members_in(b, a, tolerance);
	if (!json_is_array(a) || !json_is_array(b))
		return json_equal((json_t *)a, (json_t *)b);
	if (json_array_size(a) != json_array_size(b))
		return false;
	for (size_t i = 0; i < json_array_size(a); i++)
		if (!plan_json_same(json_array_get(a, i), json_array_get(b, i), tolerance))
			return false;
	return true;
}
