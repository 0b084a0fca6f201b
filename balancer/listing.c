/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the listing subcommands share; see listing.h. */
#include "balancer/listing.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "iocom/array.h"
#include "user/utf8.h"

#define UNIT_BYTES 5  /* "MB).", at most */
#define CUT_MIN	   16 /* least width of the last column */

struct listing {
	const struct listing_column *columns;
	size_t ncolumns;
	char **cells;
	size_t ncells, room;
	bool cut;
	const unsigned char *spare; /* columns that a narrow terminal does without */
	size_t nspare;
	unsigned limit; /* listing_limit; 0: none */
	bool failed;
};

int listing_print_json(const json_t *document)
{
	/* ASCII only: a name from elsewhere must not control the terminal. */
	size_t flags = JSON_ENSURE_ASCII | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15) |
		       (isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT);

	if (json_dumpf(document, stdout, flags) && !ferror(stdout)) {
		fputs("iocom: out of memory\n", stderr);
		return 1;
	}
	putchar('\n');
	return listing_end();
}

int listing_end(void)
{
	/* errno is that of the first failed write, here or earlier. */
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "iocom: cannot write the output: %s\n", strerror(errno ? errno : EIO));
	return 1;
}

int listing_usage(const char *command)
{
	fprintf(stderr, "`%s --help` lists the options\n", command);
	return 2;
}

struct listing *listing_new(const struct listing_column *columns, size_t ncolumns)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (l) {
		l->columns = columns;
		l->ncolumns = ncolumns;
	}
	return l;
}

void listing_cut(struct listing *l)
{
	if (l)
		l->cut = true;
}

void listing_spare(struct listing *l, const unsigned char *columns, size_t ncolumns)
{
	if (l) {
		l->spare = columns;
		l->nspare = ncolumns;
	}
}

void listing_limit(struct listing *l, unsigned width)
{
	if (l)
		l->limit = width;
}

void listing_free(struct listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->ncells; i++)
		free(l->cells[i]);
	free(l->cells);
	free(l);
}

static char **next_cell(struct listing *l)
{
	return array_reserve(l->cells, l->room, l->ncells + 1, 64) ? NULL : &l->cells[l->ncells];
}

void listing_cell(struct listing *l, const char *fmt, ...)
{
	char **cell;
	va_list ap;

	if (!l || l->failed)
		return;
	cell = next_cell(l);
	if (!cell) {
		l->failed = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(cell, fmt, ap) < 0) {
		l->failed = true;
	} else {
		/* users choose the names of their jobs: they may hold control characters */
		utf8_plain(*cell);
		l->ncells++;
	}
	va_end(ap);
}

/* The bytes of the characters of TEXT that fit into COLUMNS columns. */
static size_t bytes_of(const char *text, unsigned columns)
{
	char one[8];
	uint32_t c;
	size_t i = 0, n;

	for (; (n = utf8_next(text + i, &c)); i += n) {
		unsigned width;

		snprintf(one, sizeof(one), "%.*s", (int)n, text + i);
		width = utf8_width(one);
		if (width > columns)
			break;
		columns -= width;
	}
	return i;
}

void listing_name(char *out, size_t size, const char *name, unsigned width)
{
	unsigned all = utf8_width(name), head = (width - 3 + 1) / 2, tail = width - 3 - head;

	if (all <= width)
		snprintf(out, size, "%s", name);
	else
		snprintf(out, size, "%.*s...%s", (int)bytes_of(name, head), name,
			 name + bytes_of(name, all - tail));
}

/* Prints at most ROOM columns of TEXT. */
static void print_cut(FILE *out, const char *text, unsigned room)
{
	if (utf8_width(text) <= room)
		fprintf(out, "%s\n", text);
	else
		fprintf(out, "%.*s...\n", (int)bytes_of(text, room - 3), text);
}

void listing_line(FILE *out, const char *text)
{
	print_cut(out, text, LISTING_WIDTH);
}

/* The bytes up to the next place for a line's end: not between a number and its unit. */
static size_t wrap_word(const char *text)
{
	size_t n = strcspn(text, " "), unit;

	if (!n || text[n - 1] < '0' || text[n - 1] > '9' || text[n] != ' ')
		return n;
	unit = strcspn(text + n + 1, " ");
	return unit && unit <= UNIT_BYTES ? n + 1 + unit : n;
}

void listing_wrap(FILE *out, const char *text, unsigned indent)
{
	unsigned at = 0;

	for (bool first = true; *text; first = false) {
		size_t blanks = strspn(text, " "), n = wrap_word(text + blanks);
		char *word = strndup(text + blanks, n);
		unsigned width = word ? utf8_width(word) : (unsigned)n;

		if (first) {
			at = (unsigned)blanks + width; /* the text has its own first indent */
			fprintf(out, "%.*s", (int)(blanks + n), text);
		} else if (at + blanks + width > LISTING_WIDTH) {
			at = indent + width;
			fprintf(out, "\n%*s%.*s", (int)indent, "", (int)n, text + blanks);
		} else {
			at += (unsigned)blanks + width;
			fprintf(out, "%.*s", (int)(blanks + n), text);
		}
		free(word);
		text += blanks + n;
	}
	fputc('\n', out);
}

static int column_wanted(const struct listing *l, size_t column)
{
	unsigned width = (unsigned)strlen(l->columns[column].title);

	for (size_t i = column; i < l->ncells; i += l->ncolumns) {
		unsigned needed = utf8_width(l->cells[i]);

		width = needed > width ? needed : width;
	}
	return (int)width;
}

/* The first column of a table with a limit gives what the others need. */
static int column_width(const struct listing *l, size_t column)
{
	int width = column_wanted(l, column), others = 0;

	if (column || !l->limit)
		return width;
	for (size_t c = 1; c < l->ncolumns; c++)
		others += column_wanted(l, c) + 2;
	if (width + others <= (int)l->limit)
		return width;
	width = (int)l->limit - others;
	return width > LISTING_NAME_MIN ? width : LISTING_NAME_MIN;
}

#define LEFT_OUT -2 /* the width of a column that is not shown: with its gap nothing */

/* What the terminal's width is used for before the last column. */
static unsigned used_before_last(const struct listing *l, const int *widths)
{
	int used = 0;

	for (size_t c = 0; c + 1 < l->ncolumns; c++)
		used += widths[c] + 2;
	return (unsigned)used;
}

/* Leaves out spare columns, as many as it takes until the others fit. */
static void leave_out(const struct listing *l, int *widths)
{
	unsigned width = listing_width();

	for (size_t i = 0; i < l->nspare && width != UINT_MAX; i++)
		if (used_before_last(l, widths) + CUT_MIN > width)
			widths[l->spare[i]] = LEFT_OUT;
}

/* The terminal's columns left for the last column; INT_MAX: no terminal. */
static int room_for_last(const struct listing *l, const int *widths)
{
	unsigned width = listing_width(), used = used_before_last(l, widths);

	if (width == UINT_MAX)
		return INT_MAX;
	/* A narrow terminal still gets a usable last column. */
	return (int)(width > used + CUT_MIN ? width - used : CUT_MIN);
}

static void print_cell(const struct listing *l, const int *widths, FILE *out, size_t column,
		       const char *text)
{
	const struct listing_column *c = &l->columns[column];
	bool last = column + 1 == l->ncolumns;
	char name[256];
	int blanks;

	if (widths[column] == LEFT_OUT)
		return;
	if (!column && l->limit) {
		listing_name(name, sizeof(name), text, (unsigned)widths[0]);
		text = name;
	}
	if (column)
		fputs("  ", out);
	if (last && l->cut) {
		print_cut(out, text, (unsigned)room_for_last(l, widths));
		return;
	}
	/* printf counts bytes, a terminal columns */
	blanks = last && !c->right ? 0 : widths[column] - (int)utf8_width(text);
	fprintf(out, "%*s%s%*s%s", c->right ? blanks : 0, "", text, c->right ? 0 : blanks, "",
		last ? "\n" : "");
}

void listing_text(FILE *out, const char *text)
{
	uint32_t c;
	size_t n;

	for (; (n = utf8_next(text, &c)); text += n) {
		if (utf8_printable(c))
			fwrite(text, 1, n, out);
		else
			fputc('?', out);
	}
}

int listing_print(const struct listing *l, FILE *out)
{
	int *widths = l && !l->failed ? calloc(l->ncolumns, sizeof(*widths)) : NULL;

	if (!widths)
		return -ENOMEM;
	for (size_t c = 0; c < l->ncolumns; c++)
		widths[c] = column_width(l, c);
	leave_out(l, widths);
	for (size_t c = 0; c < l->ncolumns; c++)
		print_cell(l, widths, out, c, l->columns[c].title);
	for (size_t i = 0; i < l->ncells; i++)
		print_cell(l, widths, out, i % l->ncolumns, l->cells[i]);
	free(widths);
	return 0;
}

double listing_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

const char *listing_string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

void listing_quantity(char *out, size_t size, double value)
{
	double magnitude = fabs(value);

	snprintf(out, size, "%.*f",
		 magnitude >= 1000 || value == floor(value) ? 0
		 : magnitude >= 10			    ? 1
		 : magnitude >= 1			    ? 2
							    : 4,
		 value);
}

unsigned listing_width(void)
{
	struct winsize window;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) || !window.ws_col)
		return UINT_MAX;
	return window.ws_col;
}

void listing_span(char *out, size_t size, double ms)
{
	if (ms < 0)
		snprintf(out, size, "-");
	else if (ms < 1000)
		snprintf(out, size, "%.0f ms", ms);
	else if (ms < 120e3)
		snprintf(out, size, "%.1f s", ms / 1000);
	else if (ms < 7200e3)
		snprintf(out, size, "%.1f min", ms / 60e3);
	else
		snprintf(out, size, "%.1f h", ms / 3600e3);
}
