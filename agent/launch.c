/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Spawning shims and hearing from them; see launch.h.
 *
 * The agent has nng's threads, so nothing here forks: posix_spawn.  The shim
 * inherits descriptors 3, 4, 5 and an environment of one variable, so that no
 * LD_* of whoever started the agent meets it.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame.h"
#include "pack.h"
#include "record.h"
#include "shim/order.h"

#define LEASH_MESSAGE_MAX 4096

/* The order in a sealed memory file: the agent never waits for a slow shim to read. */
static int write_order(const struct launch_order *order)
{
	int fd = memfd_create("iocom-order", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc = 0;

	if (fd < 0)
		return -errno;
	pack_begin(&pk, &buffer, 9);
	pack_u64(&pk, "v", SHIM_VERSION);
	pack_u64(&pk, "uid", order->uid);
	pack_u64(&pk, "gid", order->gid);
	pack_bool(&pk, "allow_root", order->allow_root);
	pack_bin(&pk, "jobs_dir", order->jobs_dir, strlen(order->jobs_dir));
	pack_bin(&pk, "run_dir", order->run_dir, strlen(order->run_dir));
	pack_bin(&pk, "scope", order->scope_cgroup, strlen(order->scope_cgroup));
	pack_str(&pk, "pam", order->pam ? order->pam : "");
	pack_bin(&pk, "spec", order->spec, order->spec_length);
	if (write(fd, buffer.data, buffer.size) != (ssize_t)buffer.size)
		rc = errno ? -errno : -EIO;
	msgpack_sbuffer_destroy(&buffer);
	if (!rc && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* A copy above the numbers the shim gets, so that no dup2 overwrites a source. */
static int lift(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 16);

	return high < 0 ? -errno : high;
}

static int spawn_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int rc = posix_spawnattr_init(attributes);

	if (rc)
		return -rc;
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setsigmask(attributes, &none);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
						     POSIX_SPAWN_SETSIGMASK);
	return 0;
}

/* Spawns PROGRAM with FDS as 3, 4, 5.  0 or negative errno. */
static int spawn(const char *program, const int fds[3], pid_t *pid)
{
	char *const argv[] = {(char *)"iocom-shim", NULL};
	char *const env[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc = spawn_attributes(&attributes);

	if (rc)
		return rc;
	rc = posix_spawn_file_actions_init(&actions);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_RDWR, 0);
	for (int i = 0; i < 3 && !rc; i++)
		rc = posix_spawn_file_actions_adddup2(&actions, fds[i], SHIM_FD_LEASH + i);
	if (!rc)
		rc = posix_spawn(pid, program, &actions, &attributes, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -rc;
}

/* The job's directory is the mark that it was started here: made once, ever. */
static int make_job_directory(const char *jobs_dir, const char *job, struct iocom_err *err)
{
	char path[1024 + SPEC_JOB_MAX + 2];
	int rc = record_make_dirs(jobs_dir, err);

	if (rc)
		return rc;
	if (snprintf(path, sizeof(path), "%s/%s", jobs_dir, job) >= (int)sizeof(path))
		return iocom_err_set(err, -ENAMETOOLONG, "the state directory's name is too long");
	if (!mkdir(path, 0700))
		return 0;
	if (errno == EEXIST)
		return iocom_err_set(err, -EEXIST, "job %s was started here before: refused", job);
	return iocom_err_set(err, -errno, "cannot make the directory %s of the job's record: %s",
			     path, strerror(errno));
}

static int spawn_with(const struct launch_order *order, int stream_fd, int leash_end, pid_t *shim)
{
	int order_fd = write_order(order);
	int fds[3] = {-1, -1, -1};
	int rc = order_fd < 0 ? order_fd : 0;

	if (!rc) {
		const int low[3] = {leash_end, order_fd, stream_fd};

		for (int i = 0; i < 3 && !rc; i++) {
			fds[i] = lift(low[i]);
			rc = fds[i] < 0 ? fds[i] : 0;
		}
	}
	if (!rc)
		rc = spawn(order->shim_path, fds, shim);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (order_fd >= 0)
		close(order_fd);
	return rc;
}

int launch_shim(const struct launch_order *order, int stream_fd, pid_t *shim, int *leash,
		struct iocom_err *err)
{
	struct spec spec;
	char job[SPEC_JOB_MAX];
	int ends[2];
	int rc = spec_unpack(&spec, order->spec, order->spec_length, err);

	if (rc)
		return rc;
	memcpy(job, spec.job, sizeof(job));
	spec_free(&spec);
	rc = record_make_dirs(order->run_dir, err);
	if (!rc)
		rc = make_job_directory(order->jobs_dir, job, err);
	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		rc = -errno;
	} else {
		rc = spawn_with(order, stream_fd, ends[1], shim);
		close(ends[1]);
		if (rc)
			close(ends[0]);
	}
	if (rc) {
		record_remove(order->jobs_dir, job);
		return iocom_err_set(err, rc, "cannot start the supervisor %s: %s",
				     order->shim_path, strerror(-rc));
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*leash = ends[0];
	close(stream_fd);
	return 0;
}

static int decode_event(const msgpack_object *map, struct launch_event *event)
{
	char name[16];
	uint64_t pid = 0, kind = 0, value = 0;

	if (unpack_str(map, "event", name, sizeof(name)) ||
	    unpack_str(map, "job", event->job, sizeof(event->job)) || unpack_u64(map, "pid", &pid))
		return -EBADMSG;
	event->pid = (pid_t)pid;
	if (!strcmp(name, "started")) {
		event->type = LAUNCH_STARTED;
		return unpack_u64(map, "cgroup_id", &event->cgroup_id);
	}
	if (strcmp(name, "exited") != 0)
		return -EBADMSG;
	event->type = LAUNCH_EXITED;
	if (unpack_u64(map, "kind", &kind) || unpack_u64(map, "value", &value) ||
	    unpack_u64(map, "end_ns", &event->end_ns) ||
	    unpack_u64(map, "wall_ms", &event->wall_ms) ||
	    unpack_u64(map, "max_rss_kb", &event->max_rss_kb) ||
	    unpack_str(map, "text", event->text, sizeof(event->text)))
		return -EBADMSG;
	event->kind = (uint8_t)kind;
	event->value = (uint32_t)value;
	return 0;
}

int launch_read(int leash, struct launch_event *event)
{
	uint8_t buffer[LEASH_MESSAGE_MAX];
	const uint8_t *payload;
	msgpack_unpacked message;
	uint32_t length;
	size_t consumed;
	uint8_t type;
	/* Looks first: what is not whole yet stays in the socket. */
	ssize_t n = recv(leash, buffer, sizeof(buffer), MSG_PEEK | MSG_DONTWAIT);
	int rc;

	*event = (struct launch_event){0};
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EPIPE;
	if (n == 0)
		return -EPIPE;
	rc = frame_parse(buffer, (size_t)n, sizeof(buffer) - FRAME_HEADER, &type, &payload, &length,
			 &consumed);
	if (rc == FRAME_E_MORE)
		return -EAGAIN;
	if (rc || type != FRAME_REQUEST || unpack_map(&message, payload, length))
		return -EBADMSG;
	rc = decode_event(&message.data, event);
	msgpack_unpacked_destroy(&message);
	if (recv(leash, buffer, consumed, MSG_DONTWAIT) != (ssize_t)consumed)
		return -EBADMSG;
	return rc ? -EBADMSG : 0;
}
