/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The page of all figures; see page.h. */
#include "sim/report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
	":root{--ink:#1d2329;--soft:#5b6670;--line:#d5dae0;--yes:#00664b;--no:#a33f00;"
	"--na:#5b6670}"
	"*{box-sizing:border-box}"
	"body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
	"color:var(--ink);max-width:1180px;margin:0 auto;padding:24px}"
	"h1{font-size:26px;margin:0 0 4px}h2{margin:40px 0 8px;font-size:21px;"
	"border-bottom:2px solid var(--line);padding-bottom:4px}"
	"h3{margin:0 0 8px;font-size:17px}"
	"p{margin:6px 0;max-width:80ch}.soft{color:var(--soft)}"
	"table{border-collapse:collapse;margin:10px 0}"
	"th,td{text-align:left;vertical-align:top;padding:5px 12px 5px 0;"
	"border-bottom:1px solid var(--line)}th{font-weight:600;color:var(--soft)}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
	"nav a{margin-right:10px;white-space:nowrap}a{color:#0b5cad}"
	"article{margin:26px 0;padding:16px 18px;border:1px solid var(--line);"
	"border-radius:8px;break-inside:avoid}"
	".pair{display:flex;flex-wrap:wrap;gap:18px}"
	".pair>figure{flex:1 1 480px;margin:0}.pair>div{flex:1 1 380px;min-width:0}"
	"figure img{width:100%;height:auto;display:block}"
	"ul.claims{list-style:none;margin:0;padding:0}"
	"ul.claims>li{padding:7px 0;border-top:1px solid var(--line)}"
	"ul.claims>li:first-child{border-top:0;padding-top:0}"
	".v{font-weight:600;white-space:nowrap}.yes{color:var(--yes)}.no{color:var(--no)}"
	".na{color:var(--na)}.tag{display:inline-block;border:1px solid var(--line);"
	"border-radius:3px;padding:0 5px;font-size:12px;color:var(--soft);margin-right:6px}"
	".m{display:block;font-size:13.5px}.w{display:block;font-size:13.5px;"
	"color:var(--soft)}code{font-size:13px;overflow-wrap:anywhere}"
	"details{margin-top:8px;font-size:13px}summary{cursor:pointer;color:var(--soft)}"
	"@media print{body{max-width:none;padding:0;font-size:11px}nav,summary{display:none}"
	"article{border:0;border-top:1px solid var(--line);border-radius:0;padding:8px 0}"
	".pair>figure{flex-basis:52%}.pair>div{flex-basis:40%}}";

static void page_escaped(FILE *f, const char *text)
{
	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*text, f);
		}
	}
}

static void base64(FILE *f, const unsigned char *data, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		unsigned int v = (unsigned int)data[i] << 16;

		v |= i + 1 < n ? (unsigned int)data[i + 1] << 8 : 0;
		v |= i + 2 < n ? data[i + 2] : 0;
		fputc(digits[v >> 18], f);
		fputc(digits[v >> 12 & 63], f);
		fputc(i + 1 < n ? digits[v >> 6 & 63] : '=', f);
		fputc(i + 2 < n ? digits[v & 63] : '=', f);
	}
}

/* --- the table of claims --------------------------------------------------------- */

#define OURS_MARK "(ours)"
#define OURS_NAME "OURS"

struct count {
	unsigned int verdict[VERDICTS];
};

/* Marks experiments and claims that are ours, not the papers'. */
static bool page_is_ours(const struct report *r, const struct claim *c)
{
	return !strncmp(r->experiment->title, OURS_MARK, strlen(OURS_MARK)) ||
	       !strncmp(c->text, OURS_MARK, strlen(OURS_MARK));
}

static const char *claimant(const struct report *r, const struct claim *c)
{
	return page_is_ours(r, c) ? OURS_NAME : r->experiment->paper;
}

static void count_claims(const struct page *page, const char *paper, enum claim_type type,
			 struct count *count)
{
	*count = (struct count){0};
	for (size_t i = 0; i < page->n; i++) {
		const struct report *r = &page->reports[i];

		for (size_t k = 0; r->experiment && k < r->njudged; k++)
			if (r->judged[k].claim->type == type && !r->judged[k].claim->calibrates &&
			    !strcmp(claimant(r, r->judged[k].claim), paper))
				count->verdict[r->judged[k].judgement.verdict]++;
	}
}

static void count_cell(FILE *f, const struct count *c)
{
	for (int v = 0; v < VERDICTS; v++)
		fprintf(f, "<td class=n>%u", c->verdict[v]);
}

/* Writes whether the claims that do not hold give a reason and an experiment that bounds them. */
static void reasons(const struct page *page, FILE *f)
{
	unsigned int fail = 0, without = 0;

	for (size_t i = 0; i < page->n; i++) {
		const struct report *r = &page->reports[i];

		for (size_t k = 0; k < r->njudged; k++) {
			const struct claim *c = r->judged[k].claim;

			if (c->calibrates ||
			    (r->judged[k].judgement.verdict != VERDICT_CONTRADICTED &&
			     r->judged[k].judgement.verdict != VERDICT_EXCEEDED))
				continue;
			fail++;
			if (c->why && c->bound)
				continue;
			fprintf(f, "%s<a href=\"#%s\">%s.%zu</a>",
				without ? ", " : "<p>Without a reason that an experiment backs: ",
				r->sweep->id, r->sweep->id, k + 1);
			without++;
		}
	}
	fprintf(f,
		"%s<p>%u of the %u claims that do not hold give a reason, each with an experiment "
		"that "
		"bounds what other settings reach.</p>",
		without ? ".</p>" : "", fail - without, fail);
}

static void summary(const struct page *page, FILE *f)
{
	struct count total[2] = {0};
	const struct paper *p;

	fputs("<h2 id=summary>Claims</h2><table><thead><tr><th>paper", f);
	for (int t = 0; t < 2; t++)
		for (int v = 0; v < VERDICTS; v++)
			fprintf(f, "<th class=n>[%c] %s", t ? 'Q' : 'O', verdict_name(v));
	fputs("<tbody>", f);
	for (size_t i = 0; (p = paper_at(i)); i++) {
		struct count count[2];
		unsigned int all = 0;

		for (int t = 0; t < 2; t++) {
			count_claims(page, p->name, (enum claim_type)t, &count[t]);
			for (int v = 0; v < VERDICTS; v++) {
				all += count[t].verdict[v];
				if (strcmp(p->name, OURS_NAME) != 0)
					total[t].verdict[v] += count[t].verdict[v];
			}
		}
		if (!all)
			continue;
		fputs("<tr><td>", f);
		page_escaped(f, p->title);
		count_cell(f, &count[0]);
		count_cell(f, &count[1]);
	}
	fputs("<tr><th>all of the papers", f);
	count_cell(f, &total[0]);
	count_cell(f, &total[1]);
	fputs("</table>", f);
	reasons(page, f);
}

static void rules(FILE *f)
{
	fputs("<h2 id=rules>How a claim is judged</h2>"
	      "<p>Every policy gets the same workload at the same seed; policies are compared "
	      "seed by seed, by the mean of ln(base / new) and its 95 % Student t interval. A "
	      "claim "
	      "<b>holds</b> when the interval lies within its bounds and is <b>contradicted</b> "
	      "when it lies outside; <b>undecided</b> when it straddles a bound: it says how many "
	      "more seeds would decide. <b>Exceeded</b>: the interval lies above the printed "
	      "number; the effect is there, and larger. A claim of several comparisons holds when "
	      "each of them does, and one contradicts it at 5 % divided by their number "
	      "(Bonferroni), so that a verdict errs in 5 % of the cases at most; the claims of a "
	      "paper are not corrected for each other. "
	      "<b>[O]</b> An order holds for the points together, and no point may contradict it; "
	      "a trend when the last point differs from the first by 5 % at least and no point "
	      "goes back by more than 2 % from any before it; equality within 15 %. <b>[Q]</b> A "
	      "number has bounds of 25 % around the printed one; &ldquo;more than&rdquo; begins "
	      "at it; &ldquo;up to&rdquo; is judged "
	      "by the largest over the points. gain = base / new &minus; 1, reduction = "
	      "1 &minus; new / base; both are shown.</p>",
	      f);
}

/* --- configurations -------------------------------------------------------------- */

static void configurations(FILE *f)
{
	const struct paper *p;

	fputs("<h2 id=configurations>Common configurations</h2><p>One per paper, for all its "
	      "figures; a figure adds only what its own row in the paper fixes. Nothing is "
	      "tuned per figure; each paper's figures state what was chosen after seeing "
	      "outcomes.</p>",
	      f);
	for (size_t i = 0; (p = paper_at(i)); i++) {
		fputs("<h3>", f);
		page_escaped(f, p->title);
		fputs("</h3><table><thead><tr><th>setting<th>value<th>why<tbody>", f);
		for (const struct paper_setting *s = p->settings; s->name; s++) {
			fputs("<tr><td><code>", f);
			page_escaped(f, s->name);
			fputs("</code><td><code>", f);
			page_escaped(f, s->value);
			fputs("</code><td>", f);
			page_escaped(f, s->reason);
		}
		fputs("</table>", f);
	}
}

/* --- figures --------------------------------------------------------------------- */

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
		fputs("<img alt=\"", f);
		page_escaped(f, r->sweep->id);
		fputs("\" src=\"data:image/svg+xml;base64,", f);
		base64(f, (unsigned char *)svg, (size_t)n);
		fputs("\">", f);
	} else {
		fputs("<p class=soft>No figure: gnuplot is not installed. The numbers are in the "
		      "CSV and JSON files.</p>",
		      f);
	}
	fputs("</figure>", f);
	free(svg);
}

/* Writes claim N of its experiment; elsewhere on the page it is called "ACM-3.2". */
static void claim(const struct judged *j, size_t n, FILE *f)
{
	static const char *const classes[VERDICTS] = {
		[VERDICT_HOLDS] = "yes",       [VERDICT_EXCEEDED] = "no",
		[VERDICT_CONTRADICTED] = "no", [VERDICT_UNDECIDED] = "na",
		[VERDICT_NOT_TESTED] = "na",
	};
	char more[80];
	const struct claim *c = j->claim;
	enum verdict v = j->judgement.verdict;

	fprintf(f, "<li><span class=tag>%zu %c</span>", n,
		c->type == CLAIM_QUANTITATIVE ? 'Q' : 'O');
	page_escaped(f, c->text);
	fprintf(f, " <span class=\"v %s\">%s</span>", classes[v], verdict_name(v));
	if (j->judgement.measured[0]) {
		fputs("<span class=m>measured: ", f);
		page_escaped(f, j->judgement.measured);
		verdict_more(&j->judgement, more, sizeof(more));
		fprintf(f, "%s%s</span>", more[0] ? "; " : "", more);
	}
	if (j->judgement.start[0]) {
		fputs("<span class=w>start: ", f);
		page_escaped(f, j->judgement.start);
		fputs("</span>", f);
	}
	if (c->calibrates)
		fputs("<span class=w>calibrates: " CALIBRATES_TEXT "</span>", f);
	if (c->reading) {
		fputs("<span class=w>reading: ", f);
		page_escaped(f, c->reading);
		fputs("</span>", f);
	}
	if (c->why && v != VERDICT_HOLDS) {
		fputs("<span class=w>why: ", f);
		page_escaped(f, c->why);
		if (c->bound)
			fprintf(f, " See <a href=\"#%s\">%s</a>.", c->bound, c->bound);
		fputs("</span>", f);
	}
}

static void page_fact(void *arg, const char *name, const char *value)
{
	fputs("<tr><td>", arg);
	page_escaped(arg, name);
	fputs("<td><code>", arg);
	page_escaped(arg, value);
	fputs("</code>", arg);
}

static int article(const struct report *r, struct output *o, FILE *f)
{
	const struct sweep *s = r->sweep;
	int ret;

	fprintf(f, "<article id=\"%s\"><h3>%s: ", s->id, s->id);
	page_escaped(f, s->title);
	fputs("</h3><div class=pair>", f);
	figure(r, o, f);
	fputs("<div><ul class=claims>", f);
	for (size_t i = 0; i < r->njudged; i++)
		claim(&r->judged[i], i + 1, f);
	fputs("</ul>", f);
	if (r->experiment && r->experiment->reading) {
		fputs("<p class=w>Reading: ", f);
		page_escaped(f, r->experiment->reading);
		fputs("</p>", f);
	}
	fprintf(f,
		"<p class=w><a href=\"%s.csv\">CSV</a> <a href=\"%s.json\">JSON</a> "
		"<a href=\"%s.svg\">SVG</a> &middot; <code>iocom sim %s</code></p>",
		s->id, s->id, s->id, s->id);
	fputs("</div></div><details><summary>seed, settings, parameters, input</summary><table>",
	      f);
	ret = report_facts(s, page_fact, f);
	fputs("</table></details></article>\n", f);
	return ret;
}

static void not_experiments(const char *paper, FILE *f)
{
	const struct experiment *e;
	bool any = false;

	for (size_t i = 0; (e = experiment_at(i)); i++) {
		if (!e->none || strcmp(e->paper, paper))
			continue;
		if (!any)
			fputs("<p>Not experiments of their own:</p><table>", f);
		any = true;
		fprintf(f, "<tr id=\"%s\"><td>%s<td>", e->id, e->id);
		page_escaped(f, e->title);
		fputs("<td>", f);
		page_escaped(f, e->none);
	}
	if (any)
		fputs("</table>", f);
}

static int papers(const struct page *page, struct output *o, FILE *f)
{
	const struct paper *p;
	int ret = 0;

	for (size_t i = 0; (p = paper_at(i)) && !ret; i++) {
		fputs("<h2>", f);
		page_escaped(f, p->title);
		fputs("</h2>", f);
		if (p->calibrated) {
			fputs("<p>", f);
			page_escaped(f, p->calibrated);
			fputs("</p>", f);
		}
		for (size_t k = 0; k < page->n && !ret; k++)
			if (page->reports[k].experiment &&
			    !strcmp(page->reports[k].experiment->paper, p->name))
				ret = article(&page->reports[k], o, f);
		not_experiments(p->name, f);
	}
	return ret;
}

static void navigation(const struct page *page, FILE *f)
{
	fputs("<nav><p><a href=\"#summary\">claims</a><a href=\"#rules\">judging</a>"
	      "<a href=\"#configurations\">configurations</a></p><p>",
	      f);
	for (size_t i = 0; i < page->n; i++)
		fprintf(f, "<a href=\"#%s\">%s</a> ", page->reports[i].sweep->id,
			page->reports[i].sweep->id);
	fputs("</p></nav>", f);
}

int page_write(const struct page *page, struct output *o, FILE *f)
{
	size_t runs = 0;
	int ret;

	for (size_t i = 0; i < page->n; i++)
		runs += sweep_units(page->reports[i].sweep);
	fprintf(f,
		"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
		"content=\"width=device-width,initial-scale=1\"><title>iocom: the papers' figures "
		"and claims</title><style>%s</style>\n<h1>The papers' figures and claims</h1>"
		"<p class=soft>iocom-sim " IOCOM_VERSION ", %zu figures, %zu runs",
		style, page->n, runs);
	if (page->seconds > 0)
		fprintf(f, ", made in %d min %02d s on %u core%s", (int)page->seconds / 60,
			(int)page->seconds % 60, page->cores, page->cores == 1 ? "" : "s");
	fputs(". Points are means over the seeds, bars their 95 % intervals.", f);
	if (page->settings && *page->settings) {
		fputs(" Set for all figures: <code>", f);
		page_escaped(f, page->settings);
		fputs("</code>", f);
	}
	fputs("</p>\n", f);
	navigation(page, f);
	summary(page, f);
	rules(f);
	ret = papers(page, o, f);
	configurations(f);
	fputs("</html>\n", f);
	return ret;
}
