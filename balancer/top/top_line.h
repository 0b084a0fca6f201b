/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A line of the screen as pieces of different importance.  A piece that does not fit is left
 * out as a whole, the least important first, so that no number is cut.
 */
#ifndef IOCOM_TOP_LINE_H
#define IOCOM_TOP_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define TOP_PIECES	16
#define TOP_PIECE_BYTES 256
#define TOP_LINE_BYTES	4096

/* The meaning of a piece; the screen decides how it looks. */
enum top_ink {
	TOP_INK_PLAIN,
	TOP_INK_NAME,
	TOP_INK_DIM,
	TOP_INK_TITLE,
	TOP_INK_ALERT, /* something is lost or wrong */
	TOP_INK_BUSY,
	TOP_INK_WARM,
	TOP_INK_EXPLICIT, /* I/O by calls */
	TOP_INK_IMPLICIT, /* I/O by page faults */
	TOP_INK_NETWORK,
	TOP_INK_SPARK,
	TOP_INKS
};

struct top_piece {
	char text[TOP_PIECE_BYTES];
	enum top_ink ink;
	unsigned char rank; /* 0 stays longest */
};

struct top_line {
	struct top_piece piece[TOP_PIECES];
	unsigned n;
	unsigned char rank; /* among lines: 0 stays longest */
};

/* Adds a piece; does nothing beyond TOP_PIECES. */
void top_line_add(struct top_line *line, unsigned char rank, enum top_ink ink, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* Drops pieces until the line fits into WIDTH columns; the last piece left is cut. */
void top_line_fit(struct top_line *line, unsigned width);
/* Writes the line as one text, with unsafe characters replaced and no trailing blanks. */
void top_line_text(const struct top_line *line, char out[TOP_LINE_BYTES]);
/* Drops the least important of N lines until at most MOST are left.  Returns how many are left. */
size_t top_lines_most(struct top_line *lines, size_t n, size_t most);

#endif
