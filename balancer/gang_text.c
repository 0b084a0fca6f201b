/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gang_text.h. */
#include "balancer/gang_text.h"

#include <stdlib.h>
#include <string.h>

#include "balancer/job_state.h"
#include "balancer/listing.h"
#include "user/utf8.h"

/* Prints what WRITE makes of the gang as one paragraph. */
static void gang_text_wrap(char *text, FILE *out)
{
	if (text)
		utf8_plain(text);
	listing_wrap(out, text ? text : "(out of memory)", 2);
	free(text);
}

void gang_text_where(const struct gang_answer *gang, FILE *out)
{
	for (uint32_t i = 0; i < gang->nparts; i++) {
		const struct gang_part *part = &gang->parts[i];
		char *ranks = gang_ranks_new_text(gang->ranks + part->first, part->tasks);

		fprintf(out, "%s%s: %s", i ? ", " : "", part->node, ranks ? ranks : "?");
		free(ranks);
	}
}

static void gang_text_span(struct listing *l, const json_t *cost, const char *key)
{
	char span[32];

	listing_span(span, sizeof(span), listing_number(cost, key));
	listing_cell(l, "%s", span);
}

static void gang_text_way(struct listing *l, const char *way, const json_t *cost)
{
	static const char *const times[] = {"response_ms", "work_ms",	 "way_ms",
					    "port_ms",	   "message_ms", "harm_ms"};

	if (!json_is_object(cost))
		return;
	listing_cell(l, "  %s", way);
	listing_cell(l, "%.0f", listing_number(cost, "nodes"));
	listing_cell(l, "%.0f", listing_number(cost, "task"));
	listing_cell(l, "%s", listing_string(cost, "node"));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		gang_text_span(l, cost, times[i]);
}

/* Both sides of what was weighed: the ways that were compared, each with its slowest task. */
static void gang_text_ways(const json_t *why, FILE *out)
{
	static const struct listing_column columns[] = {
		{"  WAY", false}, {"NODES", true}, {"SLOWEST", true}, {"ON", false},
		{"TAKES", true},  {"WORK", true},  {"DATA", true},    {"LINK", true},
		{"TALK", true},	  {"HARM", true},
	};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));

	fprintf(out, "What was compared, by the slowest task of each:\n");
	gang_text_way(l, "chosen", json_object_get(why, "chosen"));
	gang_text_way(l, "all on one", json_object_get(why, "packed"));
	gang_text_way(l, "one a node", json_object_get(why, "spread"));
	listing_limit(l, LISTING_WIDTH);
	if (listing_print(l, out))
		fprintf(out, "  (out of memory)\n");
	listing_free(l);
	listing_wrap(
		out,
		"  TAKES: its expected time. WORK: processor and disk. DATA: what must come to "
		"the node. LINK: its share of the busiest port. TALK: its messages. HARM: what "
		"the job adds to others there.",
		2);
}

void gang_text_print(const struct placement *p, const char *took, FILE *out)
{
	const struct gang_answer *gang = p->gang;
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (memory) {
		fprintf(memory, "%s places its %u task%s on %u node%s: ", p->policy, gang->tasks,
			gang->tasks == 1 ? "" : "s", gang->nparts, gang->nparts == 1 ? "" : "s");
		gang_text_where(gang, memory);
		fclose(memory);
	}
	gang_text_wrap(text, out);
	if (*listing_string(gang->why, "text"))
		gang_text_wrap(strdup(listing_string(gang->why, "text")), out);
	if (took && asprintf(&text, "In all %s.", took) >= 0)
		gang_text_wrap(text, out);
	if (json_is_object(json_object_get(gang->why, "chosen")))
		gang_text_ways(gang->why, out);
}

/* The tasks of the part NAME as text (malloc'ed); NULL: not known. */
static char *gang_text_ranks(const struct gang_answer *gang, const char *name)
{
	for (uint32_t i = 0; gang && i < gang->nparts; i++)
		if (!strcmp(gang->parts[i].job, name))
			return gang_ranks_new_text(gang->ranks + gang->parts[i].first,
						   gang->parts[i].tasks);
	return NULL;
}

static void gang_text_part(struct listing *l, const json_t *part, const struct gang_answer *gang)
{
	char *ranks = gang_text_ranks(gang, listing_string(part, "job"));
	char outcome[32], *text = strdup(listing_string(part, "text"));

	job_state_outcome(outcome, sizeof(outcome), part);
	if (text)
		utf8_plain(text);
	listing_cell(l, "  %s", listing_string(part, "job"));
	listing_cell(l, "%s", listing_string(part, "node"));
	listing_cell(l, "%s", ranks ? ranks : listing_string(part, "ranks"));
	listing_cell(l, "%s", listing_string(part, "state"));
	listing_cell(l, "%s", outcome);
	listing_cell(l, "%s", text ? text : "");
	free(ranks);
	free(text);
}

void gang_text_parts(const json_t *record, const struct gang_answer *gang, FILE *out)
{
	static const struct listing_column columns[] = {
		{"  PART", false}, {"NODE", false}, {"TASKS", false},
		{"STATE", false},  {"EXIT", true},  {"", false},
	};
	const json_t *parts = json_object_get(record, "parts"), *part;
	char *reason = strdup(listing_string(record, "text"));
	struct listing *l;
	size_t i;

	if (!json_array_size(parts)) {
		free(reason);
		return;
	}
	fprintf(out, "Its parts:\n");
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	json_array_foreach (parts, i, part)
		gang_text_part(l, part, gang);
	if (listing_print(l, out))
		fprintf(out, "  (out of memory)\n");
	listing_free(l);
	if (reason && *reason)
		gang_text_wrap(reason, out);
	else
		free(reason);
}
