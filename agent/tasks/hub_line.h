/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One connection between two launchers of a gang: its handshake, and messages in pieces. */
#ifndef IOCOM_HUB_LINE_H
#define IOCOM_HUB_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/frame.h"
#include "user/gang_plan.h"
#include "user/wire.h"

/* HERE says nothing: it is sealed, so it proves who connects. */
enum hub_op {
	HUB_HERE = 1,
	HUB_FENCE,
	HUB_ALL,
	HUB_ASK,
	HUB_TELL,
	HUB_ABORT,
	HUB_DONE,
	HUB_BEGAN,
	HUB_WITHOUT,
	HUB_OPS
};

struct hub_message {
	enum hub_op op;
	uint32_t from, to; /* parts */
	uint32_t id;	   /* of a question; of an abort: waitpid's status */
	uint32_t rank;
	int32_t status;
	const void *data; /* borrowed */
	uint32_t length;
};

enum hub_state {
	HUB_CONNECTING, /* the connector: TCP */
	HUB_HELLO,	/* the listener waits for the first message of the handshake */
	HUB_WELCOME,	/* the connector waits for the second one */
	HUB_OPEN,	/* sealed from here on */
};

struct hub_line {
	int fd;
	enum hub_state state;
	uint64_t since_ms; /* when it began */
	uint32_t part;	   /* at the other end; until it has proven itself it only says so */
	bool proven;	   /* a sealed message has come */
	bool done;	   /* the other end has said that it ends */
	const struct gang_plan *plan;
	uint8_t greeting[FRAME_HEADER + 128]; /* the handshake's message on its way here */
	size_t have;
	struct noise noise;
	struct wire wire; /* in HUB_OPEN; it has FD then */
	struct hub_message in;
	uint8_t *data; /* of `in` */
	uint32_t got;
	bool within;	      /* a message is not whole yet */
	struct queue pending; /* pieces that the wire has no room for: length u32, bytes */
};

/* FD is taken: a connection that was accepted, or one that is being made to part 0. */
void hub_line_init(struct hub_line *line, int fd, bool connector, const struct gang_plan *plan,
		   uint64_t now_ms);
void hub_line_deinit(struct hub_line *line);
/* The events of poll(2) that the line waits for. */
short hub_line_events(const struct hub_line *line);
/*
 * Does what it can.  TAKE is called for each whole message; what it returns, if not 0, ends this.
 * Returns 0; -EPIPE: closed; -EACCES: the other end does not know the gang's secret; -EBADMSG;
 * other negative errno.
 */
int hub_line_serve(struct hub_line *line, short events,
		   int (*take)(void *arg, struct hub_line *line, const struct hub_message *message),
		   void *arg);
/* Sends of an open line what is pending, as far as there is room.  Returns 0 or negative errno. */
int hub_line_flush(struct hub_line *line);
/* Sends, or queues, MESSAGE.  Returns 0; -E2BIG; -ENOMEM; or what broke the connection. */
int hub_line_send(struct hub_line *line, const struct hub_message *message);

#endif
