/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See request_limit.h. */
#include "agent/front/request_limit.h"

#include <stddef.h>

#define FREE_NS 1000000u

static struct rate *request_limit_find(struct request_limit *rates, uid_t uid, uint32_t per_s,
				       uint64_t now_ns)
{
	struct rate *oldest = &rates->users[0];

	for (size_t i = 0; i < REQUEST_LIMIT_USERS; i++) {
		struct rate *r = &rates->users[i];

		if (r->used && r->uid == uid)
			return r;
		if (!r->used || (oldest->used && r->at_ns < oldest->at_ns))
			oldest = r;
	}
	*oldest = (struct rate){.uid = uid, .used = true, .tokens = per_s, .at_ns = now_ns};
	return oldest;
}

void request_limit_charge(struct request_limit *rates, uid_t uid, uint32_t per_s, uint64_t cost_ns,
			  uint64_t now_ns)
{
	struct rate *r;

	if (!uid || !per_s || cost_ns <= FREE_NS)
		return;
	r = request_limit_find(rates, uid, per_s, now_ns);
	r->tokens -= (double)(cost_ns - FREE_NS) / 1e6 * REQUEST_LIMIT_OF_MS * per_s / 5000;
	if (r->tokens < -(double)per_s) /* bounds the debt, so that it is paid after one second */
		r->tokens = -(double)per_s;
}

bool request_limit_take(struct request_limit *rates, uid_t uid, uint32_t per_s, uint64_t now_ns)
{
	struct rate *r;

	if (!uid || !per_s)
		return true;
	r = request_limit_find(rates, uid, per_s, now_ns);
	if (now_ns > r->at_ns) {
		r->tokens += (double)(now_ns - r->at_ns) * per_s / 1e9;
		r->at_ns = now_ns;
	}
	if (r->tokens > per_s)
		r->tokens = per_s;
	if (r->tokens < 1)
		return false;
	r->tokens -= 1;
	return true;
}
