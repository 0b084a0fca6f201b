/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job's record on disk; see record.h. */
#include "user/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/pack.h"
#include "user/record_tail.h"
#include "user/write_whole.h"

#define RECORD_MAX  4096
#define RECORD_ROOM 1024 /* a job's end, with its text of 255 bytes, takes less than 500 */

/*
 * Reserves room before the job starts: the job's end and the count of lost output must fit, even
 * if something else fills the disk.
 */
static int record_reserve(int dir, const char *temporary)
{
	int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	/* Reserve beyond the end of the file, so that the later write needs no truncation. */
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, RECORD_ROOM))
		rc = errno == EOPNOTSUPP ? -posix_fallocate(fd, 0, RECORD_ROOM) : -errno;
	close(fd);
	return rc;
}

static int record_failed(int rc, struct iocom_err *err)
{
	if (rc == -ENOSPC || rc == -EDQUOT)
		return iocom_err_set(err, rc,
				     "the job's record cannot be written: the file system of the "
				     "state directory is full; make room there or set state_dir");
	return iocom_err_set(err, rc, "the job's record cannot be written: %s", strerror(-rc));
}

static int record_put(int dir, const char *name, const msgpack_sbuffer *buffer,
		      struct iocom_err *err)
{
	char temporary[32];
	struct stat st;
	int fd, rc;

	snprintf(temporary, sizeof(temporary), ".%s", name);
	/* Overwrite the file and then truncate it: truncating first would give the reserved room
	 * back. */
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	rc = fd < 0 ? -errno : write_whole(fd, buffer->data, buffer->size);
	if (!rc && fstat(fd, &st))
		rc = -errno;
	if (!rc && st.st_size != (off_t)buffer->size && ftruncate(fd, (off_t)buffer->size))
		rc = -errno;
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	if (!rc && renameat(dir, temporary, dir, name))
		rc = -errno;
	if (!rc)
		return 0;
	unlinkat(dir, temporary, 0);
	return record_failed(rc, err);
}

int record_write_start(int dir, const struct record_start *start, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 9u + start->keyed);
	pack_u64(&pk, "v", 1);
	if (start->keyed)
		pack_bin(&pk, "secret", start->secret, sizeof(start->secret));
	pack_str(&pk, "job", start->job);
	pack_bin(&pk, "class", start->class_name, strlen(start->class_name));
	pack_bin(&pk, "command", start->command, strlen(start->command));
	pack_bin(&pk, "scope", start->scope, strlen(start->scope));
	pack_u64(&pk, "uid", start->uid);
	pack_u64(&pk, "shim", (uint64_t)start->shim);
	pack_u64(&pk, "cgroup_id", start->cgroup_id);
	pack_u64(&pk, "start_ns", start->start_ns);
	rc = record_reserve(dir, ".exit");
	rc = rc ? record_failed(rc, err) : record_put(dir, "start", &buffer, err);
	explicit_bzero(buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	if (rc)
		unlinkat(dir, ".exit", 0);
	return rc;
}

void record_pack_exit(msgpack_packer *pk, const struct record_exit *end)
{
	pack_u64(pk, "pid", (uint64_t)end->pid);
	pack_u64(pk, "kind", end->kind);
	pack_u64(pk, "value", end->value);
	pack_u64(pk, "end_ns", end->end_ns);
	pack_u64(pk, "wall_ms", end->wall_ms);
	pack_u64(pk, "max_rss_kb", end->max_rss_kb);
	pack_u64(pk, "oom_kills", end->oom_kills);
	pack_u64(pk, "forks_refused", end->forks_refused);
	pack_u64(pk, "cpu_us", end->cpu_us);
	pack_u64(pk, "begin_us", end->begin_us);
	pack_bin(pk, "text", end->text, strlen(end->text));
}

int record_write_exit(int dir, const struct record_exit *end, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 1 + RECORD_EXIT_FIELDS);
	pack_u64(&pk, "v", 1);
	record_pack_exit(&pk, end);
	rc = record_put(dir, "exit", &buffer, err);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

void record_sync(int dir)
{
	int fd = openat(dir, "exit", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return; /* the agent may have read and removed it already */
	fsync(fd);
	close(fd);
	/* The names, too: of the file in the job's directory, and of that one. */
	fsync(dir);
	fd = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

ssize_t record_slurp(int dir, const char *name, void *data, size_t size)
{
	/* O_NONBLOCK: opening a fifo of that name would hang. */
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, data, size);
	close(fd);
	return n < 0 ? -EBADMSG : n;
}

/* Reads and decodes one file. After success the caller destroys MESSAGE. */
static int get(int dir, const char *name, msgpack_unpacked *message)
{
	char data[RECORD_MAX];
	ssize_t n = record_slurp(dir, name, data, sizeof(data));
	uint64_t version;

	if (n < 0)
		return (int)n;
	if (!n || unpack_map(message, data, (size_t)n))
		return -EBADMSG;
	if (!unpack_u64(&message->data, "v", &version) && version == 1)
		return 0;
	msgpack_unpacked_destroy(message);
	return -EBADMSG;
}

/* Returns 0 or -EBADMSG; an older shim has written none. */
static int record_take_secret(const msgpack_object *map, struct record_start *start)
{
	const msgpack_object *secret = unpack_get(map, "secret");

	if (!secret)
		return 0;
	if (secret->type != MSGPACK_OBJECT_BIN || secret->via.bin.size != sizeof(start->secret))
		return -EBADMSG;
	memcpy(start->secret, secret->via.bin.ptr, sizeof(start->secret));
	start->keyed = true;
	return 0;
}

int record_read_start(int dir, struct record_start *start)
{
	msgpack_unpacked message;
	uint64_t uid = 0, shim = 0;
	int rc = get(dir, "start", &message);

	*start = (struct record_start){0};
	if (rc)
		return rc;
	if (unpack_str(&message.data, "job", start->job, sizeof(start->job)) ||
	    unpack_str(&message.data, "class", start->class_name, sizeof(start->class_name)) ||
	    unpack_str(&message.data, "command", start->command, sizeof(start->command)) ||
	    unpack_str(&message.data, "scope", start->scope, sizeof(start->scope)) ||
	    unpack_u64(&message.data, "uid", &uid) || unpack_u64(&message.data, "shim", &shim) ||
	    unpack_u64(&message.data, "cgroup_id", &start->cgroup_id) ||
	    unpack_u64(&message.data, "start_ns", &start->start_ns) ||
	    record_take_secret(&message.data, start))
		rc = -EBADMSG;
	start->uid = (uid_t)uid;
	start->shim = (pid_t)shim;
	msgpack_unpacked_destroy(&message);
	return rc;
}

int record_read_exit(int dir, struct record_exit *end)
{
	msgpack_unpacked message;
	uint64_t pid = 0, kind = 0, value = 0;
	int rc = get(dir, "exit", &message);

	*end = (struct record_exit){0};
	if (rc)
		return rc;
	if (unpack_u64(&message.data, "pid", &pid) || unpack_u64(&message.data, "kind", &kind) ||
	    unpack_u64(&message.data, "value", &value) ||
	    unpack_u64(&message.data, "end_ns", &end->end_ns) ||
	    unpack_u64(&message.data, "wall_ms", &end->wall_ms) ||
	    unpack_u64(&message.data, "max_rss_kb", &end->max_rss_kb) ||
	    unpack_str(&message.data, "text", end->text, sizeof(end->text)))
		rc = -EBADMSG;
	(void)unpack_u64(&message.data, "oom_kills", &end->oom_kills);
	(void)unpack_u64(&message.data, "forks_refused", &end->forks_refused);
	(void)unpack_u64(&message.data, "cpu_us", &end->cpu_us);
	(void)unpack_u64(&message.data, "begin_us", &end->begin_us);
	end->pid = (pid_t)pid;
	end->kind = (uint8_t)kind;
	end->value = (uint32_t)value;
	msgpack_unpacked_destroy(&message);
	return rc;
}

void record_forget_output(int dir)
{
	static const char *const files[] = {"spool", ".spool", RECORD_OUT, RECORD_ERR, RECORD_TAIL};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(dir, files[i], 0);
}

int record_write_spool(int dir, const struct record_spool *spool)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 6);
	pack_u64(&pk, "v", 1);
	pack_u64(&pk, "out_base", spool->base[0]);
	pack_u64(&pk, "err_base", spool->base[1]);
	pack_u64(&pk, "out_lost", spool->lost[0]);
	pack_u64(&pk, "err_lost", spool->lost[1]);
	pack_bool(&pk, "detached", spool->detached);
	rc = record_put(dir, "spool", &buffer, NULL);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

int record_reserve_spool(int dir)
{
	return record_reserve(dir, ".spool");
}

int record_read_spool(int dir, struct record_spool *spool)
{
	msgpack_unpacked message;
	int rc = get(dir, "spool", &message);

	*spool = (struct record_spool){0};
	if (rc)
		return rc;
	if (unpack_u64(&message.data, "out_base", &spool->base[0]) ||
	    unpack_u64(&message.data, "err_base", &spool->base[1]) ||
	    unpack_u64(&message.data, "out_lost", &spool->lost[0]) ||
	    unpack_u64(&message.data, "err_lost", &spool->lost[1]) ||
	    unpack_bool(&message.data, "detached", &spool->detached))
		rc = -EBADMSG;
	msgpack_unpacked_destroy(&message);
	return rc;
}

int record_write_expelled(int dir, const struct record_expelled *expelled)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 4);
	pack_u64(&pk, "v", 1);
	pack_bin(&pk, "why", expelled->why, strlen(expelled->why));
	pack_u64(&pk, "due_ns", expelled->due_ns);
	pack_bool(&pk, "asked", expelled->asked);
	rc = record_put(dir, "expelled", &buffer, NULL);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

int record_read_expelled(int dir, struct record_expelled *expelled)
{
	msgpack_unpacked message;
	int rc = get(dir, "expelled", &message);

	*expelled = (struct record_expelled){0};
	if (rc)
		return rc;
	if (unpack_str(&message.data, "why", expelled->why, sizeof(expelled->why)) ||
	    !expelled->why[0] || unpack_u64(&message.data, "due_ns", &expelled->due_ns) ||
	    unpack_bool(&message.data, "asked", &expelled->asked))
		rc = -EBADMSG;
	msgpack_unpacked_destroy(&message);
	return rc;
}

int64_t record_spool_bytes(int dir)
{
	struct stat out, err;

	if (fstatat(dir, RECORD_OUT, &out, AT_SYMLINK_NOFOLLOW) ||
	    fstatat(dir, RECORD_ERR, &err, AT_SYMLINK_NOFOLLOW))
		return -ENOENT;
	return out.st_size + err.st_size;
}

int record_lock(int dir)
{
	return flock(dir, LOCK_EX | LOCK_NB) ? -errno : 0;
}

static void record_remove_named(const char *jobs_dir, const char *name)
{
	static const char *const files[] = {"start",	 "exit",     ".start",	 ".exit",
					    "spool",	 ".spool",   RECORD_OUT, RECORD_ERR,
					    RECORD_TAIL, "expelled", ".expelled"};
	const size_t usual = 2;
	char path[PATH_MAX], directory[PATH_MAX];

	if (snprintf(directory, sizeof(directory), "%s/%s", jobs_dir, name) >=
	    (int)sizeof(directory))
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (i == usual && !rmdir(directory))
			return;
		if (snprintf(path, sizeof(path), "%s/%s", directory, files[i]) < (int)sizeof(path))
			unlink(path);
	}
	rmdir(directory);
}

void record_remove(const char *jobs_dir, const char *job)
{
	if (spec_job_valid(job))
		record_remove_named(jobs_dir, job);
}

/* Puts the path of the spare record of PID into OUT.  Returns 0 or -ENAMETOOLONG. */
static int record_spare_path(const char *jobs_dir, pid_t pid, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/" RECORD_SPARE "%d", jobs_dir, (int)pid);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int record_make_spare(const char *jobs_dir, pid_t pid)
{
	char path[PATH_MAX];
	int rc = record_spare_path(jobs_dir, pid, path), dir, fd;

	if (rc)
		return rc;
	if (mkdir(path, 0700))
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0) {
		rc = -errno;
		rmdir(path);
		return rc;
	}
	/* If they cannot be made, the job's shim makes them, or says why not. */
	(void)record_reserve(dir, ".exit");
	fd = openat(dir, ".start", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		close(fd);
	return dir;
}

int record_take_spare(const char *jobs_dir, pid_t pid, const char *job)
{
	char from[PATH_MAX], to[PATH_MAX];
	int rc = record_spare_path(jobs_dir, pid, from);

	if (rc)
		return rc;
	if (!spec_job_valid(job) ||
	    snprintf(to, sizeof(to), "%s/%s", jobs_dir, job) >= (int)sizeof(to))
		return -EINVAL;
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) ? -errno : 0;
}

void record_remove_spare(const char *jobs_dir, const char *name)
{
	if (!strncmp(name, RECORD_SPARE, sizeof(RECORD_SPARE) - 1) && !strchr(name, '/'))
		record_remove_named(jobs_dir, name);
}

int record_make_dirs(const char *path, struct iocom_err *err)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return iocom_err_set(err, -ENAMETOOLONG, "the directory's name is too long: %s",
				     path);
	if (!mkdir(path, 0700) || errno == EEXIST)
		return 0;
	strcpy(part, path);
	for (char *at = part + 1;; at++) {
		char end = *at;

		if (end && end != '/')
			continue;
		*at = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return iocom_err_set(err, -errno, "cannot make the directory %s: %s", part,
					     strerror(errno));
		*at = end;
		if (!end)
			return 0;
	}
}
