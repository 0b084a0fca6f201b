/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Frames on a stream socket; frame.h describes their form. */
#include "user/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void frame_free(struct frame *frame)
{
	free(frame->payload);
	*frame = (struct frame){0};
}

/*
 * Each type has the version in which its form last changed, so that an agent can still talk with
 * the shims of an older one.
 */
static uint8_t version_of(uint8_t type)
{
	return type <= FRAME_ERROR ? 1 : FRAME_VERSION;
}

void frame_header(uint8_t out[FRAME_HEADER], uint8_t type, uint32_t length)
{
	out[0] = 'i';
	out[1] = 'c';
	out[2] = version_of(type);
	out[3] = type;
	out[4] = (uint8_t)(length >> 24);
	out[5] = (uint8_t)(length >> 16);
	out[6] = (uint8_t)(length >> 8);
	out[7] = (uint8_t)length;
}

/* Checks the first HAVE bytes of a header at HEAD (at most 8). Returns 0, FRAME_E_GARBAGE or
 * FRAME_E_VERSION. */
static int header_check(const uint8_t *head, size_t have, uint32_t max, uint32_t *length)
{
	if ((have > 0 && head[0] != 'i') || (have > 1 && head[1] != 'c'))
		return FRAME_E_GARBAGE;
	if (have > 3 && head[2] != version_of(head[3]))
		return FRAME_E_VERSION;
	if (have < FRAME_HEADER)
		return FRAME_E_MORE;
	*length = (uint32_t)head[4] << 24 | (uint32_t)head[5] << 16 | (uint32_t)head[6] << 8 |
		  head[7];
	return *length > max ? FRAME_E_GARBAGE : 0;
}

int frame_parse(const uint8_t *buffer, size_t have, uint32_t max, uint8_t *type,
		const uint8_t **payload, uint32_t *length, size_t *consumed)
{
	uint32_t n = 0;
	int rc = header_check(buffer, have, max, &n);

	if (rc)
		return rc;
	if (have - FRAME_HEADER < n)
		return FRAME_E_MORE;
	*type = buffer[3];
	*payload = buffer + FRAME_HEADER;
	*length = n;
	*consumed = FRAME_HEADER + (size_t)n;
	return 0;
}

/* Reads N bytes. Returns the number read, which is below N only at end of file, or negative
 * errno. */
static ssize_t frame_read_all(int fd, void *buffer, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(fd, (char *)buffer + have, n - have);

		if (got == 0)
			break;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

static int condition(int rc, const uint8_t *head, struct iocom_err *err)
{
	if (rc == FRAME_E_VERSION)
		return iocom_err_set(
			err, rc,
			"the peer speaks protocol version %u, this program %u; install "
			"the same iocom version on both sides",
			head[2], version_of(head[3]));
	if (rc == FRAME_E_GARBAGE)
		return iocom_err_set(err, rc, "the peer does not speak iocom's protocol");
	return rc;
}

int frame_read(int fd, struct frame *frame, uint32_t max, struct iocom_err *err)
{
	uint8_t head[FRAME_HEADER];
	uint32_t length = 0;
	ssize_t got = frame_read_all(fd, head, sizeof(head));
	int rc;

	*frame = (struct frame){0};
	if (got < 0)
		return iocom_err_set(err, (int)got, "cannot read from the peer: %s",
				     strerror((int)-got));
	if (got == 0)
		return iocom_err_set(err, FRAME_E_EOF, "the peer closed the connection");
	rc = header_check(head, (size_t)got, max, &length);
	if (rc == FRAME_E_MORE)
		return iocom_err_set(err, FRAME_E_CUT, "the connection was cut inside a message");
	if (rc)
		return condition(rc, head, err);
	frame->payload = malloc((size_t)length + 1);
	if (!frame->payload)
		return iocom_err_set(err, -ENOMEM, "out of memory for a message of %u bytes",
				     length);
	got = frame_read_all(fd, frame->payload, length);
	if (got != (ssize_t)length) {
		frame_free(frame);
		if (got < 0)
			return iocom_err_set(err, (int)got, "cannot read from the peer: %s",
					     strerror((int)-got));
		return iocom_err_set(err, FRAME_E_CUT, "the connection was cut inside a message");
	}
	frame->payload[length] = 0;
	frame->type = head[3];
	frame->length = length;
	return 0;
}

/* Waits for a non-blocking descriptor, so that a frame is written whole or not at all. */
static int wait_writable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int frame_write_all(int fd, struct iovec *iov, size_t niov)
{
	while (niov) {
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = niov};
		ssize_t put = sendmsg(fd, &msg, MSG_NOSIGNAL);

		if (put < 0 && errno == ENOTSOCK)
			put = writev(fd, iov, (int)niov);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			int rc = wait_writable(fd);

			if (rc)
				return rc;
			continue;
		}
		if (put < 0)
			return -errno;
		while (niov && (size_t)put >= iov->iov_len) {
			put -= (ssize_t)iov->iov_len;
			iov++;
			niov--;
		}
		if (niov) {
			iov->iov_base = (char *)iov->iov_base + put;
			iov->iov_len -= (size_t)put;
		}
	}
	return 0;
}

int frame_write2(int fd, uint8_t type, const void *head, uint32_t head_length, const void *data,
		 uint32_t length)
{
	uint8_t header[FRAME_HEADER];
	struct iovec iov[3] = {
		{header, sizeof(header)},
		{(void *)head, head_length},
		{(void *)data, length},
	};
	const uint32_t max = type == FRAME_JSON ? FRAME_DOCUMENT_MAX : FRAME_PAYLOAD_MAX;

	if (length > max || head_length > max - length)
		return -EMSGSIZE;
	frame_header(header, type, head_length + length);
	return frame_write_all(fd, iov, 3);
}

int frame_write(int fd, uint8_t type, const void *payload, uint32_t length)
{
	return frame_write2(fd, type, NULL, 0, payload, length);
}
