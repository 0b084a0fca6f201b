/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often caches are dropped before a page that stays is accepted, and the pause between. */
#define DROPS_MAX     10
#define DROP_AGAIN_US 50000

int rig_shell(const char *format, ...)
{
	char command[1024], quiet[1100];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null 2>&1 </dev/null", command);
	status = system(quiet);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void take_down(const struct rig *rig)
{
	rig_shell("umount %s || umount -l %s", rig->mount, rig->mount);
	rig_shell("umount -l %s/tmpfs", rig->dir); /* mounted by some tests */
	rig_shell("[ ! -e /dev/mapper/%s ] || dmsetup remove --noudevsync --retry %s", rig->name,
		  rig->name);
	rig_shell("[ ! -d /sys/block/md%d/md ] || mdadm --stop /dev/md%d", rig->md, rig->md);
	if (rig->disk[0])
		rig_shell("losetup -d /dev/%s", rig->disk);
	rig_shell("rm -rf %s", rig->dir);
	for (int i = 0; i < 2; i++)
		rig_shell("ip netns del %s", rig->netns[i]);
	if (rig->limits[0])
		rig_shell("[ ! -d %s ] || rmdir %s || { sleep 0.2; rmdir %s; }", rig->limits,
			  rig->limits, rig->limits);
	if (rig->cgroup[0])
		rig_shell("echo 1 > %s/cgroup.kill; sleep 0.05; find %s -depth -type d -delete",
			  rig->cgroup, rig->cgroup);
}

/* Closing the last copy of it wakes the guard; -1: none. */
static int guard_end = -1;

/* Every child calls this: a child that a failed test leaves behind must not delay the guard. */
static void let_go(void)
{
	if (guard_end >= 0)
		close(guard_end);
	guard_end = -1;
}

/* The guard sleeps until the test closes its end of the pipe or dies. */
static int start_guard(struct rig *rig)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	rig->guard = fork();
	if (rig->guard < 0)
		return -1;
	if (!rig->guard) {
		close(ends[1]);
		setsid();
		signal(SIGPIPE, SIG_IGN);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		take_down(rig);
		_exit(0);
	}
	close(ends[0]);
	rig->guard_fd = guard_end = ends[1];
	pthread_atfork(NULL, NULL, let_go);
	return 0;
}

static int fail(struct rig *rig, const char *why)
{
	snprintf(rig->why, sizeof(rig->why), "%s", why);
	if (rig->guard > 0)
		rig_down(rig);
	return -1;
}

static int find_free_loop(struct rig *rig)
{
	FILE *pipe = popen("losetup -f", "re");
	char line[64] = "";

	if (!pipe)
		return -1;
	if (!fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	pclose(pipe);
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "/dev/loop", 9) != 0)
		return -1;
	snprintf(rig->disk, sizeof(rig->disk), "%.31s", line + 5);
	return 0;
}

static int find_cgroup2(struct rig *rig)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		if (statfs(mounts[i], &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		snprintf(rig->cgroup, sizeof(rig->cgroup), "%s/iocom-rig-%d", mounts[i],
			 (int)getpid());
		return 0;
	}
	return -1;
}

/* Finds version 1's own hierarchy, or the cgroup2 directory if that has the controller. */
static void find_limits(struct rig *rig)
{
	static const char v1[] = "/sys/fs/cgroup/blkio";

	if (!rig_shell("test -e %s/blkio.throttle.read_bps_device", v1))
		snprintf(rig->limits, sizeof(rig->limits), "%s/iocom-rig-%d", v1, (int)getpid());
	else if (!rig_shell("grep -w io $(dirname %s)/cgroup.controllers", rig->cgroup))
		snprintf(rig->limits, sizeof(rig->limits), "%.110s/limits", rig->cgroup);
}

static int make_disk(struct rig *rig, unsigned megabytes)
{
	return rig_shell("truncate -s %uM %s/image && losetup /dev/%s %s/image && "
			 "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/%s && "
			 "mkdir %s && mount /dev/%s %s",
			 megabytes, rig->dir, rig->disk, rig->dir, rig->disk, rig->mount, rig->disk,
			 rig->mount);
}

static int make_network(struct rig *rig)
{
	for (int i = 0; i < 2; i++) {
		if (rig_shell("ip netns add %s && ip -n %s link set lo up", rig->netns[i],
			      rig->netns[i]))
			return -1;
	}
	if (rig_shell("ip -n %s link add rig0 type veth peer name rig1 && "
		      "ip -n %s link set rig1 netns %s name rig0",
		      rig->netns[0], rig->netns[0], rig->netns[1]))
		return -1;
	for (int i = 0; i < 2; i++) {
		if (rig_shell("ip -n %s addr add %s/24 dev rig0 && ip -n %s link set rig0 up",
			      rig->netns[i], rig->address[i], rig->netns[i]))
			return -1;
	}
	return 0;
}

/*
 * Locks all pages of this program and its libraries in memory, whoever drops caches or reclaims
 * what was not used lately: a child's faults on them would be measured. (The sanitizers' mlock does
 * nothing.)
 */
static void lock_program(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], mode;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %c", &from, &to, &mode) == 3 && mode == 'r' &&
		    strchr(line, '/'))
			syscall(SYS_mlock, from, to - from);
	if (maps)
		fclose(maps);
}

int rig_up(struct rig *rig, unsigned megabytes)
{
	memset(rig, 0, sizeof(*rig));
	rig->guard = -1;
	if (geteuid() != 0)
		return fail(rig, "needs root");
	if (find_free_loop(rig))
		return fail(rig, "no free loop device");
	if (find_cgroup2(rig))
		return fail(rig, "no cgroup2 mount");
	find_limits(rig);
	snprintf(rig->name, sizeof(rig->name), "iocom-rig-%d", (int)getpid());
	rig->md = 200 + (int)(getpid() % 200);
	strcpy(rig->dir, "/var/tmp/iocom-rig-XXXXXX");
	if (!mkdtemp(rig->dir))
		return fail(rig, "cannot make a directory in /var/tmp");
	snprintf(rig->mount, sizeof(rig->mount), "%s/mnt", rig->dir);
	for (int i = 0; i < 2; i++) {
		snprintf(rig->netns[i], sizeof(rig->netns[i]), "iocom-rig-%d-%d", (int)getpid(), i);
		snprintf(rig->address[i], sizeof(rig->address[i]), "10.213.7.%d", i + 1);
	}
	if (start_guard(rig))
		return fail(rig, "cannot start the guard");
	if (mkdir(rig->cgroup, 0755))
		return fail(rig, "cannot make a cgroup2 directory");
	if (make_disk(rig, megabytes))
		return fail(rig, "cannot make an ext4 on a loop device");
	if (make_network(rig))
		return fail(rig, "cannot make network namespaces");
	lock_program();
	return 0;
}

void rig_down(struct rig *rig)
{
	if (rig->guard <= 0)
		return;
	close(rig->guard_fd);
	guard_end = -1;
	waitpid(rig->guard, NULL, 0);
	rig->guard = -1;
}

pid_t rig_start(int (*body)(void *argument), void *argument)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(body(argument) ? 1 : 0);
}

int rig_wait(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

int rig_enter_cgroup(const char *path, pid_t pid)
{
	char file[256];
	FILE *procs;
	int rc;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	procs = fopen(file, "we");
	if (!procs)
		return -1;
	rc = fprintf(procs, "%d\n", (int)pid) < 0;
	return fclose(procs) || rc ? -1 : 0;
}

int rig_limit(const struct rig *rig, bool write, unsigned long bytes_per_s)
{
	char device[64] = "";
	const char *verb = write ? "write" : "read";
	FILE *file;

	if (!rig->limits[0])
		return -1;
	snprintf(device, sizeof(device), "/sys/block/%.19s/dev", rig->disk);
	file = fopen(device, "re");
	if (!file || !fgets(device, sizeof(device), file))
		device[0] = '\0';
	if (file)
		fclose(file);
	device[strcspn(device, "\n")] = '\0';
	if (strncmp(rig->limits, rig->cgroup, strlen(rig->cgroup)) != 0)
		return rig_shell("mkdir -p %s && echo %s %lu > %s/blkio.throttle.%s_bps_device",
				 rig->limits, device, bytes_per_s, rig->limits, verb);
	return rig_shell("echo +io > $(dirname %s)/cgroup.subtree_control && "
			 "echo +io > %s/cgroup.subtree_control && mkdir -p %s && "
			 "echo %s %cbps=%lu > %s/io.max",
			 rig->cgroup, rig->cgroup, rig->limits, device, verb[0], bytes_per_s,
			 rig->limits);
}

int rig_enter_netns(const char *name)
{
	char path[128];
	int fd, rc;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = setns(fd, CLONE_NEWNET);
	close(fd);
	return rc;
}

static void drop_caches(void)
{
	int fd;

	sync();
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "1", 1) != 1)
		perror("drop_caches");
	close(fd);
}

/* Returns how many of the pages of the file FD are in memory. */
static size_t pages_resident(int fd)
{
	struct stat st;
	size_t pages, resident = 0;
	unsigned char *state;
	void *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	pages = ((size_t)st.st_size + 4095) / 4096;
	state = calloc(pages, 1);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (state && map != MAP_FAILED && !mincore(map, (size_t)st.st_size, state))
		for (size_t i = 0; i < pages; i++)
			resident += state[i] & 1;
	if (map != MAP_FAILED)
		munmap(map, (size_t)st.st_size);
	free(state);
	return resident;
}

/* Returns true and a file of DIRECTORY of which a page is in memory. */
static bool find_resident(const char *directory, char *name, size_t size)
{
	DIR *files = opendir(directory);
	struct dirent *entry;
	bool found = false;

	while (files && !found && (entry = readdir(files))) {
		int fd = openat(dirfd(files), entry->d_name,
				O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			continue;
		found = pages_resident(fd) > 0;
		close(fd);
		snprintf(name, size, "%s", entry->d_name);
	}
	if (files)
		closedir(files);
	return found;
}

void rig_drop_caches(const struct rig *rig)
{
	char name[256];

	for (int n = 0; n < DROPS_MAX; n++) {
		drop_caches();
		if (!find_resident(rig->mount, name, sizeof(name)))
			return;
		usleep(DROP_AGAIN_US);
	}
	printf("# pages of %s stay in memory\n", name);
}
