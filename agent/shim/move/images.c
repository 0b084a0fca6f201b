/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See images.h. */
#include "agent/shim/move/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/memory_mount.h"

/* What the kernel could give to programs now, in bytes; UINT64_MAX: it does not say. */
static uint64_t images_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kb;
	char line[128];
	uint64_t bytes = UINT64_MAX;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			bytes = kb * 1024;
	if (file)
		fclose(file);
	return bytes;
}

int images_make(struct images *images, uint64_t bytes, struct iocom_err *err)
{
	uint64_t available = images_available();
	char size[24];

	*images = (struct images){.fd = -1};
	if (available < IMAGES_SPARE_BYTES || bytes > available - IMAGES_SPARE_BYTES)
		return iocom_err_set(err, -ENOSPC,
				     "it needs %" PRIu64
				     " MiB of memory for its images, and %" PRIu64 " MiB are free",
				     bytes >> 20, available >> 20);
	snprintf(size, sizeof(size), "%" PRIu64, bytes);
	images->fd = memory_mount(size, "0700");
	if (images->fd < 0)
		return iocom_err_set(err, images->fd, "cannot make room for its images: %s",
				     strerror(-images->fd));
	snprintf(images->path, sizeof(images->path), "/proc/%d/fd/%d", getpid(), images->fd);
	return 0;
}

int images_size(const struct images *images, uint64_t *bytes, uint64_t *files)
{
	int fd = openat(images->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat st;

	*bytes = *files = 0;
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (!fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode)) {
			*bytes += (uint64_t)st.st_size;
			++*files;
		}
	closedir(dir);
	return 0;
}

void images_free(struct images *images)
{
	if (images->fd >= 0)
		close(images->fd);
	images->fd = -1;
}
