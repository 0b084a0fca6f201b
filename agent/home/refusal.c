/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See refusal.h. */
#include "agent/home/refusal.h"

#include <stdio.h>
#include <string.h>

#include "agent/cluster/control.h"
#include "user/utf8.h"

int refusal_keep(struct placement *placement, const char *node, const char *reason,
		 const char *text)
{
	char clean[1024]; /* names of files need not be UTF-8; JSON must be */

	utf8_copy(clean, sizeof(clean), text, strlen(text));
	return placement_refuse(placement, node, reason, clean);
}

void refusal_sentence(const char *node, const char *reason, const char *text, char *out,
		      size_t size)
{
	if (!strcmp(reason, REFUSAL_NO_ANSWER) || !strcmp(reason, REFUSAL_SILENT))
		snprintf(out, size, "node %s %s", node, text);
	else
		snprintf(out, size, "node %s refused the job (%s): %s", node, reason, text);
}

void refusal_unanswered(uint64_t age_ns, char *out, size_t size)
{
	snprintf(out, size,
		 "did not answer within %g s (is iocomd running there? last heard %.1f s ago)",
		 CONTROL_TIMEOUT_MS / 1e3, (double)age_ns / 1e9);
}
