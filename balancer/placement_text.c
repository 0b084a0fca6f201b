/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placement answer for people; see placement_text.h. */
#include "balancer/placement_text.h"

#include <string.h>

#include "balancer/listing.h"

static const char *chosen(const json_t *placement)
{
	const char *node = listing_string(placement, "node");

	return *node ? node : listing_string(json_object_get(placement, "plan"), "node");
}

static const json_t *reasons_of(const json_t *placement)
{
	return json_object_get(json_object_get(placement, "plan"), "reasons");
}

/* The last reason that judged NODE and has two sides: the one that decided. */
static const json_t *deciding(const json_t *placement, const char *node)
{
	const json_t *found = NULL;
	size_t i;
	json_t *r;

	json_array_foreach (reasons_of(placement), i, r)
		if (!strcmp(listing_string(r, "node"), node) && *listing_string(r, "relation"))
			found = r;
	return found;
}

/* True when a test says that home has too much of something. */
static bool placement_text_overloaded(const json_t *placement)
{
	size_t i;
	json_t *r;

	json_array_foreach (reasons_of(placement), i, r)
		if (strstr(listing_string(r, "criterion"), "-overloaded") &&
		    json_is_true(json_object_get(r, "holds")))
			return true;
	return false;
}

/* True when a test asked whether home has too much of something. */
static bool asked_overload(const json_t *placement)
{
	size_t i;
	json_t *r;

	json_array_foreach (reasons_of(placement), i, r)
		if (strstr(listing_string(r, "criterion"), "-overloaded"))
			return true;
	return false;
}

static void reason_numbers(const json_t *r, FILE *out)
{
	char left[32], right[32];

	listing_quantity(left, sizeof(left), listing_number(r, "left"));
	listing_quantity(right, sizeof(right), listing_number(r, "right"));
	fprintf(out, "%s %s %s %s", left, listing_string(r, "relation"), right,
		listing_string(r, "unit"));
}

static double wanted_mb(const json_t *placement)
{
	const json_t *need = json_object_get(placement, "need");

	return listing_number(json_object_get(need, "memory_mb"), "value");
}

/* By the vector N. */
static bool placement_text_has_room(const json_t *placement, const json_t *n)
{
	return listing_number(n, "memory_requested_mb") + wanted_mb(placement) <=
	       listing_number(n, "memory_mb");
}

/*
 * True when memory decided, and no other node has the room.  The reasons do not tell it of
 * each: those that cannot win are not all judged.
 */
static bool fits_nowhere_else(const json_t *placement)
{
	bool memory = false;
	size_t i;
	json_t *o;

	json_array_foreach (reasons_of(placement), i, o)
		memory |= !strncmp(listing_string(o, "criterion"), "mem-", 4);
	json_array_foreach (json_object_get(placement, "nodes"), i, o)
		if (!json_is_true(json_object_get(o, "self")) &&
		    placement_text_has_room(placement, o))
			return false;
	return memory && wanted_mb(placement) > 0;
}

static bool is_queued(const json_t *placement)
{
	return json_is_true(json_object_get(json_object_get(placement, "plan"), "queued"));
}

/* A view has a batch system's queue; an agent has none. */
static void queued_sentence(const json_t *placement, FILE *out)
{
	const char *policy = listing_string(placement, "policy");

	if (!json_object_get(placement, "refused"))
		fprintf(out, "%s makes it wait: not enough nodes are free for its tasks.", policy);
	else
		fprintf(out,
			"%s would make it wait, for not enough nodes are free; there is no queue: "
			"it runs at home, on %s.",
			policy, listing_string(placement, "home"));
}

/* With the reason of the node that was asked first; `iocom explain` has all. */
static void kept_by_refusal(const json_t *placement, FILE *out)
{
	const json_t *first = json_array_get(json_object_get(placement, "refused"), 0);
	const char *text = listing_string(first, "text");

	fprintf(out, "%s keeps it at home, on %s: the nodes it chose refused (%s: %s%s%s).",
		listing_string(placement, "policy"), listing_string(placement, "home"),
		listing_string(first, "node"), listing_string(first, "reason"), *text ? ": " : "",
		text);
}

/* What was decided, by whom, in one sentence. */
static void sentence(const json_t *placement, FILE *out)
{
	const char *node = chosen(placement), *home = listing_string(placement, "home");
	const char *policy = listing_string(placement, "policy");
	const char *planned = listing_string(json_object_get(placement, "plan"), "node");
	size_t nodes = json_array_size(json_object_get(placement, "nodes"));

	if (json_is_true(json_object_get(placement, "picked")))
		fprintf(out, "-N chose %s; %s alone would have taken %s.", node, policy, planned);
	else if (json_is_true(json_object_get(placement, "forced")))
		fprintf(out, "You asked for %s; %s would have taken %s.", node, policy, planned);
	else if (is_queued(placement))
		queued_sentence(placement, out);
	else if (json_is_true(json_object_get(placement, "failed")) && strcmp(planned, home))
		fprintf(out, "%s chose %s, and no node took it.", policy, planned);
	else if (strcmp(node, home))
		fprintf(out, "%s sends it from %s to %s.", policy, home, node);
	else if (!strcmp(policy, "nlb"))
		fprintf(out, "nlb never moves a job: it runs at home, on %s.", home);
	else if (nodes == 1)
		fprintf(out, "%s keeps it at home, on %s: no other node is known.", policy, home);
	else if (json_array_size(json_object_get(placement, "refused")) && strcmp(planned, home))
		kept_by_refusal(placement, out);
	else if (fits_nowhere_else(placement))
		fprintf(out, "%s keeps it at home, on %s: no other node has room for its memory.",
			policy, home);
	else if (placement_text_overloaded(placement))
		fprintf(out,
			"%s keeps it at home, on %s: home is overloaded, but no other node is "
			"better.",
			policy, home);
	else if (asked_overload(placement))
		fprintf(out, "%s keeps it at home, on %s: home is not overloaded.", policy, home);
	else
		fprintf(out, "%s keeps it at home, on %s.", policy, home);
}

void placement_text_line(const json_t *placement, FILE *out)
{
	const json_t *r = deciding(placement, chosen(placement));

	sentence(placement, out);
	if (r && !is_queued(placement) && !json_is_true(json_object_get(placement, "forced"))) {
		fprintf(out, " %s: ", listing_string(r, "criterion"));
		reason_numbers(r, out);
		fprintf(out, " %s.",
			json_is_true(json_object_get(r, "holds")) ? "holds" : "does not hold");
	}
	fputc('\n', out);
}

/* Where each task of a parallel job runs: "n1 2, n3 1". */
static void print_tasks(const json_t *placement, FILE *out)
{
	const json_t *list = json_object_get(json_object_get(placement, "plan"), "nodes");
	json_t *counts;
	const char *name;
	const char *gap = "";
	size_t i;
	json_t *node, *n;

	if (json_array_size(list) < 2)
		return;
	counts = json_object();
	json_array_foreach (list, i, node)
		json_object_set_new(counts, json_string_value(node),
				    json_integer(1 + json_integer_value(json_object_get(
							     counts, json_string_value(node)))));
	fprintf(out, "Its %zu tasks run on: ", json_array_size(list));
	json_object_foreach (counts, name, n) {
		fprintf(out, "%s%s (%" JSON_INTEGER_FORMAT ")", gap, name, json_integer_value(n));
		gap = ", ";
	}
	fputc('\n', out);
	json_decref(counts);
}

/* Equals among which the seed picked, and running tasks that should now move. */
static void print_more(const json_t *placement, FILE *out)
{
	const json_t *plan = json_object_get(placement, "plan");
	const json_t *tied = json_object_get(plan, "tied");
	size_t i;
	json_t *item;

	if (json_array_size(tied) > 1) {
		fprintf(out, "As good, the seed picked among them:");
		json_array_foreach (tied, i, item)
			fprintf(out, " %s", json_string_value(item));
		fputc('\n', out);
	}
	json_array_foreach (json_object_get(plan, "migrate"), i, item)
		fprintf(out, "Then task %.0f of %s should move to %s.\n",
			listing_number(item, "task"), listing_string(item, "node"),
			listing_string(item, "to"));
}

static void print_need(const json_t *placement, FILE *out)
{
	const json_t *need = json_object_get(placement, "need");
	const char *key;
	char value[32];
	json_t *field;

	if (!json_object_size(need))
		return;
	fprintf(out, "The job needs:\n");
	json_object_foreach ((json_t *)need, key, field) {
		if (!json_is_object(field))
			continue;
		listing_quantity(value, sizeof(value), listing_number(field, "value"));
		fprintf(out, "  %-14s %12s  from %s\n", key, value,
			listing_string(field, "source"));
	}
}

static void reason_row(struct listing *l, const json_t *r)
{
	char left[32], right[32];

	listing_quantity(left, sizeof(left), listing_number(r, "left"));
	listing_quantity(right, sizeof(right), listing_number(r, "right"));
	listing_cell(l, "  %s", listing_string(r, "node"));
	listing_cell(l, "%s", listing_string(r, "criterion"));
	listing_cell(l, "%s", left);
	listing_cell(l, "%s", listing_string(r, "relation"));
	listing_cell(l, "%s", right);
	listing_cell(l, "%s", listing_string(r, "unit"));
	listing_cell(l, "%s", json_is_true(json_object_get(r, "holds")) ? "yes" : "NO");
}

/* Each criterion's meaning once, in the order of their first use. */
static void print_meanings(const json_t *reasons, FILE *out)
{
	size_t i, j;
	json_t *r;

	fprintf(out, "What they mean (sources: the papers named in iocom(1)):\n");
	json_array_foreach (reasons, i, r) {
		const char *name = listing_string(r, "criterion");

		for (j = 0; j < i; j++)
			if (!strcmp(name, listing_string(json_array_get(reasons, j), "criterion")))
				break;
		if (j == i)
			fprintf(out, "  %-17s %s (%s)\n", name, listing_string(r, "text"),
				listing_string(r, "source"));
	}
}

static void placement_text_print_reasons(const json_t *placement, FILE *out)
{
	static const struct listing_column columns[] = {
		{"  NODE", false}, {"CRITERION", false}, {"LEFT", true},   {"", false},
		{"RIGHT", true},   {"UNIT", false},	 {"HOLDS", false},
	};
	const json_t *reasons = reasons_of(placement);
	struct listing *l;
	size_t i;
	json_t *r;

	if (!json_array_size(reasons))
		return;
	fprintf(out, "Criteria, each with both sides:\n");
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	json_array_foreach (reasons, i, r)
		reason_row(l, r);
	if (listing_print(l, out))
		fprintf(out, "  (out of memory)\n");
	listing_free(l);
	print_meanings(reasons, out);
}

/* Candidates that a criterion refused, and targets that refused at admission. */
static void print_refusals(const json_t *placement, FILE *out)
{
	const json_t *reasons = reasons_of(placement);
	const char *taken = json_is_true(json_object_get(placement, "failed"))
				    ? ""
				    : listing_string(placement, "node");
	bool any = false;
	size_t i;
	json_t *r;

	json_array_foreach (reasons, i, r) {
		if (json_is_true(json_object_get(r, "holds")) ||
		    !strcmp(listing_string(r, "node"), taken) ||
		    !strcmp(listing_string(r, "node"), listing_string(placement, "home")))
			continue;
		fprintf(out, "%s  %s: %s: ", any ? "" : "Refused candidates:\n",
			listing_string(r, "node"), listing_string(r, "criterion"));
		reason_numbers(r, out);
		fprintf(out, " does not hold\n");
		any = true;
	}
	json_array_foreach (json_object_get(placement, "refused"), i, r) {
		fprintf(out, "%s  %s: %s: %s\n", any ? "" : "Refused candidates:\n",
			listing_string(r, "node"), listing_string(r, "reason"),
			listing_string(r, "text"));
		any = true;
	}
	if (!any && json_array_size(json_object_get(placement, "nodes")) > 1)
		fprintf(out, "No candidate was refused.\n");
}

/* A node that the user named is no refused candidate: it took the job all the same. */
static void print_named(const json_t *placement, FILE *out)
{
	const char *node = listing_string(placement, "node");
	size_t i;
	json_t *n;

	if (!json_is_true(json_object_get(placement, "forced")) ||
	    json_is_true(json_object_get(placement, "failed")))
		return;
	json_array_foreach (json_object_get(placement, "nodes"), i, n)
		if (!strcmp(listing_string(n, "name"), node) &&
		    !placement_text_has_room(placement, n))
			fprintf(out,
				"%s was asked for by name: it has no room for the job's memory "
				"(%.0f + %.0f > %.0f MB), and is taken all the same.\n",
				node, listing_number(n, "memory_requested_mb"),
				wanted_mb(placement), listing_number(n, "memory_mb"));
}

void placement_text_print(const json_t *placement, FILE *out)
{
	if (*listing_string(placement, "job"))
		fprintf(out, "Job %s\n", listing_string(placement, "job"));
	sentence(placement, out);
	fputc('\n', out);
	print_tasks(placement, out);
	print_more(placement, out);
	print_need(placement, out);
	placement_text_print_reasons(placement, out);
	print_named(placement, out);
	print_refusals(placement, out);
}
