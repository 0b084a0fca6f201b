/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How full the tables of the eBPF programs are, and how much memory they use. The kernel shows
 * no number of a hash's entries to user space, so we count them, and do that rarely. For task
 * and socket storage even that is impossible.
 */
#include "user/monitor/monitor_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY_S 30
#define LOOK_REST_S  120
#define BATCH	     256
#define EIGHT(n)     (((size_t)(n) + 7) & ~(size_t)7)

/* Reads the memory from /proc/self/fdinfo; 0: it is not there. */
static __u64 monitor_maps_memory_of(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	fclose(f);
	return bytes;
}

/* Returns the size of one entry's value in user space. */
static size_t value_size(const struct bpf_map *map)
{
	if (bpf_map__type(map) != BPF_MAP_TYPE_PERCPU_HASH)
		return EIGHT(bpf_map__value_size(map));
	return EIGHT(bpf_map__value_size(map)) * (size_t)libbpf_num_possible_cpus();
}

static bool countable(const struct bpf_map *map)
{
	enum bpf_map_type type = bpf_map__type(map);

	return type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH ||
	       type == BPF_MAP_TYPE_PERCPU_HASH;
}

static __u64 monitor_maps_count_entries(const struct bpf_map *map)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	/* The batch call's cursor: as large as a key, but at least 4 bytes. */
	void *place = calloc(1, EIGHT(bpf_map__key_size(map)));
	void *keys = calloc(BATCH, EIGHT(bpf_map__key_size(map)));
	void *values = calloc(BATCH, value_size(map));
	__u64 entries = place && keys && values ? 0 : MONITOR_ENTRIES_UNKNOWN;
	bool first = true;
	int rc = 0;

	while (entries != MONITOR_ENTRIES_UNKNOWN && !rc) {
		__u32 count = BATCH;

		rc = bpf_map_lookup_batch(bpf_map__fd(map), first ? NULL : place, place, keys,
					  values, &count, &opts);
		first = false;
		if (!rc || errno == ENOENT)
			entries += count;
		else /* this kernel has no batches, or a bucket is too large for one */
			entries = MONITOR_ENTRIES_UNKNOWN;
	}
	free(place);
	free(keys);
	free(values);
	return entries;
}

void monitor_maps_read(struct monitor_maps *maps, struct iocom_bpf *skel, __u64 now_s, bool resting)
{
	struct bpf_object_skeleton *skeleton = skel->skeleton;

	if (maps->looked_s && now_s < maps->looked_s + (resting ? LOOK_REST_S : LOOK_EVERY_S))
		return;
	maps->looked_s = now_s;
	maps->count = 0;
	for (int i = 0; i < skeleton->map_cnt && maps->count < MONITOR_MAPS; i++) {
		const struct bpf_map *map = *skeleton->maps[i].map;
		struct monitor_map *out = &maps->list[maps->count];

		if (bpf_map__is_internal(map) || bpf_map__fd(map) < 0)
			continue;
		snprintf(out->name, sizeof(out->name), "%s", bpf_map__name(map));
		out->entries_max = countable(map) ? bpf_map__max_entries(map) : 0;
		out->entries =
			countable(map) ? monitor_maps_count_entries(map) : MONITOR_ENTRIES_UNKNOWN;
		out->memory_bytes = monitor_maps_memory_of(bpf_map__fd(map));
		maps->count++;
	}
}
