/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See trust.h. */
#include "user/trust.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TRUST_LINKS_MAX 40 /* the kernel's limit */

/* Group write is fine for root's group: root chooses its members. */
static bool others_write(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0);
}

/* Returns true if ENTRY names a user or group other than root, who may then write. */
static bool acl_writes(const struct posix_acl_xattr_entry *entry, unsigned mask)
{
	unsigned tag = le16toh(entry->e_tag), may = le16toh(entry->e_perm) & mask;

	return (tag == ACL_USER || tag == ACL_GROUP) && may & ACL_WRITE && le32toh(entry->e_id);
}

/*
 * Looks for a writer in the ACL of PATH, which is no link. The mode of a file with an ACL shows
 * the mask where the group's bits are, so the mode does not tell who may write.
 */
static int trust_acl(const char *path, struct iocom_err *err)
{
	ssize_t size = lgetxattr(path, XATTR_NAME_POSIX_ACL_ACCESS, NULL, 0);
	const struct posix_acl_xattr_entry *entries;
	uint8_t *acl = size > 0 ? malloc((size_t)size) : NULL;
	unsigned mask = ACL_READ | ACL_WRITE | ACL_EXECUTE;
	size_t n = 0;
	int rc = 0;

	if (size > 0)
		size = acl ? lgetxattr(path, XATTR_NAME_POSIX_ACL_ACCESS, acl, (size_t)size) : -1;
	if (size < 0 && errno != ENODATA && errno != ENOTSUP)
		rc = iocom_err_set(err, -errno, "cannot read the ACL of %s: %s", path,
				   strerror(errno));
	if (size > (ssize_t)sizeof(struct posix_acl_xattr_header))
		n = ((size_t)size - sizeof(struct posix_acl_xattr_header)) / sizeof(*entries);
	entries = n ? (const void *)(acl + sizeof(struct posix_acl_xattr_header)) : NULL;
	for (size_t i = 0; i < n; i++)
		if (le16toh(entries[i].e_tag) == ACL_MASK)
			mask = le16toh(entries[i].e_perm);
	for (size_t i = 0; i < n && !rc; i++)
		if (acl_writes(&entries[i], mask))
			rc = iocom_err_set(
				err, -EPERM,
				"the ACL of %s lets %s %u write: remove it (setfacl -b), "
				"or choose another path",
				path, le16toh(entries[i].e_tag) == ACL_USER ? "uid" : "gid",
				(unsigned)le32toh(entries[i].e_id));
	free(acl);
	return rc;
}

/*
 * Checks one step of a path. LINK gets a symbolic link's target, or "". LAST: nothing of the path
 * follows, if this is no link.
 */
static int trust_part(const char *part, bool last, uid_t also, char link[PATH_MAX],
		      struct iocom_err *err)
{
	struct stat st;
	ssize_t n = 0;

	link[0] = 0;
	if (lstat(part, &st))
		return iocom_err_set(err, -errno, "cannot check %s: %s", part, strerror(errno));
	if (S_ISLNK(st.st_mode) && (n = readlink(part, link, PATH_MAX - 1)) < 0)
		return iocom_err_set(err, -errno, "cannot check %s: %s", part, strerror(errno));
	link[n] = 0;
	if (st.st_uid != 0 && !(last && !*link && st.st_uid == also))
		return iocom_err_set(err, -EPERM,
				     "%s belongs to uid %u, which could replace its content: chown "
				     "it to root, or choose another path",
				     part, (unsigned)st.st_uid);
	/* A link has no mode of its own, and what is written to a device is not its content. */
	if (S_ISLNK(st.st_mode) || S_ISCHR(st.st_mode))
		return 0;
	/* In a sticky directory nobody may replace another user's entry. */
	if (S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX && !last)
		return 0;
	if (others_write(&st))
		return iocom_err_set(err, -EPERM,
				     "users other than root can write in %s (mode %04o): chmod "
				     "go-w, or choose another path",
				     part, (unsigned)st.st_mode & 07777);
	return trust_acl(part, err);
}

/* Where a walk is, and what of the path is left. */
struct trust_walk {
	char at[PATH_MAX], left[2 * PATH_MAX];
	unsigned links;
};

static int trust_too_long(const char *path, struct iocom_err *err)
{
	return iocom_err_set(err, -ENAMETOOLONG, "path too long: %.200s", path);
}

/* Goes one step: the next name of what is left. */
static int trust_step(struct trust_walk *walk, uid_t also, struct iocom_err *err)
{
	const char *name = walk->left + strspn(walk->left, "/");
	size_t n = strcspn(name, "/"), have = strlen(walk->at);
	bool up = n == 2 && !strncmp(name, "..", n), last = !name[n + strspn(name + n, "/")];
	char rest[2 * PATH_MAX], link[PATH_MAX];
	int rc;

	if (have + n + 2 > sizeof(walk->at))
		return trust_too_long(walk->left, err);
	snprintf(rest, sizeof(rest), "%s", name + n);
	if (up)
		walk->at[have ? (size_t)(strrchr(walk->at, '/') - walk->at) : 0] = 0;
	else if (n != 1 || *name != '.')
		snprintf(walk->at + have, sizeof(walk->at) - have, "/%.*s", (int)n, name);
	rc = trust_part(*walk->at ? walk->at : "/", last, also, link, err);
	if (rc)
		return rc;
	if (*link && ++walk->links > TRUST_LINKS_MAX)
		return iocom_err_set(err, -ELOOP, "cannot check %s: %s", walk->at, strerror(ELOOP));
	if (strlen(link) + strlen(rest) + 1 >= sizeof(walk->left))
		return trust_too_long(link, err);
	if (*link)
		walk->at[*link == '/' ? 0 : have] = 0;
	snprintf(walk->left, sizeof(walk->left), "%s", link);
	strcat(walk->left, rest);
	return 0;
}

/*
 * Whoever may change a link on the way, or its directory, chooses where the path ends. So we check
 * each step as we walk it, not only those of the resolved path.
 */
int trust_path(const char *path, uid_t also, struct iocom_err *err)
{
	struct trust_walk walk = {.at = ""};
	char link[PATH_MAX];
	int rc;

	/* Begin at the kernel's name of our working directory, which has no links. */
	if (*path != '/' && !getcwd(walk.left, PATH_MAX))
		return iocom_err_set(err, -errno, "cannot check %s: %s", path, strerror(errno));
	if (strlen(path) >= PATH_MAX - 1)
		return trust_too_long(path, err);
	strcat(walk.left, "/");
	strcat(walk.left, path);
	rc = trust_part("/", !walk.left[strspn(walk.left, "/")], also, link, err);
	while (!rc && walk.left[strspn(walk.left, "/")])
		rc = trust_step(&walk, also, err);
	return rc;
}

int trust_file(const char *path, struct iocom_err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0
				       : iocom_err_set(err, -errno, "cannot check %s: %s", path,
						       strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return iocom_err_set(err, -EPERM,
				     "%s is not a plain file with a single name: another user may "
				     "have put it there; move it away",
				     path);
	if (st.st_uid != 0 || st.st_mode & 077)
		return iocom_err_set(err, -EPERM,
				     "%s is not root's alone (uid %u, mode %04o): check that its "
				     "content can be trusted, then chown root and chmod 600",
				     path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
	return 0;
}
