/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is said of a gang; see gang.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/listing.h"
#include "balancer/run/gang.h"
#include "balancer/run/gang_watch.h"

#define PATIENCE_MS 2000
#define NAMES_SHOWN 4

/* --- progress ------------------------------------------------------------------------- */

void gang_progress_begin(struct gang_progress *progress, uint64_t now_ms)
{
	*progress =
		(struct gang_progress){.from_ms = isatty(STDERR_FILENO) ? now_ms + PATIENCE_MS : 0};
}

static void gang_progress_text(const char *name, const struct gang_watch *watch, char *out,
			       size_t size)
{
	uint32_t parts = watch->gang->nparts, shown = 0;
	bool ready = watch->ready == parts;
	enum gang_part_state wanted = ready ? GANG_PART_BEGUN : GANG_PART_READY;
	int at = snprintf(out, size, "%s: %u of %u nodes %s, waiting for", name,
			  ready ? watch->begun : watch->ready, parts,
			  ready ? "have begun" : "are ready");

	for (uint32_t i = 0; i < parts && (size_t)at < size; i++) {
		if (watch->parts[i] >= wanted || shown > NAMES_SHOWN)
			continue;
		at += snprintf(out + at, size - (size_t)at, " %s",
			       shown++ == NAMES_SHOWN ? "..." : watch->gang->parts[i].node);
	}
}

int gang_progress_show(struct gang_progress *progress, const char *name,
		       const struct gang_watch *watch, uint64_t now_ms)
{
	char text[sizeof(progress->shown)];

	if (!progress->from_ms)
		return -1;
	if (watch->begun == watch->gang->nparts || watch->ending) {
		gang_progress_clear(progress);
		progress->from_ms = 0;
		return -1;
	}
	if (now_ms < progress->from_ms)
		return (int)(progress->from_ms - now_ms);
	gang_progress_text(name, watch, text, sizeof(text));
	if (!strcmp(text, progress->shown))
		return -1;
	gang_progress_clear(progress);
	strcpy(progress->shown, text);
	fprintf(stderr, "%s", text);
	return -1;
}

void gang_progress_clear(struct gang_progress *progress)
{
	if (*progress->shown)
		fprintf(stderr, "\r%*s\r", (int)strlen(progress->shown), "");
	*progress->shown = 0;
}

/* --- --status-fd ------------------------------------------------------------------------ */

static json_t *gang_report_line(const struct run_report *report, const char *state)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return json_pack("{s:I, s:s, s:s}", "time_ns",
			 (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec, "job", report->job,
			 "state", state);
}

void gang_report_started(const struct run_report *report, const struct gang_answer *gang)
{
	json_t *line;

	if (report->fd < 0)
		return;
	line = gang_report_line(report, "started");
	if (line)
		json_object_set_new(line, "gang", gang_answer_json(gang, false));
	run_report_print(report->fd, line);
}

/* What a part's worker reported of its end. */
static json_t *gang_report_part(const struct gang_watch *watch, uint32_t part,
				const struct multi_node *node)
{
	static const char *const copied[] = {"state", "kind", "value", "status", "text"};
	const struct gang_part *p = &watch->gang->parts[part];
	char *ranks = gang_ranks_new_text(watch->gang->ranks + p->first, p->tasks);
	json_t *o = json_pack("{s:s, s:s, s:s}", "job", p->job, "node", p->node, "ranks",
			      ranks ? ranks : "");

	free(ranks);
	for (size_t i = 0; o && i < sizeof(copied) / sizeof(copied[0]); i++) {
		json_t *value = json_object_get(node->end, copied[i]);

		if (value)
			json_object_set(o, copied[i], value);
	}
	return o;
}

static const char *gang_report_state(const struct gang_watch *watch)
{
	const struct gang_failure *f = &watch->failure;

	if (f->kind == GANG_FINE || f->kind == GANG_FAILED_RANK)
		return "exited";
	return f->status == RUN_UNKNOWN ? "lost" : "failed";
}

void gang_report_end(const struct run_report *report, const struct gang_watch *watch,
		     const struct multi_node *nodes, int status, const char *text)
{
	const struct gang_failure *f = &watch->failure;
	json_t *line, *parts = json_array();

	if (report->fd < 0) {
		json_decref(parts);
		return;
	}
	for (uint32_t i = 0; i < watch->gang->nparts; i++)
		json_array_append_new(parts, gang_report_part(watch, i, &nodes[i]));
	line = gang_report_line(report, gang_report_state(watch));
	if (line && f->kind == GANG_FAILED_RANK) {
		json_object_set_new(line, "rank", json_integer(f->rank));
		json_object_set_new(line, "kind",
				    json_string(f->signalled ? "signalled" : "exited"));
		json_object_set_new(line, "value", json_integer(f->value));
	}
	if (line && (f->kind == GANG_FAILED_RANK || f->kind == GANG_FAILED_PART))
		json_object_set_new(line, "node", json_string(watch->gang->parts[f->at].node));
	if (line)
		json_object_set_new(line, "status", json_integer(status));
	if (line && *text)
		json_object_set_new(line, "text", json_string(text));
	if (line)
		json_object_set(line, "parts", parts);
	json_decref(parts);
	run_report_print(report->fd, line);
}
