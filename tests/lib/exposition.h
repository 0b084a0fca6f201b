/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A strict reader of the Prometheus text format, for tests: refuses what a
 * scraper may only grumble about.
 */
#ifndef IOCOM_TESTS_EXPOSITION_H
#define IOCOM_TESTS_EXPOSITION_H

#include <stddef.h>

#define EXPOSITION_WHY 256

/*
 * Each family: HELP, TYPE, then all its samples; once.  Counters end in _total,
 * gauges do not.  Names, labels, escapes, UTF-8 and numbers are checked, no series
 * comes twice.  The number of series; -1 with the reason in WHY.
 */
int exposition_check(const char *text, char why[EXPOSITION_WHY]);
/* The value of SERIES ("name{label=\"value\"}", as written); NAN when it is not there. */
double exposition_value(const char *text, const char *series);
/* The sum over the series of a family. */
double exposition_sum(const char *text, const char *name);

#endif
