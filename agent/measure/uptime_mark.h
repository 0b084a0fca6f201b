/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Until when this node's agents counted: a line in STATE_DIR/counting, renewed
 * with each reading.  Counters begin anew with each agent, however the last one
 * ended; from this line the new one knows how long nothing was counted.
 */
#ifndef IOCOM_UPTIME_MARK_H
#define IOCOM_UPTIME_MARK_H

#include <stdint.h>

#include "iocom/err.h"

/*
 * Opens the file in DIRECTORY; *FD is the caller's to close.  *UNTIL_NS: the last
 * reading of an earlier agent (CLOCK_BOOTTIME ns); 1 when that was before this
 * boot: nothing was counted since the boot; 0 when there was none or the file says
 * nothing.  0 or negative errno with the sentence.
 */
int uptime_mark_open(int *fd, const char *directory, uint64_t *until_ns, struct iocom_err *err);
/* A reading ended at BOOT_NS.  Failures are ignored: the gap then seems longer. */
void uptime_mark_note(int fd, uint64_t boot_ns);

#endif
