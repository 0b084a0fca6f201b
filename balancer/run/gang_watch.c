/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gang_watch.h. */
#include "balancer/run/gang_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/ending_signal.h"
#include "user/utf8.h"

#define STATUS_FAILED  125
#define STATUS_UNKNOWN 255
#define NODES_SHOWN    4 /* in a sentence about parts that are late */

int gang_watch_init(struct gang_watch *watch, const struct gang_answer *gang, const char *address,
		    uint64_t now_ms)
{
	*watch = (struct gang_watch){
		.gang = gang,
		.until_ms = now_ms + GANG_BEGIN_S * 1000,
		.parts = calloc(gang->nparts, sizeof(*watch->parts)),
	};
	snprintf(watch->address, sizeof(watch->address), "%s", address);
	return watch->parts ? 0 : -ENOMEM;
}

void gang_watch_fini(struct gang_watch *watch)
{
	free(watch->parts);
	watch->parts = NULL;
}

static void gang_watch_send(const struct gang_watch *watch, uint32_t part, enum gang_order order,
			    int value)
{
	const uint8_t packet[GANG_ORDER] = {(uint8_t)order, (uint8_t)value};

	if (watch->parts[part] != GANG_PART_ENDED)
		watch->send(watch->arg, part, packet, sizeof(packet));
}

void gang_watch_order(struct gang_watch *watch, enum gang_order order, int value)
{
	for (uint32_t i = 0; i < watch->gang->nparts; i++)
		gang_watch_send(watch, i, order, value);
}

/* FAILURE leaves the others alone: --keep-going is for tasks that have begun. */
static bool gang_watch_tolerates(const struct gang_watch *watch, const struct gang_failure *failure)
{
	return watch->keep_going &&
	       (failure->kind == GANG_FAILED_RANK ||
		(failure->kind == GANG_FAILED_PART && watch->begun == watch->gang->nparts));
}

/* Notes FAILURE if it is the first, and ends all parts but those that end by themselves. */
static void gang_watch_fail(struct gang_watch *watch, const struct gang_failure *failure,
			    uint64_t now_ms)
{
	bool self = failure->kind == GANG_FAILED_RANK || failure->kind == GANG_FAILED_PART;

	watch->quiet_ms = 0;
	if (!watch->failure.kind) {
		watch->failure = *failure;
		utf8_plain(watch->failure.text);
	}
	if (watch->ending || gang_watch_tolerates(watch, failure))
		return;
	watch->ending = true;
	watch->until_ms = 0;
	watch->kill_ms = now_ms + GANG_KILL_MS;
	for (uint32_t i = 0; i < watch->gang->nparts; i++)
		if (!self || i != failure->part)
			gang_watch_send(watch, i, GANG_ORDER_SIGNAL, SIGTERM);
}

/* Waits a moment for the failure from which FAILURE follows. */
static void gang_watch_hold(struct gang_watch *watch, const struct gang_failure *failure,
			    uint64_t now_ms)
{
	if (watch->failure.kind || watch->quiet_ms)
		return;
	watch->quiet = *failure;
	watch->quiet_ms = now_ms + GANG_QUIET_MS;
}

static void gang_watch_go(struct gang_watch *watch, uint32_t part)
{
	struct gang_message go = {.type = GANG_GO, .port = watch->port};
	uint8_t packed[GANG_MESSAGE_MAX];

	memcpy(go.address, watch->address, sizeof(go.address));
	watch->send(watch->arg, part, packed, gang_message_pack(&go, packed));
}

static void gang_watch_ready(struct gang_watch *watch, uint32_t part, uint16_t port,
			     uint64_t now_ms)
{
	bool go = watch->ready == watch->gang->nparts;

	/* A launcher says it again after contact was lost, and may have missed our word. */
	if (watch->parts[part] == GANG_PART_READY && go && !watch->ending)
		gang_watch_go(watch, part);
	if (watch->parts[part] != GANG_PART_STARTING)
		return;
	watch->parts[part] = GANG_PART_READY;
	if (part == 0)
		watch->port = port;
	if (++watch->ready < watch->gang->nparts || watch->ending)
		return;
	watch->until_ms = now_ms + GANG_BEGIN_S * 1000;
	for (uint32_t i = 0; i < watch->gang->nparts; i++)
		gang_watch_go(watch, i);
}

static void gang_watch_begun(struct gang_watch *watch, uint32_t part)
{
	if (watch->parts[part] != GANG_PART_READY)
		return;
	watch->parts[part] = GANG_PART_BEGUN;
	if (++watch->begun == watch->gang->nparts)
		watch->until_ms = 0;
}

/* Returns the part that has RANK; its number of parts: none has. */
static uint32_t gang_watch_owner(const struct gang_watch *watch, uint32_t rank)
{
	uint32_t part = 0;

	for (; part < watch->gang->nparts; part++) {
		const struct gang_part *p = &watch->gang->parts[part];

		for (uint32_t i = 0; i < p->tasks; i++)
			if (watch->gang->ranks[p->first + i] == rank)
				return part;
	}
	return part;
}

/* PART may tell of another part's rank: launchers hear of each other's failures. */
static void gang_watch_rank_failed(struct gang_watch *watch, uint32_t part,
				   const struct gang_message *message, uint64_t now_ms)
{
	struct gang_failure failure = {
		.kind = GANG_FAILED_RANK,
		.part = part,
		.at = gang_watch_owner(watch, message->rank),
		.rank = message->rank,
		.began = watch->parts[part] == GANG_PART_BEGUN,
		.signalled = message->signalled,
		.crash = message->crash,
		.follows = *message->text && message->value == STATUS_FAILED,
		.value = message->value & 0xff,
	};

	failure.status = (int)failure.value + (failure.signalled ? 128 : 0);
	if (!failure.status || failure.status > 255)
		failure.status = STATUS_FAILED;
	snprintf(failure.text, sizeof(failure.text), "%s", message->text);
	/* Others often fail by a crash before its own launcher has told of it. */
	if (message->crash && watch->failure.kind == GANG_FAILED_RANK && !watch->failure.crash &&
	    !watch->keep_going) {
		watch->failure = failure;
		utf8_plain(watch->failure.text);
		return;
	}
	/* Home, which may have heard of another failure before us, ends tasks by this signal. */
	if ((failure.follows || (failure.signalled && failure.value == SIGTERM)) &&
	    !watch->keep_going)
		gang_watch_hold(watch, &failure, now_ms);
	else
		gang_watch_fail(watch, &failure, now_ms);
}

static void gang_watch_strange(struct gang_watch *watch, uint32_t part, uint64_t now_ms)
{
	struct gang_failure failure = {
		.kind = GANG_FAILED_PART, .part = part, .at = part, .status = STATUS_FAILED};

	snprintf(failure.text, sizeof(failure.text),
		 "what starts the tasks on %s is of another version of iocom, or not iocom's",
		 watch->gang->parts[part].node);
	gang_watch_fail(watch, &failure, now_ms);
	gang_watch_send(watch, part, GANG_ORDER_SIGNAL, SIGTERM);
}

void gang_watch_packet(struct gang_watch *watch, uint32_t part, const void *data, size_t length,
		       uint64_t now_ms)
{
	struct gang_message message;

	if (gang_message_unpack(&message, data, length) || message.type == GANG_GO ||
	    (message.type == GANG_FAILED &&
	     gang_watch_owner(watch, message.rank) == watch->gang->nparts))
		gang_watch_strange(watch, part, now_ms);
	else if (message.type == GANG_READY)
		gang_watch_ready(watch, part, message.port, now_ms);
	else if (message.type == GANG_BEGUN)
		gang_watch_begun(watch, part);
	else
		gang_watch_rank_failed(watch, part, &message, now_ms);
}

/* What a part's end says, of which its launcher said nothing before. */
static void gang_watch_describe(const struct gang_watch *watch, uint32_t part,
				const struct gang_end *end, struct gang_failure *failure)
{
	const char *node = watch->gang->parts[part].node;
	bool begun = watch->parts[part] == GANG_PART_BEGUN, named = strstr(end->text, node);

	*failure = (struct gang_failure){
		.kind = GANG_FAILED_PART, .part = part, .at = part, .status = end->status};
	failure->signalled = end->signalled;
	failure->follows = end->exited || end->signalled;
	if (end->signalled)
		snprintf(failure->text, sizeof(failure->text),
			 "what starts the tasks on %s was ended by signal %d (%s)", node,
			 end->value, sigabbrev_np(end->value) ? sigabbrev_np(end->value) : "?");
	else if (*end->text && !gang_told_text(end->text))
		snprintf(failure->text, sizeof(failure->text), "%s%s%.240s", named ? "" : node,
			 named ? "" : ": ", end->text);
	else if (end->lost)
		snprintf(failure->text, sizeof(failure->text), "contact with %s was lost", node);
	else
		snprintf(failure->text, sizeof(failure->text), "%s on %s ended with status %d%s",
			 begun ? "a task" : "what starts the tasks", node, end->status,
			 begun ? "" : " before they began");
	if (!failure->status)
		failure->status = STATUS_FAILED;
	if (end->lost)
		failure->status = STATUS_UNKNOWN;
}

/* Another client has a part, and soon all: we leave the others. */
static void gang_watch_taken(struct gang_watch *watch, uint32_t part, const struct gang_end *end)
{
	if (watch->failure.kind)
		return;
	watch->parts[part] = GANG_PART_ENDED;
	watch->failure =
		(struct gang_failure){.kind = GANG_TAKEN, .part = part, .status = STATUS_UNKNOWN};
	snprintf(watch->failure.text, sizeof(watch->failure.text), "%.300s", end->text);
	watch->ending = true;
	watch->until_ms = 0;
	gang_watch_order(watch, GANG_ORDER_LEAVE, 0);
}

/* PART ended because another one failed, which says so in a moment. */
static bool gang_watch_quiet(const struct gang_watch *watch, uint32_t part,
			     const struct gang_end *end)
{
	return end->exited && watch->parts[part] == GANG_PART_BEGUN && !watch->failure.kind &&
	       !watch->keep_going;
}

/* PART ended otherwise than well. */
static void gang_watch_bad_end(struct gang_watch *watch, uint32_t part, const struct gang_end *end,
			       bool quiet, uint64_t now_ms)
{
	struct gang_failure failure;

	if (watch->failure.kind && watch->failure.part == part)
		return;
	gang_watch_describe(watch, part, end, &failure);
	watch->parts[part] = GANG_PART_ENDED;
	if (!quiet)
		gang_watch_fail(watch, &failure, now_ms);
	else
		gang_watch_hold(watch, &failure, now_ms);
}

void gang_watch_ended(struct gang_watch *watch, uint32_t part, const struct gang_end *end,
		      uint64_t now_ms)
{
	bool well = !end->status && !end->lost && watch->parts[part] == GANG_PART_BEGUN;

	if (watch->parts[part] == GANG_PART_ENDED)
		return;
	watch->ended++;
	if (end->taken)
		gang_watch_taken(watch, part, end);
	else if (!well)
		gang_watch_bad_end(watch, part, end, gang_watch_quiet(watch, part, end), now_ms);
	watch->parts[part] = GANG_PART_ENDED;
}

void gang_watch_signal(struct gang_watch *watch, int signal, uint64_t now_ms)
{
	struct gang_failure failure = {.kind = GANG_FAILED_STOPPED, .status = 128 + signal};
	bool stops = signal_asks_to_end(signal);
	bool again = watch->stopped, running = watch->begun == watch->gang->nparts;

	if (stops && !watch->stopped)
		watch->stopped = signal;
	if (stops && (again || !running))
		gang_watch_fail(watch, &failure, now_ms);
	else
		gang_watch_order(watch, GANG_ORDER_SIGNAL, signal);
}

static void gang_watch_late(struct gang_watch *watch, uint64_t now_ms)
{
	struct gang_failure failure = {.kind = GANG_FAILED_LATE, .status = STATUS_FAILED};
	enum gang_part_state wanted =
		watch->ready < watch->gang->nparts ? GANG_PART_READY : GANG_PART_BEGUN;
	size_t at = 0;
	uint32_t late = 0;

	for (uint32_t i = 0; i < watch->gang->nparts; i++) {
		if (watch->parts[i] >= wanted)
			continue;
		if (late++ < NODES_SHOWN)
			at += (size_t)snprintf(failure.text + at, sizeof(failure.text) - at, "%s%s",
					       at ? ", " : "", watch->gang->parts[i].node);
	}
	snprintf(failure.text + at, sizeof(failure.text) - at, "%s did not begin within %d s",
		 late > NODES_SHOWN ? " and others" : "", GANG_BEGIN_S);
	gang_watch_fail(watch, &failure, now_ms);
}

static void gang_watch_soonest(uint64_t when_ms, uint64_t now_ms, int *wait_ms)
{
	uint64_t in = when_ms > now_ms ? when_ms - now_ms : 0;

	if (when_ms && (*wait_ms < 0 || in < (uint64_t)*wait_ms))
		*wait_ms = (int)in;
}

int gang_watch_time(struct gang_watch *watch, uint64_t now_ms)
{
	int wait_ms = -1;

	if (watch->quiet_ms && (now_ms >= watch->quiet_ms || watch->ended == watch->gang->nparts))
		gang_watch_fail(watch, &watch->quiet, now_ms);

	if (watch->until_ms && now_ms >= watch->until_ms)
		gang_watch_late(watch, now_ms);
	if (watch->kill_ms && now_ms >= watch->kill_ms) {
		watch->kill_ms = 0;
		watch->leave_ms = now_ms + GANG_LEAVE_MS;
		gang_watch_order(watch, GANG_ORDER_SIGNAL, SIGKILL);
	}
	if (watch->leave_ms && now_ms >= watch->leave_ms) {
		watch->leave_ms = 0;
		watch->leave = true;
	}
	gang_watch_soonest(watch->until_ms, now_ms, &wait_ms);
	gang_watch_soonest(watch->quiet_ms, now_ms, &wait_ms);
	gang_watch_soonest(watch->kill_ms, now_ms, &wait_ms);
	gang_watch_soonest(watch->leave_ms, now_ms, &wait_ms);
	return wait_ms;
}

bool gang_watch_follows(const struct gang_watch *watch)
{
	const struct gang_failure *f = &watch->failure;

	if (f->kind == GANG_FAILED_RANK)
		return f->follows || (f->signalled && signal_ends((int)f->value));
	return f->kind == GANG_FAILED_PART && (f->follows || f->status == STATUS_UNKNOWN);
}

void gang_watch_sentence(const struct gang_watch *watch, const char *word, bool unread, char *out,
			 size_t size)
{
	const struct gang_failure *f = &watch->failure;
	bool rank = f->kind == GANG_FAILED_RANK && !*f->text;
	char what[640];

	*out = 0;
	/* Who sends a signal knows what it does. */
	if (f->kind == GANG_FINE || f->kind == GANG_FAILED_STOPPED ||
	    (rank && f->signalled &&
	     ((int)f->value == watch->stopped || (unread && f->value == SIGPIPE))))
		return;
	if (rank)
		gang_task_sentence(word, f->rank, watch->gang->parts[f->at].node, f->signalled,
				   f->value, what, sizeof(what));
	else
		snprintf(what, sizeof(what), "%s", f->text);
	snprintf(out, size, "%s%s", what,
		 watch->gang->tasks == 1 || f->kind == GANG_TAKEN || f->whole ? ""
		 : watch->ending ? "; the others were ended"
				 : "; the others went on");
}
