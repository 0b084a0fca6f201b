/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that writes known bytes, and leaves a line for each run:
 *
 *   chaosjob MARKS ID LINES MS [echo] [child] [alone]
 *
 * It appends "ID PID" to the file MARKS, then writes LINES lines "ID:NUMBER", ten digits each,
 * spread over MS milliseconds. `echo` copies the input after them. `child` leaves a process in a
 * session of its own that never ends by itself. `alone` notes in MARKS.attempts whether another
 * run of ID lives ("ID PID NS begin", or "beside") and when this one last wrote ("beat"), on
 * CLOCK_BOOTTIME. It exits with ID modulo 8.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LINE	22
#define PORTION 256 /* lines written at once */

static int write_all(const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(STDOUT_FILENO, data, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		length -= (size_t)n;
	}
	return 0;
}

static int append(const char *path, const char *line, size_t length)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	int rc = fd < 0 || write(fd, line, length) != (ssize_t)length;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int leave_mark(const char *marks, unsigned id)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%u %d\n", id, (int)getpid());

	return append(marks, line, (size_t)n);
}

static int attempt(const char *marks, unsigned id, const char *what)
{
	char path[4096], line[96];
	struct timespec now;
	int n;

	clock_gettime(CLOCK_BOOTTIME, &now);
	n = snprintf(line, sizeof(line), "%u %d %lld %s\n", id, (int)getpid(),
		     (long long)now.tv_sec * 1000000000 + now.tv_nsec, what);
	snprintf(path, sizeof(path), "%s.attempts", marks);
	return append(path, line, (size_t)n);
}

/* The kernel drops the lock when the last process of this run has ended. */
static int begin_alone(const char *marks, unsigned id)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s.lock.%u", marks, id);
	fd = open(path, O_RDWR | O_CREAT, 0666);
	if (fd < 0)
		return -1;
	return attempt(marks, id, flock(fd, LOCK_EX | LOCK_NB) ? "beside" : "begin");
}

/* This process holds none of the job's pipes and gets no signal to the job's group. */
static void leave_child(void)
{
	if (fork())
		return;
	setsid();
	close_range(0, 2, 0);
	for (;;)
		pause();
}

/* Each portion is noted in ATTEMPTS, unless it is NULL. */
static int tell(unsigned id, unsigned lines, unsigned ms, const char *attempts)
{
	unsigned portions = (lines + PORTION - 1) / PORTION;
	char text[PORTION * LINE + 1];

	for (unsigned at = 0; at < lines; at += PORTION) {
		unsigned n = lines - at < PORTION ? lines - at : PORTION;
		unsigned long us = 1000ul * ms / portions;

		for (unsigned i = 0; i < n; i++)
			snprintf(text + i * LINE, LINE + 1, "%010u:%010u\n", id, at + i);
		if (write_all(text, (size_t)n * LINE))
			return -1;
		usleep((useconds_t)us);
		if (attempts && attempt(attempts, id, "beat"))
			return -1;
	}
	return 0;
}

static int echo(void)
{
	char piece[65536];
	ssize_t n;

	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0)
		if (write_all(piece, (size_t)n))
			return -1;
	return n < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	const char *attempts = NULL;
	unsigned id, lines, ms;

	if (argc < 5) {
		fprintf(stderr, "usage: chaosjob MARKS ID LINES MS [echo] [child] [alone]\n");
		return 2;
	}
	id = (unsigned)strtoul(argv[2], NULL, 10);
	lines = (unsigned)strtoul(argv[3], NULL, 10);
	ms = (unsigned)strtoul(argv[4], NULL, 10);
	if (leave_mark(argv[1], id)) {
		fprintf(stderr, "chaosjob: %s: %s\n", argv[1], strerror(errno));
		return 99;
	}
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], "alone"))
			attempts = argv[1];
	if (attempts && begin_alone(attempts, id))
		return 96;
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], "child"))
			leave_child();
	if (tell(id, lines, ms, attempts))
		return 98;
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], "echo") && echo())
			return 97;
	return (int)(id % 8);
}
