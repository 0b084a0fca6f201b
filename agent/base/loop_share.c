/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See loop_share.h. */
#include "agent/base/loop_share.h"

#include <stddef.h>

void loop_share_init(struct loop_share *share, const struct loop *loop)
{
	*share = (struct loop_share){.loop = loop, .who = LOOP_SHARE_NOBODY};
}

/* The entry of UID with what it has left now.  Without an entry: NULL, or a new one if MAKE. */
static struct loop_share_user *loop_share_find(struct loop_share *share, uid_t uid, bool make)
{
	struct loop_share_user *oldest = &share->users[0];
	uint64_t now = loop_boot_ns(share->loop);

	for (size_t i = 0; i < LOOP_SHARE_USERS; i++) {
		struct loop_share_user *u = &share->users[i];
		uint64_t gained = (now - u->at_ns) / LOOP_SHARE_PART;

		if (u->used && u->uid == uid) {
			u->left_ns = gained > (uint64_t)(LOOP_SHARE_BURST_NS - u->left_ns)
					     ? LOOP_SHARE_BURST_NS
					     : u->left_ns + (int64_t)gained;
			u->at_ns = now;
			return u;
		}
		if (!u->used || (oldest->used && u->at_ns < oldest->at_ns))
			oldest = u;
	}
	if (!make)
		return NULL;
	*oldest = (struct loop_share_user){uid, true, LOOP_SHARE_BURST_NS, now};
	return oldest;
}

/* Charges for the time since the last call. */
static void loop_share_settle(struct loop_share *share)
{
	uint64_t now = loop_boot_ns(share->loop), spent = now - share->since_ns;
	struct loop_share_user *u;

	share->since_ns = now;
	if (share->who == LOOP_SHARE_NOBODY || !share->who || !spent)
		return;
	u = loop_share_find(share, share->who, true);
	u->left_ns = spent > (uint64_t)(u->left_ns + LOOP_SHARE_DEBT_NS)
			     ? -LOOP_SHARE_DEBT_NS
			     : u->left_ns - (int64_t)spent;
}

uid_t loop_share_enter(struct loop_share *share, uid_t uid)
{
	uid_t before;

	if (!share)
		return LOOP_SHARE_NOBODY;
	before = share->who;
	if (before != uid) {
		loop_share_settle(share);
		share->who = uid;
	}
	return before;
}

void loop_share_leave(struct loop_share *share, uid_t before)
{
	(void)loop_share_enter(share, before);
}

bool loop_share_spent(struct loop_share *share, uid_t uid)
{
	const struct loop_share_user *u;

	if (!share || !uid)
		return false;
	u = loop_share_find(share, uid, false);
	return u && u->left_ns <= 0;
}

uint64_t loop_share_wait_ns(struct loop_share *share, uid_t uid)
{
	const struct loop_share_user *u;

	if (!share || !uid)
		return 0;
	u = loop_share_find(share, uid, false);
	return u && u->left_ns <= 0
		       ? (uint64_t)(LOOP_SHARE_RESUME_NS - u->left_ns) * LOOP_SHARE_PART
		       : 0;
}
