/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Text of unknown origin made safe to print and to put into JSON. */
#ifndef IOCOM_UTF8_H
#define IOCOM_UTF8_H

#include <stddef.h>

/*
 * Copies TEXT (at most LENGTH bytes, ends at a NUL) as valid UTF-8: every byte
 * that is none becomes U+FFFD.  Cuts at a character when OUT is full.
 */
void utf8_copy(char *out, size_t size, const char *text, size_t length);
/*
 * TEXT for a log or a terminal, in place: control characters and bytes that are no UTF-8
 * become '?', so that no name can end the line or give orders.
 */
void utf8_plain(char *text);

#endif
