/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See criu.h. */
#include "tests/lib/criu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool criu_to_test(struct criu *criu)
{
	const char *program = getenv("IOCOM_CRIU");
	struct iocom_err err = {0};
	int rc = getenv("IOCOM_SANITIZED")
			 ? iocom_err_set(&err, -ENOTSUP, "criu saves no process with a sanitizer")
			 : criu_find(criu, program ? program : "", &err);

	if (rc)
		printf("1..0 # SKIP %s\n", err.text);
	return !rc;
}
