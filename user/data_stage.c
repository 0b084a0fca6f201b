/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_stage.h. */
#include "user/data_stage.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "user/pack.h"

void data_entry_free(struct data_entry *entry)
{
	free(entry->path);
	entry->path = NULL;
}

bool data_path_valid(const char *path)
{
	size_t depth = 0;

	if (!*path || strlen(path) >= PATH_MAX)
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!n || n > NAME_MAX || ++depth > DATA_DEPTH || (n == 1 && *path == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

bool data_path_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	if (!strcmp(top, "."))
		return true;
	return !strncmp(path, top, n) && (!path[n] || path[n] == '/');
}

void data_head(uint8_t head[DATA_HEAD], enum data_type type, uint32_t length)
{
	head[0] = (uint8_t)type;
	for (int i = 0; i < 4; i++)
		head[1 + i] = (uint8_t)(length >> (24 - 8 * i));
}

int data_next(const uint8_t *at, size_t have, uint8_t *type, const uint8_t **payload,
	      uint32_t *length, size_t *consumed)
{
	uint32_t n;

	if (have < DATA_HEAD)
		return 1;
	n = (uint32_t)at[1] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 8 | at[4];
	if (n > DATA_PIECE)
		return -EBADMSG;
	if (have - DATA_HEAD < n)
		return 1;
	*type = at[0];
	*payload = at + DATA_HEAD;
	*length = n;
	*consumed = DATA_HEAD + n;
	return 0;
}

static int data_packed(msgpack_sbuffer *buffer, uint8_t *out, size_t size)
{
	int rc = buffer->size <= size && buffer->size <= DATA_PIECE ? (int)buffer->size : -EMSGSIZE;

	if (rc > 0)
		memcpy(out, buffer->data, buffer->size);
	msgpack_sbuffer_destroy(buffer);
	return rc;
}

int data_entry_pack(const struct data_entry *entry, uint8_t *out, size_t size)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 6 + (entry->hashed ? 1 : 0));
	pack_bin(&pk, "path", entry->path, strlen(entry->path));
	pack_u64(&pk, "kind", entry->kind);
	pack_u64(&pk, "mode", entry->mode);
	pack_bool(&pk, "writable", entry->writable);
	pack_u64(&pk, "size", entry->size);
	/* Times before 1970 are told as 1970. */
	pack_u64(&pk, "mtime_ns", entry->mtime_ns < 0 ? 0 : (uint64_t)entry->mtime_ns);
	if (entry->hashed)
		pack_bin(&pk, "hash", entry->hash, sizeof(entry->hash));
	return data_packed(&buffer, out, size);
}

static int data_entry_take(struct data_entry *entry, const msgpack_object *map)
{
	const msgpack_object *hash = unpack_get(map, "hash");
	uint64_t kind, mode, mtime;
	char path[PATH_MAX];

	if (unpack_str(map, "path", path, sizeof(path)) || !data_path_valid(path) ||
	    unpack_u64(map, "kind", &kind) || kind > DATA_KIND_DIRECTORY ||
	    unpack_u64(map, "mode", &mode) || mode > 0777 ||
	    unpack_bool(map, "writable", &entry->writable) ||
	    unpack_u64(map, "size", &entry->size) || entry->size > DATA_BYTES_MAX ||
	    unpack_u64(map, "mtime_ns", &mtime) || mtime > INT64_MAX)
		return -EBADMSG;
	if (hash && (hash->type != MSGPACK_OBJECT_BIN || hash->via.bin.size != DATA_HASH))
		return -EBADMSG;
	if (kind == DATA_KIND_DIRECTORY && (hash || entry->size))
		return -EBADMSG;
	entry->kind = (enum data_kind)kind;
	entry->mode = (mode_t)mode;
	entry->mtime_ns = (int64_t)mtime;
	entry->hashed = hash != NULL;
	if (hash)
		memcpy(entry->hash, hash->via.bin.ptr, DATA_HASH);
	entry->path = strdup(path);
	return entry->path ? 0 : -ENOMEM;
}

int data_entry_unpack(struct data_entry *entry, const void *data, size_t length)
{
	msgpack_unpacked message;
	int rc = unpack_map(&message, data, length);

	*entry = (struct data_entry){0};
	if (rc)
		return -EBADMSG;
	rc = data_entry_take(entry, &message.data);
	msgpack_unpacked_destroy(&message);
	return rc;
}

/* The fields of struct data_stats, in its order; all are of one type. */
static const char *const stats_fields[] = {
	"copied_bytes",	 "copied_files", "found_bytes", "found_files", "evicted_bytes",
	"evicted_files", "cache_bytes",	 "cache_files", "quota_bytes",
};
#define STATS_FIELDS (sizeof(stats_fields) / sizeof(stats_fields[0]))

_Static_assert(sizeof(struct data_stats) == STATS_FIELDS * sizeof(uint64_t), "one name a field");

int data_stats_pack(const struct data_stats *stats, uint8_t *out, size_t size)
{
	uint64_t values[STATS_FIELDS];
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	memcpy(values, stats, sizeof(values));
	pack_begin(&pk, &buffer, STATS_FIELDS);
	for (size_t i = 0; i < STATS_FIELDS; i++)
		pack_u64(&pk, stats_fields[i], values[i]);
	return data_packed(&buffer, out, size);
}

int data_stats_unpack(struct data_stats *stats, const void *data, size_t length)
{
	uint64_t values[STATS_FIELDS] = {0};
	msgpack_unpacked message;
	int rc = unpack_map(&message, data, length);

	*stats = (struct data_stats){0};
	if (rc)
		return -EBADMSG;
	for (size_t i = 0; i < STATS_FIELDS && !rc; i++)
		if (unpack_u64(&message.data, stats_fields[i], &values[i]) ||
		    values[i] > DATA_BYTES_MAX)
			rc = -EBADMSG;
	msgpack_unpacked_destroy(&message);
	if (!rc)
		memcpy(stats, values, sizeof(*stats));
	return rc;
}

struct data_hash {
	crypto_generichash_state state;
};

struct data_hash *data_hash_new(void)
{
	/* libsodium wants its state aligned, and says how large it is. */
	size_t size = (crypto_generichash_statebytes() + 63) / 64 * 64;
	struct data_hash *hash = sodium_init() < 0 ? NULL : aligned_alloc(64, size);

	if (hash)
		crypto_generichash_init(&hash->state, NULL, 0, DATA_HASH);
	return hash;
}

void data_hash_add(struct data_hash *hash, const void *data, size_t length)
{
	crypto_generichash_update(&hash->state, data, length);
}

void data_hash_end(struct data_hash *hash, uint8_t out[DATA_HASH])
{
	crypto_generichash_final(&hash->state, out, DATA_HASH);
	free(hash);
}

void data_hash_text(char out[DATA_HASH_TEXT], const uint8_t hash[DATA_HASH])
{
	sodium_bin2hex(out, DATA_HASH_TEXT, hash, DATA_HASH);
}
