/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See task_env.h. */
#include "agent/tasks/task_env.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void task_env_free(struct task_env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->list[i]);
	free(env->list);
	*env = (struct task_env){0};
}

/* Takes TEXT, "NAME=VALUE".  Returns 0 or -ENOMEM. */
static int task_env_add(struct task_env *env, char *text)
{
	char **more = text ? reallocarray(env->list, env->count + 2, sizeof(*more)) : NULL;

	if (!more) {
		free(text);
		return -ENOMEM;
	}
	env->list = more;
	more[env->count++] = text;
	more[env->count] = NULL;
	return 0;
}

int task_env_copy(struct task_env *env, char *const *from)
{
	size_t n = 0;

	*env = (struct task_env){0};
	while (from[n])
		n++;
	env->list = calloc(n + 1, sizeof(*env->list));
	if (!env->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		env->list[i] = strdup(from[i]);
		if (!env->list[i])
			return -ENOMEM;
		env->count++;
	}
	return 0;
}

/* Where NAME is, or the end. */
static size_t task_env_find(const struct task_env *env, const char *name)
{
	size_t n = strlen(name), i = 0;

	while (i < env->count && (strncmp(env->list[i], name, n) != 0 || env->list[i][n] != '='))
		i++;
	return i;
}

bool task_env_has(const struct task_env *env, const char *name)
{
	return task_env_find(env, name) < env->count;
}

int task_env_set(struct task_env *env, const char *name, const char *fmt, ...)
{
	size_t at = task_env_find(env, name);
	char *text, *value;
	va_list args;
	int rc;

	va_start(args, fmt);
	rc = vasprintf(&value, fmt, args);
	va_end(args);
	if (rc < 0)
		return -ENOMEM;
	rc = asprintf(&text, "%s=%s", name, value);
	free(value);
	if (rc < 0)
		return -ENOMEM;
	if (at == env->count)
		return task_env_add(env, text);
	free(env->list[at]);
	env->list[at] = text;
	return 0;
}
