/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See transfer.h. */
#include "agent/shim/move/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/move/squeeze.h"
#include "user/channel/bytes.h"
#include "user/clock.h"
#include "user/record.h"
#include "user/utf8.h"
#include "user/write_whole.h"

#define TRANSFER_ROOM	 'm'
#define TRANSFER_FILE	 'f'
#define TRANSFER_MORE	 'b'
#define TRANSFER_PACKED	 'z'
#define TRANSFER_UNPACKS 'Z'
#define TRANSFER_END	 'e'
#define TRANSFER_READY	 'r'
#define NUMBER_BYTES	 8
#define GHOST_FILE	 "ghost-file-" /* of criu: the contents of a deleted file */
/* What a file system takes besides the bytes of a file. */
#define FILE_OVERHEAD 4096ULL

static int transfer_wait(const struct wire *wire, short events, uint64_t until_ms)
{
	struct pollfd p = {.fd = wire->fd, .events = events};
	uint64_t now_ms = clock_boot_ms();
	uint64_t left_ms = now_ms < until_ms ? until_ms - now_ms : 0;
	int n = poll(&p, 1, left_ms < WIRE_LOOK_MS ? (int)left_ms : WIRE_LOOK_MS);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n == 0 && clock_boot_ms() >= until_ms ? -ETIMEDOUT : 0;
}

static int transfer_flush(struct wire *wire, uint64_t until_ms)
{
	int rc = 0;

	while (!rc && !wire_idle(wire)) {
		rc = transfer_wait(wire, POLLOUT, until_ms);
		if (!rc)
			rc = wire_silent(wire) ? -ETIMEDOUT : wire_flush(wire);
	}
	return rc;
}

static int transfer_frame(struct wire *wire, uint8_t what, const uint64_t *number, const void *data,
			  size_t length, uint64_t until_ms)
{
	uint8_t head[1 + NUMBER_BYTES] = {what};
	int rc;

	if (number)
		bytes_put_u64(head + 1, *number);
	rc = wire_send(wire, FRAME_MOVE, head, number ? sizeof(head) : 1, data, length);
	return rc ? rc : transfer_flush(wire, until_ms);
}

/* --- sending ----------------------------------------------------------------------------- */

/* What is sent, and how. */
struct sending {
	struct wire *wire;
	uint64_t until_ms;
	struct squeeze *squeeze; /* NULL: images go as they are */
	bool unpacks;		 /* the target has said that it can */
	struct squeeze_pace pace;
	uint8_t piece[TRANSFER_PIECE], packed[TRANSFER_PIECE];
};

/* Has the target said that it unpacks?  What else it says is read after the last file. */
static void send_listen(struct sending *s)
{
	const uint8_t *payload;
	size_t head, left;
	uint32_t length;
	uint8_t type;

	if (!s->squeeze || wire_fill(s->wire) <= 0)
		return;
	head = s->wire->in_head;
	left = s->wire->in_length;
	if (wire_next(s->wire, &type, &payload, &length))
		return;
	s->unpacks = type == FRAME_MOVE && length == 1 && payload[0] == TRANSFER_UNPACKS;
	if (s->unpacks)
		return;
	s->wire->in_head = head; /* it refuses: transfer_await must read that */
	s->wire->in_length = left;
}

static int send_piece(struct sending *s, size_t n)
{
	size_t packed = 0;
	int rc;

	if (s->unpacks && s->pace.packs)
		packed = squeeze_pack(s->squeeze, s->piece, n, s->packed, n);
	rc = packed ? transfer_frame(s->wire, TRANSFER_PACKED, NULL, s->packed, packed, s->until_ms)
		    : transfer_frame(s->wire, TRANSFER_MORE, NULL, s->piece, n, s->until_ms);
	if (s->unpacks)
		squeeze_paced(&s->pace, n, clock_boot_ns());
	else
		send_listen(s);
	return rc;
}

static int send_bytes(struct sending *s, int fd, uint64_t length)
{
	int rc = 0;

	while (!rc && length) {
		ssize_t n = read(fd, s->piece,
				 length < TRANSFER_PIECE ? (size_t)length : TRANSFER_PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		rc = n < 0 ? -errno : n == 0 ? -EIO : send_piece(s, (size_t)n);
		length -= n > 0 ? (uint64_t)n : 0;
	}
	return rc;
}

/* Sends the file NAME of DIR, which is called SENT_AS there. */
static int send_file(struct sending *s, int dir, const char *name, const char *sent_as)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;
	struct stat st;
	uint64_t size;

	if (fd < 0 || fstat(fd, &st))
		rc = -errno;
	if (!rc && S_ISREG(st.st_mode)) {
		size = (uint64_t)st.st_size;
		rc = transfer_frame(s->wire, TRANSFER_FILE, &size, sent_as, strlen(sent_as),
				    s->until_ms);
		if (!rc)
			rc = send_bytes(s, fd, size);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

static int transfer_say(int rc, struct iocom_err *err)
{
	if (rc == -ETIMEDOUT)
		return iocom_err_set(err, rc, "the other node did not take it in time");
	return rc ? iocom_err_set(err, rc, "the connection to the other node broke: %s",
				  strerror(-rc))
		  : 0;
}

static int send_images(struct sending *s, const struct images *images)
{
	int fd = openat(images->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			rc = send_file(s, fd, entry->d_name, entry->d_name);
	closedir(dir);
	return rc;
}

static int send_all(struct sending *s, const struct images *images, int record, uint64_t bytes)
{
	int rc = transfer_frame(s->wire, TRANSFER_ROOM, &bytes, NULL, 0, s->until_ms);

	if (!rc)
		rc = send_images(s, images);
	if (!rc && record >= 0)
		rc = send_file(s, record, RECORD_OUT, TRANSFER_RECORD RECORD_OUT);
	if (!rc && record >= 0)
		rc = send_file(s, record, RECORD_ERR, TRANSFER_RECORD RECORD_ERR);
	return rc ? rc : transfer_frame(s->wire, TRANSFER_END, NULL, NULL, 0, s->until_ms);
}

int transfer_send(struct wire *wire, const struct images *images, int record, uint64_t until_ms,
		  struct iocom_err *err)
{
	uint64_t bytes, files;
	struct sending *s;
	int rc = images_size(images, &bytes, &files);

	if (rc)
		return transfer_say(rc, err);
	if (files > IMAGES_FILES_MAX)
		return iocom_err_set(err, -E2BIG, "it has more than %u images", IMAGES_FILES_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	s->wire = wire;
	s->until_ms = until_ms;
	s->squeeze = bytes > 2 * SQUEEZE_BLOCK ? squeeze_new() : NULL;
	rc = send_all(s, images, record, bytes + files * FILE_OVERHEAD);
	squeeze_free(s->squeeze);
	free(s);
	/* Who refuses says why before the connection ends. */
	if (rc == -EPIPE || rc == -ECONNRESET)
		return transfer_await(wire, until_ms, err);
	return transfer_say(rc, err);
}

/* --- receiving --------------------------------------------------------------------------- */

struct transfer {
	const struct transfer_into *into;
	uint64_t files, record_left;
	uint64_t left; /* of the file that comes */
	int fd;	       /* of that; -1: none */
	bool room, over;
	struct wire *wire;
	uint64_t until_ms;
	struct squeeze *squeeze; /* NULL: there is none */
};

static bool transfer_name_valid(const char *name)
{
	if (!*name || *name == '.')
		return false;
	return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789-._")] == 0;
}

static int transfer_take_room(struct transfer *t, const uint8_t *data, size_t length,
			      struct iocom_err *err)
{
	uint64_t bytes;

	if (t->room || length != NUMBER_BYTES)
		return -EBADMSG;
	bytes = wire_u64(data);
	if (bytes > t->into->most_bytes)
		return iocom_err_set(err, -ENOSPC,
				     "its images need %llu MiB, and this node takes %llu MiB",
				     (unsigned long long)(bytes >> 20),
				     (unsigned long long)(t->into->most_bytes >> 20));
	t->room = true;
	t->squeeze = squeeze_new();
	/* If that fails, the next frame does not come either. */
	if (t->squeeze)
		(void)transfer_frame(t->wire, TRANSFER_UNPACKS, NULL, NULL, 0, t->until_ms);
	/* criu writes its log beside them. */
	return images_make(t->into->images, bytes + (4u << 20), err);
}

static int transfer_take_file(struct transfer *t, const uint8_t *data, size_t length,
			      struct iocom_err *err)
{
	char name[IMAGES_NAME_MAX], *at;
	int dir;

	if (!t->room || t->left || length <= NUMBER_BYTES ||
	    length - NUMBER_BYTES >= sizeof(name) || ++t->files > IMAGES_FILES_MAX)
		return -EBADMSG;
	memcpy(name, data + NUMBER_BYTES, length - NUMBER_BYTES);
	name[length - NUMBER_BYTES] = 0;
	if (strlen(name) != length - NUMBER_BYTES || !transfer_name_valid(name))
		return -EBADMSG;
	/* criu would make the deleted file again, as root, where its path leads here. */
	if (!strncmp(name, GHOST_FILE, strlen(GHOST_FILE)))
		return iocom_err_set(err, -ENOTSUP, "it has a deleted file open");
	if (t->fd >= 0)
		close(t->fd);
	t->left = wire_u64(data);
	dir = t->into->images->fd;
	at = name;
	if (!strncmp(name, TRANSFER_RECORD, strlen(TRANSFER_RECORD))) {
		at += strlen(TRANSFER_RECORD);
		dir = t->into->record;
		if (dir < 0 || (strcmp(at, RECORD_OUT) != 0 && strcmp(at, RECORD_ERR) != 0))
			return -EBADMSG;
		if (t->left > t->record_left)
			return iocom_err_set(err, -ENOSPC,
					     "this node keeps less output than it has written");
		t->record_left -= t->left;
	}
	t->fd = openat(dir, at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return t->fd >= 0 ? 0 : errno == EEXIST ? -EBADMSG : -errno;
}

static int transfer_take_bytes(struct transfer *t, const uint8_t *data, size_t length)
{
	if (t->fd < 0 || length > t->left)
		return -EBADMSG;
	t->left -= length;
	return write_whole(t->fd, data, length);
}

static int transfer_take_packed(struct transfer *t, const uint8_t *data, size_t length)
{
	uint8_t piece[TRANSFER_PIECE];
	size_t n = t->squeeze ? squeeze_unpack(t->squeeze, data, length, piece, sizeof(piece)) : 0;

	return n ? transfer_take_bytes(t, piece, n) : -EBADMSG;
}

static int transfer_take(struct transfer *t, const uint8_t *payload, size_t length,
			 struct iocom_err *err)
{
	if (!length)
		return -EBADMSG;
	switch (payload[0]) {
	case TRANSFER_ROOM:
		return transfer_take_room(t, payload + 1, length - 1, err);
	case TRANSFER_FILE:
		return transfer_take_file(t, payload + 1, length - 1, err);
	case TRANSFER_MORE:
		return transfer_take_bytes(t, payload + 1, length - 1);
	case TRANSFER_PACKED:
		return transfer_take_packed(t, payload + 1, length - 1);
	case TRANSFER_END:
		t->over = true;
		return t->room && !t->left && length == 1 ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

/* Gets the next frame, which must be FRAME_MOVE. */
static int transfer_next(struct wire *wire, const uint8_t **payload, uint32_t *length,
			 uint64_t until_ms)
{
	uint8_t type;
	int rc;

	while ((rc = wire_next(wire, &type, payload, length)) == FRAME_E_MORE) {
		rc = transfer_wait(wire, POLLIN, until_ms);
		if (!rc && wire_silent(wire))
			rc = -ETIMEDOUT;
		if (!rc)
			rc = wire_fill(wire);
		if (rc < 0)
			return rc;
	}
	return rc || type != FRAME_MOVE ? -EBADMSG : 0;
}

int transfer_receive(struct wire *wire, const struct transfer_into *into, uint64_t until_ms,
		     struct iocom_err *err)
{
	struct transfer t = {.into = into,
			     .record_left = into->record_bytes,
			     .fd = -1,
			     .wire = wire,
			     .until_ms = until_ms};
	const uint8_t *payload;
	uint32_t length;
	int rc = 0;

	*into->images = (struct images){.fd = -1};
	err->text[0] = 0;
	while (!rc && !t.over) {
		rc = transfer_next(wire, &payload, &length, until_ms);
		if (!rc)
			rc = transfer_take(&t, payload, length, err);
	}
	if (t.fd >= 0)
		close(t.fd);
	squeeze_free(t.squeeze);
	if (!rc)
		return 0;
	images_free(into->images);
	if (*err->text)
		return rc;
	if (rc == -EBADMSG)
		return iocom_err_set(err, rc, "the other node sent what is no job that moves");
	if (rc == -ENOSPC)
		return iocom_err_set(err, rc, "its images are larger than was announced");
	return transfer_say(rc, err);
}

/* --- the answer -------------------------------------------------------------------------- */

int transfer_begin(struct wire *wire, uint64_t until_ms)
{
	return transfer_frame(wire, FRAME_MOVE_BEGIN, NULL, NULL, 0, until_ms);
}

int transfer_ready(struct wire *wire, uint64_t until_ms)
{
	return transfer_frame(wire, TRANSFER_READY, NULL, NULL, 0, until_ms);
}

int transfer_signal(struct wire *wire, uint8_t signal, uint64_t until_ms)
{
	int rc = wire_signal(wire, signal);

	return rc ? rc : transfer_flush(wire, until_ms);
}

void transfer_refuse(struct wire *wire, const char *text, uint64_t until_ms)
{
	if (transfer_frame(wire, FRAME_MOVE_REFUSED, NULL, text, strlen(text), until_ms))
		return;
	shutdown(wire->fd, SHUT_WR);
	while (!transfer_wait(wire, POLLIN, until_ms) && wire_fill(wire) >= 0)
		wire_discard(wire);
}

int transfer_await(struct wire *wire, uint64_t until_ms, struct iocom_err *err)
{
	const uint8_t *payload;
	uint32_t length;
	char text[sizeof(err->text)];
	int rc;

	do
		rc = transfer_next(wire, &payload, &length, until_ms);
	while (!rc && length == 1 &&
	       (payload[0] == FRAME_MOVE_BEGIN || payload[0] == TRANSFER_UNPACKS));
	if (rc == -EBADMSG || (!rc && !length))
		return iocom_err_set(err, -EBADMSG, "the other node does not answer as it should");
	if (rc)
		return transfer_say(rc, err);
	if (payload[0] == TRANSFER_READY)
		return 0;
	if (payload[0] != FRAME_MOVE_REFUSED)
		return iocom_err_set(err, -EBADMSG, "the other node does not answer as it should");
	length = length - 1 < sizeof(text) - 1 ? length - 1 : (uint32_t)sizeof(text) - 1;
	memcpy(text, payload + 1, length);
	text[length] = 0;
	utf8_plain(text);
	return iocom_err_set(err, -ECONNREFUSED, "%s", text);
}
