/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a submission asks for: policy, node, need, restarts; see place.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/home/place.h"
#include "balancer/profile/profile_talk.h"
#include "user/shared_fs.h"

_Static_assert(PLACEMENT_JOB_MAX == SPEC_JOB_MAX && PLACEMENT_RESTARTS_MAX == LEASE_RESTARTS_MAX,
	       "a request's bounds are those of jobs");

/* The decision's policy says what it would do; of a job whose node was named, it chose nothing. */
static int take_policy(struct place *p, struct iocom_err *err)
{
	const struct placement_ask *ask = &p->placement.ask;
	const struct settings *set = p->home->base->set;
	int rc = settings_policy(*ask->policy ? ask->policy : set->policy, set->feedback.mode,
				 &p->policy, err);

	if (!rc)
		snprintf(p->order.policy, sizeof(p->order.policy), "%s",
			 *ask->node && !ask->picked ? "node" : p->policy.name);
	return rc;
}

/* Checks that the requested node can be asked. */
static int place_request_check_node(const struct place *p, struct iocom_err *err)
{
	const char *node = p->placement.ask.node;
	const struct home *home = p->home;
	const struct matrix_entry *e;
	char known[600] = "", why[PEER_TEXT_MAX], silent[128] = "unknown here";

	if (!*node || !strcmp(node, home->base->set->name))
		return 0;
	e = matrix_find(home->matrix, node);
	if ((e && e->alive) || *p->placement.ask.again) /* the job may come back: not_again */
		return 0;
	for (size_t i = 0; i < home->matrix->count; i++) {
		size_t n = strlen(known);

		if (matrix_at(home->matrix, i)->alive)
			snprintf(known + n, sizeof(known) - n, ", %s",
				 matrix_at(home->matrix, i)->vector.name);
	}
	/* Without munged every node looks silent, but the fault is on this node. */
	if (home->ports->mute(home->ports->arg))
		return iocom_err_set(err, -EHOSTDOWN,
				     "node '%s' is not heard: munged does not answer on this "
				     "machine, and without it no other machine is believed; start "
				     "it (systemctl start munge)",
				     node);
	if (skews_say(home->skews, node, loop_boot_ns(home->base->loop), why, sizeof(why)))
		return iocom_err_set(err, -ENOENT, "node '%s' is not believed: %s", node, why);
	if (e && e->left)
		snprintf(silent, sizeof(silent),
			 "not heard since its agent said, %.0f s ago, that it stops (is iocomd "
			 "running there?)",
			 (double)matrix_age_ns(e, loop_boot_ns(home->base->loop)) / 1e9);
	else if (e)
		snprintf(silent, sizeof(silent),
			 "silent for %.0f s: it is down or cut off (is iocomd running there?)",
			 (double)matrix_age_ns(e, loop_boot_ns(home->base->loop)) / 1e9);
	return iocom_err_set(err, -ENOENT, "node '%s' is %s; known nodes: %s%s", node, silent,
			     home->base->set->name, known);
}

/* The place of a node in the view, which is that of home's own name, too. */
static uint32_t place_request_index(const void *arg, const char *node)
{
	const struct home *home = arg;
	const struct matrix_entry *e = matrix_find(home->matrix, node);

	if (!strcmp(node, home->base->set->name))
		return 0;
	return e && e->view_index ? e->view_index : UINT32_MAX;
}

/* Takes what earlier predictions for the class were off by, and which nodes are not believed. */
static void take_corrections(struct place *p, struct iocom_err *err)
{
	struct home *home = p->home;

	if (outcomes_correct(home->outcomes, p->order.uid, p->order.class_name, place_request_index,
			     home, &p->factors, err))
		base_journal_failed(home->base, err);
	p->request.corrections = p->factors.at;
	p->request.ncorrections = p->factors.count;
	p->request.correction = p->factors.others;
}

static int held_by_node(const void *a, const void *b)
{
	const struct rules_held *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

/*
 * Takes which nodes have how much, from LEAST on in the view, out of TEXT ("NODE=BYTES,...").  What
 * is no node of the view, or named again, does not count.  Returns their number.
 */
static size_t place_take_held(const struct place *p, const char *text, uint32_t least,
			      struct rules_held out[PLACE_HELD])
{
	char node[IOCOM_NAME_MAX];
	size_t n = 0, kept = 0;
	double mb;

	while (n < PLACE_HELD && placement_held_next(&text, node, &mb)) {
		uint32_t index = place_request_index(p->home, node);

		if (index != UINT32_MAX && index >= least)
			out[n++] = (struct rules_held){.node = index, .mb = mb};
	}
	qsort(out, n, sizeof(*out), held_by_node);
	for (size_t i = 0; i < n; i++)
		if (!kept || out[kept - 1].node != out[i].node)
			out[kept++] = out[i];
	return kept;
}

/*
 * Takes which nodes have how much of the job's data.  Its user says so, and nobody else's decision
 * looks at it.
 */
static void take_data_held(struct place *p)
{
	p->request.held = p->held;
	p->request.nheld = place_take_held(p, p->placement.ask.data_held, 1, p->held);
}

/* The place in the view of the node that has ADDRESS; UINT32_MAX: none has. */
static uint32_t place_request_at(const struct home *home, const char *address)
{
	const struct settings *set = home->base->set;

	if (!strcmp(address, SHARED_FS_HERE) || !strcmp(address, set->address))
		return 0;
	for (size_t i = 0; i < home->matrix->count; i++) {
		const struct matrix_entry *e = matrix_at(home->matrix, i);

		if (e->view_index && !strcmp(address, e->vector.address))
			return e->view_index;
	}
	return place_request_index(home, address);
}

/*
 * Takes whose disk serves the shared file system of the job's directory, and whose page caches have
 * some of what it reads there.  In the answer the server has its node's name.
 */
static void take_shared(struct place *p)
{
	char *server = p->placement.ask.shared_server;
	struct rules_shared *s = &p->request.shared;
	uint32_t at = *server ? place_request_at(p->home, server) : UINT32_MAX;

	s->served = at != UINT32_MAX;
	s->server = s->served ? at : 0;
	if (s->served)
		snprintf(server, IOCOM_NAME_MAX, "%s",
			 cluster_view_vector(p->home->view, at)->name);
	s->cached = p->cached;
	s->ncached = place_take_held(p, p->placement.ask.shared_cached, 0, p->cached);
}

/* Makes the rules' form of the need, without what else the decision knows. */
static void place_request_need(struct place *p)
{
	need_request(&p->order.need, &p->request);
	if (p->placement.ask.bring_bytes > 0)
		p->request.output_mb = (double)p->placement.ask.bring_bytes / 1e6;
	take_data_held(p);
	take_shared(p);
}

static void take_need(struct place *p, struct iocom_err *err)
{
	place_take_class(p, err);
	place_request_need(p);
	take_corrections(p, err);
}

/* Fills the order for the guest. */
static void take_order(struct place *p, uid_t uid)
{
	const struct placement_ask *ask = &p->placement.ask;
	const struct base *base = p->home->base;
	struct job_order *o = &p->order;

	snprintf(o->cwd, sizeof(o->cwd), "%s", ask->cwd);
	snprintf(o->executable, sizeof(o->executable), "%s", ask->executable);
	snprintf(o->class_name, sizeof(o->class_name), "%s", ask->class_name);
	snprintf(o->command, sizeof(o->command), "%.255s",
		 *ask->command ? ask->command : ask->executable);
	snprintf(o->home, sizeof(o->home), "%s", base->set->name);
	snprintf(o->home_address, sizeof(o->home_address), "%s", base->set->address);
	o->home_port = (uint16_t)base->set->port;
	o->uid = uid;
	o->submit_ns = loop_real_ns(base->loop);
	o->forced = *ask->node != 0;
	o->data = ask->data;
	snprintf(o->shared, sizeof(o->shared), "%s", ask->shared);
	o->durable = ask->detach || *ask->again;
}

/* What the class's runs with so many tasks needed together, each task needs its part of. */
static void need_of_task(struct need *need, double tasks)
{
	static const enum need_field parted[] = {NEED_REQUESTS,	      NEED_MEMORY_MB,
						 NEED_CPU_S,	      NEED_COM_MS,
						 NEED_SHARED_READ_MB, NEED_SHARED_WRITTEN_MB};

	for (size_t i = 0; i < sizeof(parted) / sizeof(*parted); i++)
		if (need->source[parted[i]] == NEED_PROFILE || need->source[parted[i]] == NEED_SET)
			need->value[parted[i]] /= tasks;
}

/* A gang is of the class "CLASS@TASKS"; what is told or guessed is of one task. */
static void take_need_of_gang(struct place *p, struct iocom_err *err)
{
	struct job_order *o = &p->order;
	uint32_t tasks = (uint32_t)p->placement.ask.tasks;
	char plain[sizeof(o->class_name)];

	memcpy(plain, o->class_name, sizeof(plain));
	if (!*plain || profile_talk_class(plain, tasks, o->class_name))
		*o->class_name = 0;
	place_take_class(p, err);
	need_of_task(&o->need, tasks);
	place_request_need(p);
	take_corrections(p, err);
	memcpy(o->class_name, plain, sizeof(plain));
	p->request.tasks = tasks;
	p->request.com_ms = NULL; /* who sends how much to whom tells more */
}

int place_take_request(struct place *p, const msgpack_object *req, uid_t uid, struct iocom_err *err)
{
	const struct placement_ask *ask = &p->placement.ask;
	int rc = placement_ask_unpack(&p->placement.ask, req, err);

	if (!rc)
		rc = take_policy(p, err);
	if (!rc)
		rc = place_request_check_node(p, err);
	if (rc)
		return rc;
	if (!*ask->cwd || !*ask->executable)
		return iocom_err_set(err, -EINVAL, "the request lacks \"cwd\" or \"executable\"");
	if (*ask->again && ask->restarts < 0)
		return iocom_err_set(err, -EINVAL, "\"again\" without \"restarts\"");
	take_order(p, uid);
	if (ask->tasks > 0)
		take_need_of_gang(p, err);
	else
		take_need(p, err);
	return 0;
}
