/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Formats numbers and names for columns of a terminal. */
#ifndef IOCOM_TOP_FORMAT_H
#define IOCOM_TOP_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_NUMBER_MAX 16

/*
 * Formats bytes, or bytes per second, in units of 1000 with at most 5 characters: "-" (none),
 * "12", "1.23K", "45.6M".
 */
void top_format_bytes(char out[TOP_NUMBER_MAX], double value);
/* Formats a number of things per second: "-", "0.4", "37", "1.2K". */
void top_format_count(char out[TOP_NUMBER_MAX], double value);
/* Formats a share of 1 in percent: "-", "0.3", "45.1", "250". */
void top_format_percent(char out[TOP_NUMBER_MAX], double value);
/* Formats a duration: "12s", "3m04s", "5h02m", "4d03h". */
void top_format_span(char out[TOP_NUMBER_MAX], double seconds);

enum top_fit { TOP_FIT_LEFT, TOP_FIT_RIGHT, TOP_FIT_MIDDLE };
/*
 * Appends TEXT (UTF-8) to OUT, exactly COLUMNS wide on the terminal: padded or cut.  MIDDLE keeps
 * head and tail, so that names that differ in either do not look alike.  '?' replaces what the
 * terminal cannot show, above all control characters.  OUT has SIZE bytes and ends in NUL.  The
 * program's locale determines widths.
 */
void top_format_fit(char *out, size_t size, const char *text, unsigned columns, enum top_fit fit);
/* Returns how many columns TEXT takes as top_format_fit shows it. */
unsigned top_format_width(const char *text);
/*
 * Appends N values as bars of one column each, scaled to MOST (if not positive: to the largest
 * value).  The bars are blocks of UTF-8 or ASCII characters.
 */
void top_format_spark(char *out, size_t size, const float *values, size_t n, double most,
		      bool utf8);

#endif
