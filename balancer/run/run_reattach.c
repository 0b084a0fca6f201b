/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * After a lost contact, asks for the job again during its grace; both sides then go on at the
 * bytes that the other has.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "balancer/run/run_stream.h"

uint64_t run_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool run_reattach_begin(struct run_stream *s)
{
	uint64_t now = run_now_ms();

	if (!s->options->again)
		return false;
	/* A connection that breaks before its first answer belongs to the same attempt. */
	if (!s->asked_again)
		s->again_until_ms = now + s->options->again_ms;
	s->again_next_ms = s->asked_again ? now + RUN_REATTACH_EACH_MS : now;
	s->asked_again = false;
	if (now >= s->again_until_ms)
		return false;
	s->cut = true;
	return true;
}

static void run_reattach_ask(struct run_stream *s, struct attach_ask *ask)
{
	*ask = *s->options->self;
	attach_nonce(ask->nonce);
	for (int i = 0; i < 2; i++) {
		struct run_output *output = &s->output[i];

		ask->from[i + 1] = output->unwanted ? ATTACH_FIRST : output->received;
		ask->taken[i + 1] = output->asked = run_output_left(output);
	}
}

void run_reattach_try(struct run_stream *s)
{
	bool secure = s->options->records != NULL;
	struct attach_ask wanted;
	struct records records;
	struct wire wire;
	int fd, rc;

	if (run_now_ms() >= s->again_until_ms) {
		run_lost(s, RUN_CONTACT_LOST);
		return;
	}
	if (run_now_ms() < s->again_next_ms)
		return;
	run_reattach_ask(s, &wanted);
	fd = s->options->again(s->options->arg, &wanted, &records, &secure);
	s->again_next_ms = run_now_ms() + RUN_REATTACH_EACH_MS;
	if (fd < 0)
		return;
	rc = wire_init(&wire, fd, secure ? &records : NULL);
	if (secure)
		records_erase(&records);
	if (rc) {
		close(fd);
		return;
	}
	wire_deinit(&s->wire);
	s->wire = wire;
	s->cut = false;
	s->asked_again = true;
}

int run_reattach_answered(struct run_stream *s, const struct attach_state *state)
{
	if (state->input_limit < FRAME_WINDOW)
		return -EPROTO;
	for (int i = 0; i < 2; i++) {
		struct run_output *output = &s->output[i];

		if (output->unwanted)
			output->received = state->from[i + 1];
		else if (output->received != state->from[i + 1])
			return -EPROTO;
		/* Our request confirmed this much; we may have written more since. */
		output->taken = output->asked;
	}
	if (!s->input_unwanted) {
		uint64_t taken = state->input_limit - FRAME_WINDOW;

		if (state->input > s->kept.end || taken < s->kept.start || taken > state->input)
			return -EPROTO;
		resend_drop(&s->kept, taken);
	}
	s->input_sent = state->input;
	s->input_told = false;
	s->asked_again = false;
	for (uint8_t i = 0; i < 2; i++)
		if (s->output[i].unwanted && !s->output[i].ended)
			(void)wire_end(&s->wire, (uint8_t)(i + 1), s->output[i].received);
	/* A new size that we told while nobody listened is lost. */
	if (run_keys_there(s) && s->tty->raw)
		run_keys_size(s);
	return 0;
}
