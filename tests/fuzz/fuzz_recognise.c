/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Any bytes: the reader recognises their format, or none. */
#include "tests/fuzz/fuzz_workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_workload("", data, size);
}
