/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A disk that fails when it is told to: all databases that SQLite opens after failing_disk_up
 * lie on it.  What it refuses is not written.
 */
#ifndef TEST_FAILING_DISK_H
#define TEST_FAILING_DISK_H

#include <stdbool.h>

#define FAILING_DISK_ALWAYS (~0u)

void failing_disk_up(void);
/* Call it when all databases are closed. */
void failing_disk_down(void);
/* The N-th write from now on fails (1: the next), and the next ones, TIMES in all. */
void failing_disk_at(unsigned n, unsigned times);
/* True: the writer finds the lock held by another process, and does not wait for it. */
void failing_disk_locked(bool locked);
/* Returns how many writes have failed since failing_disk_at. */
unsigned failing_disk_failures(void);

#endif
