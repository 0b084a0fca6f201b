/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Nodes that are not believed because their clocks differ, so that who asks for one is
 * told that and not that it is silent.  Known from the bulletins that were refused for it.
 *
 *   refused bulletin -> note;  heard again -> gone;  a minute later -> gone
 */
#ifndef IOCOM_SKEWS_H
#define IOCOM_SKEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/vector.h"

#define SKEWS_MAX      64 /* one more takes the place of the oldest */
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
/* It is heard: nothing differs. */
void skews_forget(struct skews *skews, const char *node);
/* Half a sentence about NODE's clock; false, and "" in OUT, when nothing is known of it. */
bool skews_say(const struct skews *skews, const char *node, uint64_t now_ns, char *out,
	       size_t size);

#endif
