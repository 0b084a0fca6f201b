/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Golden traces of what a part of the agent did on a virtual loop: each line with its time in
 * ms, log lines among them.  A program's traces are the sections of one file in tests/golden;
 * a change of behaviour shows as a diff there.  GOLDEN_UPDATE=1 rewrites the file.
 */
#ifndef TEST_TRACE_H
#define TEST_TRACE_H

#include <stdio.h>

#include "agent/base/loop.h"

/* Before a program's first test; NAME, which is borrowed: tests/golden/NAME.txt. */
void trace_file(const char *name);
/* From now on times are LOOP's, and the path HIDDEN is written as DIR.  Both are borrowed. */
void trace_begin(const struct loop *loop, const char *hidden);
__attribute__((format(printf, 1, 2))) void trace_line(const char *fmt, ...);
/* Leaves events and log lines out of the trace if PAUSE is true, and takes them in again if not. */
void trace_pause(bool pause);
/* Compares the trace with section TITLE, and fails at the first line that differs. */
void trace_compare(const char *title);
/* Call it in each tear-down. */
void trace_end(void);

/*
 * Compares TEXT with section TITLE of tests/golden/NAME.txt, or (NULL) with the whole file, and
 * fails at the first line that differs.
 */
void trace_golden(const char *name, const char *title, const char *text);
/* Writes TEXT with DIR for each HIDDEN, a path that differs from run to run. */
void trace_hide(FILE *out, const char *text, const char *hidden);

#endif
