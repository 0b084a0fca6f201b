/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See complaints.h. */
#include "agent/base/complaints.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a of SENTENCE without its digits. */
static uint64_t complaint_shape(const char *sentence)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *sentence; sentence++)
		if (*sentence < '0' || *sentence > '9')
			hash = (hash ^ (unsigned char)*sentence) * 0x100000001b3u;
	return hash;
}

/* The complaint that is as KEY; NULL: there is none. */
static struct complaint *complaint_find(struct complaints *c, const struct complaint *key)
{
	for (size_t i = 0; i < COMPLAINTS_MAX; i++)
		if (c->all[i].used && c->all[i].shape == key->shape &&
		    !strcmp(c->all[i].sender, key->sender))
			return &c->all[i];
	return NULL;
}

/* A free place, or that of the one that was quiet for longest. */
static struct complaint *complaint_place(struct complaints *c)
{
	struct complaint *quiet = &c->all[0];

	for (size_t i = 0; i < COMPLAINTS_MAX; i++) {
		if (!c->all[i].used) {
			c->count++;
			return &c->all[i];
		}
		if (c->all[i].last_ns < quiet->last_ns)
			quiet = &c->all[i];
	}
	c->replaced++;
	return quiet;
}

bool complaints_take(struct complaints *c, const char *sender, const char *sentence, uint64_t now,
		     uint64_t *more)
{
	struct complaint key = {.used = true, .shape = complaint_shape(sentence)}, *old;

	snprintf(key.sender, sizeof(key.sender), "%s", sender);
	*more = 0;
	old = complaint_find(c, &key);
	if (!old || now - old->last_ns >= COMPLAINTS_LONGEST_NS) {
		if (!old)
			old = complaint_place(c);
		key.wait_ns = COMPLAINTS_FIRST_NS;
		key.due_ns = now + key.wait_ns;
		key.last_ns = now;
		*old = key;
		return true;
	}
	old->last_ns = now;
	if (now < old->due_ns) {
		old->more++;
		return false;
	}
	*more = old->more;
	old->more = 0;
	old->wait_ns =
		2 * old->wait_ns < COMPLAINTS_LONGEST_NS ? 2 * old->wait_ns : COMPLAINTS_LONGEST_NS;
	old->due_ns = now + old->wait_ns;
	return true;
}

void complaints_settle(struct complaints *c, const char *sender)
{
	for (size_t i = 0; c->count && i < COMPLAINTS_MAX; i++)
		if (c->all[i].used && !strcmp(c->all[i].sender, sender)) {
			c->all[i].used = false;
			c->count--;
		}
}

void base_complain(const struct base *base, const char *sender, const char *fmt, ...)
{
	struct complaints *c = base->complaints;
	char text[1000];
	uint64_t more = 0, replaced = c ? c->replaced : 0;
	bool due = true;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c) {
		due = complaints_take(c, sender, text, loop_boot_ns(base->loop), &more);
		base->counters->complaints_replaced += c->replaced - replaced;
	}
	if (!due)
		return;
	if (more)
		log_provoked(base->log, LOG_L_WARNING, "%s (%" PRIu64 " more since)", text, more);
	else
		log_provoked(base->log, LOG_L_WARNING, "%s", text);
}

void base_settle(const struct base *base, const char *sender)
{
	if (base->complaints)
		complaints_settle(base->complaints, sender);
}
