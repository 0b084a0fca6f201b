/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the reader of files that may be gzipped: whole, cut off or damaged. */
#include "tests/fuzz/fuzz_workload.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct iocom_err err = {0};
	char path[64];

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_workload(workload_open(path, NULL, &err), &err);
	close(fd);
	return 0;
}
