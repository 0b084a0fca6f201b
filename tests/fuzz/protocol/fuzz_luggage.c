/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What goes along with a job that moves: what is accepted is within the bounds that its shim relies
 * on, names nothing but pipes and a terminal to criu, and packing it again gives the same bytes.
 */
#include <ctype.h>

#include "agent/shim/move/luggage.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

bool sample(int n, FILE *out)
{
	static uint8_t bytes[] = {'7', '\n', 0};
	static uint8_t typed[] = {TYPED_CHARACTER, 'x', TYPED_LINE, '\n', TYPED_END, 0};
	struct luggage luggage = {
		.job = "a-0f-7",
		.owner = "00112233445566778899aabbccddeeff",
		.start_ns = 5,
		.ran_ms = 6,
		.moves = 1,
		.cpu_us = 9,
		.begin_us = 2,
		.received = 12,
		.consumed = 9,
		.input = {bytes, 2},
		.pipes = {{.open = true, .name = "pipe:[81]", .room = 65536, .held = {bytes, 3}},
			  {.open = true, .name = "pipe:[82]", .room = 65536},
			  {.open = false},
			  {.open = true, .name = "pipe:[84]", .room = 4096}},
		.kept = {{0}, {.start = 4, .bytes = {bytes, 3}}, {.start = 0}},
	};
	msgpack_sbuffer buffer;

	if (n) {
		luggage.pipes[0].open = luggage.pipes[1].open = false;
		luggage.tty = (struct luggage_tty){.open = true,
						   .name = "tty[8803:1a]",
						   .size = {24, 80, 0, 0},
						   .lines = true,
						   .last = 'x',
						   .typed = {typed, sizeof(typed)},
						   .output = {bytes, 2}};
	}
	luggage_pack(&luggage, &buffer);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return n < 2;
}

FUZZ_SAMPLES

static void check_pipe(const struct luggage_pipe *pipe)
{
	if (!pipe->open)
		return;
	must_end(pipe->name, sizeof(pipe->name));
	must(!strncmp(pipe->name, "pipe:[", 6) && isdigit((unsigned char)pipe->name[6]));
	must(pipe->name[strlen(pipe->name) - 1] == ']' && !strpbrk(pipe->name, "/ ,;"));
	must(pipe->room && pipe->room <= LUGGAGE_PIPE_MAX && pipe->held.length <= pipe->room);
}

static void check_tty(const struct luggage *luggage)
{
	const struct luggage_tty *tty = &luggage->tty;

	if (!tty->open)
		return;
	must_end(tty->name, sizeof(tty->name));
	must(!strncmp(tty->name, "tty[", 4) && tty->name[strlen(tty->name) - 1] == ']');
	must(strspn(tty->name + 4, "0123456789abcdef:") == strlen(tty->name) - 5);
	must(typed_valid(&tty->typed, tty->lines) && tty->typed.length <= 2 * TYPED_MAX);
	must(tty->output.length <= LUGGAGE_SHOWN_MAX);
	for (size_t i = 0; i < FRAME_STREAMS; i++)
		must(!luggage->pipes[i].open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct luggage luggage, again;
	msgpack_sbuffer first, second;

	if (luggage_unpack(&luggage, data, size))
		return 0;
	must_end(luggage.job, sizeof(luggage.job));
	must_end(luggage.owner, sizeof(luggage.owner));
	must(luggage.consumed <= luggage.received && luggage.begin_us <= luggage.cpu_us);
	must(luggage.input.length <= FRAME_WINDOW);
	for (size_t i = 0; i < LUGGAGE_PIPES; i++)
		check_pipe(&luggage.pipes[i]);
	check_tty(&luggage);
	for (size_t i = 1; i < FRAME_STREAMS; i++)
		must(luggage.kept[i].bytes.length <= FRAME_WINDOW &&
		     luggage.kept[i].start <= INT64_MAX);
	luggage_pack(&luggage, &first);
	must(!luggage_unpack(&again, first.data, first.size));
	luggage_pack(&again, &second);
	must(first.size == second.size && !memcmp(first.data, second.data, first.size));
	msgpack_sbuffer_destroy(&first);
	msgpack_sbuffer_destroy(&second);
	luggage_free(&luggage);
	luggage_free(&again);
	return 0;
}
