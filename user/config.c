/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads settings from an INI file and from flags by one table; see config.h.
 *
 * libinih's handler does not get the line number, so the reader below counts the lines that it
 * passes on. The reader also strips leading white space: libinih would take an indented line for
 * a continuation of the value above it.
 */
#include "user/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <ini.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_SHOWN	 80
#define CONFIG_SIZE_MOST (1 << 20) /* bytes of a file */

/* '-' in a flag means '_' in a file; we accept both in both. */
static bool config_is(const char *flag, const char *name)
{
	while (*flag && (*flag == *name || (*flag == '-' && *name == '_'))) {
		flag++;
		name++;
	}
	return !*flag && !*name;
}

static const struct config_key *config_find(const struct config_program *program, const char *name)
{
	for (size_t i = 0; i < program->nkeys; i++)
		if (config_is(program->keys[i].name, name))
			return &program->keys[i];
	return NULL;
}

static bool config_is_retired(const struct config_program *program, const char *name)
{
	for (const char *const *key = program->retired; key && *key; key++)
		if (config_is(*key, name))
			return true;
	return false;
}

static int config_set_number(const struct config_key *key, const char *value, double *out,
			     struct iocom_err *err)
{
	char *end;

	errno = 0;
	*out = strtod(value, &end);
	if (end == value || *end || errno || !isfinite(*out) || isspace((unsigned char)*value))
		return iocom_err_set(err, -EINVAL, "expected a number, not '%.*s'", VALUE_SHOWN,
				     value);
	if (*out < key->min || *out > key->max)
		return iocom_err_set(err, -EINVAL, "expected a number from %g to %g, not '%.*s'",
				     key->min, key->max, VALUE_SHOWN, value);
	if (key->type == CONFIG_COUNT && *out != floor(*out))
		return iocom_err_set(err, -EINVAL, "expected a whole number, not '%.*s'",
				     VALUE_SHOWN, value);
	return 0;
}

static int set_bool(const char *value, bool *out, struct iocom_err *err)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	for (size_t i = 0; i < 4; i++) {
		if (!strcasecmp(value, yes[i]) || !strcasecmp(value, no[i])) {
			*out = !strcasecmp(value, yes[i]);
			return 0;
		}
	}
	return iocom_err_set(err, -EINVAL, "expected yes or no, not '%.*s'", VALUE_SHOWN, value);
}

static int config_set_value(const struct config_key *key, const char *value, void *target,
			    struct iocom_err *err)
{
	char *field = (char *)target + key->offset;
	double number;
	int rc;

	switch (key->type) {
	case CONFIG_STRING:
		if (strlen(value) >= key->size)
			return iocom_err_set(err, -EINVAL, "expected at most %zu characters",
					     key->size - 1);
		memcpy(field, value, strlen(value) + 1);
		break;
	case CONFIG_NUMBER:
	case CONFIG_COUNT:
		rc = config_set_number(key, value, &number, err);
		if (rc)
			return rc;
		if (key->type == CONFIG_NUMBER)
			*(double *)(void *)field = number;
		else
			*(uint32_t *)(void *)field = (uint32_t)number;
		break;
	case CONFIG_BOOL:
		rc = set_bool(value, (bool *)field, err);
		if (rc)
			return rc;
		break;
	case CONFIG_CUSTOM:
		break;
	}
	return key->parse ? key->parse(target, value, err) : 0;
}

int config_set(const struct config_program *program, const char *name, const char *value,
	       void *target, struct iocom_err *err)
{
	const struct config_key *key = config_find(program, name);
	int rc;

	if (!key)
		return iocom_err_set(err, -ENOENT, "unknown key '%.*s'; `%s --help` lists the keys",
				     VALUE_SHOWN, name, program->name);
	rc = config_set_value(key, value, target, err);
	if (rc)
		iocom_err_prefix(err, "%s", key->name);
	return rc;
}

struct reading {
	const struct config_program *program;
	const char *path;
	void *target;
	FILE *file;
	int line;
	int rc; /* error of the first bad line */
	struct iocom_err *err;
};

static char *config_next_line(char *out, int size, void *arg)
{
	struct reading *r = arg;
	size_t n, lead;

	if (r->rc || !fgets(out, size, r->file))
		return NULL;
	r->line++;
	n = strlen(out);
	if (!n) {
		r->rc = iocom_err_set(r->err, -EINVAL, "%s:%d: a NUL byte: this is no text",
				      r->path, r->line);
		return NULL;
	}
	if (out[n - 1] != '\n' && !feof(r->file)) {
		r->rc = iocom_err_set(r->err, -EINVAL, "%s:%d: line longer than %d characters",
				      r->path, r->line, size - 2);
		return NULL;
	}
	lead = strspn(out, " \t");
	memmove(out, out + lead, n - lead + 1);
	return out;
}

static int config_handle(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;

	if (r->rc)
		return 0;
	if (strcmp(section, r->program->section)) {
		r->rc = iocom_err_set(r->err, -EINVAL,
				      "%s:%d: key '%.*s' is %s%.*s%s; put it under [%s]", r->path,
				      r->line, VALUE_SHOWN, name,
				      *section ? "in section [" : "before any section", VALUE_SHOWN,
				      section, *section ? "]" : "", r->program->section);
		return 0;
	}
	if (config_is_retired(r->program, name)) {
		r->program->skip(r->target, name, r->path, r->line);
		return 1;
	}
	r->rc = config_set(r->program, name, value, r->target, r->err);
	if (r->rc)
		iocom_err_prefix(r->err, "%s:%d", r->path, r->line);
	return r->rc == 0;
}

/*
 * Opens PATH if it is a file that can be read to its end: an agent that reads its settings again
 * must not wait for somebody who writes into a pipe.  Returns 0 or negative errno.
 */
static int config_open(const char *path, FILE **out, struct iocom_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		rc = iocom_err_set(err, -errno, "cannot read the configuration %s: %s", path,
				   strerror(errno));
	else if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) /* /dev/null is an empty one */
		rc = iocom_err_set(err, -EINVAL, "the configuration %s is not a plain file", path);
	else if (st.st_size > CONFIG_SIZE_MOST)
		rc = iocom_err_set(err, -EFBIG, "the configuration %s is larger than 1 MiB", path);
	*out = rc ? NULL : fdopen(fd, "r");
	if (!rc && !*out)
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	if (rc && fd >= 0)
		close(fd);
	return rc;
}

int config_read(const struct config_program *program, const char *path, void *target,
		struct iocom_err *err)
{
	struct reading r = {.program = program, .path = path, .target = target, .err = err};
	int line, rc = config_open(path, &r.file, err);

	if (rc)
		return rc;
	line = ini_parse_stream(config_next_line, &r, config_handle, &r);
	if (!r.rc && ferror(r.file))
		r.rc = iocom_err_set(err, -EIO, "cannot read the configuration %s: %s", path,
				     strerror(errno));
	fclose(r.file);
	if (!r.rc && line)
		r.rc = iocom_err_set(err, -EINVAL,
				     "%s:%d: malformed line; expected [%s], KEY = VALUE, or a "
				     "comment that starts with '#' or ';'",
				     path, line, program->section);
	return r.rc;
}

static int config_defaults(const struct config_program *program, void *target,
			   struct iocom_err *err)
{
	for (size_t i = 0; i < program->nkeys; i++) {
		const struct config_key *key = &program->keys[i];
		int rc = key->fallback ? config_set_value(key, key->fallback, target, err) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

#define OPT_CONFIG  1000
#define OPT_VERSION 1001
#define OPT_RETIRED 1002

/* Walks over the flags once. With TARGET NULL it only looks for --config, --help and --version. */
static int flags(const struct config_program *program, const struct option *options, int argc,
		 char **argv, const char **path, void *target, struct iocom_err *err)
{
	int c, index, rc;

	optind = 0;
	while ((c = getopt_long(argc, argv, ":h", options, &index)) != -1) {
		if (c == 'h')
			return CONFIG_E_HELP;
		if (c == OPT_VERSION)
			return CONFIG_E_VERSION;
		if (c == OPT_CONFIG) {
			*path = optarg;
			continue;
		}
		if (c == ':' || c == '?')
			return iocom_err_set(err, CONFIG_E_USAGE,
					     c == ':' ? "%s needs a value; see `%s --help`"
						      : "unknown option %s; see `%s --help`",
					     argv[optind - 1], program->name);
		if (!target)
			continue;
		if (c == OPT_RETIRED) {
			program->skip(target, options[index].name, NULL, 0);
			continue;
		}
		rc = config_set_value(&program->keys[index], optarg, target, err);
		if (rc) {
			iocom_err_prefix(err, "--%s", options[index].name);
			return CONFIG_E_USAGE;
		}
	}
	if (optind < argc)
		return iocom_err_set(err, CONFIG_E_USAGE,
				     "unexpected argument '%.*s'; see `%s --help`", VALUE_SHOWN,
				     argv[optind], program->name);
	return 0;
}

static int config_load_file(const struct config_program *program, const struct option *options,
			    int argc, char **argv, void *target, struct iocom_err *err)
{
	const char *path = NULL;
	int rc = flags(program, options, argc, argv, &path, NULL, err);

	if (rc)
		return rc;
	rc = config_defaults(program, target, err);
	if (rc)
		return rc;
	if (program->check && (path || program->file))
		rc = program->check(path ? path : program->file, err);
	if (rc)
		return rc;
	if (path) {
		rc = config_read(program, path, target, err);
	} else if (program->file) {
		rc = config_read(program, program->file, target, err);
		if (rc == -ENOENT)
			rc = 0;
	}
	if (rc)
		return rc;
	return flags(program, options, argc, argv, &path, target, err);
}

int config_load(const struct config_program *program, int argc, char **argv, void *target,
		struct iocom_err *err)
{
	struct option *options;
	size_t n = 0, nretired = 0;
	int rc;

	while (program->retired && program->retired[nretired])
		nretired++;
	options = calloc(program->nkeys + nretired + 4, sizeof(*options));
	if (!options)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	for (; n < program->nkeys; n++)
		options[n] = (struct option){program->keys[n].name, required_argument, NULL, 1};
	options[n++] = (struct option){"config", required_argument, NULL, OPT_CONFIG};
	options[n++] = (struct option){"help", no_argument, NULL, 'h'};
	options[n++] = (struct option){"version", no_argument, NULL, OPT_VERSION};
	for (size_t i = 0; i < nretired; i++)
		options[n++] =
			(struct option){program->retired[i], required_argument, NULL, OPT_RETIRED};
	rc = config_load_file(program, options, argc, argv, target, err);
	free(options);
	return rc;
}

#define HELP_WIDTH  80
#define HELP_INDENT 24 /* where what an option does begins */

/* Prints FLAG and what it does, in lines of at most HELP_WIDTH columns. */
static void config_help_option(FILE *out, const char *flag, const char *does)
{
	int at = fprintf(out, "  --%s", flag);

	if (at >= HELP_INDENT) {
		fputc('\n', out);
		at = 0;
	}
	at += fprintf(out, "%*s", HELP_INDENT - at - 1, "");
	for (size_t n; *does; does += n + strspn(does + n, " ")) {
		n = strcspn(does, " ");
		if (at + 1 + (int)n > HELP_WIDTH)
			at = fprintf(out, "\n%*s", HELP_INDENT - 1, "") - 1;
		at += fprintf(out, " %.*s", (int)n, does);
	}
	fputc('\n', out);
}

char *config_help(const struct config_program *program)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "Usage: %s [OPTION]...\n%s\n\n", program->name, program->summary);
	config_help_option(out, "config FILE", "read this configuration");
	for (size_t i = 0; i < program->nkeys; i++) {
		const struct config_key *key = &program->keys[i];
		bool usual = key->fallback && *key->fallback;
		char flag[64], does[256];

		snprintf(flag, sizeof(flag), "%s %s", key->name, key->argument);
		snprintf(does, sizeof(does), "%s%s%s%s", key->help, usual ? " [" : "",
			 usual ? key->fallback : "", usual ? "]" : "");
		config_help_option(out, flag, does);
	}
	config_help_option(out, "help", "print this help");
	config_help_option(out, "version", "print the version");
	fprintf(out,
		"\nEvery option is also a key of section [%s] in the configuration\n%s%swith "
		"'_' for '-'.\n",
		program->section, program->file ? program->file : "", program->file ? ", " : "");
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
