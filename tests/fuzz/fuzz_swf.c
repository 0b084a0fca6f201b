/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the reader of SWF job logs. */
#include "tests/fuzz/fuzz_workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_workload("; MaxNodes: 4\n", data, size);
}
