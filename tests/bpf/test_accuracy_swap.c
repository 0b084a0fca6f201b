/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Swap: what reclaim writes has a column of its own, and what comes back is implicit I/O of the
 * task that touches it. Swapping affects the whole machine, so this test runs only with
 * IOCOM_SWAP_TESTS=1, as in virtual machines made for tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "tests/lib/watch.h"

#define SWAP_MIB      16
#define HEAP	      (8 * MIB)
#define SWAPPED_LEAST (HEAP / 2) /* otherwise the test has tested nothing */
#define CLASS_ERROR   0.01
#define PAGEOUT_TRIES 3
#define PAGEOUT	      21 /* MADV_PAGEOUT, Linux 5.4 */

struct world {
	struct watch watch;
	char file[160];
	int lock;
	bool on;
};

/* Returns the bytes that the machine read back from swap so far, by the kernel's own count. */
static uint64_t swapped_in(void)
{
	FILE *file = fopen("/proc/vmstat", "re");
	unsigned long pages = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "pswpin %lu", &pages) == 1)
			break;
	if (file)
		fclose(file);
	return pages * 4096;
}

/*
 * Pages HEAP out, repeatedly. After the first write each page stays in memory as a copy of the
 * swap's; touched again it is mapped and clean, and the next try removes it.
 */
static int page_out(void *heap)
{
	volatile unsigned char *bytes = heap;
	unsigned sum = 0;

	for (int i = 0; i < PAGEOUT_TRIES; i++) {
		for (size_t at = 0; i && at < HEAP; at += 4096)
			sum += bytes[at];
		if (madvise(heap, HEAP, PAGEOUT))
			return 1;
		sync();
		usleep(100000);
	}
	return sum == 1;
}

static int body_swap(void *done)
{
	volatile unsigned char *heap =
		mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned sum = 0;
	int *ends = done;

	if (heap == MAP_FAILED)
		return 1;
	/* All pages differ and none is empty, so each takes a swap slot of its own. */
	for (size_t at = 0; at < HEAP; at += sizeof(unsigned))
		*(volatile unsigned *)(heap + at) = (unsigned)at * 2654435761U + 1;
	if (page_out((void *)heap))
		return 1;
	if (write(ends[1], "", 1) != 1)
		return 1;
	for (size_t at = 0; at < HEAP; at += 4096)
		sum += heap[at];
	return sum == 0;
}

static void test_swap(void **state)
{
	struct world *world = *state;
	uint64_t out = world->watch.sample.unattributed.swap_out_bytes, in = swapped_in();
	struct iocom_load load;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	load = watch_run(&world->watch, body_swap, ends);
	out = world->watch.sample.unattributed.swap_out_bytes - out;
	in = swapped_in() - in;
	close(ends[0]);
	close(ends[1]);
	printf("# |swapped out %lu bytes, in %lu bytes\n", out, in);
	assert_true(in >= SWAPPED_LEAST);
	watch_compare("swap-in", "implicit_bytes", (double)in, (double)load.implicit_bytes,
		      CLASS_ERROR);
	watch_compare_within("swap-in", "explicit_read_bytes", 0, (double)load.explicit_read_bytes,
			     CLASS_ERROR * (double)in);
	watch_compare_within("swap-out", "explicit_write_bytes", 0,
			     (double)load.explicit_write_bytes, CLASS_ERROR * (double)in);
	assert_true(out >= SWAPPED_LEAST);
}

/* get_user_pages on swapped-out memory: no exception, but still implicit. */
static int body_swap_direct(void *path)
{
	char *heap = body_buffer(HEAP);
	int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT, 0644);

	if (!heap || fd < 0)
		return 1;
	for (size_t at = 0; at < HEAP; at += sizeof(unsigned))
		*(unsigned *)(void *)(heap + at) = (unsigned)at * 2654435761U + 1;
	if (page_out(heap))
		return 1;
	for (size_t at = 0; at < HEAP; at += MIB)
		if (pwrite(fd, heap + at, MIB, (off_t)at) != (ssize_t)MIB)
			return 1;
	return 0;
}

static void test_swap_direct(void **state)
{
	struct world *world = *state;
	uint64_t in = swapped_in();
	struct iocom_load load;
	char path[160];

	snprintf(path, sizeof(path), "%s/direct", world->watch.rig.mount);
	rig_shell("fallocate -l %lu %s", HEAP, path);
	load = watch_run(&world->watch, body_swap_direct, path);
	in = swapped_in() - in;
	printf("# |swapped in %lu bytes\n", in);
	assert_true(in >= SWAPPED_LEAST);
	watch_compare("direct write from swapped memory", "implicit_bytes", (double)in,
		      (double)load.implicit_bytes, CLASS_ERROR);
	watch_compare("direct write from swapped memory", "explicit_write_bytes", HEAP,
		      (double)load.explicit_write_bytes, CLASS_ERROR);
}

static int world_down(void **state)
{
	struct world *world = *state;

	if (world->on)
		swapoff(world->file);
	close(world->lock);
	watch_close(&world->watch);
	free(world);
	return 0;
}

static int world_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	*state = world;
	watch_rig(&world->watch, 64);
	snprintf(world->file, sizeof(world->file), "%s/swap", world->watch.rig.mount);
	world->lock = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
	if (world->lock < 0 || flock(world->lock, LOCK_EX))
		return -1;
	if (rig_shell("dd if=/dev/zero of=%s bs=1M count=%d && chmod 600 %s && mkswap %s",
		      world->file, SWAP_MIB, world->file, world->file))
		return -1;
	sync();
	watch_open(&world->watch, NULL);
	world->on = !swapon(world->file, 0);
	if (!world->on)
		printf("# |swapon: %s\n", strerror(errno));
	return world->on ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_swap_direct),
	};
	const char *allowed = getenv("IOCOM_SWAP_TESTS");

	if (!allowed || strcmp(allowed, "1") != 0) {
		printf("1..0 # SKIP swaps only where IOCOM_SWAP_TESTS=1 says that it may\n");
		return 0;
	}
	return cmocka_run_group_tests_name("swap", tests, world_up, world_down);
}
