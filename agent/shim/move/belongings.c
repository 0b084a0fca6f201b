/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See belongings.h. */
#include "agent/shim/move/belongings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "iocom/array.h"
#include "user/clock.h"
#include "user/privilege.h"
#include "user/utf8.h"

#define CHECK_MS      10000
#define THINGS_MAX    200000
#define NAMESPACE_MAX 32
#define DELETED	      " (deleted)"

/* A file that a process has. */
struct thing {
	char *path;
	struct stat st;
	/* What the process may do with it. */
	bool reads, writes, enters; /* enters: runs it, or is in it */
	bool either;		    /* it is enough to be allowed to read or to run it */
};

struct check {
	const struct cgroup *group;
	pid_t init;
	const struct belongings_owner *owner;
	struct iocom_err *err;
	struct thing *things;
	size_t count, room;
	uint64_t *named; /* inodes of sockets with names in file systems */
	size_t named_count, named_room;
	bool met; /* INIT was among the processes */
	struct belongings_tty *tty;
	/* Who has it, and where; 0: nobody so far. */
	pid_t tty_pid;
	int tty_fd;
};

/* --- who ----------------------------------------------------------------------------------- */

/* Copies what namespace NAME of process PID is called, "" where the kernel has none. */
static int namespace_of(pid_t pid, const char *name, char out[NAMESPACE_MAX])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	n = readlink(path, out, NAMESPACE_MAX - 1);
	out[n > 0 ? n : 0] = 0;
	return n < 0 && errno != ENOENT ? -errno : 0;
}

static bool namespace_same(pid_t a, pid_t b, const char *name)
{
	char x[NAMESPACE_MAX], y[NAMESPACE_MAX];

	return !namespace_of(a, name, x) && !namespace_of(b, name, y) && !strcmp(x, y);
}

static int check_namespaces(struct check *c, pid_t pid)
{
	static const char *const nodes[] = {"user", "net", "ipc", "uts", "cgroup"};
	static const char *const inits[] = {"pid", "mnt", "time"};

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		if (!namespace_same(pid, getpid(), nodes[i]))
			return iocom_err_set(c->err, -ENOTSUP,
					     "a process of it has a namespace of its own (%s)",
					     nodes[i]);
	for (size_t i = 0; i < sizeof(inits) / sizeof(inits[0]); i++)
		if (!namespace_same(pid, c->init, inits[i]))
			return iocom_err_set(c->err, -ENOTSUP,
					     "a process of it has a namespace of its own (%s)",
					     inits[i]);
	return 0;
}

static int owner_read_groups(const char *numbers, gid_t **groups, int *ngroups)
{
	size_t n = 0, room = strlen(numbers) / 2 + 1;
	gid_t *list = calloc(room, sizeof(*list));
	char *end;

	if (!list)
		return -ENOMEM;
	for (;; numbers = end, n++) {
		unsigned long gid = strtoul(numbers, &end, 10);

		if (end == numbers || n == room)
			break;
		list[n] = (gid_t)gid;
	}
	*groups = list;
	*ngroups = (int)n;
	return 0;
}

int belongings_owner_of(struct belongings_owner *owner, gid_t **groups, pid_t pid)
{
	char path[64], *line = NULL;
	size_t room = 0;
	int rc = 0, found = 0;
	FILE *file;

	*owner = (struct belongings_owner){0};
	*groups = NULL;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!rc && getline(&line, &room, file) > 0) {
		found += sscanf(line, "Uid: %u", &owner->uid) == 1;
		found += sscanf(line, "Gid: %u", &owner->gid) == 1;
		if (!*groups && !strncmp(line, "Groups:", 7))
			rc = owner_read_groups(line + 7, groups, &owner->ngroups);
	}
	free(line);
	fclose(file);
	owner->groups = *groups;
	if (!rc && (found != 2 || !*groups))
		rc = -EPROTO;
	if (rc) {
		free(*groups);
		*groups = NULL;
	}
	return rc;
}

static bool owner_has_group(const struct belongings_owner *owner, unsigned long gid)
{
	for (int i = 0; i < owner->ngroups; i++)
		if (owner->groups[i] == gid)
			return true;
	return owner->gid == gid;
}

/* All four numbers of a line "Uid:" or "Gid:". */
static bool four_are(const char *numbers, unsigned long wanted)
{
	unsigned long got[4];

	return sscanf(numbers, "%lu %lu %lu %lu", &got[0], &got[1], &got[2], &got[3]) == 4 &&
	       got[0] == wanted && got[1] == wanted && got[2] == wanted && got[3] == wanted;
}

static bool groups_are(const char *numbers, const struct belongings_owner *owner)
{
	char *end;

	for (;;) {
		unsigned long gid = strtoul(numbers, &end, 10);

		if (end == numbers)
			return true;
		if (!owner_has_group(owner, gid))
			return false;
		numbers = end;
	}
}

/* Checks a line of /proc/PID/status.  SEEN has a bit for each kind of line. */
static int check_status_line(struct check *c, const char *line, unsigned *seen)
{
	static const char *const kinds[] = {
		"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
	bool good = true;
	size_t kind = 0;

	while (kind < 7 && strncmp(line, kinds[kind], strlen(kinds[kind])) != 0)
		kind++;
	if (kind == 7)
		return 0;
	line += strlen(kinds[kind]);
	*seen |= 1u << kind;
	if (kind < 2)
		good = four_are(line, kind ? c->owner->gid : c->owner->uid);
	else if (kind == 2)
		good = groups_are(line, c->owner);
	else if (c->owner->uid)
		good = strtoull(line, NULL, 16) == 0;
	return good ? 0
		    : iocom_err_set(c->err, -EPERM,
				    "a process of it has other rights than its user (%.*s)",
				    (int)strlen(kinds[kind]) - 1, kinds[kind]);
}

static int check_thread(struct check *c, pid_t pid, const char *tid)
{
	char path[96], *line = NULL;
	size_t room = 0;
	unsigned seen = 0;
	FILE *file;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", pid, tid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!rc && getline(&line, &room, file) > 0)
		rc = check_status_line(c, line, &seen);
	free(line);
	fclose(file);
	return rc ? rc : seen == 0x7f ? 0 : -EPROTO;
}

/* --- what it has --------------------------------------------------------------------------- */

/* Reads where the link PATH leads.  Returns 0 with TO to free(), or negative errno. */
static int link_read(const char *path, char **to)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text));

	*to = NULL;
	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(text))
		return -ENAMETOOLONG;
	*to = strndup(text, (size_t)n);
	return *to ? 0 : -ENOMEM;
}

/* The kernel adds a word to the path of a file that is deleted. */
static bool says_deleted(const char *path)
{
	size_t length = strlen(path);

	return length >= strlen(DELETED) && !strcmp(path + length - strlen(DELETED), DELETED);
}

/* Memory that only looks like a file. */
static bool is_memory(const char *path, const struct stat *st)
{
	static const char *const names[] = {"/memfd:", "/dev/zero (", "/SYSV", "/[aio] (",
					    "/anon_hugepage ("};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(path, names[i], strlen(names[i])) && says_deleted(path) &&
		    st->st_nlink == 0)
			return true;
	return false;
}

static int refuse(const struct check *c, int rc, const char *what, const char *path)
{
	char shown[160];

	snprintf(shown, sizeof(shown), "%.150s", path);
	utf8_plain(shown);
	return iocom_err_set(c->err, rc, "it has %s: %s", what, shown);
}

static bool is_harmless_device(const struct stat *st)
{
	static const unsigned minors[] = {3, 5, 7, 8, 9}; /* null, zero, full, random, urandom */

	for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++)
		if (st->st_rdev == makedev(1, minors[i]))
			return true;
	return false;
}

int belongings_tty_of(struct belongings_tty *tty, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*tty = (struct belongings_tty){.dev = st.st_dev, .rdev = st.st_rdev, .flags = -1};
	return 0;
}

static bool is_job_tty(const struct check *c, const struct stat *st)
{
	return c->tty && S_ISCHR(st->st_mode) && st->st_rdev == c->tty->rdev &&
	       st->st_dev == c->tty->dev;
}

/* It is the terminal of the session of who opens it, and that is the job's (check_tty_session). */
static bool is_dev_tty(const struct check *c, const struct stat *st)
{
	return c->tty && st->st_rdev == makedev(5, 0);
}

static int check_kind(const struct check *c, const char *path, const struct stat *st)
{
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
		return 0;
	if (S_ISFIFO(st->st_mode))
		return refuse(c, -ENOTSUP, "a named pipe open", path);
	if (S_ISCHR(st->st_mode) &&
	    (is_harmless_device(st) || is_job_tty(c, st) || is_dev_tty(c, st)))
		return 0;
	return refuse(c, -ENOTSUP, "a device open", path);
}

/*
 * Notes the file that LINK leads to, to be looked at later, with the uses of USE.  PATH is where
 * the link says it leads, and is owned by the list.
 */
static int add_thing(struct check *c, const char *link, char *path, struct thing use)
{
	int rc;

	use.path = path;
	if (stat(link, &use.st)) {
		rc = -errno;
		free(path);
		return rc;
	}
	if (*path != '/' || is_memory(path, &use.st)) {
		free(path); /* a pipe, an eventfd, memory: criu makes a new one */
		return 0;
	}
	rc = check_kind(c, path, &use.st);
	if (!rc && (c->count == THINGS_MAX || array_reserve(c->things, c->room, c->count + 1, 64)))
		rc = -E2BIG;
	if (rc) {
		free(path);
		return rc;
	}
	c->things[c->count++] = use;
	return 0;
}

static int add_link(struct check *c, pid_t pid, const char *name, struct thing use)
{
	char link[64], *path;
	int rc;

	snprintf(link, sizeof(link), "/proc/%d/%s", pid, name);
	rc = link_read(link, &path);
	return rc ? rc : add_thing(c, link, path, use);
}

/* Returns the flags of a descriptor, as of open(2), or -1. */
static int flags_of(pid_t pid, const char *fd)
{
	char path[96], line[128];
	unsigned flags;
	int found = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.20s", pid, fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "flags: %o", &flags) == 1)
			found = (int)flags;
	if (file)
		fclose(file);
	return found;
}

/* Descriptors that are no files, by the names that the kernel gives them. */
static int check_link(const struct check *c, const char *name)
{
	uint64_t inode;

	if (!strcmp(name, "anon_inode:[io_uring]"))
		return iocom_err_set(c->err, -ENOTSUP, "it uses io_uring");

	if (sscanf(name, "socket:[%" SCNu64, &inode) != 1)
		return 0;
	for (size_t i = 0; i < c->named_count; i++)
		if (c->named[i] == inode)
			return iocom_err_set(c->err, -ENOTSUP,
					     "it has a socket with a name in a file system");
	return 0;
}

/* Descriptor FD of process PID, with FLAGS, is the job's terminal: all are one, and so at the other
 * node. */
static int check_tty(struct check *c, pid_t pid, int fd, int flags)
{
	if (!c->tty_pid) {
		c->tty_pid = pid;
		c->tty_fd = fd;
		c->tty->flags = flags;
	}
	if (syscall(SYS_kcmp, pid, c->tty_pid, KCMP_FILE, fd, c->tty_fd) != 0)
		return iocom_err_set(c->err, -ENOTSUP,
				     "it has opened its terminal by its name, besides what it had");
	if ((flags & O_ACCMODE) != O_RDWR || flags & (O_ASYNC | O_PATH))
		return iocom_err_set(c->err, -ENOTSUP,
				     "it has its terminal open in a way that cannot be moved");
	return 0;
}

static int check_tty_fd(struct check *c, pid_t pid, const char *fd, const char *link, int flags)
{
	struct stat st;

	if (!c->tty || stat(link, &st) || !is_job_tty(c, &st))
		return 0;
	return check_tty(c, pid, (int)strtol(fd, NULL, 10), flags);
}

/* Reads which terminal process PID has, as its device's number; 0: none. */
static int tty_of_process(pid_t pid, unsigned *device)
{
	char path[64], line[512];
	const char *name;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = 0;
	name = strrchr(line, ')'); /* it may have any characters */
	return name && sscanf(name, ") %*c %*d %*d %*d %u", device) == 1 ? 0 : -EPROTO;
}

/* The processes of the first one's session have its terminal, and all others have none. */
static int check_tty_session(const struct check *c, pid_t pid)
{
	bool inside = getsid(pid) == c->init;
	unsigned device = 0, low, wanted = 0;
	int rc = c->tty ? tty_of_process(pid, &device) : 0;

	if (rc || !c->tty)
		return rc;
	low = minor(c->tty->rdev);
	if (inside) /* as the kernel writes it there */
		wanted = (low & 0xff) | major(c->tty->rdev) << 8 | (low & ~0xffU) << 12;
	if (device == wanted)
		return 0;
	return iocom_err_set(c->err, -ENOTSUP,
			     inside ? "a process of it has lost the terminal of its session"
				    : "a process of it has a terminal of its own");
}

static int add_descriptor(struct check *c, pid_t pid, const char *fd)
{
	char link[96], *path;
	struct thing use = {0};
	int flags = flags_of(pid, fd), rc;

	snprintf(link, sizeof(link), "/proc/%d/fd/%.20s", pid, fd);
	rc = flags < 0 ? -EPROTO : link_read(link, &path);
	if (rc)
		return rc;
	rc = check_link(c, path);
	if (!rc)
		rc = check_tty_fd(c, pid, fd, link, flags);
	if (rc) {
		free(path);
		return rc;
	}
	if (!(flags & O_PATH)) {
		use.reads = (flags & O_ACCMODE) != O_WRONLY;
		use.writes = (flags & O_ACCMODE) != O_RDONLY;
	}
	return add_thing(c, link, path, use);
}

/* Calls ADD for each entry of directory /proc/PID/NAME. */
static int each_entry(struct check *c, pid_t pid, const char *name,
		      int (*add)(struct check *, pid_t, const char *))
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			rc = add(c, pid, entry->d_name);
	closedir(dir);
	return rc;
}

/* A mapping of /proc/PID/maps or smaps. */
struct mapping {
	char range[48];
	bool shared, file;
	bool may_write; /* a shared one: now, or after mprotect(2) */
};

static int add_mapping(struct check *c, pid_t pid, const struct mapping *map)
{
	struct thing use = {.reads = true};
	char link[96], *path;
	int rc;

	if (!map->file)
		return 0;
	use.writes = map->shared && map->may_write;
	use.either = !use.writes && !map->shared; /* a program need not be readable */
	snprintf(link, sizeof(link), "/proc/%d/map_files/%s", pid, map->range);
	rc = link_read(link, &path);
	return rc ? rc : add_thing(c, link, path, use);
}

/* Reads a mapping's first line.  Returns false: it is none. */
static bool mapping_begins(const char *line, struct mapping *map)
{
	char access[8], range[48];
	uint64_t from, to;
	int path = 0;

	if (sscanf(line, "%47s %7s %*s %*s %*s %n", range, access, &path) != 2 || !path ||
	    sscanf(range, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
		return false;
	*map = (struct mapping){
		.shared = access[3] == 's',
		.file = line[path] == '/',
		.may_write = true,
	};
	/* Names in map_files have no zeros in front. */
	snprintf(map->range, sizeof(map->range), "%" PRIx64 "-%" PRIx64, from, to);
	return true;
}

/*
 * Adds all mappings, from FILE.  What a shared mapping may become only smaps tells, which the
 * kernel makes slowly: with DETAILS it is that.  Returns 1: it is needed.
 */
static int add_mappings(struct check *c, pid_t pid, FILE *file, bool details)
{
	struct mapping map = {0}, next;
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (!rc && getline(&line, &room, file) > 0) {
		if (!mapping_begins(line, &next)) {
			if (!strncmp(line, "VmFlags:", 8))
				map.may_write = strstr(line, " mw") != NULL;
			continue;
		}
		if (next.shared && next.file && !details)
			rc = 1;
		else
			rc = add_mapping(c, pid, &map);
		map = next;
	}
	free(line);
	return rc ? rc : add_mapping(c, pid, &map);
}

static int add_memory(struct check *c, pid_t pid)
{
	size_t before = c->count;
	char path[64];
	int rc = 1;

	for (int details = 0; rc == 1 && details < 2; details++) {
		FILE *file;

		while (c->count > before)
			free(c->things[--c->count].path);
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, details ? "smaps" : "maps");
		file = fopen(path, "re");
		if (!file)
			return -errno;
		rc = add_mappings(c, pid, file, details);
		fclose(file);
	}
	return rc;
}

static int check_process(struct check *c, pid_t pid)
{
	int rc = check_namespaces(c, pid);

	if (!rc)
		rc = check_tty_session(c, pid);
	if (!rc)
		rc = each_entry(c, pid, "task", check_thread);
	if (!rc)
		rc = add_link(c, pid, "exe", (struct thing){.reads = true, .either = true});
	if (!rc)
		rc = add_link(c, pid, "cwd", (struct thing){.enters = true});
	if (!rc)
		rc = add_link(c, pid, "root", (struct thing){.enters = true});
	if (!rc && strcmp(c->things[c->count - 1].path, "/") != 0)
		rc = iocom_err_set(c->err, -ENOTSUP, "a process of it has a root of its own");
	if (!rc)
		rc = each_entry(c, pid, "fd", add_descriptor);
	return rc ? rc : add_memory(c, pid);
}

/* Notes the sockets that have names in file systems. */
static int read_sockets(struct check *c)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *file;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", c->init);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && getline(&line, &room, file) > 0) {
		uint64_t inode;
		int at = 0;

		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %n", &inode, &at) != 1 ||
		    !at || !line[at] || line[at] == '@')
			continue;
		rc = array_reserve(c->named, c->named_room, c->named_count + 1, 64);
		if (!rc)
			c->named[c->named_count++] = inode;
	}
	free(line);
	fclose(file);
	return rc;
}

/* Looks at all processes. */
static int check_processes(struct check *c)
{
	char path[CGROUP_PATH_MAX + 16];
	int pid, rc = 0;
	FILE *pids;

	snprintf(path, sizeof(path), "%s/cgroup.procs", c->group->v2);
	pids = fopen(path, "re");
	if (!pids)
		return -errno;
	while (!rc && fscanf(pids, "%d", &pid) == 1) {
		if (namespace_same(pid, getpid(), "pid"))
			continue; /* criu's */
		c->met |= pid == c->init;
		rc = check_process(c, pid);
	}
	fclose(pids);
	return rc ? rc : c->met ? 0 : -ESRCH;
}

/* --- as the user --------------------------------------------------------------------------- */

static bool may(int fd, int mode)
{
	return !faccessat(fd, "", mode, AT_EACCESS | AT_EMPTY_PATH);
}

static int check_thing(const struct check *c, const struct thing *thing)
{
	int fd = open(thing->path, O_PATH | O_CLOEXEC), error = errno;
	struct stat st;
	bool good;

	if (fd < 0 && says_deleted(thing->path))
		return refuse(c, -ENOTSUP, "a deleted file open", thing->path);
	if (fd < 0)
		return refuse(c, -EACCES,
			      error == EACCES ? "a file open that its user cannot reach"
					      : "a file open that is not there any more",
			      thing->path);
	if (fstat(fd, &st) || st.st_dev != thing->st.st_dev || st.st_ino != thing->st.st_ino) {
		close(fd);
		return refuse(c, -EACCES, "a file open that is another one for its user",
			      thing->path);
	}
	good = !thing->enters || may(fd, X_OK);
	if (thing->reads && !(thing->either && may(fd, X_OK)))
		good = good && may(fd, R_OK);
	if (thing->writes)
		good = good && may(fd, W_OK);
	close(fd);
	return good ? 0 : refuse(c, -EACCES, "a file open that its user may not open", thing->path);
}

/* Becomes the job's user, where the job is. */
static int become_owner(const struct check *c, int ns)
{
	const struct belongings_owner *owner = c->owner;
	int rc = setns(ns, CLONE_NEWNS) ? -errno : 0;

	if (!rc)
		rc = privilege_drop(owner->uid, owner->gid, owner->groups, owner->ngroups);
	return rc ? rc
		  : privilege_prove_dropped(owner->uid, owner->gid, owner->groups, owner->ngroups);
}

static int check_all(struct check *c)
{
	char path[64];
	int rc = read_sockets(c), ns;

	if (!rc)
		rc = check_processes(c);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", c->init);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	rc = ns < 0 ? -errno : become_owner(c, ns);
	for (size_t i = 0; !rc && i < c->count; i++)
		rc = check_thing(c, &c->things[i]);
	return rc;
}

/* --- the process that does it -------------------------------------------------------------- */

struct verdict {
	int rc, tty_flags;
	char text[256];
};

/* Waits for what CHILD says at FD, and for its end; it is killed if it takes too long. */
static int hear_verdict(pid_t child, int fd, struct verdict *verdict)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t until_ms = clock_boot_ms() + CHECK_MS;
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && clock_boot_ms() < until_ms)
		if (poll(&p, 1, (int)CHECK_MS) == 1)
			rc = read(fd, verdict, sizeof(*verdict)) == (ssize_t)sizeof(*verdict)
				     ? 0
				     : -EIO;
	kill(child, SIGKILL);
	/* A process in the middle of a lost file system's call ends when that does. */
	for (int i = 0; i < 100 && waitpid(child, NULL, WNOHANG) == 0; i++)
		poll(NULL, 0, 1);
	return rc;
}

int belongings_check(const struct cgroup *group, pid_t init, const struct belongings_owner *owner,
		     struct belongings_tty *tty, struct iocom_err *err)
{
	struct verdict verdict = {0};
	pid_t child, parent = getpid();
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC))
		return iocom_err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (!child) {
		struct iocom_err why = {0};
		struct check c = {
			.group = group, .init = init, .owner = owner, .err = &why, .tty = tty};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		verdict.rc = check_all(&c);
		verdict.tty_flags = tty ? tty->flags : -1;
		snprintf(verdict.text, sizeof(verdict.text), "%.255s", why.text);
		(void)!write(ends[1], &verdict, sizeof(verdict));
		_exit(0);
	}
	rc = child < 0 ? -errno : 0;
	close(ends[1]);
	if (!rc)
		rc = hear_verdict(child, ends[0], &verdict);
	close(ends[0]);
	if (!rc)
		rc = verdict.rc;
	if (!rc && tty)
		tty->flags = verdict.tty_flags;
	if (!rc)
		return 0;
	if (*verdict.text)
		return iocom_err_set(err, rc, "%s", verdict.text);
	return iocom_err_set(err, rc, "what it has open could not be checked: %s", strerror(-rc));
}
