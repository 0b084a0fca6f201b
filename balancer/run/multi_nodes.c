/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Chooses the nodes of `iocom run -N`; see multi.h. */
#include "balancer/run/multi.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/client.h"
#include "balancer/listing.h"
#include "user/pack.h"
#include "balancer/view/view_decide.h"

/* --- all ------------------------------------------------------------------------ */

static int no_memory(struct iocom_err *err)
{
	return iocom_err_set(err, -ENOMEM, "out of memory for the list of nodes");
}

static int multi_nodes_take_all(const char *name, const json_t *answer, struct nodelist *out,
				struct iocom_err *err)
{
	const json_t *node;
	size_t i;

	json_array_foreach (json_object_get(answer, "nodes"), i, node) {
		const char *is = listing_string(node, "name");

		if (!json_is_true(json_object_get(node, "accepts_jobs")))
			fprintf(stderr, "%s: %s is left out: its owner lets no jobs in\n", name,
				is);
		else if (nodelist_add(out, is))
			return no_memory(err);
	}
	json_array_foreach (json_object_get(answer, "dropped"), i, node)
		fprintf(stderr, "%s: %s is left out: %s\n", name, listing_string(node, "name"),
			listing_string(node, "reason"));
	if (!out->count)
		return iocom_err_set(err, -ENOENT, "no node lets jobs in");
	nodelist_sort(out);
	return 0;
}

static int find_all(const char *name, const struct placement_request *ask, struct nodelist *out,
		    struct iocom_err *err)
{
	json_t *answer = NULL;
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", "nodes");
	pack_u64(&pk, "v", 1);
	rc = client_ask(ask->run_dir, &buffer, &answer, err);
	if (!rc)
		rc = multi_nodes_take_all(name, answer, out, err);
	json_decref(answer);
	return rc;
}

/* --- the best K ------------------------------------------------------------------- */

/* Tasks, with one more, for the speed of the node's processors. */
static double multi_nodes_crowded(const struct rules_node *n)
{
	double tasks = n->has_measured ? n->measured.cpu_queue : n->advertised.cpu;

	return (tasks + 1) / (n->cores * n->cpu_mips);
}

/*
 * Removes node INDEX.  If it was home, the least crowded of the others stands in for it: a policy
 * that finds home good enough looks no further.
 */
static void multi_nodes_remove(struct view_file *view, uint32_t index)
{
	bool was_home = index == view->home;

	view_file_remove(view, index);
	for (uint32_t i = 0; was_home && i < view->nnodes; i++)
		if (multi_nodes_crowded(&view->nodes[i].node) <
		    multi_nodes_crowded(&view->nodes[view->home].node))
			view->home = i;
}

/*
 * Adds the policy's choice to OUT and removes it from the view, so that the next call finds
 * another.
 */
static int take_next(struct view_file *view, const struct view_policy *policy, struct nodelist *out,
		     struct iocom_err *err)
{
	struct view_decision decision;
	uint32_t index;
	int rc = view_decide(view, policy, &decision, err);

	if (rc)
		return rc;
	index = decision.plan.node;
	view_decision_fini(&decision);
	if (index >= view->nnodes)
		return iocom_err_set(err, -EPROTO, "the policy chose a node that does not exist");
	if (nodelist_add(out, view->nodes[index].node.name))
		return no_memory(err);
	multi_nodes_remove(view, index);
	return 0;
}

static int take_best(struct view_file *view, const char *policy_name, unsigned long count,
		     struct nodelist *out, struct nodelist *spares, struct iocom_err *err)
{
	struct view_policy policy;
	int rc = view_policy_parse(policy_name, &policy, err);

	/* Policies fall back on home: remove closed nodes, home too, so that none gets chosen. */
	for (uint32_t i = view->nnodes; i-- > 0;)
		if (!view->nodes[i].node.accepts)
			multi_nodes_remove(view, i);
	if (!rc && count > view->nnodes)
		return iocom_err_set(
			err, -ENOENT,
			"%lu nodes are asked for, but only %u are alive and let jobs in", count,
			view->nnodes);
	while (!rc && out->count < count)
		rc = take_next(view, &policy, out, err);
	/* Only a node itself knows which users it lets in: spares replace those that refuse. */
	while (!rc && view->nnodes && spares->count < MULTI_SPARES_MAX)
		rc = take_next(view, &policy, spares, err);
	return rc;
}

static int find_best(const struct placement_request *asked, unsigned long count, const char *cwd,
		     const char *executable, char *const *command, struct nodelist *out,
		     struct nodelist *spares, struct iocom_err *err)
{
	struct placement_request request = *asked;
	struct placement answer;
	struct view_file view;
	char *text;
	int rc;

	request.ask.view = true;
	rc = placement_request_ask(&request, false, cwd, executable, command, &answer, err);
	if (!rc) {
		text = json_dumps(answer.view, JSON_COMPACT);
		rc = text ? view_file_decode("the agent's view", text, strlen(text), &view, err)
			  : iocom_err_set(err, -EPROTO, "the agent does not tell its view");
		free(text);
	}
	if (!rc) {
		rc = take_best(&view, answer.policy, count, out, spares, err);
		view_file_fini(&view);
	}
	placement_fini(&answer);
	return rc;
}

/* Returns the number in TEXT; -1: it is none. */
static long multi_nodes_count_of(const char *text)
{
	char *end;
	unsigned long count;

	if (!isdigit((unsigned char)*text))
		return -1;
	count = strtoul(text, &end, 10);
	return *end ? -1 : count > NODELIST_MAX ? 0 : (long)count;
}

bool multi_picks(const char *text)
{
	return !strcmp(text, "all") || multi_nodes_count_of(text) >= 0;
}

int multi_nodes(const char *name, const char *text, const struct placement_request *ask,
		const char *cwd, const char *executable, char *const *command, struct nodelist *out,
		struct nodelist *spares, struct iocom_err *err)
{
	long count = multi_nodes_count_of(text);

	if (count < 0)
		return !strcmp(text, "all") ? find_all(name, ask, out, err)
					    : nodelist_parse(text, out, err);
	if (count < 1)
		return iocom_err_set(err, -EINVAL, "-N takes 1 to %d nodes, not '%s'", NODELIST_MAX,
				     text);
	return find_best(ask, (unsigned long)count, cwd, executable, command, out, spares, err);
}
