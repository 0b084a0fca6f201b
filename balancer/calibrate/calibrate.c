/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See calibrate.h. */
#include "balancer/calibrate/calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define LARGE	    (1u << 20)
#define SMALL	    4096u
#define READS_LEAST 4 /* of each reader, however slow the disk is */
#define SMALL_MB    (SMALL / 1e6)
#define ALIGNMENT   4096u
#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A generator of numbers that no disk can compress; SplitMix64. */
static uint64_t next_number(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* --- the file ----------------------------------------------------------------------- */

struct file {
	int fd;
	uint64_t bytes;
	const struct calibrate_disk_plan *plan;
};

static int open_nameless(const char *directory)
{
	char path[4096];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	/* A file system without nameless files. */
	if (snprintf(path, sizeof(path), "%s/.iocom-calibrate-XXXXXX", directory) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (fcntl(fd, F_SETFL, O_DIRECT)) {
		int rc = -errno;

		close(fd);
		return rc == -EINVAL ? -EOPNOTSUPP : rc;
	}
	return fd;
}

static int check_place(const struct calibrate_disk_plan *plan, struct iocom_err *err)
{
	struct statvfs room;
	struct statfs kind;

	if (statfs(plan->directory, &kind) || statvfs(plan->directory, &room))
		return iocom_err_set(err, -errno, "cannot look at %s: %s", plan->directory,
				     strerror(errno));
	if (kind.f_type == TMPFS_MAGIC || kind.f_type == RAMFS_MAGIC)
		return iocom_err_set(err, -EOPNOTSUPP,
				     "%s is in memory, not on a disk: name a directory of the disk "
				     "where jobs have their data (--dir)",
				     plan->directory);
	if (plan->bytes > (uint64_t)room.f_bavail * room.f_frsize / 2)
		return iocom_err_set(err, -ENOSPC,
				     "%s has %.0f MB free, and the file would take %.0f MB: more "
				     "than half of it (--size)",
				     plan->directory, (double)room.f_bavail * room.f_frsize / 1e6,
				     (double)plan->bytes / 1e6);
	return 0;
}

static int calibrate_failed(const char *what, const struct file *f, struct iocom_err *err)
{
	int rc = errno ? -errno : -EIO;

	return iocom_err_set(err, rc, "cannot %s a file in %s: %s", what, f->plan->directory,
			     strerror(-rc));
}

static void tell(const struct calibrate_disk_plan *plan, const char *what)
{
	if (plan->progress)
		plan->progress(plan->arg, what);
}

/* Memory for one request, aligned as O_DIRECT wants it. */
static void *request_memory(void)
{
	void *memory = NULL;

	return posix_memalign(&memory, ALIGNMENT, LARGE) ? NULL : memory;
}

/* Writes the file in order and waits for the disk. */
static int write_all(const struct file *f, uint8_t *memory, double *mb_per_s, struct iocom_err *err)
{
	uint64_t state = (uint64_t)getpid();
	double from = seconds_now();

	for (uint64_t at = 0; at < f->bytes; at += LARGE) {
		for (size_t i = 0; i < LARGE; i += sizeof(state)) {
			uint64_t n = next_number(&state);

			memcpy(memory + i, &n, sizeof(n));
		}
		errno = 0;
		if (pwrite(f->fd, memory, LARGE, (off_t)at) != LARGE)
			return calibrate_failed("write", f, err);
	}
	errno = 0;
	if (fdatasync(f->fd))
		return calibrate_failed("write", f, err);
	*mb_per_s = (double)f->bytes / 1e6 / (seconds_now() - from);
	return 0;
}

/* --- reading, by one and by many ------------------------------------------------------ */

struct reader {
	const struct file *file;
	pthread_t thread;
	size_t size;	/* of a request */
	bool in_order;	/* from FIRST on, else at random places */
	uint64_t first; /* in requests */
	uint64_t seed;
	double until; /* seconds_now() */
	uint64_t reads;
	int rc;
};

static void *read_beside_others(void *arg)
{
	struct reader *r = arg;
	uint8_t *memory = request_memory();
	uint64_t places = r->file->bytes / r->size;

	r->rc = memory ? 0 : -ENOMEM;
	do {
		uint64_t place = r->in_order ? r->first + r->reads : next_number(&r->seed);

		errno = 0;
		if (!r->rc && pread(r->file->fd, memory, r->size,
				    (off_t)(place % places * r->size)) != (ssize_t)r->size)
			r->rc = errno ? -errno : -EIO;
		r->reads++;
	} while (!r->rc && (seconds_now() < r->until || r->reads < READS_LEAST));
	free(memory);
	return NULL;
}

/* Reads with N requests of SIZE at a time; RATE is how many a second. */
static int read_many(const struct file *f, unsigned n, size_t size, bool in_order, double *rate,
		     struct iocom_err *err)
{
	struct reader readers[1u << (CALIBRATE_DEPTHS - 1)];
	double from = seconds_now();
	uint64_t reads = 0;
	unsigned begun = 0;
	int rc = 0;

	for (; begun < n && !rc; begun++) {
		readers[begun] = (struct reader){
			.file = f,
			.size = size,
			.in_order = in_order,
			.first = f->bytes / size * begun / n,
			.seed = begun + 1,
			.until = from + f->plan->seconds,
		};
		rc = -pthread_create(&readers[begun].thread, NULL, read_beside_others,
				     &readers[begun]);
		if (rc)
			break;
	}
	for (unsigned i = 0; i < begun; i++) {
		pthread_join(readers[i].thread, NULL);
		reads += readers[i].reads;
		rc = rc ? rc : readers[i].rc;
	}
	*rate = (double)reads / (seconds_now() - from);
	return rc ? iocom_err_set(err, rc, "cannot read a file in %s: %s", f->plan->directory,
				  strerror(-rc))
		  : 0;
}

/* The MB/s of N streams together, each in order. */
static int read_streams(const struct file *f, unsigned n, double *mb_per_s, struct iocom_err *err)
{
	int rc = read_many(f, n, LARGE, true, mb_per_s, err);

	*mb_per_s *= LARGE / 1e6;
	return rc;
}

/* --- the disk --------------------------------------------------------------------------- */

/* The part of a small request's time that is not its bytes. */
static double calibrate_fixed_ms(double small_ms, double mb_per_s)
{
	return mb_per_s > 0 ? fmax(0, small_ms - SMALL_MB / mb_per_s * 1e3) : small_ms;
}

static int measure_file(const struct file *f, uint8_t *memory, struct calibrate_disk *out,
			struct iocom_err *err)
{
	int rc;

	tell(f->plan, "writes in order");
	rc = write_all(f, memory, &out->write_mb_per_s, err);
	if (rc)
		return rc;
	tell(f->plan, "reads in order");
	rc = read_streams(f, 1, &out->read_mb_per_s, err);
	if (!rc) {
		tell(f->plan, "several streams that read in order");
		rc = read_streams(f, CALIBRATE_STREAMS, &out->streams_mb_per_s, err);
	}
	for (unsigned i = 0; i < CALIBRATE_DEPTHS && !rc; i++) {
		char what[64];

		snprintf(what, sizeof(what), "reads at random places, %u at a time", 1u << i);
		tell(f->plan, what);
		rc = read_many(f, 1u << i, SMALL, false, &out->reads_per_s[i], err);
		out->parallel_small =
			fmax(out->parallel_small, out->reads_per_s[i] / out->reads_per_s[0]);
	}
	if (rc)
		return rc;
	out->small_ms = 1e3 / out->reads_per_s[0];
	out->parallel = fmin(out->parallel_small, out->streams_mb_per_s / out->read_mb_per_s);
	out->parallel = fmin(fmax(1, out->parallel), CALIBRATE_STREAMS);
	out->fixed_ms = calibrate_fixed_ms(out->small_ms, out->read_mb_per_s);
	return 0;
}

int calibrate_disk(const struct calibrate_disk_plan *plan, struct calibrate_disk *out,
		   struct iocom_err *err)
{
	struct file f = {.plan = plan, .bytes = plan->bytes / LARGE * LARGE};
	uint8_t *memory;
	int rc = check_place(plan, err);

	*out = (struct calibrate_disk){.parallel = 0};
	if (rc)
		return rc;
	if (f.bytes < LARGE)
		return iocom_err_set(err, -EINVAL, "the file must have at least 1 MiB (--size)");
	f.fd = open_nameless(plan->directory);
	if (f.fd < 0)
		return iocom_err_set(err, f.fd,
				     f.fd == -EOPNOTSUPP || f.fd == -EINVAL
					     ? "%s: its file system cannot pass the page cache, so "
					       "the disk cannot be measured there (%s)"
					     : "cannot make a file in %s: %s",
				     plan->directory, strerror(-f.fd));
	memory = request_memory();
	rc = memory ? measure_file(&f, memory, out, err)
		    : iocom_err_set(err, -ENOMEM, "out of memory");
	free(memory);
	close(f.fd);
	return rc;
}

/* --- the processor ------------------------------------------------------------------------ */

#define TABLE 4096 /* 32 KiB: it stays in the first cache */
#define STEPS 200000u

static double cpu_run(uint64_t *table)
{
	double from = seconds_now();
	uint64_t state = 1;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t n = next_number(&state);

		table[n % TABLE] += n;
		state ^= table[(n >> 20) % TABLE];
	}
	table[0] ^= state; /* so that nothing of it is left out */
	return STEPS / 1e6 / (seconds_now() - from);
}

double calibrate_cpu(double seconds)
{
	uint64_t *table = calloc(TABLE, sizeof(*table));
	double until = seconds_now() + seconds, best = 0;

	if (!table)
		return 0;
	do
		best = fmax(best, cpu_run(table));
	while (seconds_now() < until);
	free(table);
	return best;
}
