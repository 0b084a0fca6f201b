/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How much of the loop's time each user takes, for requests and for what follows from them: late
 * answers, submissions, jobs that begin and end.  One token bucket per user, in nanoseconds of the
 * loop:
 *
 *   left = min(burst, left + elapsed / 2);  what is done for the user is subtracted as it is done
 *
 * So a user whose clients wait while `left` is used up gets at most half of the loop's time.  Root
 * is never charged.  Time is what a handler takes from begin to end, waiting for the disk included:
 * the loop does nothing else meanwhile.  A user whose bucket is full needs no entry: the table is a
 * bounded cache, where a new user replaces the one that was charged longest ago.
 */
#ifndef IOCOM_LOOP_SHARE_H
#define IOCOM_LOOP_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/loop.h"

#define LOOP_SHARE_USERS     128
#define LOOP_SHARE_PART	     2 /* a user gets 1/2 */
#define LOOP_SHARE_BURST_NS  500000000
#define LOOP_SHARE_DEBT_NS   1000000000 /* more is forgiven: so it is paid after two seconds */
#define LOOP_SHARE_RESUME_NS 5000000	/* a client that waited goes on with this much left */
#define LOOP_SHARE_NOBODY    ((uid_t)-1)
#define LOOP_SHARE_NETWORK   ((uid_t)-3) /* the network part, beside what it brings of strangers */
#define LOOP_SHARE_STRANGERS ((uid_t)-2) /* all who send from the network, until they are known */

struct loop_share_user {
	uid_t uid;
	bool used;
	int64_t left_ns;
	uint64_t at_ns; /* when LEFT_NS was right */
};

struct loop_share {
	const struct loop *loop;
	uid_t who; /* for whom the loop works now */
	uint64_t since_ns;
	struct loop_share_user users[LOOP_SHARE_USERS];
};

void loop_share_init(struct loop_share *share, const struct loop *loop);
/*
 * The loop works for UID from now until loop_share_leave, which gets what this returns: for whom it
 * worked before, and then does again.  SHARE may be NULL: nothing is counted.
 */
uid_t loop_share_enter(struct loop_share *share, uid_t uid);
void loop_share_leave(struct loop_share *share, uid_t before);
/* Returns true if UID has used up its part, and its clients have to wait. */
bool loop_share_spent(struct loop_share *share, uid_t uid);
/* How long UID's clients have to wait.  0: not at all. */
uint64_t loop_share_wait_ns(struct loop_share *share, uid_t uid);

#endif
