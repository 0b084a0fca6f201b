/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See command_look.h. */
#include "balancer/command_look.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "balancer/look_aside.h"
#include "balancer/placement_request.h"
#include "balancer/run/run.h"

struct command_asked {
	const char *name, *cwd;
	bool here;
};

struct command_seen {
	enum { AT_DIRECTORY, AT_PROGRAM } at; /* what is being looked at */
	int rc;				      /* as command_look has it */
	char executable[2 * PATH_MAX];
	struct iocom_err err;
};

/* Returns 0 or RUN_FAILED; OUT gets the path. */
static int command_find(const struct command_asked *asked, struct command_seen *seen)
{
	char *found = placement_request_resolve(asked->name, asked->cwd, getenv("PATH"));
	bool relative = found && found[0] != '/' && strchr(found, '/');
	int n;

	if (!found)
		return iocom_err_set(&seen->err, RUN_FAILED, "out of memory");
	n = snprintf(seen->executable, sizeof(seen->executable), "%s%s%s",
		     relative ? asked->cwd : "", relative ? "/" : "", found);
	free(found);
	return n < (int)sizeof(seen->executable)
		       ? 0
		       : iocom_err_set(&seen->err, RUN_FAILED, "%.80s...: %s", asked->name,
				       strerror(ENAMETOOLONG));
}

static void command_see(const void *arg, void *out)
{
	const struct command_asked *asked = arg;
	struct command_seen *seen = out;
	struct statx st;

	/* What the kernel remembers of a server that is gone would look well. */
	seen->at = AT_DIRECTORY;
	if (asked->here)
		(void)statx(AT_FDCWD, asked->cwd, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st);
	seen->at = AT_PROGRAM;
	seen->rc = command_find(asked, seen);
	if (!seen->rc && asked->here)
		seen->rc = run_executable_check(asked->name, seen->executable, &seen->err);
}

int command_look(const char *name, const char *cwd, bool here, char **executable,
		 struct iocom_err *err)
{
	const struct command_asked asked = {name, cwd, here};
	struct command_seen seen = {.rc = RUN_FAILED};
	int rc = look_aside(command_see, &asked, &seen, sizeof(seen));

	*executable = NULL;
	if (rc == -ETIMEDOUT && seen.at == AT_DIRECTORY)
		return iocom_err_set(err, RUN_FAILED,
				     "working directory %.500s: its file system did not answer "
				     "within %d s",
				     cwd, LOOK_ASIDE_S);
	if (rc == -ETIMEDOUT)
		return iocom_err_set(err, RUN_FAILED, "%.500s: %s did not answer within %d s", name,
				     strchr(name, '/') ? "its file system"
						       : "the file system of a directory of PATH",
				     LOOK_ASIDE_S);
	if (rc)
		return iocom_err_set(err, RUN_FAILED, "cannot look for %.500s: %s", name,
				     strerror(-rc));
	if (seen.rc) {
		*err = seen.err;
		return seen.rc;
	}
	*executable = strdup(seen.executable);
	return *executable ? 0 : iocom_err_set(err, RUN_FAILED, "out of memory");
}
