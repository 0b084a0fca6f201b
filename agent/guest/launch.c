/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Starts shims and reads their events; see launch.h.  The process itself: launch_spawn.c. */
#include "agent/guest/launch_control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/guest/launch_spawn.h"
#include "user/leash_wire.h"
#include "user/pack.h"
#include "user/record.h"
#include "user/renewal.h"
#include "user/wire.h"
#include "agent/shim/order.h"

/*
 * The order in a sealed memory file: the agent never waits for a slow shim to read.  It may hold
 * keys, which are erased here.
 */
static int seal_order(msgpack_sbuffer *buffer)
{
	int fd = memfd_create("iocom-order", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc = fd < 0 ? -errno : 0;

	if (!rc && write(fd, buffer->data, buffer->size) != (ssize_t)buffer->size)
		rc = errno ? -errno : -EIO;
	explicit_bzero(buffer->data, buffer->size);
	msgpack_sbuffer_destroy(buffer);
	if (!rc && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		rc = -errno;
	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int write_order(const struct launch_order *order)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	const struct account *account = order->account;
	const struct launch_renew *renew = &order->renew;
	const struct cgroup_limits *limits = order->user_limits;
	bool known = account && account->ngroups > 0 && account->ngroups <= SHIM_GROUPS_MAX;

	pack_begin(&pk, &buffer,
		   12u + !!order->secret + !!order->records + !!order->lease_until_ms +
			   !!order->begin_ms + (known ? 2u : 0u) + (renew->secret ? 4u : 0u) +
			   (limits ? 3u : 0u) + (order->data_dir ? 2u : 0u) + !!order->criu);
	pack_u64(&pk, "v", SHIM_VERSION);
	if (order->criu)
		pack_str(&pk, "criu", order->criu);
	if (order->data_dir) {
		pack_bin(&pk, "data_dir", order->data_dir, strlen(order->data_dir));
		pack_u64(&pk, "data_cache_bytes", order->data_cache_bytes);
	}
	if (order->lease_until_ms)
		pack_u64(&pk, "lease_until_ms", order->lease_until_ms);
	if (order->begin_ms)
		pack_u64(&pk, "begin_ms", order->begin_ms);
	if (known) {
		pack_bin(&pk, "user", account->name, strlen(account->name));
		pack_bin(&pk, "groups", account->groups, (size_t)account->ngroups * sizeof(gid_t));
	}
	if (renew->secret) {
		pack_bin(&pk, "renew_secret", renew->secret, RENEWAL_SECRET);
		pack_str(&pk, "renew_address", renew->address);
		pack_u64(&pk, "renew_port", renew->port);
		pack_u64(&pk, "renew_lease_ms", renew->lease_ms);
	}
	if (limits) {
		pack_u64(&pk, "user_tasks", limits->tasks);
		pack_u64(&pk, "user_memory_bytes", limits->memory_bytes);
		pack_u64(&pk, "user_swap_bytes", limits->swap_bytes);
	}
	pack_u64(&pk, "uid", order->uid);
	pack_u64(&pk, "gid", order->gid);
	pack_bool(&pk, "allow_root", order->allow_root);
	pack_bool(&pk, "guest", order->guest);
	pack_bin(&pk, "jobs_dir", order->jobs_dir, strlen(order->jobs_dir));
	pack_bin(&pk, "run_dir", order->run_dir, strlen(order->run_dir));
	pack_bin(&pk, "scope", order->scope_cgroup, strlen(order->scope_cgroup));
	pack_str(&pk, "pam", order->pam ? order->pam : "");
	pack_u64(&pk, "spool_max", order->spool_max);
	pack_u64(&pk, "spill_max", order->spill_max);
	pack_bin(&pk, "spec", order->spec, order->spec_length);
	/* Last: the buffer that grows leaves its former bytes in memory. */
	if (order->secret)
		pack_bin(&pk, "secret", order->secret, SECRET_BYTES);
	launch_pack_records(&pk, order->records);
	return seal_order(&buffer);
}

static int write_replay(const char *jobs_dir, const char *slot, uid_t uid,
			const struct launch_ask *ask)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, (slot ? 5u : 3u) + !!ask->records);
	pack_u64(&pk, "v", SHIM_VERSION);
	pack_bin(&pk, "jobs_dir", jobs_dir, strlen(jobs_dir));
	if (slot) {
		pack_bin(&pk, "slot", slot, strlen(slot));
		pack_u64(&pk, "reader", uid);
	}
	pack_bin(&pk, "attach", ask->packed, ask->length);
	launch_pack_records(&pk, ask->records);
	return seal_order(&buffer);
}

/*
 * Makes the job's directory and takes its lock, which the shim inherits: a new agent that looks
 * meanwhile sees a job that begins.  If we end before a shim has the lock, it is free.
 */
static int lock_job_directory(const char *path, const char *jobs_dir, const char *job,
			      struct iocom_err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int rc = fd < 0 ? -errno : record_lock(fd);

	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	record_remove(jobs_dir, job);
	return iocom_err_set(err, rc, "cannot lock the directory %s of the job's record: %s", path,
			     strerror(-rc));
}

/* Returns true if the spare's record, which has its files already, is the job's now. */
static bool take_spare_record(const struct launch_spare *spare, const char *jobs_dir,
			      const char *job)
{
	return spare && spare->waits && spare->jobs_dir &&
	       !record_take_spare(jobs_dir, spare->pid, job);
}

/*
 * The job's directory, made once, marks that the job was started here.  Returns its locked
 * descriptor, or negative errno.
 */
static int make_job_directory(const char *jobs_dir, const char *job,
			      const struct launch_spare *spare, struct iocom_err *err)
{
	char path[1024 + SPEC_JOB_MAX + 2];
	int rc;

	if (snprintf(path, sizeof(path), "%s/%s", jobs_dir, job) >= (int)sizeof(path))
		return iocom_err_set(err, -ENAMETOOLONG, "the state directory's name is too long");
	rc = take_spare_record(spare, jobs_dir, job) ? 0 : mkdir(path, 0700);
	if (rc && errno == ENOENT) { /* the first job here */
		rc = record_make_dirs(jobs_dir, err);
		if (rc)
			return rc;
		rc = mkdir(path, 0700);
	}
	if (!rc)
		return lock_job_directory(path, jobs_dir, job, err);
	if (errno == EEXIST)
		return iocom_err_set(err, -EEXIST, "job %s was started here before: refused", job);
	return iocom_err_set(err, -errno, "cannot make the directory %s of the job's record: %s",
			     path, strerror(errno));
}

/*
 * A job that comes by a move may have been lost here on an earlier way.  The journal has let it
 * come again, so what its supervisor left is nobody's, unless that one lives.
 */
static void clear_former_record(const char *jobs_dir, const char *job)
{
	char path[1024 + SPEC_JOB_MAX + 2];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", jobs_dir, job);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (!record_lock(fd))
		record_remove(jobs_dir, job);
	close(fd);
}

void launch_spare_make(struct launch_spare *spare, const char *shim_path, const char *scope)
{
	int ends[2];

	if (spare->waits || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return;
	spare->waits = !launch_spawn_spare(shim_path, scope, spare->jobs_dir, &spare->shims,
					   ends[1], &spare->pid);
	close(ends[1]);
	spare->leash = ends[0];
	if (!spare->waits) {
		close(ends[0]);
		launch_shims_close(&spare->shims);
	}
}

void launch_spare_drop(struct launch_spare *spare)
{
	if (spare->waits)
		close(spare->leash);
	spare->waits = false;
	launch_shims_close(&spare->shims);
}

/* Gives the spare its order; its leash becomes the job's.  Returns 0 or negative errno. */
static int use_spare(struct launch_spare *spare, const int fds[SPARE_FDS], pid_t *shim, int *leash)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(SPARE_FDS * sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec piece = {&byte, 1};
	const struct msghdr message = {.msg_iov = &piece,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	if (!spare || !spare->waits)
		return -ENOENT;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(SPARE_FDS * sizeof(int));
	memcpy(CMSG_DATA(c), fds, SPARE_FDS * sizeof(int));
	if (sendmsg(spare->leash, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
		launch_spare_drop(spare);
		return -EPIPE;
	}
	spare->waits = false;
	*leash = spare->leash;
	*shim = spare->pid;
	return 0;
}

/*
 * Takes ORDER_FD, which may be an errno.  RECORD: the job's locked record, or -1.  LEASH: our end.
 */
static int spawn_with(const char *program, const char *scope, struct launch_spare *spare,
		      int order_fd, int stream_fd, int record, pid_t *shim, int *leash)
{
	int rc = order_fd < 0 ? order_fd : 0, ends[2];

	if (!rc && record >= 0 &&
	    !use_spare(spare, (const int[]){order_fd, stream_fd, record}, shim, leash)) {
		close(order_fd);
		return 0;
	}
	if (!rc && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		rc = -errno;
	if (!rc) {
		const int fds[] = {ends[1], order_fd, stream_fd, record};

		rc = launch_spawn(program, scope, spare ? &spare->shims : NULL, fds,
				  record >= 0 ? 4 : 3, shim);
		close(ends[1]);
		if (rc)
			close(ends[0]);
		*leash = ends[0];
	}
	if (order_fd >= 0)
		close(order_fd);
	return rc;
}

int launch_shim(const struct launch_order *order, int stream_fd, pid_t *shim, int *leash,
		struct iocom_err *err)
{
	struct spec spec;
	char job[SPEC_JOB_MAX];
	int rc = spec_unpack(&spec, order->spec, order->spec_length, err), record;

	if (rc)
		return rc;
	memcpy(job, spec.job, sizeof(job));
	spec_free(&spec);
	rc = record_make_dirs(order->run_dir, err);
	if (rc)
		return rc;
	if (order->criu)
		clear_former_record(order->jobs_dir, job);
	record = make_job_directory(order->jobs_dir, job, order->spare, err);
	if (record < 0)
		return record;
	rc = spawn_with(order->shim_path, order->scope_cgroup, order->spare, write_order(order),
			stream_fd, record, shim, leash);
	close(record); /* the shim holds the lock until it ends */
	if (rc) {
		record_remove(order->jobs_dir, job);
		return iocom_err_set(err, rc, "cannot start the supervisor %s: %s",
				     order->shim_path, strerror(-rc));
	}
	fcntl(*leash, F_SETFL, O_NONBLOCK);
	wire_close(stream_fd);
	return 0;
}

int launch_replay(const char *shim_path, const char *scope, const char *jobs_dir, const char *slot,
		  uid_t uid, const struct launch_ask *ask, int stream, int *leash,
		  struct iocom_err *err)
{
	pid_t shim;
	int rc = spawn_with(shim_path, scope, NULL, write_replay(jobs_dir, slot, uid, ask), stream,
			    -1, &shim, leash);

	if (rc)
		return iocom_err_set(err, rc, "cannot start the supervisor %s: %s", shim_path,
				     strerror(-rc));
	fcntl(*leash, F_SETFL, O_NONBLOCK);
	wire_close(stream);
	return 0;
}

static int decode_moved(const msgpack_object *map, struct launch_event *event)
{
	event->type = LAUNCH_MOVED;
	return unpack_bool(map, "failed", &event->failed) ||
			       unpack_u64(map, "frozen_ms", &event->frozen_ms) ||
			       unpack_u64(map, "dump_ms", &event->dump_ms) ||
			       unpack_u64(map, "bytes", &event->bytes) ||
			       unpack_str(map, "why", event->text, sizeof(event->text))
		       ? -EBADMSG
		       : 0;
}

static int decode_event(const msgpack_object *map, struct launch_event *event)
{
	char name[16];
	uint64_t pid = 0, kind = 0, value = 0;

	if (unpack_str(map, "event", name, sizeof(name)) ||
	    unpack_str(map, "job", event->job, sizeof(event->job)))
		return -EBADMSG;
	if (strcmp(name, "ready") != 0 && strcmp(name, "moved") != 0 &&
	    unpack_u64(map, "pid", &pid))
		return -EBADMSG;
	event->pid = (pid_t)pid;
	if (!strcmp(name, "started")) {
		event->type = LAUNCH_STARTED;
		(void)unpack_u64(map, "lease_until_ms", &event->lease_until_ms);
		event->renews = false;
		(void)unpack_bool(map, "renews", &event->renews);
		return unpack_u64(map, "cgroup_id", &event->cgroup_id);
	}
	if (!strcmp(name, "ready")) {
		event->type = LAUNCH_READY;
		return 0;
	}
	if (!strcmp(name, "moved"))
		return decode_moved(map, event);
	if (strcmp(name, "exited") != 0)
		return -EBADMSG;
	event->type = LAUNCH_EXITED;
	if (unpack_u64(map, "kind", &kind) || unpack_u64(map, "value", &value) ||
	    unpack_u64(map, "end_ns", &event->end_ns) ||
	    unpack_u64(map, "wall_ms", &event->wall_ms) ||
	    unpack_u64(map, "max_rss_kb", &event->max_rss_kb) ||
	    unpack_str(map, "text", event->text, sizeof(event->text)))
		return -EBADMSG;
	/* An older shim counts none of these. */
	(void)unpack_u64(map, "oom_kills", &event->oom_kills);
	(void)unpack_u64(map, "forks_refused", &event->forks_refused);
	(void)unpack_u64(map, "cpu_us", &event->cpu_us);
	(void)unpack_u64(map, "begin_us", &event->begin_us);
	event->kind = (uint8_t)kind;
	event->value = (uint32_t)value;
	return 0;
}

int launch_read(int leash, struct launch_event *event)
{
	uint8_t buffer[LEASH_MESSAGE_MAX];
	msgpack_unpacked message;
	int rc = leash_take(leash, buffer, &message);

	*event = (struct launch_event){0};
	if (rc)
		return rc == -ECONNRESET ? -EPIPE : rc;
	if (leash_version(&message.data) > LEASH_VERSION)
		rc = -EPROTONOSUPPORT;
	else if (decode_event(&message.data, event))
		rc = -EBADMSG;
	msgpack_unpacked_destroy(&message);
	return rc;
}

int launch_lease(int leash, uint64_t until_ms)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 3);
	pack_u64(&pk, "v", LEASH_VERSION);
	pack_str(&pk, "op", "lease");
	pack_u64(&pk, "until_ms", until_ms);
	rc = leash_send(leash, &buffer, MSG_DONTWAIT);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}
