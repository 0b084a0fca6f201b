/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs that move between the shims of two nodes, by a real criu: the test plays both agents, who
 * decide, and the client, who finds the job again and checks each line of its output: it counts
 * from 0.
 */
#ifndef TEST_MOVER_H
#define TEST_MOVER_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/shim/move/criu.h"
#include "tests/lib/criu.h"
#include "tests/lib/stage.h"

#define MOVER_LIMIT_MS 30000

/* Set by criu_to_test and stage_up. */
extern struct criu mover_criu;
extern struct stage mover_nodes[2];

/* A job, where it is, and its client. */
struct mover {
	struct want want;
	struct job job;
	unsigned at; /* the node */
	int client;
	uint64_t got, given; /* offsets in its output and input */
	char input[65536];   /* all that it was given */
	unsigned next;
	char line[64];
	size_t length;
};

/* A job of root's that runs this script. */
#define MOVER_SH(script)                                                                           \
	{                                                                                          \
		.migratable = true, .root = true, .allow_root = true, .grace_ms = 20000, .argv = { \
			"/bin/sh",                                                                 \
			"-c",                                                                      \
			script,                                                                    \
			NULL                                                                       \
		}                                                                                  \
	}
/* It counts. */
#define MOVER_COUNT "i=0; while :; do echo $i; i=$((i + 1)); sleep 0.001; done"

struct mover mover_begin(const struct want *want);
/* Sends it input; "" ends the input. */
void mover_give(struct mover *m, const char *text);
/* Reads one frame.  Returns its type, or 0 at the end of the connection. */
int mover_read(struct mover *m);
/* Says that the output up to TAKEN was taken. */
void mover_credit(int client, uint64_t taken);
void mover_expect_until(struct mover *m, unsigned until);
/* Reads so many more lines. */
void mover_expect(struct mover *m, unsigned lines);
/* What an agent decides of JOB.  Returns 0 or negative errno. */
int mover_decide(const struct stage *node, const char *job, enum launch_decision decision);
/* Waits for the next event, which must be of TYPE. */
void mover_event(int leash, enum launch_event_type type, struct launch_event *event);
/* Starts the shim where M goes.  Its "client" is the stream that the other shim gets. */
struct job mover_there(struct mover *m);
/* Asks the shim of M to move it.  Returns what it says. */
int mover_ask(const struct mover *m, const struct job *there, struct iocom_err *err);
/* Moves M as far as it is held at both. */
struct job mover_hold(struct mover *m, struct launch_event *event);
/* A shim says how the job ended there, and leaves nothing. */
struct launch_event mover_gone(struct mover *m, struct job *shim, unsigned at, int kind);
/* The client was cut off, was told no end, and finds the job at the other node. */
void mover_follow(struct mover *m);
/* What was held there is the job now. */
void mover_go(struct mover *m, struct job *there);
void mover_move(struct mover *m);
/* SIGNAL ends it: positive: which is sent now; negative: which was sent; 0: none does. */
void mover_end(struct mover *m, int signal);
/* cmocka's group fixtures: both nodes. */
int mover_up(void **state);
int mover_down(void **state);

#endif
