/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pmi1_line.h. */
#include "agent/tasks/pmi1_line.h"

#include <errno.h>
#include <string.h>

int pmi1_line_parse(struct pmi1_line *line, char *text)
{
	line->count = 0;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return -EBADMSG;
	for (char *at = text; *(at += strspn(at, " "));) {
		size_t n = strcspn(at, " ");
		char *equals = memchr(at, '=', n);

		if (!equals || equals == at || line->count == PMI1_WORDS_MAX)
			return -EBADMSG;
		*equals = 0;
		line->words[line->count].key = at;
		line->words[line->count++].value = equals + 1;
		at += n;
		if (*at)
			*at++ = 0;
	}
	return line->count ? 0 : -EBADMSG;
}

const char *pmi1_line_get(const struct pmi1_line *line, const char *key)
{
	for (size_t i = 0; i < line->count; i++)
		if (!strcmp(line->words[i].key, key))
			return line->words[i].value;
	return NULL;
}
