/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placement answer for people; see placement_text.h. */
#include "balancer/placement_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/gang_text.h"
#include "balancer/listing.h"
#include "balancer/placement_reason.h"

#define NODE_WIDTH 24 /* of a node's name in a sentence or a list */
#define NODE_BYTES 128

/* Prints a line that is wrapped, with INDENT before its second and later parts. */
__attribute__((format(printf, 3, 4))) static void say(FILE *out, unsigned indent, const char *fmt,
						      ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) >= 0)
		listing_wrap(out, text, indent);
	va_end(ap);
	free(text);
}

/*
 * True for a test that asks whether home has too much of something; TRUE_ONE: and the answer was
 * yes.
 */
static bool placement_text_overload(const struct placement *p, bool true_one)
{
	bool found = false;

	for (size_t i = 0; i < p->plan.nreasons && !found; i++)
		found = strstr(p->plan.reasons[i].criterion, "-overloaded") &&
			(p->plan.reasons[i].holds || !true_one);
	return found;
}

/* A view has the queue of a batch system; an agent has none. */
static void queued_sentence(const struct placement *p, FILE *out)
{
	if (!p->refusals)
		fprintf(out, "%s makes it wait: not enough nodes are free for its tasks.",
			p->policy);
	else
		fprintf(out,
			"%s would make it wait, for not enough nodes are free; there is no queue: "
			"it runs at home, on %s.",
			p->policy, p->home);
}

/* Adds the reason of the node that was asked first; `iocom explain` shows all. */
static void kept_by_refusal(const struct placement *p, FILE *out)
{
	const struct placement_refusal *first = &p->refused[0];

	fprintf(out, "%s keeps it at home, on %s: the nodes it chose refused (%s: %s%s%s).",
		p->policy, p->home, first->node, first->reason, *first->text ? ": " : "",
		first->text);
}

/* True if the plan tells a test of CRITERION. */
static bool was_tested(const struct placement *p, const char *criterion)
{
	for (uint32_t i = 0; i < p->plan.nreasons; i++)
		if (!strcmp(p->plan.reasons[i].criterion, criterion))
			return true;
	return false;
}

/* Says why the job stays at home. */
static void kept_sentence(const struct placement *p, FILE *out)
{
	const char *policy = p->policy, *home = p->home;

	if (*p->light)
		fprintf(out, "It runs at home, on %s: %s.", home, p->light);
	else if (!strcmp(policy, "nlb"))
		fprintf(out, "nlb never moves a job: it runs at home, on %s.", home);
	else if (placement_known(p) == 1)
		fprintf(out, "%s keeps it at home, on %s: no other node is known.", policy, home);
	else if (p->nrefused && strcmp(p->plan.node, home))
		kept_by_refusal(p, out);
	else if (placement_reason_no_room(p))
		fprintf(out, "%s keeps it at home, on %s: no other node has room for its memory.",
			policy, home);
	else if (was_tested(p, "delay-home"))
		fprintf(out, "%s keeps it at home, on %s: no other node %s.", policy, home,
			was_tested(p, "delay") ? "is clearly better" : "may take it");
	else if (placement_text_overload(p, true))
		fprintf(out,
			"%s keeps it at home, on %s: home is overloaded, but no other node is "
			"better.",
			policy, home);
	else if (placement_text_overload(p, false))
		fprintf(out, "%s keeps it at home, on %s: home is not overloaded.", policy, home);
	else
		fprintf(out, "%s keeps it at home, on %s.", policy, home);
}

/* Says what was decided, and by which policy, in one sentence that ends with a full stop. */
static void decision_sentence(const struct placement *p, FILE *out)
{
	const char *node = placement_reason_chosen(p), *planned = p->plan.node;

	if (p->ask.picked)
		fprintf(out, "-N chose %s; %s alone would have taken %s.", node, p->policy,
			planned);
	else if (p->forced)
		fprintf(out, "You asked for %s; %s would have taken %s.", node, p->policy,
			strcmp(node, planned) ? planned : "it, too");
	else if (p->plan.queued)
		queued_sentence(p, out);
	else if (p->failed && strcmp(planned, p->home))
		fprintf(out, "%s chose %s, and no node took it.", p->policy, planned);
	else if (strcmp(node, p->home))
		fprintf(out, "%s sends it from %s to %s.", p->policy, p->home, node);
	else
		kept_sentence(p, out);
}

/* The same with the test that decided, in numbers. */
static void sentence(const struct placement *p, FILE *out)
{
	const struct plan_reason *r = placement_reason_deciding(p);
	char *text = NULL, node[NODE_BYTES];
	size_t n = 0;
	FILE *memory = open_memstream(&text, &n);

	if (memory) {
		decision_sentence(p, memory);
		fclose(memory);
	}
	if (!text || !r) {
		fprintf(out, "%s", text ? text : "");
		free(text);
		return;
	}
	fprintf(out, "%.*s (", (int)(n ? n - 1 : 0), text);
	free(text);
	listing_name(node, sizeof(node), r->node, NODE_WIDTH);
	if (!r->holds && strcmp(r->node, p->home) != 0)
		fprintf(out, "nearest: %s, ", node);
	else if (strcmp(r->node, placement_reason_chosen(p)) != 0)
		fprintf(out, "%s, ", node);
	fprintf(out, "%s: ", r->criterion);
	placement_reason_numbers(r, out);
	fprintf(out, "%s).", r->holds ? "" : " does not hold");
}

/* A factor that two digits do not tell from 1 tells people nothing. */
static bool corrected(double factor)
{
	return factor < 0.995 || factor >= 1.005;
}

/*
 * "Expected: 4.4 s there, 9.0 s at home (corrected by a factor of 1.3 there, 0.9 at home)", without
 * an end.
 */
static void expected_clause(const struct placement *p, FILE *out)
{
	const struct rules_expectation *e = &p->expectation;
	bool away = strcmp(placement_reason_chosen(p), p->home) != 0;
	char there[32], home[32];

	listing_span(there, sizeof(there), e->there_ms);
	listing_span(home, sizeof(home), e->home_ms);
	fprintf(out, "Expected: ");
	if (away)
		fprintf(out, "%s there, ", there);
	fprintf(out, "%s at home", home);
	if (away && (corrected(e->there_factor) || corrected(e->home_factor)))
		fprintf(out, " (corrected by a factor of %.3g there, %.3g at home)",
			e->there_factor, e->home_factor);
	else if (corrected(e->home_factor))
		fprintf(out, " (corrected by a factor of %.3g)", e->home_factor);
}

/* What was expected and, if TOOK is not NULL, what the job took. */
static void expected_line(const struct placement *p, const char *took, FILE *out)
{
	if (p->expectation.known)
		expected_clause(p, out);
	else if (took || !(p->plan.queued || p->failed))
		fprintf(out, "Expected: nothing, because nothing %s known of what the job needs",
			took ? "was" : "is");
	else
		return;
	fprintf(out, "%s%s.\n", took ? "; " : "", took ? took : "");
}

void placement_text_line(const struct placement *p, FILE *out)
{
	sentence(p, out);
	if (p->expectation.known) {
		fputc(' ', out);
		expected_clause(p, out);
		fputc('.', out);
	}
	fputc('\n', out);
}

/* How long MB take between home and N, in ms. */
static double data_span_ms(const struct placement *p, const struct placement_node *n, double mb)
{
	const struct iocom_vector *home = &p->nodes[0].vector, *there = &n->vector;
	double link = fmin(home->network_mb_per_s, there->network_mb_per_s);

	if (!(link > 0))
		return NAN;
	return rules_transfer_cost_ms(0, mb, link, home->disks ? home->disk_mb_per_s : 0,
				      there->disks ? there->disk_mb_per_s : 0);
}

/* How long the data that N lacks takes on the way from home, in ms; MB: how much that is. */
static double data_way_ms(const struct placement *p, const struct placement_node *n, double *mb)
{
	const char *text = p->ask.data_held;
	double held = 0, one;
	char node[IOCOM_NAME_MAX];

	while (placement_held_next(&text, node, &one))
		if (!strcmp(node, n->vector.name))
			held = one;
	*mb = fmax(p->need.value[NEED_DATA_MB] - held, 0);
	return data_span_ms(p, n, *mb);
}

/* What the outputs' way takes from NODE; AWAY: the job is there. */
static void print_outputs(const struct placement *p, const struct placement_node *node, bool away,
			  FILE *out)
{
	double mb = (double)p->ask.bring_bytes / 1e6;
	char way[32], by[80] = "as much as is there now";

	if (p->ask.bring_bytes < 0)
		return;
	if (p->ask.bring_runs > 0)
		snprintf(by, sizeof(by), "the mean of %lld earlier run%s of its class",
			 (long long)p->ask.bring_runs, p->ask.bring_runs == 1 ? "" : "s");
	else if (!p->ask.bring_bytes)
		snprintf(by, sizeof(by), "no earlier run of its class says more");
	listing_span(way, sizeof(way), data_span_ms(p, node, mb));
	say(out, 0, "Outputs: %.1f MB %s home (%s): %s on the way from %s, counted in its price.",
	    mb, away ? "come" : "would come", by, way, node->vector.name);
}

/* What the data's way takes to the chosen node, or, at home, to the one where it takes least. */
static void print_data(const struct placement *p, FILE *out)
{
	const char *chosen = placement_reason_chosen(p);
	bool away = strcmp(chosen, p->home) != 0;
	const struct placement_node *node = NULL;
	double least = INFINITY, lacks = 0, mb;
	char way[32];

	if (!p->need_given || !(p->need.value[NEED_DATA_MB] > 0 || p->ask.bring_bytes >= 0))
		return;
	for (size_t i = 1; i < p->nnodes; i++) {
		double ms = data_way_ms(p, &p->nodes[i], &mb);

		if (!(ms < least) || (away && strcmp(p->nodes[i].vector.name, chosen) != 0))
			continue;
		least = ms;
		lacks = mb;
		node = &p->nodes[i];
	}
	if (!node)
		return;
	listing_span(way, sizeof(way), least);
	if (p->need.value[NEED_DATA_MB] > 0)
		say(out, 0,
		    "Data: %.1f MB %s. %s lacks %.1f MB of it%s: %s on the way, counted in its "
		    "price.",
		    p->need.value[NEED_DATA_MB],
		    p->ask.data && away ? "goes along" : "must be at hand", node->vector.name,
		    lacks, away ? "" : " (no other node less)", way);
	print_outputs(p, node, away, out);
}

static const struct iocom_vector *text_vector(const struct placement *p, const char *name)
{
	for (size_t i = 0; i < p->nnodes; i++)
		if (!strcmp(p->nodes[i].vector.name, name))
			return &p->nodes[i].vector;
	return NULL;
}

/* A name of a request, which another user may have made; OUT has only what can be printed. */
static void text_plain_name(char *out, size_t size, const char *name)
{
	listing_name(out, size, name, NODE_WIDTH);
	for (; *out; out++)
		if (*out < ' ' || *out > '~')
			*out = '?';
}

/* Whose disk serves what the job does on a shared file system, and whose page cache has it. */
static void print_shared(const struct placement *p, FILE *out)
{
	double read = p->need.value[NEED_SHARED_READ_MB], mb;
	double written = p->need.value[NEED_SHARED_WRITTEN_MB];
	const char *server = p->ask.shared_server, *text = p->ask.shared_cached;
	char node[IOCOM_NAME_MAX], name[NODE_BYTES], served[NODE_BYTES + 64], held[512] = "";
	const struct iocom_vector *v = text_vector(p, server);

	if (!p->need_given || !(read + written > 0))
		return;
	text_plain_name(name, sizeof(name), server);
	if (v)
		snprintf(served, sizeof(served), "%s serves it, whose disk is %.0f %% busy", name,
			 100 * v->disk_utilisation);
	else if (*server)
		snprintf(served, sizeof(served), "%s serves it, which is no node of this cluster",
			 name);
	else
		snprintf(served, sizeof(served), "nobody says who serves it");
	while (placement_held_next(&text, node, &mb)) {
		size_t n = strlen(held);

		text_plain_name(name, sizeof(name), node);
		snprintf(held + n, sizeof(held) - n, "%s %.1f MB at %s", n ? "," : "", mb, name);
	}
	say(out, 0,
	    "Shared file system: it reads %.1f MB and writes %.1f MB there; %s. Page caches have "
	    "of "
	    "it:%s.",
	    read, written, served, *held ? held : " nothing that is known");
}

/* Lists where each task of a parallel job runs: "n1 2, n3 1". */
static void print_tasks(const struct placement *p, FILE *out)
{
	const struct plan_record *plan = &p->plan;
	json_t *counts;
	const char *name;
	const char *gap = "";
	json_t *n;

	if (plan->nnodes < 2)
		return;
	counts = json_object();
	for (size_t i = 0; i < plan->nnodes; i++)
		json_object_set_new(counts, plan->nodes[i],
				    json_integer(1 + json_integer_value(json_object_get(
							     counts, plan->nodes[i]))));
	fprintf(out, "Its %zu tasks run on: ", plan->nnodes);
	json_object_foreach (counts, name, n) {
		fprintf(out, "%s%s (%" JSON_INTEGER_FORMAT ")", gap, name, json_integer_value(n));
		gap = ", ";
	}
	fputc('\n', out);
	json_decref(counts);
}

/* Lists the equal nodes among which the seed chose, and the running tasks that should now move. */
static void print_more(const struct placement *p, FILE *out)
{
	const struct plan_record *plan = &p->plan;

	if (plan->ntied > 1) {
		fprintf(out, "As good, the seed picked among them:");
		for (size_t i = 0; i < plan->ntied; i++)
			fprintf(out, " %s", plan->tied[i]);
		fputc('\n', out);
	}
	for (size_t i = 0; i < plan->nmoves; i++)
		fprintf(out, "Then task %.0f of %s should move to %s.\n", plan->moves[i].task,
			plan->moves[i].node, plan->moves[i].to);
}

static void print_need(const struct placement *p, FILE *out)
{
	char value[32];

	if (!p->need_given)
		return;
	if (*p->learned)
		fprintf(out, "%s.\n", p->learned);
	fprintf(out, "%s needs:\n", p->gang ? "Each task" : "The job");
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		if (!(p->need_given & 1u << f))
			continue;
		listing_quantity(value, sizeof(value), p->need.value[f]);
		fprintf(out, "  %-14s %12s  %s%s\n", need_name(f), value,
			p->need.source[f] == NEED_SET ? "" : "from ",
			p->need.source[f] == NEED_SET ? "set by you"
						      : need_source_name(p->need.source[f]));
	}
}

static void reason_row(struct listing *l, const struct plan_reason *r)
{
	struct placement_sides sides;

	placement_reason_sides(r, &sides);
	listing_cell(l, "  %s", r->node);
	listing_cell(l, "%s", r->criterion);
	listing_cell(l, "%s", sides.left);
	listing_cell(l, "%s", r->relation);
	listing_cell(l, "%s", sides.right);
	listing_cell(l, "%s", sides.unit);
	listing_cell(l, "%s", r->holds ? "yes" : "NO");
}

/* Explains each criterion once, in the order of their first use. */
static void print_meanings(const struct plan_record *plan, FILE *out)
{
	fprintf(out, "What they mean (sources: the papers named in iocom(1)):\n");
	for (size_t i = 0; i < plan->nreasons; i++) {
		const struct plan_reason *r = &plan->reasons[i];
		size_t j = 0;

		while (j < i && strcmp(r->criterion, plan->reasons[j].criterion) != 0)
			j++;
		if (j == i)
			say(out, 20, "  %-17s %s (%s)", r->criterion, r->text, r->source);
	}
}

static void placement_text_print_reasons(const struct plan_record *plan, FILE *out)
{
	static const struct listing_column columns[] = {
		{"  NODE", false}, {"CRITERION", false}, {"LEFT", true},   {"", false},
		{"RIGHT", true},   {"UNIT", false},	 {"HOLDS", false},
	};
	struct listing *l;

	if (!plan->nreasons)
		return;
	fprintf(out, "Criteria, each with both sides:\n");
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < plan->nreasons; i++)
		reason_row(l, &plan->reasons[i]);
	listing_limit(l, LISTING_WIDTH);
	if (listing_print(l, out))
		fprintf(out, "  (out of memory)\n");
	listing_free(l);
	print_meanings(plan, out);
}

static bool placement_text_refused(const struct placement *p, const char *node)
{
	for (size_t i = 0; i < p->nrefused; i++)
		if (!strcmp(p->refused[i].node, node))
			return true;
	return false;
}

/* True for a test that kept the job from a node that could have taken it. */
static bool refuses(const struct placement *p, const struct plan_reason *r)
{
	const char *taken = p->failed ? "" : p->node;

	return !r->holds && strcmp(r->node, taken) != 0 && strcmp(r->node, p->home) != 0;
}

/* True if a later reason, or the node itself, says more of why R's node does not have the job. */
static bool refused_later(const struct placement *p, const struct plan_reason *r)
{
	for (const struct plan_reason *q = r + 1; q < p->plan.reasons + p->plan.nreasons; q++)
		if (refuses(p, q) && !strcmp(q->node, r->node))
			return true;
	for (size_t i = 0; i < p->nrefused; i++)
		if (!strcmp(p->refused[i].node, r->node))
			return true;
	return false;
}

static void refusal_line(FILE *out, const char *node, const char *text)
{
	char name[NODE_BYTES], *line = NULL;

	listing_name(name, sizeof(name), node, NODE_WIDTH);
	if (asprintf(&line, "  %s: %s", name, text) >= 0)
		listing_line(out, line);
	free(line);
}

/*
 * Lists the candidates that a criterion refused, and the targets that refused at admission: one
 * line each, with the reason that came last.
 */
static void print_refusals(const struct placement *p, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < p->plan.nreasons; i++) {
		const struct plan_reason *r = &p->plan.reasons[i];
		char *text = NULL;
		size_t size;
		FILE *memory;

		if (!refuses(p, r) || refused_later(p, r))
			continue;
		memory = open_memstream(&text, &size);
		if (!memory)
			continue;
		fprintf(memory, "%s: ", r->criterion);
		placement_reason_numbers(r, memory);
		fprintf(memory, " does not hold");
		fclose(memory);
		fprintf(out, "%s", any ? "" : "Refused candidates:\n");
		refusal_line(out, r->node, text ? text : "");
		free(text);
		any = true;
	}
	for (size_t i = 0; i < p->nnodes; i++) {
		const struct placement_node *n = &p->nodes[i];
		char text[512];

		/* Such a node was not even asked, unless by name. */
		if (n->vector.accepts_jobs || n->self || !*n->vector.owner ||
		    placement_text_refused(p, n->vector.name))
			continue;
		fprintf(out, "%s", any ? "" : "Refused candidates:\n");
		snprintf(text, sizeof(text), "owner: %s", n->vector.owner);
		refusal_line(out, n->vector.name, text);
		any = true;
	}
	for (size_t i = 0; i < p->nrefused; i++) {
		const struct placement_refusal *r = &p->refused[i];
		char text[512];

		snprintf(text, sizeof(text), "%s: %s", r->reason, r->text);
		fprintf(out, "%s", any ? "" : "Refused candidates:\n");
		refusal_line(out, r->node, text);
		any = true;
	}
	if (!any && placement_known(p) > 1)
		fprintf(out, "No candidate was refused.\n");
}

/* A node that the user named is not a refused candidate, because it took the job all the same. */
static void print_named(const struct placement *p, FILE *out)
{
	if (!p->forced || p->failed)
		return;
	for (size_t i = 0; i < p->nnodes; i++) {
		const struct placement_node *n = &p->nodes[i];

		if (!strcmp(n->vector.name, p->node) && !placement_has_room(p, &n->vector))
			say(out, 0,
			    "%s was asked for by name: it has no room for the job's memory "
			    "(%.0f + %.0f > %.0f MB), and is taken all the same.",
			    p->node, n->vector.memory_requested_mb, placement_wanted_mb(p),
			    n->vector.memory_mb);
	}
}

/* Says whose word about itself the decision did not believe. */
static void print_doubts(const struct placement *p, FILE *out)
{
	for (size_t i = 0; i < p->nnodes; i++)
		if (p->nodes[i].doubt > 1)
			say(out, 0,
			    "%s is not believed: jobs there took %.3g times what its load and "
			    "speed let expect, so %.3g times as much is expected now.",
			    p->nodes[i].vector.name, p->nodes[i].doubt, p->nodes[i].doubt);
}

/* Prints the lines of TEXT, each wrapped. */
static void print_wrapped(const char *text, FILE *out)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');
		char *line = strndup(text, (size_t)(end - text));

		if (line)
			listing_wrap(out, line, 0);
		free(line);
		text = *end ? end + 1 : end;
	}
}

/* What was decided, what was expected and came of it, and where its tasks run. */
static void print_story(const struct placement *p, const char *took, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *memory;

	if (p->gang) {
		gang_text_print(p, took, out);
		return;
	}
	memory = open_memstream(&text, &size);
	if (memory) {
		sentence(p, memory);
		fputc('\n', memory);
		expected_line(p, took, memory);
		print_tasks(p, memory);
		print_more(p, memory);
		fclose(memory);
	}
	print_wrapped(text ? text : "(out of memory)", out);
	free(text);
}

void placement_text_unmet(const struct placement *p, const char *before, FILE *out)
{
	char text[256];

	for (size_t i = 0; i < p->nunmet; i++) {
		placement_unmet_text(p, i, text, sizeof(text));
		fputs(before, out);
		listing_text(out, text);
		fputc('\n', out);
	}
}

void placement_text_print(const struct placement *p, const char *took, FILE *out)
{
	if (*p->job)
		fprintf(out, "Job %s\n", p->job);
	if (*p->ask.comment)
		say(out, 0, "Comment: %s", p->ask.comment);
	print_story(p, took, out);
	placement_text_unmet(p, "Warning: ", out);
	print_data(p, out);
	print_shared(p, out);
	print_need(p, out);
	placement_text_print_reasons(&p->plan, out);
	print_named(p, out);
	print_doubts(p, out);
	print_refusals(p, out);
}
