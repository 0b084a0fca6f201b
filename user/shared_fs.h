/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which file systems several machines share (NFS, SMB, Lustre, GPFS, BeeGFS, Ceph, sshfs ...), who
 * serves them, and whether two machines see the same one at the same path: a job's data that is
 * there need not be copied.  The answer comes from the mount table, which asks no server: one that
 * is gone holds nobody up.
 */
#ifndef IOCOM_SHARED_FS_H
#define IOCOM_SHARED_FS_H

#include <stdbool.h>
#include <stddef.h>

#define SHARED_FS_MAX 512

/* Returns whether file systems of this TYPE, as the mount table names it, are shared. */
bool shared_fs_is(const char *type);
/*
 * Names what is at PATH (absolute, without links) by the mount table TABLE, a file as
 * /proc/self/mountinfo: "SOURCE:DIRECTORY", where DIRECTORY is the path within that source. Returns
 * 0; -ENOENT: it is not on a shared file system; -ENAMETOOLONG; negative errno.
 */
int shared_fs_name(const char *table, const char *path, char *out, size_t size);
#define SHARED_FS_TABLE "/proc/self/mountinfo"
/*
 * Returns whether the table has a file system that another machine or a process serves, and that
 * may so keep whoever asks it waiting: a shared one, any of FUSE, or autofs; not below /proc and
 * /sys.
 */
bool shared_fs_may_hang(const char *table);
/*
 * Gives the address of the server of the shared file system that PATH is on.  Returns as
 * shared_fs_name; -ENXIO: the table does not say it.
 */
int shared_fs_server(const char *table, const char *path, char *out, size_t size);
/*
 * Returns whether this machine's NFS server exports PATH (absolute, without links), by EXPORTS, the
 * table that exportfs(8) keeps.
 */
bool shared_fs_exported(const char *exports, const char *path);
#define SHARED_FS_EXPORTS "/var/lib/nfs/etab"
/*
 * Returns whether NAME (of shared_fs_name) is the directory PATH of the NFS server's own file
 * systems: "HOST:EXPORT:DIRECTORY", where both paths together are PATH.
 */
bool shared_fs_is_export(const char *name, const char *path);
/* Returns whether NAME begins with an address of this machine, or with its name. */
bool shared_fs_is_own(const char *name);
#define SHARED_FS_HERE "@" /* in place of a server's address: the machine that says so */

#endif
