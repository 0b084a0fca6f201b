/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The file of originals, written beside and renamed, so that there is always a whole one:
 *
 *   iocom-feedback 1
 *   scope SCOPE                                            "-": the whole machine
 *   group NAME FILE ORIGINAL BEFORE WRITTEN                bytes; CGROUP_HIGH_NONE: no bound
 *   end
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/feedback/hand_own.h"
#include "user/sync_name.h"
#include "user/trust.h"

#define STORE_HEAD   "iocom-feedback 1"
#define STORE_LINE   1024
#define STORE_FIELDS 6

struct hand_group *hand_add(struct hand *hand, const char *name)
{
	struct hand_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	snprintf(g->name, sizeof(g->name), "%s", name);
	g->next = hand->groups;
	hand->groups = g;
	return g;
}

static int hand_store_put(const struct hand *hand, FILE *out, bool durable)
{
	fprintf(out, STORE_HEAD "\nscope %s\n", *hand->scope ? hand->scope : "-");
	for (const struct hand_group *g = hand->groups; g; g = g->next)
		if (g->state == HAND_HELD)
			fprintf(out, "group %s %s %s %" PRIu64 " %" PRIu64 "\n", g->name,
				g->v2 ? "v2" : "v1", g->original, g->before, g->written);
	fprintf(out, "end\n");
	if (fflush(out))
		return -errno;
	return durable && fsync(fileno(out)) ? -errno : 0;
}

static int hand_store_new(const struct hand *hand, const char *beside, bool durable)
{
	int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int rc;

	if (!out) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = hand_store_put(hand, out, durable);
	if (fclose(out) && !rc)
		rc = -errno;
	return rc;
}

int hand_store_write(const struct hand *hand, bool durable)
{
	char beside[sizeof(hand->path) + 8];
	const struct hand_group *g = hand->groups;
	int rc;

	while (g && g->state != HAND_HELD)
		g = g->next;
	if (!g)
		return unlink(hand->path) && errno != ENOENT ? -errno : 0;
	snprintf(beside, sizeof(beside), "%s.new", hand->path);
	rc = hand_store_new(hand, beside, durable);
	if (!rc && rename(beside, hand->path))
		rc = -errno;
	if (rc)
		unlink(beside);
	else if (durable)
		rc = sync_name(hand->path);
	return rc;
}

static int store_bytes(const char *text, uint64_t *bytes)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EBADMSG;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	return errno || *end ? -EBADMSG : 0;
}

/* Only what iocom may have written itself. */
static int store_group(struct hand *hand, char *const fields[STORE_FIELDS])
{
	uint64_t before, written, original;
	struct hand_group *g;

	if (!cgroup_high_is_job(fields[1]) || strlen(fields[1]) >= sizeof(g->name) ||
	    (strcmp(fields[2], "v1") != 0 && strcmp(fields[2], "v2") != 0) ||
	    strlen(fields[3]) >= sizeof(g->original) || cgroup_high_parse(fields[3], &original) ||
	    store_bytes(fields[4], &before) || store_bytes(fields[5], &written))
		return -EBADMSG;
	g = hand_add(hand, fields[1]);
	if (!g)
		return -ENOMEM;
	snprintf(g->original, sizeof(g->original), "%s", fields[3]);
	g->v2 = fields[2][1] == '2';
	g->before = before;
	g->written = written;
	g->state = HAND_HELD;
	return 0;
}

/* Returns 1 at the end line, 0, or negative errno. */
static int store_line(struct hand *hand, char *line, unsigned number)
{
	char *fields[STORE_FIELDS], *rest = NULL;
	size_t n = 0;

	if (number == 1)
		return strcmp(line, STORE_HEAD) ? -EBADMSG : 0;
	for (char *one = strtok_r(line, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
		if (n == STORE_FIELDS)
			return -EBADMSG;
		fields[n++] = one;
	}
	if (n == 1 && number > 2 && !strcmp(fields[0], "end"))
		return 1;
	if (n == 2 && number == 2 && !strcmp(fields[0], "scope")) {
		if (strlen(fields[1]) >= sizeof(hand->scope))
			return -EBADMSG;
		strcpy(hand->scope, strcmp(fields[1], "-") != 0 ? fields[1] : "");
		return 0;
	}
	if (n == STORE_FIELDS && number > 2 && !strcmp(fields[0], "group"))
		return store_group(hand, fields);
	return -EBADMSG;
}

int hand_store_read(struct hand *hand, struct iocom_err *err)
{
	char line[STORE_LINE];
	unsigned number = 0;
	int rc, fd = open(hand->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *in;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	in = fd < 0 ? NULL : fdopen(fd, "r");
	if (!in) {
		rc = iocom_err_set(err, -errno, "cannot read %s: %s", hand->path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = trust_file(hand->path, err);
	while (!rc) {
		number++;
		if (!fgets(line, sizeof(line), in) || !strchr(line, '\n'))
			rc = -EBADMSG;
		else
			line[strcspn(line, "\n")] = 0;
		if (!rc)
			rc = store_line(hand, line, number);
		if (rc < 0)
			iocom_err_set(err, rc, "%s, line %u: %s", hand->path, number,
				      rc == -ENOMEM ? "out of memory"
						    : "it is no list of groups of an iocomd");
	}
	fclose(in);
	return rc < 0 ? rc : 0;
}
