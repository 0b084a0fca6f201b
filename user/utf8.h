/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Makes text from outside safe to print and to put into JSON. */
#ifndef IOCOM_UTF8_H
#define IOCOM_UTF8_H

#include <stddef.h>

/*
 * Copies TEXT (at most LENGTH bytes, ends at a NUL) as valid UTF-8: each invalid byte becomes
 * U+FFFD. If OUT is full, the text is cut between characters.
 */
void utf8_copy(char *out, size_t size, const char *text, size_t length);
/*
 * Makes TEXT safe for a log or a terminal, in place: control characters and invalid UTF-8 become
 * '?', so that no name can end the line or control the terminal.
 */
void utf8_plain(char *text);

#endif
