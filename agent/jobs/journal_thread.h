/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The thread that syncs the journal's file, so that the loop never waits for the disk.  It
 * touches no member of the journal: it syncs the file of the write-ahead log by a descriptor of
 * its own, and tells the loop.
 */
#ifndef IOCOM_JOURNAL_THREAD_H
#define IOCOM_JOURNAL_THREAD_H

#include "agent/base/base.h"
#include "agent/jobs/journal.h"

struct journal_thread;

/*
 * Syncs JOURNAL, the file PATH, from now on.  Borrows BASE and JOURNAL.  Failures are logged and
 * counted (journal_sync_failures).  Returns 0 or negative errno with the reason in ERR.
 */
int journal_thread_new(struct journal_thread **thread, const struct base *base,
		       struct journal *journal, const char *path, struct iocom_err *err);
/* Syncs once more for those who wait, and ends.  JOURNAL is still open.  NULL is fine. */
void journal_thread_free(struct journal_thread *thread);

#endif
