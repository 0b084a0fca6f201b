/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See slow_disk.h. */
#include "tests/lib/slow_disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void slow_disk_begin(void *arg, bool repair)
{
	struct slow_disk *disk = arg;

	assert_false(disk->syncing);
	disk->syncing = true;
	disk->repair = repair;
	disk->begun++;
}

void slow_disk_use(struct slow_disk *disk, struct journal *journal)
{
	*disk = (struct slow_disk){.journal = journal};
	journal_set_disk(journal, &(struct journal_disk){.begin = slow_disk_begin, .arg = disk});
}

void slow_disk_end(struct slow_disk *disk, int rc)
{
	assert_true(disk->syncing);
	disk->syncing = false;
	journal_synced(disk->journal, rc);
}

unsigned slow_disk_flush(struct slow_disk *disk)
{
	unsigned n = 0;

	for (; disk->syncing; n++)
		slow_disk_end(disk, 0);
	return n;
}
