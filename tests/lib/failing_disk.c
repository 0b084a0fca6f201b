/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A disk that fails; see failing_disk.h.  The files are those of SQLite's own file system layer;
 * each kind of them has a table of functions, and gets a copy of it with some of ours.
 */
#include "tests/lib/failing_disk.h"

#include <sqlite3.h>
#include <stdlib.h>

#define KINDS 4

static struct {
	sqlite3_vfs *real, vfs;
	struct kind {
		sqlite3_io_methods mine; /* the first: a file's pointer to it is one to the kind */
		const sqlite3_io_methods *real;
	} kinds[KINDS];
	/* how many writes still succeed, how many then fail, and how many have failed */
	unsigned good, bad, failures;
	bool locked;
} disk;

static const sqlite3_io_methods *real_of(const sqlite3_file *file)
{
	return ((const struct kind *)(const void *)file->pMethods)->real;
}

static int failing_disk_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 offset)
{
	if (disk.good) {
		disk.good--;
	} else if (disk.bad) {
		disk.bad -= disk.bad != FAILING_DISK_ALWAYS;
		disk.failures++;
		return SQLITE_IOERR_WRITE;
	}
	return real_of(file)->xWrite(file, data, n, offset);
}

/* Does nothing, because nothing here must outlive a power cut. */
static int failing_disk_sync(sqlite3_file *file, int flags)
{
	(void)file;
	(void)flags;
	return SQLITE_OK;
}

/* The first of the locks is that of who writes (WAL). */
static int failing_disk_lock(sqlite3_file *file, int offset, int n, int flags)
{
	const int take = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;

	if (disk.locked && offset == 0 && flags == take)
		return SQLITE_BUSY;
	return real_of(file)->xShmLock(file, offset, n, flags);
}

static const sqlite3_io_methods *mine_for(const sqlite3_io_methods *real)
{
	struct kind *k = disk.kinds;

	while (k->real && k->real != real)
		if (++k == disk.kinds + KINDS)
			abort(); /* SQLite has more kinds of files than we know */
	k->real = real;
	k->mine = *real;
	k->mine.xWrite = failing_disk_write;
	k->mine.xSync = failing_disk_sync;
	if (real->iVersion > 1)
		k->mine.xShmLock = failing_disk_lock;
	return &k->mine;
}

static int failing_disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			     int *out)
{
	int rc = disk.real->xOpen(disk.real, name, file, flags, out);

	(void)vfs;
	if (rc || !file->pMethods)
		return rc;
	file->pMethods = mine_for(file->pMethods);
	return rc;
}

static int failing_disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)sync;
	return disk.real->xDelete(disk.real, name, 0);
}

static int failing_disk_sleep(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	return us;
}

void failing_disk_up(void)
{
	disk.real = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.real;
	disk.vfs.zName = "failing";
	disk.vfs.xOpen = failing_disk_open;
	disk.vfs.xDelete = failing_disk_delete;
	disk.vfs.xSleep = failing_disk_sleep;
	disk.good = disk.bad = disk.failures = 0;
	disk.locked = false;
	sqlite3_vfs_register(&disk.vfs, 1);
}

void failing_disk_down(void)
{
	sqlite3_vfs_unregister(&disk.vfs);
	sqlite3_vfs_register(disk.real, 1);
}

void failing_disk_at(unsigned n, unsigned times)
{
	disk.good = n ? n - 1 : 0;
	disk.bad = n ? times : 0;
	disk.failures = 0;
}

void failing_disk_locked(bool locked)
{
	disk.locked = locked;
}

unsigned failing_disk_failures(void)
{
	return disk.failures;
}
