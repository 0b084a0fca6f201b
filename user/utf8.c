/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "user/utf8.h"

#include <stdbool.h>
#include <string.h>

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

void utf8_plain(char *text)
{
	unsigned char *s = (unsigned char *)text, *end = s + strlen(text);

	while (s < end) {
		size_t n = utf8_length(s, (size_t)(end - s));
		/* U+0080 to U+009F are control characters too. */
		bool control = *s < ' ' || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0);

		if (!n)
			n = 1;
		else if (!control) {
			s += n;
			continue;
		}
		memset(s, '?', n);
		s += n;
	}
}
