/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that is a part of a gang: its first process is a launcher, which starts the tasks of this
 * node by the gang's plan.  The shim passes messages between the launcher and the client
 * (user/gang_plan.h).  Of those it reads only FAILED, at the end: so the job's record says which
 * task failed, or that the part was told to end before one had.
 */
#ifndef IOCOM_SHIM_GANG_H
#define IOCOM_SHIM_GANG_H

#include <limits.h>
#include <stdint.h>

#include "user/gang_plan.h"
#include "user/record.h"
#include "user/spec.h"
#include "user/wire.h"

/* A launcher has four messages; one that sends more is at fault, and is cut off. */
#define GANG_MESSAGES_MAX 8

struct gang_kept;

struct gang_line {
	int fd; /* to the launcher; -1: none */
	/* What the launcher has said, for a client that attaches again. */
	struct gang_kept *kept;
	uint32_t nkept;
	uint32_t *ranks; /* the tasks of this part */
	uint32_t nranks;
	const char *word; /* what one is called */
	bool left;	  /* the client was gone for longer than its grace */
	bool told;	  /* to end, when the launcher had said of no failure */
};

/* The launcher of a part, and its descriptors. */
struct gang_launcher {
	char program[PATH_MAX]; /* "": the job is no part of a gang */
	int plan;		/* a sealed memory file with the packed plan */
	int control;		/* its end of the line */
};

void gang_line_init(struct gang_line *line);
void gang_line_deinit(struct gang_line *line);
/*
 * Prepares the launcher of SPEC, if it is a part of a gang.  Returns 0; negative errno with the
 * reason in ERR: nothing is to be closed then.
 */
int gang_prepare(struct gang_line *line, struct gang_launcher *launcher, const struct spec *spec,
		 struct iocom_err *err);
/* Closes the launcher's descriptors in this process. */
void gang_launcher_close(struct gang_launcher *launcher);
/* Passes a message of the client on.  Returns 0, or -EPROTO: there is no gang here. */
int gang_line_take(struct gang_line *line, const uint8_t *payload, uint32_t length);
/* Passes all that the launcher has said to CLIENT, which may be NULL.  Returns as wire_send. */
int gang_line_serve(struct gang_line *line, struct wire *client);
/* Says all of it again, to a client that has lost its connection.  Returns as wire_send. */
int gang_line_again(const struct gang_line *line, struct wire *client);
/*
 * SIGNAL is about to be sent to the tasks.  Passes on first what the launcher has said until now,
 * as gang_line_serve does.
 */
int gang_line_signal(struct gang_line *line, struct wire *client, int signal);
/*
 * Adds to END, of a job of NODE, why it ended badly, if it did.  A text that END has stays, unless
 * the part was told to end.
 */
void gang_line_outcome(struct gang_line *line, const char *node, struct record_exit *end);

#endif
