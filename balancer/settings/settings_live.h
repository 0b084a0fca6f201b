/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which settings hold from a reload on, and which from the next start. */
#ifndef IOCOM_SETTINGS_LIVE_H
#define IOCOM_SETTINGS_LIVE_H

#include "balancer/settings/settings.h"

/* Returns 1: KEY ("accept-jobs") holds from a reload on; 0: from the next start; -ENOENT. */
int settings_live(const char *key);

/* What a reload found. */
struct settings_changes {
	char live[512];	   /* the keys that hold now, with commas, as a file writes them; "" */
	char waiting[512]; /* those that need a restart */
};
/*
 * Takes from NEXT, which is complete, what holds from a reload on, into SET.  Returns 0 or -ENOMEM
 * (SET is unchanged).
 */
int settings_take(struct settings *set, const struct settings *next,
		  struct settings_changes *changes);

#endif
