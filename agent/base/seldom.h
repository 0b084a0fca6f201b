/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Messages that others can provoke often are logged seldom: they must not hide the rest. */
#ifndef IOCOM_SELDOM_H
#define IOCOM_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns true if a message, logged last at *SAID_NS (0: never), may be logged again NOW_NS, as
 * EVERY_NS have passed; *SAID_NS is NOW_NS then.  Both in CLOCK_BOOTTIME.
 */
bool seldom_again(uint64_t *said_ns, uint64_t now_ns, uint64_t every_ns);

#endif
