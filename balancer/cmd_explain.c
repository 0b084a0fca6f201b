/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom explain JOB`: the decision as it was taken, with the numbers it saw. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer/commands.h"
#include "balancer/gang_text.h"
#include "balancer/job_command.h"
#include "balancer/job_state.h"
#include "balancer/listing.h"
#include "balancer/placement_text.h"
#include "user/gang_name.h"
#include "user/utf8.h"

static const char help[] =
	"usage: iocom explain [--json] [--run-dir DIR] JOB\n"
	"Why JOB went where it went: what it needed, both sides of every criterion as\n"
	"they were measured, every candidate refused and the reason; of a job that never\n"
	"ran, who refused it; how long it was expected to take and what it took.  The\n"
	"load vectors below have the columns of iocom nodes; see its --help.\n\n"
	"  JOB              as `iocom jobs --all` lists it, of any home node; n2-17 or 17\n"
	"                   if no other job has that number; last: your newest, submitted\n"
	"                   here\n"
	"  --json           the stored decision, with the load vectors it looked at\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 no such job, or no agent; 2 usage\n";

static void vector_row(struct listing *l, const struct placement_node *n)
{
	const struct iocom_vector *v = &n->vector;
	char age[32];

	listing_span(age, sizeof(age), n->age_ms);
	listing_cell(l, "  %s", v->name);
	listing_cell(l, "%s", age);
	listing_cell(l, "%.1f", v->run_queue);
	listing_cell(l, "%.0f/%.0f", v->memory_requested_mb, v->memory_mb);
	listing_cell(l, "%.1f", 1000 * v->explicit_per_ms);
	listing_cell(l, "%.1f", 1000 * v->implicit_per_ms);
	listing_cell(l, "%.0f %%", 100 * v->disk_utilisation);
	if (v->disk_service_ms > 0)
		listing_cell(l, "%.2f ms", v->disk_service_ms);
	else
		listing_cell(l, "idle");
}

/* Shows the nodes that the decision looked at: their vectors, as far as they matter to a person. */
static void print_vectors(const struct placement *p)
{
	static const struct listing_column columns[] = {
		{"  NODE", false}, {"AGE", true},    {"RUNQ", true}, {"MEM MB", true},
		{"EXPL/s", true},  {"IMPL/s", true}, {"DISK", true}, {"E(s)", true},
	};
	size_t more = placement_known(p) - p->nnodes;
	struct listing *l;

	if (!p->nnodes)
		return;
	printf("The load vectors it looked at:\n");
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < p->nnodes; i++)
		vector_row(l, &p->nodes[i]);
	listing_limit(l, LISTING_WIDTH);
	listing_print(l, stdout);
	listing_free(l);
	if (more)
		printf("  and %zu more node%s, which no criterion judged\n", more,
		       more == 1 ? "" : "s");
}

/* Prints how the job ended, if iocom and not the job was the cause. */
static void print_end(const json_t *record)
{
	const char *state = listing_string(record, "state"), *text = listing_string(record, "text");
	double at_ns = listing_number(record, "end_ns");
	time_t at;
	struct tm then;
	char when[32] = "?", *line;

	if (strcmp(state, "failed") != 0 && strcmp(state, "lost") != 0)
		return;
	at = (time_t)((at_ns > 0 ? at_ns : listing_number(record, "submit_ns")) / 1e9);
	if (localtime_r(&at, &then))
		strftime(when, sizeof(when), "%F %H:%M:%S", &then);
	if (asprintf(&line, "Job %s of user %s %s (%s): %s", listing_string(record, "job"),
		     listing_string(record, "user"), *state == 'l' ? "was lost" : "did not run",
		     when, text) < 0)
		return;
	utf8_plain(line); /* names in the text may hold any bytes */
	listing_wrap(stdout, line, 0);
	free(line);
}

/* How long ago the job was submitted; 0 if this clock stepped back since. */
static double explain_elapsed_ms(const json_t *record)
{
	double submit_ns = listing_number(record, "submit_ns"), now_ns;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
	return now_ns > submit_ns ? (now_ns - submit_ns) / 1e6 : 0;
}

/*
 * Writes what the job took, or takes so far, as a clause: "it took 5.1 s".  Returns NULL if that is
 * not known: the job never ran, or is lost.
 */
static const char *explain_took(char *out, size_t size, const json_t *record)
{
	double took_ms = listing_number(record, "took_ms");
	bool ended = listing_number(record, "end_ns") > 0;
	double slowdown = listing_number(record, "slowdown");
	char span[32], failure[64], slow[48] = "";

	if ((ended && took_ms <= 0) || job_state_lost(record))
		return NULL;
	listing_span(span, sizeof(span), ended ? took_ms : explain_elapsed_ms(record));
	job_state_failure(failure, sizeof(failure), record);
	if (ended && slowdown > 0)
		snprintf(slow, sizeof(slow), ", %.3g times what it takes alone", slowdown);
	if (ended)
		snprintf(out, size, "it took %s%s%s", span, slow, failure);
	else
		snprintf(out, size, "it has taken %s so far", span);
	return out;
}

/* Writes who asked for MOVE and what a policy expected of it, or "". */
static void move_cause(char *out, size_t size, const json_t *move)
{
	const char *cause = listing_string(move, "cause");
	char here[32], there[32], cost[32];

	*out = 0;
	if (!strcmp(cause, "owner"))
		snprintf(out, size, ", because the node's owner sent it away");
	if (!*cause || listing_number(move, "here_ms") <= 0)
		return;
	listing_span(here, sizeof(here), listing_number(move, "here_ms"));
	listing_span(there, sizeof(there), listing_number(move, "there_ms"));
	listing_span(cost, sizeof(cost), listing_number(move, "cost_ms"));
	snprintf(out, size, ", by %s, which expected %s more at %s, %s at %s and %s for the move",
		 cause, here, listing_string(move, "from"), there, listing_string(move, "to"),
		 cost);
}

/*
 * Says how right the last move of a job was that has ended: it took so long from there on.  Nothing
 * is known of earlier ones, because a later one changed what they had led to.
 */
static void print_moved_outcome(const json_t *move, const json_t *record)
{
	double end_ns = listing_number(record, "end_ns");
	double from_ns = listing_number(move, "decided_ns");
	char span[32];

	if (end_ns <= from_ns || listing_number(move, "here_ms") <= 0)
		return;
	listing_span(span, sizeof(span), (end_ns - from_ns) / 1e6);
	printf("  From then on it took %s.\n", span);
}

/* Member NAME of MOVE without what a terminal would obey; OUT has SIZE bytes. */
static const char *move_text(const json_t *move, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s", listing_string(move, name));
	utf8_plain(out);
	return out;
}

/* Says of one move of a job what became of it. */
static void print_move(const json_t *move)
{
	const char *state = listing_string(move, "state");
	char span[32], cause[320], from[IOCOM_NAME_MAX], to[IOCOM_NAME_MAX], why[256], line[1024];

	move_text(move, "from", from, sizeof(from));
	move_text(move, "to", to, sizeof(to));
	move_text(move, "why", why, sizeof(why));
	move_cause(cause, sizeof(cause), move);
	utf8_plain(cause);
	listing_span(span, sizeof(span), listing_number(move, "frozen_ms"));
	if (!strcmp(state, "resumed"))
		snprintf(line, sizeof(line), "It moved from %s to %s%s: frozen for %s, %.1f MB.",
			 from, to, cause, span, listing_number(move, "bytes") / 1e6);
	else if (!strcmp(state, "aborted"))
		snprintf(line, sizeof(line), "It stayed at %s and did not move to %s%s: %s.", from,
			 to, cause, why);
	else
		snprintf(line, sizeof(line), "It is on its way from %s to %s%s.", from, to, cause);
	listing_wrap(stdout, line, 2);
}

/* The job's moves between nodes, if it has any. */
static void print_moves(const json_t *moves, const json_t *record)
{
	const json_t *move;
	size_t i;

	json_array_foreach (moves, i, move) {
		print_move(move);
		if (!strcmp(listing_string(move, "state"), "resumed") &&
		    i + 1 == json_array_size(moves))
			print_moved_outcome(move, record);
	}
}

/* 0 or 1. */
static int cmd_explain_print(const json_t *answer, struct iocom_err *err)
{
	const json_t *record = json_object_get(answer, "record");
	json_t *document = json_object_get(answer, "place");
	struct placement place;
	char buffer[224], gang[SPEC_JOB_MAX];
	const char *took = explain_took(buffer, sizeof(buffer), record);

	print_end(record);
	if (!document) {
		if (gang_part_of(listing_string(record, "job"), gang, NULL))
			printf("It is a part of job %s, which was decided on as a whole%s%s.\n",
			       gang, took ? "; " : "", took ? took : "");
		else
			printf("No decision on it is kept%s%s.\n", took ? "; " : "",
			       took ? took : "");
		print_moves(json_object_get(answer, "moves"), record);
		return listing_end();
	}
	if (!placement_read(&place, document, "the stored decision", err)) {
		placement_text_print(&place, took, stdout);
		gang_text_parts(record, place.gang, stdout);
		print_moves(json_object_get(answer, "moves"), record);
		print_vectors(&place);
	}
	placement_fini(&place);
	return listing_end() || *err->text ? 1 : 0;
}

int cmd_explain(int argc, char **argv)
{
	static const struct option options[] = {JOB_COMMAND_OPTION_JSON, JOB_COMMAND_OPTIONS, {0}};
	struct job_command command = {.help = help, .usage_status = 2};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int rc = 0;

	if (job_command_option(&command, argc, argv, "h", options) == JOB_COMMAND_LEAVE)
		return command.status;
	if (optind + 1 != argc) {
		fprintf(stderr, "iocom explain: which job? (`iocom jobs --all` lists them)\n");
		return 2;
	}
	if (job_command_ask(&command, "explain", argv[optind], 0, &answer, &err)) {
		fprintf(stderr, "iocom explain: %s\n", err.text);
		return 1;
	}
	rc = command.json ? listing_print_json(answer) : cmd_explain_print(answer, &err);
	if (*err.text)
		fprintf(stderr, "iocom explain: %s\n", err.text);
	json_decref(answer);
	return rc;
}
