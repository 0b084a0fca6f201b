/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See luggage.h. */
#include "agent/shim/move/luggage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/pack.h"
#include "user/record.h"
#include "user/terminal.h"
#include "user/write_whole.h"

#define LUGGAGE_VERSION	    1
#define LUGGAGE_VERSION_TTY 2 /* with a terminal, which an older node does not know */
#define TTY_ENTRIES	    7
#define KEY_MAX		    24

/* The keys of what comes once per pipe, and per output. */
static const char *const pipe_names[LUGGAGE_PIPES] = {"in", "out", "err", "status"};

/* --- pipes ------------------------------------------------------------------------------- */

/* Reads all that is in the pipe FD into BYTES, which have room for SIZE. */
static int drain(struct luggage_bytes *bytes, int fd, size_t size)
{
	bytes->data = malloc(size);
	if (!bytes->data)
		return -ENOMEM;
	while (bytes->length < size) {
		ssize_t n = read(fd, bytes->data + bytes->length, size - bytes->length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			return 0;
		bytes->length += (size_t)n;
	}
	return 0;
}

/* The copy gets as many places as the pipe has, and so takes all of it at once. */
static int copy_pipe(struct luggage_pipe *pipe, int from, int room)
{
	int copy[2], rc = 0;

	if (pipe2(copy, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	if (fcntl(copy[1], F_SETPIPE_SZ, room) < 0)
		rc = -errno;
	if (!rc && tee(from, copy[1], (size_t)room, SPLICE_F_NONBLOCK) < 0 && errno != EAGAIN)
		rc = -errno;
	close(copy[1]);
	if (!rc)
		rc = drain(&pipe->held, copy[0], (size_t)room);
	close(copy[0]);
	return rc;
}

int luggage_look(struct luggage_pipe *pipe, int fd)
{
	char path[32];
	int from, room = fcntl(fd, F_GETPIPE_SZ), rc;
	struct criu_pipe name;

	*pipe = (struct luggage_pipe){0};
	if (room < 0)
		return -errno;
	if (room > (int)LUGGAGE_PIPE_MAX)
		return -EMSGSIZE;
	rc = criu_pipe_name(&name, getpid(), fd);
	if (rc)
		return rc;
	memcpy(pipe->name, name.name, sizeof(pipe->name));
	pipe->open = true;
	pipe->room = (uint32_t)room;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	from = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return -errno;
	rc = copy_pipe(pipe, from, room);
	close(from);
	return rc;
}

int luggage_fill(const struct luggage_pipe *pipe, int fd)
{
	if (fcntl(fd, F_GETPIPE_SZ) < (int)pipe->room &&
	    fcntl(fd, F_SETPIPE_SZ, (int)pipe->room) < 0)
		return -errno;
	return write_whole(fd, pipe->held.data, pipe->held.length);
}

/* --- the file ---------------------------------------------------------------------------- */

static void key_of(char out[KEY_MAX], const char *name, const char *what)
{
	snprintf(out, KEY_MAX, "%s_%s", name, what);
}

static void pack_pipe(msgpack_packer *pk, const char *name, const struct luggage_pipe *pipe)
{
	char key[KEY_MAX];

	key_of(key, name, "pipe");
	pack_str(pk, key, pipe->name);
	key_of(key, name, "room");
	pack_u64(pk, key, pipe->room);
	key_of(key, name, "held");
	pack_bin(pk, key, pipe->held.data, pipe->held.length);
}

static void pack_kept(msgpack_packer *pk, const char *name, const struct luggage_kept *kept)
{
	char key[KEY_MAX];

	key_of(key, name, "start");
	pack_u64(pk, key, kept->start);
	key_of(key, name, "kept");
	pack_bin(pk, key, kept->bytes.data, kept->bytes.length);
}

static void pack_tty(msgpack_packer *pk, const struct luggage_tty *tty)
{
	uint8_t size[TERMINAL_SIZE_BYTES];

	terminal_size_put(size, &tty->size);
	pack_str(pk, "tty", tty->name);
	pack_bin(pk, "tty_size", size, sizeof(size));
	pack_bool(pk, "tty_lines", tty->lines);
	pack_bool(pk, "tty_nonblocking", tty->nonblocking);
	pack_u64(pk, "tty_last", (uint8_t)tty->last);
	pack_bin(pk, "tty_typed", tty->typed.data, tty->typed.length);
	pack_bin(pk, "tty_output", tty->output.data, tty->output.length);
}

void luggage_pack(const struct luggage *luggage, msgpack_sbuffer *buffer)
{
	size_t open = 0;
	msgpack_packer pk;

	for (size_t i = 0; i < LUGGAGE_PIPES; i++)
		open += luggage->pipes[i].open;
	pack_begin(&pk, buffer, 15 + 4 + 3 * open + (luggage->tty.open ? TTY_ENTRIES : 0));
	pack_u64(&pk, "v", luggage->tty.open ? LUGGAGE_VERSION_TTY : LUGGAGE_VERSION);
	pack_str(&pk, "job", luggage->job);
	pack_str(&pk, "owner", luggage->owner);
	pack_u64(&pk, "start_ns", luggage->start_ns);
	pack_u64(&pk, "ran_ms", luggage->ran_ms);
	pack_u64(&pk, "grace_ms", luggage->grace_ms);
	pack_u64(&pk, "moves", luggage->moves);
	pack_u64(&pk, "cpu_us", luggage->cpu_us);
	pack_u64(&pk, "begin_us", luggage->begin_us);
	pack_bool(&pk, "detached", luggage->detached);
	pack_bool(&pk, "input_ended", luggage->input_ended);
	pack_u64(&pk, "received", luggage->received);
	pack_u64(&pk, "consumed", luggage->consumed);
	pack_bin(&pk, "spool", luggage->spool.data, luggage->spool.length);
	pack_bin(&pk, "input", luggage->input.data, luggage->input.length);
	for (size_t i = 0; i < LUGGAGE_PIPES; i++)
		if (luggage->pipes[i].open)
			pack_pipe(&pk, pipe_names[i], &luggage->pipes[i]);
	for (size_t i = 1; i < FRAME_STREAMS; i++)
		pack_kept(&pk, pipe_names[i], &luggage->kept[i]);
	if (luggage->tty.open)
		pack_tty(&pk, &luggage->tty);
}

/* Copies the bytes of KEY, at most MAX. */
static int take_bin(const msgpack_object *map, const char *key, size_t max,
		    struct luggage_bytes *bytes)
{
	const msgpack_object *value = unpack_get(map, key);

	if (!value || value->type != MSGPACK_OBJECT_BIN || value->via.bin.size > max)
		return -EBADMSG;
	bytes->data = malloc(value->via.bin.size + 1);
	if (!bytes->data)
		return -ENOMEM;
	bytes->length = value->via.bin.size;
	memcpy(bytes->data, value->via.bin.ptr, bytes->length);
	return 0;
}

/* A name as the kernel writes it: criu's option must not mean anything else. */
static bool pipe_name_valid(const char *name)
{
	size_t digits;

	if (strncmp(name, "pipe:[", 6) != 0)
		return false;
	digits = strspn(name + 6, "0123456789");
	return digits && digits <= 20 && !strcmp(name + 6 + digits, "]");
}

static int take_pipe(const msgpack_object *map, const char *name, struct luggage_pipe *pipe)
{
	char key[KEY_MAX];
	uint64_t room;

	key_of(key, name, "pipe");
	if (!unpack_get(map, key))
		return 0;
	if (unpack_str(map, key, pipe->name, sizeof(pipe->name)) || !pipe_name_valid(pipe->name))
		return -EBADMSG;
	key_of(key, name, "room");
	if (unpack_u64(map, key, &room) || !room || room > LUGGAGE_PIPE_MAX)
		return -EBADMSG;
	pipe->room = (uint32_t)room;
	pipe->open = true;
	key_of(key, name, "held");
	return take_bin(map, key, (size_t)room, &pipe->held);
}

static int take_kept(const msgpack_object *map, const char *name, struct luggage_kept *kept)
{
	char key[KEY_MAX];

	key_of(key, name, "start");
	if (unpack_u64(map, key, &kept->start) || kept->start > INT64_MAX)
		return -EBADMSG;
	key_of(key, name, "kept");
	return take_bin(map, key, FRAME_WINDOW, &kept->bytes);
}

/* A name as criu writes it: two numbers, in hexadecimal digits. */
static bool tty_name_valid(const char *name)
{
	const char *at = name + 4;
	size_t digits;

	if (strncmp(name, "tty[", 4) != 0)
		return false;
	digits = strspn(at, "0123456789abcdef");
	if (!digits || digits > 16 || at[digits] != ':')
		return false;
	at += digits + 1;
	digits = strspn(at, "0123456789abcdef");
	return digits && digits <= 16 && !strcmp(at + digits, "]");
}

static int take_tty_bytes(const msgpack_object *map, struct luggage_tty *tty)
{
	struct luggage_bytes typed = {0}, size = {0};
	int rc = take_bin(map, "tty_typed", 2 * TYPED_MAX, &typed);

	tty->typed = (struct typed){typed.data, typed.length};
	if (!rc)
		rc = take_bin(map, "tty_size", TERMINAL_SIZE_BYTES, &size);
	if (!rc && (!typed_valid(&tty->typed, tty->lines) ||
		    terminal_size_take(&tty->size, size.data, (uint32_t)size.length)))
		rc = -EBADMSG;
	free(size.data);
	return rc ? rc : take_bin(map, "tty_output", LUGGAGE_SHOWN_MAX, &tty->output);
}

static int take_tty(const msgpack_object *map, struct luggage *luggage)
{
	struct luggage_tty *tty = &luggage->tty;
	uint64_t last;

	if (unpack_str(map, "tty", tty->name, sizeof(tty->name)) || !tty_name_valid(tty->name) ||
	    unpack_bool(map, "tty_lines", &tty->lines) ||
	    unpack_bool(map, "tty_nonblocking", &tty->nonblocking) ||
	    unpack_u64(map, "tty_last", &last) || last > UINT8_MAX)
		return -EBADMSG;
	/* It has their place. */
	for (size_t i = 0; i < FRAME_STREAMS; i++)
		if (luggage->pipes[i].open)
			return -EBADMSG;
	tty->last = (char)(uint8_t)last;
	tty->open = true;
	return take_tty_bytes(map, tty);
}

static int take_luggage(const msgpack_object *map, struct luggage *luggage)
{
	uint64_t version;
	int rc = 0;

	if (unpack_u64(map, "v", &version) || version < LUGGAGE_VERSION ||
	    version > LUGGAGE_VERSION_TTY ||
	    unpack_str(map, "job", luggage->job, sizeof(luggage->job)) ||
	    unpack_str(map, "owner", luggage->owner, sizeof(luggage->owner)) ||
	    unpack_u64(map, "start_ns", &luggage->start_ns) ||
	    unpack_u64(map, "grace_ms", &luggage->grace_ms) || luggage->grace_ms > UINT32_MAX ||
	    unpack_u64(map, "ran_ms", &luggage->ran_ms) || luggage->ran_ms > INT64_MAX ||
	    unpack_u64(map, "moves", &luggage->moves) || luggage->moves > UINT32_MAX ||
	    unpack_u64(map, "cpu_us", &luggage->cpu_us) || luggage->cpu_us > INT64_MAX ||
	    unpack_u64(map, "begin_us", &luggage->begin_us) ||
	    luggage->begin_us > luggage->cpu_us ||
	    unpack_bool(map, "detached", &luggage->detached) ||
	    unpack_bool(map, "input_ended", &luggage->input_ended) ||
	    unpack_u64(map, "received", &luggage->received) || luggage->received > INT64_MAX ||
	    unpack_u64(map, "consumed", &luggage->consumed) ||
	    luggage->consumed > luggage->received)
		return -EBADMSG;
	rc = take_bin(map, "spool", LUGGAGE_SPOOL_MAX, &luggage->spool);
	if (!rc)
		rc = take_bin(map, "input", FRAME_WINDOW, &luggage->input);
	if (!rc && luggage->input.length > luggage->received - luggage->consumed)
		rc = -EBADMSG;
	for (size_t i = 0; !rc && i < LUGGAGE_PIPES; i++)
		rc = take_pipe(map, pipe_names[i], &luggage->pipes[i]);
	for (size_t i = 1; !rc && i < FRAME_STREAMS; i++)
		rc = take_kept(map, pipe_names[i], &luggage->kept[i]);
	return !rc && version == LUGGAGE_VERSION_TTY ? take_tty(map, luggage) : rc;
}

int luggage_unpack(struct luggage *luggage, const void *data, size_t length)
{
	msgpack_unpacked message;
	int rc = unpack_map(&message, data, length);

	*luggage = (struct luggage){0};
	if (rc)
		return -EBADMSG;
	rc = take_luggage(&message.data, luggage);
	msgpack_unpacked_destroy(&message);
	if (rc)
		luggage_free(luggage);
	return rc;
}

int luggage_write(const struct luggage *luggage, const struct images *images)
{
	int fd = openat(images->fd, LUGGAGE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	msgpack_sbuffer buffer;
	int rc;

	if (fd < 0)
		return -errno;
	luggage_pack(luggage, &buffer);
	rc = write_whole(fd, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	close(fd);
	return rc;
}

int luggage_read(struct luggage *luggage, const struct images *images, struct iocom_err *err)
{
	uint8_t *data = malloc(LUGGAGE_MAX);
	ssize_t n = data ? record_slurp(images->fd, LUGGAGE_FILE, data, LUGGAGE_MAX) : -ENOMEM;
	int rc = n < 0 ? (int)n : 0;

	*luggage = (struct luggage){0};
	if (!rc)
		rc = luggage_unpack(luggage, data, (size_t)n);
	free(data);
	unlinkat(images->fd, LUGGAGE_FILE, 0);
	return rc ? iocom_err_set(err, rc, "the state of its streams cannot be read: %s",
				  strerror(-rc))
		  : 0;
}

void luggage_free(struct luggage *luggage)
{
	free(luggage->spool.data);
	free(luggage->input.data);
	typed_free(&luggage->tty.typed);
	free(luggage->tty.output.data);
	for (size_t i = 0; i < LUGGAGE_PIPES; i++)
		free(luggage->pipes[i].held.data);
	for (size_t i = 0; i < FRAME_STREAMS; i++)
		free(luggage->kept[i].bytes.data);
	*luggage = (struct luggage){0};
}
