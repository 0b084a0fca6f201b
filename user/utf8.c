/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "user/utf8.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

/* Returns how many bytes of the valid UTF-8 character at S; 0: it is not valid. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	static const struct {
		unsigned char mask, lead, least, most; /* bounds of the second byte */
	} shapes[] = {
		{0xff, 0xe0, 0xa0, 0xbf}, {0xff, 0xed, 0x80, 0x9f}, {0xff, 0xf0, 0x90, 0xbf},
		{0xff, 0xf4, 0x80, 0x8f}, {0xe0, 0xc0, 0x80, 0xbf}, {0xf0, 0xe0, 0x80, 0xbf},
	};
	size_t need;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	need = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n < need)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if ((s[0] & shapes[i].mask) == shapes[i].lead)
			return s[1] >= shapes[i].least && s[1] <= shapes[i].most ? need : 0;
	return need; /* F1..F3: any second byte */
}

void utf8_copy(char *out, size_t size, const char *text, size_t length)
{
	size_t n = strnlen(text, length), i = 0, o = 0;

	while (i < n) {
		size_t good = utf8_length((const unsigned char *)text + i, n - i);
		const char *from = good ? text + i : "\xef\xbf\xbd";
		size_t put_bytes = good ? good : 3;

		if (o + put_bytes >= size)
			break;
		memcpy(out + o, from, put_bytes);
		o += put_bytes;
		i += good ? good : 1;
	}
	out[o] = 0;
}

size_t utf8_next(const char *text, uint32_t *c)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = *s ? utf8_length(s, strnlen(text, 4)) : 0;

	*c = n == 1 ? s[0] : n ? s[0] & (0xffU >> (n + 1)) : UTF8_INVALID;
	for (size_t i = 1; i < n; i++)
		*c = *c << 6 | (s[i] & 0x3f);
	return n ? n : *s != 0;
}

/*
 * U+0080 to U+009F are control characters too.  The others are invisible: they turn the direction
 * of the line (U+202A to U+202E, U+2066 to U+2069), hide in a name, or begin a new line.
 */
bool utf8_printable(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} not [] = {
		{0x00, 0x1f},	  {0x7f, 0x9f},	    {0xad, 0xad},     {0x61c, 0x61c},
		{0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
		{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
		if (c >= not [i].from && c <= not [i].to)
			return false;
	return c != UTF8_INVALID;
}

void utf8_plain(char *text)
{
	uint32_t c;
	size_t n;

	for (; (n = utf8_next(text, &c)); text += n)
		if (!utf8_printable(c))
			memset(text, '?', n);
}

void utf8_line(char *const *words, char *out, size_t size)
{
	size_t at = 0, n;
	uint32_t c;

	for (char *const *word = words; *word; word++) {
		if (word != words && at + 1 < size)
			out[at++] = ' ';
		for (const char *text = *word; (n = utf8_next(text, &c)); text += n) {
			bool shown = utf8_printable(c);

			if (at + (shown ? n : 1) >= size) {
				out[at] = 0;
				return;
			}
			memcpy(out + at, shown ? text : "?", shown ? n : 1);
			at += shown ? n : 1;
		}
	}
	out[at] = 0;
}

/* Most text is this, and a locale takes some time to make. */
static bool utf8_is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

unsigned utf8_width(const char *text)
{
	/* The programs' own locale may be C, in which nothing beyond ASCII has a width. */
	locale_t wide = utf8_is_ascii(text) ? 0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", 0);
	locale_t before = wide ? uselocale(wide) : 0;
	unsigned width = 0;
	uint32_t c;
	size_t n;

	for (; (n = utf8_next(text, &c)); text += n) {
		int columns = wide && c >= 0x80 && c != UTF8_INVALID ? wcwidth((wchar_t)c) : 1;

		width += columns < 0 ? 1 : (unsigned)columns;
	}
	if (wide) {
		uselocale(before);
		freelocale(wide);
	}
	return width;
}
