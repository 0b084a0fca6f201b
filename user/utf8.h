/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Makes text from outside safe to print and to put into JSON. */
#ifndef IOCOM_UTF8_H
#define IOCOM_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies TEXT (at most LENGTH bytes, ends at a NUL) as valid UTF-8: each invalid byte becomes
 * U+FFFD. If OUT is full, the text is cut between characters.
 */
void utf8_copy(char *out, size_t size, const char *text, size_t length);
/*
 * Makes TEXT safe for a log or a terminal, in place: each byte of what is not UTF-8, and of a
 * character that is not printable, becomes '?', so that no name can end the line or control the
 * terminal.
 */
void utf8_plain(char *text);

#define UTF8_INVALID UINT32_MAX
/* The next character of TEXT, or UTF8_INVALID for one byte.  Returns its bytes; 0: TEXT ends. */
size_t utf8_next(const char *text, uint32_t *c);
/* False for control characters, and for those that are invisible or turn the line's direction. */
bool utf8_printable(uint32_t c);
/*
 * Joins WORDS (ends at NULL), such as a command's, with blanks to one printable line; '?' stands
 * for whatever is not printable.  If OUT is full, the line is cut between characters.
 */
void utf8_line(char *const *words, char *out, size_t size);
/* The columns of a terminal that TEXT takes: 2 for a wide character, 0 for a mark on another. */
unsigned utf8_width(const char *text);

#endif
