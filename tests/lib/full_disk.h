/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A disk for SQLite that is full at will: it counts the writes of one file and lets one of them
 * fail, or that one and all that follow.  It is SQLite's default from full_disk_use on, so that
 * the programs under test need not know of it.  It does not wait for the disk (fsync).
 */
#ifndef IOCOM_TESTS_FULL_DISK_H
#define IOCOM_TESTS_FULL_DISK_H

#include <stdbool.h>

/* Call it once, before the first database is opened. */
void full_disk_use(void);
/*
 * The NTH write from now, from 1, to a file with PART in its path fails: that one alone, or
 * (FOR_GOOD) all from there on.  NTH 0: none does.
 */
void full_disk_fail(const char *part, unsigned nth, bool for_good);
/* Returns how many writes failed since full_disk_fail. */
unsigned full_disk_failed(void);

#endif
