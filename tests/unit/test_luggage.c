/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What goes along with a job that moves, besides its images, and how both are sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/move/luggage.h"
#include "agent/shim/move/squeeze.h"
#include "agent/shim/move/transfer.h"
#include "agent/shim/spool.h"
#include "user/channel/secret.h"
#include "user/clock.h"
#include "user/pack.h"

#define LIMIT_MS 10000

static bool has_room; /* a file system in memory can be made here */

static struct luggage sample(void)
{
	static uint8_t bytes[3] = {'a', 0, 'b'};
	struct luggage luggage = {
		.job = "n1-1-1",
		.spool = {bytes, 1},
		.owner = "00ff",
		.start_ns = 1,
		.ran_ms = 2,
		.moves = 3,
		.grace_ms = 6,
		.cpu_us = 5,
		.begin_us = 4,
		.detached = true,
		.received = 9,
		.consumed = 7,
		.input = {bytes, 2},
		.pipes = {{.open = true, .name = "pipe:[7]", .room = 4096, .held = {bytes, 3}},
			  {.open = false},
			  {.open = true, .name = "pipe:[18446744073709551615]", .room = 65536},
			  {.open = true, .name = "pipe:[9]", .room = 1u << 20}},
		.kept = {{0}, {.start = 11, .bytes = {bytes, 3}}, {.start = 12}},
	};
	return luggage;
}

/* The same job with a terminal. */
static struct luggage sample_tty(void)
{
	static uint8_t typed[] = {TYPED_CHARACTER, 'x', TYPED_LINE, '\n', TYPED_END, 0};
	static uint8_t output[] = {'>', '\r', '\n'};
	struct luggage luggage = sample();

	luggage.pipes[0] = luggage.pipes[2] = (struct luggage_pipe){0};
	luggage.tty = (struct luggage_tty){
		.open = true,
		.name = "tty[8803:1a]",
		.size = {31, 97, 1, 65535},
		.lines = true,
		.nonblocking = true,
		.last = (char)0xff,
		.typed = {typed, sizeof(typed)},
		.output = {output, sizeof(output)},
	};
	return luggage;
}

static void test_round_tty(void **state)
{
	struct luggage luggage = sample_tty(), read;
	msgpack_sbuffer buffer;

	(void)state;
	luggage_pack(&luggage, &buffer);
	assert_int_equal(luggage_unpack(&read, buffer.data, buffer.size), 0);
	msgpack_sbuffer_destroy(&buffer);
	assert_true(read.tty.open);
	assert_string_equal(read.tty.name, "tty[8803:1a]");
	assert_memory_equal(&read.tty.size, &luggage.tty.size, sizeof(read.tty.size));
	assert_true(read.tty.lines);
	assert_true(read.tty.nonblocking);
	assert_int_equal(read.tty.last, (char)0xff);
	assert_int_equal(read.tty.typed.length, 6);
	assert_memory_equal(read.tty.typed.data, luggage.tty.typed.data, 6);
	assert_int_equal(read.tty.output.length, 3);
	assert_memory_equal(read.tty.output.data, ">\r\n", 3);
	assert_false(read.pipes[0].open);
	assert_true(read.pipes[3].open);
	luggage_free(&read);
	/* A job without a terminal goes to nodes that know nothing of terminals. */
	luggage = sample();
	luggage_pack(&luggage, &buffer);
	assert_non_null(memmem(buffer.data, buffer.size, "\xa1v\x01", 3));
	msgpack_sbuffer_destroy(&buffer);
	/* And one with a terminal does not. */
	luggage = sample_tty();
	luggage_pack(&luggage, &buffer);
	assert_non_null(memmem(buffer.data, buffer.size, "\xa1v\x02", 3));
	msgpack_sbuffer_destroy(&buffer);
}

static int unpack_wrong(const struct luggage *luggage)
{
	struct luggage read;
	msgpack_sbuffer buffer;
	int rc;

	luggage_pack(luggage, &buffer);
	rc = luggage_unpack(&read, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	if (!rc)
		luggage_free(&read);
	return rc;
}

static void test_wrong_tty(void **state)
{
	static const char *const names[] = {
		"",	      "tty[]",	     "tty[8803]",     "tty[8803:1a",
		"tty[8803:]", "tty[:1a]",    "tty[8803:1a]x", "tty[88 3:1]",
		"pipe:[7]",   "tty[88G3:1]", "/dev/pts/3"};
	static uint8_t many[2 * TYPED_MAX + 2];
	static uint8_t shown[LUGGAGE_SHOWN_MAX + 1];
	static uint8_t kind[] = {TYPED_KINDS, 'x'};
	struct luggage wrong = sample_tty();

	(void)state;
	assert_int_equal(unpack_wrong(&wrong), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		wrong = sample_tty();
		snprintf(wrong.tty.name, sizeof(wrong.tty.name), "%s", names[i]);
		assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
	}
	wrong = sample_tty();
	wrong.tty.lines = false; /* and ends of lines in it */
	assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
	wrong = sample_tty();
	wrong.tty.typed.length = 5;
	assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
	wrong.tty.typed = (struct typed){kind, sizeof(kind)};
	assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
	wrong.tty.typed = (struct typed){many, sizeof(many) - 2};
	assert_int_equal(unpack_wrong(&wrong), 0);
	wrong.tty.typed = (struct typed){many, sizeof(many)};
	assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
	wrong = sample_tty();
	wrong.tty.output = (struct luggage_bytes){shown, sizeof(shown)};
	assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
	wrong = sample_tty();
	wrong.pipes[1] = (struct luggage_pipe){.open = true, .name = "pipe:[7]", .room = 4096};
	assert_int_equal(unpack_wrong(&wrong), -EBADMSG);
}

static void test_round(void **state)
{
	struct luggage luggage = sample(), read;
	struct images images;
	struct iocom_err err = {0};

	(void)state;
	if (!has_room)
		skip();
	assert_int_equal(images_make(&images, 1u << 20, &err), 0);
	assert_int_equal(luggage_write(&luggage, &images), 0);
	assert_int_equal(luggage_read(&read, &images, &err), 0);
	assert_string_equal(read.job, "n1-1-1");
	assert_string_equal(read.owner, "00ff");
	assert_int_equal(read.start_ns, 1);
	assert_int_equal(read.ran_ms, 2);
	assert_int_equal(read.moves, 3);
	assert_int_equal(read.grace_ms, 6);
	assert_int_equal(read.cpu_us, 5);
	assert_int_equal(read.begin_us, 4);
	assert_true(read.detached);
	assert_false(read.input_ended);
	assert_int_equal(read.received, 9);
	assert_int_equal(read.consumed, 7);
	assert_int_equal(read.spool.length, 1);
	assert_int_equal(read.input.length, 2);
	assert_memory_equal(read.input.data, "a", 2);
	assert_true(read.pipes[0].open);
	assert_string_equal(read.pipes[0].name, "pipe:[7]");
	assert_int_equal(read.pipes[0].held.length, 3);
	assert_memory_equal(read.pipes[0].held.data, "a\0b", 3);
	assert_false(read.pipes[1].open);
	assert_int_equal(read.pipes[2].held.length, 0);
	assert_int_equal(read.pipes[3].room, 1u << 20);
	assert_int_equal(read.kept[1].start, 11);
	assert_int_equal(read.kept[1].bytes.length, 3);
	assert_int_equal(read.kept[2].bytes.length, 0);
	luggage_free(&read);
	/* It is taken once: criu's directory has only criu's files. */
	assert_int_equal(luggage_read(&read, &images, &err), -ENOENT);
	images_free(&images);
}

/* Reads a luggage that was written with one wrong value. */
static int read_wrong(const struct luggage *luggage)
{
	struct images images;
	struct luggage read;
	struct iocom_err err = {0};
	int rc;

	assert_int_equal(images_make(&images, 1u << 20, &err), 0);
	assert_int_equal(luggage_write(luggage, &images), 0);
	rc = luggage_read(&read, &images, &err);
	if (!rc)
		luggage_free(&read);
	images_free(&images);
	return rc;
}

static void test_wrong(void **state)
{
	static const char *const names[] = {"",		  "pipe:[]",	"pipe:[7",
					    "socket:[7]", "pipe:[7]x",	"pipe:[7]:/etc/x",
					    "pipe:[7 8]", "/etc/passwd"};
	struct luggage wrong;

	(void)state;
	if (!has_room)
		skip();
	wrong = sample();
	wrong.consumed = wrong.received + 1;
	assert_int_equal(read_wrong(&wrong), -EBADMSG);
	wrong = sample();
	wrong.consumed = 8; /* 2 bytes wait, and 9 came */
	assert_int_equal(read_wrong(&wrong), -EBADMSG);
	wrong = sample();
	wrong.begin_us = wrong.cpu_us + 1;
	assert_int_equal(read_wrong(&wrong), -EBADMSG);
	wrong = sample();
	wrong.pipes[0].room = 2; /* and it holds more */
	assert_int_equal(read_wrong(&wrong), -EBADMSG);
	wrong = sample();
	wrong.pipes[0].room = (1u << 20) + 1;
	assert_int_equal(read_wrong(&wrong), -EBADMSG);
	wrong = sample();
	wrong.kept[1].start = UINT64_MAX;
	assert_int_equal(read_wrong(&wrong), -EBADMSG);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		wrong = sample();
		snprintf(wrong.pipes[3].name, sizeof(wrong.pipes[3].name), "%s", names[i]);
		assert_int_equal(read_wrong(&wrong), -EBADMSG);
	}
}

/* Looking at a pipe takes nothing from it, and a new one then holds the same. */
static void test_pipes(void **state)
{
	static char bytes[200000], seen[sizeof(bytes)];
	struct luggage_pipe look;
	int ends[2], fresh[2];
	ssize_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 18) > 0);
	assert_int_equal(write(ends[1], bytes, sizeof(bytes)), sizeof(bytes));
	/* Both ends show the same. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(luggage_look(&look, ends[i]), 0);
		assert_int_equal(look.room, 1 << 18);
		assert_int_equal(look.held.length, sizeof(bytes));
		assert_memory_equal(look.held.data, bytes, sizeof(bytes));
		if (i == 0)
			free(look.held.data);
	}
	n = read(ends[0], seen, sizeof(seen));
	assert_int_equal(n, sizeof(bytes));
	assert_memory_equal(seen, bytes, sizeof(bytes));
	assert_int_equal(pipe2(fresh, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(luggage_fill(&look, fresh[1]), 0);
	free(look.held.data);
	memset(seen, 0, sizeof(seen));
	assert_int_equal(read(fresh[0], seen, sizeof(seen)), sizeof(bytes));
	assert_memory_equal(seen, bytes, sizeof(bytes));
	/* An empty one. */
	assert_int_equal(luggage_look(&look, fresh[0]), 0);
	assert_int_equal(look.held.length, 0);
	free(look.held.data);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(fresh[i]);
	}
	assert_int_equal(luggage_look(&look, STDERR_FILENO + 200), -EBADF);
}

/* --- sending ------------------------------------------------------------------------------- */

static void write_file(const struct images *images, const char *name, size_t length)
{
	int fd = openat(images->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint8_t *bytes = malloc(length + 1);

	assert_true(fd >= 0);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(i * 13 + length);
	assert_int_equal(write(fd, bytes, length), (ssize_t)length);
	free(bytes);
	close(fd);
}

static void expect_file(const struct images *images, const char *name, size_t length)
{
	int fd = openat(images->fd, name, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = malloc(length + 1);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, length + 1), (ssize_t)length);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(bytes[i], (uint8_t)(i * 13 + length));
	free(bytes);
	close(fd);
}

static void pair(struct wire wires[2], bool secure)
{
	struct records keys[2] = {0};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	secret_new(keys[0].sends.key);
	secret_new(keys[0].receives.key);
	keys[1] = (struct records){.sends = keys[0].receives, .receives = keys[0].sends};
	for (int i = 0; i < 2; i++)
		assert_int_equal(wire_init(&wires[i], fd[i], secure ? &keys[i] : NULL), 0);
}

/* The other end, in a process of its own: sends IMAGES, and exits with 0 if it is answered READY.
 */
static pid_t sender(struct wire wires[2], const struct images *images, int record)
{
	uint64_t until_ms = clock_boot_ms() + LIMIT_MS;
	struct iocom_err err = {0};
	pid_t pid = fork();

	if (!pid) {
		close(wires[1].fd);
		_exit(transfer_send(&wires[0], images, record, until_ms, &err) ||
		      transfer_await(&wires[0], until_ms, &err));
	}
	close(wires[0].fd);
	wires[0].fd = -1;
	return pid;
}

static bool take_rounds; /* whether the receiver lets them come */

static int take(struct wire *wire, struct images *images, uint64_t most_bytes, int record,
		struct iocom_err *err)
{
	const struct transfer_into into = {
		.rounds = take_rounds,
		.images = images,
		.most_bytes = most_bytes,
		.record = record,
		.record_bytes = 5000,
	};

	return transfer_receive(wire, &into, clock_boot_ms() + LIMIT_MS, err);
}

static void test_transfer(void **state)
{
	/* The last one goes in more blocks than are tried before it is known whether packing pays.
	 */
	static const size_t lengths[] = {0, 1, 65535, 65536, 65537, 3000000, 14000000};
	uint64_t until_ms = clock_boot_ms() + LIMIT_MS;
	struct images images, got;
	struct iocom_err err = {0};
	struct wire wires[2];
	char name[32];
	int status;
	pid_t pid;

	(void)state;
	if (!has_room)
		skip();
	assert_int_equal(images_make(&images, 24u << 20, &err), 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		snprintf(name, sizeof(name), "core-%zu.img", i);
		write_file(&images, name, lengths[i]);
	}
	for (int secure = 0; secure < 2; secure++) {
		pair(wires, secure);
		pid = sender(wires, &images, -1);
		assert_int_equal(take(&wires[1], &got, 32u << 20, -1, &err), 0);
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			snprintf(name, sizeof(name), "core-%zu.img", i);
			expect_file(&got, name, lengths[i]);
		}
		assert_int_equal(transfer_ready(&wires[1], until_ms), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		images_free(&got);
		for (int i = 0; i < 2; i++)
			wire_deinit(&wires[i]);
	}
	/* A node that takes less says so, and the sender hears it. */
	pair(wires, false);
	pid = sender(wires, &images, -1);
	assert_int_equal(take(&wires[1], &got, 1u << 20, -1, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "and this node takes 1 MiB"));
	transfer_refuse(&wires[1], err.text, until_ms);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	for (int i = 0; i < 2; i++)
		wire_deinit(&wires[i]);
	images_free(&images);
}

/* The contents of a deleted file: criu would make it again as root. */
static void test_ghost(void **state)
{
	struct images images, taken;
	struct iocom_err err = {0};
	struct wire wires[2];
	int status;
	pid_t pid;

	(void)state;
	if (!has_room)
		skip();
	assert_int_equal(images_make(&images, 1u << 20, &err), 0);
	write_file(&images, "ghost-file-1.img", 10);
	pair(wires, true);
	pid = sender(wires, &images, -1);
	assert_int_equal(take(&wires[1], &taken, 1u << 30, -1, &err), -ENOTSUP);
	assert_string_equal(err.text, "it has a deleted file open");
	transfer_refuse(&wires[1], err.text, clock_boot_ms() + LIMIT_MS);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_not_equal(status, 0);
	wire_deinit(&wires[1]);
	wire_deinit(&wires[0]);
	images_free(&images);
}

/* The output on disk of a detached job comes along, and no more of it than the node keeps. */
static void test_record(void **state)
{
	char from[] = "/tmp/iocom-record-XXXXXX", to[] = "/tmp/iocom-record-XXXXXX", command[128];
	struct images images, got, dirs[2];
	struct iocom_err err = {0};
	struct wire wires[2];
	int status;
	pid_t pid;

	(void)state;
	if (!has_room)
		skip();
	assert_non_null(mkdtemp(from));
	assert_non_null(mkdtemp(to));
	dirs[0].fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dirs[1].fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(images_make(&images, 1u << 20, &err), 0);
	write_file(&images, "core-1.img", 100);
	write_file(&dirs[0], "out", 4000);
	write_file(&dirs[0], "err", 1000);
	for (int i = 0; i < 3; i++) {
		pair(wires, false);
		pid = sender(wires, &images, dirs[0].fd);
		/* A second job of that name, and a node that takes none. */
		if (i == 1)
			assert_int_equal(take(&wires[1], &got, 1u << 20, dirs[1].fd, &err),
					 -EBADMSG);
		else if (i == 2)
			assert_int_equal(take(&wires[1], &got, 1u << 20, -1, &err), -EBADMSG);
		else
			assert_int_equal(take(&wires[1], &got, 1u << 20, dirs[1].fd, &err), 0);
		if (i == 0) {
			expect_file(&dirs[1], "out", 4000);
			expect_file(&dirs[1], "err", 1000);
			images_free(&got);
		}
		transfer_refuse(&wires[1], "no", clock_boot_ms() + LIMIT_MS);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		for (int w = 0; w < 2; w++)
			wire_deinit(&wires[w]);
	}
	unlinkat(dirs[0].fd, "err", 0);
	write_file(&dirs[0], "err", 1001);
	unlinkat(dirs[1].fd, "out", 0);
	unlinkat(dirs[1].fd, "err", 0);
	pair(wires, false);
	pid = sender(wires, &images, dirs[0].fd);
	assert_int_equal(take(&wires[1], &got, 1u << 20, dirs[1].fd, &err), -ENOSPC);
	assert_string_equal(err.text, "this node keeps less output than it has written");
	transfer_refuse(&wires[1], err.text, clock_boot_ms() + LIMIT_MS);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int w = 0; w < 2; w++) {
		wire_deinit(&wires[w]);
		close(dirs[w].fd);
	}
	images_free(&images);
	snprintf(command, sizeof(command), "rm -r %s %s", from, to);
	assert_int_equal(system(command), 0);
}

/* Sends the pieces, each after its length in one byte, and returns what is made of them. */
static int receive(const char *pieces, size_t length)
{
	struct iocom_err err = {0};
	struct images images;
	struct wire wires[2];
	int rc;

	pair(wires, false);
	for (size_t at = 0; at < length; at += 1 + (size_t)pieces[at])
		assert_int_equal(wire_send(&wires[0], FRAME_MOVE, NULL, 0, pieces + at + 1,
					   (size_t)pieces[at]),
				 0);
	wire_deinit(&wires[0]);
	rc = take(&wires[1], &images, 16u << 20, -1, &err);
	if (!rc)
		images_free(&images);
	else
		assert_true(*err.text);
	wire_deinit(&wires[1]);
	return rc;
}

#define RECEIVE(pieces) receive(pieces, sizeof(pieces) - 1)
#define ROOM		"\x09m\0\0\0\0\0\0\x10\0"

/* Packs N bytes of DATA behind the frame's 'z', as a piece of `receive`.  Returns its length. */
static size_t packed_piece(struct squeeze *squeeze, const void *data, size_t n, char *out)
{
	size_t packed = squeeze_pack(squeeze, data, n, out + 2, 120);

	assert_true(packed > 0);
	out[0] = (char)(packed + 1);
	out[1] = 'z';
	return packed + 2;
}

#define FILE_40                                                                                    \
	"\x0a"                                                                                     \
	"f\0\0\0\0\0\0\0\x28"                                                                      \
	"a"

#define FILE_2                                                                                     \
	"\x0a"                                                                                     \
	"f\0\0\0\0\0\0\0\2a"

/* Pieces that come packed: whole, damaged, of more than a piece, or of more than the file. */
static void test_packed(void **state)
{
	static const char begin[] = ROOM FILE_40, zeros[TRANSFER_PIECE + 1];
	struct squeeze *squeeze = squeeze_new();
	char pieces[256], *at = pieces + sizeof(begin) - 1;
	size_t n;

	(void)state;
	if (!has_room || !squeeze) {
		squeeze_free(squeeze);
		skip();
	}
	memcpy(pieces, begin, sizeof(begin) - 1);
	n = packed_piece(squeeze, zeros, 40, at);
	memcpy(at + n,
	       "\x01"
	       "e",
	       2);
	assert_int_equal(receive(pieces, (size_t)(at - pieces) + n + 2), 0);
	assert_int_equal(receive(pieces + sizeof(ROOM) - 1,
				 (size_t)(at - pieces) + n + 2 - (sizeof(ROOM) - 1)),
			 -EBADMSG); /* before ROOM */
	at[4] = (char)(at[4] ^ 0x55);
	assert_int_equal(receive(pieces, (size_t)(at - pieces) + n + 2), -EBADMSG);
	n = packed_piece(squeeze, zeros, 41, at);
	assert_int_equal(receive(pieces, (size_t)(at - pieces) + n), -EBADMSG);
	n = packed_piece(squeeze, zeros, sizeof(zeros), at);
	assert_int_equal(receive(pieces, (size_t)(at - pieces) + n), -EBADMSG);
	at[0] = 1; /* nothing in it */
	assert_int_equal(receive(pieces, (size_t)(at - pieces) + 2), -EBADMSG);
	squeeze_free(squeeze);
}

static void test_junk(void **state)
{
	(void)state;
	if (!has_room)
		skip();
	assert_int_equal(RECEIVE(ROOM "\x0a"
				      "f\0\0\0\0\0\0\0\2a"
				      "\x03"
				      "bxy"
				      "\x01"
				      "e"),
			 0);
	/* Nothing, too little, too much, twice, in a wrong order. */
	assert_int_equal(RECEIVE(""), -EPIPE);
	assert_int_equal(RECEIVE("\x01"
				 "e"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ROOM), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x03"
				      "bxy"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x0a"
				      "f\0\0\0\0\0\0\0\2a"
				      "\x01"
				      "e"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x0a"
				      "f\0\0\0\0\0\0\0\2a"
				      "\x04"
				      "bxyz"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x0a"
				      "f\0\0\0\0\0\0\0\0a"
				      "\x0a"
				      "f\0\0\0\0\0\0\0\0a"),
			 -EBADMSG);
	assert_int_equal(RECEIVE("\x0a"
				 "f\0\0\0\0\0\0\0\2a"),
			 -EBADMSG);
	/* Names that lead elsewhere. */
	assert_int_equal(RECEIVE(ROOM "\x0b"
				      "f\0\0\0\0\0\0\0\0.."),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x0c"
				      "f\0\0\0\0\0\0\0\0a/b"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x0b"
				      "f\0\0\0\0\0\0\0\0/a"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x0c"
				      "f\0\0\0\0\0\0\0\0a\0b"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM "\x09"
				      "f\0\0\0\0\0\0\0\0"),
			 -EBADMSG);
	/* More than any node has. */
	assert_int_equal(RECEIVE("\x09m\x7f\0\0\0\0\0\0\0"), -ENOSPC);
	assert_int_equal(RECEIVE("\x01"
				 "z"),
			 -EBADMSG);
}

/* Two rounds and the rest, in directories with criu's links from each to the one before. */
static void expect_rounds(const struct images *got)
{
	struct images round = *got;
	char target[32] = "";

	round.fd = openat(got->fd, "round-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect_file(&round, "pages-1.img", 9000000);
	assert_int_equal(readlinkat(round.fd, "parent", target, sizeof(target)), -1);
	close(round.fd);
	round.fd = openat(got->fd, "round-2", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect_file(&round, "pages-1.img", 70000);
	assert_int_equal(readlinkat(round.fd, "parent", target, sizeof(target)), 10);
	assert_memory_equal(target, "../round-1", 10);
	close(round.fd);
	expect_file(got, "pages-1.img", 5000);
	assert_int_equal(readlinkat(got->fd, "parent", target, sizeof(target)), 7);
	assert_memory_equal(target, "round-2", 7);
}

/* In a process of its own: sends the rounds as far as they are taken, and then the rest. */
static int send_rounds(struct wire *wire, const struct images *images, uint64_t bytes)
{
	uint64_t until_ms = clock_boot_ms() + LIMIT_MS;
	struct iocom_err err = {0};
	struct sending *s;
	int rc = transfer_open(&s, wire, bytes, 500, until_ms, &err), rounds = 0;

	for (; !rc && rounds < 2 && transfer_takes_rounds(s); rounds++)
		rc = transfer_round(s, images, &err);
	if (!rc)
		rc = transfer_rest(s, images, -1, &err);
	if (!rc)
		rc = transfer_await(wire, until_ms, &err);
	transfer_close(s);
	return rc ? 1 : 10 + rounds;
}

static int rounds_sent(const struct images *images, uint64_t bytes, int *received,
		       struct images *got)
{
	struct iocom_err err = {0};
	struct wire wires[2];
	int status;
	pid_t pid;

	pair(wires, true);
	pid = fork();
	if (!pid) {
		close(wires[1].fd);
		_exit(send_rounds(&wires[0], images, bytes));
	}
	close(wires[0].fd);
	wires[0].fd = -1;
	*received = take(&wires[1], got, 1u << 30, -1, &err);
	if (*received)
		transfer_refuse(&wires[1], err.text, clock_boot_ms() + LIMIT_MS);
	else
		assert_int_equal(transfer_ready(&wires[1], clock_boot_ms() + LIMIT_MS), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < 2; i++)
		wire_deinit(&wires[i]);
	return WEXITSTATUS(status);
}

static void test_rounds(void **state)
{
	struct images images, got, round;
	struct iocom_err err = {0};
	int received;

	(void)state;
	if (!has_room)
		skip();
	assert_int_equal(images_make(&images, 24u << 20, &err), 0);
	for (unsigned i = 1; i <= 2; i++) {
		char name[TRANSFER_ROUND_NAME];

		transfer_round_name(name, i);
		assert_int_equal(mkdirat(images.fd, name, 0700), 0);
		round.fd = openat(images.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		write_file(&round, "pages-1.img", i == 1 ? 9000000 : 70000);
		assert_int_equal(symlinkat("../nothing", round.fd, "parent"), 0); /* is not sent */
		close(round.fd);
	}
	write_file(&images, "pages-1.img", 5000);
	take_rounds = true;
	assert_int_equal(rounds_sent(&images, 12u << 20, &received, &got), 12);
	assert_int_equal(received, 0);
	expect_rounds(&got);
	images_free(&got);
	/* More than was announced for all rounds. */
	assert_int_equal(rounds_sent(&images, 6040000, &received, &got), 1);
	assert_int_equal(received, -ENOSPC);
	/* A peer that takes none, as an older one. */
	take_rounds = false;
	assert_int_equal(rounds_sent(&images, 12u << 20, &received, &got), 10);
	assert_int_equal(received, 0);
	expect_file(&got, "pages-1.img", 5000);
	assert_int_equal(faccessat(got.fd, "round-1", F_OK, 0), -1);
	images_free(&got);
	images_free(&images);
}

#define ONE(letter) "\x01" letter

static void test_rounds_junk(void **state)
{
	(void)state;
	if (!has_room)
		skip();
	assert_int_equal(RECEIVE(ROOM ONE("R") ONE("L") ONE("e")), -EBADMSG); /* not offered */
	take_rounds = true;
	assert_int_equal(RECEIVE(ROOM ONE("R") FILE_2 "\x03"
						      "bxy" ONE("L") FILE_2 "\x03"
									    "bxy" ONE("e")),
			 0);
	assert_int_equal(RECEIVE(ONE("R")), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("L")), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("R") ONE("e")), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("R") ONE("L") ONE("R")), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("R") ONE("L") ONE("L")), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM FILE_2 "\x03"
					     "bxy" ONE("R")),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("R") FILE_2 ONE("L")), -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("R") "\x02"
					       "Rx"),
			 -EBADMSG);
	/* The link is criu's, and no file of the peer's takes its place. */
	assert_int_equal(RECEIVE(ROOM ONE("R") ONE("R") "\x0f"
							"f\0\0\0\0\0\0\0\0parent"),
			 -EBADMSG);
	assert_int_equal(RECEIVE(ROOM ONE("R") ONE("R") ONE("R") ONE("R") ONE("R") ONE("R") ONE("R")
					 ONE("R") ONE("R")),
			 -EBADMSG);
	take_rounds = false;
}

/* --- output on disk ------------------------------------------------------------------------ */

/* A spool in DIR with some output, packed as for a move. */
static void spool_sample(int dir, unsigned pieces, uint8_t packed[SPOOL_PACKED])
{
	static const uint64_t base[FRAME_STREAMS];
	const struct spool_size size = {.head = 3000, .ring = {0, 2000, 1000}};
	struct iocom_err err = {0};
	struct spool spool;
	uint8_t piece[100];

	record_forget_output(dir);
	assert_int_equal(spool_make(&spool, dir, base, &size, true, &err), 0);
	for (unsigned i = 0; i < pieces; i++) {
		memset(piece, (int)('a' + i % 26), sizeof(piece));
		spool_add(&spool, dir, 1 + (i % 4 == 3), piece, sizeof(piece));
	}
	spool_pack(&spool, packed);
	spool_deinit(&spool);
	/* These are written anew where it goes. */
	unlinkat(dir, "tail", 0);
	unlinkat(dir, "spool", 0);
	unlinkat(dir, ".spool", 0);
}

/* It goes on there as it would have here, with and without a ring. */
static void test_carry_on(void **state)
{
	static const unsigned before[] = {0, 7, 30, 31, 60, 200};
	char path[] = "/tmp/iocom-spool-XXXXXX", command[64];
	uint8_t packed[SPOOL_PACKED], carried[SPOOL_PACKED], straight[SPOOL_PACKED], piece[100];
	struct iocom_err err = {0};
	struct spool spool;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t b = 0; b < sizeof(before) / sizeof(before[0]); b++) {
		spool_sample(dir, before[b], packed);
		assert_int_equal(spool_carry_on(&spool, dir, packed, 6000, &err), 0);
		for (unsigned i = before[b]; i < before[b] + 50; i++) {
			memset(piece, (int)('a' + i % 26), sizeof(piece));
			spool_add(&spool, dir, 1 + (i % 4 == 3), piece, sizeof(piece));
		}
		spool_pack(&spool, carried);
		for (uint64_t at = spool_kept(&spool, 1, 0); at < spool_end(&spool, 1);
		     at = spool_kept(&spool, 1, at + 1)) {
			uint8_t c;
			/* Of four pieces the first three go to this output. */
			unsigned i = (unsigned)(at / 100) / 3 * 4 + (unsigned)(at / 100) % 3;

			assert_int_equal(spool_at(&spool, 1, at, &c, 1), 1);
			assert_int_equal(c, 'a' + i % 26);
		}
		spool_deinit(&spool);
		spool_sample(dir, before[b] + 50, straight);
		assert_memory_equal(carried, straight, sizeof(straight));
	}
	close(dir);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

static void test_carry_wrong(void **state)
{
	char path[] = "/tmp/iocom-spool-XXXXXX", command[64];
	uint8_t packed[SPOOL_PACKED];
	struct iocom_err err = {0};
	struct spool spool;
	int dir, refused = 0;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Another number anywhere but in the room that is left contradicts the files, or itself. */
	for (size_t i = 8; i < SPOOL_PACKED; i++) {
		spool_sample(dir, 60, packed);
		packed[i] ^= 0x40;
		if (!spool_carry_on(&spool, dir, packed, 6000, &err))
			spool_deinit(&spool);
		else
			refused++;
	}
	/* A ring may be larger than what is in its file. */
	assert_true(refused >= (int)SPOOL_PACKED - 8 - 20);
	/* Less room than was left: the node's own. */
	spool_sample(dir, 7, packed);
	assert_int_equal(spool_carry_on(&spool, dir, packed, 800, &err), 0);
	assert_int_equal(spool.left, 100);
	spool_deinit(&spool);
	/* A file that is no file. */
	spool_sample(dir, 0, packed);
	unlinkat(dir, "out", 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "out"), 0);
	assert_int_equal(spool_carry_on(&spool, dir, packed, 6000, &err), -ELOOP);
	unlinkat(dir, "out", 0);
	assert_int_equal(spool_carry_on(&spool, dir, packed, 6000, &err), -ENOENT);
	close(dir);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),	  cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_pipes),	  cmocka_unit_test(test_transfer),
		cmocka_unit_test(test_packed),	  cmocka_unit_test(test_junk),
		cmocka_unit_test(test_rounds),	  cmocka_unit_test(test_rounds_junk),
		cmocka_unit_test(test_record),	  cmocka_unit_test(test_ghost),
		cmocka_unit_test(test_carry_on),  cmocka_unit_test(test_carry_wrong),
		cmocka_unit_test(test_round_tty), cmocka_unit_test(test_wrong_tty),
	};
	struct iocom_err err = {0};
	struct images images;

	has_room = !images_make(&images, 4096, &err);
	if (has_room)
		images_free(&images);
	else
		print_message("%s\n", err.text);
	return cmocka_run_group_tests_name("luggage", tests, NULL, NULL);
}
