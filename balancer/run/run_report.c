/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* --status-fd: reports a run's progress, one JSON object a line; see run.h. */
#include "balancer/run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void run_report_print(int fd, json_t *line)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	size_t n = text ? strlen(text) : 0, at = 0;

	json_decref(line);
	if (!text)
		return;
	text[n++] = '\n'; /* replaces the NUL */
	while (at < n) {
		ssize_t put = write(fd, text + at, n - at);

		if (put < 0 && errno != EINTR)
			break; /* the reader left: the job goes on */
		at += put > 0 ? (size_t)put : 0;
	}
	free(text);
}

static json_t *line_new(const struct run_report *report, const char *state)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return json_pack("{s:I, s:s, s:s, s:s}", "time_ns",
			 (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec, "job", report->job,
			 "node", report->node, "state", state);
}

void run_report_placed(const struct run_report *report, const struct placement *answer)
{
	json_t *line;

	if (report->fd < 0)
		return;
	line = line_new(report, "placed");
	if (line && !report->brief)
		json_object_set_new(line, "placement", placement_public(answer));
	run_report_print(report->fd, line);
}

void run_report_staged(const struct run_report *report, const struct run_data *data)
{
	const struct data_stats *s = &data->stats;
	json_t *line;

	if (report->fd < 0)
		return;
	line = line_new(report, "staged");
	if (line && data->has_stats)
		json_object_set_new(line, "data",
				    json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}",
					      "copied_bytes", (json_int_t)s->copied_bytes,
					      "copied_files", (json_int_t)s->copied_files,
					      "found_bytes", (json_int_t)s->found_bytes,
					      "found_files", (json_int_t)s->found_files,
					      "evicted_bytes", (json_int_t)s->evicted_bytes,
					      "evicted_files", (json_int_t)s->evicted_files,
					      "cache_bytes", (json_int_t)s->cache_bytes,
					      "cache_quota_bytes", (json_int_t)s->quota_bytes,
					      "staged_ms",
					      (double)(data->ended_ms - data->begun_ms)));
	run_report_print(report->fd, line);
}

void run_report_started(const struct run_report *report, uint64_t pid)
{
	json_t *line;

	if (report->fd < 0)
		return;
	line = line_new(report, "started");
	if (line)
		json_object_set_new(line, "pid", json_integer((json_int_t)pid));
	run_report_print(report->fd, line);
}

void run_report_end(const struct run_report *report, const char *state,
		    const struct run_result *result, int status, const char *text)
{
	static const char *const kinds[] = {"exited", "signalled", "exec-failed", "iocom-failed"};
	json_t *line;

	if (report->fd < 0)
		return;
	line = line_new(report, state);
	if (line && result && result->state == RUN_EXITED && result->kind < 4) {
		json_object_set_new(line, "kind", json_string(kinds[result->kind]));
		json_object_set_new(line, "value", json_integer(result->value));
	}
	if (line)
		json_object_set_new(line, "status", json_integer(status));
	if (line && text && *text)
		json_object_set_new(line, "text", json_string(text));
	run_report_print(report->fd, line);
}
