/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Real work of a known size, for tests and the demo:
 *
 *   work io FILE REQUESTS KIB SEED   reads REQUESTS blocks of KIB KiB at random
 *                                    aligned offsets of FILE with O_DIRECT
 *   work make FILE MIB               writes FILE (buffered, then fsync)
 *   work cpu SECONDS                 computes until it has used SECONDS of CPU
 *   work mem MIB SECONDS             holds MIB MiB touched while it computes
 *   work hold MIB SECONDS            holds MIB MiB touched, asleep
 *   work churn MIB ROUNDS            touches MIB MiB, all of it ROUNDS times
 *   work cold FILE...                removes what is cached of the files
 *
 * With $WORK_STOP set, io and cpu repeat until the file of that name exists.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "work: %s: %s\n", what, strerror(errno));
	return 1;
}

static int stop_wanted(void)
{
	const char *name = getenv("WORK_STOP");

	return !name || !access(name, F_OK);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void burn(double seconds)
{
	volatile double x = 1;

	while (cpu_seconds() < seconds)
		for (int i = 0; i < 20000; i++)
			x = x * 1.0000001 + 1e-9;
}

static int work_io(const char *file, long requests, size_t size, uint64_t seed)
{
	int fd = open(file, O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct stat st;
	void *buffer;

	if (fd < 0 || fstat(fd, &st))
		return fail(file);
	if ((size_t)st.st_size < size || posix_memalign(&buffer, 4096, size))
		return fail("buffer");
	do {
		for (long i = 0; i < requests; i++) {
			uint64_t blocks = (uint64_t)st.st_size / size;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			if (pread(fd, buffer, size, (off_t)((seed >> 20) % blocks * size)) !=
			    (ssize_t)size)
				return fail(file);
		}
	} while (!stop_wanted());
	free(buffer);
	return close(fd) ? fail(file) : 0;
}

static int work_make(const char *file, size_t mib)
{
	static char block[1 << 20];
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return fail(file);
	memset(block, 'w', sizeof(block));
	for (size_t i = 0; i < mib; i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return fail(file);
	if (fsync(fd) || close(fd))
		return fail(file);
	return 0;
}

static int work_memory(size_t mib, double seconds, int busy)
{
	char *memory = malloc(mib << 20);

	if (!memory)
		return fail("memory");
	for (size_t i = 0; i < mib << 20; i += 4096)
		memory[i] = (char)i;
	if (busy)
		burn(seconds);
	else
		usleep((useconds_t)(seconds * 1e6));
	for (size_t i = 0; i < mib << 20; i += 4096)
		if (memory[i] != (char)i)
			return 3;
	free(memory);
	return 0;
}

static int work_churn(size_t mib, long rounds)
{
	volatile char *memory = malloc(mib << 20);

	if (!memory)
		return fail("memory");
	for (long round = 0; round < rounds; round++)
		for (size_t i = 0; i < mib << 20; i += 4096)
			memory[i] = (char)(memory[i] + round);
	free((void *)memory);
	return 0;
}

static int work_cold(char **files)
{
	for (; *files; files++) {
		int fd = open(*files, O_RDONLY | O_CLOEXEC);

		/* Dirty pages stay in memory, so they must be written first. */
		if (fd < 0 || fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			return fail(*files);
		close(fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "io"))
		return work_io(argv[2], atol(argv[3]), (size_t)atol(argv[4]) << 10,
			       strtoull(argv[5], NULL, 0));
	if (argc == 4 && !strcmp(argv[1], "make"))
		return work_make(argv[2], (size_t)atol(argv[3]));
	if (argc == 4 && (!strcmp(argv[1], "mem") || !strcmp(argv[1], "hold")))
		return work_memory((size_t)atol(argv[2]), atof(argv[3]), argv[1][0] == 'm');
	if (argc == 4 && !strcmp(argv[1], "churn"))
		return work_churn((size_t)atol(argv[2]), atol(argv[3]));
	if (argc >= 3 && !strcmp(argv[1], "cold"))
		return work_cold(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "cpu")) {
		double chunk = atof(argv[2]);

		for (double until = chunk;; until += chunk) {
			burn(until);
			if (stop_wanted())
				return 0;
		}
	}
	fprintf(stderr,
		"usage: work io FILE REQUESTS KIB SEED | make FILE MIB | cpu SECONDS |\n"
		"       mem MIB SECONDS | hold MIB SECONDS | churn MIB ROUNDS | cold FILE...\n");
	return 2;
}
