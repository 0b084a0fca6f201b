/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See transfer.h. */
#include "agent/shim/move/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
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
#define TRANSFER_ROUND	 'R'
#define TRANSFER_LAST	 'L'
#define TRANSFER_END	 'e'
#define TRANSFER_READY	 'r'
#define NUMBER_BYTES	 8
#define GHOST_FILE	 "ghost-file-" /* of criu: the contents of a deleted file */
/* What a file system takes besides the bytes of a file. */
#define FILE_OVERHEAD 4096ULL
#define LOG_BYTES     (4ULL << 20) /* of criu's log, which is written beside them */
#define PARENT_LINK   "parent"	   /* of criu, to the images before */

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

void transfer_round_name(char name[TRANSFER_ROUND_NAME], unsigned number)
{
	snprintf(name, TRANSFER_ROUND_NAME, "round-%u", number);
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
	bool takes_rounds;	 /* the same */
	bool refused;		 /* it says something else, which transfer_await must read */
	unsigned rounds;	 /* that were sent */
	struct squeeze_pace pace;
	uint8_t piece[TRANSFER_PIECE], packed[TRANSFER_PIECE];
};

/* Takes what the target says of what it can; what else it says is read after the last file.
 * Returns as wire_fill. */
static int send_listen(struct sending *s)
{
	int rc = s->refused ? 0 : wire_fill(s->wire);
	const uint8_t *payload;
	size_t head, left;
	uint32_t length;
	uint8_t type;

	while (rc > 0 && !s->refused) {
		head = s->wire->in_head;
		left = s->wire->in_length;
		if (wire_next(s->wire, &type, &payload, &length))
			return rc;
		if (type != FRAME_MOVE || length != 1)
			s->refused = true;
		else if (payload[0] == TRANSFER_UNPACKS)
			s->unpacks = s->squeeze != NULL;
		else if (payload[0] == FRAME_MOVE_BEGIN)
			s->takes_rounds = true;
		else
			s->refused = true;
		if (s->refused) {
			s->wire->in_head = head;
			s->wire->in_length = left;
		}
	}
	return rc;
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
	else if (s->squeeze)
		(void)send_listen(s);
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

/* Sends the files of the directory AT/NAME. */
static int send_images(struct sending *s, int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, PARENT_LINK) != 0)
			rc = send_file(s, fd, entry->d_name, entry->d_name);
	closedir(dir);
	return rc;
}

static int send_last(struct sending *s, const struct images *images, int record)
{
	int rc = 0;

	if (s->rounds)
		rc = transfer_frame(s->wire, TRANSFER_LAST, NULL, NULL, 0, s->until_ms);
	if (!rc)
		rc = send_images(s, images->fd, ".");
	if (!rc && record >= 0)
		rc = send_file(s, record, RECORD_OUT, TRANSFER_RECORD RECORD_OUT);
	if (!rc && record >= 0)
		rc = send_file(s, record, RECORD_ERR, TRANSFER_RECORD RECORD_ERR);
	return rc ? rc : transfer_frame(s->wire, TRANSFER_END, NULL, NULL, 0, s->until_ms);
}

/* Who refuses says why before the connection ends. */
static int send_said(struct sending *s, int rc, struct iocom_err *err)
{
	if (rc == -EPIPE || rc == -ECONNRESET)
		return transfer_await(s->wire, s->until_ms, err);
	return transfer_say(rc, err);
}

/* Waits until the target has said whether it takes rounds; an older one says nothing of it. */
static void send_ask_rounds(struct sending *s, unsigned limit_ms)
{
	uint64_t end_ms = clock_boot_ms() + limit_ms;

	while (limit_ms && !s->takes_rounds && !s->refused &&
	       !transfer_wait(s->wire, POLLIN, end_ms))
		if (send_listen(s) < 0 || clock_boot_ms() >= end_ms)
			return;
}

int transfer_open(struct sending **sending, struct wire *wire, uint64_t bytes, unsigned limit_ms,
		  uint64_t until_ms, struct iocom_err *err)
{
	struct sending *s = calloc(1, sizeof(*s));
	int rc;

	*sending = s;
	if (!s)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	s->wire = wire;
	s->until_ms = until_ms;
	s->squeeze = bytes > 2 * SQUEEZE_BLOCK ? squeeze_new() : NULL;
	rc = transfer_frame(wire, TRANSFER_ROOM, &bytes, NULL, 0, until_ms);
	if (!rc)
		send_ask_rounds(s, limit_ms);
	return send_said(s, rc, err);
}

bool transfer_takes_rounds(const struct sending *s)
{
	return s->takes_rounds && !s->refused;
}

int transfer_round(struct sending *s, const struct images *images, struct iocom_err *err)
{
	char name[TRANSFER_ROUND_NAME];
	int rc = transfer_frame(s->wire, TRANSFER_ROUND, NULL, NULL, 0, s->until_ms);

	transfer_round_name(name, ++s->rounds);
	if (!rc)
		rc = send_images(s, images->fd, name);
	if (!rc)
		(void)send_listen(s);
	return s->refused ? transfer_await(s->wire, s->until_ms, err) : send_said(s, rc, err);
}

int transfer_rest(struct sending *s, const struct images *images, int record, struct iocom_err *err)
{
	return send_said(s, send_last(s, images, record), err);
}

void transfer_close(struct sending *s)
{
	if (s)
		squeeze_free(s->squeeze);
	free(s);
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
	rc = transfer_open(&s, wire, bytes + files * FILE_OVERHEAD, 0, until_ms, err);
	if (!rc)
		rc = transfer_rest(s, images, record, err);
	transfer_close(s);
	return rc;
}

/* --- receiving --------------------------------------------------------------------------- */

struct transfer {
	const struct transfer_into *into;
	uint64_t files, record_left;
	uint64_t left; /* of the file that comes */
	int fd;	       /* of that; -1: none */
	int dir;       /* where the files of this round go; that of the images: it is the rest */
	unsigned rounds;
	uint64_t room_bytes; /* that were announced */
	uint64_t room_left;  /* of these, for this part: the rounds, or the rest */
	bool room, last, over;
	bool offered;  /* rounds may come */
	bool recorded; /* that file is output that it has written, and goes to the disk */
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

/* Makes room for the rounds, too, if that is wanted and there is memory for them, and says so. */
static int take_room_rounds(struct transfer *t, struct iocom_err *err)
{
	uint64_t bytes = t->room_bytes;
	struct iocom_err none = {0};

	if (t->into->rounds && bytes <= t->into->most_bytes / 4 &&
	    !images_make(t->into->images, TRANSFER_ROUNDS_BYTES(bytes) + bytes + LOG_BYTES,
			 &none)) {
		t->offered = true;
		(void)transfer_frame(t->wire, FRAME_MOVE_BEGIN, NULL, NULL, 0, t->until_ms);
		return 0;
	}
	return images_make(t->into->images, bytes + LOG_BYTES, err);
}

static int transfer_take_room(struct transfer *t, const uint8_t *data, size_t length,
			      struct iocom_err *err)
{
	uint64_t bytes;
	int rc;

	if (t->room || length != NUMBER_BYTES)
		return -EBADMSG;
	bytes = wire_u64(data);
	if (bytes > t->into->most_bytes)
		return iocom_err_set(err, -ENOSPC,
				     "its images need %llu MiB, and this node takes %llu MiB",
				     (unsigned long long)(bytes >> 20),
				     (unsigned long long)(t->into->most_bytes >> 20));
	t->room = true;
	t->room_bytes = t->room_left = bytes;
	t->squeeze = squeeze_new();
	/* If that fails, the next frame does not come either. */
	if (t->squeeze)
		(void)transfer_frame(t->wire, TRANSFER_UNPACKS, NULL, NULL, 0, t->until_ms);
	rc = take_room_rounds(t, err);
	t->dir = t->into->images->fd;
	return rc;
}

static int transfer_link(int dir, const char *before, unsigned number)
{
	char name[TRANSFER_ROUND_NAME], target[TRANSFER_ROUND_NAME + 4];

	transfer_round_name(name, number);
	snprintf(target, sizeof(target), "%s%s", before, name);
	return symlinkat(target, dir, PARENT_LINK) ? -errno : 0;
}

static void transfer_leave_round(struct transfer *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	if (t->dir >= 0 && t->dir != t->into->images->fd)
		close(t->dir);
	t->dir = t->into->images->fd;
}

static int transfer_take_round(struct transfer *t, size_t length)
{
	char name[TRANSFER_ROUND_NAME];

	if (!t->offered || t->left || t->last || length || t->rounds >= TRANSFER_ROUNDS_MAX ||
	    (!t->rounds && t->files))
		return -EBADMSG;
	if (!t->rounds)
		t->room_left = TRANSFER_ROUNDS_BYTES(t->room_bytes);
	transfer_leave_round(t);
	transfer_round_name(name, ++t->rounds);
	if (mkdirat(t->dir, name, 0700))
		return -errno;
	t->dir = openat(t->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (t->dir < 0)
		return -errno;
	return t->rounds > 1 ? transfer_link(t->dir, "../", t->rounds - 1) : 0;
}

static int transfer_take_last(struct transfer *t, size_t length)
{
	if (!t->rounds || t->left || t->last || length)
		return -EBADMSG;
	transfer_leave_round(t);
	t->last = true;
	t->room_left = t->room_bytes;
	return transfer_link(t->dir, "", t->rounds);
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
	t->fd = -1;
	t->left = wire_u64(data);
	dir = t->dir;
	at = name;
	t->recorded = !strncmp(name, TRANSFER_RECORD, strlen(TRANSFER_RECORD));
	if (t->recorded) {
		at += strlen(TRANSFER_RECORD);
		dir = t->into->record;
		if (dir < 0 || t->dir != t->into->images->fd ||
		    (strcmp(at, RECORD_OUT) != 0 && strcmp(at, RECORD_ERR) != 0))
			return -EBADMSG;
		if (t->left > t->record_left)
			return iocom_err_set(err, -ENOSPC,
					     "this node keeps less output than it has written");
		t->record_left -= t->left;
	} else if (t->left > t->room_left) {
		return -ENOSPC;
	} else {
		t->room_left -= t->left;
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
	case TRANSFER_ROUND:
		return transfer_take_round(t, length - 1);
	case TRANSFER_LAST:
		return transfer_take_last(t, length - 1);
	case TRANSFER_END:
		t->over = true;
		return t->room && !t->left && length == 1 && t->last == (t->rounds > 0) ? 0
											: -EBADMSG;
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
			     .dir = -1,
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
	transfer_leave_round(&t);
	squeeze_free(t.squeeze);
	if (!rc)
		return 0;
	images_free(into->images);
	if (*err->text)
		return rc;
	if (rc == -EBADMSG)
		return iocom_err_set(err, rc, "the other node sent what is no job that moves");
	if (rc == -ENOSPC && t.recorded)
		return iocom_err_set(err, rc, "the disk there has no room for its output");
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
