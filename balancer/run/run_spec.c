/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Describes this process as a spec; see run.h. */
#include "balancer/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/placement_request.h"

extern char **environ;

uint32_t run_closed_descriptors(void)
{
	uint32_t closed = 0;

	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		closed |= 1u << fd;
		/* open returns the lowest free number, which is FD. */
		if (open("/dev/null", O_RDWR) < 0)
			break;
	}
	return closed;
}

static char **copy_vector(char *const *from)
{
	size_t n = 0;
	char **to;

	while (from[n])
		n++;
	to = calloc(n + 1, sizeof(*to));
	for (size_t i = 0; to && i < n; i++) {
		to[i] = strdup(from[i]);
		if (!to[i]) {
			while (i)
				free(to[--i]);
			free(to);
			return NULL;
		}
	}
	return to;
}

static size_t run_spec_count_entries(const char *list)
{
	size_t n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* Makes the entry for the environment: NAME=VALUE as it is, NAME with our value. */
static char *list_entry(const char *entry, size_t length)
{
	char *name = strndup(entry, length);
	const char *value;
	char *out = NULL;

	if (!name || strchr(name, '='))
		return name;
	value = getenv(name);
	if (value && asprintf(&out, "%s=%s", name, value) < 0)
		out = NULL;
	free(name);
	return out;
}

static char **listed_env(const char *list)
{
	char **env = calloc(run_spec_count_entries(list) + 1, sizeof(*env));
	size_t n = 0;

	while (env && *list) {
		size_t length = strcspn(list, ",");
		char *entry = length ? list_entry(list, length) : NULL;

		if (entry)
			env[n++] = entry;
		list += length + (list[length] == ',');
	}
	return env;
}

static char **run_spec_make_env(const char *rule)
{
	if (!strcmp(rule, "all"))
		return copy_vector(environ);
	return listed_env(strcmp(rule, "none") != 0 ? rule : "");
}

/*
 * Returns whether NAME is a shell variable's (letters, digits and _, no digit first), or
 * "BASH_FUNC_f%%".
 */
static bool name_valid(const char *name, size_t length)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.%()-";

	return length && strchr(letters, *name) && strspn(name, all) >= length;
}

int run_env_check(const char *rule, struct iocom_err *err)
{
	if (!strcmp(rule, "all") || !strcmp(rule, "none"))
		return 0;
	for (const char *at = rule;; at++) {
		int n = (int)strcspn(at, ","), name = (int)strcspn(at, ",=");

		if (!n)
			return iocom_err_set(err, -EINVAL,
					     "--env takes all, none, or NAME,NAME=VALUE,...; an "
					     "entry is empty in '%s'",
					     rule);
		if (!name_valid(at, (size_t)name))
			return iocom_err_set(
				err, -EINVAL,
				name ? "--env: '%.*s' is not the name of a variable"
				     : "--env: there is no name before the = of '%.*s'",
				name ? name : n, at);
		at += n;
		if (!*at)
			return 0;
	}
}

static void run_spec_take_limits(struct spec *spec)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;

		if (getrlimit((__rlimit_resource_t)i, &limit))
			continue;
		spec->limits[spec->nlimits++] =
			(struct spec_limit){i, limit.rlim_cur, limit.rlim_max};
	}
}

bool run_is_worker(char *const *command)
{
	const char *base = strrchr(command[0], '/');

	return base && !strcmp(base, "/iocom") && command[1] && command[2] &&
	       !strcmp(command[1], "batch") && !strcmp(command[2], "--worker");
}

int run_spec_fill(struct spec *spec, char *const *command, const char *cwd, const char *executable,
		  const char *env_rule, struct iocom_err *err)
{
	*spec = (struct spec){0};
	spec->umask = umask(0);
	umask(spec->umask);
	run_spec_take_limits(spec);
	spec->argv = copy_vector(command);
	spec->env = run_spec_make_env(env_rule);
	spec->cwd = strdup(cwd);
	spec->executable = strdup(executable);
	if (spec->argv && spec->env && spec->cwd && spec->executable)
		return 0;
	spec_free(spec);
	return iocom_err_set(err, -ENOMEM, "out of memory for the job's description");
}

int run_executable_check(const char *command, const char *executable, struct iocom_err *err)
{
	struct stat st;

	if (!strchr(executable, '/') && placement_request_denied(executable, getenv("PATH")))
		return iocom_err_set(err, 126, "%s: %s", command, strerror(EACCES));
	if (!strchr(executable, '/'))
		return iocom_err_set(err, 127, "%s: command not found", command);
	if (stat(executable, &st))
		return iocom_err_set(err, errno == ENOENT ? 127 : 126, "%s: %s", command,
				     strerror(errno));
	if (S_ISDIR(st.st_mode))
		return iocom_err_set(err, 126, "%s: %s", command, strerror(EISDIR));
	if (faccessat(AT_FDCWD, executable, X_OK, AT_EACCESS))
		return iocom_err_set(err, 126, "%s: %s", command, strerror(errno));
	return 0;
}
