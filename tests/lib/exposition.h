/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A strict reader of the Prometheus text format, for tests: it refuses even what a scraper would
 * accept with a warning.
 */
#ifndef IOCOM_TESTS_EXPOSITION_H
#define IOCOM_TESTS_EXPOSITION_H

#include <stddef.h>

#define EXPOSITION_WHY 256

/*
 * Checks that each family comes once, with HELP, TYPE, and then all its samples; that counters
 * end in _total and gauges do not; that names, labels, escapes, UTF-8 and numbers are valid; and
 * that no series comes twice. Returns the number of series, or -1 with the reason in WHY.
 */
int exposition_check(const char *text, char why[EXPOSITION_WHY]);
/* Returns the value of SERIES ("name{label=\"value\"}", as written), or NAN if it is not there. */
double exposition_value(const char *text, const char *series);
/* Returns the sum over the series of a family. */
double exposition_sum(const char *text, const char *name);

#endif
