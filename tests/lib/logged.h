/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the agent logs while a test runs: kept in memory, so that lines can be counted. */
#ifndef TESTS_LOGGED_H
#define TESTS_LOGGED_H

#include "user/log.h"

/* LOG logs everything from LOG_L_INFO on, and only to the test. Returns 0 or -1. */
int logged_begin(struct logger *log);
void logged_end(void);
/* Returns how many lines with TEXT were written since logged_begin. */
unsigned logged(const char *text);

#endif
