/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes a job's record, start or exit, as read back from a disk that lost bytes. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/record.h"
#include "user/record_tail.h"

static int directory = -1;
static char path[] = "/dev/shm/iocom-fuzz-record-XXXXXX";

static void leave(void)
{
	unlinkat(directory, "start", 0);
	unlinkat(directory, "exit", 0);
	rmdir(path);
}

static void enter(void)
{
	if (directory >= 0)
		return;
	must(mkdtemp(path) != NULL);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(directory >= 0 && !atexit(leave));
}

static void put(const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

bool sample(int n, FILE *out)
{
	static const struct record_start start = {.job = "a-0f-7",
						  .class_name = "sh",
						  .command = "sh -c true",
						  .uid = 1000,
						  .shim = 77,
						  .cgroup_id = 5,
						  .start_ns = 9};
	static const struct record_exit end = {.pid = 78,
					       .value = 3,
					       .end_ns = 10,
					       .oom_kills = 1,
					       .forks_refused = 250,
					       .cpu_us = 70000,
					       .begin_us = 400,
					       .text = "why"};
	static const struct record_tail tail = {{{8, 4, 20, 24}, {0, 2, 0, 1}}};
	char data[4096];
	ssize_t got;
	int fd;

	if (n == 2) {
		record_tail_put((uint8_t *)data, &tail);
		fwrite(data, 1, RECORD_TAIL_BYTES, out);
		return true;
	}
	enter();
	must(!record_write_start(directory, &start, NULL));
	must(!record_write_exit(directory, &end, NULL));
	fd = openat(directory, n ? "exit" : "start", O_RDONLY | O_CLOEXEC);
	got = read(fd, data, sizeof(data));
	must(got > 0);
	close(fd);
	fwrite(data, 1, (size_t)got, out);
	return n < 3;
}

FUZZ_SAMPLES

/* The file `tail`: what is accepted packs to the same bytes, and its numbers add up. */
static void fuzz_tail(const uint8_t *data, size_t size)
{
	uint8_t again[RECORD_TAIL_BYTES];
	struct record_tail tail;

	if (record_tail_take(&tail, data, size))
		return;
	record_tail_put(again, &tail);
	must(size == sizeof(again) && !memcmp(data, again, size));
	for (int i = 0; i < 2; i++)
		must(tail.of[i].head <= tail.of[i].from && tail.of[i].from <= tail.of[i].end &&
		     tail.of[i].end - tail.of[i].from <= tail.of[i].room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_start start, start_again;
	struct record_exit end, end_again;

	enter();
	fuzz_tail(data, size);
	put("start", data, size);
	put("exit", data, size);
	if (!record_read_start(directory, &start)) {
		must_end(start.job, sizeof(start.job));
		must_end(start.class_name, sizeof(start.class_name));
		must_end(start.command, sizeof(start.command));
		must_end(start.scope, sizeof(start.scope));
		must(!record_write_start(directory, &start, NULL));
		must(!record_read_start(directory, &start_again));
		must(!memcmp(&start, &start_again, sizeof(start)));
	}
	if (!record_read_exit(directory, &end)) {
		must_end(end.text, sizeof(end.text));
		must(!record_write_exit(directory, &end, NULL));
		must(!record_read_exit(directory, &end_again));
		must(end.kind == end_again.kind && end.value == end_again.value &&
		     end.oom_kills == end_again.oom_kills &&
		     end.forks_refused == end_again.forks_refused &&
		     end.cpu_us == end_again.cpu_us && end.begin_us == end_again.begin_us &&
		     !strcmp(end.text, end_again.text));
	}
	return 0;
}
