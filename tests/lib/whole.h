/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * All parts of one agent, wired as agent.c does, but without a machine below them: a virtual
 * loop, a journal in memory or in a file, no network, a monitor that sees nothing, and
 * supervisors that cannot be started.  The node is "here"; its matrix knows the node "there".
 */
#ifndef TESTS_WHOLE_H
#define TESTS_WHOLE_H

#include <stdio.h>

#include "agent/cluster/peers.h"
#include "agent/front/front.h"
#include "agent/guest/guest.h"
#include "agent/home/home.h"
#include "agent/measure/pulse.h"
#include "balancer/profile/profile.h"

struct whole {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct accounts *accounts;
	struct journal *journal;
	struct profile_store *profiles;
	struct pulse pulse;
	struct peers peers;
	struct guest *guest;
	struct home *home;
	struct front front;
	char dir[40]; /* RUN_DIR, STATE_DIR */
};

/*
 * JOURNAL: its file, or ":memory:".  Returns 0; otherwise the error's sentence is on standard
 * error.
 */
int whole_new(struct whole *whole, const char *journal);
void whole_free(struct whole *whole);
/* The one of the process, made anew once in 512 uses, so that its journal stays small. */
struct whole *whole_fresh(void);
void whole_pass_ms(struct whole *whole, unsigned ms);

/* Connects a program of UID. Returns its end, non-blocking, or -1. */
int whole_client(struct whole *whole, uid_t uid);
/* Writes one request, a packed map. */
int whole_ask(int fd, const void *map, size_t length);
/*
 * Reads what has come for the program. Returns the number of frames; TYPE and TEXT (cut at SIZE)
 * are of the last one.
 */
unsigned whole_answers(int fd, uint8_t *type, char *text, size_t size);

#endif
