/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The answer and the row of a placement, written; see placement.h. */
#include "balancer/view/placement_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/vector_codec.h"

#define M(key, shape, when, member)                                                                \
	{                                                                                          \
		key, PLACEMENT_##shape, PLACEMENT_##when, offsetof(struct placement, member)       \
	}
#define PART(rows)                                                                                 \
	{                                                                                          \
		rows, sizeof(rows) / sizeof(*(rows))                                               \
	}

static const struct placement_member decided[] = {
	M("policy", STRING, ALWAYS, policy),  M("home", STRING, ALWAYS, home),
	M("forced", BOOLEAN, ALWAYS, forced), M("learned", STRING, GIVEN, learned),
	M("light", STRING, GIVEN, light),
};

static const struct placement_member drawn[] = {
	M("seed", NUMBER, ALWAYS, seed),
};

static const struct placement_member running[] = {
	M("job", STRING, GIVEN, job),
	M("node", STRING, ALWAYS, node),
	M("address", STRING, PLACED, address),
	M("port", NUMBER, PLACED, port),
	M("cwd", STRING, GIVEN, directory),
	M("attempt", NUMBER, LEASED, attempt),
	M("restarts", NUMBER, LEASED, restarts),
	M("first", STRING, LEASED, first),
	M("lease_ms", NUMBER, LEASED, lease_ms),
	M("failed", BOOLEAN, GIVEN, failed),
	M("nonce", STRING, SECRET, nonce),
	M("key", STRING, SECRET, key),
	M("munge_socket", STRING, SECRET, munge_socket),
	M("begun", BOOLEAN, GIVEN, begun),
};

static const struct placement_member waiting[] = {
	M("wait_ms", NUMBER, ALWAYS, lost.wait_ms),
	M("silent", STRING, GIVEN, lost.silent),
	M("lease_ms", NUMBER, GIVEN, lost.lease_ms),
};

static const struct placement_member ended[] = {
	M("state", STRING, ALWAYS, lost.state),
	M("kind", NUMBER, ALWAYS, lost.kind),
	M("value", NUMBER, ALWAYS, lost.value),
};

const struct placement_part placement_decided = PART(decided);
const struct placement_part placement_drawn = PART(drawn);
const struct placement_part placement_running = PART(running);
const struct placement_part placement_waiting = PART(waiting);
const struct placement_part placement_ended = PART(ended);

void placement_init(struct placement *p)
{
	memset(p, 0, sizeof(*p));
	placement_ask_init(&p->ask);
	need_init(&p->need);
	plan_record_fini(&p->plan);
	p->policy = p->home = p->node = p->job = p->address = p->directory = p->first = "";
	p->learned = p->light = "";
	p->nonce = p->key = p->munge_socket = p->lost.silent = p->lost.state = "";
}

void placement_fini(struct placement *p)
{
	plan_record_fini(&p->plan);
	gang_answer_free(p->gang);
	json_decref(p->refusals);
	json_decref(p->view);
	json_decref(p->document);
	free(p->refused);
	free(p->nodes);
	placement_init(p);
}

/*
 * --- what follows from the fields --------------------------------------------------------------
 */

size_t placement_known(const struct placement *p)
{
	return p->known ? p->known : p->nnodes;
}

double placement_wanted_mb(const struct placement *p)
{
	return p->need_given & 1u << NEED_MEMORY_MB ? p->need.value[NEED_MEMORY_MB] : 0;
}

bool placement_has_room(const struct placement *p, const struct iocom_vector *node)
{
	return node->memory_requested_mb + placement_wanted_mb(p) <= node->memory_mb;
}

bool placement_room_elsewhere(const struct placement *p)
{
	bool room = p->room_elsewhere;

	for (size_t i = 0; i < p->nnodes && !room; i++)
		room = !p->nodes[i].self && placement_has_room(p, &p->nodes[i].vector);
	return room;
}

static bool placement_listed(const char *const *names, size_t n, const char *name)
{
	bool found = false;

	for (size_t i = 0; i < n && !found; i++)
		found = !strcmp(names[i], name);
	return found;
}

/* Returns whether the decision or a refusal names the node. */
static bool placement_examined(const struct placement *p, const char *name)
{
	const struct plan_record *plan = &p->plan;
	bool found = !strcmp(name, p->home) || !strcmp(name, p->node) ||
		     !strcmp(name, plan->node) ||
		     placement_listed(plan->nodes, plan->nnodes, name) ||
		     placement_listed(plan->tied, plan->ntied, name) ||
		     placement_listed(plan->candidates, plan->ncandidates, name);

	for (size_t i = 0; i < plan->nreasons && !found; i++)
		found = !strcmp(plan->reasons[i].node, name);
	for (size_t i = 0; i < plan->nmoves && !found; i++)
		found = !strcmp(plan->moves[i].to, name);
	for (size_t i = 0; i < p->nrefused && !found; i++)
		found = !strcmp(p->refused[i].node, name);
	return found;
}

/* --- writing --------------------------------------------------------------------------- */

/* Takes VALUE; NULL counts as out of memory.  Returns 0 or -ENOMEM. */
static int placement_set(json_t *out, const char *key, json_t *value)
{
	return json_object_set_new(out, key, value) ? -ENOMEM : 0;
}

/* Leaves out a text that is not UTF-8: JSON cannot hold it. */
static int placement_set_text(json_t *out, const char *key, const char *text)
{
	json_t *value = json_string(text);

	if (value)
		return placement_set(out, key, value);
	value = json_string("");
	json_decref(value);
	return value ? 0 : -ENOMEM;
}

static bool placement_is_given(const struct placement_member *m, const void *at)
{
	switch (m->shape) {
	case PLACEMENT_STRING:
		return **(const char *const *)at != 0;
	case PLACEMENT_NUMBER:
		return *(const uint64_t *)at != 0;
	default:
		return *(const bool *)at;
	}
}

static int placement_write_member(const struct placement *p, const struct placement_member *m,
				  json_t *out)
{
	const void *at = (const char *)p + m->offset;

	switch (m->shape) {
	case PLACEMENT_STRING:
		return placement_set_text(out, m->key, *(const char *const *)at);
	case PLACEMENT_NUMBER:
		return placement_set(out, m->key,
				     json_integer((json_int_t) * (const uint64_t *)at));
	default:
		return placement_set(out, m->key, json_boolean(*(const bool *)at));
	}
}

static bool placement_wants(const struct placement *p, const struct placement_member *m,
			    enum placement_form form)
{
	switch (m->when) {
	case PLACEMENT_GIVEN:
		return placement_is_given(m, (const char *)p + m->offset);
	case PLACEMENT_PLACED:
		return p->placed;
	case PLACEMENT_LEASED:
		return p->placed && p->attempt > 0;
	case PLACEMENT_SECRET:
		return form != PLACEMENT_ROW && (*p->nonce || p->gang) &&
		       placement_is_given(m, (const char *)p + m->offset);
	default:
		return true;
	}
}

static int placement_write(const struct placement *p, const struct placement_part *part,
			   enum placement_form form, json_t *out)
{
	int rc = 0;

	for (size_t i = 0; i < part->count && !rc; i++)
		if (placement_wants(p, &part->rows[i], form))
			rc = placement_write_member(p, &part->rows[i], out);
	return rc;
}

static int placement_write_kept(const struct placement_ask *ask, json_t *out)
{
	int rc = 0;

	for (size_t i = 0; i < PLACEMENT_ASK_COUNT && !rc; i++) {
		const struct placement_field *f = &placement_ask_fields[i];
		const void *at = (const char *)ask + f->offset;

		if (f->answer != PLACEMENT_KEPT || !placement_given(ask, f))
			continue;
		if (f->kind == PLACEMENT_COUNT)
			rc = placement_set(out, f->key, json_integer(*(const int64_t *)at));
		else if (f->kind == PLACEMENT_FLAG)
			rc = placement_set(out, f->key, json_true());
		else
			rc = placement_set_text(out, f->key, at);
	}
	return rc;
}

static json_t *placement_node_json(const struct placement_node *n)
{
	json_t *out = json_object();

	if (!out || vector_json(&n->vector, out) ||
	    placement_set(out, "self", json_boolean(n->self)) ||
	    placement_set(out, "age_ms", json_real(n->age_ms)) ||
	    (n->doubt > 1 && placement_set(out, "doubt", json_real(n->doubt)))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/*
 * In a large cluster a row, and the answer to a client that runs a job, have the examined nodes and
 * a summary of the others' loads; an answer to a question has all nodes, or (brief) those of whose
 * vectors the sentences tell.
 */
static int placement_write_nodes(const struct placement *p, enum placement_form form, json_t *out)
{
	bool all = (form == PLACEMENT_ANSWER && !p->ask.run) || p->nnodes <= PLACEMENT_ROW_WHOLE;
	json_t *list = json_array();
	bool room = p->room_elsewhere;
	size_t known = placement_known(p);

	for (size_t i = 0; list && i < p->nnodes; i++) {
		const struct placement_node *n = &p->nodes[i];

		if (!all && !placement_examined(p, n->vector.name)) {
			room |= !n->self && placement_has_room(p, &n->vector);
			continue;
		}
		if (json_array_append_new(list, placement_node_json(n))) {
			json_decref(list);
			list = NULL;
		}
	}
	if (!list || json_array_size(list) == known)
		return placement_set(out, "nodes", list);
	return placement_set(out, "nodes", list) ||
			       placement_set(out, "nodes_known", json_integer((json_int_t)known)) ||
			       placement_set(out, "room_elsewhere", json_boolean(room))
		       ? -ENOMEM
		       : 0;
}

/* Writes need, plan, refused, expected and nodes. */
static int placement_write_lists(const struct placement *p, enum placement_form form, json_t *out)
{
	int rc = 0;

	if (p->need_given)
		rc = placement_set(out, "need", need_json(&p->need, p->need_given));
	if (!rc && p->plan.document)
		rc = placement_set(out, "plan", json_incref(p->plan.document));
	if (!rc)
		rc = placement_set(out, "refused",
				   p->refusals ? json_incref(p->refusals) : json_array());
	if (!rc && p->expectation.known)
		rc = placement_set(out, "expected", expectation_json(&p->expectation));
	return rc ? rc : placement_write_nodes(p, form, out);
}

static int placement_write_view(const struct placement *p, enum placement_form form, json_t *out)
{
	return p->view && form == PLACEMENT_ANSWER
		       ? placement_set(out, "view", json_incref(p->view))
		       : 0;
}

/* Writes what the decision rests on: all that `iocom explain` shows. */
static int placement_write_why(const struct placement *p, enum placement_form form, json_t *out)
{
	int rc = placement_write_lists(p, form, out);

	if (!rc)
		rc = placement_write(p, &placement_drawn, form, out);
	if (!rc)
		rc = placement_write_kept(&p->ask, out);
	return rc ? rc : placement_write_view(p, form, out);
}

static int placement_write_gang(const struct placement *p, enum placement_form form, json_t *out)
{
	return p->gang ? placement_set(out, "gang",
				       gang_answer_json(p->gang, form != PLACEMENT_ROW))
		       : 0;
}

json_t *placement_json(const struct placement *p, enum placement_form form)
{
	json_t *out = json_object();

	if (out && !placement_write(p, &placement_decided, form, out) &&
	    !placement_unmet_write(p, out) &&
	    (form == PLACEMENT_BEGUN || !placement_write_why(p, form, out)) &&
	    !placement_write(p, &placement_running, form, out) &&
	    !placement_write_gang(p, form, out))
		return out;
	json_decref(out);
	return NULL;
}

json_t *placement_lost_json(const struct placement_lost *lost)
{
	const struct placement p = {.lost = *lost};
	json_t *out = json_object(), *inside = out;
	int rc = out ? 0 : -ENOMEM;

	if (!rc && *lost->state) {
		inside = json_object();
		rc = placement_set(out, "ended", inside);
	}
	if (!rc)
		rc = placement_write(&p, *lost->state ? &placement_ended : &placement_waiting,
				     PLACEMENT_ANSWER, inside);
	if (!rc)
		return out;
	json_decref(out);
	return NULL;
}
