/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The picture of a communication matrix: in letters, and as SVG; see profile_matrix.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/listing.h"
#include "balancer/profile_matrix.h"
#include "balancer/view/amount.h"

#define PICTURE_SIDE  1200 /* of an SVG, at most, in pixels */
#define PICTURE_CELL  28
#define PICTURE_LINES 64 /* in letters; more ranks are put together */

/* Each letter stands for up to 4 times as much as the one before. */
static const char shades[] = ".:-=+*#@";
#define SHADES ((int)sizeof(shades) - 1)

static int picture_shade(double bytes, double most)
{
	int below = bytes > 0 ? (int)floor(log(most / bytes) / log(4)) : SHADES;

	return bytes <= 0 ? -1 : below >= SHADES ? 0 : SHADES - 1 - below;
}

/* --- taking the answer ----------------------------------------------------------------- */

static int picture_bad(struct iocom_err *err)
{
	return iocom_err_set(err, -EBADMSG,
			     "the agent's answer has no valid matrix; is it of "
			     "another version?");
}

static int picture_take_ranks(struct matrix_picture *p, const json_t *answer)
{
	const json_t *ranks = json_object_get(answer, "ranks"), *parts, *one;
	size_t i;

	parts = json_object_get(answer, "parts");
	for (uint32_t r = 0; r < p->tasks; r++)
		p->ranks[r] = (struct matrix_rank){.part = -1, .node = "?"};
	json_array_foreach (ranks, i, one) {
		double rank = listing_number(one, "rank"), part = listing_number(one, "part");

		if (!(rank >= 0 && rank < p->tasks) || !(part >= -1 && part < INT32_MAX))
			return -EBADMSG;
		p->ranks[(uint32_t)rank].part = (int)part;
		if (part >= 0)
			snprintf(p->ranks[(uint32_t)rank].node, sizeof(p->ranks[0].node), "%s",
				 listing_string(json_array_get(parts, (size_t)part), "node"));
	}
	return 0;
}

/* In order of parts, then ranks; ranks of no known part come last. */
static void picture_arrange(struct matrix_picture *p)
{
	uint32_t n = 0;
	int most = -1;

	for (uint32_t r = 0; r < p->tasks; r++)
		if (p->ranks[r].part > most)
			most = p->ranks[r].part;
	for (int part = 0; part <= most && part < MATRIX_RANKS_MAX; part++)
		for (uint32_t r = 0; r < p->tasks; r++)
			if (p->ranks[r].part == part)
				p->order[n++] = r;
	for (uint32_t r = 0; r < p->tasks; r++)
		if (p->ranks[r].part < 0 || p->ranks[r].part >= MATRIX_RANKS_MAX)
			p->order[n++] = r;
}

static int picture_take_pairs(struct matrix_picture *p, const json_t *answer)
{
	const json_t *pairs = json_object_get(answer, "pairs"), *one;
	uint32_t *line = calloc(p->tasks + 1, sizeof(*line));
	size_t i;
	int rc = line ? 0 : -ENOMEM;

	for (uint32_t k = 0; !rc && k < p->tasks; k++)
		line[p->order[k]] = k;
	json_array_foreach (pairs, i, one) {
		double from = json_number_value(json_array_get(one, 0));
		double to = json_number_value(json_array_get(one, 1));
		double bytes = json_number_value(json_array_get(one, 2));

		if (!rc && (!(from >= 0 && from < p->tasks) || !(to >= 0 && to < p->tasks) ||
			    !(bytes >= 0)))
			rc = -EBADMSG;
		if (rc)
			break;
		p->bytes[(size_t)line[(uint32_t)from] * p->tasks + line[(uint32_t)to]] = bytes;
		p->most = fmax(p->most, bytes);
	}
	free(line);
	return rc;
}

int matrix_picture_take(struct matrix_picture *p, const json_t *answer, struct iocom_err *err)
{
	double tasks = listing_number(answer, "tasks");
	int rc;

	*p = (struct matrix_picture){0};
	if (!(tasks >= 0 && tasks <= MATRIX_RANKS_MAX))
		return picture_bad(err);
	p->tasks = (uint32_t)tasks;
	p->ranks = calloc(p->tasks + 1, sizeof(*p->ranks));
	p->order = calloc(p->tasks + 1, sizeof(*p->order));
	p->bytes = calloc((size_t)p->tasks * p->tasks + 1, sizeof(*p->bytes));
	rc = p->ranks && p->order && p->bytes ? picture_take_ranks(p, answer) : -ENOMEM;
	if (!rc) {
		picture_arrange(p);
		rc = picture_take_pairs(p, answer);
	}
	if (rc)
		matrix_picture_fini(p);
	return rc == -EBADMSG ? picture_bad(err) : rc ? iocom_err_set(err, rc, "out of memory") : 0;
}

void matrix_picture_fini(struct matrix_picture *p)
{
	free(p->ranks);
	free(p->order);
	free(p->bytes);
	*p = (struct matrix_picture){0};
}

/* --- in letters ------------------------------------------------------------------------- */

/* The picture may put EACH ranks into one line. */
struct letters {
	const struct matrix_picture *p;
	uint32_t each, lines;
	unsigned wide; /* columns of a cell */
	double most;
	double *bytes;
};

static int letters_of(const struct letters *l, uint32_t line)
{
	return l->p->ranks[l->p->order[line * l->each]].part;
}

/* Whether a node ends before LINE. */
static bool letters_border(const struct letters *l, uint32_t line)
{
	return line > 0 && letters_of(l, line) != letters_of(l, line - 1);
}

static int letters_sum(struct letters *l)
{
	const struct matrix_picture *p = l->p;

	l->bytes = calloc((size_t)l->lines * l->lines + 1, sizeof(*l->bytes));
	if (!l->bytes)
		return -ENOMEM;
	for (uint32_t a = 0; a < p->tasks; a++)
		for (uint32_t b = 0; b < p->tasks; b++)
			l->bytes[(size_t)(a / l->each) * l->lines + b / l->each] +=
				p->bytes[(size_t)a * p->tasks + b];
	for (size_t i = 0; i < (size_t)l->lines * l->lines; i++)
		l->most = fmax(l->most, l->bytes[i]);
	return 0;
}

/* One digit of each column's rank, from the highest. */
static void letters_head(const struct letters *l, FILE *out)
{
	int digits = l->p->tasks > 1000 ? 4 : l->p->tasks > 100 ? 3 : l->p->tasks > 10 ? 2 : 1;

	for (int d = digits - 1, unit = 1; d >= 0; d--, unit = 1) {
		for (int i = 0; i < d; i++)
			unit *= 10;
		fprintf(out, "  %16s ", d == digits - 1 ? "to" : "");
		for (uint32_t b = 0; b < l->lines; b++) {
			uint32_t rank = l->p->order[b * l->each];
			bool shown = rank >= (uint32_t)unit || unit == 1;

			fprintf(out, "%s%*c", letters_border(l, b) ? " " : "", (int)l->wide,
				shown ? (char)('0' + rank / (uint32_t)unit % 10) : ' ');
		}
		fputc('\n', out);
	}
}

static void letters_line(const struct letters *l, uint32_t a, FILE *out)
{
	const struct matrix_picture *p = l->p;
	char node[16];

	listing_name(node, sizeof(node), p->ranks[p->order[a * l->each]].node, 10);
	fputs("  ", out);
	if (!a || letters_border(l, a)) {
		listing_text(out, node);
		fprintf(out, "%*s", (int)(10 - strlen(node)), "");
	} else {
		fprintf(out, "%10s", "");
	}
	fprintf(out, " %5u ", p->order[a * l->each]);
	for (uint32_t b = 0; b < l->lines; b++) {
		int shade = picture_shade(l->bytes[(size_t)a * l->lines + b], l->most);
		char c = shade < 0 ? ' ' : shades[shade];

		if (letters_border(l, b))
			fputc('|', out);
		for (unsigned i = 0; i < l->wide; i++)
			fputc(c == ' ' && i + 1 < l->wide ? ' ' : c, out);
	}
	fputc('\n', out);
}

static void letters_legend(const struct letters *l, FILE *out)
{
	char line[256] = "";
	double least = l->most;

	for (int i = SHADES - 1; i >= 0; i--) {
		char amount[32];

		least /= 4;
		amount_of_mb(amount, sizeof(amount), least / 1e6);
		if (i)
			snprintf(line + strlen(line), sizeof(line) - strlen(line), "%c > %s, ",
				 shades[i], amount);
		else
			snprintf(line + strlen(line), sizeof(line) - strlen(line), "%c less",
				 shades[i]);
	}
	fputs("  ", out);
	listing_wrap(out, line, 2);
}

int matrix_picture_print(const struct matrix_picture *p, unsigned width, FILE *out)
{
	struct letters l = {.p = p, .each = 1, .wide = 2};
	unsigned room = width > 60 ? width - 24 : 36;
	int rc;

	if (!p->tasks)
		return 0;
	if (room > PICTURE_LINES)
		room = PICTURE_LINES;
	if (p->tasks > room / 2)
		l.wide = 1;
	l.each = l.wide == 2 ? 1 : (p->tasks + room - 1) / room;
	l.lines = (p->tasks + l.each - 1) / l.each;
	rc = letters_sum(&l);
	if (rc)
		return rc;
	if (l.each > 1)
		fprintf(out, "  %u ranks a line\n", l.each);
	letters_head(&l, out);
	fprintf(out, "  from%7s rank\n", "");
	for (uint32_t a = 0; a < l.lines; a++) {
		if (letters_border(&l, a)) {
			fprintf(out, "  %16s ", "");
			for (uint32_t b = 0; b < l.lines; b++)
				fprintf(out, "%s%.*s", letters_border(&l, b) ? "+" : "",
					(int)l.wide, "--");
			fputc('\n', out);
		}
		letters_line(&l, a, out);
	}
	letters_legend(&l, out);
	free(l.bytes);
	return 0;
}

/* --- as SVG ----------------------------------------------------------------------------- */

static void svg_text(FILE *out, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '<' || *c == '>' || *c == '&' || *c == '"')
			fprintf(out, "&#%d;", *c);
		else
			fputc(*c < 32 || *c > 126 ? '?' : *c, out);
	}
}

/* From white to dark blue, by the logarithm. */
static void svg_colour(FILE *out, double bytes, double most)
{
	double x = bytes > 0 ? fmax(0.05, 1 - log(most / bytes) / log(65536)) : 0;

	fprintf(out, "#%02x%02x%02x", (int)(255 - 247 * x), (int)(255 - 207 * x),
		(int)(255 - 148 * x));
}

static void svg_cells(const struct matrix_picture *p, double cell, FILE *out)
{
	for (uint32_t a = 0; a < p->tasks; a++)
		for (uint32_t b = 0; b < p->tasks; b++) {
			double bytes = p->bytes[(size_t)a * p->tasks + b];
			char amount[32];

			if (bytes <= 0)
				continue;
			amount_of_mb(amount, sizeof(amount), bytes / 1e6);
			fprintf(out,
				"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
				"fill=\"",
				b * cell, a * cell, cell, cell);
			svg_colour(out, bytes, p->most);
			fprintf(out, "\"><title>%u to %u: %s</title></rect>\n", p->order[a],
				p->order[b], amount);
		}
}

static void svg_borders(const struct matrix_picture *p, double cell, FILE *out)
{
	double side = cell * p->tasks;

	for (uint32_t a = 1; a < p->tasks; a++)
		if (p->ranks[p->order[a]].part != p->ranks[p->order[a - 1]].part)
			fprintf(out,
				"<path d=\"M0 %.2fH%.2fM%.2f 0V%.2f\" stroke=\"#c40\" "
				"fill=\"none\"/>\n",
				a * cell, side, a * cell, side);
	for (uint32_t a = 0; a < p->tasks; a++) {
		bool first = !a || p->ranks[p->order[a]].part != p->ranks[p->order[a - 1]].part;

		if (p->tasks <= 64)
			fprintf(out,
				"<text x=\"-6\" y=\"%.2f\" text-anchor=\"end\">%u</text>"
				"<text x=\"%.2f\" y=\"-6\" text-anchor=\"middle\">%u</text>\n",
				(a + 0.7) * cell, p->order[a], (a + 0.5) * cell, p->order[a]);
		if (!first)
			continue;
		fprintf(out, "<text x=\"-110\" y=\"%.2f\">", (a + 0.7) * cell);
		svg_text(out, p->ranks[p->order[a]].node);
		fputs("</text>\n", out);
	}
}

void matrix_picture_svg(const struct matrix_picture *p, const char *title, FILE *out)
{
	double cell = p->tasks * PICTURE_CELL > PICTURE_SIDE ? (double)PICTURE_SIDE / p->tasks
							     : PICTURE_CELL;
	double side = cell * p->tasks;
	char amount[32];

	amount_of_mb(amount, sizeof(amount), p->most / 1e6);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"-120 -70 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect x=\"-120\" y=\"-70\" width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"0\" y=\"-45\" font-size=\"15\">",
		fmax(side, 360) + 140, side + 120, fmax(side, 360) + 140, side + 120);
	svg_text(out, title);
	fputs("</text>\n<text x=\"0\" y=\"-26\">rows: the sender's rank; columns: the "
	      "receiver's</text>\n",
	      out);
	svg_cells(p, cell, out);
	fprintf(out, "<rect width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"#444\"/>\n", side,
		side);
	svg_borders(p, cell, out);
	fprintf(out,
		"<text x=\"0\" y=\"%.0f\">darkest: %s; each shade lighter: less, by the "
		"logarithm</text>\n</svg>\n",
		side + 24, amount);
}
