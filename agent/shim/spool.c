/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job's output on disk; see spool.h. */
#include "agent/shim/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/channel/bytes.h"

static const char *const names[FRAME_STREAMS] = {"", RECORD_OUT, RECORD_ERR};

void spool_init(struct spool *spool)
{
	*spool = (struct spool){.fd = {-1, -1, -1}, .fd_tail = -1};
}

void spool_deinit(struct spool *spool)
{
	for (int i = 1; i < FRAME_STREAMS; i++)
		if (spool->fd[i] >= 0)
			close(spool->fd[i]);
	if (spool->fd_tail >= 0)
		close(spool->fd_tail);
	spool_init(spool);
}

struct spool_size spool_share(uint64_t quota, bool terminal)
{
	uint64_t rings = quota / 2, second = terminal ? 0 : quota / 8;

	return (struct spool_size){.head = quota - rings, .ring = {0, rings - second, second}};
}

/* Root writes here, so the directory must be ours alone, wherever the state directory is. */
static int directory_safe(int dir)
{
	struct stat st;

	if (fstat(dir, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

/* O_EXCL refuses a name that exists, and so never follows a link. */
static int make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

int spool_make(struct spool *spool, int dir, const uint64_t base[FRAME_STREAMS],
	       const struct spool_size *size, bool detached, struct iocom_err *err)
{
	int rc = directory_safe(dir);

	spool_init(spool);
	spool->left = size->head;
	spool->info.detached = detached;
	for (int i = 1; i < FRAME_STREAMS && !rc; i++) {
		struct record_tail_of *of = &spool->tail.of[i - 1];

		spool->info.base[i - 1] = of->head = of->from = of->end = base[i];
		of->room = size->ring[i];
		spool->fd[i] = make_file(dir, names[i]);
		if (spool->fd[i] < 0)
			rc = spool->fd[i];
	}
	if (!rc)
		rc = record_write_spool(dir, &spool->info);
	if (!rc)
		rc = record_reserve_spool(dir); /* for spool_note */
	if (!rc)
		return 0;
	spool_deinit(spool);
	return iocom_err_set(err, rc, "the job's output cannot be kept in the state directory: %s",
			     strerror(-rc));
}

/* Returns the file position of the byte at OFFSET of a ring, and in RUN how many contiguous
 * bytes follow. */
static uint64_t ring_place(const struct spool *spool, int stream, uint64_t offset, uint64_t *run)
{
	const struct record_tail_of *of = &spool->tail.of[stream - 1];
	uint64_t in = (offset - of->head) % of->room;

	*run = of->room - in;
	return of->head - spool->info.base[stream - 1] + in;
}

/* Checks a ring against the SIZE bytes on the disk: if bytes are missing, the whole ring is
 * dropped. */
static int take_ring(struct spool *spool, int stream, uint64_t size)
{
	struct record_tail_of *of = &spool->tail.of[stream - 1];
	uint64_t base = spool->info.base[stream - 1], at, run;

	if (of->head < base || of->head - base > size)
		return -EBADMSG;
	if (of->from < of->end) {
		at = ring_place(spool, stream, of->from, &run);
		if (run > of->end - of->from)
			run = of->end - of->from;
		if (at + run > size)
			of->from = of->end;
	}
	spool->info.lost[stream - 1] = of->from - of->head;
	return 0;
}

/* Takes one file as the job's shim left it. */
static int spool_take_file(struct spool *spool, int stream, uint64_t size)
{
	struct record_tail_of *of = &spool->tail.of[stream - 1];
	uint64_t base = spool->info.base[stream - 1];

	if (spool->ringed)
		return take_ring(spool, stream, size);
	/* The job needed no ring: the whole file is the beginning, and later bytes are lost. */
	of->head = base + size;
	of->from = of->end = of->head + spool->info.lost[stream - 1];
	return of->head < base || of->end < of->head ? -EBADMSG : 0;
}

int spool_open(struct spool *spool, int dir)
{
	struct stat st;
	int rc;

	spool_init(spool);
	rc = record_read_spool(dir, &spool->info);
	if (!rc) {
		rc = record_tail_read(dir, &spool->tail);
		spool->ringed = !rc;
		if (rc == -ENOENT)
			rc = 0;
	}
	for (int i = 1; i < FRAME_STREAMS && !rc; i++) {
		spool->fd[i] =
			openat(dir, names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (spool->fd[i] < 0 || fstat(spool->fd[i], &st))
			rc = -errno;
		else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
			rc = -EPERM;
		else
			rc = spool_take_file(spool, i, (uint64_t)st.st_size);
	}
	if (rc)
		spool_deinit(spool);
	return rc;
}

uint64_t spool_head(const struct spool *spool, int stream)
{
	return spool->tail.of[stream - 1].head;
}

uint64_t spool_end(const struct spool *spool, int stream)
{
	return spool->tail.of[stream - 1].end;
}

uint64_t spool_kept(const struct spool *spool, int stream, uint64_t offset)
{
	const struct record_tail_of *of = &spool->tail.of[stream - 1];

	return offset >= of->head && offset < of->from ? of->from : offset;
}

/* Writes until the disk is full. Returns how many bytes were written. */
static size_t spool_put(int fd, const uint8_t *data, size_t length, uint64_t at)
{
	size_t done = 0;

	while (done < length) {
		ssize_t n = pwrite(fd, data + done, length - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

/* Writes the file `tail`. Returns true if it is up to date. */
static bool tail_write(struct spool *spool)
{
	uint8_t data[RECORD_TAIL_BYTES];

	record_tail_put(data, &spool->tail);
	spool->told = spool_put(spool->fd_tail, data, sizeof(data), 0) == sizeof(data);
	return spool->told;
}

/* Begins the rings of both outputs when the beginnings' shared room is used up. */
static void begin_ring(struct spool *spool, int dir)
{
	spool->left = 0;
	if (spool->ringed)
		return;
	spool->ringed = true;
	if (!spool->tail.of[0].room && !spool->tail.of[1].room)
		return;
	spool->fd_tail = make_file(dir, RECORD_TAIL);
	if (spool->fd_tail >= 0 && tail_write(spool))
		return;
	/* Without the file `tail` no reader could find the ring again, so there is none. */
	spool->tail.of[0].room = spool->tail.of[1].room = 0;
	if (spool->fd_tail < 0)
		return; /* a file of that name is not ours */
	close(spool->fd_tail);
	spool->fd_tail = -1;
	unlinkat(dir, RECORD_TAIL, 0);
}

/* Appends the newest bytes to a ring. Before overwriting it drops the old bytes in `tail`. */
static void ring_add(struct spool *spool, int stream, const uint8_t *data, size_t length)
{
	struct record_tail_of *of = &spool->tail.of[stream - 1];
	uint64_t end = of->end + length, from = end > of->room ? end - of->room : 0, at, run;
	bool whole = of->room > 0;

	if (from > of->from || !spool->told) {
		/* The new bytes replace everything in the ring; a larger piece loses its own
		 * beginning, too. */
		if (from > of->from)
			of->from = from < of->end ? from : of->end;
		whole = whole && tail_write(spool);
	}
	for (uint64_t next = from > of->end ? from : of->end; whole && next < end; next += run) {
		at = ring_place(spool, stream, next, &run);
		if (run > end - next)
			run = end - next;
		whole = spool_put(spool->fd[stream], data + (next - of->end), (size_t)run, at) ==
			run;
	}
	of->end = end;
	if (from > of->from)
		of->from = from;
	if (!whole)
		of->from = end; /* the disk is full; a later piece may find room again */
	if (spool->fd_tail >= 0)
		(void)tail_write(spool);
	spool->info.lost[stream - 1] = of->from - of->head;
}

void spool_add(struct spool *spool, int dir, int stream, const void *data, size_t length)
{
	struct record_tail_of *of = &spool->tail.of[stream - 1];
	size_t want = length < spool->left ? length : (size_t)spool->left;
	size_t done;

	if (spool->fd[stream] < 0)
		return;
	done = spool_put(spool->fd[stream], data, want, of->head - spool->info.base[stream - 1]);
	spool->left -= done;
	of->head += done;
	if (!spool->ringed)
		of->from = of->end = of->head;
	if (done == length)
		return;
	begin_ring(spool, dir);
	ring_add(spool, stream, (const uint8_t *)data + done, length - done);
}

ssize_t spool_at(const struct spool *spool, int stream, uint64_t offset, void *out, size_t size)
{
	const struct record_tail_of *of = &spool->tail.of[stream - 1];
	uint64_t have = of->head - offset, at = offset - spool->info.base[stream - 1];
	ssize_t n;

	if (offset >= of->head) {
		at = ring_place(spool, stream, offset, &have);
		if (have > of->end - offset)
			have = of->end - offset;
	}
	do
		n = pread(spool->fd[stream], out, size < have ? size : (size_t)have, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : -EIO;
}

void spool_note(const struct spool *spool, int dir)
{
	if (spool->fd[1] >= 0 && (spool->info.lost[0] || spool->info.lost[1]))
		(void)record_write_spool(dir, &spool->info);
}

/* --- of a job that moves --- */

static const struct {
	size_t left, ringed, base, lost, tail;
} packed_at = {.left = 0, .ringed = 8, .base = 16, .lost = 32, .tail = 48};

void spool_pack(const struct spool *spool, uint8_t out[SPOOL_PACKED])
{
	bytes_put_u64(out + packed_at.left, spool->left);
	bytes_put_u64(out + packed_at.ringed, spool->ringed);
	for (int i = 0; i < 2; i++) {
		bytes_put_u64(out + packed_at.base + 8 * i, spool->info.base[i]);
		bytes_put_u64(out + packed_at.lost + 8 * i, spool->info.lost[i]);
	}
	record_tail_put(out + packed_at.tail, &spool->tail);
}

/* Takes what was packed, as far as it makes sense by itself. */
static int spool_unpack(struct spool *spool, const uint8_t packed[SPOOL_PACKED])
{
	uint64_t ringed = bytes_u64(packed + packed_at.ringed);
	int rc = record_tail_take(&spool->tail, packed + packed_at.tail, RECORD_TAIL_BYTES);

	spool->left = bytes_u64(packed + packed_at.left);
	spool->ringed = ringed == 1;
	spool->info.detached = true;
	for (int i = 0; i < 2; i++) {
		spool->info.base[i] = bytes_u64(packed + packed_at.base + 8 * i);
		spool->info.lost[i] = bytes_u64(packed + packed_at.lost + 8 * i);
	}
	return rc || ringed > 1 ? -EBADMSG : 0;
}

/* Checks the beginning and the ring of one output against its file of SIZE bytes. */
static int spool_check_file(const struct spool *spool, int stream, uint64_t size)
{
	const struct record_tail_of *of = &spool->tail.of[stream - 1];
	uint64_t base = spool->info.base[stream - 1];

	if (of->head < base || of->head - base > size || of->end > INT64_MAX ||
	    of->room > INT64_MAX - (of->head - base) || size > of->head - base + of->room)
		return -EBADMSG;
	if (!spool->ringed)
		return of->from == of->head && of->end == of->head && size == of->head - base
			       ? 0
			       : -EBADMSG;
	return of->from - of->head == spool->info.lost[stream - 1] ? 0 : -EBADMSG;
}

static int spool_carry_file(struct spool *spool, int dir, int stream, uint64_t *bytes)
{
	struct stat st;
	int fd = openat(dir, names[stream], O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	spool->fd[stream] = fd;
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
		return -EPERM;
	*bytes += (uint64_t)st.st_size;
	return spool_check_file(spool, stream, (uint64_t)st.st_size);
}

int spool_carry_on(struct spool *spool, int dir, const uint8_t packed[SPOOL_PACKED], uint64_t quota,
		   struct iocom_err *err)
{
	uint64_t bytes = 0;
	int rc;

	spool_init(spool);
	rc = spool_unpack(spool, packed);
	for (int i = 1; i < FRAME_STREAMS && !rc; i++)
		rc = spool_carry_file(spool, dir, i, &bytes);
	/* A node that keeps less has less room left. */
	if (!rc && spool->left > (bytes < quota ? quota - bytes : 0))
		spool->left = bytes < quota ? quota - bytes : 0;
	if (!rc)
		rc = record_write_spool(dir, &spool->info);
	if (!rc)
		rc = record_reserve_spool(dir);
	if (!rc && spool->ringed && (spool->tail.of[0].room || spool->tail.of[1].room)) {
		spool->fd_tail = make_file(dir, RECORD_TAIL);
		rc = spool->fd_tail < 0 ? spool->fd_tail : tail_write(spool) ? 0 : -ENOSPC;
	}
	if (!rc)
		return 0;
	spool_deinit(spool);
	return iocom_err_set(err, rc, "the job's output cannot be kept in the state directory: %s",
			     strerror(-rc));
}
