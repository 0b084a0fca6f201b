/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Results as JSON. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/report.h"

/* Writes 9 significant digits, or null for no number. */
static json_t *json_number(double value)
{
	char text[32];

	if (!isfinite(value))
		return json_null();
	snprintf(text, sizeof(text), "%.9g", value);
	return json_real(strtod(text, NULL));
}

static json_t *interval(struct interval i)
{
	return json_pack("{s:o, s:o, s:o}", "mean", json_number(i.mean), "low", json_number(i.low),
			 "high", json_number(i.high));
}

static void json_fact(void *arg, const char *name, const char *value)
{
	json_object_set_new(arg, name, json_string(value));
}

static json_t *measures(const struct sweep *s, size_t point, size_t series, const bool *has)
{
	json_t *out = json_object();

	for (unsigned int m = 0; m < M_COUNT; m++) {
		char name[64];

		if (!has[m])
			continue;
		snprintf(name, sizeof(name), "%s", measure_name(m));
		if (m >= M_KIND && m - M_KIND < s->nkinds)
			snprintf(name, sizeof(name), "slowdown_of_%s", s->kinds[m - M_KIND]);
		json_object_set_new(out, name, interval(sweep_mean(s, point, series, m)));
	}
	return out;
}

static json_t *rows(const struct sweep *s)
{
	json_t *out = json_array();
	bool has[M_COUNT];

	for (unsigned int m = 0; m < M_COUNT; m++)
		has[m] = sweep_has(s, m);
	for (size_t p = 0; p < s->npoints; p++)
		for (size_t k = 0; k < s->nseries; k++)
			json_array_append_new(out, json_pack("{s:s, s:o, s:s, s:s, s:i, s:o}",
							     "point", s->points[p].label, "x",
							     json_number(s->points[p].x), "series",
							     s->series[k].label, "policy",
							     s->series[k].policy, "seeds",
							     (int)sweep_done(s, p, k), "measures",
							     measures(s, p, k, has)));
	return out;
}

static json_t *json_claims(const struct report *r)
{
	json_t *out = json_array();

	for (size_t i = 0; i < r->njudged; i++) {
		const struct claim *c = r->judged[i].claim;
		const struct judgement *j = &r->judged[i].judgement;
		json_t *claim = json_pack(
			"{s:s, s:s, s:s, s:s, s:b}", "type",
			c->type == CLAIM_QUANTITATIVE ? "quantitative" : "ordinal", "claim",
			c->text, "verdict", verdict_name(j->verdict), "measured", j->measured,
			"calibrates", c->calibrates);

		if (j->start[0])
			json_object_set_new(claim, "start", json_string(j->start));
		if (j->interval.n) {
			json_object_set_new(claim, "unit", json_string(j->unit ? j->unit : ""));
			json_object_set_new(claim, "interval", interval(j->interval));
			json_object_set_new(claim, "bounds",
					    json_pack("{s:o, s:o}", "low", json_number(j->low),
						      "high", json_number(j->high)));
			json_object_set_new(claim, "alpha", json_number(j->alpha));
			json_object_set_new(claim, "seeds",
					    json_integer((json_int_t)j->interval.n));
			json_object_set_new(claim, "comparisons",
					    json_integer((json_int_t)j->comparisons));
		}
		if (j->verdict == VERDICT_UNDECIDED)
			json_object_set_new(claim, "more_seeds",
					    json_integer((json_int_t)j->more_seeds));
		if (c->reading)
			json_object_set_new(claim, "reading", json_string(c->reading));
		if (c->why && verdict_needs_reason(j->verdict))
			json_object_set_new(claim, "why", json_string(c->why));
		if (c->bound && verdict_needs_reason(j->verdict))
			json_object_set_new(claim, "bound", json_string(c->bound));
		json_array_append_new(out, claim);
	}
	return out;
}

json_t *report_json(const struct report *r)
{
	json_t *facts = json_object(), *out;

	if (!facts || report_facts(r->sweep, json_fact, facts)) {
		json_decref(facts);
		return NULL;
	}
	out = json_pack("{s:i, s:s, s:s, s:s, s:s, s:i, s:I, s:o, s:o, s:o}", "version", 1, "id",
			r->sweep->id, "title", r->sweep->title, "x", r->sweep->x_name, "measure",
			measure_name(r->y), "seeds", (int)r->sweep->seeds, "first_seed",
			(json_int_t)r->sweep->first_seed, "facts", facts, "results", rows(r->sweep),
			"claims", json_claims(r));
	return out;
}

int report_json_write(const struct report *r, FILE *f)
{
	json_t *out = report_json(r);

	if (!out)
		return -ENOMEM;
	/* Closing F reports an error here. */
	json_dumpf(out, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	fputc('\n', f);
	json_decref(out);
	return 0;
}
