/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See places.h. */
#include "agent/base/places.h"

#include <errno.h>

int places_ask(const struct places *p, uid_t uid, size_t used, size_t own,
	       struct counters *counters, struct iocom_err *err)
{
	size_t kept = uid ? p->of_root : 0;
	size_t unused = p->max > used + kept ? p->max - used - kept : 0;

	if (uid && p->of_one && own >= p->of_one)
		return iocom_err_set(err, -EDQUOT, "uid %u has %zu %s, the limit per user (%s)",
				     (unsigned)uid, own, p->what, p->one);
	if (!unused && (!uid || !own))
		return iocom_err_set(err, -EAGAIN, "no place is free: the limit is %zu %s (%s)",
				     p->max - kept, p->what, p->limit);
	if (!uid || own < unused)
		return 0;
	counters->places_refused++;
	return iocom_err_set(
		err, -EDQUOT,
		"uid %u has %zu %s, and %zu places are free: a user who has as many as "
		"are free gets no more (%s)",
		(unsigned)uid, own, p->what, unused, p->limit);
}
