/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's loop over one job stream; see run.h.
 *
 *   waiting   START was sent; nothing else is, until the shim says STARTED.  A
 *             signal is kept for the job; the second one gives up.
 *   running   stdin goes as far as credit reaches, outputs come, signals go
 *   over      FRAME_EXIT came: what waits for our own readers is written out
 *
 * Credits: at most FRAME_WINDOW bytes of each output wait here.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "pack.h"

#define CREDIT_BATCH	(FRAME_WINDOW / 4)
#define FOREGROUND_MS	500 /* how often a job in the background looks for the terminal */
#define SILENT_CHECK_MS 5000

static const int forwarded[] = {SIGINT,	 SIGTERM, SIGHUP,  SIGQUIT,
				SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
#define NFORWARDED (sizeof(forwarded) / sizeof(forwarded[0]))

enum entry { ENTRY_WIRE, ENTRY_SIGNAL, ENTRY_IN, ENTRY_OUT, ENTRY_ERR, ENTRIES };

struct stream {
	const struct run_stream_options *options;
	struct run_result *result;
	struct wire wire;
	struct run_output output[2];
	int signals; /* signalfd or -1 */
	int kept;    /* signal for a job that has not started */
	int input;   /* -1: ended */
	bool input_terminal;
	bool told; /* (terminal) TERM was forwarded; the second one leaves */
	uint32_t input_credit;
	bool over;
	uint8_t piece[FRAME_DATA_MAX];
};

static int open_signals(sigset_t *before, bool tty)
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

static void lost(struct stream *s, const char *why)
{
	s->over = true;
	s->result->state = RUN_LOST;
	snprintf(s->result->text, sizeof(s->result->text), "%s", why);
}

/* A broken connection: what it means depends on how far the job was. */
static void broken(struct stream *s, int rc)
{
	if (s->over)
		return;
	if (rc == -EPROTO)
		lost(s, "the job's supervisor does not speak this program's protocol");
	else if (s->result->state == RUN_STARTED)
		lost(s, "contact with the job's node was lost; whether the job goes on or how it "
			"ended is unknown here");
	else
		lost(s, "the job's node closed the connection without an answer; whether the job "
			"started is unknown here");
}

static void input_end(struct stream *s, bool tell)
{
	if (s->input < 0)
		return;
	s->input = -1;
	if (tell && wire_end(&s->wire, 0))
		broken(s, -EPIPE);
}

/* The job closed its input: our writer shall notice, as it would at home. */
static void input_refused(struct stream *s)
{
	int null = s->input >= 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

	if (null >= 0) {
		dup2(null, s->input);
		close(null);
	}
	input_end(s, false);
}

static void send_size(struct stream *s)
{
	uint8_t payload[TERMINAL_SIZE_BYTES];
	struct winsize size;

	run_tty_size(s->options->tty, &size);
	terminal_size_put(payload, &size);
	if (wire_send(&s->wire, FRAME_WINSIZE, NULL, 0, payload, sizeof(payload)))
		broken(s, -EPIPE);
}

static void send_input(struct stream *s, const void *data, size_t n)
{
	uint8_t head = 0;

	s->input_credit -= (uint32_t)n;
	if (n && !s->over && wire_send(&s->wire, FRAME_DATA, &head, 1, data, n))
		broken(s, -EPIPE);
}

/* As a terminal that is switched off: the job is hung up, and goes when its grace is over. */
static void leave(struct stream *s)
{
	(void)wire_signal(&s->wire, SIGHUP);
	lost(s, "left; the job's terminal was hung up");
	for (int i = 0; i < 2; i++)
		queue_free(&s->output[i].queue);
}

static bool has_keys(const struct stream *s)
{
	return s->options->tty && s->options->tty->fd >= 0;
}

/* The terminal may have another size, or other modes, than when we left it. */
static void take_terminal(struct stream *s)
{
	if (!has_keys(s) || s->result->state != RUN_STARTED || s->over)
		return;
	run_tty_raw(s->options->tty);
	if (s->options->tty->raw)
		send_size(s);
}

/*
 * Stops us, as the terminal's ^Z would without a job; the job goes on.  TSTP, not STOP:
 * without a shell that could continue us the kernel leaves us running.
 */
static void stop_here(struct stream *s, pid_t who)
{
	sigset_t stop;

	run_tty_restore(s->options->tty);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	kill(who, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	take_terminal(s);
}

static void serve_request(struct stream *s, enum run_tty_request request)
{
	char text[512];

	if (request == RUN_TTY_LEAVE)
		leave(s);
	if (request == RUN_TTY_STOP)
		stop_here(s, 0); /* with those who share our place in the foreground */
	if (request == RUN_TTY_HELP) {
		run_tty_help(s->options->tty, text, sizeof(text));
		(void)run_output_write(&s->output[0], text, strlen(text));
	}
}

static void take_keys(struct stream *s, const uint8_t *keys, size_t n)
{
	while (n && !s->over) {
		size_t length, used;
		enum run_tty_request request =
			run_tty_keys(s->options->tty, keys, n, s->piece, &length, &used);

		send_input(s, s->piece, length);
		serve_request(s, request);
		keys += used;
		n -= used;
	}
}

static void read_keys(struct stream *s)
{
	uint8_t keys[4096];
	/* An escape that was held back may come on top. */
	size_t want = s->input_credit - 1 < sizeof(keys) ? s->input_credit - 1 : sizeof(keys);
	ssize_t n = read(s->input, keys, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		input_end(s, true);
	else
		take_keys(s, keys, (size_t)n);
}

static void read_input(struct stream *s)
{
	size_t want = s->input_credit < sizeof(s->piece) ? s->input_credit : sizeof(s->piece);
	ssize_t n = read(s->input, s->piece, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		input_end(s, true);
		return;
	}
	send_input(s, s->piece, (size_t)n);
}

/* N bytes of output STREAM left us: the job may send as many more. */
static void give_credit(struct stream *s, uint8_t stream, size_t n)
{
	struct run_output *output = &s->output[stream - 1];
	uint32_t owed = output->owed += (uint32_t)n;

	if (owed < CREDIT_BATCH || s->over)
		return;
	output->owed = 0;
	if (wire_credit(&s->wire, stream, owed))
		broken(s, -EPIPE);
}

static void write_output(struct stream *s, uint8_t stream, const void *data, size_t length)
{
	struct run_output *output = &s->output[stream - 1];
	bool was_closed = output->closed;
	ssize_t n = run_output_write(output, data, length);

	if (n >= 0) {
		give_credit(s, stream, (size_t)n);
	} else if (!was_closed) {
		/* Nobody reads: the job shall meet SIGPIPE, as it would at home. */
		if (output->error)
			s->result->output_error = output->error;
		if (!s->over && !output->ended && wire_end(&s->wire, stream))
			broken(s, -EPIPE);
	}
	if (output->ended && !output->closed && !output->queue.length)
		run_output_finish(output);
}

static int take_data(struct stream *s, const uint8_t *payload, uint32_t length)
{
	struct run_output *output;
	uint8_t stream = length ? payload[0] : FRAME_STREAMS;

	if (stream >= FRAME_STREAMS)
		return -EPROTO;
	if (stream == 0) {
		if (length != 1)
			return -EPROTO;
		input_refused(s);
		return 0;
	}
	output = &s->output[stream - 1];
	if (output->queue.length + length - 1 > FRAME_WINDOW)
		return -EPROTO; /* more than we gave credit for */
	if (length == 1)
		output->ended = true;
	write_output(s, stream, payload + 1, length - 1);
	return 0;
}

static void job_started(struct stream *s, const uint8_t *payload, uint32_t length)
{
	msgpack_unpacked message;

	if (!unpack_map(&message, payload, length)) {
		(void)unpack_u64(&message.data, "pid", &s->result->pid);
		msgpack_unpacked_destroy(&message);
	}
	s->result->state = RUN_STARTED;
	if (s->options->started)
		s->options->started(s->options->arg, s->result);
	if (s->kept && wire_signal(&s->wire, (uint8_t)s->kept))
		broken(s, -EPIPE);
	if (s->options->tty)
		take_terminal(s);
}

static int job_exited(struct stream *s, const uint8_t *payload, uint32_t length)
{
	if (length < 5)
		return -EPROTO;
	s->over = true;
	s->result->state = RUN_EXITED;
	s->result->kind = payload[0];
	s->result->value = wire_u32(payload + 1);
	snprintf(s->result->text, sizeof(s->result->text), "%.*s", (int)(length - 5), payload + 5);
	return 0;
}

static int take_frame(struct stream *s, uint8_t type, const uint8_t *payload, uint32_t length)
{
	switch (type) {
	case FRAME_STARTED:
		job_started(s, payload, length);
		return 0;
	case FRAME_DATA:
		return take_data(s, payload, length);
	case FRAME_CREDIT:
		if (length != 5 || payload[0] != 0 ||
		    wire_u32(payload + 1) > FRAME_WINDOW - s->input_credit)
			return -EPROTO;
		s->input_credit += wire_u32(payload + 1);
		return 0;
	case FRAME_EXIT:
		return job_exited(s, payload, length);
	case FRAME_ERROR:
		s->over = true;
		s->result->state = RUN_REFUSED;
		snprintf(s->result->text, sizeof(s->result->text), "%.*s", (int)length, payload);
		return 0;
	default:
		return -EPROTO;
	}
}

static void serve_wire(struct stream *s)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = wire_fill(&s->wire);

	if (rc < 0)
		broken(s, rc);
	if (rc <= 0)
		return;
	rc = 0;
	while (!s->over && !rc) {
		rc = wire_next(&s->wire, &type, &payload, &length);
		if (rc == FRAME_E_MORE)
			return;
		rc = rc ? -EPROTO : take_frame(s, type, payload, length);
	}
	if (rc)
		broken(s, rc);
}

/*
 * Of a job at a terminal: what concerns the terminal is ours.  A shell ignores TERM, so
 * the second one is for us.  True: SIGNAL was dealt with.
 */
static bool take_terminal_signal(struct stream *s, int signal)
{
	if (!s->options->tty || s->over || s->result->state != RUN_STARTED)
		return signal == SIGWINCH;
	switch (signal) {
	case SIGWINCH:
		send_size(s);
		return true;
	case SIGCONT:
		take_terminal(s);
		return true;
	case SIGTSTP:
		stop_here(s, getpid());
		return true;
	case SIGTERM:
		if (s->told)
			leave(s);
		s->told = true;
		return s->over;
	case SIGHUP:
		leave(s);
		return true;
	default:
		return false;
	}
}

/* Before the start a signal is kept, and a second one gives up; afterwards it goes. */
static void take_signal(struct stream *s, int signal)
{
	if (s->over || (s->result->state != RUN_STARTED && s->kept)) {
		if (signal == SIGCONT || signal == SIGTSTP)
			return;
		s->result->signal = s->result->state == RUN_EXITED ? 0 : signal;
		s->over = true;
		for (int i = 0; i < 2; i++)
			queue_free(&s->output[i].queue);
		return;
	}
	if (s->result->state != RUN_STARTED) {
		if (signal == SIGTSTP)
			kill(getpid(), SIGSTOP);
		else if (signal != SIGCONT)
			s->kept = signal;
		return;
	}
	if (wire_signal(&s->wire, (uint8_t)signal))
		broken(s, -EPIPE);
	if (signal == SIGTSTP)
		kill(getpid(), SIGSTOP); /* the job was told; now we stop too */
}

static void serve_signals(struct stream *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (!take_terminal_signal(s, (int)info.ssi_signo))
			take_signal(s, (int)info.ssi_signo);
}

/* In the background a terminal is not read: a job that does not read it must not stop. */
static bool input_wanted(const struct stream *s)
{
	return s->input >= 0 && s->result->state == RUN_STARTED &&
	       s->input_credit > (has_keys(s) ? 1 : 0) && wire_idle(&s->wire) && !s->over;
}

static bool input_in_background(const struct stream *s)
{
	return s->input_terminal && tcgetpgrp(s->input) != getpgrp();
}

static int wait_for(struct stream *s, struct pollfd entries[ENTRIES])
{
	bool wanted = input_wanted(s);
	bool background = wanted && input_in_background(s);
	int n;

	entries[ENTRY_WIRE] = (struct pollfd){
		.fd = s->over ? -1 : s->wire.fd,
		.events = (short)(POLLIN | (wire_idle(&s->wire) ? 0 : POLLOUT)),
	};
	entries[ENTRY_SIGNAL] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	entries[ENTRY_IN] =
		(struct pollfd){.fd = wanted && !background ? s->input : -1, .events = POLLIN};
	for (int i = 0; i < 2; i++)
		entries[ENTRY_OUT + i] =
			(struct pollfd){.fd = run_output_poll(&s->output[i]), .events = POLLOUT};
	n = poll(entries, ENTRIES, background ? FOREGROUND_MS : SILENT_CHECK_MS);
	for (int i = 0; n < 0 && i < ENTRIES; i++)
		entries[i].revents = 0;
	return n;
}

static bool output_waits(const struct stream *s)
{
	return run_output_poll(&s->output[0]) >= 0 || run_output_poll(&s->output[1]) >= 0;
}

static void loop(struct stream *s)
{
	struct pollfd entries[ENTRIES];

	while (!s->over || output_waits(s)) {
		int stirred;

		/* What is still to be shown must not keep the user from ^C. */
		if (s->over && s->options->tty)
			run_tty_restore(s->options->tty);
		stirred = wait_for(s, entries);
		/* A shell that takes us from the background need not say so. */
		if (has_keys(s) && !s->options->tty->raw && !input_in_background(s))
			take_terminal(s);
		if (entries[ENTRY_WIRE].revents & POLLOUT && wire_flush(&s->wire))
			broken(s, -EPIPE);
		if (entries[ENTRY_WIRE].revents & ~POLLOUT)
			serve_wire(s);
		if (entries[ENTRY_SIGNAL].revents)
			serve_signals(s);
		if (entries[ENTRY_IN].revents && input_wanted(s)) {
			if (has_keys(s))
				read_keys(s);
			else
				read_input(s);
		}
		for (uint8_t i = 0; i < 2; i++)
			if (entries[ENTRY_OUT + i].revents)
				write_output(s, (uint8_t)(i + 1), NULL, 0);
		if (!stirred && !s->over && wire_silent(&s->wire))
			broken(s, -ETIMEDOUT);
	}
}

int run_exit_code(const struct run_result *result)
{
	if (result->signal)
		return 128 + result->signal;
	if (result->state == RUN_REFUSED)
		return RUN_FAILED;
	if (result->state != RUN_EXITED)
		return RUN_UNKNOWN;
	switch (result->kind) {
	case 0:
		/* A success whose output we could not write is none. */
		return result->value == 0 && result->output_error ? RUN_UNKNOWN
								  : (int)result->value;
	case 1:
		return 128 + (int)result->value;
	case 2:
		return (int)result->value;
	default:
		return result->value == RUN_UNKNOWN ? RUN_UNKNOWN : RUN_FAILED;
	}
}

/* The kernel gives the connection up after S seconds without a sign of life. */
static void limit_patience(int fd, int s)
{
	const int idle = s > 3 ? s / 3 : 1, each = 1, all_ms = s * 1000;

	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof(each));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &all_ms, sizeof(all_ms));
}

int run_stream(const struct run_stream_options *options, int fd, struct run_result *result)
{
	struct stream s = {
		.options = options,
		.result = result,
		.signals = -1,
		.input = options->stdio[0],
		.input_credit = FRAME_WINDOW,
	};
	sigset_t before;

	*result = (struct run_result){0};
	if (wire_init(&s.wire, fd)) {
		close(fd);
		result->state = RUN_LOST;
		snprintf(result->text, sizeof(result->text), "out of memory for the job's stream");
		return RUN_UNKNOWN;
	}
	if (options->patience_s)
		limit_patience(fd, options->patience_s);
	if (options->signals)
		s.signals = open_signals(&before, options->tty != NULL);
	s.input_terminal = s.input >= 0 && isatty(s.input);
	for (int i = 0; i < 2; i++)
		run_output_init(&s.output[i], options->stdio[i + 1]);
	loop(&s);
	if (options->tty)
		run_tty_restore(options->tty);
	for (int i = 0; i < 2; i++)
		run_output_deinit(&s.output[i]);
	wire_deinit(&s.wire);
	if (s.signals >= 0) {
		close(s.signals);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	return run_exit_code(result);
}
