/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whether the processor's breakpoints stop a process.  In some virtual machines they can be set and
 * nothing happens, and criu would wait for one for ever.
 */
#ifndef IOCOM_SHIM_BREAKPOINT_H
#define IOCOM_SHIM_BREAKPOINT_H

#include <stdbool.h>

/* Tries it with a process of its own.  Returns true also where it cannot be tried. */
bool breakpoint_works(void);

#endif
