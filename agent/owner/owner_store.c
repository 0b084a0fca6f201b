/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The file of the owner's rules, STATE_DIR/owner.rules.  It is written beside and renamed, so that
 * there is always a whole one.  A file that cannot be understood is kept under a second name, and
 * the node closed: nobody knows what its owner wanted, and a closed node harms its owner least.  At
 * no moment is there no file, for without one the node is open.
 */
#include "agent/owner/owner_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/sync_name.h"
#include "user/trust.h"

#define OWNER_STORE_NAMES 16 /* damaged files of one second */

static int owner_store_put(const char *path, const char *text)
{
	size_t n = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	errno = 0;
	if (write(fd, text, n) != (ssize_t)n || fsync(fd))
		rc = errno ? -errno : -ENOSPC;
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

int owner_store_write(const struct owner_part *part, const struct owner_rules *rules,
		      struct iocom_err *err)
{
	char beside[sizeof(part->path) + 8];
	char *text = owner_text(rules);
	int rc = text ? 0 : -ENOMEM;

	snprintf(beside, sizeof(beside), "%s.new", part->path);
	if (!rc)
		rc = owner_store_put(beside, text);
	free(text);
	if (!rc && rename(beside, part->path))
		rc = -errno;
	if (rc) {
		unlink(beside);
		return iocom_err_set(err, rc, "cannot write the owner's rules to %s: %s",
				     part->path, strerror(-rc));
	}
	rc = sync_name(part->path);
	if (!rc)
		return 0;
	iocom_err_set(err, rc, "cannot sync the directory of %s: %s", part->path, strerror(-rc));
	return OWNER_STORE_UNSURE;
}

/* Gives the file of PART a second name, which goes into ASIDE.  Returns 0 or negative errno. */
static int owner_store_keep(const struct owner_part *part, uint64_t now_s, char *aside, size_t size)
{
	int rc = -EEXIST;

	for (int i = 1; i <= OWNER_STORE_NAMES && rc == -EEXIST; i++) {
		char number[16] = "";

		if (i > 1)
			snprintf(number, sizeof(number), "-%d", i);
		snprintf(aside, size, "%s.damaged-%llu%s", part->path, (unsigned long long)now_s,
			 number);
		/* Of a symbolic link this makes a second one. */
		rc = linkat(AT_FDCWD, part->path, AT_FDCWD, aside, 0) ? -errno : 0;
	}
	if (!rc)
		(void)sync_name(aside);
	return rc;
}

static void owner_store_damaged(struct owner_part *part, const struct iocom_err *why)
{
	char aside[sizeof(part->path) + 48];
	uint64_t now_s = loop_real_ns(part->base->loop) / CLOCK_NS_PER_S;
	struct iocom_err err = {0};
	bool kept = !owner_store_keep(part, now_s, aside, sizeof(aside));

	owner_init(&part->rules);
	part->rules.state = OWNER_CLOSED;
	part->rules.since_s = now_s;
	snprintf(part->rules.by, sizeof(part->rules.by), "iocomd");
	snprintf(part->rules.reason, sizeof(part->rules.reason), OWNER_UNREADABLE);
	log_write(part->base->log, LOG_L_ERROR,
		  "%.500s; the file is %s%s, and this node is closed until `iocom owner open`",
		  why->text, kept ? "kept as " : "left there", kept ? aside : "");
	/* Else the damaged one stays, and the next start closes the node again. */
	if (kept && owner_store_write(part, &part->rules, &err) < 0) {
		unlink(aside);
		log_write(part->base->log, LOG_L_ERROR, "%s; the damaged file stays in its place",
			  err.text);
	}
}

void owner_store_load(struct owner_part *part)
{
	struct iocom_err err = {0};
	int rc;

	owner_init(&part->rules);
	/* A link to a file that is not there is not "no file". */
	if (faccessat(AT_FDCWD, part->path, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return;
	rc = trust_file(part->path, &err);
	if (!rc)
		rc = owner_read(part->path, &part->rules, &err);
	if (rc)
		owner_store_damaged(part, &err);
}
