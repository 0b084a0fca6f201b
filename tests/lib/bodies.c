/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/bodies.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void *body_buffer(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memset(p, 7, bytes);
	return p;
}

int body_read(void *body)
{
	struct body *b = body;
	char *buffer = body_buffer(b->block);
	int fd = open(b->path, O_RDONLY | b->flags);

	if (fd < 0 || !buffer)
		return 1;
	for (size_t at = 0; at < b->bytes; at += b->block)
		if (pread(fd, buffer, b->block, b->from + (off_t)at) != (ssize_t)b->block)
			return 1;
	return 0;
}

int body_write(void *body)
{
	struct body *b = body;
	char *buffer = body_buffer(b->block);
	int fd = open(b->path, O_WRONLY | O_CREAT | b->flags, 0644);

	if (fd < 0 || !buffer)
		return 1;
	for (size_t at = 0; at < b->bytes; at += b->block)
		if (pwrite(fd, buffer, b->block, b->from + (off_t)(at + at / b->block * b->gap)) !=
		    (ssize_t)b->block)
			return 1;
	return b->sync ? fsync(fd) : 0;
}

static char *map_cold(const struct body *b)
{
	int fd = open(b->path, O_RDONLY);
	char *map = mmap(NULL, b->bytes, PROT_READ, MAP_SHARED, fd, b->from);

	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

int body_mmap_read(void *body)
{
	struct body *b = body;
	volatile char *map = map_cold(b);
	unsigned sum = 0;

	if (!map)
		return 1;
	for (size_t at = 0; at < b->bytes; at += 4096)
		sum += (unsigned char)map[at];
	return sum == 1;
}

static int write_mapping(const struct body *b, const char *map, int fd)
{
	if (!map || fd < 0)
		return 1;
	for (size_t at = 0; at < b->bytes; at += b->block)
		if (write(fd, map + at, b->block) != (ssize_t)b->block)
			return 1;
	return 0;
}

int body_mmap_to_memory(void *body)
{
	struct body *b = body;

	return write_mapping(b, map_cold(b), memfd_create("sink", 0));
}

int body_mmap_to_direct(void *body)
{
	struct body *b = body;

	return write_mapping(b, map_cold(b), open(b->to, O_WRONLY | O_DIRECT));
}

int body_direct_to_mmap(void *body)
{
	struct body *b = body;
	int from = open(b->path, O_RDONLY | O_DIRECT), to = open(b->to, O_RDWR);
	char *map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);

	if (from < 0 || to < 0 || map == MAP_FAILED)
		return 1;
	for (size_t at = 0; at < b->bytes; at += b->block)
		if (pread(from, map + at, b->block, (off_t)at) != (ssize_t)b->block)
			return 1;
	return 0;
}

/* Waits until each page of FD's first BYTES is in memory. Returns 1 after 20 s. */
static int wait_resident(int fd, size_t bytes)
{
	unsigned char pages[bytes / 4096];
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	size_t missing = 1;

	if (map == MAP_FAILED)
		return 1;
	for (int n = 0; missing && n < 2000; n++) {
		usleep(10000);
		if (mincore(map, bytes, pages))
			return 1;
		missing = 0;
		for (size_t i = 0; i < bytes / 4096; i++)
			missing += !(pages[i] & 1);
	}
	return missing != 0;
}

int body_fadvise(void *body)
{
	struct body *b = body;
	int fd = open(b->path, O_RDONLY);

	for (size_t at = 0; at < b->bytes; at += b->block)
		if (posix_fadvise(fd, (off_t)at, (off_t)b->block, POSIX_FADV_WILLNEED))
			return 1;
	return wait_resident(fd, b->bytes);
}

int body_readahead(void *body)
{
	struct body *b = body;
	int fd = open(b->path, O_RDONLY);

	for (size_t at = 0; at < b->bytes; at += b->block)
		if (readahead(fd, (off_t)at, b->block))
			return 1;
	return wait_resident(fd, b->bytes);
}

int body_mmap_store(void *body)
{
	struct body *b = body;
	int fd = open(b->path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	char *map;

	if (fd < 0 || ftruncate(fd, (off_t)b->bytes))
		return 1;
	map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	for (size_t at = 0; at < b->bytes; at += 4096)
		map[at] = 1;
	return msync(map, b->bytes, MS_SYNC);
}

double body_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void body_burn(double until_ms)
{
	while (body_cpu_ms() < until_ms)
		;
}
