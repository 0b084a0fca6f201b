/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parts of a page; see html.h. */
#include "sim/report/html.h"

#include <sodium.h>
#include <string.h>

void html_escaped(FILE *f, const char *text)
{
	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			/* XML allows hardly any control character. */
			fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
		}
	}
}

void html_base64(FILE *f, const void *data, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *byte = data;

	for (size_t i = 0; i < n; i += 3) {
		unsigned int v = (unsigned int)byte[i] << 16;

		v |= i + 1 < n ? (unsigned int)byte[i + 1] << 8 : 0;
		v |= i + 2 < n ? byte[i + 2] : 0;
		fputc(digits[v >> 18], f);
		fputc(digits[v >> 12 & 63], f);
		fputc(i + 1 < n ? digits[v >> 6 & 63] : '=', f);
		fputc(i + 2 < n ? digits[v & 63] : '=', f);
	}
}

void html_allowed(FILE *f, const char *text)
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)text, strlen(text));
	fputs("'sha256-", f);
	html_base64(f, hash, sizeof(hash));
	fputc('\'', f);
}
