/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the agent asks of a living shim by its control socket (declared in launch.h). */
#include "agent/guest/launch_control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/frame.h"
#include "user/leash_wire.h"
#include "user/pack.h"

int shim_control_connect(const char *run_dir, const char *job)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int directory, fd, rc = 0;

	if (!spec_job_valid(job))
		return -EINVAL;
	/* Go through the directory's descriptor: a socket's name holds only 107 bytes. */
	directory = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		rc = -errno;
	else if (snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s.sock", directory,
			  job) >= (int)sizeof(sa.sun_path))
		rc = -ENAMETOOLONG;
	else if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		rc = -errno;
	close(directory);
	if (rc) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	return fd;
}

int shim_control_ask(int fd, const char *op, int signal, const char *why)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 4);
	pack_u64(&pk, "v", LEASH_VERSION);
	pack_str(&pk, "op", op);
	pack_str(&pk, "why", why);
	pack_u64(&pk, "signal", (uint64_t)signal);
	rc = leash_send(fd, &buffer, MSG_DONTWAIT);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

/* What no connection means: no shim lives, or it takes no more requests. */
static int control_failed(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED ? -ESRCH : rc;
}

/* Connects and asks.  Returns the descriptor for the answer, or negative errno. */
static int control_request(const char *run_dir, const char *job, const char *op, int signal,
			   const char *why)
{
	int fd = shim_control_connect(run_dir, job);
	int rc;

	if (fd < 0)
		return control_failed(fd);
	rc = shim_control_ask(fd, op, signal, why);
	if (!rc)
		return fd;
	close(fd);
	return -EIO;
}

int launch_expel_ask(const char *run_dir, const char *job, int signal, const char *why)
{
	return control_request(run_dir, job, "signal", signal, why);
}

int launch_signal_ask(const char *run_dir, const char *job, int signal)
{
	return launch_expel_ask(run_dir, job, signal, NULL);
}

int launch_signal_answer(int fd)
{
	return launch_move_answer(fd, NULL);
}

void launch_pack_records(msgpack_packer *pk, const struct records *records)
{
	uint8_t packed[RECORDS_PACKED];

	if (!records)
		return;
	records_pack(records, packed);
	pack_bin(pk, "records", packed, sizeof(packed));
	explicit_bzero(packed, sizeof(packed));
}

/* Initialises OUT with the request to the shim's control socket. */
static void pack_attach(const struct launch_ask *ask, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	pack_begin(&pk, out, 2u + !!ask->records);
	pack_str(&pk, "op", "attach");
	pack_bin(&pk, "ask", ask->packed, ask->length);
	launch_pack_records(&pk, ask->records);
}

/*
 * Sends the request BUFFER with the descriptor STREAM.  A few hundred bytes fit into an empty
 * socket whole, or not at all.  Returns 0 or -ESRCH.
 */
static int control_send_stream(int fd, const msgpack_sbuffer *buffer, int stream)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	uint8_t header[FRAME_HEADER];
	struct iovec iov[2] = {{header, sizeof(header)}, {buffer->data, buffer->size}};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	frame_header(header, FRAME_REQUEST, (uint32_t)buffer->size);
	header[2] = LEASH_FRAME;
	control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
					.cmsg_level = SOL_SOCKET,
					.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.head), &stream, sizeof(stream));
	n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)(iov[0].iov_len + iov[1].iov_len) ? 0 : -ESRCH;
}

int launch_attach(const char *run_dir, const char *job, const struct launch_ask *ask, int stream)
{
	int fd = shim_control_connect(run_dir, job), rc;
	msgpack_sbuffer buffer;

	if (fd < 0)
		return control_failed(fd);
	pack_attach(ask, &buffer);
	rc = control_send_stream(fd, &buffer, stream);
	explicit_bzero(buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	close(fd);
	return rc;
}

int launch_move_ask(const char *run_dir, const char *job, const char *criu, bool precopy,
		    const struct records *records, int stream)
{
	int fd = shim_control_connect(run_dir, job), rc;
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	if (fd < 0)
		return control_failed(fd);
	pack_begin(&pk, &buffer, 3u + !!records);
	pack_str(&pk, "op", "move");
	pack_str(&pk, "criu", criu);
	pack_bool(&pk, "precopy", precopy);
	launch_pack_records(&pk, records);
	rc = control_send_stream(fd, &buffer, stream);
	explicit_bzero(buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int launch_move_answer(int fd, struct iocom_err *err)
{
	uint8_t buffer[LEASH_MESSAGE_MAX];
	msgpack_unpacked message;
	uint64_t result = 0;
	int rc = leash_take(fd, buffer, &message);
	char why[sizeof(err->text)];

	if (rc)
		return rc == -EAGAIN || rc == -EBADMSG ? rc : -EIO;
	rc = unpack_u64(&message.data, "result", &result) ? -EBADMSG : -(int)result;
	if (rc && !unpack_str(&message.data, "why", why, sizeof(why)))
		iocom_err_set(err, rc, "%s", why);
	msgpack_unpacked_destroy(&message);
	return rc;
}

int launch_decide_ask(const char *run_dir, const char *job, enum launch_decision decision)
{
	static const char *const words[] = {
		[LAUNCH_STAY] = "stay",
		[LAUNCH_LEAVE] = "leave",
		[LAUNCH_GO] = "go",
		[LAUNCH_ABORT] = "abort",
	};

	return control_request(run_dir, job, words[decision], 0, NULL);
}
