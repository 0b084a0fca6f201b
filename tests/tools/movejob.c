/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that moves, and that notices what a move might break:
 *
 *   movejob DIR LINES US [input] [SIN=LINE]
 *
 * It writes LINES lines "NUMBER HASH BYTES SEEN", one each US microseconds, to its output and, just
 * before, to the file DIR/trace.  BYTES of its input have been read (with `input`), SEEN is their
 * hash, and HASH goes over all lines so far.  move_judge.py calculates it again.  Each step
 *
 *   memory   verifies a block of memory and writes one part of it anew,
 *   file     writes a record to DIR/file, looks at the position and reads the record before,
 *   child    asks a child over pipes, which counts as well.
 *
 * What is wrong there is a line "! WHAT NUMBER".  After its lines it reads its input to the end,
 * says "end HASH BYTES SEEN" and exits with 7.  A sin is done on purpose, so that the judge has to
 * see it: SINS lists them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS	   7
#define PARTS	   32
#define PART_WORDS 8192 /* 64 KiB: 2 MiB in all */
#define RECORDS	   4096 /* of the file, until it begins anew */
#define HASH_BEGIN 0xcbf29ce484222325ULL
#define HASH_PRIME 0x100000001b3ULL
#define SIN_LINES  5 /* that a copy goes on for */

enum sin { SIN_NONE, LOST, DOUBLED, COPY, EARLY, MEMORY, FILE_AT, CHILD, INPUT, STATUS_LOST, LEFT };
static const char *const SINS[] = {"",	   "lost",  "doubled", "copy",	 "early", "memory",
				   "file", "child", "input",   "status", "left"};

struct movejob {
	uint64_t *memory, written[PARTS]; /* the line at which each part was written */
	uint64_t hash, bytes, seen, children;
	int trace, file, to_child, from_child;
	bool input, silent; /* silent: a copy that writes its trace only */
	enum sin sin;
	uint64_t sin_at;
};

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t length)
{
	for (const uint8_t *p = data; length; length--)
		hash = (hash ^ *p++) * HASH_PRIME;
	return hash;
}

static bool write_all(int fd, const void *data, size_t length)
{
	for (const char *p = data; length;) {
		ssize_t n = write(fd, p, length);

		if (n < 0 && errno != EINTR)
			return false;
		p += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool read_all(int fd, void *data, size_t length)
{
	for (char *p = data; length;) {
		ssize_t n = read(fd, p, length);

		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		p += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool sins(const struct movejob *job, enum sin sin, uint64_t line)
{
	return job->sin == sin && job->sin_at == line;
}

static void say(const struct movejob *job, const char *line, uint64_t number)
{
	size_t length = strlen(line);

	if (!write_all(job->trace, line, length))
		exit(90);
	if (job->silent || sins(job, LOST, number))
		return;
	for (int i = 0; i <= (int)sins(job, DOUBLED, number); i++)
		if (!write_all(STDOUT_FILENO, line, length))
			exit(91);
}

static void complain(const struct movejob *job, const char *what, uint64_t line)
{
	char text[64];

	snprintf(text, sizeof(text), "! %s %llu\n", what, (unsigned long long)line);
	say(job, text, UINT64_MAX);
}

/* --- memory ---------------------------------------------------------------------------------- */

static uint64_t pattern(uint64_t line, uint64_t word)
{
	return (line + 1) * 0x9e3779b97f4a7c15ULL ^ word * HASH_PRIME;
}

static void part_write(struct movejob *job, unsigned part, uint64_t line)
{
	uint64_t *at = job->memory + (size_t)part * PART_WORDS;

	job->written[part] = line;
	for (unsigned i = 0; i < PART_WORDS; i++)
		at[i] = pattern(line, i);
}

static bool part_holds(const struct movejob *job, unsigned part)
{
	const uint64_t *at = job->memory + (size_t)part * PART_WORDS;
	uint64_t other = 0;

	for (unsigned i = 0; i < PART_WORDS; i++)
		other |= at[i] ^ pattern(job->written[part], i);
	return !other;
}

static void step_memory(struct movejob *job, uint64_t line)
{
	bool holds = true;

	if (sins(job, MEMORY, line))
		job->memory[(line % PARTS) * PART_WORDS + 17] ^= 1;
	for (unsigned part = 0; part < PARTS; part++)
		holds &= part_holds(job, part);
	if (!holds)
		complain(job, "memory", line);
	part_write(job, line % PARTS, line);
}

/* --- file ------------------------------------------------------------------------------------ */

static void step_file(const struct movejob *job, uint64_t line)
{
	uint64_t record[2] = {line, pattern(line, 1)}, before[2];
	uint64_t at = line % RECORDS;
	off_t want = (off_t)(at * sizeof(record));

	if (sins(job, FILE_AT, line))
		(void)lseek(job->file, 3, SEEK_CUR);
	if (!at)
		(void)lseek(job->file, 0, SEEK_SET);
	else if (lseek(job->file, 0, SEEK_CUR) != want)
		complain(job, "file", line);
	if (!write_all(job->file, record, sizeof(record)))
		complain(job, "file", line);
	if (at && (pread(job->file, before, sizeof(before), want - (off_t)sizeof(before)) !=
			   sizeof(before) ||
		   before[0] != line - 1 || before[1] != pattern(line - 1, 1)))
		complain(job, "file", line);
}

/* --- child ----------------------------------------------------------------------------------- */

static _Noreturn void child_run(int from, int to)
{
	uint64_t count = 0, line;

	while (read_all(from, &line, sizeof(line))) {
		uint64_t answer = pattern(line, count++);

		if (!write_all(to, &answer, sizeof(answer)))
			break;
	}
	_exit(0);
}

static void child_start(struct movejob *job)
{
	int to[2], from[2];
	pid_t pid;

	if (pipe(to) || pipe(from))
		exit(92);
	pid = fork();
	if (pid < 0)
		exit(93);
	if (!pid) {
		close(to[1]);
		close(from[0]);
		close(job->trace);
		close(job->file);
		close_range(0, 1, 0);
		child_run(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	job->to_child = to[1];
	job->from_child = from[0];
}

static void step_child(struct movejob *job, uint64_t line)
{
	uint64_t asked = line + sins(job, CHILD, line), answer = 0;

	if (!write_all(job->to_child, &asked, sizeof(asked)) ||
	    !read_all(job->from_child, &answer, sizeof(answer)) ||
	    answer != pattern(line, job->children++))
		complain(job, "child", line);
}

/* --- input ----------------------------------------------------------------------------------- */

/* Reads what there is, or, if WAIT, to the end. */
static void step_input(struct movejob *job, uint64_t line, bool wait)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char piece[4096];

	while (job->input && (wait || poll(&p, 1, 0) > 0)) {
		ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			complain(job, "input", line);
		if (n <= 0) {
			job->input = false;
			break;
		}
		if (job->sin == INPUT && line >= job->sin_at) {
			job->sin = SIN_NONE;
			n--; /* a byte that was lost on the way */
		}
		job->bytes += (uint64_t)n;
		job->seen = hash_bytes(job->seen, piece, (size_t)n);
	}
}

/* --- all ------------------------------------------------------------------------------------- */

static void step_say(struct movejob *job, uint64_t line)
{
	const uint64_t over[] = {line, job->bytes, job->seen};
	char text[96];

	job->hash = hash_bytes(job->hash, over, sizeof(over));
	snprintf(text, sizeof(text), "%llu %016llx %llu %016llx\n", (unsigned long long)line,
		 (unsigned long long)job->hash, (unsigned long long)job->bytes,
		 (unsigned long long)job->seen);
	say(job, text, line);
}

/* A second one of this job, which goes on for some lines; and what a job may leave behind. */
static void step_copy(struct movejob *job, uint64_t line, useconds_t us)
{
	bool copy = sins(job, COPY, line) || sins(job, EARLY, line);

	if ((!copy && !sins(job, LEFT, line)) || fork())
		return;
	if (!copy) {
		close_range(0, 9, 0);
		setsid();
		sleep(30);
		_exit(0);
	}
	job->silent = job->sin == EARLY;
	for (uint64_t i = 0; i < SIN_LINES; i++) {
		usleep(us);
		step_say(job, line + i);
	}
	_exit(0);
}

static int movejob_open(const char *dir, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CREAT, 0666);
	if (fd >= 0)
		return fd;
	fprintf(stderr, "movejob: %s: %s\n", path, strerror(errno));
	exit(94);
}

static void movejob_option(struct movejob *job, const char *word)
{
	const char *is = strchr(word, '=');

	if (!strcmp(word, "input"))
		job->input = true;
	for (size_t i = 1; is && i < sizeof(SINS) / sizeof(*SINS); i++)
		if (!strncmp(word, SINS[i], (size_t)(is - word))) {
			job->sin = (enum sin)i;
			job->sin_at = strtoull(is + 1, NULL, 10);
		}
}

int main(int argc, char **argv)
{
	struct movejob job = {.hash = HASH_BEGIN, .seen = HASH_BEGIN};
	uint64_t lines;
	useconds_t us;
	char text[96];

	if (argc < 4) {
		fprintf(stderr, "usage: movejob DIR LINES US [input] [SIN=LINE]\n");
		return 2;
	}
	lines = strtoull(argv[2], NULL, 10);
	us = (useconds_t)strtoul(argv[3], NULL, 10);
	for (int i = 4; i < argc; i++)
		movejob_option(&job, argv[i]);
	job.trace = movejob_open(argv[1], "trace", O_WRONLY | O_APPEND);
	job.file = movejob_open(argv[1], "file", O_RDWR | O_TRUNC);
	job.memory = malloc(sizeof(*job.memory) * PARTS * PART_WORDS);
	if (!job.memory)
		return 95;
	for (unsigned part = 0; part < PARTS; part++)
		part_write(&job, part, 0);
	child_start(&job);
	for (uint64_t line = 0; line < lines; line++) {
		step_memory(&job, line);
		step_file(&job, line);
		step_child(&job, line);
		step_input(&job, line, false);
		step_copy(&job, line, us);
		step_say(&job, line);
		usleep(us);
	}
	step_input(&job, lines, true);
	snprintf(text, sizeof(text), "end %016llx %llu %016llx\n", (unsigned long long)job.hash,
		 (unsigned long long)job.bytes, (unsigned long long)job.seen);
	say(&job, text, UINT64_MAX);
	close(job.to_child);
	if (job.sin != LEFT)
		while (wait(NULL) > 0)
			;
	return job.sin == STATUS_LOST ? 0 : STATUS;
}
