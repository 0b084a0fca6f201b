/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who holds how many of a bounded number of places: by address, of IPv6 by its /64 (one
 * machine may have all of that).  When all places are taken, one goes of whom has most:
 * nobody is kept out by the many of another.
 */
#ifndef IOCOM_ADDRESS_LIMIT_H
#define IOCOM_ADDRESS_LIMIT_H

#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_LIMIT_MAX 320

struct address_limit {
	struct source {
		uint8_t address[8]; /* IPv4's 4 bytes, or the first 8 of IPv6 */
		unsigned held;
	} all[ADDRESS_LIMIT_MAX];
};

/* Takes a place for ADDRESS; its number, for address_limit_leave.  -1: ADDRESS_LIMIT_MAX others
 * have one. */
int address_limit_enter(struct address_limit *sources, const struct sockaddr *address);
void address_limit_leave(struct address_limit *sources, int source);
/* Who holds most; -1: nobody holds any. */
int address_limit_most(const struct address_limit *sources);

#endif
