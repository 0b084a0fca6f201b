/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The table of verdicts by paper; see page_counts.h. */
#include "sim/report/page_counts.h"

#include <stdbool.h>
#include <string.h>

#include "sim/report/html.h"

#define OURS_MARK "(ours)"
#define OURS_NAME "OURS"
#define BAR_WIDTH 260
#define TYPES	  (CLAIM_QUANTITATIVE + 1)

struct count {
	unsigned int of[TYPES][VERDICTS];
	unsigned int calibrates; /* claims that led to a setting: in none of the others */
};

bool page_has_paper(const struct page *page, const char *paper)
{
	for (size_t i = 0; i < page->n; i++)
		if (page->reports[i].experiment &&
		    !strcmp(page->reports[i].experiment->paper, paper))
			return true;
	return false;
}

const char *page_verdict_class(enum verdict v)
{
	static const char *const classes[VERDICTS] = {
		[VERDICT_HOLDS] = "yes",      [VERDICT_EXCEEDED] = "more",
		[VERDICT_UNDECIDED] = "open", [VERDICT_CONTRADICTED] = "no",
		[VERDICT_NOT_TESTED] = "na",
	};

	return classes[v];
}

static bool is_ours(const char *text)
{
	return !strncmp(text, OURS_MARK, strlen(OURS_MARK));
}

const char *page_owner(const struct report *r)
{
	return is_ours(r->experiment->title) ? OURS_NAME : r->experiment->paper;
}

const char *page_claimant(const struct report *r, const struct claim *c)
{
	return is_ours(c->text) ? OURS_NAME : page_owner(r);
}

static unsigned int count_claims(const struct page *page, const char *paper, struct count *count)
{
	unsigned int all = 0;

	*count = (struct count){0};
	for (size_t i = 0; i < page->n; i++) {
		const struct report *r = &page->reports[i];

		for (size_t k = 0; r->experiment && k < r->njudged; k++) {
			const struct claim *c = r->judged[k].claim;

			if (strcmp(page_claimant(r, c), paper) != 0)
				continue;
			if (c->calibrates) {
				count->calibrates++;
				continue;
			}
			count->of[c->type][r->judged[k].judgement.verdict]++;
			all++;
		}
	}
	return all;
}

static unsigned int count_both(const struct count *c, unsigned int v)
{
	return c->of[CLAIM_ORDINAL][v] + c->of[CLAIM_QUANTITATIVE][v];
}

/* Draws the verdicts as a bar, in the order of the columns. */
static void bar(FILE *f, const struct count *c, unsigned int all)
{
	unsigned int before = 0;

	fprintf(f, "<svg width=\"%d\" height=\"14\" role=\"img\" aria-label=\"", BAR_WIDTH);
	for (unsigned int v = 0; v < VERDICTS; v++)
		fprintf(f, "%s%u %s", v ? ", " : "", count_both(c, v), verdict_name(v));
	fputs("\">", f);
	for (unsigned int v = 0; v < VERDICTS; v++) {
		unsigned int n = count_both(c, v);

		if (n)
			fprintf(f,
				"<rect class=\"%s\" x=\"%.1f\" y=\"1\" width=\"%.1f\" "
				"height=\"12\"/>",
				page_verdict_class(v), (double)BAR_WIDTH * before / all,
				(double)BAR_WIDTH * n / all);
		before += n;
	}
	fputs("</svg>", f);
}

/* PAPER: NULL for the sum. */
static void count_row(FILE *f, const char *paper, const char *title, const struct count *c,
		      unsigned int all)
{
	fprintf(f, "<tr%s%s%s><th scope=\"row\">", paper ? " data-paper=\"" : "",
		paper ? paper : "", paper ? "\"" : "");
	html_escaped(f, title);
	fputs("</th><td>", f);
	bar(f, c, all);
	fputs("</td>", f);
	for (unsigned int v = 0; v < VERDICTS; v++) {
		fprintf(f, "<td class=\"n\" data-verdict=\"%s\">", verdict_name(v));
		if (paper && count_both(c, v))
			fprintf(f,
				"<a href=\"#figures\" data-show=\"%s\" data-verdict=\"%s\">%u</a>",
				paper, verdict_name(v), count_both(c, v));
		else
			fprintf(f, "%u", count_both(c, v));
		fputs("</td>", f);
	}
	fprintf(f, "<td class=\"n soft\">%u</td></tr>", c->calibrates);
}

/* Counts the claims of all papers together, without ours. */
static unsigned int count_papers(const struct page *page, struct count *total)
{
	const struct paper *p;
	unsigned int sum = 0;

	*total = (struct count){0};
	for (size_t i = 0; (p = paper_at(i)); i++) {
		struct count count;

		if (!strcmp(p->name, OURS_NAME))
			continue;
		sum += count_claims(page, p->name, &count);
		total->calibrates += count.calibrates;
		for (unsigned int v = 0; v < VERDICTS; v++)
			for (int t = 0; t < TYPES; t++)
				total->of[t][v] += count.of[t][v];
	}
	return sum;
}

void page_counts_in_words(const struct page *page, FILE *f)
{
	static const char *const names[TYPES] = {"orders and trends", "printed numbers"};
	struct count total;

	if (!count_papers(page, &total))
		return;
	fputs("<p>Of all claims of the papers: ", f);
	for (int t = 0; t < TYPES; t++) {
		unsigned int all = 0;

		for (unsigned int v = 0; v < VERDICTS; v++)
			all += total.of[t][v];
		fprintf(f, "%sof %u %s <b class=\"yes\">%u hold</b>", t ? "; " : "", all, names[t],
			total.of[t][VERDICT_HOLDS]);
		for (unsigned int v = VERDICT_HOLDS + 1; v < VERDICTS; v++)
			if (total.of[t][v])
				fprintf(f, ", %u %s", total.of[t][v],
					verdict_name((enum verdict)v));
	}
	fputs(".</p>", f);
}

void page_counts(const struct page *page, FILE *f)
{
	struct count total;
	const struct paper *p;
	unsigned int sum;

	fputs("<h2 id=\"summary\">All claims, by paper</h2><table class=\"counts\"><thead><tr>"
	      "<th>paper</th><th></th>",
	      f);
	for (unsigned int v = 0; v < VERDICTS; v++)
		fprintf(f, "<th class=\"n\"><span class=\"v %s\">%s</span></th>",
			page_verdict_class(v), verdict_name(v));
	fputs("<th class=\"n\">led to a setting</th></tr></thead><tbody>", f);
	for (size_t i = 0; (p = paper_at(i)); i++) {
		struct count count;
		unsigned int all = count_claims(page, p->name, &count);

		if (!all && !count.calibrates)
			continue;
		count_row(f, p->name, p->title, &count, all);
	}
	sum = count_papers(page, &total);
	if (sum)
		count_row(f, NULL, "all of the papers", &total, sum);
	fputs("</tbody></table><p class=\"soft\">Claims that led to a setting are shown "
	      "below, too, but are no evidence and count under no verdict.</p>",
	      f);
}
