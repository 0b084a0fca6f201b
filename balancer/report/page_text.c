/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See page.h. */
#include "balancer/report/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer/listing.h"
#include "user/utf8.h"

/* As listing_span, with a sign. */
static const char *page_span(char out[32], double ms)
{
	out[0] = '-';
	listing_span(out + (ms < 0), 32 - (ms < 0), fabs(ms));
	return out;
}

static const char *page_time(char out[32], uint64_t ns)
{
	time_t at = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!localtime_r(&at, &tm) || !strftime(out, 32, "%F %H:%M", &tm))
		out[0] = 0;
	return out;
}

/* --- the gain ---------------------------------------------------------------------------- */

/* What a row says of its gain. */
static void page_gain(char *out, size_t size, const struct gain_row *row)
{
	char gain[32], low[32], high[32];
	double sign = row->gain_ms < 0 ? -1 : 1;

	page_span(low, row->low_ms * (row->verdict == GAIN_TOLD ? sign : 1));
	page_span(high, row->high_ms * (row->verdict == GAIN_TOLD ? sign : 1));
	page_span(gain, fabs(row->gain_ms));
	switch (row->verdict) {
	case GAIN_TOLD:
		snprintf(out, size, "%s %s, %.0f %% (%s to %s)", sign < 0 ? "lost" : "saved", gain,
			 100 * fabs(row->gain_ms) / row->home_ms, sign < 0 ? high : low,
			 sign < 0 ? low : high);
		break;
	case GAIN_UNSURE:
		snprintf(out, size, "cannot be told: from %s to %s", low, high);
		break;
	case GAIN_FEW:
		if (row->left)
			snprintf(out, size, "cannot be told: %u judged, %d needed", row->judged,
				 GAIN_LEAST);
		else
			snprintf(out, size, "-");
		break;
	case GAIN_NO_SCALE:
		snprintf(out, size, "cannot be told: too few jobs stayed at home");
		break;
	}
}

static void page_print_total(const struct gain_row *total)
{
	char gain[160], took[32], home[32];

	if (!total->left) {
		printf("Gain: none, no job left home.\n");
		return;
	}
	page_gain(gain, sizeof(gain), total);
	printf("Gain: %s.\n", gain);
	page_span(took, total->took_ms);
	page_span(home, total->home_ms);
	if (total->verdict == GAIN_TOLD)
		printf("  %u jobs that left home took %s; at home they would have taken about %s.\n"
		       "  The interval is of 95 %%.  It is an estimate: iocom(1) says how.\n",
		       total->judged, took, home);
	else if (total->verdict == GAIN_UNSURE)
		printf("  %u jobs that left home took %s.  The interval of 95 %% contains 0: more "
		       "jobs may\n  show whether there is a gain.\n",
		       total->judged, took);
	else if (total->verdict == GAIN_FEW)
		printf("  Judged are jobs that iocom sent away, that ended well, and whose needs "
		       "were "
		       "known.\n");
	else
		printf("  Expected times are compared with measured ones on jobs that stay at home:"
		       " at least\n  %d, none of which outweighs the others, are needed.\n",
		       GAIN_STAYED);
}

static void page_print_predictions(const struct gain_report *r)
{
	const struct gain_predictions *p = &r->predictions;
	char line[224];

	if (!p->jobs) {
		printf("Predictions: nothing was expected of any of these jobs.\n");
		return;
	}
	snprintf(line, sizeof(line),
		 "Predictions: %u job%s took %.2f times the expected time (median; 90 %% of them "
		 "%.2f to %.2f); %.0f %% were within a factor of 1.25, %.0f %% within 2.",
		 p->jobs, p->jobs == 1 ? "" : "s", p->median, p->low, p->high,
		 100 * p->within_quarter, 100 * p->within_two);
	listing_wrap(stdout, line, 2);
	if (r->stayed)
		printf("  At home, the %u job%s that stayed took %.2f times the expected time "
		       "(median).\n",
		       r->stayed, r->stayed == 1 ? "" : "s", r->stayed_median);
}

static void page_print_slowdowns(const struct gain_slowdowns *s)
{
	char line[192];

	if (!s->jobs)
		return;
	snprintf(line, sizeof(line),
		 "Slowdown: %u job%s took %.2f times what %s alone (mean; median %.2f, 95 %% "
		 "below %.2f).",
		 s->jobs, s->jobs == 1 ? "" : "s", s->mean, s->jobs == 1 ? "it takes" : "they take",
		 s->median, s->high);
	listing_wrap(stdout, line, 2);
}

static void page_print_left_out(const struct gain_report *r)
{
	static const char *const why[GAIN_LEFT_OUT] = {
		[GAIN_NAMED] = "not placed by iocom (node named, login, or worker of a batch)",
		[GAIN_FAILED] = "not ended with status 0",
		[GAIN_UNKNOWN] = "of which nothing was known (the first runs of a class)",
		[GAIN_ABSURD] = "with times that cannot be",
	};
	bool any = false;

	for (int i = 0; i < GAIN_LEFT_OUT; i++) {
		if (!r->left_out[i])
			continue;
		printf("%s%6u %s\n", any ? "" : "Jobs not judged:\n", r->left_out[i], why[i]);
		any = true;
	}
}

/* --- the tables ------------------------------------------------------------------------- */

static void page_name(struct listing *l, const struct page *page, enum gain_by by,
		      const struct gain_row *row)
{
	const struct gain_report *r = page->report;

	if (!row->name)
		listing_cell(l, "%zu others", r->by[by].others);
	else if (by == GAIN_CLASS && r->by[GAIN_USER].nrows > 1)
		listing_cell(l, "%s (%s)", row->name, row->user);
	else
		listing_cell(l, "%s", *row->name ? row->name : "-");
}

static void page_row(struct listing *l, const struct page *page, enum gain_by by,
		     const struct gain_row *row)
{
	char time[32], took[32], gain[160];

	page_name(l, page, by, row);
	page_gain(gain, sizeof(gain), row);
	listing_cell(l, "%u", row->jobs);
	listing_cell(l, "%u", row->left);
	listing_cell(l, "%s", page_span(time, row->time_ms));
	listing_cell(l, "%u", row->judged);
	listing_cell(l, "%s", row->judged ? page_span(took, row->took_ms) : "-");
	listing_cell(l, "%s", gain);
}

static int page_print_table(const struct page *page, enum gain_by by, const char *title)
{
	const struct listing_column columns[] = {
		{title, false},	  {"JOBS", true}, {"LEFT", true},  {"TIME", true},
		{"JUDGED", true}, {"TOOK", true}, {"GAIN", false},
	};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	int rc;

	for (size_t i = 0; i < page->report->by[by].nrows; i++)
		page_row(l, page, by, &page->report->by[by].rows[i]);
	putchar('\n');
	rc = listing_print(l, stdout);
	listing_free(l);
	if (rc)
		fputs("iocom report: out of memory\n", stderr);
	return rc;
}

static int page_print_tables(const struct page *page)
{
	static const char *const titles[GAIN_TABLES] = {NULL, "POLICY", "NODE", "USER", "CLASS"};

	for (int by = GAIN_POLICY; by < GAIN_TABLES; by++)
		if ((by != GAIN_USER || page->report->by[by].nrows > 1) &&
		    page_print_table(page, (enum gain_by)by, titles[by]))
			return 1;
	return 0;
}

/* --- all together ------------------------------------------------------------------------- */

/* A name that the user typed, or that a file holds, may be anything. */
static void page_print_name(FILE *out, const char *text)
{
	char name[256];

	snprintf(name, sizeof(name), "%s", text);
	utf8_plain(name);
	fputs(name, out);
}

static void page_print_homes(FILE *out, const json_t *homes)
{
	size_t n = json_array_size(homes);

	fprintf(out, " submitted at %s", n == 1 ? "node" : "nodes");
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ", " : " ", out);
		page_print_name(out, json_string_value(json_array_get(homes, i)));
	}
}

/* Which of the jobs are counted, if not all. */
static void page_print_filter(FILE *out, const struct gain_filter *filter)
{
	const char *before = ", only those";

	if (filter->policy) {
		fprintf(out, "%s placed by ", before);
		page_print_name(out, filter->policy);
		before = " and";
	}
	if (filter->node) {
		fprintf(out, "%s run at ", before);
		page_print_name(out, filter->node);
	}
}

static void page_print_counts(FILE *out, const struct gain_row *total)
{
	if (!total->jobs)
		fprintf(out, ": none has ended.");
	else if (total->jobs == 1)
		fprintf(out, ": 1 has ended, iocom %s.",
			total->left ? "sent it to another node" : "did not send it away");
	else if (!total->left)
		fprintf(out, ": %u have ended, iocom sent none of them away.", total->jobs);
	else
		fprintf(out, ": %u have ended, iocom sent %u of them to other nodes.", total->jobs,
			total->left);
}

static int page_print_head(const struct page *page)
{
	char since[32], *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	if (!out) {
		fputs("iocom report: out of memory\n", stderr);
		return 1;
	}
	page_print_name(out, page->whose);
	page_print_homes(out, page->homes);
	if (page->since_ns)
		fprintf(out, " since %s", page_time(since, page->since_ns));
	page_print_filter(out, page->filter);
	page_print_counts(out, &page->report->by[GAIN_TOTAL].rows[0]);
	if (!fclose(out))
		listing_wrap(stdout, line, 2);
	free(line);
	if (page->cut)
		printf("Only the newest %d are counted.\n", GAIN_JOBS);
	printf("What was submitted at other nodes is in their own reports.\n");
	return 0;
}

int page_print(const struct page *page)
{
	if (page_print_head(page))
		return 1;
	if (page->report->by[GAIN_TOTAL].rows[0].jobs) {
		putchar('\n');
		page_print_total(&page->report->by[GAIN_TOTAL].rows[0]);
		page_print_predictions(page->report);
		page_print_slowdowns(&page->report->slowdowns);
		page_print_left_out(page->report);
		if (page_print_tables(page))
			return 1;
	}
	return listing_end();
}
