/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The headlines with their verdicts in this run; see page_headlines.h. */
#include "sim/report/page_headlines.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sim/experiments/headlines.h"
#include "sim/report/html.h"
#include "sim/report/page_counts.h"

#define SENTENCE 400

/* Returns the headline's claim as judged in this run; NULL: its figure was not run. */
static const struct judged *judged_of(const struct page *page, const struct headline *h)
{
	for (size_t i = 0; i < page->n; i++) {
		const struct report *r = &page->reports[i];
		int k = strcmp(r->sweep->id, h->id) ? -1 : headline_find(h, r->experiment);

		if (k >= 0 && (size_t)k < r->njudged)
			return &r->judged[k];
	}
	return NULL;
}

static const struct claim *claim_of(const struct headline *h)
{
	const struct experiment *e = experiment_find(h->id);
	int k = headline_find(h, e);

	return k < 0 ? NULL : &e->claims[k];
}

/* --- what the paper reports ------------------------------------------------------ */

static void printed(const struct headline *h, const struct claim *c, FILE *f)
{
	if (h->printed) {
		html_escaped(f, h->printed);
		return;
	}
	if (c->type == CLAIM_ORDINAL) {
		fputs("better (no number)", f);
		return;
	}
	if (c->over == OVER_MAX)
		fputs("up to ", f);
	else if (c->at_least || c->code)
		fputs("at least ", f);
	if (c->kind != CLAIM_VALUE && c->by == RATIO_FACTOR && !c->code)
		fprintf(f, "%.3g times", c->printed);
	else
		fprintf(f, "%.3g %%", 100 * c->printed);
}

/* --- what we measure ------------------------------------------------------------- */

static bool is_factor(const char *unit)
{
	return unit && !strcmp(unit, ratio_name(RATIO_FACTOR));
}

static bool in_percent(const char *unit)
{
	enum measure m = unit ? measure_parse(unit) : M_COUNT;

	return unit && (!strcmp(unit, ratio_name(RATIO_GAIN)) ||
			!strcmp(unit, ratio_name(RATIO_REDUCTION)) ||
			(m != M_COUNT && measure_is_share(m)));
}

/* Writes a number that people can read, also where an interval reaches far out. */
static void number(double v, bool percent, FILE *f)
{
	double shown = percent ? 100 * v : v;

	if (percent && fabs(shown) < 1000)
		fprintf(f, "%.1f", shown);
	else
		fprintf(f, "%.3g", shown);
}

/*
 * Whether the interval is that of the claim: one of several alternatives may hold while the
 * comparison that is told is another.
 */
static bool interval_tells(const struct judgement *j)
{
	return j->interval.n && (j->verdict != VERDICT_HOLDS ||
				 (j->interval.mean >= j->low && j->interval.mean <= j->high));
}

/* Writes the interval that decided; ratios in the form in which the claim is judged. */
static void measured(const struct judgement *j, FILE *f)
{
	const struct interval *i = &j->interval;
	bool percent = in_percent(j->unit);

	if (!interval_tells(j)) {
		char text[SENTENCE];

		snprintf(text, sizeof(text), "%.*s", (int)strcspn(j->measured, ";"), j->measured);
		fputs("<span class=\"at\">", f);
		html_escaped(f, text);
		fputs("</span>", f);
		return;
	}
	number(i->mean, percent, f);
	fputs(percent ? " % [" : is_factor(j->unit) ? " times [" : " [", f);
	number(i->low, percent, f);
	fputs(", ", f);
	number(i->high, percent, f);
	fputc(']', f);
}

/* --- why ------------------------------------------------------------------------- */

/*
 * Whether the effect that a headline tells of is there at all, whatever its size: no gain is 0 %,
 * or a factor of 1.
 */
enum effect {
	EFFECT_UNKNOWN,
	EFFECT_AS_PRINTED,
	EFFECT_LARGER,
	EFFECT_SMALLER,
	EFFECT_OF_SOME_SIZE, /* the interval straddles a bound, but not "no effect" */
	EFFECT_NONE,	     /* the interval includes "no effect" */
	EFFECT_OPPOSITE,
	EFFECTS
};

static enum effect effect_of(const struct claim *c, const struct judgement *j)
{
	double none = is_factor(j->unit) ? 1 : 0;
	bool tells = c->type != CLAIM_ORDINAL && j->interval.n &&
		     (c->kind == CLAIM_RATIO || c->kind == CLAIM_CODE);

	switch (j->verdict) {
	case VERDICT_HOLDS:
		return EFFECT_AS_PRINTED;
	case VERDICT_EXCEEDED:
		return EFFECT_LARGER;
	case VERDICT_UNDECIDED:
		return tells && j->interval.low > none ? EFFECT_OF_SOME_SIZE : EFFECT_UNKNOWN;
	case VERDICT_CONTRADICTED:
		if (!tells)
			return EFFECT_NONE;
		return j->interval.low > none	  ? EFFECT_SMALLER
		       : j->interval.high >= none ? EFFECT_NONE
						  : EFFECT_OPPOSITE;
	case VERDICT_NOT_TESTED:
	case VERDICTS:
		break;
	}
	return EFFECT_UNKNOWN;
}

/* Writes the bounds of a claim: "within 18.4 to 30.6 %", "above 2 times". */
static void bounds(const struct claim *c, const struct judgement *j, FILE *f)
{
	double scale = in_percent(j->unit) ? 100 : 1;
	const char *unit = scale > 1 ? " %" : is_factor(j->unit) ? " times" : "";

	if (isfinite(j->low) && isfinite(j->high))
		fprintf(f, "within %.3g to %.3g%s", scale * j->low, scale * j->high, unit);
	else
		fprintf(f, "%s %.3g%s", isfinite(j->low) ? "above" : "below",
			scale * (isfinite(j->low) ? j->low : j->high), unit);
	/* O-43: papers say "improved by" for both. */
	if (c->either && (c->printed < j->low || c->printed > j->high))
		fprintf(f, " (%.3g %% read as a gain)", 100 * c->printed);
}

/* Writes the first sentence of TEXT. */
static void first_sentence(const char *text, FILE *f)
{
	char sentence[SENTENCE];
	size_t length = strlen(text);

	for (const char *end = text; *end; end++) {
		if (strncmp(end, ". ", 2) != 0 && strncmp(end, "; ", 2) != 0)
			continue;
		length = (size_t)(end - text);
		break;
	}
	snprintf(sentence, sizeof(sentence), "%.*s", (int)length, text);
	html_escaped(f, sentence);
	if (length && sentence[strlen(sentence) - 1] != '.')
		fputc('.', f);
}

static void undecided(const struct claim *c, const struct judgement *j, FILE *f)
{
	char more[80];

	verdict_more(j, more, sizeof(more));
	if (c->type == CLAIM_ORDINAL || !j->interval.n) {
		fputs("The interval allows both answers", f);
	} else {
		if (effect_of(c, j) == EFFECT_OF_SOME_SIZE)
			fputs("There, but how large is open: the", f);
		else
			fputs("The", f);
		fputs(" interval lies only partly ", f);
		bounds(c, j, f);
	}
	fprintf(f, "%s%s.", more[0] ? "; " : "", more);
}

/* Says how much of a gain is only that the policy may spread its tasks at once. */
static void start_share(const struct judgement *j, FILE *f)
{
	const char *tail = strrchr(j->start, ':');
	int share;

	if (tail && sscanf(tail, ": %d %% of it is that start", &share) == 1)
		fprintf(f, " %d %% of the gain is that only this policy starts spread.", share);
}

/* Why the claim does not hold, as far as known. */
static void known_reason(const struct headline *h, const struct claim *c, FILE *f)
{
	if (h->reason)
		html_escaped(f, h->reason);
	else if (c->why)
		first_sentence(c->why, f);
	else
		fputs("No reason is known.", f);
}

/* Says whether a contradicted effect is smaller than printed, nothing, or the opposite. */
static void direction(const struct claim *c, const struct judgement *j, FILE *f)
{
	static const char *const words[EFFECTS] = {
		[EFFECT_SMALLER] = "There, but smaller. ",
		[EFFECT_LARGER] = "There, and larger. ",
		[EFFECT_NONE] = "No such effect is seen. ",
		[EFFECT_OPPOSITE] = "The opposite. ",
	};
	const char *said = words[effect_of(c, j)];

	if (said)
		fputs(said, f);
}

static void reason(const struct headline *h, const struct claim *c, const struct judged *j, FILE *f)
{
	if (!j) {
		fprintf(f, "Not among the figures of this page: <code>iocom sim %s</code>", h->id);
		return;
	}
	switch (j->judgement.verdict) {
	case VERDICT_HOLDS:
		if (c->type == CLAIM_ORDINAL || !interval_tells(&j->judgement)) {
			fputs("As the paper says.", f);
			break;
		}
		fputs("The interval lies ", f);
		bounds(c, &j->judgement, f);
		fputc('.', f);
		break;
	case VERDICT_UNDECIDED:
		undecided(c, &j->judgement, f);
		break;
	case VERDICT_NOT_TESTED:
		first_sentence(j->judgement.measured[0] ? j->judgement.measured : c->why, f);
		break;
	case VERDICT_EXCEEDED:
	case VERDICT_CONTRADICTED:
	case VERDICTS:
		direction(c, &j->judgement, f);
		known_reason(h, c, f);
		break;
	}
	start_share(&j->judgement, f);
	if (c->calibrates)
		fputs(" A setting was chosen by it: no evidence.", f);
}

/* --- the table ------------------------------------------------------------------- */

static const char *paper_of(const struct headline *h)
{
	const struct experiment *e = experiment_find(h->id);

	return e ? e->paper : "";
}

/* Writes the paper's name over all its rows. */
static void paper_cell(const struct page *page, size_t i, FILE *f)
{
	const struct headline *h = headline_at(i), *next;
	const char *name = paper_of(h);
	const struct paper *p = paper_find(name);
	size_t rows = 1;

	while ((next = headline_at(i + rows)) && !strcmp(paper_of(next), name))
		rows++;
	fprintf(f, "<th scope=\"rowgroup\" rowspan=\"%zu\" title=\"", rows);
	html_escaped(f, p ? p->title : "");
	if (page_has_paper(page, name))
		fprintf(f, "\"><a href=\"#paper-%s\">%s</a></th>", name, name);
	else
		fprintf(f, "\">%s</th>", name);
}

static void headline_row(const struct page *page, size_t i, FILE *f)
{
	const struct headline *h = headline_at(i);
	const struct claim *c = claim_of(h);
	const struct judged *j = judged_of(page, h);
	bool first = !i || strcmp(paper_of(headline_at(i - 1)), paper_of(h)) != 0;

	if (!c)
		return;
	fprintf(f, "<tr%s data-id=\"%s\" data-claim=\"%d\">", first ? " class=\"first\"" : "",
		h->id, headline_find(h, experiment_find(h->id)) + 1);
	if (first)
		paper_cell(page, i, f);
	fputs("<td>", f);
	html_escaped(f, h->says);
	fputs("</td><td class=\"num\">", f);
	printed(h, c, f);
	fputs("</td><td class=\"num\">", f);
	if (j && j->judgement.verdict != VERDICT_NOT_TESTED)
		measured(&j->judgement, f);
	else
		fputs("&#8211;", f);
	fputs("</td><td>", f);
	if (j)
		fprintf(f, "<a class=\"v %s\" href=\"#%s.%d\">%s</a>",
			page_verdict_class(j->judgement.verdict), h->id,
			headline_find(h, experiment_find(h->id)) + 1,
			verdict_name(j->judgement.verdict));
	else
		fputs("<span class=\"v na\">not run</span>", f);
	fputs("</td><td>", f);
	reason(h, c, j, f);
	fputs("</td></tr>", f);
}

/* Says in words what becomes of the effects, whatever the verdicts on their sizes. */
static void effects_in_words(const unsigned int count[EFFECTS], unsigned int all, FILE *f)
{
	static const struct {
		enum effect effect;
		const char *words;
	} kinds[] = {
		{EFFECT_AS_PRINTED, "as reported"},
		{EFFECT_LARGER, "larger"},
		{EFFECT_SMALLER, "smaller"},
		{EFFECT_OF_SOME_SIZE, "of a size that is open"},
	};
	unsigned int there = 0;
	bool first = true;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		there += count[kinds[i].effect];
	fprintf(f, "<p>The effect that they tell of is <b class=\"yes\">there in %u of %u</b>",
		there, all);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!count[kinds[i].effect])
			continue;
		fprintf(f, "%s%u %s", first ? " (" : ", ", count[kinds[i].effect], kinds[i].words);
		first = false;
	}
	fprintf(f, "%s, <b class=\"no\">not seen in %u</b>", first ? "" : ")",
		count[EFFECT_NONE] + count[EFFECT_OPPOSITE]);
	if (count[EFFECT_UNKNOWN])
		fprintf(f, " and open in %u", count[EFFECT_UNKNOWN]);
	fputs(".</p>", f);
}

/* Says in words how many of the headlines hold. */
static void in_one_line(const struct page *page, FILE *f)
{
	unsigned int count[VERDICTS] = {0}, effects[EFFECTS] = {0}, all = 0, missing = 0;

	for (; headline_at(all); all++) {
		const struct judged *j = judged_of(page, headline_at(all));

		if (!j) {
			missing++;
			continue;
		}
		count[j->judgement.verdict]++;
		effects[effect_of(claim_of(headline_at(all)), &j->judgement)]++;
	}
	if (missing < all)
		effects_in_words(effects, all - missing, f);
	fprintf(f, "<p>Of %u headlines ", all);
	for (unsigned int v = 0; v < VERDICTS; v++)
		if (count[v] || v == VERDICT_HOLDS)
			fprintf(f, "%s<b class=\"%s\">%u %s</b>", v ? ", " : "",
				page_verdict_class(v), count[v],
				v == VERDICT_HOLDS ? "hold" : verdict_name(v));
	if (missing)
		fprintf(f, ", <b class=\"na\">%u not run</b>", missing);
	fputs(". A verdict is on the printed number, where there is one. In brackets: 95 % "
	      "intervals over the seeds.</p>",
	      f);
}

void page_headlines(const struct page *page, FILE *f)
{
	fputs("<h2 id=\"headlines\">What the papers are known for, and what we find</h2>", f);
	in_one_line(page, f);
	page_counts_in_words(page, f);
	fputs("<table class=\"heads\"><thead><tr><th>paper</th><th>what it says</th>"
	      "<th>it reports</th><th>we measure</th><th>verdict</th><th>why</th></tr></thead>"
	      "<tbody>",
	      f);
	for (size_t i = 0; headline_at(i); i++)
		headline_row(page, i, f);
	fputs("</tbody></table>", f);
}
