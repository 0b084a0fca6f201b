/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Runs a command and prints what it really used, as one line of JSON, by means that iocom does not
 * use: wait4 for the computation, the disk's own statistics for the bytes, and a look at the
 * processes every 2 ms for the memory.
 *
 *   truth DIRECTORY COMMAND...     DIRECTORY is on the disk
 *
 * What the command wrote is on the disk before the statistics are read.  memory_kb is the most that
 * its processes had at a time, where pages of files count once: the sum of their other pages and
 * the most that one of them had of files; and no less than the kernel's mark of one process
 * (ru_maxrss). The mark begins with this program's own pages, which is why it is small and in C.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_US	  2000
#define DEPTH_MAX 16

struct memory {
	uint64_t own_kb, files_kb;
};

struct disk {
	uint64_t read_sectors, written_sectors;
};

static void truth_fail(const char *what, const char *name)
{
	fprintf(stderr, "truth: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

static struct disk disk_of(const char *directory)
{
	struct disk d = {0};
	unsigned major, minor;
	char line[512];
	struct stat st;
	FILE *file;

	if (stat(directory, &st))
		truth_fail("cannot look at", directory);
	file = fopen("/proc/diskstats", "re");
	if (!file)
		truth_fail("cannot read", "/proc/diskstats");
	while (fgets(line, sizeof(line), file)) {
		unsigned long long read, written;

		if (sscanf(line, "%u %u %*s %*u %*u %llu %*u %*u %*u %llu", &major, &minor, &read,
			   &written) == 4 &&
		    makedev(major, minor) == st.st_dev)
			d = (struct disk){read, written};
	}
	fclose(file);
	return d;
}

static void disk_sync(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syncfs(fd))
		truth_fail("cannot sync", directory);
	close(fd);
}

/* Adds the memory of process PID and those below it. */
static void memory_add(int pid, int depth, struct memory *m)
{
	static const uint64_t page_kb = 4;
	unsigned long long resident = 0, shared = 0;
	char name[64];
	FILE *file;
	int child;

	snprintf(name, sizeof(name), "/proc/%d/statm", pid);
	file = fopen(name, "re");
	if (file) {
		if (fscanf(file, "%*u %llu %llu", &resident, &shared) == 2 && resident >= shared) {
			m->own_kb += (resident - shared) * page_kb;
			if (shared * page_kb > m->files_kb)
				m->files_kb = shared * page_kb;
		}
		fclose(file);
	}
	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", pid, pid);
	file = depth < DEPTH_MAX ? fopen(name, "re") : NULL;
	while (file && fscanf(file, "%d", &child) == 1)
		memory_add(child, depth + 1, m);
	if (file)
		fclose(file);
}

static uint64_t watch(pid_t pid, int *status, struct rusage *usage)
{
	uint64_t most = 0;

	while (wait4(pid, status, WNOHANG, usage) == 0) {
		struct memory m = {0};

		memory_add(pid, 0, &m);
		if (m.own_kb + m.files_kb > most)
			most = m.own_kb + m.files_kb;
		usleep(LOOK_US);
	}
	return most > (uint64_t)usage->ru_maxrss ? most : (uint64_t)usage->ru_maxrss;
}

static double milliseconds(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

int main(int argc, char **argv)
{
	struct disk before, after;
	struct rusage usage;
	FILE *output;
	uint64_t memory_kb;
	int status, out;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: truth DIRECTORY COMMAND...\n");
		return 2;
	}
	output = tmpfile();
	if (!output)
		truth_fail("cannot make a file for", "the output");
	out = fileno(output);
	disk_sync(argv[1]);
	before = disk_of(argv[1]);
	pid = fork();
	if (pid == 0) {
		dup2(out, 1); /* some programs do less for /dev/null */
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0)
		truth_fail("cannot run", argv[2]);
	memory_kb = watch(pid, &status, &usage);
	disk_sync(argv[1]);
	after = disk_of(argv[1]);
	printf("{\"status\": %d, \"cpu_ms\": %.3f, \"read_mb\": %.6f, \"written_mb\": %.6f,"
	       " \"memory_mb\": %.6f}\n",
	       status, milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
	       (double)(after.read_sectors - before.read_sectors) * 512 / 1e6,
	       (double)(after.written_sectors - before.written_sectors) * 512 / 1e6,
	       (double)memory_kb * 1024 / 1e6);
	return 0;
}
