/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Versions of the secure channel.  Whoever begins names the least and the greatest version that it
 * speaks; the other side chooses the greatest that both speak, and says which.  Both are part of
 * what the handshake authenticates, so nobody on the path can bring about an older version.
 *
 * The least is always the greatest of the release before: releases N and N-1 understand each other.
 */
#ifndef IOCOM_CHANNEL_VERSION_H
#define IOCOM_CHANNEL_VERSION_H

#include <stdint.h>

/* A build of the next release, for the test that mixes both. */
#ifndef CHANNEL_VERSION_MAX
#define CHANNEL_VERSION_MAX 1
#endif
#define CHANNEL_VERSION_MIN 1

/* Returns the version for a peer that speaks LEAST to MOST; 0: there is none. */
static inline unsigned channel_version_choose(uint64_t least, uint64_t most)
{
	uint64_t version = most < CHANNEL_VERSION_MAX ? most : CHANNEL_VERSION_MAX;

	return least <= most && version >= least && version >= CHANNEL_VERSION_MIN
		       ? (unsigned)version
		       : 0;
}

#endif
