/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The CLI's side of the agent's local socket; see client.h. */
#include "balancer/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/frame.h"

#define DEFAULT_RUN_DIR "/run/iocom"

const char *client_run_dir(const char *option)
{
	const char *env = getenv("IOCOM_RUN_DIR");

	if (option)
		return option;
	return env && *env ? env : DEFAULT_RUN_DIR;
}

static int connect_failed(const char *path, int error, struct iocom_err *err)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return iocom_err_set(
			err, -error,
			"no agent answers at %s; start one (systemctl start iocomd, or "
			"iocomd as root), or name its directory with --run-dir",
			path);
	case EACCES:
		return iocom_err_set(err, -error, "no permission to speak to the agent at %s",
				     path);
	default:
		return iocom_err_set(err, -error, "cannot connect to the agent at %s: %s", path,
				     strerror(error));
	}
}

int client_connect(const char *run_dir, int *fd, struct iocom_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/iocom.sock",
			 client_run_dir(run_dir));
	int s;

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return iocom_err_set(err, -ENAMETOOLONG,
				     "the run directory's name is too long for a socket: %s",
				     client_run_dir(run_dir));
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return iocom_err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int error = errno;

		close(s);
		return connect_failed(sa.sun_path, error, err);
	}
	*fd = s;
	return 0;
}

int client_send(int fd, const void *packed, size_t length, struct iocom_err *err)
{
	int rc = length > FRAME_PAYLOAD_MAX
			 ? -EMSGSIZE
			 : frame_write(fd, FRAME_REQUEST, packed, (uint32_t)length);

	if (rc == -EMSGSIZE)
		return iocom_err_set(err, rc, "the request is too large (%zu bytes, at most %u)",
				     length, FRAME_PAYLOAD_MAX);
	if (rc)
		return iocom_err_set(err, rc, "cannot send to the agent: %s", strerror(-rc));
	return 0;
}

static int answer_parse(const struct frame *frame, json_t **answer, struct iocom_err *err)
{
	json_error_t where;

	if (frame->type == FRAME_ERROR)
		return iocom_err_set(err, -EIO, "%.900s", (const char *)frame->payload);
	if (frame->type != FRAME_JSON)
		return iocom_err_set(err, -EPROTO, "the agent sent a message of unknown type %u",
				     frame->type);
	*answer = json_loadb((const char *)frame->payload, frame->length, 0, &where);
	if (!*answer)
		return iocom_err_set(err, -EPROTO, "the agent's answer is not valid JSON: %s",
				     where.text);
	return 0;
}

int client_receive(int fd, json_t **answer, struct iocom_err *err)
{
	struct frame frame;
	int rc = frame_read(fd, &frame, FRAME_DOCUMENT_MAX, err);

	if (rc == FRAME_E_EOF || rc == FRAME_E_CUT)
		return iocom_err_set(err, -EPIPE,
				     "the agent closed the connection before it answered");
	if (rc)
		return rc < 0 ? rc : -EPROTO;
	rc = answer_parse(&frame, answer, err);
	frame_free(&frame);
	return rc;
}

int client_request(int fd, const void *packed, size_t length, json_t **answer,
		   struct iocom_err *err)
{
	int rc = client_send(fd, packed, length, err);

	return rc ? rc : client_receive(fd, answer, err);
}

int client_ask(const char *run_dir, msgpack_sbuffer *request, json_t **answer,
	       struct iocom_err *err)
{
	int fd;
	int rc = client_connect(run_dir, &fd, err);

	if (!rc) {
		rc = client_request(fd, request->data, request->size, answer, err);
		close(fd);
	}
	msgpack_sbuffer_destroy(request);
	return rc;
}
