/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Checks PAM, which lets jobs in, and the kernel's audit log, which is told of them. */
#include "balancer/doctor/doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "user/audit_state.h"
#include "user/pam_service.h"
#include "user/trust.h"

static const char adds[] = "add to it: auth required pam_permit.so";

/* Returns whether LIBRARY can be loaded. */
static bool doctor_has_library(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);

	if (handle)
		dlclose(handle);
	return handle;
}

/* PAM is used, with the service file PATH. */
static json_t *check_service(struct doctor *d, const char *directory, const char *path)
{
	int auth = pam_service_has_auth(directory, PAM_SERVICE_NAME);
	struct iocom_err err = {0};
	int rc;

	if (auth < 0)
		return doctor_add(d, "pam", DOCTOR_BROKEN,
				  "install the file (it is in share/iocom), or set pam = off",
				  "on, and no job gets in: %s: %s", path, strerror(-auth));
	if (!doctor_has_library("libpam.so.0"))
		return doctor_add(d, "pam", DOCTOR_BROKEN, "install libpam0g, or set pam = off",
				  "on, and no job gets in: there is no libpam.so.0");
	rc = trust_path(path, 0, &err);
	if (rc)
		return doctor_add(d, "pam", DOCTOR_BROKEN, "give it to root alone",
				  "on, and its modules run as root, but others can change %s: %s",
				  path, rc == -EPERM ? err.text : strerror(-rc));
	if (!auth)
		return doctor_add(d, "pam", DOCTOR_DEGRADED, adds,
				  "on; %s has no auth line, so PAM takes those of %s/other, or "
				  "refuses all jobs",
				  path, directory);
	return doctor_add(d, "pam", DOCTOR_OK, NULL,
			  "on: %s lets jobs in, and has an auth line for pam_setcred", path);
}

void doctor_pam(struct doctor *d)
{
	const struct settings *set = &d->set;
	const char *directory = set->pam_dir[0] ? set->pam_dir : PAM_SERVICE_DIRECTORY;
	char path[PATH_MAX];
	struct stat st;
	json_t *check;
	bool on, found;

	if (!d->configured) {
		doctor_add(d, "pam", DOCTOR_SKIPPED, NULL, "the configuration is not known");
		return;
	}
	snprintf(path, sizeof(path), "%s/" PAM_SERVICE_NAME, directory);
	found = !lstat(path, &st) || (errno != ENOENT && errno != ENOTDIR);
	on = set->pam == SETTINGS_PAM_ON || (set->pam == SETTINGS_PAM_AUTO && found);
	if (on)
		check = check_service(d, directory, path);
	else if (set->pam == SETTINGS_PAM_OFF)
		check = doctor_add(d, "pam", DOCTOR_OK, NULL, "off (pam = off): PAM is not asked");
	else
		check = doctor_add(d, "pam", DOCTOR_OK, NULL, "off: pam = auto, and there is no %s",
				   path);
	json_object_set_new(check, "on", json_boolean(on));
	json_object_set_new(check, "file", json_string(path));
	json_object_set_new(check, "found", json_boolean(found));
	if (found)
		json_object_set_new(
			check, "auth",
			json_boolean(pam_service_has_auth(directory, PAM_SERVICE_NAME) == 1));
}

void doctor_audit(struct doctor *d)
{
	static const char off[] = "off, jobs leave no audit records";
	struct audit_state state = {0};
	json_t *check;
	int rc = d->root ? audit_state_read(&state) : 0;

	if (!audit_possible())
		check = doctor_add(d, "audit", DOCTOR_OK, NULL, "%s: this kernel has no audit",
				   off);
	else if (!d->root)
		check = doctor_add(d, "audit", DOCTOR_SKIPPED, NULL,
				   "only root may ask the kernel");
	else if (rc)
		check = doctor_add(d, "audit", DOCTOR_SKIPPED, NULL, "the kernel does not tell: %s",
				   strerror(-rc));
	else if (!state.enabled)
		check = doctor_add(d, "audit", DOCTOR_OK, NULL, "%s: no auditd has enabled audit",
				   off);
	else if (!doctor_has_library("libaudit.so.1"))
		check = doctor_add(d, "audit", DOCTOR_DEGRADED, "install libaudit1",
				   "%s: there is no libaudit.so.1", off);
	else
		check = doctor_add(d, "audit", DOCTOR_OK, NULL,
				   "on: starts, refusals and ends of jobs are recorded (%s)",
				   state.daemon ? "auditd runs" : "no auditd: in the kernel's log");
	if (d->root && !rc)
		json_object_set_new(check, "enabled", json_boolean(state.enabled));
}
