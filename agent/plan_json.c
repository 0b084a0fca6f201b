/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A plan for people and programs; see plan_json.h. */
#include "plan_json.h"

static json_t *reason(const struct rules_reason *r, const struct rules_view *view)
{
	return json_pack("{s:s,s:s,s:s,s:f,s:f,s:s,s:s,s:b,s:s}", "criterion",
			 rules_criterion_name(r->criterion), "source",
			 rules_criterion_source(r->criterion), "node",
			 rules_view_name(view, r->node), "left", r->left, "right", r->right, "unit",
			 rules_criterion_unit(r->criterion, RULES_RATES_WALL), "relation",
			 rules_criterion_relation(r->criterion), "holds", r->holds, "text",
			 rules_criterion_text(r->criterion));
}

static json_t *names(const uint32_t *list, uint32_t n, const struct rules_view *view)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(out, json_string(rules_view_name(view, list[i])));
	return out;
}

json_t *plan_json(const struct rules_plan *plan, const struct rules_view *view, uint32_t home,
		  enum rules_policy policy)
{
	const uint32_t shown = sizeof(plan->tied) / sizeof(*plan->tied);
	json_t *reasons = json_array(), *refused = json_object();

	for (uint32_t i = 0; i < plan->nreasons; i++)
		json_array_append_new(reasons, reason(&plan->reasons[i], view));
	for (int i = 0; i < RULES_CRITERIA; i++)
		if (plan->refused[i])
			json_object_set_new(refused, rules_criterion_name((enum rules_criterion)i),
					    json_integer(plan->refused[i]));
	return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "policy",
			 rules_policy_name(policy), "home", rules_view_name(view, home), "node",
			 rules_view_name(view, plan->node), "nodes", names(&plan->node, 1, view),
			 "tied", names(plan->tied, plan->ntied < shown ? plan->ntied : shown, view),
			 "migrate", json_array(), "candidates",
			 names(plan->candidates, plan->ncandidates, view), "refused_counts",
			 refused, "reasons", reasons);
}
