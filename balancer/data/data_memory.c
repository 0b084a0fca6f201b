/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_memory.h. */
#include "balancer/data/data_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_LAYOUT  2
#define MEMORY_BUSY_MS 2000
#define MEMORY_KEEP_S  (90 * 86400L)
#define MEMORY_NODES   64
#define MEMORY_WEIGHT  "4" /* of a new run at least one in so many */
#define NS_PER_S       1000000000ll
/* A file that changed less than this before it was read may change again in the same tick. */
#define MEMORY_TICK_NS 20000000ll
#define STRINGIFY(x)   STRINGIFY_(x)
#define STRINGIFY_(x)  #x

struct data_memory {
	sqlite3 *db;
};

static const char memory_schema[] =
	"CREATE TABLE hashes (device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER,"
	" ctime INTEGER, hash BLOB, used INTEGER, PRIMARY KEY (device, inode));"
	"CREATE TABLE brought (class TEXT PRIMARY KEY, runs INTEGER, bytes REAL, used INTEGER);"
	"CREATE TABLE staged (hash BLOB, node TEXT, used INTEGER, PRIMARY KEY (hash, node));"
	"PRAGMA user_version = " STRINGIFY(MEMORY_LAYOUT) ";";

static int64_t memory_ns(const struct timespec *t)
{
	return t->tv_sec * NS_PER_S + t->tv_nsec;
}

static int memory_path(char *out, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct stat st;
	int n;

	if (cache && *cache == '/')
		n = snprintf(out, size, "%s", cache);
	else if (home && *home == '/')
		n = snprintf(out, size, "%s/.cache", home);
	else
		return -ENOENT;
	if (n < 0 || (size_t)n + sizeof("/iocom/data.db") > size)
		return -ENAMETOOLONG;
	(void)mkdir(out, 0700);
	strcat(out, "/iocom");
	(void)mkdir(out, 0700);
	/* With another user's HOME (sudo -E, su) we would write there, where that user can put
	 * links. */
	if (lstat(out, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	strcat(out, "/data.db");
	return 0;
}

static int memory_version(sqlite3 *db)
{
	sqlite3_stmt *stmt;
	int version = -1;

	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		version = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return version;
}

/* One of another layout, or a broken one, begins anew. */
static sqlite3 *memory_open(const char *path, bool again)
{
	sqlite3 *db = NULL;
	int version = -1;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
	    SQLITE_OK) {
		sqlite3_busy_timeout(db, MEMORY_BUSY_MS);
		version = memory_version(db);
	}
	if (version == 0 && sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK) {
		if (memory_version(db) == 0)
			(void)sqlite3_exec(db, memory_schema, NULL, NULL, NULL);
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
		version = memory_version(db);
	}
	if (version == MEMORY_LAYOUT) {
		(void)sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
		return db;
	}
	sqlite3_close(db);
	if (!again || unlink(path))
		return NULL;
	return memory_open(path, false);
}

struct data_memory *data_memory_open(void)
{
	struct data_memory *memory = calloc(1, sizeof(*memory));
	char path[PATH_MAX];

	if (memory && !memory_path(path, sizeof(path)))
		memory->db = memory_open(path, true);
	if (memory && memory->db)
		return memory;
	free(memory);
	return NULL;
}

void data_memory_close(struct data_memory *memory)
{
	if (!memory)
		return;
	sqlite3_close(memory->db);
	free(memory);
}

static sqlite3_stmt *memory_prepare(struct data_memory *memory, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (!memory || sqlite3_prepare_v2(memory->db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return NULL;
	return stmt;
}

static void memory_bind_file(sqlite3_stmt *stmt, const struct data_item *item)
{
	sqlite3_bind_int64(stmt, 1, (int64_t)item->device);
	sqlite3_bind_int64(stmt, 2, (int64_t)item->inode);
	sqlite3_bind_int64(stmt, 3, (int64_t)item->entry.size);
	sqlite3_bind_int64(stmt, 4, memory_ns(&item->mtime));
	sqlite3_bind_int64(stmt, 5, memory_ns(&item->ctime));
}

void data_memory_hashes(struct data_memory *memory, struct data_set *set)
{
	sqlite3_stmt *stmt = memory_prepare(
		memory, "SELECT hash FROM hashes WHERE device = ?1 AND inode = ?2 AND size = ?3 "
			"AND mtime = ?4 AND ctime = ?5");

	for (size_t i = 0; stmt && i < set->count; i++) {
		struct data_item *item = &set->at[i];

		if (item->entry.kind != DATA_KIND_FILE)
			continue;
		memory_bind_file(stmt, item);
		if (sqlite3_step(stmt) == SQLITE_ROW &&
		    sqlite3_column_bytes(stmt, 0) == DATA_HASH) {
			memcpy(item->entry.hash, sqlite3_column_blob(stmt, 0), DATA_HASH);
			item->entry.hashed = true;
		}
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
}

void data_memory_note_hash(struct data_memory *memory, const struct data_item *item,
			   const struct timespec *since)
{
	sqlite3_stmt *stmt;

	if (memory_ns(since) - memory_ns(&item->ctime) < MEMORY_TICK_NS)
		return;
	stmt = memory_prepare(memory,
			      "INSERT OR REPLACE INTO hashes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
	if (!stmt)
		return;
	memory_bind_file(stmt, item);
	sqlite3_bind_blob(stmt, 6, item->entry.hash, DATA_HASH, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 7, since->tv_sec);
	(void)sqlite3_step(stmt);
	sqlite3_finalize(stmt);
}

static void memory_forget_old(struct data_memory *memory, int64_t now_s)
{
	int64_t before_s = now_s - MEMORY_KEEP_S;
	char sql[300];

	snprintf(sql, sizeof(sql),
		 "DELETE FROM hashes WHERE used < %" PRId64
		 "; DELETE FROM staged WHERE used < %" PRId64
		 "; DELETE FROM brought WHERE used < %" PRId64,
		 before_s, before_s, before_s);
	(void)sqlite3_exec(memory->db, sql, NULL, NULL, NULL);
}

void data_memory_note_node(struct data_memory *memory, const char *node, const struct data_set *set)
{
	sqlite3_stmt *stmt =
		memory_prepare(memory, "INSERT OR REPLACE INTO staged VALUES (?1, ?2, ?3)");
	int64_t now_s = time(NULL);

	if (!stmt)
		return;
	(void)sqlite3_exec(memory->db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < set->count; i++) {
		const struct data_entry *entry = &set->at[i].entry;

		if (entry->kind != DATA_KIND_FILE || !entry->hashed)
			continue;
		sqlite3_bind_blob(stmt, 1, entry->hash, DATA_HASH, SQLITE_STATIC);
		sqlite3_bind_text(stmt, 2, node, -1, SQLITE_STATIC);
		sqlite3_bind_int64(stmt, 3, now_s);
		(void)sqlite3_step(stmt);
		sqlite3_reset(stmt);
	}
	memory_forget_old(memory, now_s);
	(void)sqlite3_exec(memory->db, "COMMIT", NULL, NULL, NULL);
	sqlite3_finalize(stmt);
}

struct held {
	char node[65];
	uint64_t bytes;
};

static void held_add(struct held *held, size_t *n, const char *node, uint64_t bytes)
{
	size_t i = 0;

	while (i < *n && strcmp(held[i].node, node) != 0)
		i++;
	if (i == MEMORY_NODES || strlen(node) >= sizeof(held->node))
		return;
	if (i == *n) {
		(*n)++;
		snprintf(held[i].node, sizeof(held[i].node), "%s", node);
		held[i].bytes = 0;
	}
	held[i].bytes += bytes;
}

static int held_compare(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

void data_memory_held(struct data_memory *memory, const struct data_set *set, char *out,
		      size_t size)
{
	sqlite3_stmt *stmt = memory_prepare(memory, "SELECT node FROM staged WHERE hash = ?1");
	struct held held[MEMORY_NODES] = {0};
	size_t n = 0, at = 0;

	*out = 0;
	for (size_t i = 0; stmt && i < set->count; i++) {
		const struct data_entry *entry = &set->at[i].entry;

		if (entry->kind != DATA_KIND_FILE || !entry->hashed || !entry->size)
			continue;
		sqlite3_bind_blob(stmt, 1, entry->hash, DATA_HASH, SQLITE_STATIC);
		while (sqlite3_step(stmt) == SQLITE_ROW)
			held_add(held, &n, (const char *)sqlite3_column_text(stmt, 0), entry->size);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	qsort(held, n, sizeof(*held), held_compare);
	for (size_t i = 0; i < n; i++) {
		char one[96];
		int length = snprintf(one, sizeof(one), "%s%s=%" PRIu64, at ? "," : "",
				      held[i].node, held[i].bytes);

		if (at + (size_t)length >= size)
			break;
		memcpy(out + at, one, (size_t)length + 1);
		at += (size_t)length;
	}
}

/* --- what jobs bring home --------------------------------------------------------------- */

void data_memory_note_brought(struct data_memory *memory, const char *class_name, uint64_t bytes)
{
	sqlite3_stmt *stmt = memory_prepare(
		memory, "INSERT INTO brought VALUES (?1, 1, ?2, ?3) ON CONFLICT (class) DO UPDATE "
			"SET runs = runs + 1, used = ?3, "
			"bytes = bytes + (?2 - bytes) / min(runs + 1, " MEMORY_WEIGHT ")");

	if (!stmt)
		return;
	sqlite3_bind_text(stmt, 1, class_name, -1, SQLITE_STATIC);
	sqlite3_bind_double(stmt, 2, (double)bytes);
	sqlite3_bind_int64(stmt, 3, time(NULL));
	(void)sqlite3_step(stmt);
	sqlite3_finalize(stmt);
}

int64_t data_memory_brought(struct data_memory *memory, const char *class_name, uint64_t *bytes)
{
	sqlite3_stmt *stmt =
		memory_prepare(memory, "SELECT runs, bytes FROM brought WHERE class = ?1");
	int64_t runs = 0;
	double mean = 0;

	*bytes = 0;
	if (!stmt)
		return 0;
	sqlite3_bind_text(stmt, 1, class_name, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) == SQLITE_ROW) {
		runs = sqlite3_column_int64(stmt, 0);
		mean = sqlite3_column_double(stmt, 1);
	}
	sqlite3_finalize(stmt);
	if (runs < 1 || !(mean >= 0 && mean <= (double)DATA_BYTES_MAX))
		return 0;
	*bytes = (uint64_t)mean;
	return runs;
}
