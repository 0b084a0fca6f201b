/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the reader of eight-column traces. */
#include "tests/fuzz/fuzz_workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_workload("0 0 1 4 0 -1 0 0\n", data, size);
}
