/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The state of run_stream.c, shared with run_reattach.c and run_keys.c. */
#ifndef IOCOM_RUN_STREAM_H
#define IOCOM_RUN_STREAM_H

#include "user/resend_buffer.h"
#include "balancer/run/run.h"
#include "balancer/run/run_modes.h"

#define RUN_REATTACH_EACH_MS 250
/* time that TERM has to end a terminal's job before we hang it up */
#define RUN_TERM_MS   5000
#define RUN_REDRAW_MS 100 /* time for a program to notice one size before the next */
#define RUN_CONTACT_LOST                                                                           \
	"contact with the job's node was lost; whether the job goes on or how it ended is "        \
	"unknown here"

struct run_stream {
	const struct run_stream_options *options;
	struct run_result *result;
	struct wire wire;
	struct run_output output[2];
	int signals;	 /* signalfd or -1 */
	int kept_signal; /* the signal that waits for the job's start */
	int input;	 /* -1: ended */
	bool input_terminal;
	struct resend_buffer kept; /* input that was read but that the job has not confirmed */
	uint64_t input_sent;
	uint64_t term_ms;	/* when TERM was forwarded to a terminal's job; 0: never */
	bool input_told;	/* the job was told that the input ended */
	bool input_unwanted;	/* the job does not want input, or there was none */
	bool detached;		/* the job needs no client */
	struct run_tty *tty;	/* our terminal if the job has one, else NULL */
	struct run_modes modes; /* what the job's output set in the terminal that shows it */
	uint64_t redraw_ms;	/* when to send the true size; 0: it was sent */
	bool over;
	bool cut;	  /* there is no connection */
	bool asked_again; /* a new connection awaits its first answer */
	uint64_t again_until_ms, again_next_ms;
	const char *why; /* the sentence for -EPROTO */
};

/* Returns whether nothing may be sent: there is no peer, or we do not know the offsets yet. */
static inline bool run_quiet(const struct run_stream *s)
{
	return s->over || s->cut || s->asked_again;
}
/* Milliseconds of a monotonic clock. */
uint64_t run_now_ms(void);
/* Ends with an unknown outcome; WHY is the sentence. */
void run_lost(struct run_stream *s, const char *why);
/* Handles a lost contact.  Returns false if we do not try to attach again. */
bool run_reattach_begin(struct run_stream *s);
/* Tries to attach again when it is time, or gives up. */
void run_reattach_try(struct run_stream *s);
/* Handles the answer to that.  Returns 0 or -EPROTO. */
int run_reattach_answered(struct run_stream *s, const struct attach_state *state);

/* --- run_keys.c: for jobs with a terminal --- */

/* Sends our terminal's size. */
void run_keys_size(struct run_stream *s);
/* Adapts to a terminal that may have got another size or other modes meanwhile. */
void run_keys_terminal(struct run_stream *s);
/* After attaching to a running job, makes its program redraw the screen. */
void run_keys_redraw(struct run_stream *s);
/* The second half of redrawing, when it is due. */
void run_keys_redrawn(struct run_stream *s);
/* Leaves if TERM was forwarded a while ago without effect. */
void run_keys_term(struct run_stream *s);
/*
 * Undoes what the job's output has set in the terminal, without waiting for one that is held up;
 * for good, or until BACK sets it again.
 */
void run_keys_undo_modes(struct run_stream *s, bool back);
/* Reads the terminal once. */
void run_keys_read(struct run_stream *s);
/* Returns whether SIGNAL was handled here. */
bool run_keys_signal(struct run_stream *s, int signal);
static inline bool run_keys_there(const struct run_stream *s)
{
	return s->tty && s->tty->fd >= 0;
}

/* --- run_channel.c: for parts of a gang --- */

/* The descriptor to poll for packets of the main process; -1: none is taken now. */
int run_channel_poll(const struct run_stream *s);
/* Takes what the main process says. */
void run_channel_serve(struct run_stream *s);
/* Sends what had to wait, if it can be sent now. */
void run_channel_resume(struct run_stream *s);
/* Passes on what the launcher says.  Returns 0 or -EPROTO. */
int run_channel_pass(struct run_stream *s, const uint8_t *payload, uint32_t length);

/* In run_stream.c: */
void run_send_input(struct run_stream *s);
void run_broken(struct run_stream *s, int rc);
void run_abandon(struct run_stream *s, int signal);
/* Returns whether SIGNAL ends us and not the job, as for a client that may leave a detached job. */
bool run_leaves(const struct run_stream *s, int signal);

#endif
