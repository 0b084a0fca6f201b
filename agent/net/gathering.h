/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lets what arrives at many sockets gather before it is read: a node of a large cluster hears
 * dozens of others, each at another moment of the period, and to wake for each costs more than all
 * that is done with what it says.  Of a few sockets each is read at once.
 */
#ifndef IOCOM_GATHERING_H
#define IOCOM_GATHERING_H

#include <stdint.h>

#include "agent/base/loop.h"

struct gathering;

/* GATHERED is called each time when all has been read.  Returns 0 or negative errno. */
int gathering_new(struct gathering **g, struct loop *loop, void (*gathered)(void *arg), void *arg,
		  struct iocom_err *err);
/* When nothing is registered any more.  NULL is fine. */
void gathering_free(struct gathering *g);
/* Register sockets here, in place of the loop. */
struct loop *gathering_loop(struct gathering *g);
/* From now on it reads every EVERY_NS; 0: at once. */
void gathering_set(struct gathering *g, uint64_t every_ns);
/* Reads what is here; the next time is counted from now. */
void gathering_read(struct gathering *g);

#endif
