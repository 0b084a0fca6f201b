/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See leash_wire.h. */
#include "user/leash_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "user/frame.h"
#include "user/pack.h"

int leash_send(int fd, const msgpack_sbuffer *message, int flags)
{
	uint8_t frame[LEASH_MESSAGE_MAX];
	size_t n = FRAME_HEADER + message->size;
	ssize_t put;

	if (n > sizeof(frame))
		return -EMSGSIZE;
	frame_header(frame, FRAME_REQUEST, (uint32_t)message->size);
	frame[2] = LEASH_FRAME;
	memcpy(frame + FRAME_HEADER, message->data, message->size);
	put = send(fd, frame, n, flags | MSG_NOSIGNAL);
	if (put < 0)
		return -errno;
	return put == (ssize_t)n ? 0 : -EIO;
}

/* Returns the length of the whole message that begins with HEADER, or -EBADMSG. */
static ssize_t leash_wire_whole(const uint8_t header[FRAME_HEADER])
{
	size_t length = (size_t)header[4] << 24 | (size_t)header[5] << 16 | (size_t)header[6] << 8 |
			header[7];

	if (header[0] != 'i' || header[1] != 'c' || header[3] != FRAME_REQUEST ||
	    length > LEASH_MESSAGE_MAX - FRAME_HEADER)
		return -EBADMSG;
	return (ssize_t)(FRAME_HEADER + length);
}

static int leash_wire_decode(const uint8_t *buffer, ssize_t n, msgpack_unpacked *map)
{
	return unpack_map(map, buffer + FRAME_HEADER, (size_t)n - FRAME_HEADER) ? -EBADMSG : 0;
}

int leash_take(int fd, uint8_t buffer[LEASH_MESSAGE_MAX], msgpack_unpacked *map)
{
	/* Peek first: an incomplete message must stay in the socket. */
	ssize_t have = recv(fd, buffer, LEASH_MESSAGE_MAX, MSG_PEEK | MSG_DONTWAIT);
	ssize_t want;

	if (have < 0 && errno == ECONNRESET)
		return -ECONNRESET;
	if (have < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EPIPE;
	if (have == 0)
		return -EPIPE;
	if (have < FRAME_HEADER)
		return -EAGAIN;
	want = leash_wire_whole(buffer);
	if (want < 0)
		return (int)want;
	if (have < want)
		return -EAGAIN;
	if (recv(fd, buffer, (size_t)want, MSG_DONTWAIT) != want)
		return -EBADMSG;
	return leash_wire_decode(buffer, want, map);
}

static int leash_wire_receive(int fd, uint8_t *at, size_t n)
{
	while (n) {
		ssize_t got = recv(fd, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

int leash_await(int fd, uint8_t buffer[LEASH_MESSAGE_MAX], msgpack_unpacked *map)
{
	int rc = leash_wire_receive(fd, buffer, FRAME_HEADER);
	ssize_t want = rc ? rc : leash_wire_whole(buffer);

	if (want < 0)
		return (int)want;
	rc = leash_wire_receive(fd, buffer + FRAME_HEADER, (size_t)want - FRAME_HEADER);
	return rc ? rc : leash_wire_decode(buffer, want, map);
}

uint64_t leash_version(const msgpack_object *map)
{
	uint64_t version;

	return unpack_u64(map, "v", &version) ? 1 : version;
}
