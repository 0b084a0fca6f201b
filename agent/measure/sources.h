/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who holds how many of a bounded number of places: by address, of IPv6 by its /64 (one
 * machine may have all of that).  When all places are taken, one goes of whom has most:
 * nobody is kept out by the many of another.
 */
#ifndef IOCOM_SOURCES_H
#define IOCOM_SOURCES_H

#include <stdint.h>
#include <sys/socket.h>

#define SOURCES_MAX 320

struct sources {
	struct source {
		uint8_t address[8]; /* IPv4's 4 bytes, or the first 8 of IPv6 */
		unsigned held;
	} all[SOURCES_MAX];
};

/* Takes a place for ADDRESS; its number, for sources_leave.  -1: SOURCES_MAX others have one. */
int sources_enter(struct sources *sources, const struct sockaddr *address);
void sources_leave(struct sources *sources, int source);
/* Who holds most; -1: nobody holds any. */
int sources_most(const struct sources *sources);

#endif
