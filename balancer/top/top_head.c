/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The head of `iocom top`; see top_head.h.
 *
 * For each disk it shows which part of the kernel's count is explained:
 *
 *   kernel = tasks + stacked + unattributed + foreign + residual
 *
 * as shares of `kernel` since counting began.  Over one interval the shares would
 * jump, because the kernel counts a request when it ends, and we when it begins.
 */
#include "balancer/top/top_head.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "balancer/top/top_format.h"
#include "balancer/top/top_model.h"

#define WIDE	  132 /* from this width on words are written in full */
#define SPARK_MAX 40
#define NAME_MOST 32

struct head {
	const struct top_head_options *options;
	const json_t *document, *previous;
	struct top_line *lines;
	size_t n;
	struct top_line spare; /* receives lines that do not fit; never read */
	bool wide;
};

/* A sentence says "0" where a column says "-". */
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

static void top_head_count(char out[TOP_NUMBER_MAX], double value)
{
	top_format_count(out, value);
	zero(out);
}

static void top_head_percent(char out[TOP_NUMBER_MAX], double value)
{
	top_format_percent(out, value);
	zero(out);
}

static struct top_line *top_head_next_line(struct head *h, unsigned char rank)
{
	struct top_line *line = h->n < TOP_HEAD_LINES ? &h->lines[h->n++] : &h->spare;

	line->n = 0;
	line->rank = rank;
	return line;
}

/* Begins the line with its subject, as "vda    ". */
static void label(struct top_line *line, const char *name)
{
	char text[64] = "";

	top_format_fit(text, sizeof(text), name, 7, TOP_FIT_LEFT);
	top_line_add(line, 0, TOP_INK_NAME, "%s", text);
}

static enum top_ink ink_of(double share)
{
	return share >= 0.8 ? TOP_INK_BUSY : share >= 0.3 ? TOP_INK_WARM : TOP_INK_PLAIN;
}

static unsigned spark_width(unsigned width)
{
	return width < 50 ? 0 : width < 100 ? 10 : width < WIDE ? 20 : width < 170 ? 24 : SPARK_MAX;
}

static void spark(const struct head *h, struct top_line *line, unsigned char rank, uint64_t id,
		  enum top_series series, double most)
{
	const struct top_head_options *o = h->options;
	size_t n = spark_width(o->width);
	char text[TOP_PIECE_BYTES] = "";
	float values[SPARK_MAX];

	if (!o->history || !n)
		return;
	top_history_get(o->history, id, series, values, n);
	top_format_spark(text, sizeof(text), values, n, most, o->utf8);
	top_line_add(line, rank, TOP_INK_SPARK, " %s", text);
}

/* How much a count grew since the previous document, or since counting began. */
static double top_head_grown(double now, const json_t *before, const char *key)
{
	double was = top_number(before, key);

	return now > was ? now - was : 0;
}

struct cost {
	double programs, user; /* cores */
	double events;	       /* per second */
	double ns;	       /* per event */
};

static void program_sums(const json_t *document, double *runs, double *ns)
{
	const json_t *programs = json_object_get(json_object_get(document, "cost"), "programs");
	const json_t *program;
	size_t i;

	*runs = *ns = 0;
	json_array_foreach (programs, i, program) {
		*runs += top_number(program, "runs");
		*ns += top_number(program, "run_ns");
	}
}

/* The duration of counting in ns; 0 without a document. */
static double top_head_span_of(const json_t *document)
{
	return top_number(document, "time_ns") - top_number(document, "since_ns");
}

/*
 * Statistics about the programs' cost are on in few periods, for `measured_ms` in all, so the
 * cost is a mean since counting began.  A document without `measured_ms` has statistics always
 * on: then the cost is that of the interval, as our own share of the CPU is.
 */
static struct cost cost_of(const struct head *h)
{
	const json_t *now = json_object_get(h->document, "cost");
	const json_t *before = json_object_get(h->previous, "cost");
	double seconds = (top_head_span_of(h->document) - top_head_span_of(h->previous)) / 1e9;
	double measured = top_number(now, "measured_ms") / 1e3;
	bool sampled = json_object_get(now, "measured_ms") != NULL;
	double runs, ns, runs_before, ns_before;
	struct cost c = {0};

	program_sums(h->document, &runs, &ns);
	program_sums(sampled ? NULL : h->previous, &runs_before, &ns_before);
	runs = fmax(runs - runs_before, 0);
	ns = fmax(ns - ns_before, 0);
	c.ns = runs > 0 ? ns / runs : 0;
	if (!sampled)
		measured = seconds;
	if (measured > 0) {
		c.events = runs / measured;
		c.programs = ns / 1e9 / measured;
	}
	/* of the last measured period */
	if (json_is_number(json_object_get(now, "events_per_s"))) {
		c.events = top_number(now, "events_per_s");
		c.ns = top_number(now, "ns_per_event");
		c.programs = top_number(now, "program_core_share");
	}
	if (seconds > 0)
		c.user = top_head_grown(top_number(now, "user_cpu_ms"), before, "user_cpu_ms") /
			 1e3 / seconds;
	return c;
}

static double tasks_in(const json_t *document)
{
	const json_t *totals = json_object_get(document, "totals");

	return totals ? top_number(totals, "tasks")
		      : (double)json_array_size(json_object_get(document, "tasks"));
}

static size_t ended_in(const json_t *document)
{
	const json_t *task;
	size_t i, n = 0;

	json_array_foreach (json_object_get(document, "tasks"), i, task)
		n += json_is_true(json_object_get(task, "exited"));
	return n;
}

static void top_head_node_line(struct head *h)
{
	double now = top_number(h->document, "time_ns") / 1e9;
	double gap = top_number(h->document, "gap_ns") / 1e9;
	char lost[TOP_NUMBER_MAX], node[NAME_MOST * 4 + 1] = "", span[TOP_NUMBER_MAX],
							clock[16] = "";
	const char *name = top_string(h->document, "node");
	unsigned width = top_format_width(name);
	struct top_line *line = top_head_next_line(h, 0);
	struct cost cost = cost_of(h);
	size_t ended = ended_in(h->document);
	time_t at = (time_t)now;
	struct tm tm;

	top_format_fit(node, sizeof(node), name, width < NAME_MOST ? width : NAME_MOST,
		       TOP_FIT_LEFT);
	top_format_span(span, now - top_number(h->document, "since_ns") / 1e9);
	top_format_span(lost, gap);
	if (localtime_r(&at, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	top_line_add(line, 0, TOP_INK_NAME, "%s ", node);
	top_line_add(line, 2, TOP_INK_PLAIN, "  %s", clock);
	top_line_add(line, 5, TOP_INK_PLAIN, "  counting for %s", span);
	if (gap > 0)
		top_line_add(line, 3, TOP_INK_WARM, " after a gap of %s", lost);
	top_line_add(line, 6, TOP_INK_PLAIN, "  interval %.1f s",
		     top_number(h->document, "elapsed_ns") / 1e9);
	top_line_add(line, 1, TOP_INK_PLAIN, "  %.0f tasks", tasks_in(h->document));
	if (ended)
		top_line_add(line, 3, TOP_INK_PLAIN, ", %zu ended", ended);
	top_line_add(line, 4, TOP_INK_DIM, "  own cost %.1f%%", (cost.programs + cost.user) * 100);
}

static void cpu_line(struct head *h)
{
	const json_t *totals = json_object_get(h->document, "totals");
	double cores = top_number(totals, "cores");
	double share = top_number(totals, "cpu_ms_per_s") / 1e3 / (cores >= 1 ? cores : 1);
	struct top_line *line = top_head_next_line(h, 2);
	char used[TOP_NUMBER_MAX], all[TOP_NUMBER_MAX], major[TOP_NUMBER_MAX];

	top_head_percent(used, share);
	top_head_count(all, top_number(totals, "minor_faults_per_s") +
				    top_number(totals, "major_faults_per_s"));
	top_head_count(major, top_number(totals, "major_faults_per_s"));
	label(line, "CPU");
	top_line_add(line, 0, ink_of(share), "%5s%%", used);
	spark(h, line, 2, 0, TOP_SERIES_CPU, 1);
	top_line_add(line, 1, TOP_INK_PLAIN, "  of %.0f core%s", cores, cores == 1 ? "" : "s");
	top_line_add(line, 2, TOP_INK_PLAIN, "  run queue %.2f", top_number(totals, "run_queue"));
	top_line_add(line, 3, TOP_INK_PLAIN, "  %s faults/s", all);
	top_line_add(line, 4, TOP_INK_PLAIN, ", %s major", major);
}

/* Adds "tasks 98%": a part of what the kernel counted on this disk. */
static void part(struct head *h, struct top_line *line, const json_t *disk, const char *key,
		 const char *name, unsigned char rank)
{
	/* Requests under way are counted in the parts, but not in the kernel's count yet. */
	double whole = fmax(top_number(disk, "kernel_bytes"),
			    top_number(disk, "task_bytes") + top_number(disk, "stacked_bytes") +
				    top_number(disk, "unattributed_bytes") +
				    top_number(disk, "foreign_bytes"));
	double value = top_number(disk, key);
	double share = whole > 0 ? value / whole : 0;
	bool wrong = !strcmp(key, "residual_bytes") && fabs(share) >= 0.01;
	enum top_ink ink = wrong ? TOP_INK_WARM : TOP_INK_PLAIN;

	if (!(whole > 0) || (!h->wide && rank > 2 && fabs(share) < 0.005))
		return;
	if (h->wide)
		top_line_add(line, rank, ink, "  %s %.1f%%", name, share * 100);
	else
		top_line_add(line, rank, ink, " %s %.0f%%", name, share * 100);
}

static void disk_line(struct head *h, const json_t *disk, unsigned char rank)
{
	struct top_line *line = top_head_next_line(h, rank);
	char read[TOP_NUMBER_MAX], write[TOP_NUMBER_MAX], ops[TOP_NUMBER_MAX], busy[TOP_NUMBER_MAX];
	double utilisation = top_number(disk, "utilisation");

	label(line, top_string(disk, "name"));
	if (json_is_null(json_object_get(disk, "utilisation"))) {
		top_line_add(line, 1, TOP_INK_PLAIN, "rates appear after the next interval");
		return;
	}
	bytes(read, top_number(disk, "read_bytes_per_s"));
	bytes(write, top_number(disk, "write_bytes_per_s"));
	top_head_count(ops, top_number(disk, "requests_per_s"));
	top_head_percent(busy, utilisation);
	top_line_add(line, 0, ink_of(utilisation), "%5s%%", busy);
	spark(h, line, 4, top_history_disk(top_string(disk, "name")), TOP_SERIES_DISK, 1);
	if (h->wide) {
		top_line_add(line, 1, TOP_INK_PLAIN, "  %5s/s read  %5s/s written", read, write);
		top_line_add(line, 6, TOP_INK_PLAIN, "  %5s requests/s", ops);
	} else {
		top_line_add(line, 1, TOP_INK_PLAIN, "  r %5s w %5s", read, write);
		top_line_add(line, 6, TOP_INK_PLAIN, " %5s req", ops);
	}
	top_line_add(line, 2, TOP_INK_PLAIN, "  %.2f ms", top_number(disk, "service_ms"));
	if (h->wide)
		top_line_add(line, 7, TOP_INK_DIM, "   all bytes:");
	part(h, line, disk, "task_bytes", "tasks", 2);
	part(h, line, disk, "stacked_bytes", h->wide ? "stacked" : "stack", 3);
	part(h, line, disk, "unattributed_bytes", h->wide ? "unattributed" : "unattr", 3);
	part(h, line, disk, "foreign_bytes", "foreign", 5);
	part(h, line, disk, "residual_bytes", h->wide ? "residual" : "resid", 4);
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

static void disk_lines(struct head *h)
{
	const json_t *disks = json_object_get(h->document, "disks"), *disk;
	size_t total = json_array_size(disks), at = 0;
	double below = 1e300;
	struct top_line *line;
	unsigned n = 0;

	if (!total) {
		line = top_head_next_line(h, 5);
		label(line, "disk");
		top_line_add(line, 1, TOP_INK_PLAIN, "none did any I/O");
	}
	while (n < h->options->disks && (disk = busiest(disks, below, &at))) {
		below = top_number(disk, "utilisation");
		disk_line(h, disk, n ? 6 : 3);
		n++;
	}
	if (total > n && n)
		top_line_add(&h->lines[h->n - 1], 1, TOP_INK_DIM, " +%zu more", total - n);
}

static void network_line(struct head *h)
{
	const json_t *totals = json_object_get(h->document, "totals");
	struct top_line *line = top_head_next_line(h, 4);
	char all[TOP_NUMBER_MAX], sent[TOP_NUMBER_MAX], received[TOP_NUMBER_MAX];
	char local[TOP_NUMBER_MAX], messages[TOP_NUMBER_MAX];
	const char *per = h->wide ? "/s" : "";

	bytes(sent, top_number(totals, "sent_bytes_per_s"));
	bytes(received, top_number(totals, "received_bytes_per_s"));
	bytes(local, top_number(totals, "local_bytes_per_s"));
	bytes(all, top_number(totals, "sent_bytes_per_s") +
			   top_number(totals, "received_bytes_per_s") +
			   top_number(totals, "local_bytes_per_s"));
	top_head_count(messages, top_number(totals, "sent_messages_per_s") +
					 top_number(totals, "received_messages_per_s"));
	label(line, "net");
	top_line_add(line, 0, TOP_INK_PLAIN, "%5s ", all);
	spark(h, line, 2, 0, TOP_SERIES_NETWORK, 0);
	top_line_add(line, 1, TOP_INK_PLAIN, "  sent %5s%s", sent, per);
	top_line_add(line, 1, TOP_INK_PLAIN, "  %s %5s%s", h->wide ? "received" : "recv", received,
		     per);
	top_line_add(line, 2, TOP_INK_PLAIN, "  local %5s%s", local, per);
	top_line_add(line, 3, TOP_INK_PLAIN, "  %s %s", messages, h->wide ? "messages/s" : "msg/s");
}

/* Two lines: bytes that have no owner, and the cost of counting. */
static void cost_lines(struct head *h)
{
	const json_t *un = json_object_get(h->document, "unattributed");
	const json_t *cost = json_object_get(h->document, "cost");
	struct top_line *line = top_head_next_line(h, 8);
	char metadata[TOP_NUMBER_MAX], writeback[TOP_NUMBER_MAX], other[TOP_NUMBER_MAX];
	char events[TOP_NUMBER_MAX], memory[TOP_NUMBER_MAX];
	const json_t *map, *sure, *whole;
	struct cost c = cost_of(h);
	double held = 0;
	size_t i;

	bytes(metadata, top_number(un, "metadata_bytes"));
	bytes(writeback, top_number(un, "writeback_bytes"));
	bytes(other, top_number(un, "other_bytes"));
	label(line, "nobody");
	top_line_add(line, 0, TOP_INK_PLAIN, "metadata %s", metadata);
	top_line_add(line, 1, TOP_INK_PLAIN, "  written back, writer unknown %s", writeback);
	top_line_add(line, 2, TOP_INK_PLAIN, "  kernel threads %s", other);
	whole = json_object_get(json_object_get(h->document, "identity"), "residual_share");
	if (json_is_number(whole))
		top_line_add(line, 3, TOP_INK_PLAIN, "  residual %.2f%%",
			     json_number_value(whole) * 100);
	top_line_add(line, 4, TOP_INK_DIM, "  (all since counting began)");
	line = top_head_next_line(h, 7);
	top_head_count(events, c.events);
	label(line, "cost");
	top_line_add(line, 0, TOP_INK_PLAIN, "%.2f%% of a core", (c.programs + c.user) * 100);
	top_line_add(line, 1, TOP_INK_PLAIN, "  kernel %.2f%%: %s events/s of %.0f ns",
		     c.programs * 100, events, c.ns);
	top_line_add(line, 2, TOP_INK_PLAIN, "  reading %.2f ms", top_number(cost, "sweep_ms"));
	top_line_add(line, 3, TOP_INK_PLAIN, "  monitor %.2f%%", c.user * 100);
	json_array_foreach (json_object_get(cost, "maps"), i, map)
		held += top_number(map, "memory_bytes");
	bytes(memory, held);
	if (held > 0)
		top_line_add(line, 4, TOP_INK_PLAIN, "  tables %s", memory);
	sure = json_object_get(json_object_get(cost, "classifier"), "confidence");
	if (json_is_number(sure))
		top_line_add(line, 5, TOP_INK_PLAIN, "  classes %.1f%% sure",
			     json_number_value(sure) * 100);
}

/* Shows what could not be counted, and how often. */
static void drop_line(struct head *h)
{
	const json_t *help = json_object_get(h->document, "drops_help");
	json_t *drops = json_object_get(h->document, "drops"), *times;
	struct top_line *line = NULL;
	const char *name, *sentence = "";
	unsigned kinds = 0;

	json_object_foreach (drops, name, times) {
		if (json_number_value(times) <= 0)
			continue;
		if (!line) {
			line = top_head_next_line(h, 1);
			top_line_add(line, 0, TOP_INK_ALERT, "LOST   ");
		}
		top_line_add(line, (unsigned char)(1 + kinds), TOP_INK_ALERT, "%s%.40s %.0f",
			     kinds ? ", " : "", name, json_number_value(times));
		if (!kinds++)
			sentence = top_string(help, name);
	}
	if (line && kinds == 1 && *sentence)
		top_line_add(line, 9, TOP_INK_ALERT, ": %.200s", sentence);
}

/*
 * Shows columns that this kernel cannot fill; elements are names, or objects with a name and a
 * reason.
 */
static void degraded_line(struct head *h)
{
	static const char *const names[] = {"column", "field", "name"};
	static const char *const whys[] = {"why", "reason", "help"};
	const json_t *degraded = json_object_get(h->document, "degraded"), *element;
	struct top_line *line;
	size_t i;

	if (!json_is_array(degraded) || !json_array_size(degraded))
		return;
	line = top_head_next_line(h, 1);
	top_line_add(line, 0, TOP_INK_ALERT, "DEGRADED");
	json_array_foreach (degraded, i, element) {
		const char *name = json_string_value(element), *why = NULL;

		for (size_t k = 0; !name && k < 3; k++)
			name = json_string_value(json_object_get(element, names[k]));
		for (size_t k = 0; !why && k < 3; k++)
			why = json_string_value(json_object_get(element, whys[k]));
		top_line_add(line, (unsigned char)(i < 8 ? 1 + i : 9), TOP_INK_ALERT, "%s %.60s",
			     i ? "," : "", name ? name : "?");
		if (why)
			top_line_add(line, 10, TOP_INK_ALERT, " (%.150s)", why);
	}
}

size_t top_head(const json_t *document, const json_t *previous,
		const struct top_head_options *options, struct top_line *lines)
{
	struct head h = {.options = options, .document = document, .previous = previous};

	h.lines = lines;
	h.wide = options->width >= WIDE;
	top_head_node_line(&h);
	drop_line(&h);
	degraded_line(&h);
	cpu_line(&h);
	disk_lines(&h);
	network_line(&h);
	if (options->cost)
		cost_lines(&h);
	for (size_t i = 0; i < h.n; i++)
		top_line_fit(&lines[i], options->width);
	return h.n;
}
