/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_class.h. */
#include "balancer/job_class.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MAX 64 /* of one command in a shell's text; the program is among the first */
#define TEXT_MAX  4096
/* The shell would put something else in place of a name with one of these. */
#define UNKNOWN_NAME "$`*?~"
#define DEPTH_MAX    8 /* programs in one another: nice timeout 5 sh -c ... */

enum kind {
	WRAPPER,     /* its first word that is no option is the program */
	INTERPRETER, /* its first word that is no option is a script */
	SHELL,	     /* the same, and -c gives it a text */
};

struct program {
	const char *name; /* with version numbers after it: python, python3, python3.11 */
	enum kind kind;
	const char *valued; /* the letters of options that have a value */
	const char *text;   /* the letters of options that give the program as text */
	const char *module; /* the name of the option that names the program, without its dash */
	unsigned operands;  /* words before the program, besides options */
};

static const struct program programs[] = {
	{"env", WRAPPER, "uCS", "", NULL, 0},	     {"nice", WRAPPER, "n", "", NULL, 0},
	{"ionice", WRAPPER, "cnpPu", "", NULL, 0},   {"nohup", WRAPPER, "", "", NULL, 0},
	{"setsid", WRAPPER, "", "", NULL, 0},	     {"stdbuf", WRAPPER, "ioe", "", NULL, 0},
	{"taskset", WRAPPER, "", "", NULL, 1},	     {"time", WRAPPER, "fo", "", NULL, 0},
	{"timeout", WRAPPER, "ks", "", NULL, 1},     {"sh", SHELL, "oO", "c", NULL, 0},
	{"bash", SHELL, "oO", "c", NULL, 0},	     {"dash", SHELL, "o", "c", NULL, 0},
	{"ksh", SHELL, "o", "c", NULL, 0},	     {"zsh", SHELL, "o", "c", NULL, 0},
	{"python", INTERPRETER, "WX", "c", "m", 0},  {"pypy", INTERPRETER, "WX", "c", "m", 0},
	{"perl", INTERPRETER, "", "eE", NULL, 0},    {"ruby", INTERPRETER, "CEIr", "e", NULL, 0},
	{"node", INTERPRETER, "r", "ep", NULL, 0},   {"nodejs", INTERPRETER, "r", "ep", NULL, 0},
	{"Rscript", INTERPRETER, "", "e", NULL, 0},  {"lua", INTERPRETER, "l", "e", NULL, 0},
	{"php", INTERPRETER, "cdz", "rBRE", "f", 0}, {"java", INTERPRETER, "", "", "jar", 0},
};

/* Options of java that are longer than a letter and have a value of their own. */
static const char *const long_valued[] = {"-cp", "-classpath", "--class-path", "--module-path",
					  "--add-modules"};

/* What a shell does itself, and what only prepares the work. */
static const char *const preparing[] = {
	"cd",	 "export", "set",   "umask", "ulimit", "source", ".",	   ":",	    "[",
	"test",	 "true",   "unset", "trap",  "wait",   "echo",	 "printf", "mkdir", "module",
	"pushd", "popd",   "exit",  "hash",  "alias",  "shopt",	 "local",  "read",
};
/* What is before a command and changes nothing. */
static const char *const prefixes[] = {"exec", "command", "builtin", "!"};
static const char *const keywords[] = {"if",	"then",	 "else",     "elif",   "fi",   "for",
				       "while", "until", "do",	     "done",   "case", "esac",
				       "{",	"}",	 "function", "select", "eval", "[["};

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(word, list[i]))
			return true;
	return false;
}
#define IS_ONE_OF(word, list) is_one_of(word, list, sizeof(list) / sizeof((list)[0]))

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Returns what WORD names, with or without a version; NULL: a program that does its own work. */
static const struct program *find_program(const char *word)
{
	const char *name = file_name(word);

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		size_t n = strlen(programs[i].name);

		if (!strncmp(name, programs[i].name, n) &&
		    name[n + strspn(name + n, "0123456789.")] == 0)
			return &programs[i];
	}
	return NULL;
}

/* Returns whether WORD sets a variable: NAME=... */
static bool is_assignment(const char *word)
{
	const char *c = word;

	while (isalnum((unsigned char)*c) || *c == '_')
		c++;
	return *c == '=' && c > word && !isdigit((unsigned char)*word);
}

/* What an option says about the words after it. */
enum option { OPTION_ALONE, OPTION_VALUED, OPTION_TEXT, OPTION_MODULE };

static enum option read_option(const struct program *p, const char *word)
{
	if (p->module && !strcmp(word + 1, p->module))
		return OPTION_MODULE;
	if (word[1] == '-' || IS_ONE_OF(word, long_valued))
		return IS_ONE_OF(word, long_valued) ? OPTION_VALUED : OPTION_ALONE;
	for (const char *c = word + 1; *c; c++) {
		if (strchr(p->text, *c))
			return OPTION_TEXT;
		if (strchr(p->valued, *c))
			return c[1] ? OPTION_ALONE : OPTION_VALUED;
	}
	return OPTION_ALONE;
}

/*
 * Steps over the options of P, whose words begin at WORDS.  Returns the word that says what it
 * runs, NULL: none does.  TEXT is set if that word is a program as text.
 */
static char *const *step_over(const struct program *p, char *const *words, bool *text)
{
	unsigned operands = p->operands;

	*text = false;
	for (; *words; words++) {
		const char *word = *words;

		if (p->kind == WRAPPER && is_assignment(word))
			continue;
		if (!strcmp(word, "--"))
			return words[1] && !operands ? words + 1 : NULL;
		if ((word[0] == '-' || (p->kind == SHELL && word[0] == '+')) && word[1]) {
			enum option option = read_option(p, word);

			*text = option == OPTION_TEXT;
			if (option == OPTION_ALONE)
				continue;
			if (!words[1])
				return NULL;
			words++;
			if (option != OPTION_VALUED)
				return words;
			continue;
		}
		if (operands-- == 0)
			return words;
	}
	return NULL;
}

/* --- a shell's text ----------------------------------------------------------------- */

/* One command of a text: its words, without their quotes. */
struct shell_command {
	char text[TEXT_MAX];
	char *words[WORDS_MAX + 1]; /* as many as there is room for */
	size_t n;
	bool clear; /* false: it is more than a command with its words */
};

/* Copies the word at FROM to AT and moves AT on.  Returns what follows the word. */
static const char *copy_word(const char *from, char **at, bool *clear)
{
	char quote = 0, *to = *at;

	for (; *from && (quote || !strchr(" \t\n;&|<>()", *from)); from++) {
		if (*from == quote) {
			quote = 0;
		} else if (!quote && (*from == '\'' || *from == '"')) {
			quote = *from;
		} else {
			if (*from == '\\' && quote != '\'' && from[1])
				from++;
			*to++ = *from;
		}
	}
	*to++ = 0;
	*at = to;
	*clear = *clear && !quote;
	return from;
}

/* Steps over a redirection: `2>&1`, `> file`.  What it is from or to goes to AT, and is no word. */
static const char *step_over_redirection(const char *from, char *at, bool *clear)
{
	if (!strncmp(from, "<<", 2) || !strncmp(from, "<(", 2) || !strncmp(from, ">(", 2))
		*clear = false;
	from += strspn(from, "<>&|");
	from += strspn(from, " \t");
	return copy_word(from, &at, clear);
}

/* Reads the command at FROM.  Returns what follows it. */
static const char *read_command(const char *from, struct shell_command *c)
{
	char *at = c->text;

	c->n = 0;
	c->clear = true;
	while (*from && !strchr(";&|\n", *from)) {
		size_t number = strspn(from, "0123456789");

		if (*from == ' ' || *from == '\t') {
			from++;
		} else if (*from == '#') {
			from += strcspn(from, "\n");
		} else if (*from == '(' || *from == ')') {
			c->clear = false;
			from++;
		} else if (from[number] == '<' || from[number] == '>') {
			from = step_over_redirection(from + number, at, &c->clear);
		} else {
			if (c->n < WORDS_MAX)
				c->words[c->n++] = at;
			from = copy_word(from, &at, &c->clear);
		}
	}
	c->words[c->n] = NULL;
	return from + strspn(from, ";&|\n");
}

static void class_of(char *const *command, char *out, size_t size, unsigned depth);

/* Adds NAME to OUT, unless it is the last one there. */
static void class_add(char *out, size_t size, const char *name)
{
	size_t n = strlen(out);
	const char *last = strrchr(out, '+');

	if (!*name || !strcmp(last ? last + 1 : out, name) || n + 1 >= size)
		return;
	snprintf(out + n, size - n, "%s%s", n ? "+" : "", name);
}

/* The same as job_class_text. */
static void class_of_text(const char *text, char *out, size_t size, unsigned depth)
{
	struct shell_command c;

	*out = 0;
	if (strlen(text) >= TEXT_MAX)
		return;
	for (text += strspn(text, " \t\n;"); *text; text += strspn(text, " \t\n")) {
		char *const *words = c.words;
		char name[256];

		text = read_command(text, &c);
		while (*words && (is_assignment(*words) || IS_ONE_OF(*words, prefixes)))
			words++;
		*name = 0;
		if (*words && !IS_ONE_OF(*words, preparing))
			class_of(words, name, sizeof(name), depth + 1);
		if (!c.clear || (*words && IS_ONE_OF(*words, keywords)) ||
		    strpbrk(name, UNKNOWN_NAME)) {
			*out = 0;
			return;
		}
		class_add(out, size, name);
	}
}

/* The same as job_class, DEPTH programs deep. */
static void class_of(char *const *command, char *out, size_t size, unsigned depth)
{
	const struct program *p = depth < DEPTH_MAX ? find_program(command[0]) : NULL;
	bool text = false;
	char *const *runs = p ? step_over(p, command + 1, &text) : NULL;

	*out = 0;
	if (runs && p->kind == WRAPPER)
		class_of(runs, out, size, depth + 1);
	else if (runs && text && p->kind == SHELL)
		class_of_text(*runs, out, size, depth);
	else if (runs && !text)
		snprintf(out, size, "%s", file_name(*runs));
	if (!*out)
		snprintf(out, size, "%s", file_name(command[0]));
}

char *const *job_class_command(char *const *command)
{
	const struct program *p;
	bool text = false;

	while (command && !text && (p = find_program(command[0])) && p->kind == WRAPPER)
		command = step_over(p, command + 1, &text);
	return text ? NULL : command;
}

void job_class(char *const *command, char *out, size_t size)
{
	class_of(command, out, size, 0);
}

void job_class_text(const char *text, char *out, size_t size)
{
	class_of_text(text, out, size, 0);
}
