/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Checks the configuration and the agent's directories. */
#include "balancer/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/settings/settings_trust.h"
#include "user/data_usage.h"
#include "user/trust.h"

#define SPACE_BROKEN_MB	  16
#define SPACE_DEGRADED_MB 256

/* --- configuration ---------------------------------------------------------------- */

static bool load_settings(struct doctor *d, const char *file, struct iocom_err *err)
{
	char *argv[] = {(char *)"iocomd", (char *)"--config", (char *)file, NULL};

	memset(&d->set, 0, sizeof(d->set));
	return config_load(&settings_program, file ? 3 : 1, argv, &d->set, err) == 0 &&
	       settings_complete(&d->set, err) == 0;
}

/* Sets the defaults, which hold if the configuration cannot be read. */
static void doctor_node_defaults(struct doctor *d)
{
	for (size_t i = 0; i < settings_program.nkeys; i++) {
		const struct config_key *key = &settings_program.keys[i];

		if (key->fallback)
			config_set(&settings_program, key->name, key->fallback, &d->set, NULL);
	}
}

void doctor_config(struct doctor *d)
{
	const char *file = d->config ? d->config : settings_program.file;
	struct iocom_err err = {0}, retired;

	if (!d->config && access(file, F_OK)) {
		d->configured = load_settings(d, NULL, &err);
		doctor_add(d, "config", d->configured ? DOCTOR_OK : DOCTOR_BROKEN, NULL, "%s",
			   d->configured ? "no file, so the defaults: this machine alone"
					 : err.text);
	} else if (!d->root && access(file, R_OK) && errno == EACCES) {
		doctor_add(d, "config", DOCTOR_SKIPPED, "run `iocom doctor` as root",
			   "%s is not yours to read", file);
	} else {
		d->configured = load_settings(d, file, &err);
		if (!d->configured)
			doctor_add(d, "config", DOCTOR_BROKEN, NULL, "%s", err.text);
		else if (settings_trust_file(file, &err) == -EPERM ||
			 settings_trust(&d->set, &err) == -EPERM)
			doctor_add(d, "config", DOCTOR_BROKEN,
				   "iocomd runs as root by what it says, and does not start", "%s",
				   err.text);
		else
			doctor_add(d, "config", DOCTOR_OK,
				   settings_retired(&d->set, &retired) ? retired.text : NULL,
				   "%s: node %s, %s", file, d->set.name,
				   settings_networked(&d->set) ? "in a cluster" : "alone");
	}
	if (!d->configured) {
		memset(&d->set, 0, sizeof(d->set));
		doctor_node_defaults(d);
	}
	if (!d->run_dir)
		d->run_dir = getenv("IOCOM_RUN_DIR") ? client_run_dir(NULL) : d->set.run_dir;
}

/* --- directories ---------------------------------------------------------------- */

static void check_directory(struct doctor *d, const char *check, const char *path, bool secret)
{
	struct iocom_err err = {0};
	struct stat st;
	int rc;

	if (stat(path, &st)) {
		if (errno == ENOENT)
			doctor_add(d, check, DOCTOR_OK, NULL, "%s: not there yet, iocomd makes it",
				   path);
		else if (errno == EACCES && !d->root)
			doctor_add(d, check, DOCTOR_SKIPPED, NULL, "%s: only root may look", path);
		else
			doctor_add(d, check, DOCTOR_BROKEN, NULL, "%s: %s", path, strerror(errno));
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		doctor_add(d, check, DOCTOR_BROKEN, "remove it, iocomd makes a directory",
			   "%s is no directory", path);
		return;
	}
	rc = trust_path(path, 0, &err);
	if (rc == -EPERM)
		doctor_add(d, check, DOCTOR_BROKEN, "chown root, chmod go-w", "%s", err.text);
	else if (rc && rc != -EACCES)
		doctor_add(d, check, DOCTOR_BROKEN, NULL, "%s: %s", path, strerror(-rc));
	else if (secret && (st.st_mode & 077))
		doctor_add(d, check, DOCTOR_DEGRADED, "chmod 700",
			   "%s: others may look into it (mode %o)", path,
			   (unsigned)st.st_mode & 07777);
	else
		doctor_add(d, check, DOCTOR_OK, NULL, "%s: root's, mode %o", path,
			   (unsigned)st.st_mode & 07777);
}

static void check_space(struct doctor *d, const char *path)
{
	char at[SETTINGS_PATH_MAX];
	struct statvfs fs;
	json_t *check;
	double mb;

	/* If it does not exist yet, check the directory that will hold it. */
	snprintf(at, sizeof(at), "%s", path);
	while (statvfs(at, &fs)) {
		char *slash = strrchr(at, '/');

		if (errno != ENOENT || !slash || slash == at) {
			doctor_add(d, "space", DOCTOR_SKIPPED, NULL, "%s: %s", at, strerror(errno));
			return;
		}
		*slash = 0;
	}
	mb = (double)fs.f_bavail * (double)fs.f_frsize / 1e6;
	check = doctor_add(d, "space",
			   mb < SPACE_BROKEN_MB || (fs.f_files && !fs.f_favail) ? DOCTOR_BROKEN
			   : mb < SPACE_DEGRADED_MB				? DOCTOR_DEGRADED
										: DOCTOR_OK,
			   mb < SPACE_DEGRADED_MB ? "make room, or lower keep_jobs" : NULL,
			   "%.0f MB and %" PRIu64 " files free for the job journal in %s", mb,
			   (uint64_t)fs.f_favail, at);
	json_object_set_new(check, "free_mb", json_real(mb));
}

/* Adds what the users' caches in the directory DIR have.  Returns how many there are. */
static unsigned sum_caches(DIR *dir, struct data_usage *all, uint64_t *full)
{
	const struct dirent *entry;
	struct data_usage one;
	unsigned users = 0;

	while ((entry = readdir(dir)) != NULL) {
		int at;

		if (entry->d_name[strspn(entry->d_name, "0123456789")])
			continue;
		at = openat(dirfd(dir), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (at >= 0 && !data_usage_read(at, &one)) {
			users++;
			all->jobs += one.jobs;
			all->sum.copied_bytes += one.sum.copied_bytes;
			all->sum.found_bytes += one.sum.found_bytes;
			all->sum.evicted_files += one.sum.evicted_files;
			all->sum.cache_bytes += one.sum.cache_bytes;
			*full += one.sum.cache_bytes > one.sum.quota_bytes / 10 * 9;
		}
		if (at >= 0)
			close(at);
	}
	return users;
}

/* What the data that goes along with jobs takes here, and how often it was found. */
static void check_caches(struct doctor *d)
{
	DIR *dir = d->root && d->set.data_dir[0] ? opendir(d->set.data_dir) : NULL;
	struct data_usage all = {0};
	uint64_t full = 0;
	unsigned users;
	json_t *check;

	if (!dir)
		return;
	users = sum_caches(dir, &all, &full);
	closedir(dir);
	check = doctor_add(d, "data-cache", DOCTOR_OK,
			   full ? "raise data_cache_mb if files are copied again and again" : NULL,
			   "%.1f MB of %u user%s; %" PRIu64
			   " jobs found %.1f MB and copied %.1f MB; "
			   "%" PRIu64 " files evicted",
			   (double)all.sum.cache_bytes / 1e6, users, users == 1 ? "" : "s",
			   all.jobs, (double)all.sum.found_bytes / 1e6,
			   (double)all.sum.copied_bytes / 1e6, all.sum.evicted_files);
	json_object_set_new(check, "jobs", json_integer((json_int_t)all.jobs));
	json_object_set_new(check, "cache_bytes", json_integer((json_int_t)all.sum.cache_bytes));
	json_object_set_new(check, "found_bytes", json_integer((json_int_t)all.sum.found_bytes));
	json_object_set_new(check, "copied_bytes", json_integer((json_int_t)all.sum.copied_bytes));
	json_object_set_new(check, "evicted_files",
			    json_integer((json_int_t)all.sum.evicted_files));
	json_object_set_new(check, "quota_bytes_per_user",
			    json_integer((json_int_t)d->set.data_cache_mb << 20));
}

void doctor_directories(struct doctor *d)
{
	check_directory(d, "run-dir", d->run_dir, false);
	check_directory(d, "state-dir", d->set.state_dir, true);
	check_space(d, d->set.state_dir);
	if (d->set.data_dir[0])
		check_directory(d, "data-dir", d->set.data_dir, false);
	check_caches(d);
}
