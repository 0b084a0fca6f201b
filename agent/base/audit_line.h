/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One line in the agent's log when jobs leave no records in the kernel's audit log. */
#ifndef IOCOM_AUDIT_LINE_H
#define IOCOM_AUDIT_LINE_H

#include "user/log.h"

/* Asks the kernel, waits 2 s at most, and writes the line if audit is off. */
void audit_line_write(struct logger *log);

#endif
