/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A private munged for a test; see munged.h. */
#include "tests/lib/munged.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void option(char *out, size_t size, const char *name, const char *dir, const char *file)
{
	snprintf(out, size, "--%s=%s/%s", name, dir, file);
}

static int write_key(const char *dir)
{
	unsigned char key[128];
	char path[96];
	int fd, rc;

	snprintf(path, sizeof(path), "%s/key", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || getrandom(key, sizeof(key), 0) != sizeof(key))
		return -1;
	rc = write(fd, key, sizeof(key)) == sizeof(key) ? 0 : -1;
	close(fd);
	return rc;
}

static int copy_key(const char *dir, const struct munged *from)
{
	char command[256];

	snprintf(command, sizeof(command), "cp -p %s/key %s/key", from->dir, dir);
	return system(command);
}

static const char *start(struct munged *munged, const struct munged *key_of, char *const env[])
{
	char options[5][128];
	char *argv[9] = {(char *)"munged", (char *)"--foreground", (char *)"--force"};
	static const char *const names[5][2] = {{"key-file", "key"},
						{"socket", "socket"},
						{"pid-file", "pid"},
						{"log-file", "log"},
						{"seed-file", "seed"}};
	posix_spawn_file_actions_t actions;
	int rc;

	if (geteuid() != 0)
		return "needs root";
	if (access("/usr/sbin/munged", X_OK))
		return "munged is not installed";
	strcpy(munged->dir, "/tmp/iocom-munged-XXXXXX");
	if (!mkdtemp(munged->dir) || chmod(munged->dir, 0755) ||
	    (key_of ? copy_key(munged->dir, key_of) : write_key(munged->dir)))
		return "cannot make a directory in /tmp";
	for (int i = 0; i < 5; i++) {
		option(options[i], sizeof(options[i]), names[i][0], munged->dir, names[i][1]);
		argv[3 + i] = options[i];
	}
	snprintf(munged->socket, sizeof(munged->socket), "%s/socket", munged->dir);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(&munged->pid, "/usr/sbin/munged", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (rc)
		return "munged does not start";
	for (int i = 0; i < 200; i++) {
		if (!access(munged->socket, F_OK))
			return NULL;
		nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
	}
	munged_stop(munged);
	return "munged does not start";
}

const char *munged_start(struct munged *munged)
{
	return start(munged, NULL, environ);
}

const char *munged_start_shifted(struct munged *munged, const struct munged *key_of, int shift_s)
{
	char preload[300], shift[64];
	char *const env[] = {preload, shift, (char *)"FAKETIME_DONT_FAKE_MONOTONIC=1", NULL};
	const char *reason = "libfaketime is not installed";
	glob_t found = {0};

	if (!glob("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, NULL, &found)) {
		snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", found.gl_pathv[0]);
		snprintf(shift, sizeof(shift), "FAKETIME=%+ds", shift_s);
		reason = start(munged, key_of, env);
	}
	globfree(&found);
	return reason;
}

void munged_stop(struct munged *munged)
{
	static const char *const files[] = {"key", "socket", "socket.lock", "pid", "log", "seed"};
	char path[128];

	kill(munged->pid, SIGTERM);
	waitpid(munged->pid, NULL, 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", munged->dir, files[i]);
		unlink(path);
	}
	rmdir(munged->dir);
}

int munged_start_of(const char *socket, const char *text, const struct spec *spec,
		    const void *packed, size_t length, const char *node, struct credential *who,
		    struct iocom_err *err)
{
	int rc = credential_open(who, text, socket, err);

	if (!rc)
		rc = spec_bound(spec, packed, length, who, node, err);
	free(who->bound);
	who->bound = NULL;
	return rc;
}

int munged_attach_of(const char *socket, const char *text, const struct attach_ask *ask,
		     const void *packed, size_t length, const char *node, struct credential *who,
		     struct iocom_err *err)
{
	int rc = credential_open(who, text, socket, err);

	if (!rc)
		rc = attach_bound(ask, packed, length, who, node, err);
	free(who->bound);
	who->bound = NULL;
	return rc;
}
