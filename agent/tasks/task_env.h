/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The environment of a task: the user's, with variables of its own. */
#ifndef IOCOM_TASK_ENV_H
#define IOCOM_TASK_ENV_H

#include <stdbool.h>
#include <stddef.h>

struct task_env {
	char **list; /* malloc'ed strings, ended by NULL */
	size_t count;
};

/* Copies FROM.  Returns 0 or -ENOMEM; the caller frees ENV in any case. */
int task_env_copy(struct task_env *env, char *const *from);
void task_env_free(struct task_env *env);
bool task_env_has(const struct task_env *env, const char *name);
/* Sets NAME in place of what it was.  Returns 0 or -ENOMEM. */
__attribute__((format(printf, 3, 4))) int task_env_set(struct task_env *env, const char *name,
						       const char *fmt, ...);

#endif
