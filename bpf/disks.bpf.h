/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where each disk's counters are.
 *
 *   disks         dev_t -> place; only grows
 *   disk_values   by place, for each CPU: plain additions
 *   disk_marks    by place: shared by all CPUs
 *   disk_free     places that no disk has
 *   disk_near     the last place found for each part of the device numbers, which saves
 *                 most events the look-up in the hash
 *
 * A place is an index plus 1; PLACE_IGNORED is set for a disk in memory.
 */
#ifndef IOCOM_DISKS_BPF_H
#define IOCOM_DISKS_BPF_H

FOLD_MAP(disks, u32, u32, 256);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct disk_value);
} disk_values SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct disk_mark);
} disk_marks SEC(".maps");

/* Unused indices, which user space puts here. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 256);
	__type(value, u32);
} disk_free SEC(".maps");

#define DISKS_NEAR_BITS 6
__u64 disk_near[1 << DISKS_NEAR_BITS]; /* dev_t << 32 | place */
bool swapping;			       /* some disk is swapped to */

static __always_inline bool is_memory(struct gendisk *disk)
{
	char name[4];

	bpf_probe_read_kernel(name, sizeof(name), disk->disk_name);
	return (name[0] == 'r' && name[1] == 'a' && name[2] == 'm') ||
	       (name[0] == 'z' && name[1] == 'r' && name[2] == 'a' && name[3] == 'm');
}

/* Returns the place of a new disk, or the place that another CPU has just given it; 0: no room. */
static __always_inline u32 disk_enter(u32 device, bool ignored)
{
	u32 index, *found, place;

	if (bpf_map_pop_elem(&disk_free, &index)) {
		count_drop(DROP_DISKS);
		return 0;
	}
	place = (index + 1) | (ignored ? PLACE_IGNORED : 0);
	if (!bpf_map_update_elem(&disks, &device, &place, BPF_NOEXIST))
		return place;
	bpf_map_push_elem(&disk_free, &index, 0);
	found = bpf_map_lookup_elem(&disks, &device);
	if (found)
		return *found;
	count_drop(DROP_DISKS);
	return 0;
}

static __noinline u32 disk_look(struct gendisk *disk, u32 device, bool enter)
{
	u32 *found = bpf_map_lookup_elem(&disks, &device);

	if (found)
		return *found;
	return enter && cfg_all_disks ? disk_enter(device, is_memory(disk)) : 0;
}

static __always_inline u32 disk_device(struct gendisk *disk)
{
	return (u32)disk->major << 20 | disk->first_minor;
}

/* Returns a disk's place; 0: the disk is not counted. ENTER: give a new disk a place. */
static __always_inline u32 disk_place(struct gendisk *disk, u32 device, bool enter)
{
	u64 *near = &disk_near[(device * 0x9e3779b1U) >> (32 - DISKS_NEAR_BITS)];
	u64 known = *near;
	u32 place;

	if (known >> 32 == device)
		return (u32)known;
	place = disk_look(disk, device, enter);
	if (place)
		*near = (u64)device << 32 | place;
	return place;
}

static __always_inline struct disk_value *disk_at(u32 place)
{
	u32 index = (place & ~PLACE_IGNORED) -
		    1; /* for place 0 this is beyond the end, so nothing is found */

	return bpf_map_lookup_elem(&disk_values, &index);
}

static __always_inline struct disk_mark *disk_mark_at(u32 place)
{
	u32 index = (place & ~PLACE_IGNORED) - 1;

	return bpf_map_lookup_elem(&disk_marks, &index);
}

/* For the bio programs: only one of them runs at a time on a CPU. */
#define DISK_ADD(disk, field, amount)                                                              \
	do {                                                                                       \
		if (disk)                                                                          \
			(disk)->field += (amount);                                                 \
	} while (0)

/* bio_queue and bio_remap both add to this, and one may interrupt the other. */
static __always_inline void disk_add_stacked(struct disk_value *disk, u64 bytes)
{
	if (disk)
		__sync_fetch_and_add(&disk->stacked_bytes, bytes);
}

static __always_inline void disk_note_swapped(u32 place)
{
	struct disk_mark *mark = disk_mark_at(place);

	if (mark)
		mark->swapped = 1;
	swapping = true;
}

static __always_inline bool disk_is_swapped(u32 place)
{
	struct disk_mark *mark;

	if (!swapping)
		return false;
	mark = disk_mark_at(place);
	return mark && mark->swapped;
}

#endif
