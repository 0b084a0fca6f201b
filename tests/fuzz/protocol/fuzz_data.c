/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bytes of any kind as the messages with which a job's data goes along (user/data_stage.h): a
 * process of the user decodes the client's, the client the node's, and the shim the last message.
 * What is taken is in range, its names are below their directory, and packing it gives the same
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "user/data_stage.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

static void try_entry(const uint8_t *payload, uint32_t length)
{
	static uint8_t packed[DATA_PIECE];
	struct data_entry entry, again;
	int n;

	if (data_entry_unpack(&entry, payload, length))
		return;
	must(data_path_valid(entry.path) && entry.mode <= 0777 && entry.size <= DATA_BYTES_MAX &&
	     entry.mtime_ns >= 0);
	must(entry.kind == DATA_KIND_FILE || (!entry.size && !entry.hashed));
	n = data_entry_pack(&entry, packed, sizeof(packed));
	must(n > 0);
	must(!data_entry_unpack(&again, packed, (size_t)n));
	must(!strcmp(entry.path, again.path) && entry.size == again.size &&
	     entry.kind == again.kind && entry.hashed == again.hashed);
	data_entry_free(&entry);
	data_entry_free(&again);
}

static void try_stats(const uint8_t *payload, uint32_t length)
{
	struct data_stats stats;

	if (!data_stats_unpack(&stats, payload, length))
		must(stats.cache_bytes <= DATA_BYTES_MAX && stats.evicted_bytes <= DATA_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *payload;
	size_t consumed;
	uint32_t length;
	uint8_t type;

	while (!data_next(data, size, &type, &payload, &length, &consumed)) {
		must(consumed == length + DATA_HEAD && consumed <= size && length <= DATA_PIECE);
		if (type == DATA_STATS)
			try_stats(payload, length);
		else
			try_entry(payload, length);
		data += consumed;
		size -= consumed;
	}
	return 0;
}

/* Samples: entries with and without a hash, and what a node did. */
bool sample(int number, FILE *out)
{
	const struct data_entry entry = {.path = (char *)"in/put",
					 .mode = 0644,
					 .size = 5,
					 .mtime_ns = 1,
					 .hashed = number == 1};
	const struct data_stats stats = {.copied_bytes = 1, .quota_bytes = 2};
	uint8_t packed[1024], head[DATA_HEAD];
	int n;

	if (number > 2)
		return false;
	n = number < 2 ? data_entry_pack(&entry, packed, sizeof(packed))
		       : data_stats_pack(&stats, packed, sizeof(packed));
	data_head(head, number < 2 ? DATA_ENTRY : DATA_STATS, (uint32_t)n);
	fwrite(head, sizeof(head), 1, out);
	fwrite(packed, (size_t)n, 1, out);
	return true;
}

FUZZ_SAMPLES
