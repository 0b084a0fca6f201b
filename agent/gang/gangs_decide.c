/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where the tasks of a gang go: the rules (<iocom/gang.h>) over the nodes as this one knows them. A
 * node has room for
 *
 *   min(its free slots, or, with --oversubscribe, all tasks; per_node)
 *
 * of them, and for none if it has no slots at all, is not one of those that may be used, or has
 * refused this gang before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/matrix.h"
#include "agent/gang/gangs_own.h"
#include "balancer/view/gang_json.h"

bool gang_only_has(const char *text, const char *node)
{
	size_t length = strlen(node);

	if (!*text)
		return true;
	for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !memcmp(at, node, length))
			return true;
	return false;
}

int gang_try_talk(struct gang_try *t)
{
	struct place *p = &t->place;
	char key[PROFILE_CLASS_MAX];
	struct iocom_err err = {0};
	int rc;

	if (!*p->order.class_name || profile_talk_class(p->order.class_name, p->request.tasks, key))
		return 0;
	rc = profile_talk_get(p->home->profiles, p->order.uid, key, &t->talk, &err);
	if (rc == -ENOENT || !t->talk.n)
		return 0;
	if (rc) {
		base_journal_failed(t->gangs->base, &err);
		return 0; /* it is placed without */
	}
	t->pairs = calloc(t->talk.n, sizeof(*t->pairs));
	if (!t->pairs)
		return -ENOMEM;
	for (size_t i = 0; i < t->talk.n; i++) {
		const struct profile_pair *pair = &t->talk.pairs[i];

		if (pair->from >= p->request.tasks || pair->to >= p->request.tasks)
			continue;
		t->pairs[p->request.npairs++] = (struct rules_pair){.from = pair->from,
								    .to = pair->to,
								    .bytes = pair->bytes,
								    .messages = pair->messages};
	}
	p->request.pairs = t->pairs;
	return 0;
}

/* --- room -------------------------------------------------------------------------------- */

static bool gang_try_refused(const struct gang_try *t, const char *node)
{
	for (size_t i = 0; i < t->nrefused; i++)
		if (!strcmp(t->refused[i].node, node))
			return true;
	return false;
}

/* Whether NODE refused for another reason than its slots, which may be free soon. */
static bool gang_try_refused_for_good(const struct gang_try *t, const char *node)
{
	for (size_t i = 0; i < t->nrefused; i++)
		if (!t->refused[i].slots && !strcmp(t->refused[i].node, node))
			return true;
	return false;
}

/* Returns whether the node of V, number INDEX of the view, may be used, now or a moment later. */
static bool gang_try_might(const struct gang_try *t, const struct iocom_vector *v, uint32_t index)
{
	return v->slots && (!index || v->accepts_jobs) &&
	       gang_only_has(t->place.placement.ask.only, v->name) &&
	       !gang_try_refused_for_good(t, v->name);
}

/* The same for this decision. */
static bool gang_try_may(const struct gang_try *t, const struct iocom_vector *v, uint32_t index)
{
	return gang_try_might(t, v, index) && !gang_try_refused(t, v->name);
}

/* So many tasks may be where SLOTS are. */
static uint32_t gang_try_bound(const struct gang_try *t, uint32_t slots)
{
	const struct placement_ask *ask = &t->place.placement.ask;

	if (ask->oversubscribe || slots > ask->tasks)
		slots = (uint32_t)ask->tasks;

	return ask->per_node > 0 && ask->per_node < slots ? (uint32_t)ask->per_node : slots;
}

static struct rules_port *gang_try_ports(const struct gang_try *t)
{
	const struct cluster_view *view = t->place.home->view;
	const struct gangs_config *config = &t->gangs->config;
	uint32_t count = cluster_view_count(view);
	struct rules_port *ports = calloc(count, sizeof(*ports));

	for (uint32_t i = 0; ports && i < count; i++) {
		const struct iocom_vector *v = cluster_view_vector(view, i);

		ports[i].mb_per_s = v->network_mb_per_s;
		if (config->port)
			config->port(config->arg, v, &ports[i]);
		ports[i].slots = gang_try_may(t, v, i) ? gang_try_bound(t, v->slots_free) : 0;
	}
	return ports;
}

/* Checks that each name in "only" is a node's that is heard. */
static int gang_try_check_only(const struct gang_try *t, struct iocom_err *err)
{
	const char *only = t->place.placement.ask.only, *own = t->gangs->base->set->name;
	char node[IOCOM_NAME_MAX];

	for (const char *at = only; *at; at += strcspn(at, ","), at += *at == ',') {
		int length = (int)strcspn(at, ",");
		const struct matrix_entry *e;

		if (!length || length >= IOCOM_NAME_MAX)
			return iocom_err_set(err, -EINVAL, "'%.*s' is no node's name",
					     length < 80 ? length : 80, at);
		snprintf(node, sizeof(node), "%.*s", length, at);
		e = matrix_find(t->place.home->matrix, node);
		if (strcmp(node, own) != 0 && (!e || !e->alive))
			return iocom_err_set(err, -ENOENT,
					     "node '%s' is %s, so it cannot take tasks", node,
					     e ? "silent" : "unknown here");
	}
	return 0;
}

/* What a gang that does not fit has found. */
struct gang_room {
	uint32_t nodes, diskless;
	unsigned long long slots, all; /* free ones; and with those that are taken now */
};

static void gang_try_count(const struct gang_try *t, const struct rules_port *ports,
			   struct gang_room *room)
{
	const struct cluster_view *view = t->place.home->view;
	const struct rules_request *one = &t->place.request;
	bool does_io = one->requests > 0 || one->io_per_ms > 0;

	*room = (struct gang_room){0};
	for (uint32_t i = 0; i < cluster_view_count(view); i++) {
		const struct iocom_vector *v = cluster_view_vector(view, i);
		bool may = gang_try_may(t, v, i);

		room->nodes += may;
		room->diskless += may && i && does_io && !(v->disk_mb_per_s > 0);
		room->slots += ports[i].slots;
		room->all += gang_try_might(t, v, i) ? gang_try_bound(t, v->slots) : 0;
	}
}

/* What lacks where there are slots enough; "": slots do. */
static void gang_try_lacks(const struct gang_try *t, const struct gang_room *room, char *out,
			   size_t size)
{
	const struct place *p = &t->place;

	*out = 0;
	if (room->slots < p->request.tasks)
		return;
	if (p->policy.policy == RULES_BS) {
		snprintf(out, size,
			 ", but too few of them run nothing: bs gives each task a node of its own");
		return;
	}
	if (room->diskless)
		snprintf(out, size,
			 ", but %u of them ha%s no disk, and the tasks of this class use one",
			 room->diskless, room->diskless == 1 ? "s" : "ve");
	else
		snprintf(out, size, ", but no memory for them: a task needs %.0f MB%s",
			 p->request.memory_mb,
			 p->order.need.source[NEED_MEMORY_MB] == NEED_DEFAULT
				 ? " unless --mem says otherwise"
				 : "");
}

/* "16 tasks do not fit: 3 nodes have 12 free slots; see --oversubscribe". */
static int gang_try_too_many(struct gang_try *t, const struct rules_port *ports,
			     struct iocom_err *err)
{
	const struct placement_ask *ask = &t->place.placement.ask;
	char bound[64] = "", lacks[96];
	bool one = ask->tasks == 1;
	struct gang_room room;

	gang_try_count(t, ports, &room);
	gang_try_lacks(t, &room, lacks, sizeof(lacks));
	t->crowded = room.slots < t->place.request.tasks && room.all >= t->place.request.tasks;
	if (!room.nodes)
		return iocom_err_set(err, -ERANGE, "%lld task%s do%s not fit: no node takes %s%s%s",
				     (long long)ask->tasks, one ? "" : "s", one ? "es" : "",
				     one ? "it" : "them", *t->why ? "; " : "", t->why);
	if (ask->per_node > 0)
		snprintf(bound, sizeof(bound), " at no more than %lld a node",
			 (long long)ask->per_node);
	return iocom_err_set(err, -ERANGE,
			     "%lld task%s do%s not fit: %u node%s ha%s %llu%s slot%s%s%s%s%s%s",
			     (long long)ask->tasks, one ? "" : "s", one ? "es" : "", room.nodes,
			     room.nodes == 1 ? "" : "s", room.nodes == 1 ? "s" : "ve", room.slots,
			     ask->oversubscribe ? "" : " free", room.slots == 1 ? "" : "s", bound,
			     lacks, ask->oversubscribe || *lacks ? "" : "; see --oversubscribe",
			     *t->why ? "; " : "", t->why);
}

/* --- the decision -------------------------------------------------------------------------- */

static const char *gang_decide_name(const void *view, uint32_t node)
{
	return cluster_view_vector(view, node)->name;
}

/* What an earlier decision on the same gang left. */
static void gang_try_reset(struct gang_try *t)
{
	struct placement *a = &t->place.placement;

	plan_record_fini(&a->plan);
	free(a->nodes);
	a->nodes = NULL;
	a->nnodes = 0;
	a->nunmet = 0;
	json_decref(a->view);
	a->view = NULL;
	gang_answer_free(a->gang);
	a->gang = NULL;
}

static int gang_try_name_parts(struct gang_try *t, const uint32_t *nodes, struct iocom_err *err)
{
	const struct place *p = &t->place;
	struct gang_answer *g = p->placement.gang;

	snprintf(g->job, sizeof(g->job), "%s", p->order.job);
	for (uint32_t i = 0; i < g->nparts; i++) {
		const struct iocom_vector *v = cluster_view_vector(p->home->view, nodes[i]);
		struct gang_part *part = &g->parts[i];

		snprintf(part->node, sizeof(part->node), "%s", v->name);
		if (nodes[i]) {
			snprintf(part->address, sizeof(part->address), "%s", v->address);
			part->port = (uint16_t)(v->port + 2);
		}
		if (gang_part_name(p->order.job, i, part->job))
			return iocom_err_set(
				err, -ENAMETOOLONG,
				"the name of this node is too long for a gang's parts");
	}
	return 0;
}

static int gang_try_fill(struct gang_try *t, const struct view_decision *d, uint64_t now,
			 struct iocom_err *err)
{
	struct place *p = &t->place;
	uint32_t *nodes = NULL;
	int rc;

	if (!*p->order.job)
		place_name(p);
	rc = place_answer(p, d, now, err);
	if (rc)
		return rc;
	p->placement.gang = gang_answer_new(d->nodes, p->request.tasks,
					    cluster_view_count(p->home->view), &nodes);
	if (!p->placement.gang)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	p->placement.gang->why = gang_json(&d->gang, gang_decide_name, p->home->view);
	p->placement.expectation = (struct rules_expectation){0};
	if (need_is_known(&p->order.need))
		p->placement.expectation = (struct rules_expectation){
			.known = true,
			.there_ms = d->gang.chosen.response_ms,
			/* What home alone would take is not compared: nothing is gained or lost. */
			.home_ms = d->gang.chosen.response_ms,
			.there_factor = 1,
			.home_factor = 1};
	rc = p->placement.gang->nparts > GANG_PARTS_MAX
		     ? iocom_err_set(err, -E2BIG, "a gang is on at most %d nodes", GANG_PARTS_MAX)
		     : gang_try_name_parts(t, nodes, err);
	free(nodes);
	return rc;
}

int gang_try_decide(struct gang_try *t, struct iocom_err *err)
{
	struct place *p = &t->place;
	struct home *home = p->home;
	uint64_t now = loop_boot_ns(home->base->loop);
	struct view_decision decision = {0};
	struct rules_port *ports;
	int rc = gang_try_check_only(t, err);

	if (rc)
		return rc;
	gang_try_reset(t);
	t->crowded = false;
	rc = place_look(p, now, err);
	if (rc)
		return rc;
	ports = gang_try_ports(t);
	if (!ports)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = cluster_view_decide_gang(home->view, &p->policy, &p->request, ports, p->seed,
				      &decision, err);
	if (rc == -ERANGE)
		rc = gang_try_too_many(t, ports, err);
	else if (!rc)
		rc = gang_try_fill(t, &decision, now, err);
	if (!rc && !t->rounds) /* a recording has the first decision, as of any job */
		home_tell_decided(home, &(struct home_decision){.order = &p->order,
								.request = &p->request,
								.view = home->view,
								.seed = p->seed,
								.decision = &decision,
								.run = p->placement.ask.run,
								.ports = ports});
	view_decision_fini(&decision);
	free(ports);
	return rc;
}
