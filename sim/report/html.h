/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Text, images and hashes in a page, which is HTML that is also well-formed XML. */
#ifndef SIM_REPORT_HTML_H
#define SIM_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

/* For text and for values of attributes in double quotes; replaces control characters by blanks. */
void html_escaped(FILE *f, const char *text);
void html_base64(FILE *f, const void *data, size_t n);
/* Writes 'sha256-...' of TEXT, with its quotes: allows exactly this script or style in a policy. */
void html_allowed(FILE *f, const char *text);

#endif
