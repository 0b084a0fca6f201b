/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A paper's figures and claims; see page_claims.h. */
#include "sim/report/page_claims.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/claim_rows.h"
#include "sim/report/html.h"
#include "sim/report/page_counts.h"

/* --- reasons --------------------------------------------------------------------- */

/* The reasons of a paper's claims that do not hold, each once. */
struct reasons {
	const struct page *page;
	const struct paper *paper;
	struct told {
		const char *why;
		size_t claims;
	} * list;
	size_t n;
};

static bool in_paper(const struct report *r, const struct paper *p)
{
	return r->experiment && !strcmp(r->experiment->paper, p->name);
}

/* Returns the reason that a judged claim needs, or NULL. */
static const char *reason_of(const struct judged *j)
{
	return verdict_needs_reason(j->judgement.verdict) ? j->claim->why : NULL;
}

static struct told *reason_find(const struct reasons *all, const struct claim *c)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->list[i].why, c->why))
			return &all->list[i];
	return NULL;
}

static int reason_add(struct reasons *all, const struct claim *c)
{
	struct told *t = reason_find(all, c), *grown;

	if (t) {
		t->claims++;
		return 0;
	}
	grown = realloc(all->list, (all->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	all->list = grown;
	all->list[all->n++] = (struct told){c->why, 1};
	return 0;
}

static int reasons_collect(struct reasons *all)
{
	int ret = 0;

	for (size_t i = 0; i < all->page->n && !ret; i++) {
		const struct report *r = &all->page->reports[i];

		for (size_t k = 0; in_paper(r, all->paper) && k < r->njudged && !ret; k++)
			if (reason_of(&r->judged[k]))
				ret = reason_add(all, r->judged[k].claim);
	}
	return ret;
}

/* The number of a reason among those of several claims; 0: it has one claim only. */
static unsigned int reason_number(const struct reasons *all, const struct told *t)
{
	unsigned int number = 0;

	for (const struct told *i = all->list; i <= t; i++)
		number += i->claims > 1;
	return t->claims > 1 ? number : 0;
}

static bool gives(const struct judged *j, const struct told *t)
{
	return reason_of(j) && !strcmp(j->claim->why, t->why);
}

/* Whether a claim before this one gives the same reason and bound. */
static bool bound_told(const struct reasons *all, const struct told *t, size_t report, size_t n)
{
	const char *bound = all->page->reports[report].judged[n].claim->bound;

	for (size_t i = 0; i <= report; i++) {
		const struct report *r = &all->page->reports[i];
		size_t end = i == report ? n : r->njudged;

		for (size_t k = 0; in_paper(r, all->paper) && k < end; k++)
			if (gives(&r->judged[k], t) && r->judged[k].claim->bound &&
			    !strcmp(r->judged[k].claim->bound, bound))
				return true;
	}
	return false;
}

/* Links to an experiment, if its paper is on the page. */
static void link_to(const struct page *page, const char *id, FILE *f)
{
	const struct experiment *e = experiment_find(id);

	if (e && page_has_paper(page, e->paper))
		fprintf(f, "<a href=\"#%s\">%s</a>", e->id, e->id);
	else
		html_escaped(f, id);
}

/* Links to the experiments that back a reason. */
static void see_bounds(const struct reasons *all, const struct told *t, FILE *f)
{
	const char *comma = " See ";

	for (size_t i = 0; i < all->page->n; i++) {
		const struct report *r = &all->page->reports[i];

		for (size_t k = 0; in_paper(r, all->paper) && k < r->njudged; k++) {
			const char *bound = r->judged[k].claim->bound;

			if (!gives(&r->judged[k], t) || !bound || bound_told(all, t, i, k))
				continue;
			fputs(comma, f);
			link_to(all->page, bound, f);
			comma = ", ";
		}
	}
	if (*comma == ',')
		fputc('.', f);
}

/* Links to all claims that give the reason. */
static void reason_claims(const struct reasons *all, const struct told *t, FILE *f)
{
	const char *comma = "";

	for (size_t i = 0; i < all->page->n; i++) {
		const struct report *r = &all->page->reports[i];

		for (size_t k = 0; in_paper(r, all->paper) && k < r->njudged; k++) {
			if (!gives(&r->judged[k], t))
				continue;
			fprintf(f, "%s<a href=\"#%s.%zu\">%s.%zu</a>", comma, r->sweep->id, k + 1,
				r->sweep->id, k + 1);
			comma = ", ";
		}
	}
}

static void reasons_table(const struct reasons *all, FILE *f)
{
	bool any = false;

	for (size_t i = 0; i < all->n; i++) {
		const struct told *t = &all->list[i];
		unsigned int number = reason_number(all, t);

		if (!number)
			continue;
		if (!any)
			fputs("<table class=\"reasons\"><thead><tr><th></th><th>reason of several "
			      "claims</th><th>claims</th></tr></thead><tbody>",
			      f);
		any = true;
		fprintf(f, "<tr id=\"%s-reason-%u\"><td>%u</td><td>", all->paper->name, number,
			number);
		html_escaped(f, t->why);
		fputc('.', f);
		see_bounds(all, t, f);
		fputs("</td><td>", f);
		reason_claims(all, t, f);
		fputs("</td></tr>", f);
	}
	if (any)
		fputs("</tbody></table>", f);
}

/* --- a claim --------------------------------------------------------------------- */

static void policy_word(const char *policy, bool *first, FILE *f)
{
	if (!*first)
		fputc(' ', f);
	*first = false;
	html_escaped(f, policy);
}

static void sweep_policies(const struct sweep *s, FILE *f)
{
	bool first = true;

	for (size_t k = 0; k < s->nseries; k++)
		policy_word(s->series[k].policy, &first, f);
}

/* Writes the policies that a claim compares; those of the whole figure if it names none. */
static void claim_policies(const struct claim_context *context, const struct claim *c, FILE *f)
{
	struct claim_row rows[2 * CLAIM_ROWS_MAX];
	int n = c->a ? claim_rows(context, c->a, rows) : 0;
	bool first = true;

	n += c->b ? claim_rows(context, c->b, rows + n) : 0;
	if (!n) {
		sweep_policies(context->sweep, f);
		return;
	}
	for (int i = 0; i < n; i++)
		policy_word(rows[i].sweep->series[rows[i].series].policy, &first, f);
}

static void why(const struct reasons *all, const struct judged *j, FILE *f)
{
	const struct told *t = reason_of(j) ? reason_find(all, j->claim) : NULL;
	unsigned int number = t ? reason_number(all, t) : 0;

	if (!t)
		return;
	fputs("<span class=\"w\">why: ", f);
	if (number) {
		fprintf(f, "<a class=\"reason\" href=\"#%s-reason-%u\" title=\"", all->paper->name,
			number);
		html_escaped(f, t->why);
		fprintf(f, "\">reason %u</a>", number);
	} else {
		html_escaped(f, t->why);
		fputc('.', f);
		see_bounds(all, t, f);
	}
	fputs("</span>", f);
}

/* A reading that several claims share is written at the first of them. */
static void reading(const struct report *r, size_t n, FILE *f)
{
	const char *text = r->judged[n].claim->reading;
	size_t first = 0;

	if (!text)
		return;
	while (!r->judged[first].claim->reading ||
	       strcmp(r->judged[first].claim->reading, text) != 0)
		first++;
	fputs("<span class=\"w\">reading: ", f);
	if (first < n)
		fprintf(f, "as <a href=\"#%s.%zu\">claim %zu</a>", r->sweep->id, first + 1,
			first + 1);
	else
		html_escaped(f, text);
	fputs("</span>", f);
}

/* Writes claim N + 1 of its experiment; elsewhere on the page it is called "ACM-3.2". */
static void claim(const struct reasons *all, const struct claim_context *context,
		  const struct report *r, size_t n, FILE *f)
{
	const struct judged *j = &r->judged[n];
	enum verdict v = j->judgement.verdict;
	char more[80];

	fprintf(f, "<li id=\"%s.%zu\" data-paper=\"%s\" data-verdict=\"%s\"%s data-policies=\"",
		r->sweep->id, n + 1, page_claimant(r, j->claim), verdict_name(v),
		j->claim->calibrates ? " data-calibrates=\"1\"" : "");
	claim_policies(context, j->claim, f);
	fprintf(f, "\"><span class=\"tag\">%zu %s</span>", n + 1,
		j->claim->type == CLAIM_QUANTITATIVE ? "number" : "order");
	html_escaped(f, j->claim->text);
	fprintf(f, " <span class=\"v %s\">%s</span>", page_verdict_class(v), verdict_name(v));
	if (j->judgement.measured[0]) {
		fputs("<span class=\"m\">measured: ", f);
		html_escaped(f, j->judgement.measured);
		verdict_more(&j->judgement, more, sizeof(more));
		fprintf(f, "%s%s</span>", more[0] ? "; " : "", more);
	}
	if (j->judgement.start[0]) {
		fputs("<span class=\"w\">start: ", f);
		html_escaped(f, j->judgement.start);
		fputs("</span>", f);
	}
	if (j->claim->calibrates)
		fputs("<span class=\"w\">calibrates: " CALIBRATES_TEXT "</span>", f);
	reading(r, n, f);
	why(all, j, f);
	fputs("</li>", f);
}

/* --- a figure -------------------------------------------------------------------- */

static void figure(const struct report *r, struct output *o, FILE *f)
{
	char name[256], *svg = NULL;
	const char *path;
	size_t size = 0;
	ssize_t n = -1;
	FILE *in;

	snprintf(name, sizeof(name), "%s.svg", r->sweep->id);
	path = output_path(o, name);
	in = path ? fopen(path, "re") : NULL;
	if (in) {
		n = getdelim(&svg, &size, '\0', in);
		fclose(in);
	}
	fputs("<figure>", f);
	if (n > 0) {
		fprintf(f, "<img alt=\"%s: ", r->sweep->id);
		html_escaped(f, r->sweep->title);
		fputs("\" src=\"data:image/svg+xml;base64,", f);
		html_base64(f, svg, (size_t)n);
		fputs("\"/>", f);
	} else {
		fputs("<p class=\"soft\">No figure: gnuplot is not installed. The numbers are in "
		      "the CSV and JSON files.</p>",
		      f);
	}
	fputs("</figure>", f);
	free(svg);
}

static void page_fact(void *arg, const char *name, const char *value)
{
	fputs("<tr><td>", arg);
	html_escaped(arg, name);
	fputs("</td><td><code>", arg);
	html_escaped(arg, value);
	fputs("</code></td></tr>", arg);
}

static int article(const struct reasons *all, const struct claim_context *context,
		   const struct report *r, struct output *o, FILE *f)
{
	const struct sweep *s = r->sweep;
	int ret;

	fprintf(f, "<article id=\"%s\" data-paper=\"%s\" data-policies=\"", s->id, page_owner(r));
	sweep_policies(s, f);
	fprintf(f, "\"><h3>%s: ", s->id);
	html_escaped(f, s->title);
	fputs("</h3><div class=\"pair\">", f);
	figure(r, o, f);
	fputs("<div>", f);
	if (r->njudged)
		fputs("<ul class=\"claims\">", f);
	for (size_t i = 0; i < r->njudged; i++)
		claim(all, context, r, i, f);
	if (r->njudged)
		fputs("</ul>", f);
	if (r->experiment->reading) {
		fputs("<p class=\"w\">Reading: ", f);
		html_escaped(f, r->experiment->reading);
		fputs(".</p>", f);
	}
	fprintf(f,
		"<p class=\"w\"><a href=\"%s.csv\">CSV</a> <a href=\"%s.json\">JSON</a> "
		"<a href=\"%s.svg\">SVG</a> &#183; <code>iocom sim %s</code></p>",
		s->id, s->id, s->id, s->id);
	fputs("</div></div><details><summary>seed, settings, parameters, input</summary><table>"
	      "<tbody>",
	      f);
	ret = report_facts(s, page_fact, f);
	fputs("</tbody></table></details></article>\n", f);
	return ret;
}

static int articles(const struct reasons *all, struct output *o, FILE *f)
{
	const struct page *page = all->page;
	const struct sweep **sweeps = calloc(page->n + 1, sizeof(*sweeps));
	int ret = sweeps ? 0 : -ENOMEM;

	for (size_t i = 0; i < page->n && !ret; i++)
		sweeps[i] = page->reports[i].sweep;
	for (size_t i = 0; i < page->n && !ret; i++) {
		struct claim_context context = {page->reports[i].sweep, sweeps, page->n, 0};

		if (in_paper(&page->reports[i], all->paper))
			ret = article(all, &context, &page->reports[i], o, f);
	}
	free(sweeps);
	return ret;
}

/* --- a paper --------------------------------------------------------------------- */

/* Lists the entries that are no experiments, and those that were not run. */
static void without_figure(const struct page *page, const struct paper *p, FILE *f)
{
	const struct experiment *e;
	bool any = false;

	for (size_t i = 0; (e = experiment_at(i)); i++) {
		bool run = false;

		for (size_t k = 0; k < page->n; k++)
			run = run || !strcmp(page->reports[k].sweep->id, e->id);
		if (run || strcmp(e->paper, p->name) != 0)
			continue;
		if (!any)
			fputs("<p>Without a figure here:</p><table><tbody>", f);
		any = true;
		fprintf(f, "<tr id=\"%s\"><td>%s</td><td>", e->id, e->id);
		html_escaped(f, e->title);
		fputs("</td><td>", f);
		html_escaped(f, e->none ? e->none : "not run");
		fputs("</td></tr>", f);
	}
	if (any)
		fputs("</tbody></table>", f);
}

int page_paper(const struct page *page, const struct paper *p, struct output *o, FILE *f)
{
	struct reasons all = {.page = page, .paper = p};
	int ret = reasons_collect(&all);

	fprintf(f, "<section class=\"paper\"><h2 id=\"paper-%s\">", p->name);
	html_escaped(f, p->title);
	fputs("</h2>", f);
	if (p->calibrated) {
		fputs("<p>", f);
		html_escaped(f, p->calibrated);
		fputs("</p>", f);
	}
	if (!ret) {
		reasons_table(&all, f);
		ret = articles(&all, o, f);
	}
	without_figure(page, p, f);
	fputs("</section>\n", f);
	free(all.list);
	return ret;
}
