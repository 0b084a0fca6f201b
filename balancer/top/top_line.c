/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Lines made of pieces; see top_line.h. */
#include "balancer/top/top_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "balancer/top/top_format.h"

void top_line_add(struct top_line *line, unsigned char rank, enum top_ink ink, const char *format,
		  ...)
{
	struct top_piece *piece;
	va_list arguments;

	if (line->n >= TOP_PIECES)
		return;
	piece = &line->piece[line->n++];
	piece->rank = rank;
	piece->ink = ink;
	va_start(arguments, format);
	vsnprintf(piece->text, sizeof(piece->text), format, arguments);
	va_end(arguments);
}

static unsigned top_line_width_of(const struct top_line *line)
{
	unsigned width = 0;

	for (unsigned i = 0; i < line->n; i++)
		width += top_format_width(line->piece[i].text);
	return width;
}

/* The least important piece; of equal ones the last. */
static unsigned top_line_least(const struct top_line *line)
{
	unsigned worst = 0;

	for (unsigned i = 1; i < line->n; i++)
		if (line->piece[i].rank >= line->piece[worst].rank)
			worst = i;
	return worst;
}

void top_line_fit(struct top_line *line, unsigned width)
{
	while (line->n > 1 && top_line_width_of(line) > width) {
		unsigned out = top_line_least(line);

		memmove(&line->piece[out], &line->piece[out + 1],
			(line->n - out - 1) * sizeof(line->piece[0]));
		line->n--;
	}
	if (line->n && top_line_width_of(line) > width) {
		char cut[TOP_PIECE_BYTES] = "";

		top_format_fit(cut, sizeof(cut), line->piece[0].text, width, TOP_FIT_LEFT);
		strcpy(line->piece[0].text, cut);
	}
}

void top_line_text(const struct top_line *line, char out[TOP_LINE_BYTES])
{
	size_t n;

	out[0] = 0;
	for (unsigned i = 0; i < line->n; i++)
		top_format_fit(out, TOP_LINE_BYTES, line->piece[i].text,
			       top_format_width(line->piece[i].text), TOP_FIT_LEFT);
	for (n = strlen(out); n && out[n - 1] == ' '; n--)
		out[n - 1] = 0;
}

size_t top_lines_most(struct top_line *lines, size_t n, size_t most)
{
	while (n > most) {
		size_t worst = 0;

		for (size_t i = 1; i < n; i++)
			if (lines[i].rank >= lines[worst].rank)
				worst = i;
		memmove(&lines[worst], &lines[worst + 1], (n - worst - 1) * sizeof(*lines));
		n--;
	}
	return n;
}
