/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The state of run_stream.c, for what stands beside it: run_reattach.c. */
#ifndef IOCOM_RUN_STREAM_H
#define IOCOM_RUN_STREAM_H

#include "user/resend_buffer.h"
#include "balancer/run/run.h"

#define RUN_REATTACH_EACH_MS 250
#define RUN_TERM_MS	     5000 /* a terminal's job has for TERM, then it is hung up */
#define RUN_REDRAW_MS	     100  /* for a program to notice a size before the next */
#define RUN_CONTACT_LOST                                                                           \
	"contact with the job's node was lost; whether the job goes on or how it ended is "        \
	"unknown here"

struct run_stream {
	const struct run_stream_options *options;
	struct run_result *result;
	struct wire wire;
	struct run_output output[2];
	int signals;	 /* signalfd or -1 */
	int kept_signal; /* for a job that has not started */
	int input;	 /* -1: ended */
	bool input_terminal;
	struct resend_buffer kept; /* of the input: read, and not yet taken by the job */
	uint64_t input_sent;
	uint64_t term_ms;    /* (terminal) TERM was forwarded: then, or at a second one, we leave */
	bool input_told;     /* that it ended */
	bool input_unwanted; /* by the job; or there was none from the beginning */
	bool detached;	     /* the job needs no client */
	struct run_tty *tty; /* ours, where the job has one; NULL */
	uint64_t redraw_ms;  /* when it gets its true size; 0: it has it */
	bool over;
	bool cut;	  /* no connection */
	bool asked_again; /* a new one: its first answer is awaited */
	uint64_t again_until_ms, again_next_ms;
	const char *why; /* of -EPROTO: a sentence */
};

/* Whether nothing may be sent: nobody is there, or we do not know yet where we are. */
static inline bool run_quiet(const struct run_stream *s)
{
	return s->over || s->cut || s->asked_again;
}
/* A clock of milliseconds. */
uint64_t run_now_ms(void);
/* The outcome is unknown, for WHY. */
void run_lost(struct run_stream *s, const char *why);
/* Contact was lost.  False: it is not to be asked for again. */
bool run_reattach_begin(struct run_stream *s);
/* Asks again, when it is time to, or gives up. */
void run_reattach_try(struct run_stream *s);
/* The answer.  0 or -EPROTO. */
int run_reattach_answered(struct run_stream *s, const struct attach_state *state);

/* --- run_keys.c: where the job has a terminal --- */

/* Sends our size. */
void run_keys_size(struct run_stream *s);
/* The terminal may have another size, or other modes, than when we left it. */
void run_keys_terminal(struct run_stream *s);
/* Who comes to a job that runs finds an empty screen: its program shall draw again. */
void run_keys_redraw(struct run_stream *s);
/* Its second half, when it is due. */
void run_keys_redrawn(struct run_stream *s);
/* TERM was sent, a while ago, and did nothing: we leave. */
void run_keys_term(struct run_stream *s);
/* Reads the terminal once. */
void run_keys_read(struct run_stream *s);
/* True: SIGNAL was dealt with. */
bool run_keys_signal(struct run_stream *s, int signal);
static inline bool run_keys_there(const struct run_stream *s)
{
	return s->tty && s->tty->fd >= 0;
}
/* In run_stream.c: */
void run_send_input(struct run_stream *s);
void run_broken(struct run_stream *s, int rc);
void run_abandon(struct run_stream *s, int signal);
/* Whether SIGNAL ends us and not the job: who looks at a detached one may leave it. */
bool run_leaves(const struct run_stream *s, int signal);

#endif
