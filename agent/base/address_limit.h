/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Counts how many of a bounded number of places each address holds; IPv6 addresses count by their
 * /64 (one machine may have all of that).  When all places are taken, the address with most loses
 * one: one address cannot keep the others out.
 */
#ifndef IOCOM_ADDRESS_LIMIT_H
#define IOCOM_ADDRESS_LIMIT_H

#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_LIMIT_MAX 320
#define ADDRESS_LIMIT_KEY 8 /* bytes: IPv4's 4, or the first 8 of IPv6 */

struct address_limit {
	struct source {
		uint8_t address[ADDRESS_LIMIT_KEY];
		unsigned held;
	} all[ADDRESS_LIMIT_MAX];
};

/* An IPv4-mapped IPv6 address counts as IPv4; one of another family as no address. */
void address_limit_key_of(const struct sockaddr *address, uint8_t key[ADDRESS_LIMIT_KEY]);
/*
 * Takes a place for ADDRESS.  Returns the source's number, for address_limit_leave; -1:
 * ADDRESS_LIMIT_MAX other addresses hold places.
 */
int address_limit_enter(struct address_limit *sources, const struct sockaddr *address);
void address_limit_leave(struct address_limit *sources, int source);
/* Returns the source that holds most places; -1: nobody holds any. */
int address_limit_most(const struct address_limit *sources);

#endif
