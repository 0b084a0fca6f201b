/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Records until when this node's agents counted: a line in STATE_DIR/counting, rewritten with each
 * reading.  Counters restart with each agent; from this line a new agent knows for how long nothing
 * was counted, however the last one ended.
 */
#ifndef IOCOM_UPTIME_MARK_H
#define IOCOM_UPTIME_MARK_H

#include <stdint.h>

#include "iocom/err.h"

/*
 * Opens the file in DIRECTORY; the caller closes *FD.  *UNTIL_NS: the last reading of an earlier
 * agent (CLOCK_BOOTTIME ns); 1: it was before this boot, so nothing was counted since the boot; 0:
 * there was none or the file is unreadable.  Returns 0 or negative errno with the reason in ERR.
 */
int uptime_mark_open(int *fd, const char *directory, uint64_t *until_ns, struct iocom_err *err);
/* A reading ended at BOOT_NS.  Failures are ignored: the gap then seems longer. */
void uptime_mark_note(int fd, uint64_t boot_ns);

#endif
