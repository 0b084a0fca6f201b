/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Names of files survive a power cut only when their directory is synced, too. */
#ifndef IOCOM_SYNC_NAME_H
#define IOCOM_SYNC_NAME_H

/* Waits until the disk has the name of the file PATH.  Returns 0 or negative errno. */
int sync_name(const char *path);

#endif
