/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The criu that tests use. */
#ifndef TEST_CRIU_H
#define TEST_CRIU_H

#include <stdbool.h>

#include "agent/shim/move/criu.h"

/* Finds IOCOM_CRIU's, or an installed one.  Returns false after it has said why all is skipped. */
bool criu_to_test(struct criu *criu);

#endif
