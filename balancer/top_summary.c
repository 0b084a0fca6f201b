/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The head of `iocom top`: the node as a whole; declared in top_table.h. */
#include "top_table.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "top_format.h"

/* In a sentence nothing is "0", not the "-" of a column. */
static void zero(char text[TOP_NUMBER_MAX])
{
	if (!strcmp(text, "-"))
		strcpy(text, "0");
}

static void bytes(char out[TOP_NUMBER_MAX], double value)
{
	top_format_bytes(out, value);
	zero(out);
}

static void count(char out[TOP_NUMBER_MAX], double value)
{
	top_format_count(out, value);
	zero(out);
}

static void percent(char out[TOP_NUMBER_MAX], double value)
{
	top_format_percent(out, value);
	zero(out);
}

struct head {
	struct top_line *lines;
	size_t n, room;
	struct top_line spare; /* takes what does not fit; never read */
};

static struct top_line *next_line(struct head *h)
{
	struct top_line *line = h->n < h->room ? &h->lines[h->n++] : &h->spare;

	line->text[0] = 0;
	line->alert = false;
	return line;
}

static double tasks_in(const json_t *document)
{
	const json_t *totals = json_object_get(document, "totals");

	return totals ? top_number(totals, "tasks")
		      : (double)json_array_size(json_object_get(document, "tasks"));
}

static void node_line(struct head *h, const json_t *document)
{
	double now = top_number(document, "time_ns") / 1e9;
	char node[96] = "", span[TOP_NUMBER_MAX], clock[16] = "";
	const char *name = top_string(document, "node");
	time_t at = (time_t)now;
	struct top_line *line = next_line(h);
	struct tm tm;

	top_format_fit(node, sizeof(node), name, strlen(name) < 32 ? strlen(name) : 32,
		       TOP_FIT_LEFT);
	top_format_span(span, now - top_number(document, "since_ns") / 1e9);
	if (localtime_r(&at, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(line->text, sizeof(line->text),
		 "%s   %s   counting for %s   interval %.1f s   %.0f tasks", node, clock, span,
		 top_number(document, "elapsed_ns") / 1e9, tasks_in(document));
}

static void cpu_line(struct head *h, const json_t *document)
{
	const json_t *totals = json_object_get(document, "totals");
	double cores = top_number(totals, "cores");
	double share = top_number(totals, "cpu_ms_per_s") / 1e3 / (cores >= 1 ? cores : 1);
	struct top_line *line = next_line(h);
	char used[TOP_NUMBER_MAX], faults[TOP_NUMBER_MAX];

	percent(used, share);
	count(faults,
	      top_number(totals, "major_faults_per_s") + top_number(totals, "minor_faults_per_s"));
	snprintf(line->text, sizeof(line->text),
		 "%-6s %5s%% of %.0f core%s   run queue %.2f   %s faults/s", "CPU", used, cores,
		 cores == 1 ? "" : "s", top_number(totals, "run_queue"), faults);
}

static void disk_line(struct head *h, const json_t *disk, bool detail)
{
	struct top_line *line = next_line(h);
	char name[64] = "", read[TOP_NUMBER_MAX], write[TOP_NUMBER_MAX], ops[TOP_NUMBER_MAX];
	char busy[TOP_NUMBER_MAX], residual[TOP_NUMBER_MAX], stacked[TOP_NUMBER_MAX];
	double lost = top_number(disk, "residual_bytes");

	top_format_fit(name, sizeof(name), top_string(disk, "name"), 6, TOP_FIT_LEFT);
	if (json_is_null(json_object_get(disk, "utilisation"))) {
		snprintf(line->text, sizeof(line->text), "%s rates come with the next interval",
			 name);
		return;
	}
	bytes(read, top_number(disk, "read_bytes_per_s"));
	bytes(write, top_number(disk, "write_bytes_per_s"));
	count(ops, top_number(disk, "requests_per_s"));
	percent(busy, top_number(disk, "utilisation"));
	snprintf(line->text, sizeof(line->text),
		 "%s %5s/s read  %5s/s write  %5s req/s  %5s%% busy  %6.2f ms", name, read, write,
		 ops, busy, top_number(disk, "service_ms"));
	if (detail) {
		size_t have = strlen(line->text);

		bytes(residual, lost < 0 ? -lost : lost);
		bytes(stacked, top_number(disk, "stacked_bytes"));
		snprintf(line->text + have, sizeof(line->text) - have,
			 "   since start: %s stacked, %s%s residual", stacked, lost < 0 ? "-" : "",
			 residual);
	}
}

static const json_t *busiest(const json_t *disks, double below, size_t *skip)
{
	const json_t *best = NULL, *disk;
	double most = -1;
	size_t i, found = *skip;

	json_array_foreach (disks, i, disk) {
		double busy = top_number(disk, "utilisation");

		if (busy > below || (busy == below && i <= *skip) || busy <= most)
			continue;
		best = disk;
		most = busy;
		found = i;
	}
	*skip = found;
	return best;
}

static void disk_lines(struct head *h, const json_t *document, unsigned max, bool detail)
{
	const json_t *disks = json_object_get(document, "disks"), *disk;
	size_t total = json_array_size(disks), at = 0;
	double below = 1e300;
	unsigned n = 0;

	if (!total)
		snprintf(next_line(h)->text, sizeof(h->lines->text), "%-6s none did any I/O",
			 "disk");
	while (n < max && (disk = busiest(disks, below, &at))) {
		below = top_number(disk, "utilisation");
		disk_line(h, disk, detail);
		n++;
	}
	if (total > n && h->n) {
		struct top_line *line = &h->lines[h->n - 1];
		size_t have = strlen(line->text);

		snprintf(line->text + have, sizeof(line->text) - have, " +%zu more", total - n);
	}
}

static void network_line(struct head *h, const json_t *document)
{
	const json_t *totals = json_object_get(document, "totals");
	struct top_line *line = next_line(h);
	char sent[TOP_NUMBER_MAX], received[TOP_NUMBER_MAX], local[TOP_NUMBER_MAX];
	char messages[TOP_NUMBER_MAX];

	bytes(sent, top_number(totals, "sent_bytes_per_s"));
	bytes(received, top_number(totals, "received_bytes_per_s"));
	bytes(local, top_number(totals, "local_bytes_per_s"));
	count(messages, top_number(totals, "sent_messages_per_s") +
				top_number(totals, "received_messages_per_s"));
	snprintf(line->text, sizeof(line->text),
		 "%-6s %5s/s sent  %5s/s received  %5s/s local  %5s messages/s", "net", sent,
		 received, local, messages);
}

static void cost_line(struct head *h, const json_t *document)
{
	const json_t *cost = json_object_get(document, "cost");
	const json_t *un = json_object_get(document, "unattributed"), *program;
	char metadata[TOP_NUMBER_MAX], writeback[TOP_NUMBER_MAX], other[TOP_NUMBER_MAX];
	double runs = 0, ns = 0;
	size_t i;

	json_array_foreach (json_object_get(cost, "programs"), i, program) {
		runs += top_number(program, "runs");
		ns += top_number(program, "run_ns");
	}
	bytes(metadata, top_number(un, "metadata_bytes"));
	bytes(writeback, top_number(un, "writeback_bytes"));
	bytes(other, top_number(un, "other_bytes"));
	snprintf(next_line(h)->text, sizeof(h->lines->text),
		 "%-6s metadata %s   writeback of unknown writers %s   kernel threads %s   "
		 "|  monitor: sweep %.2f ms, %.0f ms CPU, %.0f ns an event",
		 "other", metadata, writeback, other, top_number(cost, "sweep_ms"),
		 top_number(cost, "user_cpu_ms"), runs > 0 ? ns / runs : 0);
}

static void drop_line(struct head *h, const json_t *document)
{
	const json_t *help = json_object_get(document, "drops_help");
	json_t *drops = json_object_get(document, "drops"), *times;
	struct top_line *line = NULL;
	const char *name, *sentence = "";
	unsigned kinds = 0;

	json_object_foreach (drops, name, times) {
		size_t have;

		if (json_number_value(times) <= 0)
			continue;
		if (!line)
			line = next_line(h);
		line->alert = true;
		have = strlen(line->text);
		snprintf(line->text + have, sizeof(line->text) - have, "%s%.40s %.0f",
			 have ? ", " : "LOST   ", name, json_number_value(times));
		if (!kinds++)
			sentence = top_string(help, name);
	}
	if (line && kinds == 1 && *sentence) {
		size_t have = strlen(line->text);

		snprintf(line->text + have, sizeof(line->text) - have, ": %.200s", sentence);
	}
}

size_t top_table_summary(const json_t *document, unsigned max_disks, bool detail,
			 struct top_line *lines, size_t room)
{
	struct head h = {.lines = lines, .room = room};

	node_line(&h, document);
	drop_line(&h, document);
	cpu_line(&h, document);
	disk_lines(&h, document, max_disks, detail);
	network_line(&h, document);
	if (detail)
		cost_line(&h, document);
	return h.n;
}
