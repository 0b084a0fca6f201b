/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Tables and paragraphs for a terminal; see table.h. */
#include "sim/report/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2

int table_init(struct table *t, size_t rows, size_t columns)
{
	*t = (struct table){.rows = rows, .columns = columns};
	t->cell = calloc(rows * columns + 1, sizeof(*t->cell));
	return t->cell ? 0 : -ENOMEM;
}

void table_free(struct table *t)
{
	free(t->cell);
	t->cell = NULL;
}

void table_set(struct table *t, size_t row, size_t column, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->cell[row * t->columns + column], TABLE_CELL, fmt, ap);
	va_end(ap);
}

static size_t table_width_of(const struct table *t, size_t column)
{
	size_t width = 0;

	for (size_t r = 0; r < t->rows; r++) {
		size_t n = strlen(t->cell[r * t->columns + column]);

		width = n > width ? n : width;
	}
	return width;
}

static void print_row(const struct table *t, size_t row, size_t from, size_t to, FILE *f)
{
	const char(*cell)[TABLE_CELL] = (const char(*)[TABLE_CELL])t->cell + row * t->columns;

	fprintf(f, "%-*s", (int)table_width_of(t, 0), cell[0]);
	for (size_t c = from; c < to; c++)
		fprintf(f, "%*s", (int)(GAP + table_width_of(t, c)), cell[c]);
	fputc('\n', f);
}

void table_print(const struct table *t, FILE *f)
{
	size_t from = 1;

	do {
		size_t used = table_width_of(t, 0), to = from;

		/* Takes at least one column, whatever its width. */
		while (to < t->columns &&
		       (to == from || used + GAP + table_width_of(t, to) <= TABLE_WIDTH))
			used += GAP + table_width_of(t, to++);
		if (from > 1)
			fputc('\n', f);
		for (size_t r = 0; r < t->rows; r++)
			print_row(t, r, from, to, f);
		from = to;
	} while (from < t->columns);
}

void table_text(FILE *f, const char *text, size_t n)
{
	for (size_t i = 0; i < n && text[i]; i++)
		fputc((unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i], f);
}

void table_paragraph(FILE *f, size_t at, size_t indent, const char *text)
{
	bool first = true;

	for (const char *word = text + strspn(text, " "); *word;) {
		size_t n = strcspn(word, " ");

		if (!first && at + 1 + n > TABLE_WIDTH) {
			fprintf(f, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		fputs(first ? "" : " ", f);
		table_text(f, word, n);
		at += n + !first;
		first = false;
		word += n + strspn(word + n, " ");
	}
	fputc('\n', f);
}
