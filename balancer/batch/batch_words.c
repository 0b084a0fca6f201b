/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds lines that need no shell: plain words and blanks whose first word is no builtin,
 * keyword or assignment.  make does the same: the shell is half the cost of a short command.
 */
#include "balancer/batch/batch.h"

#include <string.h>

/* Commands that only a shell can run, or that differ from the program of the same name. */
static const char *const builtins[] = {
	".",	  ":",	   "alias", "bg",    "break",	 "case",    "cd",     "command", "continue",
	"do",	  "done",  "elif",  "else",  "esac",	 "eval",    "exec",   "exit",	 "export",
	"fc",	  "fg",	   "fi",    "for",   "function", "getopts", "hash",   "if",	 "in",
	"jobs",	  "let",   "local", "read",  "readonly", "return",  "select", "set",	 "shift",
	"source", "then",  "time",  "times", "trap",	 "type",    "ulimit", "umask",	 "unalias",
	"unset",  "until", "wait",  "while",
};

size_t batch_words(char *line, char **words, size_t max)
{
	size_t n = 0, first = strcspn(line + strspn(line, " \t"), " \t");
	char *at = line + strspn(line, " \t");

	if (strpbrk(line, "|&;<>()$`\\\"'*?[]#~{}!^%\n\r") || memchr(at, '=', first))
		return 0;
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strlen(builtins[i]) == first && !strncmp(at, builtins[i], first))
			return 0;
	/* Count first: LINE stays unchanged if there are too many words. */
	for (const char *c = at; *c; c++)
		n += (c == at || c[-1] == ' ' || c[-1] == '\t') && *c != ' ' && *c != '\t';
	if (!n || n >= max)
		return 0;
	n = 0;
	while (*at) {
		words[n++] = at;
		at += strcspn(at, " \t");
		if (*at)
			*at++ = 0;
		at += strspn(at, " \t");
	}
	words[n] = NULL;
	return n;
}
