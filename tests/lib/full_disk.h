/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A disk for SQLite that is full or broken at will: it counts the writes of some files and lets
 * one of them fail, and as many that follow as it is told; or its files are locked.  What it
 * refuses is not written.  It is SQLite's default from full_disk_use on, so that the programs
 * under test need not know of it.  It does not wait for the disk (fsync).
 */
#ifndef IOCOM_TESTS_FULL_DISK_H
#define IOCOM_TESTS_FULL_DISK_H

#include <stdbool.h>

#define FULL_DISK_ALWAYS (~0u)

/* Before the first database is opened; once more is fine. */
void full_disk_use(void);
/*
 * The NTH write from now, from 1, to a file with PART in its path fails for want of room, and so
 * do those that follow, TIMES in all.
 */
void full_disk_fail(const char *part, unsigned nth, unsigned times);
/* As full_disk_fail, but the writes end with an I/O error. */
void full_disk_break(const char *part, unsigned nth, unsigned times);
/* True: another process holds the lock of who writes, and nobody waits for it. */
void full_disk_lock(bool locked);
/* No write fails any more. */
void full_disk_mend(void);
/* How many writes failed since the last full_disk_fail, full_disk_break or full_disk_mend. */
unsigned full_disk_failed(void);

#endif
