/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Settings: one table gives each key its INI name, its flag, its help text, its default and its
 * check. Flags override the file, and the file overrides the defaults. INI keys are the flags'
 * names with '_' for '-', all in one section.
 */
#ifndef IOCOM_CONFIG_H
#define IOCOM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

enum config_type {
	CONFIG_STRING, /* char[size] in the target */
	CONFIG_NUMBER, /* double, min..max */
	CONFIG_COUNT,  /* uint32_t, min..max */
	CONFIG_BOOL,   /* bool: yes/no, true/false, on/off, 1/0 */
	CONFIG_CUSTOM, /* `parse` reads it */
};

/* Returns 0, or -EINVAL with what was expected ("expected ...") in ERR. */
typedef int (*config_parse_value)(void *target, const char *value, struct iocom_err *err);

struct config_key {
	const char *name;     /* flag without "--" */
	const char *argument; /* shown in --help: "SECONDS" */
	const char *help;     /* one line for --help */
	const char *fallback; /* default as text; NULL: the target stays as it is */
	enum config_type type;
	size_t offset, size;	  /* offset and size of the target's member */
	double min, max;	  /* for numbers and counts */
	config_parse_value parse; /* reads a CONFIG_CUSTOM; an extra check or NULL for others */
};

struct config_program {
	const char *name;    /* "iocomd" */
	const char *summary; /* one line for --help */
	const char *section; /* "iocom" */
	const char *file;    /* default file, read if it exists; NULL: none */
	const struct config_key *keys;
	size_t nkeys;
	/*
	 * Keys that older versions had, NULL at the end; NULL: none. Their values are not read:
	 * `skip` gets the key, as a file writes it, with its place, or as a flag without "--" and
	 * FILE NULL.
	 */
	const char *const *retired;
	void (*skip)(void *target, const char *key, const char *file, int line);
	/* Checks the file before it is read; NULL: any file will do. Returns 0 or negative errno.
	 */
	int (*check)(const char *path, struct iocom_err *err);
};

#define CONFIG_E_HELP	 1 /* --help was given: print config_help and exit 0 */
#define CONFIG_E_VERSION 2 /* --version was given */
#define CONFIG_E_USAGE	 3 /* the command line has a bad flag or value: exit 2 */

/*
 * Fills TARGET: first the defaults, then the file (--config FILE, which must exist, or the
 * program's default file if it exists), then the flags. Returns 0; CONFIG_E_*; or negative errno
 * with "FILE:LINE: sentence" (exit 1).
 */
int config_load(const struct config_program *program, int argc, char **argv, void *target,
		struct iocom_err *err);
/* Sets one key from text. Returns 0; -ENOENT: no such key; -EINVAL with the reason in ERR. */
int config_set(const struct config_program *program, const char *name, const char *value,
	       void *target, struct iocom_err *err);
/* Reads one file. Returns 0 or negative errno with "FILE:LINE: sentence". */
int config_read(const struct config_program *program, const char *path, void *target,
		struct iocom_err *err);
/* Returns the help text, malloc'ed; NULL if memory is out. */
char *config_help(const struct config_program *program);

#endif
