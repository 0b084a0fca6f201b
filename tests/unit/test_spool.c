/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's output on disk: its beginning and its end, for any output, and even if the writer was
 * killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/spool.h"

#define PIECE_MAX 5000

struct place {
	char path[64];
	int dir;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/iocom-spool-XXXXXX");
	*state = place;
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place->dir < 0;
}

static void empty(const struct place *place)
{
	static const char *const names[] = {"out", "err", "spool", ".spool", "tail"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(place->dir, names[i], 0);
}

static int teardown(void **state)
{
	struct place *place = *state;
	int rc;

	empty(place);
	close(place->dir);
	rc = rmdir(place->path);
	free(place);
	return rc;
}

/* The byte that every job here writes at an offset of a stream. */
static uint8_t byte_of(int stream, uint64_t offset)
{
	uint64_t mixed = (offset + (uint64_t)stream * 77777) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint8_t)(mixed >> 56);
}

static void add(struct spool *spool, int dir, int stream, size_t n)
{
	static uint8_t piece[1 << 20];
	uint64_t at = spool_end(spool, stream);

	assert_true(n <= sizeof(piece));
	for (size_t i = 0; i < n; i++)
		piece[i] = byte_of(stream, at + i);
	spool_add(spool, dir, stream, piece, n);
}

/* Reads all that is kept of STREAM and compares. Returns how many bytes that were. */
static uint64_t check(const struct spool *spool, int stream)
{
	uint64_t first = spool->info.base[stream - 1], end = spool_end(spool, stream), n = 0;
	uint8_t piece[777];
	ssize_t got;

	for (uint64_t at = first; (at = spool_kept(spool, stream, at)) < end; at += (uint64_t)got) {
		got = spool_at(spool, stream, at, piece, sizeof(piece));
		assert_true(got > 0);
		for (ssize_t i = 0; i < got; i++)
			if (piece[i] != byte_of(stream, at + (uint64_t)i))
				fail_msg("stream %d: byte %llu is another", stream,
					 (unsigned long long)at + (unsigned long long)i);
		n += (uint64_t)got;
	}
	return n;
}

static uint64_t on_disk(const struct place *place)
{
	return (uint64_t)record_spool_bytes(place->dir);
}

/* A reader that opens the files after the writer was killed sees the same as the writer. */
static void check_again(const struct place *place, const struct spool *spool)
{
	struct spool again;

	assert_int_equal(spool_open(&again, place->dir), 0);
	for (int i = 1; i < FRAME_STREAMS; i++) {
		assert_true(check(&again, i) == check(spool, i));
		if (spool->fd_tail < 0) /* the count of lost bytes is written at the end */
			continue;
		assert_true(spool_end(&again, i) == spool_end(spool, i));
		assert_true(spool_head(&again, i) == spool_head(spool, i));
		assert_true(again.info.lost[i - 1] == spool->info.lost[i - 1]);
	}
	spool_deinit(&again);
}

static void begin(const struct place *place, struct spool *spool, uint64_t quota, bool terminal)
{
	const uint64_t base[FRAME_STREAMS] = {0};
	struct spool_size size = spool_share(quota, terminal);

	assert_true(size.head + size.ring[1] + size.ring[2] == quota);
	empty(place);
	assert_int_equal(spool_make(spool, place->dir, base, &size, true, NULL), 0);
}

/* Output that fits is kept to the last byte; one more byte costs the middle, not the end. */
static void test_bounds(void **state)
{
	const struct place *place = *state;
	struct spool spool;

	begin(place, &spool, 1000, false);
	add(&spool, place->dir, 1, 500);
	assert_false(spool.ringed);
	add(&spool, place->dir, 1, 375); /* the ring has 1000/2 - 1000/8 */
	assert_true(check(&spool, 1) == 875);
	assert_true(spool.info.lost[0] == 0);
	add(&spool, place->dir, 2, 125);
	assert_true(check(&spool, 2) == 125);
	assert_true(on_disk(place) == 1000);
	check_again(place, &spool);
	add(&spool, place->dir, 1, 1);
	assert_true(spool.info.lost[0] == 1);
	assert_true(spool_kept(&spool, 1, 499) == 499);
	assert_true(spool_kept(&spool, 1, 500) == 501);
	assert_true(spool_kept(&spool, 1, 501) == 501);
	assert_true(check(&spool, 1) == 875);
	assert_true(on_disk(place) == 1000);
	check_again(place, &spool);
	spool_deinit(&spool);
	/* A terminal has one output, which gets all the room. */
	begin(place, &spool, 1000, true);
	add(&spool, place->dir, 1, 1001);
	assert_true(check(&spool, 1) == 1000 && spool.info.lost[0] == 1);
	spool_deinit(&spool);
	begin(place, &spool, 0, false);
	add(&spool, place->dir, 1, 3);
	assert_true(check(&spool, 1) == 0 && spool.info.lost[0] == 3 && on_disk(place) == 0);
	spool_deinit(&spool);
}

/* Any pieces, any quota: every kept byte is right, and the quota is never exceeded. */
static void test_any_pieces(void **state)
{
	const struct place *place = *state;
	unsigned seed = 4711;

	for (int round = 0; round < 60; round++) {
		uint64_t quota = (uint64_t)rand_r(&seed) % (round % 3 ? 40000 : 300);
		struct spool spool;

		begin(place, &spool, quota, round % 2);
		for (int i = 0; i < 30; i++) {
			int stream = rand_r(&seed) % 4 ? 1 : 2;

			add(&spool, place->dir, stream, (size_t)rand_r(&seed) % PIECE_MAX);
			assert_true(on_disk(place) <= quota);
			assert_true(check(&spool, stream) + spool.info.lost[stream - 1] ==
				    spool_end(&spool, stream));
			check_again(place, &spool);
		}
		spool_deinit(&spool);
	}
}

static void write_on(const struct place *place, unsigned seed)
{
	struct spool spool;

	begin(place, &spool, 100000, false);
	for (;;)
		add(&spool, place->dir, rand_r(&seed) % 4 ? 1 : 2,
		    1 + (size_t)rand_r(&seed) % 65536);
}

/* Killed between any two system calls: all bytes that the disk names are there. */
static void test_killed(void **state)
{
	const struct place *place = *state;
	unsigned rings = 0;

	for (unsigned round = 0; round < 25; round++) {
		struct spool spool;
		pid_t pid = fork();

		if (!pid) {
			write_on(place, round);
			_exit(0);
		}
		usleep(2000 + round * 977);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		if (!spool_open(&spool, place->dir)) {
			rings += spool.ringed;
			(void)check(&spool, 1);
			(void)check(&spool, 2);
			assert_true(on_disk(place) <= 100000);
			spool_deinit(&spool);
		}
		empty(place);
	}
	assert_true(rings > 5);
}

/* A file cannot grow, as on a full disk. The job goes on, and the count of lost bytes is right. */
static void test_full_disk(void **state)
{
	const struct place *place = *state;
	struct rlimit before, small = {.rlim_cur = 700};
	struct spool spool;

	signal(SIGXFSZ, SIG_IGN);
	begin(place, &spool, 1600, true);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	for (int i = 0; i < 10; i++)
		add(&spool, place->dir, 1, 100);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_true(spool_head(&spool, 1) == 700);
	assert_true(check(&spool, 1) == 700);
	assert_true(spool.info.lost[0] == 300);
	check_again(place, &spool);
	/* There is room again, so the newest bytes are kept. */
	add(&spool, place->dir, 1, 250);
	assert_true(check(&spool, 1) == 950);
	assert_true(spool.info.lost[0] == 300);
	check_again(place, &spool);
	spool_deinit(&spool);
	signal(SIGXFSZ, SIG_DFL);
}

static void put_tail(const struct place *place, const struct record_tail *tail, size_t length)
{
	uint8_t data[RECORD_TAIL_BYTES + 1] = {0};
	int fd = openat(place->dir, RECORD_TAIL, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	record_tail_put(data, tail);
	assert_int_equal(write(fd, data, length), length);
	close(fd);
}

/*
 * A disk that lost bytes: the reader never reads missing bytes, and never shows others than were
 * written.
 */
static void test_damage(void **state)
{
	const struct place *place = *state;
	struct record_tail good, bad;
	struct spool spool;

	begin(place, &spool, 1000, true);
	add(&spool, place->dir, 1, 1700);
	good = spool.tail;
	spool_deinit(&spool);
	for (int i = 0; i < 5; i++) {
		bad = good;
		if (i == 0)
			bad.of[0].from = bad.of[0].head - 1;
		else if (i == 1)
			bad.of[0].end = bad.of[0].from - 1;
		else if (i == 2)
			bad.of[0].end = bad.of[0].from + bad.of[0].room + 1;
		else if (i == 3)
			bad.of[0].room = UINT64_MAX;
		else
			bad.of[0].head = 1200; /* past the end of the file */
		if (i == 4)
			bad.of[0].from = bad.of[0].end = 1200;
		put_tail(place, &bad, RECORD_TAIL_BYTES);
		assert_int_equal(spool_open(&spool, place->dir), -EBADMSG);
	}
	put_tail(place, &good, RECORD_TAIL_BYTES - 1);
	assert_int_equal(spool_open(&spool, place->dir), -EBADMSG);
	put_tail(place, &good, RECORD_TAIL_BYTES + 1);
	assert_int_equal(spool_open(&spool, place->dir), -EBADMSG);
	put_tail(place, &good, RECORD_TAIL_BYTES);
	assert_int_equal(spool_open(&spool, place->dir), 0);
	assert_true(check(&spool, 1) == 1000);
	spool_deinit(&spool);
	/* A file was cut: its ring is ignored, its beginning is shown. */
	{
		int fd = openat(place->dir, "out", O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, 600), 0);
		close(fd);
	}
	assert_int_equal(spool_open(&spool, place->dir), 0);
	assert_true(check(&spool, 1) == 500);
	assert_true(spool.info.lost[0] == 1200);
	spool_deinit(&spool);
	/* A link in place of the file is not followed. */
	assert_int_equal(unlinkat(place->dir, "tail", 0), 0);
	assert_int_equal(symlinkat("out", place->dir, "tail"), 0);
	assert_true(spool_open(&spool, place->dir) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
	};

	return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
