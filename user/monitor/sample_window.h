/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sums several readings: a watcher with an interval longer than the period of the readings gets
 * their sum. Deltas and elapsed time add up, a task that ended in any of the readings is there
 * once, and everything else is the newest.
 */
#ifndef IOCOM_SAMPLE_WINDOW_H
#define IOCOM_SAMPLE_WINDOW_H

#include "user/monitor/monitor.h"

struct sample_window;

struct sample_window *sample_window_new(void); /* returns NULL if there is no memory */
void sample_window_free(struct sample_window *window);
/*
 * Copies what it needs of tasks, jobs, remotes and disks. SAMPLE's drops, programs and names
 * stay borrowed until sample_window_take. Returns 0, or -ENOMEM with the window unchanged.
 */
int sample_window_add(struct sample_window *window, const struct monitor_sample *sample);
/*
 * Takes the readings since the last take as one, or returns -ENODATA if there were none. OUT and
 * BEFORE (the disks at the previous take) point into the window until the next add or free.
 */
int sample_window_take(struct sample_window *window, struct monitor_sample *out,
		       const struct iocom_disk **before, size_t *nbefore);

#endif
