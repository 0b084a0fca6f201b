/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See settings_trust.h. */
#include "balancer/settings/settings_trust.h"

#include <errno.h>
#include <limits.h>
#include <munge.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/trust.h"

#define MUNGE_USER "munge"

static int trust_named(const char *setting, const char *path, uid_t also, struct iocom_err *err)
{
	struct iocom_err why = {0};
	int rc = *path ? trust_path(path, also, &why) : 0;

	if (!rc || rc == -ENOENT)
		return 0;
	return iocom_err_set(err, rc, "%s: %.900s", setting, why.text);
}

int settings_trust_file(const char *path, struct iocom_err *err)
{
	return trust_named("configuration file (--config)", path, 0, err);
}

/* The programs that the agent starts. */
static int trust_programs(const struct settings *set, struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	struct iocom_err own = {0};
	int rc;

	path[n < 0 ? 0 : n] = 0;
	if (trust_path(path, 0, &own))
		return 0;
	rc = trust_named("shim (--shim)", set->shim, 0, err);
	return rc ? rc : trust_named("network part (--net-program)", set->net_program, 0, err);
}

static int trust_pam(const struct settings *set, struct iocom_err *err)
{
	const char *directory = set->pam_dir[0] ? set->pam_dir : "/etc/pam.d";
	char file[SETTINGS_PATH_MAX + 16];
	int rc;

	if (set->pam == SETTINGS_PAM_OFF)
		return 0;
	rc = trust_named("PAM's directory (--pam-dir)", directory, 0, err);
	snprintf(file, sizeof(file), "%s/iocom", directory);
	return rc ? rc : trust_named("PAM's service file (--pam-dir)", file, 0, err);
}

/* Whoever could put a socket of their own there would say who every user is. */
static int trust_munge(const struct settings *set, struct iocom_err *err)
{
	const struct passwd *munge = getpwnam(MUNGE_USER);
	munge_ctx_t ctx = munge_ctx_create();
	char path[PATH_MAX] = "", *socket = NULL, *slash;

	if (set->munge_socket[0])
		snprintf(path, sizeof(path), "%s", set->munge_socket);
	else if (ctx && munge_ctx_get(ctx, MUNGE_OPT_SOCKET, &socket) == EMUNGE_SUCCESS && socket)
		snprintf(path, sizeof(path), "%s", socket);
	if (ctx)
		munge_ctx_destroy(ctx);
	slash = strrchr(path, '/');
	if (!slash)
		return 0;
	slash[slash == path] = 0;
	return trust_named("directory of munged's socket (--munge-socket)", path,
			   munge ? munge->pw_uid : 0, err);
}

int settings_trust(const struct settings *set, struct iocom_err *err)
{
	int rc = trust_programs(set, err);

	if (!rc)
		rc = trust_pam(set, err);
	return rc ? rc : trust_munge(set, err);
}
