/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's loop over one job stream; see run.h.
 *
 *   waiting   START or ATTACH was sent, and nothing else until the shim says STARTED;
 *             we keep one signal for the job, the second one gives up
 *   running   stdin is sent as far as credit allows, outputs arrive, signals are forwarded
 *   cut       contact was lost: we try to attach again until the grace is over (run_reattach.c)
 *   over      FRAME_EXIT came: we write out what waits for our own readers
 *
 * At most FRAME_WINDOW bytes of each output wait here, and we keep as many bytes of input until
 * the job has them.
 */
#include "balancer/run/run_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "user/ending_signal.h"
#include "user/utf8.h"

#define CREDIT_BATCH  (FRAME_WINDOW / 4)
#define FOREGROUND_MS 500  /* a job in the background checks for the terminal this often */
#define OWN_WORDS     1024 /* most bytes of our own messages among the output */
#define KEYS_HELD     2	   /* a held-back escape may be added */

static const int forwarded[] = {SIGINT,	 SIGTERM, SIGHUP,  SIGQUIT,
				SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
#define NFORWARDED (sizeof(forwarded) / sizeof(forwarded[0]))

enum entry { ENTRY_WIRE, ENTRY_SIGNAL, ENTRY_IN, ENTRY_OUT, ENTRY_ERR, ENTRY_CHANNEL, ENTRIES };

static int run_stream_open_signals(sigset_t *before, bool tty)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NFORWARDED; i++)
		sigaddset(&set, forwarded[i]);
	if (tty)
		sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, before);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void run_lost(struct run_stream *s, const char *why)
{
	s->over = true;
	s->cut = false;
	s->result->state = RUN_LOST;
	snprintf(s->result->text, sizeof(s->result->text), "%s", why);
}

/* Handles a broken connection, according to how far the job was. */
void run_broken(struct run_stream *s, int rc)
{
	if (s->over || s->cut)
		return;
	if (rc == -EPROTO)
		run_lost(s, s->why ? s->why
				   : "the job's supervisor does not speak this program's protocol");
	else if (s->result->state == RUN_STARTED && run_reattach_begin(s))
		return;
	else if (s->result->state == RUN_STARTED)
		run_lost(s, RUN_CONTACT_LOST);
	else
		run_lost(s, "the job's node closed the connection without an answer; whether the "
			    "job started is unknown here");
}

/* The job closed its input: close ours, so that its writer gets SIGPIPE. */
static void run_stream_input_refused(struct run_stream *s)
{
	int null = s->input >= 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

	if (null >= 0) {
		dup2(null, s->input);
		close(null);
	}
	s->input = -1;
	s->input_unwanted = true;
	resend_free(&s->kept);
}

/* Sends the input that was read but not sent yet, then its end. */
void run_send_input(struct run_stream *s)
{
	while (wire_idle(&s->wire) && s->input_sent < s->kept.end && !run_quiet(s)) {
		size_t n;
		const uint8_t *at = resend_at(&s->kept, s->input_sent, &n);
		int rc;

		if (n > FRAME_DATA_MAX)
			n = FRAME_DATA_MAX;
		rc = wire_data(&s->wire, 0, s->input_sent, at, n);
		s->input_sent += n;
		if (rc)
			run_broken(s, rc);
	}
	if (s->input >= 0 || s->input_told || s->input_unwanted || s->input_sent < s->kept.end ||
	    run_quiet(s))
		return;
	s->input_told = true;
	/* A detached job keeps its terminal: the end of our input is not its end. */
	if (s->detached && s->tty)
		return;
	if (wire_end(&s->wire, 0, s->input_sent))
		run_broken(s, -EPIPE);
}

static void run_stream_read_input(struct run_stream *s)
{
	size_t room;
	uint8_t *at = resend_space(&s->kept, &room);
	ssize_t n = at ? read(s->input, at, room < FRAME_DATA_MAX ? room : FRAME_DATA_MAX) : -1;

	if (!at || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	if (n <= 0)
		s->input = -1;
	else
		resend_added(&s->kept, (size_t)n);
	run_send_input(s);
}

/* Confirms output that we have written, so that the job may send as much again. */
static void give_credit(struct run_stream *s, uint8_t stream, bool all)
{
	struct run_output *output = &s->output[stream - 1];
	uint64_t written = run_output_left(output);

	/*
	 * Confirm at once when we have written all up to a gap: the node may then announce the
	 * next.
	 */
	all = all || (output->taken < output->gap_to && written >= output->gap_to);
	if (output->unwanted || s->cut || s->asked_again || written <= output->taken ||
	    (!all && (s->over || written - output->taken < CREDIT_BATCH)))
		return;
	output->taken = written;
	if (wire_credit(&s->wire, stream, written + FRAME_WINDOW))
		run_broken(s, -EPIPE);
}

static void write_output(struct run_stream *s, uint8_t stream, const void *data, size_t length)
{
	struct run_output *output = &s->output[stream - 1];
	bool was_closed = output->closed;
	ssize_t n = run_output_write(output, data, length);

	if (n >= 0) {
		give_credit(s, stream, false);
	} else if (!was_closed) {
		/* Nobody reads: tell the job, so that it gets SIGPIPE. */
		output->unwanted = true;
		if (output->error)
			s->result->output_error = output->error;
		if (!run_quiet(s) && !output->ended && wire_end(&s->wire, stream, output->received))
			run_broken(s, -EPIPE);
	}
	/* Nobody waits for a terminal's end, and we may have to undo what it was told. */
	if (output->ended && !output->closed && !output->queue.length && !output->modes)
		run_output_finish(output);
}

static int run_stream_against(struct run_stream *s, const char *why)
{
	s->why = why;
	return -EPROTO;
}

/* Output went on at OFFSET: the bytes before it were not kept. */
static void take_gap(struct run_stream *s, struct run_output *output, uint64_t offset)
{
	if (!output->unwanted)
		s->options->gap(s->options->arg, (int)(output - s->output) + 1, output->received,
				offset);
	output->gap_from = output->received;
	output->received = output->gap_to = offset;
}

static int run_stream_take_data(struct run_stream *s, const uint8_t *payload, uint32_t length)
{
	struct run_output *output;
	uint8_t stream = length ? payload[0] : FRAME_STREAMS;
	uint64_t offset;

	if (stream >= FRAME_STREAMS || length < FRAME_DATA_HEAD)
		return -EPROTO;
	offset = wire_u64(payload + 1);
	length -= FRAME_DATA_HEAD;
	if (stream == 0) {
		if (length)
			return -EPROTO;
		run_stream_input_refused(s);
		return 0;
	}
	if (s->options->deaf)
		return 0;
	output = &s->output[stream - 1];
	if (offset > output->received && s->options->gap)
		take_gap(s, output, offset);
	if (offset != output->received)
		return run_stream_against(
			s, offset > output->received
				   ? "bytes of the job's output are missing: the rest is "
				     "not to be trusted"
				   : "bytes of the job's output came a second time");
	if (output->queue.length + length > FRAME_WINDOW + OWN_WORDS)
		return -EPROTO; /* more bytes than our credit allowed */
	output->received += length;
	if (!length)
		output->ended = true;
	write_output(s, stream, payload + FRAME_DATA_HEAD, length);
	return 0;
}

static int run_stream_take_credit(struct run_stream *s, const uint8_t *payload, uint32_t length)
{
	uint64_t limit = length == FRAME_DATA_HEAD ? wire_u64(payload + 1) : 0;

	if (length != FRAME_DATA_HEAD || payload[0] != 0 || limit < FRAME_WINDOW ||
	    limit - FRAME_WINDOW > s->input_sent)
		return -EPROTO;
	if (s->kept.start == s->kept.end)
		return 0; /* crossed with the news that the job closed its input */
	if (limit - FRAME_WINDOW < s->kept.start)
		return -EPROTO;
	resend_drop(&s->kept, limit - FRAME_WINDOW);
	return 0;
}

/* The first answer says at which offsets the streams go on. */
static int streams_begin(struct run_stream *s, const struct attach_state *state)
{
	uint64_t taken = state->input_limit - FRAME_WINDOW;

	if (state->input_limit < FRAME_WINDOW || state->input < taken ||
	    state->input > state->input_limit)
		return -EPROTO;
	s->result->pid = state->pid;
	s->detached = state->detached;
	if (s->options->look && !state->tty)
		s->tty = NULL;
	if (s->tty && s->options->stdio[1] >= 0 && isatty(s->options->stdio[1]))
		s->output[0].modes = &s->modes;
	/* The job has this input already and never asks for it again. */
	s->kept = (struct resend_buffer){.start = taken, .end = state->input};
	s->input_sent = state->input;
	for (int i = 0; i < 2; i++)
		s->output[i].received = s->output[i].taken = state->from[i + 1];
	s->result->state = RUN_STARTED;
	s->over = s->options->leave;
	if (s->options->started)
		s->options->started(s->options->arg, s->result);
	if (s->kept_signal && s->options->look && run_leaves(s, s->kept_signal)) {
		run_abandon(s, s->kept_signal); /* the job does not care who looks at it */
		return 0;
	}
	if (s->kept_signal && wire_signal(&s->wire, (uint8_t)s->kept_signal))
		run_broken(s, -EPIPE);
	if (s->tty)
		run_keys_terminal(s);
	if (s->tty && s->options->look)
		run_keys_redraw(s);
	return 0;
}

static int job_started(struct run_stream *s, const uint8_t *payload, uint32_t length)
{
	struct attach_state state;

	attach_state_unpack(&state, payload, length);
	if (s->result->state != RUN_STARTED)
		return streams_begin(s, &state);
	return s->asked_again ? run_reattach_answered(s, &state) : -EPROTO;
}

static int job_exited(struct run_stream *s, const uint8_t *payload, uint32_t length)
{
	if (length < 5)
		return -EPROTO;
	s->over = true;
	s->result->state = RUN_EXITED;
	s->result->kind = payload[0];
	s->result->value = wire_u32(payload + 1);
	snprintf(s->result->text, sizeof(s->result->text), "%.*s", (int)(length - 5), payload + 5);
	utf8_plain(s->result->text);
	return 0;
}

/* Data that goes along failed at our end: the job does not begin, or its outputs are not fetched.
 */
static void run_stream_data_failed(struct run_stream *s, int rc)
{
	struct run_data *data = s->options->data;

	if (!*data->err.text) {
		run_broken(s, rc);
		return;
	}
	if (run_data_give_up(data))
		return;
	s->over = true;
	s->result->state = RUN_REFUSED;
	snprintf(s->result->text, sizeof(s->result->text), "%.500s", data->err.text);
	utf8_plain(s->result->text);
}

static int run_stream_take_stage(struct run_stream *s, const uint8_t *payload, uint32_t length)
{
	int rc;

	if (!s->options->data)
		return -EPROTO;
	rc = run_data_take(s->options->data, payload, length);
	if (rc)
		run_stream_data_failed(s, rc);
	return 0;
}

/* Sends what goes along, a piece whenever the node has taken the last one. */
static void run_stream_send_data(struct run_stream *s)
{
	struct run_data *data = s->options->data;
	int rc = 0;

	while (!rc && data && run_data_sends(data) && wire_idle(&s->wire) && !run_quiet(s))
		rc = run_data_send(data, &s->wire);
	if (rc)
		run_stream_data_failed(s, rc);
}

static int run_stream_take_frame(struct run_stream *s, uint8_t type, const uint8_t *payload,
				 uint32_t length)
{
	switch (type) {
	case FRAME_STARTED:
		if (s->options->data)
			run_data_started(s->options->data);
		return job_started(s, payload, length);
	case FRAME_STAGE:
		return run_stream_take_stage(s, payload, length);
	case FRAME_DATA:
		return run_stream_take_data(s, payload, length);
	case FRAME_CREDIT:
		return run_stream_take_credit(s, payload, length);
	case FRAME_EXIT:
		return job_exited(s, payload, length);
	case FRAME_GANG:
		return run_channel_pass(s, payload, length);
	case FRAME_ERROR:
		s->over = true;
		s->result->state = s->result->state == RUN_STARTED ? RUN_LOST : RUN_REFUSED;
		snprintf(s->result->text, sizeof(s->result->text), "%.*s", (int)length, payload);
		return 0;
	default:
		return -EPROTO;
	}
}

static void serve_wire(struct run_stream *s)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = wire_fill(&s->wire);

	if (rc < 0)
		run_broken(s, rc);
	if (rc <= 0)
		return;
	rc = 0;
	while (!s->over && !s->cut && !rc) {
		rc = wire_next(&s->wire, &type, &payload, &length);
		if (rc == FRAME_E_MORE)
			return;
		rc = rc ? -EPROTO : run_stream_take_frame(s, type, payload, length);
	}
	if (rc)
		run_broken(s, rc);
}

void run_abandon(struct run_stream *s, int signal)
{
	s->result->signal = s->result->state == RUN_EXITED ? 0 : signal;
	s->over = true;
	for (int i = 0; i < 2; i++)
		queue_free(&s->output[i].queue);
}

bool run_leaves(const struct run_stream *s, int signal)
{
	return s->detached && signal_asks_to_end(signal);
}

/* Nothing of the job runs while its data goes along or comes back: such a signal is for us. */
static bool run_stream_ends_data(const struct run_stream *s, int signal)
{
	return s->options->data && run_data_under_way(s->options->data) &&
	       signal_asks_to_end(signal);
}

/* Before the start we keep one signal, and a second one gives up; later they are forwarded. */
static void run_stream_take_signal(struct run_stream *s, int signal)
{
	bool started = s->result->state == RUN_STARTED;

	if (run_stream_ends_data(s, signal)) {
		run_abandon(s, signal);
		return;
	}

	if (s->over || (!started && s->kept_signal) || (started && run_leaves(s, signal))) {
		if (signal != SIGCONT && signal != SIGTSTP)
			run_abandon(s, signal);
		return;
	}
	if (s->cut || s->asked_again) {
		if (signal != SIGCONT && signal != SIGTSTP)
			run_lost(s, RUN_CONTACT_LOST);
		return;
	}
	if (!started) {
		if (signal == SIGTSTP)
			kill(getpid(), SIGSTOP);
		else if (signal != SIGCONT)
			s->kept_signal = signal;
		return;
	}
	/* A detached job does not stop together with its client. */
	if (!(s->detached && (signal == SIGTSTP || signal == SIGCONT)) &&
	    wire_signal(&s->wire, (uint8_t)signal))
		run_broken(s, -EPIPE);
	if (signal == SIGTSTP)
		kill(getpid(), SIGSTOP); /* the job was told; now we stop, too */
}

static void run_stream_serve_signals(struct run_stream *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (!run_keys_signal(s, (int)info.ssi_signo))
			run_stream_take_signal(s, (int)info.ssi_signo);
}

/*
 * Returns whether to read input.  A terminal is not read from the background: that would stop us.
 */
static bool input_wanted(const struct run_stream *s)
{
	return s->input >= 0 && s->result->state == RUN_STARTED &&
	       resend_room(&s->kept) > (run_keys_there(s) ? KEYS_HELD : 0) && wire_idle(&s->wire) &&
	       !run_quiet(s);
}

static bool input_in_background(const struct run_stream *s)
{
	return s->input_terminal && tcgetpgrp(s->input) != getpgrp();
}

static void run_stream_wait_for(struct run_stream *s, struct pollfd entries[ENTRIES])
{
	bool wanted = input_wanted(s);
	bool background = wanted && input_in_background(s);
	int n;

	entries[ENTRY_WIRE] = (struct pollfd){
		.fd = s->over || s->cut ? -1 : s->wire.fd,
		.events = (short)(POLLIN | (wire_idle(&s->wire) ? 0 : POLLOUT)),
	};
	entries[ENTRY_SIGNAL] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	entries[ENTRY_IN] =
		(struct pollfd){.fd = wanted && !background ? s->input : -1, .events = POLLIN};
	for (int i = 0; i < 2; i++)
		entries[ENTRY_OUT + i] =
			(struct pollfd){.fd = run_output_poll(&s->output[i]), .events = POLLOUT};
	entries[ENTRY_CHANNEL] = (struct pollfd){.fd = run_channel_poll(s), .events = POLLIN};
	n = poll(entries, ENTRIES,
		 s->cut			    ? RUN_REATTACH_EACH_MS
		 : s->redraw_ms		    ? RUN_REDRAW_MS / 4
		 : background || s->term_ms ? FOREGROUND_MS
					    : wire_look_ms(&s->wire));
	for (int i = 0; n < 0 && i < ENTRIES; i++)
		entries[i].revents = 0;
}

static bool output_waits(const struct run_stream *s)
{
	return run_output_poll(&s->output[0]) >= 0 || run_output_poll(&s->output[1]) >= 0;
}

static void run_stream_serve(struct run_stream *s, const struct pollfd entries[ENTRIES])
{
	if (entries[ENTRY_WIRE].revents & POLLOUT && wire_flush(&s->wire))
		run_broken(s, -EPIPE);
	if (entries[ENTRY_WIRE].revents & ~POLLOUT && !s->cut)
		serve_wire(s);
	run_stream_send_data(s);
	run_channel_resume(s);
	if (entries[ENTRY_SIGNAL].revents)
		run_stream_serve_signals(s);
	if (entries[ENTRY_CHANNEL].revents)
		run_channel_serve(s);
	if (entries[ENTRY_IN].revents && input_wanted(s) && run_keys_there(s))
		run_keys_read(s);
	else if (entries[ENTRY_IN].revents && input_wanted(s))
		run_stream_read_input(s);
	else if (s->result->state == RUN_STARTED)
		run_send_input(s);
	for (uint8_t i = 0; i < 2; i++)
		if (entries[ENTRY_OUT + i].revents)
			write_output(s, (uint8_t)(i + 1), NULL, 0);
	if (!s->over && !s->cut && wire_silent(&s->wire))
		run_broken(s, -ETIMEDOUT);
}

static void loop(struct run_stream *s)
{
	struct pollfd entries[ENTRIES];

	while (!s->over || output_waits(s)) {
		/* Free the terminal now, so that ^C works while we write the rest. */
		if ((s->over || s->cut) && s->tty)
			run_tty_restore(s->tty);
		run_stream_wait_for(s, entries);
		/* A shell may put us in the foreground without a signal. */
		if (run_keys_there(s) && !s->tty->raw && !run_quiet(s) && !input_in_background(s))
			run_keys_terminal(s);
		run_keys_redrawn(s);
		run_stream_serve(s, entries);
		if (s->cut)
			run_reattach_try(s);
		run_keys_term(s);
	}
	/* The job is over and we have all its output, so the node may drop its copy. */
	if (s->result->state != RUN_EXITED || s->options->deaf)
		return;
	for (uint8_t i = 1; i < FRAME_STREAMS; i++)
		give_credit(s, i, true);
	if (!wire_known(&s->wire))
		(void)wire_flush(&s->wire);
}

int run_exit_code(const struct run_result *result)
{
	if (result->signal)
		return 128 + result->signal;
	if (result->state == RUN_REFUSED)
		return RUN_FAILED;
	if (result->state == RUN_STARTED)
		return 0; /* the job runs and we leave it, as the user wanted */
	/* The job may have ended well, but the reader did not get all of its output. */
	if (result->state != RUN_EXITED || result->output_error)
		return RUN_UNKNOWN;
	switch (result->kind) {
	case 0:
	case 2:
		return (int)result->value;
	case 1:
		return 128 + (int)result->value;
	default:
		return result->value == RUN_UNKNOWN ? RUN_UNKNOWN : RUN_FAILED;
	}
}

int run_stream(const struct run_stream_options *options, int fd, struct run_result *result)
{
	struct run_stream s = {
		.options = options,
		.result = result,
		.signals = -1,
		.input = options->stdio[0],
		.tty = options->tty,
		.input_unwanted = options->stdio[0] < 0,
	};
	sigset_t before;

	*result = (struct run_result){0};
	if (wire_init(&s.wire, fd, options->records)) {
		close(fd);
		result->state = RUN_LOST;
		snprintf(result->text, sizeof(result->text), "out of memory for the job's stream");
		return RUN_UNKNOWN;
	}
	if (options->patience_s)
		wire_patience(&s.wire, (unsigned)options->patience_s);
	if (options->signals)
		s.signals = run_stream_open_signals(&before, options->tty != NULL);
	s.input_terminal = s.input >= 0 && isatty(s.input);
	for (int i = 0; i < 2; i++)
		run_output_init(&s.output[i], options->stdio[i + 1]);
	loop(&s);
	run_keys_undo_modes(&s, false);
	if (options->tty)
		run_tty_restore(options->tty);
	for (int i = 0; i < 2; i++)
		run_output_deinit(&s.output[i]);
	resend_free(&s.kept);
	wire_deinit(&s.wire);
	if (s.signals >= 0) {
		close(s.signals);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	return run_exit_code(result);
}
