/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The settings of a run, as text; see settings.h. */
#include "sim/experiments/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The position of NAME, or the position where it would be inserted. */
static size_t settings_place_of(const struct settings *s, const char *name)
{
	size_t i = 0;

	while (i < s->n && strcmp(s->v[i].name, name) < 0)
		i++;
	return i;
}

int settings_set(struct settings *s, const char *name, const char *value)
{
	size_t i = settings_place_of(s, name);
	char *copy = strdup(value);
	struct setting *grown;

	if (!copy)
		return -ENOMEM;
	if (i < s->n && !strcmp(s->v[i].name, name)) {
		free(s->v[i].value);
		s->v[i].value = copy;
		return 0;
	}
	grown = realloc(s->v, (s->n + 1) * sizeof(*grown));
	if (!grown)
		goto no_memory;
	s->v = grown;
	name = strdup(name);
	if (!name)
		goto no_memory;
	memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(*grown));
	s->v[i] = (struct setting){(char *)name, copy};
	s->n++;
	return 0;
no_memory:
	free(copy);
	return -ENOMEM;
}

static int experiments_settings_add(struct settings *s, const char *text, size_t length,
				    struct iocom_err *err)
{
	const char *equals = memchr(text, '=', length);
	char *name;
	int ret;

	if (!equals || equals == text)
		return iocom_err_set(err, -EINVAL, "expected NAME=VALUE, found '%.*s'", (int)length,
				     text);
	name = strndup(text, length);
	if (!name)
		return -ENOMEM;
	name[equals - text] = '\0';
	ret = settings_set(s, name, name + (equals - text) + 1);
	free(name);
	return ret;
}

int settings_add(struct settings *s, const char *text, struct iocom_err *err)
{
	return experiments_settings_add(s, text, strlen(text), err);
}

int settings_parse(struct settings *s, const char *text, struct iocom_err *err)
{
	while (text && *text) {
		size_t length = strcspn(text, " \n");

		if (length) {
			int ret = experiments_settings_add(s, text, length, err);

			if (ret)
				return ret;
		}
		text += length + (text[length] != '\0');
	}
	return 0;
}

int settings_merge(struct settings *to, const struct settings *from)
{
	for (size_t i = 0; i < from->n; i++) {
		int ret = settings_set(to, from->v[i].name, from->v[i].value);

		if (ret)
			return ret;
	}
	return 0;
}

void settings_remove(struct settings *s, const char *prefix)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (strncmp(s->v[i].name, prefix, strlen(prefix))) {
			s->v[kept++] = s->v[i];
			continue;
		}
		free(s->v[i].name);
		free(s->v[i].value);
	}
	s->n = kept;
}

const char *settings_get(const struct settings *s, const char *name)
{
	size_t i = settings_place_of(s, name);

	return i < s->n && !strcmp(s->v[i].name, name) ? s->v[i].value : NULL;
}

char *settings_text(const struct settings *s)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < s->n; i++)
		fprintf(f, "%s=%s\n", s->v[i].name, s->v[i].value);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

void settings_free(struct settings *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		free(s->v[i].value);
	}
	free(s->v);
	*s = (struct settings){0};
}
