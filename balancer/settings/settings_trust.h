/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What iocomd believes as root must be root's alone. */
#ifndef IOCOM_SETTINGS_TRUST_H
#define IOCOM_SETTINGS_TRUST_H

#include "balancer/settings/settings.h"

/* Checks the configuration file PATH like trust_path. */
int settings_trust_file(const char *path, struct iocom_err *err);
/*
 * Checks what the complete settings SET name: the shim, PAM's directory and service file, and the
 * directory of munged's socket, which may be MUNGE's own.  What is missing is fine here.  A shim is
 * checked only if this very program is root's alone: else whoever may change the shim may change
 * this program.  Returns 0; -EPERM with the reason in ERR, which names the setting; other negative
 * errno.
 */
int settings_trust(const struct settings *set, struct iocom_err *err);

#endif
