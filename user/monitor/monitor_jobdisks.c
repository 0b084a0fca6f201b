/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Disk time by job: the kernel side counts what each job submitted to each disk; here we share
 * each disk's service time since the last reading among them. If a disk served but no job has
 * counts, its time waits for the next reading.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/monitor/jobdisk_share.h"
#include "user/monitor/monitor_internal.h"

#define BATCH 512
/* after this many readings an entry is removed if the table is half full */
#define IDLE_READINGS 300

struct known {
	struct job_disk_key key;
	struct job_disk_value value;
	uint32_t used; /* last reading that saw it grow */
};

/* What we keep of a disk from reading to reading. */
struct due {
	uint32_t device;
	struct iocom_disk before;
	struct jobdisk_due due;
	double part;
	double operations, bytes; /* sums of all jobs in this reading */
};

struct monitor_jobdisks {
	struct known *known, *next;   /* sorted by key; JOB_DISKS each */
	struct job_disk_value *grown; /* growth of `next` since the last reading */
	size_t n;
	struct due *dues;
	size_t ndues;
	uint32_t reading;
	struct job_disk_key keys[BATCH];
	struct job_disk_value values[BATCH];
};

struct monitor_jobdisks *monitor_jobdisks_new(void)
{
	struct monitor_jobdisks *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->known = calloc(JOB_DISKS, sizeof(*j->known));
	j->next = calloc(JOB_DISKS, sizeof(*j->next));
	j->grown = calloc(JOB_DISKS, sizeof(*j->grown));
	if (j->known && j->next && j->grown)
		return j;
	monitor_jobdisks_free(j);
	return NULL;
}

void monitor_jobdisks_free(struct monitor_jobdisks *j)
{
	if (!j)
		return;
	free(j->known);
	free(j->next);
	free(j->grown);
	free(j->dues);
	free(j);
}

static int monitor_jobdisks_by_key(const void *a, const void *b)
{
	const struct job_disk_key *x = &((const struct known *)a)->key;
	const struct job_disk_key *y = &((const struct known *)b)->key;

	if (x->cgid != y->cgid)
		return x->cgid < y->cgid ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

/* Reads the kernel's table into `next` and its size into N. */
static int read_table(struct monitor_jobdisks *j, int fd, size_t *n, struct iocom_err *err)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	__u32 cursor = 0, count;
	bool first = true, last = false;

	*n = 0;
	while (!last) {
		count = BATCH;
		if (bpf_map_lookup_batch(fd, first ? NULL : &cursor, &cursor, j->keys, j->values,
					 &count, &opts)) {
			if (errno != ENOENT)
				return iocom_err_set(err, -errno, "cannot read map job_disks: %s",
						     strerror(errno));
			last = true;
		}
		first = false;
		for (__u32 i = 0; i < count && *n < JOB_DISKS; i++)
			j->next[(*n)++] = (struct known){j->keys[i], j->values[i], j->reading};
	}
	if (*n)
		qsort(j->next, *n, sizeof(*j->next), monitor_jobdisks_by_key);
	return 0;
}

/* Computes what each entry grew, and keeps the last time of growth of the others. */
static void monitor_jobdisks_compare(struct monitor_jobdisks *j, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct known *now = &j->next[i];
		const struct known *was =
			j->n ? bsearch(now, j->known, j->n, sizeof(*now), monitor_jobdisks_by_key)
			     : NULL;

		j->grown[i] = now->value;
		if (!was || was->value.operations > now->value.operations ||
		    was->value.metadata_bytes > now->value.metadata_bytes)
			continue;
		j->grown[i].operations -= was->value.operations;
		j->grown[i].bytes -= was->value.bytes;
		j->grown[i].metadata_bytes -= was->value.metadata_bytes;
		if (!j->grown[i].bytes && !j->grown[i].metadata_bytes)
			now->used = was->used;
	}
}

static struct due *due_of(struct monitor_jobdisks *j, uint32_t device)
{
	for (size_t i = 0; i < j->ndues; i++)
		if (j->dues[i].device == device)
			return &j->dues[i];
	return NULL;
}

static int take_disks(struct monitor_jobdisks *j, const struct monitor_sample *sample)
{
	for (size_t i = 0; i < sample->ndisks; i++) {
		const struct iocom_disk *disk = &sample->disks[i];
		uint32_t device = disk->major << 20 | disk->minor;
		struct due *d = due_of(j, device);

		if (!d) {
			d = reallocarray(j->dues, j->ndues + 1, sizeof(*d));
			if (!d)
				return -ENOMEM;
			j->dues = d;
			d = &j->dues[j->ndues++];
			*d = (struct due){.device = device};
		}
		jobdisk_due_add(&d->due, disk, &d->before, &d->part);
		d->before = *disk;
		d->operations = d->bytes = 0;
	}
	return 0;
}

static int monitor_jobdisks_share(struct monitor_jobdisks *j, size_t n, struct fold *fold)
{
	struct due *d;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		d = due_of(j, j->next[i].key.device);
		if (!d)
			continue;
		d->operations += (double)j->grown[i].operations;
		d->bytes += (double)j->grown[i].bytes;
	}
	for (size_t i = 0; i < n && !rc; i++) {
		struct iocom_disk_time time = {0};

		d = j->grown[i].bytes ? due_of(j, j->next[i].key.device) : NULL;
		if (d)
			time = jobdisk_share(&d->due, (double)j->grown[i].operations,
					     (double)j->grown[i].bytes, d->operations, d->bytes);
		time.metadata_bytes = j->grown[i].metadata_bytes;
		if (!d && !time.metadata_bytes)
			continue;
		rc = fold_disk_time(fold, j->next[i].key.cgid, &time);
	}
	for (size_t i = 0; i < j->ndues; i++)
		if (j->dues[i].bytes > 0)
			j->dues[i].due = (struct jobdisk_due){0};
	return rc;
}

/*
 * Removes idle entries. If one grows at this moment it starts again from 0, and only its past is
 * lost.
 */
static size_t forget_idle(struct monitor_jobdisks *j, int fd, size_t n)
{
	size_t kept = 0;

	if (n < JOB_DISKS / 2)
		return n;
	for (size_t i = 0; i < n; i++) {
		if (j->next[i].used + IDLE_READINGS < j->reading)
			bpf_map_delete_elem(fd, &j->next[i].key);
		else
			j->next[kept++] = j->next[i];
	}
	return kept;
}

int monitor_jobdisks_read(struct monitor_jobdisks *j, struct iocom_bpf *skel,
			  const struct monitor_sample *sample, struct fold *fold,
			  struct iocom_err *err)
{
	int fd = bpf_map__fd(skel->maps.job_disks);
	struct known *swap = j->known;
	size_t n;
	int rc;

	j->reading++;
	if (!monitor_filled(&skel->bss->job_disks_added, j->reading)) {
		/* No entry has grown: what a disk served waits for the next reading. */
		rc = take_disks(j, sample);
		if (!rc)
			rc = monitor_jobdisks_share(j, 0, fold);
		return rc ? iocom_err_set(err, rc, "out of memory for the disks of jobs") : 0;
	}
	rc = read_table(j, fd, &n, err);
	if (rc)
		return rc;
	monitor_jobdisks_compare(j, n);
	if (take_disks(j, sample) || monitor_jobdisks_share(j, n, fold))
		return iocom_err_set(err, -ENOMEM, "out of memory for the disks of jobs");
	j->n = forget_idle(j, fd, n);
	j->known = j->next;
	j->next = swap;
	return 0;
}
