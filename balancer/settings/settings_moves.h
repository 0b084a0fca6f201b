/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The settings of moves that policies make (MODEL 3.9, agent/moves/moves.h).  All are live. */
#ifndef IOCOM_SETTINGS_MOVES_H
#define IOCOM_SETTINGS_MOVES_H

#include <stdint.h>

/* X(kind, type, member, name, value's name, help, default, least, most) */
#define SETTINGS_MOVES(X)                                                                          \
	X(COUNT, uint32_t, a_minute, "moves-a-minute", "N",                                        \
	  "running jobs that policies (iocm-pm, ...) move away from here in a minute; 0: none",    \
	  "6", 0, 1000)                                                                            \
	X(COUNT, uint32_t, mb_a_minute, "moves-mb-a-minute", "N", "MB of them in a minute",        \
	  "4096", 1, 1e9)                                                                          \
	X(COUNT, uint32_t, pause_s, "moves-pause-s", "S",                                          \
	  "seconds for which a job stays that has moved, or was to move and did not", "30", 0,     \
	  86400)                                                                                   \
	X(NUMBER, double, gain, "moves-gain", "X",                                                 \
	  "part of the time there and of the move by which staying must be worse", "0.2", 0, 100)

#define SETTINGS_MOVES_MEMBER(kind, type, member, name, value, help, usual, least, most)           \
	type member;

struct settings_moves {
	SETTINGS_MOVES(SETTINGS_MOVES_MEMBER)
};

#endif
