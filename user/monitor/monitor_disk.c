/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Disks: compares what the programs counted with the kernel's own statistics (/proc/diskstats,
 * sectors of 512 bytes read and written). The difference, `residual_bytes`, shows how far the
 * attribution can be trusted.
 *
 * Bios in flight are in our columns but not yet in the kernel's statistics. An idle disk has
 * none, so there kernel - columns is exactly the residual, and what was queued but never
 * completed is remembered as lost. For a busy disk we compare the kernel's number with the
 * completions that we saw just before and just after reading it; what is queued and neither
 * completed nor lost is in flight.
 */
#include "user/monitor/monitor_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "iocom/array.h"

#define MINOR_BITS	20
#define SECTOR		512

#define STATISTICS_ROOM 4096 /* bytes at first */

static __u32 kernel_device(unsigned major, unsigned minor)
{
	return major << MINOR_BITS | minor;
}

/* Reads all of the statistics.  Returns 0 or negative errno. */
static int read_statistics(struct monitor_disks *disks)
{
	ssize_t n = 0;

	do {
		if (array_reserve(disks->text, disks->text_room, (size_t)n + 2, STATISTICS_ROOM))
			return -ENOMEM;
		n = kept_file_read(&disks->statistics, "/proc/diskstats", disks->text,
				   disks->text_room);
	} while (n >= 0 && (size_t)n + 1 == disks->text_room);
	return n < 0 ? (int)n : 0;
}

/* Calls FOUND for each line of the statistics. */
static int each_statistic(void (*found)(struct monitor_disks *disks, __u32 device, __u64 bytes,
					__u64 in_progress),
			  struct monitor_disks *disks, struct iocom_err *err)
{
	int rc = read_statistics(disks);

	if (rc)
		return iocom_err_set(err, rc, "cannot read /proc/diskstats: %s", strerror(-rc));
	for (const char *line = disks->text; *line; line += *line == '\n') {
		unsigned long long reads, writes, in_progress;
		unsigned major, minor;

		if (sscanf(line, "%u %u %*s %*u %*u %llu %*u %*u %*u %llu %*u %llu", &major, &minor,
			   &reads, &writes, &in_progress) == 5)
			found(disks, kernel_device(major, minor), (reads + writes) * SECTOR,
			      in_progress);
		line += strcspn(line, "\n");
	}
	return 0;
}

static void add_base(struct monitor_disks *disks, __u32 device, __u64 bytes, __u64 in_progress)
{
	void *bases;

	(void)in_progress;
	bases = realloc(disks->bases, sizeof(*disks->bases) * (disks->nbases + 1));
	if (!bases)
		return; /* without a base this disk's residual includes all its earlier I/O */
	disks->bases = bases;
	disks->bases[disks->nbases].device = device;
	disks->bases[disks->nbases].bytes = bytes;
	disks->nbases++;
}

int monitor_disks_baseline(struct monitor_disks *disks, struct iocom_err *err)
{
	return each_statistic(add_base, disks, err);
}

static __u64 base_of(const struct monitor_disks *disks, __u32 device)
{
	for (size_t i = 0; i < disks->nbases; i++)
		if (disks->bases[i].device == device)
			return disks->bases[i].bytes;
	return 0; /* the disk is newer than the monitor */
}

/* Puts all places into the queue of free ones. */
static int offer_places(struct iocom_bpf *skel, struct iocom_err *err)
{
	__u32 places = bpf_map__max_entries(skel->maps.disk_free);

	for (__u32 i = 0; i < places; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.disk_free), NULL, &i, 0))
			return iocom_err_set(err, -errno,
					     "cannot fill the queue of places for disks: %s",
					     strerror(errno));
	return 0;
}

/* Returns a free place; 0: there is none. */
static __u32 monitor_disk_take_place(struct iocom_bpf *skel)
{
	__u32 index;

	if (bpf_map_lookup_and_delete_elem(bpf_map__fd(skel->maps.disk_free), NULL, &index))
		return 0;
	return index + 1;
}

int monitor_disks_scope(struct iocom_bpf *skel, const char *const *names, struct iocom_err *err)
{
	int rc = offer_places(skel, err);

	for (; !rc && names && *names; names++) {
		unsigned major, minor;
		__u32 device, place;
		char path[128];
		FILE *file;
		int n;

		snprintf(path, sizeof(path), "/sys/block/%s/dev", *names);
		file = fopen(path, "re");
		if (!file)
			return iocom_err_set(err, -ENODEV,
					     "no disk named \"%s\": cannot read %s; name whole "
					     "disks as in /sys/block",
					     *names, path);
		n = fscanf(file, "%u:%u", &major, &minor);
		fclose(file);
		if (n != 2)
			return iocom_err_set(err, -ENODEV, "%s does not hold a device number",
					     path);
		device = kernel_device(major, minor);
		place = monitor_disk_take_place(skel);
		if (!place || bpf_map_update_elem(bpf_map__fd(skel->maps.disks), &device, &place,
						  BPF_NOEXIST))
			return iocom_err_set(err, -errno, "cannot enter disk \"%s\": %s", *names,
					     strerror(errno));
	}
	return rc;
}

static void name_disk(struct iocom_disk *disk)
{
	char path[64], target[256];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", disk->major, disk->minor);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		base = strrchr(target, '/');
		base = base ? base + 1 : target;
		snprintf(disk->name, sizeof(disk->name), "%.31s", base);
	} else {
		snprintf(disk->name, sizeof(disk->name), "%u:%u", disk->major, disk->minor);
	}
}

static struct disk_entry *entry_get(struct monitor_disks *disks, __u32 device)
{
	struct disk_entry *entry;
	size_t entries_room, reported_room;

	for (size_t i = 0; i < disks->count; i++)
		if (disks->entries[i].device == device)
			return &disks->entries[i];
	entries_room = reported_room = disks->capacity;
	if (array_reserve(disks->entries, entries_room, disks->count + 1, 8) ||
	    array_reserve(disks->reported, reported_room, disks->count + 1, 8))
		return NULL;
	disks->capacity = reported_room;
	entry = &disks->entries[disks->count++];
	memset(entry, 0, sizeof(*entry));
	entry->device = device;
	entry->disk.major = device >> MINOR_BITS;
	entry->disk.minor = device & ((1U << MINOR_BITS) - 1);
	entry->kernel_base = entry->kernel_last = base_of(disks, device);
	name_disk(&entry->disk);
	monitor_disk_begin(entry);
	return entry;
}

static void take_statistic(struct monitor_disks *disks, __u32 device, __u64 bytes,
			   __u64 in_progress)
{
	for (size_t i = 0; i < disks->count; i++) {
		struct disk_entry *entry = &disks->entries[i];

		if (entry->device != device)
			continue;
		if (entry->kernel_rebase)
			entry->kernel_base = entry->kernel_last = bytes;
		entry->kernel_rebase = false;
		/* Less than before: a new disk got the number and began at 0. */
		if (bytes < entry->kernel_last)
			entry->kernel_base -= entry->kernel_last; /* both differences wrap */
		entry->kernel_last = bytes;
		entry->disk.kernel_bytes = bytes - entry->kernel_base;
		entry->in_progress = in_progress;
	}
}

static void add_cpu(struct disk_value *sum, const struct disk_value *cpu)
{
	sum->task_bytes += cpu->task_bytes;
	sum->stacked_bytes += cpu->stacked_bytes;
	sum->foreign_bytes += cpu->foreign_bytes;
	sum->metadata_bytes += cpu->metadata_bytes;
	sum->writeback_bytes += cpu->writeback_bytes;
	sum->swap_out_bytes += cpu->swap_out_bytes;
	sum->other_bytes += cpu->other_bytes;
	sum->requests += cpu->requests;
	sum->read_bytes += cpu->read_bytes;
	sum->write_bytes += cpu->write_bytes;
	sum->service_ns += cpu->service_ns;
	sum->response_ns += cpu->response_ns;
	sum->service2 += cpu->service2;
}

/* Sums what all CPUs counted. Returns 0 or negative errno. */
static int read_value(struct monitor_disks *disks, struct iocom_bpf *skel, __u32 place,
		      struct disk_value *sum)
{
	__u32 index = place - 1;

	memset(sum, 0, sizeof(*sum));
	if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.disk_values), &index, disks->by_cpu))
		return -errno;
	for (size_t i = 0; i < disks->cpus; i++)
		add_cpu(sum, &disks->by_cpu[i]);
	return 0;
}

static bool monitor_disk_make_room(struct monitor_disks *disks)
{
	int cpus = libbpf_num_possible_cpus();

	if (disks->by_cpu)
		return true;
	if (cpus <= 0)
		return false;
	disks->cpus = (size_t)cpus;
	disks->by_cpu = calloc(disks->cpus, sizeof(*disks->by_cpu));
	return disks->by_cpu != NULL;
}

static __u64 monitor_disk_queued(const struct disk_value *v)
{
	return v->task_bytes + v->stacked_bytes + v->foreign_bytes + v->metadata_bytes +
	       v->writeback_bytes + v->swap_out_bytes + v->other_bytes;
}

static __u64 monitor_disk_completed(const struct disk_value *v)
{
	return v->read_bytes + v->write_bytes;
}

/* Returns how far VALUE is outside of [LOW, HIGH]. */
static __s64 outside(__u64 value, __u64 low, __u64 high)
{
	if (value < low)
		return -(__s64)(low - value);
	return value > high ? (__s64)(value - high) : 0;
}

static void check_identity(struct disk_entry *entry)
{
	const struct disk_value *was = &entry->earlier, *is = &entry->value;
	__u64 kernel = entry->disk.kernel_bytes;
	__s64 rest;

	if (!entry->in_progress && monitor_disk_queued(was) == monitor_disk_queued(is) &&
	    monitor_disk_completed(was) == monitor_disk_completed(is)) {
		entry->disk.residual_bytes = (__s64)(kernel - monitor_disk_queued(is));
		entry->lost = (__s64)(monitor_disk_queued(is) - monitor_disk_completed(is));
		entry->in_flight = 0;
		return;
	}
	if (is->requests) {
		entry->disk.residual_bytes =
			outside(kernel, monitor_disk_completed(was), monitor_disk_completed(is)) -
			entry->lost;
		rest = (__s64)(monitor_disk_queued(is) - monitor_disk_completed(is)) - entry->lost;
	} else {
		/* A disk without requests (dm, md) reports no completions: use the residual of
		 * its last idle time. */
		rest = (__s64)(monitor_disk_queued(is) - kernel) + entry->disk.residual_bytes;
	}
	entry->in_flight = rest > 0 ? (__u64)rest : 0;
}

static void fill_disk(struct disk_entry *entry)
{
	const double unit2_ms2 = SERVICE_UNIT_NS * SERVICE_UNIT_NS * 1e-12;
	const struct disk_value *v = &entry->value;
	struct iocom_disk *disk = &entry->disk;

	disk->requests = v->requests;
	disk->read_bytes = v->read_bytes;
	disk->write_bytes = v->write_bytes;
	disk->service_sum_ns = v->service_ns;
	disk->response_sum_ns = v->response_ns;
	disk->service_sum2_ms2 += (double)(v->service2 - entry->service2) * unit2_ms2;
	entry->service2 = v->service2;
	disk->task_bytes = v->task_bytes;
	disk->stacked_bytes = v->stacked_bytes;
	disk->foreign_bytes = v->foreign_bytes;
	disk->unattributed_bytes =
		v->metadata_bytes + v->writeback_bytes + v->swap_out_bytes + v->other_bytes;
	check_identity(entry);
}

static void sum_disks(const struct monitor_disks *disks, struct monitor_sample *sample)
{
	__u64 off = 0;

	/* The sums are cumulative, so removed disks stay in them. */
	sample->unattributed.metadata_bytes = disks->gone.metadata_bytes;
	sample->unattributed.writeback_bytes = disks->gone.writeback_bytes;
	sample->unattributed.swap_out_bytes = disks->gone.swap_out_bytes;
	sample->unattributed.other_bytes = disks->gone.other_bytes;
	memset(&sample->identity, 0, sizeof(sample->identity));
	for (size_t i = 0; i < disks->count; i++) {
		const struct disk_entry *entry = &disks->entries[i];
		__s64 residual = entry->disk.residual_bytes;

		sample->unattributed.metadata_bytes += entry->value.metadata_bytes;
		sample->unattributed.writeback_bytes += entry->value.writeback_bytes;
		sample->unattributed.swap_out_bytes += entry->value.swap_out_bytes;
		sample->unattributed.other_bytes += entry->value.other_bytes;
		sample->identity.kernel_bytes += entry->disk.kernel_bytes;
		sample->identity.in_flight_bytes += entry->in_flight;
		sample->identity.residual_bytes += residual;
		off += residual < 0 ? -(__u64)residual : (__u64)residual;
	}
	if (sample->identity.kernel_bytes)
		sample->identity.residual_share =
			(double)off / (double)sample->identity.kernel_bytes;
}

/* Finds the disks that the programs saw, and reads their counters before the kernel's
 * statistics. */
static int find_disks(struct monitor_disks *disks, struct iocom_bpf *skel, struct iocom_err *err)
{
	int fd = bpf_map__fd(skel->maps.disks);
	__u32 key, place, *previous = NULL;

	while (!bpf_map_get_next_key(fd, previous, &key)) {
		struct disk_value value;
		struct disk_entry *entry;

		previous = &key;
		if (bpf_map_lookup_elem(fd, &key, &place) || (place & PLACE_IGNORED) ||
		    read_value(disks, skel, place, &value))
			continue;
		entry = entry_get(disks, key);
		if (!entry)
			return iocom_err_set(err, -ENOMEM, "out of memory for disks");
		entry->place = place;
		if (!monitor_disk_same(disks, entry, &value))
			disks->replaced++;
		entry->earlier = monitor_disk_since(entry, &value);
	}
	return 0;
}

int monitor_disks_read(struct monitor_disks *disks, struct iocom_bpf *skel,
		       struct monitor_sample *sample, struct iocom_err *err)
{
	int rc;

	if (!monitor_disk_make_room(disks))
		return iocom_err_set(err, -ENOMEM, "out of memory for disks");
	rc = find_disks(disks, skel, err);
	if (!rc)
		rc = each_statistic(take_statistic, disks, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < disks->count; i++) {
		struct disk_entry *entry = &disks->entries[i];
		struct disk_value value;

		if (read_value(disks, skel, entry->place, &value))
			entry->value = entry->earlier;
		else
			entry->value = monitor_disk_since(entry, &value);
		fill_disk(entry);
		if (!monitor_disk_hidden(entry))
			disks->reported[sample->ndisks++] = entry->disk;
	}
	sum_disks(disks, sample);
	sample->disks = disks->reported;
	return 0;
}

void monitor_disks_deinit(struct monitor_disks *disks)
{
	free(disks->entries);
	free(disks->reported);
	free(disks->bases);
	free(disks->by_cpu);
	free(disks->text);
	kept_file_close(&disks->statistics);
}
