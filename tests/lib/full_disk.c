/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See full_disk.h. */
#include "tests/lib/full_disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disk_file {
	sqlite3_file base;
	const char *path; /* belongs to SQLite as long as the file is open */
	sqlite3_file real[];
};

static struct {
	sqlite3_vfs vfs, *real;
	char part[64];
	unsigned nth, times, seen, failed;
	int error; /* that such a write gets */
	bool locked;
} disk;

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct disk_file *)file)->real;
}

static bool disk_refuses(sqlite3_file *file)
{
	const char *path = ((struct disk_file *)file)->path;

	if (!disk.nth || !strstr(path ? path : "", disk.part))
		return false;
	if (++disk.seen < disk.nth || disk.seen - disk.nth >= disk.times)
		return false;
	disk.failed++;
	return true;
}

static int disk_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
	return disk_refuses(file) ? disk.error
				  : real_of(file)->pMethods->xWrite(real_of(file), data, n, at);
}

static int disk_sync(sqlite3_file *file, int flags)
{
	(void)file;
	(void)flags;
	return SQLITE_OK;
}

/* The rest is the real file's. */
static int disk_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int disk_read(sqlite3_file *file, void *data, int n, sqlite3_int64 at)
{
	return real_of(file)->pMethods->xRead(real_of(file), data, n, at);
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int disk_lock(sqlite3_file *file, int kind)
{
	return real_of(file)->pMethods->xLock(real_of(file), kind);
}

static int disk_unlock(sqlite3_file *file, int kind)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), kind);
}

static int disk_reserved(sqlite3_file *file, int *out)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int disk_control(sqlite3_file *file, int op, void *arg)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int disk_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int disk_traits(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int disk_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
	return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

/* The first of these locks is that of who writes (WAL). */
static int disk_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
	if (disk.locked && at == 0 && flags == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE))
		return SQLITE_BUSY;
	return real_of(file)->pMethods->xShmLock(real_of(file), at, n, flags);
}

static void disk_shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int disk_shm_unmap(sqlite3_file *file, int remove)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods disk_methods = {
	.iVersion = 2,
	.xClose = disk_close,
	.xRead = disk_read,
	.xWrite = disk_write,
	.xTruncate = disk_truncate,
	.xSync = disk_sync,
	.xFileSize = disk_size,
	.xLock = disk_lock,
	.xUnlock = disk_unlock,
	.xCheckReservedLock = disk_reserved,
	.xFileControl = disk_control,
	.xSectorSize = disk_sector,
	.xDeviceCharacteristics = disk_traits,
	.xShmMap = disk_shm_map,
	.xShmLock = disk_shm_lock,
	.xShmBarrier = disk_shm_barrier,
	.xShmUnmap = disk_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
		     int *out)
{
	struct disk_file *f = (struct disk_file *)file;
	int rc = disk.real->xOpen(disk.real, name, f->real, flags, out);

	(void)vfs;
	f->path = name;
	f->base.pMethods = f->real->pMethods ? &disk_methods : NULL;
	return rc;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)sync;
	return disk.real->xDelete(disk.real, name, 0);
}

static int disk_sleep(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	return disk.locked ? us : disk.real->xSleep(disk.real, us);
}

void full_disk_use(void)
{
	if (disk.real)
		return;
	disk.real = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.real;
	disk.vfs.zName = "full-disk";
	disk.vfs.pNext = NULL;
	disk.vfs.szOsFile = (int)sizeof(struct disk_file) + disk.real->szOsFile;
	disk.vfs.xOpen = disk_open;
	disk.vfs.xDelete = disk_delete;
	disk.vfs.xSleep = disk_sleep;
	if (sqlite3_vfs_register(&disk.vfs, 1) != SQLITE_OK)
		abort();
}

static void disk_fail(int error, const char *part, unsigned nth, unsigned times)
{
	snprintf(disk.part, sizeof(disk.part), "%s", part);
	disk.error = error;
	disk.nth = nth;
	disk.times = times;
	disk.seen = disk.failed = 0;
}

void full_disk_fail(const char *part, unsigned nth, unsigned times)
{
	disk_fail(SQLITE_FULL, part, nth, times);
}

void full_disk_break(const char *part, unsigned nth, unsigned times)
{
	disk_fail(SQLITE_IOERR_WRITE, part, nth, times);
}

void full_disk_lock(bool locked)
{
	disk.locked = locked;
}

void full_disk_mend(void)
{
	disk_fail(SQLITE_OK, "", 0, 0);
}

unsigned full_disk_failed(void)
{
	return disk.failed;
}
