// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The emulated cluster's disk: an nbdkit plugin that keeps its data in memory and
 * serves one request at a time, in order of arrival, each in
 *
 *	service time = bytes / speed
 *
 * so that the block device above it has a real service time, utilisation and queue.
 * nbdkit's own rate filter is a token bucket: a request that comes after a pause
 * passes in no time, so a disk asked for half of its bandwidth looks idle.
 *
 *	nbdkit -t 1 disk.so size=1000000000 speed-file=PATH
 *
 * PATH holds the speed in MB/s (10^6 bytes) and is read for each request: the disk can
 * be formatted at full speed (0) and slowed down then.  Flushes, trims and zeroing
 * cost nothing.  PATH.served holds the sum of the service times so far, in ns: what a clock
 * shows on a busy machine is more than that.
 *
 * PATH.turnaround holds two numbers, ns and ns per byte: how long a request of so many bytes is
 * under way through FUSE and the loop device, from the end of the one before it.  That is our own
 * path, not idleness of the disk, so a request counts as having come so much earlier, and a busy
 * disk keeps its exact speed.  The path takes 0.2 to 1.3 ms, depending on the machine; disk.sh
 * measures it.
 */
#define NBDKIT_API_VERSION 2
#define THREAD_MODEL	   NBDKIT_THREAD_MODEL_SERIALIZE_ALL_REQUESTS

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <nbdkit-plugin.h>

#define TURNAROUND_MOST_NS 5e6

/* Each process has one disk, because nbdkit's callbacks carry no context before open(). */
static struct {
	int64_t size_bytes;
	char *speed_path;
	int speed_fd;
	int served_fd;
	int turnaround_fd;
	unsigned char *data;
	int64_t free_at_ns; /* when the server finishes what it has accepted */
	int64_t served_ns;
} disk = {.speed_fd = -1, .served_fd = -1, .turnaround_fd = -1};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Returns MB/s; 0: as fast as possible, also if the file cannot be read. */
static double disk_speed(void)
{
	char text[32];
	ssize_t n = pread(disk.speed_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtod(text, NULL);
}

/* Returns how much earlier than it came a request of BYTES was made. */
static int64_t disk_turnaround_ns(uint32_t bytes)
{
	char text[64], *rest;
	ssize_t n = pread(disk.turnaround_fd, text, sizeof(text) - 1, 0);
	double ns;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	ns = strtod(text, &rest);
	ns += strtod(rest, NULL) * bytes;
	return (int64_t)(ns < 0 ? 0 : ns > TURNAROUND_MOST_NS ? TURNAROUND_MOST_NS : ns);
}

/* As long as any number, so that a shorter one leaves nothing behind. */
static void disk_tell(void)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%020lld\n", (long long)disk.served_ns);

	(void)!pwrite(disk.served_fd, text, n, 0);
}

static void disk_serve(uint32_t bytes)
{
	double speed_mb_per_s = disk_speed();
	int64_t start = now_ns() - disk_turnaround_ns(bytes), service_ns;
	struct timespec end;

	if (speed_mb_per_s <= 0)
		return;
	if (start < disk.free_at_ns)
		start = disk.free_at_ns;
	service_ns = (int64_t)(bytes * 1000.0 / speed_mb_per_s);
	disk.free_at_ns = start + service_ns;
	disk.served_ns += service_ns;
	disk_tell();
	end.tv_sec = disk.free_at_ns / 1000000000;
	end.tv_nsec = disk.free_at_ns % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static int disk_config(const char *key, const char *value)
{
	if (!strcmp(key, "size")) {
		disk.size_bytes = nbdkit_parse_size(value);
		return disk.size_bytes < 0 ? -1 : 0;
	}
	if (!strcmp(key, "speed-file")) {
		free(disk.speed_path);
		disk.speed_path = nbdkit_absolute_path(value);
		return disk.speed_path ? 0 : -1;
	}
	nbdkit_error("unknown parameter '%s'", key);
	return -1;
}

static int disk_config_complete(void)
{
	if (disk.size_bytes > 0 && disk.speed_path)
		return 0;
	nbdkit_error("size=BYTES and speed-file=PATH are needed");
	return -1;
}

static int disk_get_ready(void)
{
	char served[PATH_MAX], turnaround[PATH_MAX];

	snprintf(served, sizeof(served), "%s.served", disk.speed_path);
	snprintf(turnaround, sizeof(turnaround), "%s.turnaround", disk.speed_path);
	disk.speed_fd = open(disk.speed_path, O_RDONLY | O_CLOEXEC);
	disk.served_fd = open(served, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	disk.turnaround_fd = open(turnaround, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	if (disk.speed_fd < 0 || disk.served_fd < 0 || disk.turnaround_fd < 0) {
		nbdkit_error("cannot open %s: %m", disk.speed_fd < 0	? disk.speed_path
						   : disk.served_fd < 0 ? served
									: turnaround);
		return -1;
	}
	disk_tell();
	disk.data = mmap(NULL, disk.size_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (disk.data == MAP_FAILED) {
		disk.data = NULL;
		nbdkit_error("no address space for %lld bytes: %m", (long long)disk.size_bytes);
		return -1;
	}
	return 0;
}

static void disk_unload(void)
{
	if (disk.data)
		munmap(disk.data, disk.size_bytes);
	if (disk.speed_fd >= 0)
		close(disk.speed_fd);
	if (disk.served_fd >= 0)
		close(disk.served_fd);
	if (disk.turnaround_fd >= 0)
		close(disk.turnaround_fd);
	free(disk.speed_path);
}

static void *disk_open(int readonly)
{
	(void)readonly;
	/* The default of 50 us would be 1 % of a typical service time. */
	prctl(PR_SET_TIMERSLACK, 1000);
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t disk_get_size(void *handle)
{
	(void)handle;
	return disk.size_bytes;
}

static int disk_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	(void)flags;
	memcpy(buf, disk.data + offset, count);
	disk_serve(count);
	return 0;
}

static int disk_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	(void)handle;
	(void)flags;
	memcpy(disk.data + offset, buf, count);
	disk_serve(count);
	return 0;
}

static int disk_flush(void *handle, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return 0;
}

/* Gives whole pages back to the machine, so that a trimmed disk costs no memory. */
static int disk_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t first = (offset + page - 1) / page * page;
	uint64_t last = (offset + count) / page * page;

	(void)handle;
	(void)flags;
	if (last <= first) {
		memset(disk.data + offset, 0, count);
		return 0;
	}
	memset(disk.data + offset, 0, first - offset);
	memset(disk.data + last, 0, offset + count - last);
	return madvise(disk.data + first, last - first, MADV_DONTNEED);
}

/* clang-format off */
static struct nbdkit_plugin plugin = {
	.name = "iocom-disk",
	.longname = "iocom testbed disk",
	.description = "memory behind a server of one request at a time",
	.config_help = "size=BYTES       size of the disk\n"
		       "speed-file=PATH  file with its speed in MB/s, 0: unlimited",
	.unload = disk_unload,
	.config = disk_config,
	.config_complete = disk_config_complete,
	.get_ready = disk_get_ready,
	.open = disk_open,
	.get_size = disk_get_size,
	.pread = disk_pread,
	.pwrite = disk_pwrite,
	.flush = disk_flush,
	.trim = disk_zero,
	.zero = disk_zero,
};
/* clang-format on */

NBDKIT_REGISTER_PLUGIN(plugin)
