/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clocks that differ; see skews.h. */
#include "agent/cluster/skews.h"

#include <stdio.h>
#include <string.h>

#include "agent/cluster/seal.h"

/* NODE's index; SKEWS_MAX: none. */
static size_t skews_find(const struct skews *skews, const char *node)
{
	size_t i = 0;

	while (i < SKEWS_MAX && (!*node || strcmp(skews->all[i].node, node) != 0))
		i++;
	return i;
}

/* The index of a free entry, or of the oldest. */
static size_t room(const struct skews *skews)
{
	size_t oldest = 0;

	for (size_t i = 0; i < SKEWS_MAX; i++) {
		if (!skews->all[i].node[0])
			return i;
		if (skews->all[i].noted_ns < skews->all[oldest].noted_ns)
			oldest = i;
	}
	return oldest;
}

void skews_note(struct skews *skews, const char *node, int64_t ahead_s, uint64_t now_ns)
{
	size_t i = skews_find(skews, node);
	struct skew *s = &skews->all[i < SKEWS_MAX ? i : room(skews)];

	snprintf(s->node, sizeof(s->node), "%s", node);
	s->ahead_s = ahead_s;
	s->noted_ns = now_ns;
}

void skews_forget(struct skews *skews, const char *node)
{
	size_t i = skews_find(skews, node);

	if (i < SKEWS_MAX)
		skews->all[i].node[0] = 0;
}

bool skews_say(const struct skews *skews, const char *node, uint64_t now_ns, char *out, size_t size)
{
	size_t i = skews_find(skews, node);
	const struct skew *s = &skews->all[i < SKEWS_MAX ? i : 0];

	*out = 0;
	if (i == SKEWS_MAX || now_ns > s->noted_ns + SKEWS_FRESH_NS)
		return false;
	snprintf(out, size,
		 "its messages are made %lld s %s this machine's time (at most %d s are accepted): "
		 "they are delayed, or the clocks differ; synchronise them",
		 (long long)(s->ahead_s < 0 ? -s->ahead_s : s->ahead_s),
		 s->ahead_s < 0 ? "before" : "after", SEAL_TTL_S);
	return true;
}

size_t skews_count(const struct skews *skews)
{
	size_t n = 0;

	for (size_t i = 0; i < SKEWS_MAX; i++)
		n += skews->all[i].node[0] != 0;
	return n;
}
