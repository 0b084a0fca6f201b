/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Makes load of one kind for the monitor's benchmark, and prints what it reached per second.
 *
 *   drive pingpong SECONDS           64-byte round trips over TCP on loopback, one CPU
 *   drive stream SECONDS             bytes over TCP on loopback
 *   drive faults SECONDS             page faults on anonymous memory
 *   drive forks SECONDS              processes started (fork, exec) and waited for
 *   drive events RATE SECONDS FILE   RATE events a second; of eight, six are TCP calls and two
 *                                    are 4 KiB direct reads of FILE
 *   drive threads N SECONDS          N sleeping threads; prints "ready" when all exist
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE	      64
#define STREAM_BLOCK  (128 * 1024)
#define FAULT_REGION  (64UL << 20)
#define READ_BLOCK    4096
#define READ_SPAN     (64UL << 20)
#define TICKS_PER_S   100
#define EVENTS_ROUND  8
#define THREADS_STACK 16384

extern char **environ;

static void die(const char *what)
{
	fprintf(stderr, "drive: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* best effort: fewer CPUs are fine */
}

/* Makes a connection over loopback: ends[0] connected, ends[1] accepted. */
static void connection(int ends[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &length) ||
	    connect(ends[0], (struct sockaddr *)&at, sizeof(at)))
		die("loopback connection");
	ends[1] = accept(listener, NULL, NULL);
	if (ends[1] < 0)
		die("accept");
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
}

/* Sends back all it receives until the other end closes. */
static pid_t echo(int fd, int other)
{
	char message[MESSAGE];
	pid_t pid = fork();

	if (pid)
		return pid;
	close(other);
	while (recv(fd, message, sizeof(message), MSG_WAITALL) == MESSAGE)
		if (send(fd, message, sizeof(message), MSG_NOSIGNAL) != MESSAGE)
			break;
	_exit(0);
}

static double pingpong(double seconds)
{
	double began, end;
	uint64_t rounds = 0;
	char message[MESSAGE] = "";
	int ends[2];
	pid_t pid;

	connection(ends);
	pin(0);
	pid = echo(ends[1], ends[0]);
	close(ends[1]);
	began = now();
	end = began + seconds;
	do {
		for (int i = 0; i < 100; i++, rounds++)
			if (send(ends[0], message, MESSAGE, 0) != MESSAGE ||
			    recv(ends[0], message, MESSAGE, MSG_WAITALL) != MESSAGE)
				die("ping-pong");
	} while (now() < end);
	end = now();
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return (double)rounds / (end - began);
}

static double stream(double seconds)
{
	char *buffer = calloc(1, STREAM_BLOCK);
	double began = now(), end = began + seconds;
	uint64_t bytes = 0;
	int ends[2];
	ssize_t n;
	pid_t pid;

	connection(ends);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		while (read(ends[1], buffer, STREAM_BLOCK) > 0)
			;
		_exit(0);
	}
	close(ends[1]);
	while (now() < end) {
		n = write(ends[0], buffer, STREAM_BLOCK);
		if (n <= 0)
			die("stream");
		bytes += (uint64_t)n;
	}
	end = now();
	close(ends[0]);
	waitpid(pid, NULL, 0);
	free(buffer);
	return (double)bytes / (end - began);
}

static double faults(double seconds)
{
	double began = now(), end = began + seconds;
	uint64_t count = 0;

	do {
		char *p = mmap(NULL, FAULT_REGION, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die("mmap");
		madvise(p, FAULT_REGION, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < FAULT_REGION; at += 4096, count++)
			p[at] = 1;
		munmap(p, FAULT_REGION);
	} while (now() < end);
	return (double)count / (now() - began);
}

static double forks(double seconds)
{
	double began = now(), end = began + seconds;
	char *arguments[] = {"true", NULL};
	uint64_t count = 0;

	for (; now() < end; count++) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ))
			die("/bin/true");
		waitpid(pid, NULL, 0);
	}
	return (double)count / (now() - began);
}

static void events_round(const int ends[2], int file, char *block, uint64_t round)
{
	char message[MESSAGE] = "";

	for (int i = 0; i < 3; i++)
		if (send(ends[0], message, MESSAGE, 0) != MESSAGE ||
		    recv(ends[1], message, MESSAGE, MSG_WAITALL) != MESSAGE)
			die("message");
	for (uint64_t i = 0; i < 2; i++) {
		off_t at = (off_t)((round * 2 + i) * 7919 * READ_BLOCK % READ_SPAN);

		if (pread(file, block, READ_BLOCK, at) != READ_BLOCK)
			die("read");
	}
}

static double events(double rate, double seconds, const char *path)
{
	double began, end, wake;
	uint64_t rounds = 0, due;
	int file = open(path, O_RDONLY | O_DIRECT), ends[2];
	void *block = NULL;

	if (file < 0 || posix_memalign(&block, READ_BLOCK, READ_BLOCK))
		die(path);
	connection(ends);
	began = wake = now();
	end = began + seconds;
	while (now() < end) {
		due = (uint64_t)((now() - began) * rate / EVENTS_ROUND);
		for (; rounds < due && now() < end; rounds++)
			events_round(ends, file, block, rounds);
		wake += 1.0 / TICKS_PER_S;
		if (wake > now())
			usleep((useconds_t)((wake - now()) * 1e6));
	}
	free(block);
	return (double)(rounds * EVENTS_ROUND) / (now() - began);
}

static void *asleep(void *argument)
{
	pause();
	return argument;
}

static double threads(long n, double seconds)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREADS_STACK);
	for (long i = 1; i < n; i++)
		if (pthread_create(&thread, &attr, asleep, NULL))
			die("cannot make so many threads");
	puts("ready");
	fflush(stdout);
	usleep((useconds_t)(seconds * 1e6));
	return (double)n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	double first = argc > 2 ? atof(argv[2]) : 0, reached;

	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(what, "pingpong") && first > 0)
		reached = pingpong(first);
	else if (!strcmp(what, "stream") && first > 0)
		reached = stream(first);
	else if (!strcmp(what, "faults") && first > 0)
		reached = faults(first);
	else if (!strcmp(what, "forks") && first > 0)
		reached = forks(first);
	else if (!strcmp(what, "events") && argc == 5)
		reached = events(first, atof(argv[3]), argv[4]);
	else if (!strcmp(what, "threads") && argc == 4)
		reached = threads((long)first, atof(argv[3]));
	else
		return fprintf(stderr, "usage: drive KIND ARGUMENT..., see drive.c\n"), 2;
	printf("%.1f\n", reached);
	return 0;
}
