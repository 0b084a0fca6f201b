/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams that arrive from other machines, TCP on base port + 2.  Exactly
 * one frame is read here, FRAME_START, bounded in size and time, and not a byte
 * more: the rest is the shim's.  Who fails gets FRAME_ERROR with the sentence.
 */
#ifndef IOCOM_STREAM_H
#define IOCOM_STREAM_H

#include "agent/agent.h"

#define STREAMS_MAX	  256
#define STREAMS_BYTES_MAX (64u << 20) /* of what has come of their start messages */
#define STREAM_START_NS	  (5ull * 1000000000ull)
#define STREAM_LINGER_NS  (2ull * 1000000000ull)

/* Listens at the agent's address.  0; -EADDRINUSE ... with the sentence. */
int streams_new(struct streams **streams, struct agent *agent, struct iocom_err *err);
size_t streams_count(const struct streams *streams); /* NULL: none */
size_t streams_bytes(const struct streams *streams); /* likewise; of what has come of starts */
void streams_free(struct streams *streams);

#endif
