/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A program that changes its memory as it goes: `dirty MB KB-PER-S`.  It fills MB of memory
 * with numbers that do not repeat, says "filled", changes page after page of it, at that speed, and
 * at SIGTERM looks at every page: it says "whole", or which one is not as it was written last.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE_WORDS   512
#define STEPS_A_S    4
#define STEP_NS	     (1000000000L / STEPS_A_S)
#define PAGES_PER_MB 256
#define KB_PER_PAGE  4

static volatile sig_atomic_t over;

static void told_to_end(int signal)
{
	(void)signal;
	over = 1;
}

/* Writes PAGE as its CHANGE-th change leaves it, or checks that it is so. */
static int change_page(uint64_t *page, uint64_t number, uint64_t change, int check)
{
	uint64_t x = (number << 24 | change) * 0x9e3779b97f4a7c15ULL | 1;

	for (size_t i = 0; i < PAGE_WORDS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (check && page[i] != x)
			return -1;
		if (!check)
			page[i] = x;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t pages, a_step, at = 0;
	uint32_t *changes;
	uint64_t *memory;

	if (argc != 3)
		return 2;
	signal(SIGTERM, told_to_end);
	pages = strtoull(argv[1], NULL, 10) * PAGES_PER_MB;
	a_step = strtoull(argv[2], NULL, 10) / KB_PER_PAGE / STEPS_A_S;
	changes = calloc(pages + 1, sizeof(*changes));
	memory = mmap(NULL, (pages + 1) * PAGE_WORDS * sizeof(*memory), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!changes || memory == MAP_FAILED || !pages)
		return 2;
	for (uint64_t i = 0; i < pages; i++)
		change_page(memory + i * PAGE_WORDS, i, 0, 0);
	printf("filled\n");
	fflush(stdout);
	while (!over) {
		const struct timespec step = {.tv_nsec = STEP_NS};

		for (uint64_t i = 0; i < a_step; i++, at = (at + 1) % pages)
			change_page(memory + at * PAGE_WORDS, at, ++changes[at], 0);
		nanosleep(&step, NULL);
	}
	for (uint64_t i = 0; i < pages; i++)
		if (change_page(memory + i * PAGE_WORDS, i, changes[i], 1)) {
			printf("page %llu is not as it was written\n", (unsigned long long)i);
			return 1;
		}
	printf("whole\n");
	return 0;
}
