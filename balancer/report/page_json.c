/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See page.h. */
#include "balancer/report/page.h"

static const char *const page_verdicts[] = {
	[GAIN_TOLD] = "told",
	[GAIN_UNSURE] = "unsure",
	[GAIN_FEW] = "few left",
	[GAIN_NO_SCALE] = "few stayed",
};

/* A number that is only told with certainty. */
static json_t *page_if(bool told, double value)
{
	return told ? json_real(value) : json_null();
}

static json_t *page_json_row(const struct gain_row *row, enum gain_by by)
{
	bool told = row->verdict == GAIN_TOLD, interval = told || row->verdict == GAIN_UNSURE;
	json_t *o = json_pack(
		"{s:i,s:i,s:f,s:i,s:f,s:s,s:o,s:o,s:o,s:o}", "jobs", (int)row->jobs, "left",
		(int)row->left, "time_ms", row->time_ms, "judged", (int)row->judged, "took_ms",
		row->took_ms, "verdict", page_verdicts[row->verdict], "home_ms",
		page_if(told, row->home_ms), "gain_ms", page_if(told, row->gain_ms), "low_ms",
		page_if(interval, row->low_ms), "high_ms", page_if(interval, row->high_ms));

	if (by != GAIN_TOTAL)
		json_object_set_new(o, "name", row->name ? json_string(row->name) : json_null());
	if (by == GAIN_CLASS)
		json_object_set_new(o, "user", row->user ? json_string(row->user) : json_null());
	return o;
}

static json_t *page_json_table(const struct gain_table *table, enum gain_by by)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < table->nrows; i++)
		json_array_append_new(rows, page_json_row(&table->rows[i], by));
	return rows;
}

static json_t *page_json_predictions(const struct gain_predictions *p)
{
	return json_pack("{s:i,s:o,s:o,s:o,s:o,s:o}", "jobs", (int)p->jobs, "p5",
			 page_if(p->jobs, p->low), "median", page_if(p->jobs, p->median), "p95",
			 page_if(p->jobs, p->high), "within_1_25",
			 page_if(p->jobs, p->within_quarter), "within_2",
			 page_if(p->jobs, p->within_two));
}

static json_t *page_json_slowdowns(const struct gain_slowdowns *s)
{
	return json_pack("{s:i,s:o,s:o,s:o}", "jobs", (int)s->jobs, "mean",
			 page_if(s->jobs, s->mean), "median", page_if(s->jobs, s->median), "p95",
			 page_if(s->jobs, s->high));
}

json_t *page_json(const struct page *page)
{
	static const char *const tables[GAIN_TABLES] = {NULL, "by_policy", "by_node", "by_user",
							"by_class"};
	const struct gain_report *r = page->report;
	json_t *o = json_pack(
		"{s:i,s:o,s:I,s:I,s:b,s:o,s:o,s:{s:i,s:o},s:{s:i,s:i,s:i,s:i}}", "version", 1,
		"homes", json_copy((json_t *)page->homes), "since_ns", (json_int_t)page->since_ns,
		"until_ns", (json_int_t)page->until_ns, "cut", page->cut, "total",
		page_json_row(&r->by[GAIN_TOTAL].rows[0], GAIN_TOTAL), "predictions",
		page_json_predictions(&r->predictions), "stayed", "jobs", (int)r->stayed, "median",
		page_if(r->stayed, r->stayed_median), "not_judged", "named",
		(int)r->left_out[GAIN_NAMED], "failed", (int)r->left_out[GAIN_FAILED], "unknown",
		(int)r->left_out[GAIN_UNKNOWN], "absurd", (int)r->left_out[GAIN_ABSURD]);

	if (o)
		json_object_set_new(o, "slowdown", page_json_slowdowns(&r->slowdowns));
	for (int by = GAIN_POLICY; o && by < GAIN_TABLES; by++)
		json_object_set_new(o, tables[by], page_json_table(&r->by[by], (enum gain_by)by));
	return o;
}
