/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See execute.h. */
#include "user/execute.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is done with a path that may be the program's.  Returns negative errno, or 0. */
typedef int execute_try(const char *path, char *const *argv, char *const *env);

static int execute_path(const char *path, char *const *argv, char *const *env)
{
	size_t n = 0;
	char **words;

	execve(path, argv, env);
	if (errno != ENOEXEC)
		return -errno;
	while (argv[n])
		n++;
	words = calloc(n + 2, sizeof(*words));
	if (!words)
		return -ENOMEM;
	words[0] = (char *)"/bin/sh";
	words[1] = (char *)path;
	for (size_t i = 1; i < n; i++)
		words[i + 1] = argv[i];
	execve(words[0], words, env);
	free(words);
	return -ENOEXEC;
}

static int execute_may(const char *path, char *const *argv, char *const *env)
{
	struct stat st;

	(void)argv;
	(void)env;
	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) ? -errno : 0;
}

/* Looks a bare name up on the user's PATH, on this node and with the caller's rights. */
static int execute_on_path(const char *name, execute_try *try, char *const *argv, char *const *env)
{
	const char *at = "/bin:/usr/bin";
	char path[PATH_MAX];
	struct stat st;
	int error = -ENOENT;

	for (char *const *variable = env; *variable; variable++)
		if (!strncmp(*variable, "PATH=", 5))
			at = *variable + 5;
	while (*at) {
		int n = (int)strcspn(at, ":");
		int rc;

		if (snprintf(path, sizeof(path), "%.*s/%s", n ? n : 1, n ? at : ".", name) <
		    (int)sizeof(path)) {
			rc = try(path, argv, env);
			/* A directory that we may not search counts as missing, as in a shell. */
			if (rc == -EACCES && !stat(path, &st) && S_ISREG(st.st_mode))
				error = rc;
			else if (rc != -EACCES && rc != -ENOENT && rc != -ENOTDIR)
				return rc;
		}
		at += n + (at[n] == ':');
	}
	return error;
}

static int execute_with(execute_try *try, const char *executable, char *const *argv,
			char *const *env)
{
	return strchr(executable, '/') ? try(executable, argv, env)
				       : execute_on_path(executable, try, argv, env);
}

int execute_command(const char *executable, char *const *argv, char *const *env)
{
	return execute_with(execute_path, executable, argv, env);
}

int execute_check(const char *executable, char *const *env)
{
	return execute_with(execute_may, executable, NULL, env);
}

int execute_status(int error)
{
	return error == -ENOENT ? 127 : 126;
}
