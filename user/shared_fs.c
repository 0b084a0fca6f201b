/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See shared_fs.h. */
#include "user/shared_fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool shared_fs_is(const char *type)
{
	static const char *const types[] = {
		"nfs",		"nfs4",	     "cifs",	       "smb3",		 "smbfs",
		"lustre",	"gpfs",	     "beegfs",	       "fhgfs",		 "ceph",
		"afs",		"9p",	     "pvfs2",	       "orangefs",	 "ocfs2",
		"gfs2",		"panfs",     "wekafs",	       "pafs",		 "virtiofs",
		"fuse.sshfs",	"fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.rclone",
		"fuse.juicefs", "fuse.s3fs", "fuse.moosefs",   "fuse.lizardfs",	 "fuse.cvmfs2",
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* The table writes blanks and backslashes as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
		    at[3] >= '0' && at[3] <= '7') {
			*to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 3;
		} else {
			*to++ = *at;
		}
	}
	*to = 0;
}

/* A line of the table: which directory of what is mounted where. */
struct mounted {
	char *root, *point, *type, *source, *options; /* options: those of the file system */
};

static char *mount_word(char **at)
{
	char *word;

	while ((word = strsep(at, " \n")) != NULL && !*word)
		;
	return word;
}

/* Takes LINE apart: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS. */
static bool mount_parse(char *line, struct mounted *m)
{
	char *at = line, *word;

	for (int i = 0; i < 3; i++)
		if (!mount_word(&at))
			return false;
	m->root = mount_word(&at);
	m->point = mount_word(&at);
	do
		word = mount_word(&at);
	while (word && strcmp(word, "-") != 0);
	m->type = word ? mount_word(&at) : NULL;
	m->source = m->type ? mount_word(&at) : NULL;
	if (!m->source)
		return false;
	word = mount_word(&at);
	m->options = word ? word : at;
	unescape(m->root);
	unescape(m->point);
	unescape(m->source);
	return true;
}

/* Returns the length of POINT if PATH is in it, else -1. */
static int mount_covers(const char *point, const char *path)
{
	size_t n = strlen(point);

	if (!strcmp(point, "/"))
		return 0;
	return !strncmp(path, point, n) && (!path[n] || path[n] == '/') ? (int)n : -1;
}

static int mount_name(const struct mounted *m, const char *rest, char *out, size_t size)
{
	const char *root = strcmp(m->root, "/") ? m->root : "";
	int n = snprintf(out, size, "%s:%s%s", m->source, root, *rest || *root ? rest : "/");

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* The address that the kernel has for the server: nfs and smb say it among the options. */
static int mount_server(const struct mounted *m, const char *rest, char *out, size_t size)
{
	static const char key[] = "addr=";
	const char *at = m->options;
	int n;

	(void)rest;
	while (at && strncmp(at, key, sizeof(key) - 1) != 0) {
		at = strchr(at, ',');
		at += at != NULL;
	}
	if (!at)
		return -ENXIO;
	at += sizeof(key) - 1;
	n = snprintf(out, size, "%.*s", (int)strcspn(at, ", \n"), at);
	return n <= 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Calls TELL for the mount that has PATH, and for what is below it, if it is shared. */
static int mount_find(const char *table, const char *path,
		      int (*tell)(const struct mounted *m, const char *rest, char *out,
				  size_t size),
		      char *out, size_t size)
{
	FILE *file = fopen(table, "re");
	char *line = NULL;
	size_t room = 0;
	int best = -1, rc = -ENOENT;

	if (!file)
		return -errno;
	/* Of mounts at one place, the last one counts. */
	while (getline(&line, &room, file) > 0) {
		struct mounted m;
		int n = mount_parse(line, &m) ? mount_covers(m.point, path) : -1;

		if (n < 0 || n < best)
			continue;
		best = n;
		rc = shared_fs_is(m.type) ? tell(&m, path + n, out, size) : -ENOENT;
	}
	free(line);
	fclose(file);
	return rc;
}

int shared_fs_name(const char *table, const char *path, char *out, size_t size)
{
	return mount_find(table, path, mount_name, out, size);
}

int shared_fs_server(const char *table, const char *path, char *out, size_t size)
{
	return mount_find(table, path, mount_server, out, size);
}

bool shared_fs_may_hang(const char *table)
{
	FILE *file = fopen(table, "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (file && !found && getline(&line, &room, file) > 0) {
		struct mounted m;

		found = mount_parse(line, &m) && mount_covers("/proc", m.point) < 0 &&
			mount_covers("/sys", m.point) < 0 &&
			(shared_fs_is(m.type) || !strcmp(m.type, "autofs") ||
			 !strcmp(m.type, "fuse") || !strncmp(m.type, "fuse.", 5));
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

bool shared_fs_exported(const char *exports, const char *path)
{
	FILE *file = fopen(exports, "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (file && !found && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\t\n")] = 0;
		unescape(line);
		found = *line == '/' && mount_covers(line, path) >= 0;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* Returns the length of the host that NAME begins with, as nfs writes it: "a", "[::1]"; 0: none. */
static size_t name_host(const char *name)
{
	const char *end = *name == '[' ? strchr(name, ']') : NULL;

	if (*name == '[')
		return end ? (size_t)(end + 1 - name) : 0;
	return strcspn(name, ":");
}

bool shared_fs_is_export(const char *name, const char *path)
{
	const char *export = name + name_host(name), *directory;
	size_t n;

	if (*export ++ != ':' || *export != '/')
		return false;
	directory = strrchr(export, ':');
	if (!directory)
		return false;
	n = (size_t)(directory - export);
	while (n && export[n - 1] == '/')
		n--;
	directory += strcmp(directory, ":/") ? 1 : 2;
	return !strncmp(path, export, n) && !strcmp(path + n, directory);
}

static bool own_address(const struct ifaddrs *list, int family, const void *address)
{
	for (; list; list = list->ifa_next) {
		const struct sockaddr *a = list->ifa_addr;

		if (!a || a->sa_family != family)
			continue;
		if (family == AF_INET && !memcmp(&((const struct sockaddr_in *)a)->sin_addr,
						 address, sizeof(struct in_addr)))
			return true;
		if (family == AF_INET6 && !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
						  address, sizeof(struct in6_addr)))
			return true;
	}
	return false;
}

bool shared_fs_is_own(const char *name)
{
	size_t n = name_host(name);
	char host[256], own[256] = "";
	struct in6_addr address;
	struct ifaddrs *list;
	bool found;
	int family;

	if (n >= sizeof(host) || !name[n])
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)n, name);
	if (*host == '[') {
		memmove(host, host + 1, strlen(host));
		host[strcspn(host, "]")] = 0;
	}
	family = inet_pton(AF_INET, host, &address) == 1    ? AF_INET
		 : inet_pton(AF_INET6, host, &address) == 1 ? AF_INET6
							    : AF_UNSPEC;
	if (family == AF_UNSPEC)
		return !gethostname(own, sizeof(own) - 1) && !strcmp(host, own);
	if (getifaddrs(&list))
		return false;
	found = own_address(list, family, &address);
	freeifaddrs(list);
	return found;
}
