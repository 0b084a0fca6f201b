/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The bound of one job's memory above which the kernel reclaims; see cgroup_high.h. */
#include "user/cgroup_high.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/cgroup_user.h"
#include "user/spec.h"

#define HIGH_V2	  "memory.high"
#define HIGH_V1	  "memory.soft_limit_in_bytes"
#define HIGH_STAT 16384		      /* memory.stat has about 60 lines */
#define HIGH_ALL  (UINT64_C(1) << 60) /* v1 writes a number where there is no bound */

const char *cgroup_high_file(const struct cgroup_high *high)
{
	return high->v2 ? HIGH_V2 : HIGH_V1;
}

static int high_path(char path[CGROUP_PATH_MAX + 64], const char *directory, const char *file)
{
	int n = snprintf(path, CGROUP_PATH_MAX + 64, "%s/%s", directory, file);

	return n < 0 || n >= CGROUP_PATH_MAX + 64 ? -ENAMETOOLONG : 0;
}

static bool high_has(const char *directory, const char *file)
{
	char path[CGROUP_PATH_MAX + 64];

	return !high_path(path, directory, file) && !access(path, F_OK);
}

/* Reads a file of the group into OUT, with a 0 at the end.  Returns 0 or negative errno. */
static int high_get(const char *directory, const char *file, char *out, size_t size)
{
	char path[CGROUP_PATH_MAX + 64];
	int fd, rc = high_path(path, directory, file);
	size_t n = 0;
	ssize_t got = 1;

	if (rc)
		return rc;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < size - 1 && (got = read(fd, out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	rc = got < 0 ? -errno : 0;
	close(fd);
	out[n] = 0;
	return rc;
}

bool cgroup_high_is_job(const char *name)
{
	static const char *const kinds[] = {"jobs/" CGROUP_USER_PREFIX,
					    "guests/" CGROUP_USER_PREFIX};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(kinds[i]), digits;

		if (strncmp(name, kinds[i], n) != 0)
			continue;
		digits = strspn(name + n, "0123456789");
		return digits > 0 && digits <= 10 && name[n + digits] == '/' &&
		       spec_job_valid(name + n + digits + 1);
	}
	return false;
}

int cgroup_high_find(const struct cgroup_mounts *mounts, const char *scope, const char *name,
		     struct cgroup_high *high)
{
	struct cgroup group;
	struct stat st;
	int rc =
		cgroup_high_is_job(name) ? cgroup_name(mounts, scope, name, &group, NULL) : -EINVAL;

	if (rc)
		return rc;
	if (lstat(group.v2, &st) || !S_ISDIR(st.st_mode))
		return -ENOENT;
	*high = (struct cgroup_high){.v2 = true};
	memcpy(high->directory, group.v2, sizeof(high->directory));
	if (high_has(high->directory, HIGH_V2))
		return 0;
	high->v2 = false;
	for (size_t i = 0; i < group.nv1; i++) {
		memcpy(high->directory, group.v1[i], sizeof(high->directory));
		if (high_has(high->directory, HIGH_V1))
			return 0;
	}
	return -EOPNOTSUPP;
}

/* The group SCOPE itself, for an empty one the root. */
static bool high_offers(const char *mount, const char *scope, const char *file, const char *word)
{
	char directory[CGROUP_PATH_MAX], text[1024];
	int n = snprintf(directory, sizeof(directory), "%s/%s", mount, scope);

	if (n < 0 || n >= (int)sizeof(directory))
		return false;
	if (!word)
		return high_has(directory, file);
	if (high_get(directory, file, text, sizeof(text)))
		return false;
	for (char *rest = text, *one; (one = strsep(&rest, " \n"));)
		if (!strcmp(one, word))
			return true;
	return false;
}

const char *cgroup_high_offered(const struct cgroup_mounts *mounts, const char *scope)
{
	if (high_offers(mounts->v2, scope, "cgroup.controllers", "memory"))
		return HIGH_V2;
	for (size_t i = 0; i < mounts->nv1; i++)
		if (high_offers(mounts->v1[i], scope, HIGH_V1, NULL))
			return HIGH_V1;
	return NULL;
}

int cgroup_high_parse(const char *text, uint64_t *bytes)
{
	char *end;

	if (!strcmp(text, "max")) {
		*bytes = CGROUP_HIGH_NONE;
		return 0;
	}
	if (*text < '0' || *text > '9')
		return -EBADMSG;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (errno || *end)
		return -EBADMSG;
	if (*bytes >= HIGH_ALL)
		*bytes = CGROUP_HIGH_NONE;
	return 0;
}

int cgroup_high_read(const struct cgroup_high *high, uint64_t *bytes, char text[CGROUP_HIGH_TEXT])
{
	int rc = high_get(high->directory, cgroup_high_file(high), text, CGROUP_HIGH_TEXT);

	if (rc)
		return rc;
	text[strcspn(text, "\n")] = 0;
	return cgroup_high_parse(text, bytes);
}

int cgroup_high_write(const struct cgroup_high *high, const char *text)
{
	return cgroup_write(high->directory, cgroup_high_file(high), text);
}

int cgroup_high_use(const struct cgroup_high *high, struct cgroup_high_use *use)
{
	char text[HIGH_STAT];
	uint64_t file = 0, shmem = 0;
	int rc = high_get(high->directory, high->v2 ? "memory.current" : "memory.usage_in_bytes",
			  text, sizeof(text));

	if (rc)
		return rc;
	text[strcspn(text, "\n")] = 0;
	rc = cgroup_high_parse(text, &use->bytes);
	if (!rc)
		rc = high_get(high->directory, "memory.stat", text, sizeof(text));
	if (rc)
		return rc;
	/* v1 counts only the group itself in the plain lines, v2 those below it, too. */
	rc = cgroup_user_event(text, high->v2 ? "file" : "total_cache", &file);
	(void)cgroup_user_event(text, high->v2 ? "shmem" : "total_shmem", &shmem);
	use->cache_bytes = file > shmem ? file - shmem : 0;
	if (use->cache_bytes > use->bytes)
		use->cache_bytes = use->bytes;
	return rc;
}

int cgroup_high_reclaim(const struct cgroup_high *high, uint64_t bytes)
{
	char text[64];
	int rc;

	if (!high->v2)
		return -ENOENT;
	snprintf(text, sizeof(text), "%" PRIu64 " swappiness=0", bytes);
	rc = cgroup_write(high->directory, "memory.reclaim", text);
	if (rc != -EINVAL)
		return rc;
	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	return cgroup_write(high->directory, "memory.reclaim", text);
}
