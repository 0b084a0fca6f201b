/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Nodes whose bulletins are refused because their clocks differ.  A user who asks for such a node
 * then reads that its clock differs, not that it is silent.
 *
 *   refused bulletin -> noted;  heard again -> removed;  a minute later -> removed
 */
#ifndef IOCOM_SKEWS_H
#define IOCOM_SKEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/vector.h"

#define SKEWS_MAX      64 /* a further one replaces the oldest */
#define SKEWS_FRESH_NS (60ull * 1000000000ull)

struct skews {
	struct skew {
		char node[IOCOM_NAME_MAX]; /* "" free */
		int64_t ahead_s;
		uint64_t noted_ns; /* CLOCK_BOOTTIME */
	} all[SKEWS_MAX];
};

/* NODE's clock is AHEAD_S seconds ahead of ours (negative: behind). */
void skews_note(struct skews *skews, const char *node, int64_t ahead_s, uint64_t now_ns);
size_t skews_count(const struct skews *skews);
/* NODE is heard: its clock does not differ. */
void skews_forget(struct skews *skews, const char *node);
/* Writes half a sentence about NODE's clock to OUT; false, and "", when nothing is known of it. */
bool skews_say(const struct skews *skews, const char *node, uint64_t now_ns, char *out,
	       size_t size);

#endif
