/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A disk below a journal that syncs when the test says so, and as the test says. */
#ifndef IOCOM_TESTS_SLOW_DISK_H
#define IOCOM_TESTS_SLOW_DISK_H

#include "agent/jobs/journal.h"

struct slow_disk {
	struct journal *journal;
	unsigned begun; /* syncs so far */
	bool syncing;	/* one is under way */
	bool repair;	/* the last one was to repair */
};

/* From now on JOURNAL waits for DISK. */
void slow_disk_use(struct slow_disk *disk, struct journal *journal);
/* The sync under way, which there must be, ends with RC. */
void slow_disk_end(struct slow_disk *disk, int rc);
/* Syncs until nobody waits.  Returns how many syncs that took. */
unsigned slow_disk_flush(struct slow_disk *disk);

#endif
