/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* JSON as text with the shortest numbers that read back bit for bit. */
#ifndef IOCOM_JSON_TEXT_H
#define IOCOM_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

#define JSON_TEXT_NUMBER_MAX 32

/*
 * Returns DOCUMENT on one line, malloc'ed and ended by NUL; NULL: out of memory, or a number is
 * not finite.
 */
char *json_text_dump(const json_t *document, size_t *length);
/* Writes VALUE (finite) as a JSON real, with a point or an exponent.  Returns its length. */
size_t json_text_number(double value, char out[JSON_TEXT_NUMBER_MAX]);

#endif
