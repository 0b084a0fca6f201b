/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How the nodes of `iocom run -N` ended; see multi.h. */
#include "balancer/run/multi.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/listing.h"

#define OUTCOME_MAX 64

void multi_report_line(struct multi_node *node, const char *line, size_t length)
{
	json_t *object = json_loadb(line, length, 0, NULL);
	const char *job = listing_string(object, "job");

	if (*job && !node->job)
		node->job = strdup(job);
	if (json_object_get(object, "status")) {
		json_decref(node->end);
		node->end = object;
		return;
	}
	json_decref(object);
}

bool multi_report_refused(const struct multi_node *node)
{
	/* Once a shim had the job, the report says what kind of end it was. */
	return !strcmp(listing_string(node->end, "state"), "failed") &&
	       !json_object_get(node->end, "kind");
}

/*
 * Describes the end, as "exit 3", "SIGKILL", "not started": nodes with the same text are named
 * together.
 */
static void outcome(const struct multi_node *node, char out[OUTCOME_MAX])
{
	const char *state = listing_string(node->end, "state");
	const char *kind = listing_string(node->end, "kind");
	int value = (int)listing_number(node->end, "value");

	if (!node->begun)
		snprintf(out, OUTCOME_MAX, "not begun");
	else if (!node->end && node->status == RUN_FAILED)
		snprintf(out, OUTCOME_MAX, "not started (%d)", node->status);
	else if (!node->end || !strcmp(state, "lost"))
		snprintf(out, OUTCOME_MAX, "outcome unknown");
	else if (!strcmp(kind, "signalled"))
		snprintf(out, OUTCOME_MAX, "killed by SIG%s",
			 sigabbrev_np(value) ? sigabbrev_np(value) : "?");
	else if (!strcmp(state, "exited") && node->status != 255)
		snprintf(out, OUTCOME_MAX, "exit %d", node->status);
	else if (!strcmp(state, "exited"))
		snprintf(out, OUTCOME_MAX, value == 255 ? "exit 255" : "output lost");
	else if (!strcmp(kind, "exec-failed"))
		snprintf(out, OUTCOME_MAX, "cannot execute (%d)", node->status);
	else
		snprintf(out, OUTCOME_MAX, "not started (%d)", node->status);
}

static bool run_multi_report_failed(const struct multi_node *node)
{
	return node->status != 0 || !node->begun;
}

/* A node that SIGPIPE ended because our reader left is no failure, as in `yes | head`. */
static bool silent(const struct multi_node *node, bool unread)
{
	return unread && node->status == 128 + SIGPIPE;
}

/* Prints the nodes that ended as node FIRST did, and marks them in TOLD. */
static void print_same(FILE *out, const struct multi_node *nodes, size_t count, size_t first,
		       bool *told)
{
	const char **names = calloc(count, sizeof(*names));
	char what[OUTCOME_MAX], other[OUTCOME_MAX], *folded = NULL;
	size_t n = 0;

	outcome(&nodes[first], what);
	for (size_t i = first; names && i < count; i++) {
		if (told[i] || !run_multi_report_failed(&nodes[i]))
			continue;
		outcome(&nodes[i], other);
		if (strcmp(what, other) != 0)
			continue;
		names[n++] = nodes[i].name;
		told[i] = true;
	}
	if (names)
		folded = nodelist_fold(names, n);
	fprintf(out, "%s %s", folded ? folded : nodes[first].name, what);
	free(folded);
	free(names);
}

void multi_report_failed(const char *name, const struct multi_node *nodes, size_t count,
			 bool unread)
{
	bool *told = calloc(count, sizeof(*told));
	size_t bad = 0, size = 0;
	const char *gap = ": ";
	char *text = NULL;
	FILE *out;

	for (size_t i = 0; told && i < count; i++)
		if (silent(&nodes[i], unread))
			told[i] = true;
		else
			bad += run_multi_report_failed(&nodes[i]);
	out = bad && told ? open_memstream(&text, &size) : NULL;
	for (size_t i = 0; out && i < count; i++) {
		if (!run_multi_report_failed(&nodes[i]) || told[i])
			continue;
		fputs(gap, out);
		gap = "; ";
		print_same(out, nodes, count, i, told);
	}
	if (out)
		fclose(out);
	if (bad)
		fprintf(stderr, "%s: %zu of %zu nodes failed%s\n", name, bad, count,
			text ? text : "");
	free(text);
	free(told);
}

static json_t *multi_report_node_json(const struct multi_node *node)
{
	static const char *const copied[] = {"kind", "value", "text"};
	const char *state = !node->begun		 ? "not-begun"
			    : node->end			 ? listing_string(node->end, "state")
			    : node->status == RUN_FAILED ? "failed"
							 : "lost";
	json_t *o = json_pack("{s:s, s:s, s:s, s:i}", "node", node->name, "job",
			      node->job ? node->job : "", "state", state, "status", node->status);

	for (size_t i = 0; o && i < sizeof(copied) / sizeof(copied[0]); i++) {
		json_t *value = json_object_get(node->end, copied[i]);

		if (value)
			json_object_set(o, copied[i], value);
	}
	return o;
}

void multi_report_end(int fd, const struct multi_node *nodes, size_t count, int status)
{
	struct timespec now;
	json_t *list = json_array(), *line;
	size_t bad = 0;

	if (fd < 0) {
		json_decref(list);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		bad += run_multi_report_failed(&nodes[i]);
		json_array_append_new(list, multi_report_node_json(&nodes[i]));
	}
	clock_gettime(CLOCK_REALTIME, &now);
	line = json_pack("{s:I, s:s, s:i, s:i, s:o}", "time_ns",
			 (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec, "state", "all-ended",
			 "status", status, "failed", (int)bad, "nodes", list);
	run_report_print(fd, line);
}
