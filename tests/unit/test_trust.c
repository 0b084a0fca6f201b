/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which files and directories only root can change, and which the agent refuses to believe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "balancer/settings/settings_trust.h"
#include "user/trust.h"

#define OTHER 4242

static char dir[64], file[96], sub[96], inside[128], link_[96];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(dir, "/tmp/iocom-trust-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(sub, sizeof(sub), "%s/sub", dir);
	snprintf(inside, sizeof(inside), "%s/inside", sub);
	snprintf(link_, sizeof(link_), "%s/link", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || close(fd) || mkdir(sub, 0755))
		return -1;
	fd = open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* Returns the reason why PATH is refused, without its directory; "": it is accepted. */
static const char *why_not(const char *path, uid_t also)
{
	static struct iocom_err err;
	const char *at;
	int rc;

	err.text[0] = 0;
	rc = trust_path(path, also, &err);
	assert_true(!rc == !err.text[0]);
	if (rc && rc != -EPERM)
		return strerror(-rc);
	at = strstr(err.text, dir);
	return at ? at + strlen(dir) : err.text;
}

static void begins(const char *text, const char *with)
{
	if (!*with || strncmp(text, with, strlen(with)) != 0)
		assert_string_equal(text, with);
}

static void test_modes(void **state)
{
	static const struct {
		mode_t mode;
		gid_t gid;
		const char *why;
	} cases[] = {
		{0644, 0, ""},
		{0664, 0, ""}, /* root's group */
		{0664, OTHER, "/file (mode 0664): chmod go-w"},
		{0644, OTHER, ""},
		{0646, 0, "/file (mode 0646): chmod go-w"},
		{0666, 0, "/file (mode 0666): chmod go-w"},
		{01666, 0, "/file (mode 1666): chmod go-w"}, /* sticky means nothing here */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(chown(file, 0, cases[i].gid), 0);
		assert_int_equal(chmod(file, cases[i].mode), 0);
		begins(why_not(file, 0), cases[i].why);
	}
	assert_string_equal(why_not("/dev/null", 0), ""); /* all may write, and change nothing */
	assert_string_equal(why_not("/", 0), "");
}

static void test_owners(void **state)
{
	(void)state;
	assert_int_equal(chown(file, OTHER, 0), 0);
	begins(why_not(file, 0), "/file belongs to uid 4242, which could replace its content");
	assert_string_equal(why_not(file, OTHER), "");
	begins(why_not(file, 1), "/file belongs to uid 4242");
	/* Above, only root is trusted. */
	assert_int_equal(chown(sub, OTHER, 0), 0);
	assert_string_equal(why_not(sub, OTHER), "");
	begins(why_not(inside, 0), "/sub belongs to uid 4242");
	begins(why_not(inside, OTHER), "/sub belongs to uid 4242");
	assert_int_equal(chown(sub, 0, 0), 0);
	assert_string_equal(why_not(inside, OTHER), "");
}

static void test_directories_above(void **state)
{
	(void)state;
	assert_int_equal(chmod(sub, 0777), 0);
	begins(why_not(inside, 0), "/sub (mode 0777)");
	begins(why_not(sub, 0), "/sub (mode 0777)");
	/* In a sticky directory nobody can replace root's entry, but anybody can add one. */
	assert_int_equal(chmod(sub, 01777), 0);
	assert_string_equal(why_not(inside, 0), "");
	begins(why_not(sub, 0), "/sub (mode 1777)");
	assert_int_equal(chown(inside, OTHER, 0), 0);
	begins(why_not(inside, 0), "/sub/inside belongs to uid 4242");
	begins(why_not("/no/such/file", 0), strerror(ENOENT));
	assert_int_equal(trust_path("/no/such/file", 0, NULL), -ENOENT);
}

static void test_links(void **state)
{
	char hop[128], through[160];

	(void)state;
	assert_int_equal(symlink("sub/inside", link_), 0);
	assert_string_equal(why_not(link_, 0), "");
	assert_int_equal(lchown(link_, OTHER, 0), 0);
	begins(why_not(link_, 0), "/link belongs to uid 4242");
	begins(why_not(link_, OTHER), "/link belongs to uid 4242");
	assert_int_equal(lchown(link_, 0, 0), 0);
	assert_int_equal(chmod(inside, 0666), 0);
	begins(why_not(link_, 0), "/sub/inside (mode 0666)");
	assert_int_equal(chmod(inside, 0644), 0);
	/* Neither end of the way shows the directory of the second link. */
	snprintf(hop, sizeof(hop), "%s/hop", sub);
	assert_int_equal(symlink("../file", hop), 0);
	assert_int_equal(unlink(link_), 0);
	assert_int_equal(symlink(hop, link_), 0);
	assert_string_equal(why_not(link_, 0), "");
	assert_int_equal(chmod(sub, 0777), 0);
	begins(why_not(link_, 0), "/sub (mode 0777)");
	assert_int_equal(chmod(sub, 0755), 0);
	/* A directory by a link, with dots, from a working directory. */
	assert_int_equal(unlink(link_), 0);
	assert_int_equal(symlink("./sub/.", link_), 0);
	snprintf(through, sizeof(through), "%s//link/../link/./inside", dir);
	assert_string_equal(why_not(through, 0), "");
	assert_int_equal(chmod(inside, 0666), 0);
	begins(why_not(through, 0), "/sub/inside (mode 0666)");
	assert_int_equal(chdir(sub), 0);
	begins(why_not("inside", 0), "/sub/inside (mode 0666)");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(unlink(link_), 0);
	assert_int_equal(symlink("link", link_), 0);
	assert_string_equal(why_not(link_, 0), strerror(ELOOP));
}

struct acl {
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry entries[6];
};

#define ENTRY(tag, perm, id)                                                                       \
	{                                                                                          \
		htole16(tag), htole16(perm), htole32(id)                                           \
	}

/* Gives PATH an ACL with one entry of TAG for ID.  Returns false where there are no ACLs. */
static bool set_acl(const char *path, unsigned tag, unsigned perm, unsigned id, unsigned mask)
{
	const struct acl acl = {
		.head = {htole32(POSIX_ACL_XATTR_VERSION)},
		.entries = {ENTRY(ACL_USER_OBJ, 6, ACL_UNDEFINED_ID),
			    tag == ACL_USER ? (struct posix_acl_xattr_entry)ENTRY(tag, perm, id)
					    : (struct posix_acl_xattr_entry)ENTRY(ACL_GROUP_OBJ, 4,
										  ACL_UNDEFINED_ID),
			    tag == ACL_USER ? (struct posix_acl_xattr_entry)ENTRY(ACL_GROUP_OBJ, 4,
										  ACL_UNDEFINED_ID)
					    : (struct posix_acl_xattr_entry)ENTRY(tag, perm, id),
			    ENTRY(ACL_MASK, mask, ACL_UNDEFINED_ID),
			    ENTRY(ACL_OTHER, 4, ACL_UNDEFINED_ID)},
	};
	size_t size = sizeof(acl.head) + 5 * sizeof(acl.entries[0]);

	if (!setxattr(path, XATTR_NAME_POSIX_ACL_ACCESS, &acl, size, 0))
		return true;
	assert_int_equal(errno, ENOTSUP);
	return false;
}

static void test_acls(void **state)
{
	(void)state;
	if (!set_acl(file, ACL_USER, 6, OTHER, 6)) {
		print_message("# SKIP the file system of /tmp has no ACLs\n");
		skip();
	}
	begins(why_not(file, 0), "/file lets uid 4242 write: remove it (setfacl -b)");
	assert_true(set_acl(file, ACL_USER, 6, OTHER, 4)); /* the mask takes it away */
	assert_string_equal(why_not(file, 0), "");
	assert_true(set_acl(file, ACL_USER, 4, OTHER, 6));
	assert_string_equal(why_not(file, 0), "");
	assert_true(set_acl(file, ACL_USER, 6, 0, 6));
	assert_string_equal(why_not(file, 0), "");
	assert_true(set_acl(file, ACL_GROUP, 2, OTHER, 6));
	begins(why_not(file, 0), "/file lets gid 4242 write");
	assert_true(set_acl(sub, ACL_USER, 7, OTHER, 7));
	begins(why_not(inside, 0), "/sub lets uid 4242 write");
}

/* --- what settings name ----------------------------------------------------------------------- */

static const char *settings_why(const struct settings *set)
{
	static struct iocom_err err;
	int rc;

	err.text[0] = 0;
	rc = settings_trust(set, &err);
	assert_true(rc ? rc == -EPERM && err.text[0] : !err.text[0]);
	return err.text;
}

static void test_settings(void **state)
{
	struct settings set = {.pam = SETTINGS_PAM_AUTO};
	char service[128];
	struct iocom_err err = {0};

	(void)state;
	snprintf(set.munge_socket, sizeof(set.munge_socket), "%s/socket", dir);
	snprintf(set.pam_dir, sizeof(set.pam_dir), "%s", sub);
	assert_string_equal(settings_why(&set), "");
	assert_int_equal(chown(file, OTHER, 0), 0);
	assert_int_equal(settings_trust_file(file, &err), -EPERM);
	begins(err.text, "configuration file (--config): ");
	assert_int_equal(settings_trust_file("/no/such/file", &err), 0);
	/* PAM's directory, and its file there. */
	assert_int_equal(chmod(sub, 0777), 0);
	begins(settings_why(&set), "PAM's directory (--pam-dir): ");
	set.pam = SETTINGS_PAM_OFF;
	assert_string_equal(settings_why(&set), "");
	set.pam = SETTINGS_PAM_ON;
	assert_int_equal(chmod(sub, 0755), 0);
	snprintf(service, sizeof(service), "%s/iocom", sub);
	assert_int_equal(symlink(file, service), 0);
	begins(settings_why(&set), "PAM's service file (--pam-dir): ");
	assert_int_equal(unlink(service), 0);
	/* Where munged's socket is. */
	assert_int_equal(chmod(dir, 01777), 0);
	begins(settings_why(&set), "directory of munged's socket (--munge-socket): ");
	snprintf(set.munge_socket, sizeof(set.munge_socket), "%s/none/socket", dir);
	assert_string_equal(settings_why(&set), "");
	assert_int_equal(chown(sub, OTHER, 0), 0);
	set.pam = SETTINGS_PAM_OFF;
	snprintf(set.munge_socket, sizeof(set.munge_socket), "%s/socket", sub);
	begins(settings_why(&set), "directory of munged's socket (--munge-socket): ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owners, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directories_above, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_acls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_settings, setup, teardown),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("trust", tests, NULL, NULL);
}
