/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a job wrote, on disk; see spool.h. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[FRAME_STREAMS] = {"", RECORD_OUT, RECORD_ERR};

void spool_init(struct spool *spool)
{
	*spool = (struct spool){.fd = {-1, -1, -1}};
}

void spool_deinit(struct spool *spool)
{
	for (int i = 1; i < FRAME_STREAMS; i++)
		if (spool->fd[i] >= 0)
			close(spool->fd[i]);
	spool_init(spool);
}

/* Root writes here: the directory must be nobody else's, whatever the state directory is. */
static int directory_safe(int dir)
{
	struct stat st;

	if (fstat(dir, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

int spool_make(struct spool *spool, int dir, const uint64_t base[FRAME_STREAMS], uint64_t quota,
	       bool detached, struct iocom_err *err)
{
	int rc = directory_safe(dir);

	spool_init(spool);
	spool->left = quota;
	spool->info.detached = detached;
	for (int i = 1; i < FRAME_STREAMS && !rc; i++) {
		spool->info.base[i - 1] = spool->end[i] = base[i];
		/* O_EXCL takes no name that is there, a link least of all. */
		spool->fd[i] =
			openat(dir, names[i],
			       O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (spool->fd[i] < 0)
			rc = -errno;
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

int spool_open(struct spool *spool, int dir)
{
	struct stat st;
	int rc;

	spool_init(spool);
	rc = record_read_spool(dir, &spool->info);
	for (int i = 1; i < FRAME_STREAMS && !rc; i++) {
		spool->fd[i] =
			openat(dir, names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (spool->fd[i] < 0 || fstat(spool->fd[i], &st))
			rc = -errno;
		else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
			rc = -EPERM;
		else
			spool->end[i] = spool->info.base[i - 1] + (uint64_t)st.st_size;
	}
	if (rc)
		spool_deinit(spool);
	return rc;
}

void spool_add(struct spool *spool, int stream, const void *data, size_t length)
{
	size_t want = length < spool->left ? length : (size_t)spool->left, done = 0;

	/* Once bytes are missing none is kept any more: offsets must mean something. */
	if (spool->fd[stream] < 0 || spool->info.lost[stream - 1])
		want = 0;
	while (done < want) {
		ssize_t n = write(spool->fd[stream], (const char *)data + done, want - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* the disk is full */
		done += (size_t)n;
	}
	spool->end[stream] += done;
	spool->left -= done;
	spool->info.lost[stream - 1] += length - done;
}

ssize_t spool_at(const struct spool *spool, int stream, uint64_t offset, void *out, size_t size)
{
	uint64_t have = spool->end[stream] - offset;
	ssize_t n;

	do
		n = pread(spool->fd[stream], out, size < have ? size : (size_t)have,
			  (off_t)(offset - spool->info.base[stream - 1]));
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : -EIO;
}

void spool_note(const struct spool *spool, int dir)
{
	if (spool->fd[1] >= 0 && (spool->info.lost[0] || spool->info.lost[1]))
		(void)record_write_spool(dir, &spool->info);
}
