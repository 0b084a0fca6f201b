/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What client and node say to each other while a job's data goes along (man iocom-channel).  The
 * frames of FRAME_STAGE carry a stream of messages of this form, which the shim passes on unread
 * between the client and a process of the job's own user; an empty frame from the shim begins it:
 *
 *   type u8 | length u32 big-endian | payload
 *
 *   before the job   client: ENTRY ... LIST    node: WANT
 *                    client: for each entry wanted, in order, DATA ... FILE; then DONE
 *                    node:   STATS, and the job begins; or the sentence of a refusal (FRAME_EXIT),
 *                            after FULL if cache or disk have no room: it may run elsewhere
 *   after the job    client: PATH ... DONE
 *                    node:   for each file below the paths ENTRY DATA|HOLE ... FILE, for each
 *                            directory ENTRY, for what is not there or not a file GONE; then DONE
 *
 * Both ends bound what they read: nobody trusts the other with memory, names or amounts.
 */
#ifndef IOCOM_DATA_STAGE_H
#define IOCOM_DATA_STAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"

#define DATA_HASH      32 /* BLAKE2b, libsodium's generichash */
#define DATA_ENTRIES   65536
#define DATA_PATHS     64 /* named by --data, and by --bring */
#define DATA_DEPTH     64 /* directories in directories */
#define DATA_BYTES_MAX (1ull << 50)
#define DATA_HEAD      5
#define DATA_HOLE_SIZE 8
#define DATA_PIECE     (60u << 10)		/* of a file in one message */
#define DATA_MESSAGE   (DATA_PIECE + DATA_HEAD) /* fits into one frame */

/* The first word after iocom-shim, for the processes that do it; SWEEP: removes what is left. */
#define DATA_TAKE_WORD	"--data-take"
#define DATA_GIVE_WORD	"--data-give"
#define DATA_SWEEP_WORD "--data-sweep"

#define DATA_GROUP	".data" /* behind the job's name: the cgroup of these processes */

/* Flags of a spec: what goes along. */
#define DATA_FLAG_TAKE	1u /* the job runs in a directory of its own, with its data */
#define DATA_FLAG_BRING 2u /* afterwards the client fetches files from there */
#define DATA_FLAGS	3u

enum data_type {
	DATA_ENTRY = 'E',
	DATA_LIST = 'L',
	DATA_WANT = 'W', /* one byte an entry: 1 if its content is missing */
	DATA_DATA = 'D',
	DATA_HOLE = 'H', /* u64 big-endian: so many bytes are 0 and take no room on the disk */
	DATA_FILE = 'F', /* the hash of what was sent: payloads of DATA and HOLE */
	DATA_DONE = 'Z',
	DATA_STATS = 'S',
	DATA_FULL = 'N',
	DATA_PATH = 'P',
	DATA_GONE = 'G', /* path, NUL, sentence */
};

enum data_kind { DATA_KIND_FILE, DATA_KIND_DIRECTORY };

struct data_entry {
	char *path; /* relative, without "." and ".."; owned */
	enum data_kind kind;
	mode_t mode;   /* rwx bits */
	bool writable; /* the job may change it: it gets a copy of its own */
	uint64_t size;
	int64_t mtime_ns;
	bool hashed; /* the content's hash is known before it is read */
	uint8_t hash[DATA_HASH];
};

void data_entry_free(struct data_entry *entry); /* frees what it points to */

/* What a node says when the data is there. */
struct data_stats {
	uint64_t copied_bytes, copied_files; /* came over the network */
	uint64_t found_bytes, found_files;   /* were in the cache */
	uint64_t evicted_bytes, evicted_files;
	uint64_t cache_bytes, cache_files, quota_bytes;
};

/* Returns whether PATH is relative, below its directory, not too long or deep, and no link's. */
bool data_path_valid(const char *path);
/* Returns whether PATH is TOP or below it; "." has all below it. */
bool data_path_below(const char *path, const char *top);

/* Fills the head of a message. */
void data_head(uint8_t head[DATA_HEAD], enum data_type type, uint32_t length);
/*
 * Finds the first message in HAVE bytes.  Returns 0 and TYPE, PAYLOAD, LENGTH, CONSUMED; 1: it is
 * not all there; -EBADMSG.
 */
int data_next(const uint8_t *at, size_t have, uint8_t *type, const uint8_t **payload,
	      uint32_t *length, size_t *consumed);

/* Pack the payload into OUT (SIZE).  Return its length, or -EMSGSIZE. */
int data_entry_pack(const struct data_entry *entry, uint8_t *out, size_t size);
int data_stats_pack(const struct data_stats *stats, uint8_t *out, size_t size);
/* Return 0, -EBADMSG or -ENOMEM.  The caller frees ENTRY on success. */
int data_entry_unpack(struct data_entry *entry, const void *data, size_t length);
int data_stats_unpack(struct data_stats *stats, const void *data, size_t length);

/* The running hash of a file; data_hash_new allocates what libsodium needs. */
struct data_hash;
struct data_hash *data_hash_new(void); /* NULL: no memory */
void data_hash_add(struct data_hash *hash, const void *data, size_t length);
void data_hash_end(struct data_hash *hash, uint8_t out[DATA_HASH]); /* frees HASH */

#define DATA_HASH_TEXT (2 * DATA_HASH + 1)
void data_hash_text(char out[DATA_HASH_TEXT], const uint8_t hash[DATA_HASH]);

#endif
