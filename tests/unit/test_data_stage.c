/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The messages with which a job's data goes along, and the names of shared file systems. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/data_stage.h"
#include "user/pack.h"
#include "user/shared_fs.h"

static void names_are_relative_and_below(void **state)
{
	static const char *const good[] = {"a", "a/b", ".a", "a.", "...", "a/..b/c"};
	static const char *const bad[] = {"",	"/a",  "a/",	"a//b", ".",
					  "..", "./a", "a/./b", "a/..", "../a"};
	char deep[2 * DATA_DEPTH + 4] = "a", longest[PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(data_path_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(data_path_valid(bad[i]));
	for (int i = 1; i < DATA_DEPTH; i++)
		strcat(deep, "/a");
	assert_true(data_path_valid(deep));
	strcat(deep, "/a");
	assert_false(data_path_valid(deep));
	memset(longest, 'a', NAME_MAX + 1);
	longest[NAME_MAX + 1] = 0;
	assert_false(data_path_valid(longest));
	longest[NAME_MAX] = 0;
	assert_true(data_path_valid(longest));
	assert_true(data_path_below("a/b", "a") && data_path_below("a", "a") &&
		    data_path_below("x/y", "."));
	assert_false(data_path_below("ab", "a") || data_path_below("a", "a/b"));
}

static void messages_are_cut_from_a_stream(void **state)
{
	uint8_t bytes[DATA_HEAD + 3] = {0}, type;
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;

	(void)state;
	data_head(bytes, DATA_DATA, 3);
	for (size_t have = 0; have < sizeof(bytes); have++)
		assert_int_equal(data_next(bytes, have, &type, &payload, &length, &consumed), 1);
	assert_int_equal(data_next(bytes, sizeof(bytes), &type, &payload, &length, &consumed), 0);
	assert_true(type == DATA_DATA && length == 3 && consumed == sizeof(bytes) &&
		    payload == bytes + DATA_HEAD);
	data_head(bytes, DATA_DATA, DATA_PIECE + 1);
	assert_int_equal(data_next(bytes, sizeof(bytes), &type, &payload, &length, &consumed),
			 -EBADMSG);
}

static struct data_entry sample_entry(void)
{
	struct data_entry entry = {.path = (char *)"d/\xff.bin",
				   .mode = 0640,
				   .writable = true,
				   .size = 1ull << 40,
				   .mtime_ns = 1580702706789000000,
				   .hashed = true};

	memset(entry.hash, 7, sizeof(entry.hash));
	return entry;
}

static void entries_come_back(void **state)
{
	struct data_entry entry = sample_entry(), back;
	uint8_t packed[1024];
	int n = data_entry_pack(&entry, packed, sizeof(packed));

	(void)state;
	assert_true(n > 0);
	assert_int_equal(data_entry_unpack(&back, packed, (size_t)n), 0);
	assert_string_equal(back.path, entry.path);
	assert_true(back.kind == DATA_KIND_FILE && back.mode == 0640 && back.writable &&
		    back.size == entry.size && back.mtime_ns == entry.mtime_ns && back.hashed);
	assert_memory_equal(back.hash, entry.hash, DATA_HASH);
	data_entry_free(&back);
	for (int i = 0; i < n; i++)
		assert_int_equal(data_entry_unpack(&back, packed, (size_t)i), -EBADMSG);
	assert_int_equal(data_entry_pack(&entry, packed, 20), -EMSGSIZE);
}

static void entries_that_are_none_are_refused(void **state)
{
	struct data_entry bad[] = {sample_entry(), sample_entry(), sample_entry(), sample_entry(),
				   sample_entry()};
	struct data_entry back;
	uint8_t packed[1024];

	(void)state;
	bad[0].path = (char *)"../x";
	bad[1].path = (char *)"/x";
	bad[2].mode = 04755;
	bad[3].size = DATA_BYTES_MAX + 1;
	bad[4].kind = DATA_KIND_DIRECTORY; /* with size and hash */
	for (size_t i = 0; i < 5; i++) {
		int n = data_entry_pack(&bad[i], packed, sizeof(packed));

		assert_true(n > 0);
		assert_int_equal(data_entry_unpack(&back, packed, (size_t)n), -EBADMSG);
	}
}

static void stats_come_back(void **state)
{
	struct data_stats stats = {1, 2, 3, 4, 5, 6, 7, 8, 9}, back;
	uint8_t packed[1024];
	int n = data_stats_pack(&stats, packed, sizeof(packed));

	(void)state;
	assert_true(n > 0);
	assert_int_equal(data_stats_unpack(&back, packed, (size_t)n), 0);
	assert_memory_equal(&stats, &back, sizeof(stats));
	stats.cache_bytes = DATA_BYTES_MAX + 1;
	n = data_stats_pack(&stats, packed, sizeof(packed));
	assert_int_equal(data_stats_unpack(&back, packed, (size_t)n), -EBADMSG);
}

/* The hash is BLAKE2b of 32 bytes: that of nothing is published. */
static void hashes_are_blake2b(void **state)
{
	struct data_hash *hash = data_hash_new();
	uint8_t out[DATA_HASH];
	char text[DATA_HASH_TEXT];

	(void)state;
	data_hash_end(hash, out);
	data_hash_text(text, out);
	assert_string_equal(text,
			    "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

static const char table[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"30 22 0:40 / /home rw,relatime shared:2 master:1 - nfs4 server:/export/home rw,vers=4.2\n"
	"31 22 0:41 /projects/p\\0401 /work\\040dir rw - lustre mds@tcp:/fs rw\n"
	"32 30 8:2 / /home/local rw - xfs /dev/sdb rw\n"
	"33 22 0:42 / /over rw - nfs a:/b rw\n"
	"34 33 0:43 / /over rw - tmpfs tmpfs rw\n"
	"35 22 0:44 / /mnt/ssh rw - fuse.sshfs me@host:/data rw\n"
	"36 22 0:45\n"
	"37 22 0:46 / /nfs rw - nfs4 big:/e rw,hard,addr=10.0.0.7,clientaddr=10.0.0.8\n"
	"38 22 0:47 / /smb rw - cifs //big/e rw,addr=fd00::7\n";

static void shared_file_systems_are_recognised(void **state)
{
	static const struct {
		const char *path, *name;
	} rows[] = {
		{"/home", "server:/export/home:/"},
		{"/home/u/w", "server:/export/home:/u/w"},
		{"/homely", NULL},
		{"/home/local/x", NULL},
		{"/work dir/x", "mds@tcp:/fs:/projects/p 1/x"},
		{"/work dir", "mds@tcp:/fs:/projects/p 1"},
		{"/over/x", NULL},
		{"/mnt/ssh/a", "me@host:/data:/a"},
		{"/", NULL},
	};
	char path[] = "/tmp/iocom-mounts-XXXXXX", name[SHARED_FS_MAX];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, table, sizeof(table) - 1), sizeof(table) - 1);
	close(fd);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int rc = shared_fs_name(path, rows[i].path, name, sizeof(name));

		assert_int_equal(rc, rows[i].name ? 0 : -ENOENT);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
	}
	assert_int_equal(shared_fs_name(path, "/home/u", name, 10), -ENAMETOOLONG);
	unlink(path);
	assert_int_equal(shared_fs_name(path, "/home/u", name, sizeof(name)), -ENOENT);
	assert_true(shared_fs_is("nfs4") && shared_fs_is("ceph") && !shared_fs_is("ext4") &&
		    !shared_fs_is("fuse"));
}

static void what_may_hang_is_told(void **state)
{
	static const struct {
		const char *line;
		bool may;
	} rows[] = {
		{"21 1 8:1 / / rw - ext4 /dev/sda1 rw", false},
		{"22 21 0:40 / /home rw shared:1 - nfs4 n9:/home rw,addr=10.0.0.9", true},
		{"23 21 0:41 / /mnt/own rw - fuse.anything own rw", true},
		{"23 21 0:41 / /mnt/own rw - fuse own rw", true},
		{"24 21 0:42 / /net rw - autofs /etc/auto.net rw", true},
		{"25 21 0:43 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw", false},
		{"26 21 0:44 / /proc/meminfo rw - fuse.lxcfs lxcfs rw", false},
		{"27 21 0:45 / /sys/fs/fuse/connections rw - fusectl fusectl rw", false},
		{"28 21 0:46 / /process rw - fuse.sshfs a: rw", true},
		{"29 21 8:2 / /win rw - fuseblk /dev/sda2 rw", false},
		{"a line of something else", false},
	};
	char path[] = "/tmp/iocom-mounts-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_true(pwrite(fd, rows[i].line, strlen(rows[i].line), 0) > 0);
		assert_int_equal(shared_fs_may_hang(path), rows[i].may);
	}
	close(fd);
	unlink(path);
	assert_false(shared_fs_may_hang(path));
}

static void who_serves_them_is_told(void **state)
{
	static const struct {
		const char *path, *server;
		int rc;
	} rows[] = {
		{"/nfs/a", "10.0.0.7", 0}, {"/smb", "fd00::7", 0},  {"/work dir/x", NULL, -ENXIO},
		{"/home/u", NULL, -ENXIO}, {"/tmp", NULL, -ENOENT},
	};
	char path[] = "/tmp/iocom-mounts-XXXXXX", server[64];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, table, sizeof(table) - 1), sizeof(table) - 1);
	close(fd);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(shared_fs_server(path, rows[i].path, server, sizeof(server)),
				 rows[i].rc);
		if (rows[i].server)
			assert_string_equal(server, rows[i].server);
	}
	assert_int_equal(shared_fs_server(path, "/nfs", server, 8), -ENAMETOOLONG);
	unlink(path);
}

static void what_is_exported_is_told(void **state)
{
	static const char etab[] = "/srv/a\\040b\t10.0.0.0/8(rw,sync)\n"
				   "/data\t*(ro)\n"
				   "data2\t*(ro)\n";
	char path[] = "/tmp/iocom-exports-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, etab, sizeof(etab) - 1), sizeof(etab) - 1);
	close(fd);
	assert_true(shared_fs_exported(path, "/srv/a b/c") && shared_fs_exported(path, "/data"));
	assert_false(shared_fs_exported(path, "/datax") || shared_fs_exported(path, "/srv") ||
		     shared_fs_exported(path, "data2"));
	unlink(path);
	assert_false(shared_fs_exported(path, "/data"));
}

static void the_servers_own_directory_is_known(void **state)
{
	char own[300], host[256] = "";

	(void)state;
	assert_true(shared_fs_is_export("n1:/srv:/", "/srv"));
	assert_true(shared_fs_is_export("n1:/srv:/a/b", "/srv/a/b"));
	assert_true(shared_fs_is_export("n1:/:/srv", "/srv"));
	assert_true(shared_fs_is_export("[fd00::7]:/srv:/a", "/srv/a"));
	assert_false(shared_fs_is_export("n1:/srv:/a", "/srv/b"));
	assert_false(shared_fs_is_export("n1:/other:/a", "/srv/a"));
	assert_false(shared_fs_is_export("n1:/srv:/a", "/srv"));
	assert_false(shared_fs_is_export("//n1/srv:/a", "/srv/a"));
	assert_false(shared_fs_is_export("n1", "/srv") || shared_fs_is_export("", "/srv") ||
		     shared_fs_is_export("[n1", "/srv") || shared_fs_is_export("n1:/srv", "/srv"));
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	snprintf(own, sizeof(own), "%s:/srv:/", host);
	assert_true(shared_fs_is_own(own) && shared_fs_is_own("127.0.0.1:/srv:/"));
	assert_false(shared_fs_is_own("192.0.2.77:/srv:/") || shared_fs_is_own("127.0.0.1") ||
		     shared_fs_is_own("[fd00::7]:/srv:/") || shared_fs_is_own(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_relative_and_below),
		cmocka_unit_test(messages_are_cut_from_a_stream),
		cmocka_unit_test(entries_come_back),
		cmocka_unit_test(what_may_hang_is_told),
		cmocka_unit_test(who_serves_them_is_told),
		cmocka_unit_test(what_is_exported_is_told),
		cmocka_unit_test(the_servers_own_directory_is_known),
		cmocka_unit_test(entries_that_are_none_are_refused),
		cmocka_unit_test(stats_come_back),
		cmocka_unit_test(hashes_are_blake2b),
		cmocka_unit_test(shared_file_systems_are_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
