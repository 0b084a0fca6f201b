/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See profile_text.h. */
#include "balancer/profile_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balancer/listing.h"
#include "balancer/view/amount.h"

/* A class that was only described by its user has no run, and so no numbers. */
static bool profile_text_ran(const json_t *profile)
{
	return listing_number(profile, "runs") > 0;
}

static void profile_text_span(struct listing *l, const json_t *object, const char *key)
{
	char span[32];

	listing_span(span, sizeof(span), listing_number(object, key));
	listing_cell(l, "%s", span);
}

int profile_text_table(const json_t *profiles)
{
	static const struct listing_column columns[] = {
		{"CLASS", false},     {"USER", false},	{"RUNS", true},
		{"INTENSIVE", false}, {"CPU", true},	{"COM", true},
		{"DISK", true},	      {"MEM MB", true}, {"ELAPSED", true},
	};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *p;
	int rc;

	json_array_foreach (profiles, i, p) {
		listing_cell(l, "%s", listing_string(p, "class"));
		listing_cell(l, "%s", listing_string(p, "user"));
		listing_cell(l, "%.0f", listing_number(p, "runs"));
		if (!profile_text_ran(p)) {
			for (size_t c = 3; c < sizeof(columns) / sizeof(columns[0]); c++)
				listing_cell(l, "-");
			continue;
		}
		listing_cell(l, "%s", listing_string(p, "intensive"));
		profile_text_span(l, p, "cpu_ms");
		profile_text_span(l, p, "com_ms");
		profile_text_span(l, p, "disk_ms");
		listing_cell(l, "%.0f", listing_number(p, "memory_mb"));
		profile_text_span(l, p, "wall_ms");
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc;
}

/* The least and the most that its disk time can be are often the same. */
static void print_waits(const json_t *last)
{
	double low_ms = listing_number(last, "disk_low_ms");
	double high_ms = listing_number(last, "disk_high_ms");

	printf("  Disk time ");
	if (high_ms - low_ms >= 1)
		printf("between %.0f and ", low_ms);
	printf("%.0f ms, %.0f ms of it for page faults; requests waited\n"
	       "  %.0f ms in queues, the job %.0f ms for a CPU.\n",
	       high_ms, listing_number(last, "fault_ms"), listing_number(last, "disk_wait_ms"),
	       listing_number(last, "run_wait_ms"));
}

static int print_phases(const json_t *profile)
{
	static const struct listing_column columns[] = {
		{"  PHASE", true}, {"MOSTLY", false}, {"CPU", true},
		{"COM", true},	   {"DISK", true},    {"ELAPSED", true},
	};
	const json_t *last = json_object_get(profile, "last_run");
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *p;
	int rc;

	printf("\nThe last run of %s (user %s):\n", listing_string(profile, "class"),
	       listing_string(profile, "user"));
	json_array_foreach (json_object_get(last, "phases"), i, p) {
		listing_cell(l, "  %zu", i + 1);
		listing_cell(l, "%s", listing_string(p, "dominant"));
		profile_text_span(l, p, "cpu_ms");
		profile_text_span(l, p, "com_ms");
		profile_text_span(l, p, "disk_ms");
		profile_text_span(l, p, "wall_ms");
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	print_waits(last);
	return rc;
}

/* Shows what predictions for the class were off by, and how decisions correct them. */
static int print_corrections(const json_t *profile)
{
	static const struct listing_column columns[] = {
		{"  NODE", false},
		{"JOBS", true},
		{"TOOK/EXPECTED", true},
		{"FACTOR", true},
	};
	const json_t *all = json_object_get(profile, "corrections");
	struct listing *l;
	double jobs;
	size_t i;
	json_t *n;
	int rc;

	if (!json_is_object(all))
		return 0;
	jobs = listing_number(all, "jobs");
	printf("\n%.0f job%s took %.2f times what was expected before correction.  The next\n"
	       "expectation is corrected by %.2f, and at these nodes by FACTOR:\n",
	       jobs, jobs == 1 ? "" : "s", listing_number(all, "ratio"),
	       listing_number(all, "factor"));
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	json_array_foreach (json_object_get(all, "nodes"), i, n) {
		listing_cell(l, "  %s", listing_string(n, "node"));
		listing_cell(l, "%.0f", listing_number(n, "jobs"));
		listing_cell(l, "%.2f", listing_number(n, "ratio"));
		listing_cell(l, "%.2f", listing_number(n, "factor"));
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc;
}

/* --- one class --------------------------------------------------------------------------- */

enum profile_unit { UNIT_MS, UNIT_MB, UNIT_NUMBER };

static const struct profile_line {
	const char *need;  /* the key of "needs" */
	const char *title; /* what people read */
	enum profile_unit unit;
	const char *set; /* the key of "set"; NULL: nobody can set it */
	double factor;	 /* of the set value's unit */
} lines[] = {
	{"cpu_ms", "processor", UNIT_MS, "cpu_s", 1000},
	{"requests", "disk requests", UNIT_NUMBER, "requests", 1},
	{"read_mb", "  read", UNIT_MB, NULL, 1},
	{"written_mb", "  written", UNIT_MB, NULL, 1},
	{"fault_requests", "for page faults", UNIT_NUMBER, NULL, 1},
	{"fault_mb", "  read", UNIT_MB, NULL, 1},
	{"shared_read_mb", "shared files read", UNIT_MB, "shared_read_mb", 1},
	{"shared_written_mb", "  written", UNIT_MB, "shared_written_mb", 1},
	{"com_ms", "communication", UNIT_MS, "com_ms", 1},
	{"memory_mb", "memory", UNIT_MB, "memory_mb", 1},
	{"disk_ms", "time at the disk", UNIT_MS, NULL, 1},
	{"wall_ms", "elapsed", UNIT_MS, NULL, 1},
};

/* What only a user sets; it has no line of its own. */
static const struct {
	const char *set, *title, *unit;
} set_only[] = {
	{"io_per_s", "requests per second", ""},
	{"io_size_kb", "size of a request", " KB"},
	{"data_mb", "data that must be at hand", " MB"},
};

static void profile_text_value(char out[48], enum profile_unit unit, double value)
{
	if (unit == UNIT_MS)
		listing_span(out, 48, value);
	else if (unit == UNIT_MB)
		amount_of_mb(out, 48, value);
	else if (value > 0 && value < 1) /* the mean of some runs with and some without */
		snprintf(out, 48, "%.2f", value);
	else
		listing_quantity(out, 48, value);
}

/* Two digits that count, for there is little room. */
static void profile_text_short(char out[48], double value)
{
	snprintf(out, 48, fabs(value) < 10 ? "%.2g" : "%.0f", value);
}

static void profile_text_from(struct listing *l, const json_t *profile, const json_t *need,
			      enum profile_unit unit)
{
	char base[48], per[48];

	if (!listing_number(profile, "runs_used")) {
		listing_cell(l, "average of all runs");
		return;
	}
	if (!json_is_true(json_object_get(need, "by_input"))) {
		listing_cell(l, "mean of %.0f %s run%s", listing_number(need, "runs"),
			     json_is_true(json_object_get(profile, "warm")) ? "warm" : "cold",
			     listing_number(need, "runs") == 1 ? "" : "s");
		return;
	}
	if (unit == UNIT_MS)
		listing_span(base, sizeof(base), listing_number(need, "base"));
	else
		profile_text_short(base, listing_number(need, "base"));
	profile_text_short(per, listing_number(need, "per_mb"));
	listing_cell(l, "input: %s%s + %s/MB", base, unit == UNIT_MB ? " MB" : "", per);
}

static void profile_text_line(struct listing *l, const json_t *profile,
			      const struct profile_line *line)
{
	const json_t *need = json_object_get(json_object_get(profile, "needs"), line->need);
	const json_t *set =
		line->set ? json_object_get(json_object_get(profile, "set"), line->set) : NULL;
	bool known = profile_text_ran(profile);
	char value[48], spread[48];

	profile_text_value(value, line->unit, listing_number(need, "value"));
	profile_text_value(spread, line->unit, listing_number(need, "spread"));
	listing_cell(l, "  %s", line->title);
	if (set) {
		char own[48];

		profile_text_value(own, line->unit, line->factor * json_number_value(set));
		listing_cell(l, "%s", own);
		listing_cell(l, "%s", "");
		listing_cell(l, "%s", "");
		listing_cell(l, known ? "set by you (learned: %s)" : "set by you", value);
		return;
	}
	listing_cell(l, "%s", known ? value : "-");
	listing_cell(l, "%s", listing_number(need, "runs") > 1 ? spread : "-");
	if (listing_number(need, "confidence") > 0)
		listing_cell(l, "%.0f %% %s", 100 * listing_number(need, "confidence"),
			     listing_string(need, "word"));
	else
		listing_cell(l, "-");
	if (known)
		profile_text_from(l, profile, need, line->unit);
	else
		listing_cell(l, "no run yet");
}

static int profile_text_needs(const json_t *profile)
{
	static const struct listing_column columns[] = {
		{"  NEED", false}, {"VALUE", true}, {"+-", true}, {"SURE", true}, {"FROM", false},
	};
	const json_t *input = json_object_get(profile, "input_mb");
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	int rc;

	printf("\nThe next run of %s (user %s), from %.0f run%s (kept: %.0f cold, %.0f warm)",
	       listing_string(profile, "class"), listing_string(profile, "user"),
	       listing_number(profile, "runs"), listing_number(profile, "runs") == 1 ? "" : "s",
	       listing_number(profile, "cold_runs"), listing_number(profile, "warm_runs"));
	if (json_is_number(input))
		printf(",\nwith %.4g MB of input", json_number_value(input));
	printf(":\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		profile_text_line(l, profile, &lines[i]);
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc;
}

static void profile_text_set_only(const json_t *profile)
{
	const json_t *set = json_object_get(profile, "set");

	for (size_t i = 0; i < sizeof(set_only) / sizeof(*set_only); i++)
		if (json_object_get(set, set_only[i].set))
			printf("  %s: %.6g%s, set by you\n", set_only[i].title,
			       listing_number(set, set_only[i].set), set_only[i].unit);
}

/* What is known of who of its ranks sends how much to whom. */
static void profile_text_talk(const json_t *profile)
{
	const json_t *talk = json_object_get(profile, "talk");
	char amount[32], line[256];

	if (!talk)
		return;
	amount_of_mb(amount, sizeof(amount), listing_number(talk, "bytes") / 1e6);
	snprintf(line, sizeof(line),
		 "  Its %.0f ranks exchange %s a run in %.0f pairs, %.0f of which were measured "
		 "(%s; "
		 "%.0f run%s).",
		 listing_number(talk, "tasks"), amount, listing_number(talk, "pairs"),
		 listing_number(talk, "seen_pairs"), listing_string(talk, "pattern"),
		 listing_number(talk, "runs"), listing_number(talk, "runs") > 1 ? "s" : "");
	listing_wrap(stdout, line, 2);
}

int profile_text_class(const json_t *profile)
{
	int rc = profile_text_needs(profile);

	profile_text_set_only(profile);
	/* An imported class has no last run here. */
	if (!rc && json_array_size(json_object_get(json_object_get(profile, "last_run"), "phases")))
		rc = print_phases(profile);
	profile_text_talk(profile);
	return rc ? rc : print_corrections(profile);
}
