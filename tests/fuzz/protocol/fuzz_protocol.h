/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What every decoder of the protocol must guarantee for any bytes: it refuses them, or what it
 * understood means the same when packed again.
 */
#ifndef FUZZ_PROTOCOL_H
#define FUZZ_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Each target's first inputs: writes sample N to OUT. Returns false if there are no more. */
bool sample(int n, FILE *out);

/* Handles `fuzz_TARGET --sample N`, which writes one sample for run.sh. Returns 1 if there is
 * none. */
static inline int samples_of(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--sample"))
		exit(sample(atoi(argv[2]), stdout) ? 0 : 1);
	return 0;
}
#define FUZZ_SAMPLES                                                                               \
	int LLVMFuzzerInitialize(int *argc, char ***argv)                                          \
	{                                                                                          \
		return samples_of(*argc, *argv);                                                   \
	}

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

/* Checks that SIZE bytes contain a NUL. */
static inline void must_end(const char *text, size_t size)
{
	must(memchr(text, 0, size) != NULL);
}

#endif
