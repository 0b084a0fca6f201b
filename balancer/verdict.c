/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placement answer for people; see verdict.h. */
#include "verdict.h"

#include <string.h>

#include "listing.h"

static const char *chosen(const json_t *placement)
{
	const char *node = listing_string(placement, "node");

	return *node ? node : listing_string(json_object_get(placement, "plan"), "node");
}

/* The reason that speaks for the choice: the last one that judged the chosen node. */
static const json_t *deciding(const json_t *placement, const char *node)
{
	const json_t *reasons = json_object_get(json_object_get(placement, "plan"), "reasons");
	const json_t *found = NULL;
	size_t i;
	json_t *r;

	json_array_foreach (reasons, i, r)
		if (!strcmp(listing_string(r, "node"), node))
			found = r;
	return found;
}

static void reason_numbers(const json_t *r, FILE *out)
{
	fprintf(out, "%.4g %s %.4g %s", listing_number(r, "left"), listing_string(r, "relation"),
		listing_number(r, "right"), listing_string(r, "unit"));
}

void verdict_line(const json_t *placement, FILE *out)
{
	const char *node = chosen(placement);
	const json_t *r = deciding(placement, node);
	const char *home = listing_string(placement, "home");

	fprintf(out, "%s: %s", listing_string(placement, "policy"), node);
	if (!strcmp(node, home))
		fprintf(out, " (home)");
	if (r) {
		fprintf(out, ", %s: ", listing_string(r, "criterion"));
		reason_numbers(r, out);
		fprintf(out, " %s",
			json_is_true(json_object_get(r, "holds")) ? "holds" : "does not hold");
	}
	fputc('\n', out);
}

static void print_need(const json_t *placement, FILE *out)
{
	const json_t *need = json_object_get(placement, "need");
	const char *key;
	json_t *field;

	if (!json_object_size(need))
		return;
	fprintf(out, "The job needs:\n");
	json_object_foreach ((json_t *)need, key, field) {
		if (!json_is_object(field))
			continue;
		fprintf(out, "  %-14s %12.6g  from %s\n", key, listing_number(field, "value"),
			listing_string(field, "source"));
	}
}

static void print_reasons(const json_t *placement, FILE *out)
{
	static const struct listing_column columns[] = {
		{"  NODE", false}, {"CRITERION", false}, {"LEFT", true}, {"", false},
		{"RIGHT", true},   {"UNIT", false},	 {"", false},	 {"MEANING", false},
	};
	const json_t *reasons = json_object_get(json_object_get(placement, "plan"), "reasons");
	struct listing *l;
	size_t i;
	json_t *r;

	if (!json_array_size(reasons))
		return;
	fprintf(out, "Criteria, each with both sides as measured:\n");
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	json_array_foreach (reasons, i, r) {
		listing_cell(l, "  %s", listing_string(r, "node"));
		listing_cell(l, "%s", listing_string(r, "criterion"));
		listing_cell(l, "%.4g", listing_number(r, "left"));
		listing_cell(l, "%s", listing_string(r, "relation"));
		listing_cell(l, "%.4g", listing_number(r, "right"));
		listing_cell(l, "%s", listing_string(r, "unit"));
		listing_cell(l, "%s", json_is_true(json_object_get(r, "holds")) ? "yes" : "NO");
		listing_cell(l, "%s (%s)", listing_string(r, "text"), listing_string(r, "source"));
	}
	if (listing_print(l, out))
		fprintf(out, "  (out of memory)\n");
	listing_free(l);
}

/* Candidates that a criterion refused, and targets that refused at admission. */
static void print_refusals(const json_t *placement, FILE *out)
{
	const json_t *plan = json_object_get(placement, "plan");
	const json_t *reasons = json_object_get(plan, "reasons");
	bool any = false;
	size_t i;
	json_t *r;

	json_array_foreach (reasons, i, r) {
		if (json_is_true(json_object_get(r, "holds")) ||
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
	if (!any)
		fprintf(out, "No candidate was refused.\n");
}

void verdict_print(const json_t *placement, FILE *out)
{
	const char *node = chosen(placement);
	const char *home = listing_string(placement, "home");

	if (*listing_string(placement, "job"))
		fprintf(out, "Job %s\n", listing_string(placement, "job"));
	if (!strcmp(node, home))
		fprintf(out, "%s keeps it at home, on %s.\n", listing_string(placement, "policy"),
			home);
	else
		fprintf(out, "%s sends it from %s to %s.\n", listing_string(placement, "policy"),
			home, node);
	print_need(placement, out);
	print_reasons(placement, out);
	print_refusals(placement, out);
}
