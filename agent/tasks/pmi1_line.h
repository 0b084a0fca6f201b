/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A line of PMI-1, as MPICH's programs speak it to whoever started them: "cmd=put key=a value=b".
 */
#ifndef IOCOM_PMI1_LINE_H
#define IOCOM_PMI1_LINE_H

#include <stddef.h>

#define PMI1_KEY_MAX   64
#define PMI1_VALUE_MAX 1024
#define PMI1_LINE_MAX  2048 /* with its end */
#define PMI1_WORDS_MAX 32

struct pmi1_line {
	struct {
		char *key, *value; /* in the text */
	} words[PMI1_WORDS_MAX];
	size_t count;
};

/*
 * Splits TEXT, a line without its end, in place.  Returns 0, or -EBADMSG: a word without '=', too
 * many words, or a control character.
 */
int pmi1_line_parse(struct pmi1_line *line, char *text);
/* Returns the value of KEY, or NULL. */
const char *pmi1_line_get(const struct pmi1_line *line, const char *key);

#endif
