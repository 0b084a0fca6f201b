/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job whose every byte is known beforehand, and whose every run leaves a line:
 *
 *   chaosjob MARKS ID LINES MS [echo] [child]
 *
 * Appends "ID PID" to the file MARKS, then writes LINES lines "ID:NUMBER", ten
 * digits each, spread over MS milliseconds; `echo` copies the input behind them;
 * `child` leaves a process in a session of its own that never ends by itself.
 * Exits with ID modulo 8.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE	22
#define PORTION 256 /* lines at once */

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

static int leave_mark(const char *marks, unsigned id)
{
	int fd = open(marks, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	char line[64];
	int n = snprintf(line, sizeof(line), "%u %d\n", id, (int)getpid());
	int rc = fd < 0 || write(fd, line, (size_t)n) != n;

	if (fd >= 0)
		close(fd);
	return rc;
}

/* Holds none of the job's pipes, listens to no signal of the job's group. */
static void leave_child(void)
{
	if (fork())
		return;
	setsid();
	close_range(0, ~0U, 0);
	for (;;)
		pause();
}

static int tell(unsigned id, unsigned lines, unsigned ms)
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
	unsigned id, lines, ms;

	if (argc < 5) {
		fprintf(stderr, "usage: chaosjob MARKS ID LINES MS [echo] [child]\n");
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
		if (!strcmp(argv[i], "child"))
			leave_child();
	if (tell(id, lines, ms))
		return 98;
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], "echo") && echo())
			return 97;
	return (int)(id % 8);
}
