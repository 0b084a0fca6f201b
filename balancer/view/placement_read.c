/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Refusals, and answers and rows read back; see placement.h. */
#include "balancer/view/placement_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/vector_codec.h"

/* --- refusals -------------------------------------------------------------------------- */

/* Makes room for one more refusal.  Returns 0 or -ENOMEM. */
static int placement_grow_refused(struct placement *p)
{
	void *more = reallocarray(p->refused, p->nrefused + 1, sizeof(*p->refused));

	if (more)
		p->refused = more;
	return more ? 0 : -ENOMEM;
}

static int placement_read_refusal(struct placement *p, const json_t *value)
{
	struct placement_refusal r = {
		.node = json_string_value(json_object_get(value, "node")),
		.reason = json_string_value(json_object_get(value, "reason")),
		.text = json_string_value(json_object_get(value, "text")),
	};

	if (!r.node || !r.reason || !r.text)
		return -EPROTO;
	if (placement_grow_refused(p))
		return -ENOMEM;
	p->refused[p->nrefused++] = r;
	return 0;
}

int placement_refuse(struct placement *p, const char *node, const char *reason, const char *text)
{
	json_t *one = json_pack("{s:s,s:s,s:s}", "node", node, "reason", reason, "text", text);

	if (!p->refusals)
		p->refusals = json_array();
	if (!one || !p->refusals || json_array_append(p->refusals, one)) {
		json_decref(one);
		return -ENOMEM;
	}
	json_decref(one); /* the list owns it now */
	return placement_read_refusal(p, one);
}

/* --- reading --------------------------------------------------------------------------- */

static int placement_read_member(void *base, const struct placement_member *m, const json_t *value)
{
	void *at = (char *)base + m->offset;

	switch (m->shape) {
	case PLACEMENT_STRING:
		if (!json_is_string(value) ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return -EPROTO;
		*(const char **)at = json_string_value(value);
		return 0;
	case PLACEMENT_NUMBER:
		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return -EPROTO;
		*(uint64_t *)at = (uint64_t)json_integer_value(value);
		return 0;
	default:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value) ? 0 : -EPROTO;
	}
}

/* Reads the members of PART that OBJECT has.  On failure *WRONG is the key of the wrong one. */
static int placement_read_part(struct placement *p, const struct placement_part *part,
			       const json_t *object, const char **wrong)
{
	for (size_t i = 0; i < part->count; i++) {
		const json_t *value = json_object_get(object, part->rows[i].key);

		*wrong = part->rows[i].key;
		if (value && placement_read_member(p, &part->rows[i], value))
			return -EPROTO;
	}
	return 0;
}

static int placement_read_kept_one(struct placement_ask *ask, const struct placement_field *f,
				   const json_t *value)
{
	void *at = placement_ask_at(ask, f);

	if (f->kind == PLACEMENT_COUNT) {
		*(int64_t *)at = json_integer_value(value);
		return json_is_integer(value) && *(int64_t *)at >= 0 ? 0 : -EPROTO;
	}
	if (f->kind == PLACEMENT_FLAG) {
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value) ? 0 : -EPROTO;
	}
	if (!json_is_string(value))
		return -EPROTO;
	/* A newer build may have a wider bound: cut the text. */
	strncat(at, json_string_value(value), f->bound - 1);
	return 0;
}

static int placement_read_kept(struct placement *p, const json_t *document, const char **wrong)
{
	for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++) {
		const struct placement_field *f = &placement_ask_fields[i];
		const json_t *value = json_object_get(document, f->key);

		*wrong = f->key;
		if (f->answer == PLACEMENT_KEPT && value &&
		    placement_read_kept_one(&p->ask, f, value))
			return -EPROTO;
	}
	return 0;
}

static int placement_read_node(struct placement_node *n, const json_t *value)
{
	const json_t *age = json_object_get(value, "age_ms");
	const json_t *doubt = json_object_get(value, "doubt");

	n->age_ms = json_number_value(age);
	n->doubt = json_number_value(doubt);
	n->self = json_is_true(json_object_get(value, "self"));
	return (age && !json_is_number(age)) || (doubt && !json_is_number(doubt)) ||
			       vector_json_read(value, &n->vector)
		       ? -EPROTO
		       : 0;
}

static int placement_read_nodes(struct placement *p, const json_t *document)
{
	const json_t *list = json_object_get(document, "nodes");
	const json_t *known = json_object_get(document, "nodes_known");

	p->room_elsewhere = json_is_true(json_object_get(document, "room_elsewhere"));
	p->known = (size_t)json_integer_value(known);
	if (known && (!json_is_integer(known) || json_integer_value(known) < 0))
		return -EPROTO;
	if (list && !json_is_array(list))
		return -EPROTO;
	p->nodes = calloc(json_array_size(list) + 1, sizeof(*p->nodes));
	if (!p->nodes)
		return -ENOMEM;
	for (; p->nnodes < json_array_size(list); p->nnodes++)
		if (placement_read_node(&p->nodes[p->nnodes], json_array_get(list, p->nnodes)))
			return -EPROTO;
	return 0;
}

static int placement_read_refusals(struct placement *p, const json_t *document)
{
	json_t *list = json_object_get(document, "refused");
	int rc = 0;

	if (list && !json_is_array(list))
		return -EPROTO;
	p->refusals = json_incref(list);
	for (size_t i = 0; i < json_array_size(list) && !rc; i++)
		rc = placement_read_refusal(p, json_array_get(list, i));
	return rc;
}

static int placement_read_lists(struct placement *p, const json_t *document, const char **wrong)
{
	json_t *plan = json_object_get(document, "plan");
	int rc;

	*wrong = "need";
	rc = need_json_read(&p->need, &p->need_given, json_object_get(document, "need"));
	if (!rc) {
		*wrong = "unmet";
		rc = placement_unmet_read(p, document);
	}
	if (!rc && plan) {
		*wrong = "plan";
		rc = plan_record_take(&p->plan, json_incref(plan));
	}
	if (!rc) {
		*wrong = "refused";
		rc = placement_read_refusals(p, document);
	}
	if (!rc) {
		*wrong = "expected";
		rc = expectation_read(&p->expectation, json_object_get(document, "expected"));
	}
	if (!rc) {
		*wrong = "nodes";
		rc = placement_read_nodes(p, document);
	}
	if (!rc && json_object_get(document, "gang")) {
		struct iocom_err err;

		*wrong = "gang";
		rc = gang_answer_read(&p->gang, json_object_get(document, "gang"), &err);
	}
	return rc;
}

static int placement_read_all(struct placement *p, const json_t *document, const char **wrong)
{
	int rc = placement_read_part(p, &placement_decided, document, wrong);

	if (!rc)
		rc = placement_read_part(p, &placement_drawn, document, wrong);
	if (!rc)
		rc = placement_read_part(p, &placement_running, document, wrong);
	if (!rc)
		rc = placement_read_part(p, &placement_waiting, document, wrong);
	if (!rc)
		rc = placement_read_part(p, &placement_ended, json_object_get(document, "ended"),
					 wrong);
	if (!rc)
		rc = placement_read_kept(p, document, wrong);
	return rc ? rc : placement_read_lists(p, document, wrong);
}

int placement_read(struct placement *p, json_t *document, const char *source, struct iocom_err *err)
{
	const char *wrong = "";
	int rc;

	placement_init(p);
	if (!json_is_object(document))
		return iocom_err_set(err, -EPROTO, "%s is not an object", source);
	p->document = json_incref(document);
	rc = placement_read_all(p, document, &wrong);
	p->placed = json_object_get(document, "port") != NULL;
	p->view = json_incref(json_object_get(document, "view"));
	if (rc == -ENOMEM)
		return iocom_err_set(err, rc, "out of memory");
	return rc ? iocom_err_set(err, rc, "%s has no usable '%s'", source, wrong) : 0;
}

json_t *placement_public(const struct placement *p)
{
	json_t *out = json_copy(p->document); /* shallow */

	for (size_t i = 0; out && i < placement_running.count; i++)
		if (placement_running.rows[i].when == PLACEMENT_SECRET)
			json_object_del(out, placement_running.rows[i].key);
	if (out && p->gang && json_object_set_new(out, "gang", gang_answer_json(p->gang, false))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *placement_take_view(struct placement *p)
{
	json_t *view = p->view;

	p->view = NULL;
	json_object_del(p->document, "view");
	return view;
}
