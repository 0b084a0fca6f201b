/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Measures from one small process how long commands take; the stopwatch of bench-remote.
 *
 *   laps ROUNDS CMD... [--- CMD...]...   each command once a round: "index ns status" a lap
 *   laps -p PARALLEL ROUNDS CMD...       PARALLEL commands at once: "seconds failures" of all
 *   laps -s PORT                         sends each byte back (one connection each)
 *   laps -r ADDRESS PORT ROUNDS          the round trip of one byte: ns a line
 *   laps -e TEXT ROUNDS CMD...           TEXT to CMD's input until a byte of its output: ns
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 8

extern char **environ;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int usage(void)
{
	fputs("usage: laps [-p PARALLEL | -e TEXT] ROUNDS COMMAND... [--- COMMAND...]...\n"
	      "       laps -s PORT | -r ADDRESS PORT ROUNDS\n",
	      stderr);
	return 2;
}

/* Drops the commands' output, because laps prints numbers. */
static posix_spawn_file_actions_t silent;

/* Returns the status that a shell would return. */
static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t start(char **argv)
{
	pid_t pid;
	int e = posix_spawnp(&pid, argv[0], &silent, NULL, argv, environ);

	if (!e)
		return pid;
	fprintf(stderr, "laps: %s: %s\n", argv[0], strerror(e));
	exit(1);
}

static int in_turn(int rounds, char **words)
{
	char **commands[COMMANDS_MAX] = {words};
	int n = 1;

	for (char **at = words; *at; at++) {
		if (strcmp(*at, "---") != 0)
			continue;
		if (n == COMMANDS_MAX)
			return usage();
		*at = NULL;
		commands[n++] = at + 1;
	}
	for (int i = 0; i < rounds; i++) {
		for (int c = 0; c < n; c++) {
			uint64_t began = now_ns();
			pid_t pid = start(commands[c]);
			int status;

			waitpid(pid, &status, 0);
			printf("%d %llu %d\n", c, (unsigned long long)(now_ns() - began),
			       status_of(status));
		}
	}
	return 0;
}

static int at_once(int parallel, int rounds, char **argv)
{
	int started = 0, running = 0, failures = 0, status;
	uint64_t began = now_ns();

	while (started < rounds || running) {
		if (started < rounds && running < parallel) {
			start(argv);
			started++;
			running++;
			continue;
		}
		if (wait(&status) < 0)
			return 1;
		running--;
		failures += status != 0;
	}
	printf("%.6f %d\n", (double)(now_ns() - began) / 1e9, failures);
	return 0;
}

static void answer(int fd)
{
	char byte;

	while (read(fd, &byte, 1) == 1)
		if (write(fd, &byte, 1) != 1)
			break;
	close(fd);
}

static int serve(int port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&sa, sizeof(sa)) || listen(s, 8)) {
		perror("laps");
		return 1;
	}
	for (;;) {
		int fd = accept(s, NULL, NULL);

		if (fd < 0)
			return 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		answer(fd);
	}
}

/* Sends TEXT to OUT and reads one byte from IN, ROUNDS times. */
static int trips(int out, int in, const char *text, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		uint64_t began = now_ns();
		char byte;

		if (write(out, text, strlen(text)) != (ssize_t)strlen(text) ||
		    read(in, &byte, 1) != 1) {
			fputs("laps: the other side has left\n", stderr);
			return 1;
		}
		printf("%llu\n", (unsigned long long)(now_ns() - began));
	}
	return 0;
}

static int round_trips(const char *address, int port, int rounds)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (inet_pton(AF_INET, address, &sa.sin_addr) != 1 ||
	    connect(s, (struct sockaddr *)&sa, sizeof(sa))) {
		perror("laps");
		return 1;
	}
	return trips(s, s, "x", rounds);
}

static int echoes(const char *text, int rounds, char **argv)
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2], rc, status;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return 1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ))
		return 1;
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	rc = trips(in[1], out[0], text, rounds);
	close(in[1]);
	close(out[0]);
	waitpid(pid, &status, 0);
	return rc ? rc : status_of(status);
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_init(&silent);
	posix_spawn_file_actions_addopen(&silent, 1, "/dev/null", O_WRONLY, 0);
	if (argc == 3 && !strcmp(argv[1], "-s"))
		return serve(atoi(argv[2]));
	if (argc == 5 && !strcmp(argv[1], "-r"))
		return round_trips(argv[2], atoi(argv[3]), atoi(argv[4]));
	if (argc > 4 && !strcmp(argv[1], "-p"))
		return at_once(atoi(argv[2]), atoi(argv[3]), argv + 4);
	if (argc > 4 && !strcmp(argv[1], "-e"))
		return echoes(argv[2], atoi(argv[3]), argv + 4);
	return argc > 2 && argv[1][0] != '-' ? in_turn(atoi(argv[1]), argv + 2) : usage();
}
