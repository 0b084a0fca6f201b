/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A filter of system calls, as sandboxes have one, that refuses the kernel's keys. */
#ifndef IOCOM_REFUSE_KEYS_H
#define IOCOM_REFUSE_KEYS_H

#include <stdbool.h>

/*
 * From now on, in this process and what it executes, keyctl fails with ERROR (0: it does nothing
 * and seems to succeed), and if ALL, so do add_key and request_key. It stays. Returns 0, or -1 with
 * errno.
 */
int refuse_keys(int error, bool all);

#endif
