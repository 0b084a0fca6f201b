/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The page of all figures; see page.h. */
#include "sim/report/page.h"

#include <stdbool.h>
#include <string.h>

#include <iocom/rules.h>

#include "sim/report/html.h"
#include "sim/report/page_claims.h"
#include "sim/report/page_counts.h"
#include "sim/report/page_headlines.h"
#include "sim/report/page_style.h"

/* --- judging, configurations ------------------------------------------------------ */

static void rules(FILE *f)
{
	fputs("<h2 id=\"rules\">How a claim is judged</h2>"
	      "<p>Every policy gets the same workload at the same seed; policies are compared "
	      "seed by seed, by the mean of ln(base / new) and its 95 % Student t interval. A "
	      "claim <b>holds</b> when the interval lies within its bounds and is "
	      "<b>contradicted</b> when it lies outside; <b>undecided</b> when it straddles a "
	      "bound: it says how many more seeds would decide. <b>Exceeded</b>: the interval "
	      "lies above the printed number; the effect is there, and larger. A claim of several "
	      "comparisons holds when each of them does, and one contradicts it at 5 % divided by "
	      "their number (Bonferroni), so that a verdict errs in 5 % of the cases at most; the "
	      "claims of a paper are not corrected for each other.</p>"
	      "<p><b>Orders:</b> an order holds for the points together, and no point may "
	      "contradict it; a trend when the last point differs from the first by 5 % at least "
	      "and no point goes back by more than 2 % from any before it; equality within 15 %. "
	      "<b>Numbers</b> have bounds of 25 % around the printed one; &#8220;more than&#8221; "
	      "begins at it; &#8220;up to&#8221; is judged by the largest over the points. gain = "
	      "base / new &#8722; 1, reduction = 1 &#8722; new / base; both are shown.</p>",
	      f);
}

static void configurations(FILE *f)
{
	const struct paper *p;

	fputs("<h2 id=\"configurations\">Common configurations</h2><p>One per paper, for all its "
	      "figures; a figure adds only what its own row in the paper fixes. Nothing is "
	      "tuned per figure; each paper's figures state what was chosen after seeing "
	      "outcomes.</p>",
	      f);
	for (size_t i = 0; (p = paper_at(i)); i++) {
		if (!p->settings->name)
			continue;
		fputs("<h3>", f);
		html_escaped(f, p->title);
		fputs("</h3><table><thead><tr><th>setting</th><th>value</th><th>why</th></tr>"
		      "</thead><tbody>",
		      f);
		for (const struct paper_setting *s = p->settings; s->name; s++) {
			fputs("<tr><td><code>", f);
			html_escaped(f, s->name);
			fputs("</code></td><td><code>", f);
			html_escaped(f, s->value);
			fputs("</code></td><td>", f);
			html_escaped(f, s->reason);
			fputs("</td></tr>", f);
		}
		fputs("</tbody></table>", f);
	}
}

/* --- ways into the page ------------------------------------------------------------ */

static void navigation(const struct page *page, FILE *f)
{
	const struct paper *p;

	fputs("<details><summary>All figures by name</summary><nav>", f);
	for (size_t i = 0; (p = paper_at(i)); i++) {
		if (!page_has_paper(page, p->name))
			continue;
		fprintf(f, "<p><b>%s</b> ", p->name);
		for (size_t k = 0; k < page->n; k++) {
			const struct report *r = &page->reports[k];

			if (r->experiment && !strcmp(r->experiment->paper, p->name))
				fprintf(f, "<a href=\"#%s\">%s</a> ", r->sweep->id, r->sweep->id);
		}
		fputs("</p>", f);
	}
	fputs("</nav></details>", f);
}

static void choice(FILE *f, const char *value, const char *text)
{
	fputs("<option value=\"", f);
	html_escaped(f, value);
	fputs("\">", f);
	html_escaped(f, text);
	fputs("</option>", f);
}

static bool has_policy(const struct page *page, const char *policy)
{
	for (size_t i = 0; i < page->n; i++)
		for (size_t k = 0; k < page->reports[i].sweep->nseries; k++)
			if (!strcmp(page->reports[i].sweep->series[k].policy, policy))
				return true;
	return false;
}

static void policy_choices(const struct page *page, FILE *f)
{
	static const char *const prefix[] = {"", "feedback+"};

	for (size_t k = 0; k < sizeof(prefix) / sizeof(prefix[0]); k++) {
		for (unsigned int i = 0; i < RULES_POLICIES; i++) {
			char name[64];

			snprintf(name, sizeof(name), "%s%s", prefix[k],
				 rules_policy_name((enum rules_policy)i));
			if (has_policy(page, name))
				choice(f, name, name);
		}
	}
}

/* Writes the form; the script shows it. */
static void filter(const struct page *page, FILE *f)
{
	const struct paper *p;

	fputs("<h2 id=\"figures\">Figures and claims</h2><form id=\"filter\" hidden=\"hidden\">"
	      "<label>paper <select name=\"paper\"><option value=\"\">all</option>",
	      f);
	for (size_t i = 0; (p = paper_at(i)); i++)
		if (page_has_paper(page, p->name))
			choice(f, p->name, p->name);
	fputs("</select></label><label>verdict <select name=\"verdict\"><option value=\"\">all"
	      "</option>",
	      f);
	for (unsigned int v = 0; v < VERDICTS; v++)
		choice(f, verdict_name((enum verdict)v), verdict_name((enum verdict)v));
	fputs("</select></label><label>policy <select name=\"policy\"><option value=\"\">all"
	      "</option>",
	      f);
	policy_choices(page, f);
	fputs("</select></label><label>text <input name=\"text\" type=\"search\" size=\"24\"/>"
	      "</label><button type=\"reset\">show all</button><output id=\"found\"></output>"
	      "</form>\n",
	      f);
}

/* --- all --------------------------------------------------------------------------- */

static void page_head(FILE *f)
{
	fputs("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head>"
	      "<meta charset=\"utf-8\"/><meta http-equiv=\"Content-Security-Policy\" content=\""
	      "default-src 'none'; img-src data:; style-src ",
	      f);
	html_allowed(f, page_style);
	fputs("; script-src ", f);
	html_allowed(f, page_script);
	fprintf(f,
		"; base-uri 'none'; form-action 'none'\"/><meta name=\"viewport\" "
		"content=\"width=device-width,initial-scale=1\"/><title>iocom: the papers' figures "
		"and claims</title><style>%s</style></head>\n<body>",
		page_style);
}

static void introduction(const struct page *page, FILE *f)
{
	size_t runs = 0;

	for (size_t i = 0; i < page->n; i++)
		runs += sweep_units(page->reports[i].sweep);
	fprintf(f,
		"<h1>The papers' figures and claims</h1><p class=\"soft\">iocom-sim " IOCOM_VERSION
		", %zu figures, %zu runs",
		page->n, runs);
	if (page->seconds > 0)
		fprintf(f, ", made in %d min %02d s on %u core%s", (int)page->seconds / 60,
			(int)page->seconds % 60, page->cores, page->cores == 1 ? "" : "s");
	if (page->settings && *page->settings) {
		fputs(". Set for all figures: <code>", f);
		html_escaped(f, page->settings);
		fputs("</code>", f);
	}
	fputs(". <a href=\"#summary\">All claims by paper</a>, <a href=\"#figures\">figures</a>, "
	      "<a href=\"#rules\">how a claim is judged</a>, <a href=\"#configurations\">"
	      "configurations</a>.</p>\n",
	      f);
}

int page_write(const struct page *page, struct output *o, FILE *f)
{
	const struct paper *p;
	int ret = 0;

	page_head(f);
	introduction(page, f);
	page_headlines(page, f);
	page_counts(page, f);
	navigation(page, f);
	filter(page, f);
	for (size_t i = 0; (p = paper_at(i)) && !ret; i++)
		if (page_has_paper(page, p->name))
			ret = page_paper(page, p, o, f);
	rules(f);
	configurations(f);
	fprintf(f, "<script>%s</script></body></html>\n", page_script);
	return ret;
}
