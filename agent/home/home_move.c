/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See home_move.h. */
#include "agent/home/home_move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/home/home_leases.h"
#include "agent/home/home_move_own.h"
#include "user/clock.h"

/*
 * The source holds it, so the target does, too, but says nothing: the job stands still meanwhile.
 * An agent that was killed starts again within this time; and to stay is always safe.
 */
#define MOVE_ONE_HELD_NS (10 * CLOCK_NS_PER_S)
/* Nobody holds it: has the source begun at all? */
#define MOVE_SILENT_NS (60 * CLOCK_NS_PER_S)
/* Whatever its nodes say: a shim gives up before. */
#define MOVE_MOST_NS (720 * CLOCK_NS_PER_S)

struct home_moving *moving_find(const struct home *home, const char *job)
{
	struct home_moving *m = home->moves;

	while (m && strcmp(m->job, job) != 0)
		m = m->next;
	return m;
}

bool home_is_moving(const struct home *home, const char *job)
{
	const struct home_moving *m = moving_find(home, job);

	return m && m->move.number && !m->over && strcmp(m->move.state, "aborted") != 0;
}

bool home_move_leaves(const struct home *home, const char *job, const char *from)
{
	const struct home_moving *m = moving_find(home, job);

	return m && m->decided && !m->over && !strcmp(m->move.source, from);
}

struct home_moving *moving_new(struct home *home, const char *job, const struct journal_move *move)
{
	struct home_moving *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->home = home;
	m->move = *move;
	m->since_ns = m->begun_ns = loop_boot_ns(home->base->loop);
	snprintf(m->job, sizeof(m->job), "%s", job);
	m->next = home->moves;
	home->moves = m;
	return m;
}

void moving_free(struct home_moving *m)
{
	struct home *home = m->home;

	for (struct home_moving **p = &home->moves; *p; p = &(*p)->next)
		if (*p == m) {
			*p = m->next;
			break;
		}
	journal_forget(home->journal, &m->wait);
	if (m->order)
		job_order_forget(m->order);
	free(m->order);
	explicit_bzero(m->secret, sizeof(m->secret));
	free(m);
}

void moving_tell(struct home_moving *m, const struct journal_move *move, const char *why)
{
	home_moved done = m->done;

	m->done = NULL;
	if (done)
		done(m->arg, move, why);
}

static enum peer_decision decision_for(const struct journal_move *move, bool there)
{
	if (!strcmp(move->state, "resumed"))
		return there ? PEER_GO : PEER_LEAVE;
	if (!strcmp(move->state, "aborted"))
		return there ? PEER_ABORT : PEER_STAY;
	return PEER_WAIT;
}

static void moving_answer(struct home_moving *m, uint64_t *ticket, bool there)
{
	struct peer_answer answer = {.ok = true, .decision = decision_for(&m->move, there)};
	const struct home_ports *ports = m->home->ports;

	if (*ticket)
		ports->answer(ports->ask_arg, *ticket, PEER_HELD, &answer);
	*ticket = 0;
}

/* Both nodes know, or will when they ask. */
static void moving_over(struct home_moving *m)
{
	m->over = true;
	moving_answer(m, &m->source_ticket, false);
	moving_answer(m, &m->target_ticket, true);
	moving_tell(m, &m->move, "");
	if (!m->asking)
		moving_free(m);
}

/* The decision is on the disk, or RC: the disk failed.  Then the nodes ask again. */
static void moving_durable(void *arg, int rc)
{
	struct home_moving *m = arg;

	if (rc) {
		m->home->base->counters->journal_failures++;
		m->source_ticket = m->target_ticket = 0;
		return;
	}
	m->durable = true;
	moving_answer(m, &m->target_ticket, true);
	/* Until it runs there, the source has what is needed if it never does. */
	if (!strcmp(m->move.state, "aborted") || m->runs)
		moving_over(m);
}

/* Waits until the disk has the decision. */
static void moving_await_disk(struct home_moving *m)
{
	if (m->wait.waiting)
		return;
	m->durable = false;
	m->wait = (struct journal_wait){.done = moving_durable, .arg = m};
	if (!journal_when_durable(m->home->journal, &m->wait))
		moving_durable(m, 0);
}

/*
 * M goes on there, at the target, or again at the source, and its lease with it.  A journal that
 * fails leaves a lease that nobody renews: the job ends, and runs again.
 */
static void moving_hand_lease_on(struct home_moving *m, bool there)
{
	const struct lease_held *l = lease_find(m->home, m->job);
	const struct job_order *order = m->order;
	struct iocom_err err = {0};
	int rc;

	if (there) {
		m->keyed = l && l->renews;
		if (m->keyed)
			memcpy(m->secret, l->secret, sizeof(m->secret));
		/* If an earlier agent asked, what it knew of the shim there is lost. */
		rc = lease_hand_on(m->home, m->job, m->move.target,
				   order && order->renews ? order->secret : NULL, &err);
	} else {
		rc = lease_hand_on(m->home, m->job, m->move.source, m->keyed ? m->secret : NULL,
				   &err);
	}
	if (rc)
		base_journal_failed(m->home->base, &err);
}

/* Decides M, once.  Returns 0 or negative errno. */
static int moving_decide(struct home_moving *m, const char *state, const char *why,
			 struct iocom_err *err)
{
	struct journal_move move = m->move;
	int rc;

	snprintf(move.state, sizeof(move.state), "%s", state);
	snprintf(move.text, sizeof(move.text), "%s", why);
	move.decided_ns = loop_real_ns(m->home->base->loop);
	/* It stood still while this was not decided. */
	if (m->source_held)
		move.frozen_ms +=
			(loop_boot_ns(m->home->base->loop) - m->since_ns) / CLOCK_NS_PER_MS;
	rc = journal_move_decide(m->home->journal, m->job, &move, err);
	if (rc)
		return rc;
	if (!strcmp(state, "resumed"))
		moving_hand_lease_on(m, true);
	m->move = move;
	m->decided = true;
	log_write(m->home->base->log, LOG_L_INFO, "job %s %s from %s to %s%s%.200s", m->job,
		  strcmp(state, "resumed") ? "does not move" : "moves", move.source, move.target,
		  *why ? ": " : "", why);
	moving_await_disk(m);
	return 0;
}

void moving_give_up(struct home_moving *m, const char *why)
{
	struct iocom_err err = {0};

	if (m->move.number && !m->decided && !moving_decide(m, "aborted", why, &err))
		return; /* this has told, and freed M, or will */
	moving_tell(m, NULL, why);
	if (m->decided)
		return;
	m->over = true;
	if (!m->asking)
		moving_free(m);
}

/* --- held ------------------------------------------------------------------------------------- */

/* Who asks must be one of the two.  Returns 0 or -EACCES. */
static int held_check(const struct journal_move *move, const struct peer_request *r)
{
	return strcmp(r->held.there ? move->target : move->source, r->from) ? -EACCES : 0;
}

/* A move of an earlier agent gets a struct when a node asks about it. */
static struct home_moving *held_adopt(struct home *home, const char *job,
				      const struct journal_move *move)
{
	struct home_moving *m = moving_find(home, job);

	if (m)
		return m->move.number == move->number ? m : NULL;
	return moving_new(home, job, move);
}

/* Takes what one of the nodes says of M, which is not decided.  The last one decides. */
static int held_take(struct home_moving *m, const struct peer_held *held, uint64_t ticket,
		     struct iocom_err *err)
{
	if (held->there) {
		m->target_held = true;
		m->target_ticket = ticket;
	} else {
		m->source_ticket = ticket;
		m->move.frozen_ms = held->frozen_ms;
		m->move.dump_ms = held->dump_ms;
		m->move.bytes = held->bytes;
		if (held->failed)
			return moving_decide(m, "aborted", held->text, err);
		if (!m->source_held)
			m->since_ns = loop_boot_ns(m->home->base->loop);
		m->source_held = true;
	}
	if (!m->source_held || !m->target_held)
		return 0;
	if (lease_is_lost(m->home, m->job, m->move.source))
		return moving_decide(m, "aborted", "its lease is over", err);
	return moving_decide(m, "resumed", "", err);
}

/* The journal has MOVE, which is not decided. */
static int held_undecided(struct home *home, const struct peer_request *r,
			  const struct journal_move *move, uint64_t ticket)
{
	struct home_moving *m = held_adopt(home, r->job, move);
	struct iocom_err err = {0};

	if (!m)
		return 0; /* wait */
	if (!held_take(m, &r->held, ticket, &err))
		return PEERS_LATER;
	base_journal_failed(home->base, &err);
	*(r->held.there ? &m->target_ticket : &m->source_ticket) = 0;
	return 0;
}

int home_on_held(void *arg, const struct peer_request *r, uint64_t ticket,
		 struct peer_answer *answer)
{
	struct home *home = arg;
	struct home_moving *m = moving_find(home, r->job);
	struct iocom_err err = {0};
	struct journal_move move;
	int rc = journal_move_get(home->journal, r->job, r->held.number, &move, &err);

	if (rc && rc != -ENOENT)
		return -EIO; /* no answer: the node asks again */
	answer->ok = true;
	if (rc) { /* pruned, or forged: the job stays where it was */
		answer->decision = r->held.there ? PEER_ABORT : PEER_STAY;
		return 0;
	}
	if (held_check(&move, r)) {
		home->base->counters->controls_refused++;
		peer_answer_refuse(answer, "the job does not move there");
		return 0;
	}
	answer->decision = decision_for(&move, r->held.there);
	if (answer->decision == PEER_WAIT)
		return held_undecided(home, r, &move, ticket);
	if (!m || m->over || m->move.number != move.number || (m->durable && r->held.there))
		return 0;
	/* It hears of the decision when the disk has it, and its source when it runs there. */
	*(r->held.there ? &m->target_ticket : &m->source_ticket) = ticket;
	if (!m->durable)
		moving_await_disk(m);
	return PEERS_LATER;
}

/*
 * The source lost it, and nothing of it runs there, but the target holds it whole.  Returns true:
 * it goes on there.
 */
bool home_move_saves(struct home *home, const char *job, bool lost)
{
	struct home_moving *m = moving_find(home, job);
	struct iocom_err err = {0};

	if (!lost || !m || m->decided || !m->target_held ||
	    lease_is_lost(home, job, m->move.source))
		return false;
	if (!moving_decide(m, "resumed", "", &err))
		return true;
	base_journal_failed(home->base, &err);
	return false;
}

void home_move_started(struct home *home, const char *job, const char *from)
{
	struct home_moving *m = moving_find(home, job);

	if (!m || !m->decided || strcmp(m->move.target, from) != 0)
		return;
	m->runs = true;
	if (m->durable && !m->over)
		moving_over(m);
}

void home_move_lost(struct home *home, const char *job)
{
	struct home_moving *m = moving_find(home, job);

	if (!m || m->over)
		return;
	if (!m->decided) {
		moving_give_up(m, "its lease is over");
		return;
	}
	m->runs = true; /* or never will: its source may leave */
	if (m->durable)
		moving_over(m);
}

/* It was to go on there and never did, and its source has not been told to leave. */
static bool moving_undo(struct home_moving *m, const char *why)
{
	struct journal_move move = m->move;
	struct iocom_err err = {0};

	snprintf(move.state, sizeof(move.state), "aborted");
	snprintf(move.text, sizeof(move.text), "%s", why);
	/* A lease that is over may have been given to another attempt, or will be. */
	if (lease_is_lost(m->home, m->job, m->move.target) ||
	    journal_move_undo(m->home->journal, m->job, &move, &err))
		return false;
	moving_hand_lease_on(m, false);
	m->move = move;
	moving_await_disk(m);
	return true;
}

bool home_move_failed_there(struct home *home, const char *job, const char *from, bool never,
			    const char *why)
{
	struct iocom_err err = {0};
	struct home_moving *m;
	struct journal_move move;
	char text[PEER_TEXT_MAX];

	if (journal_move_get(home->journal, job, 0, &move, &err) || strcmp(move.target, from) != 0)
		return false;
	snprintf(text, sizeof(text), "%.200s", *why ? why : "the other node lost it");
	m = moving_find(home, job);
	if (!strcmp(move.state, "resumed") && m && m->decided && !m->runs && never &&
	    moving_undo(m, text))
		return true;
	if (!strcmp(move.state, "resumed")) {
		home_move_started(home, job, from); /* it did, or is lost: the source may leave */
		return false;
	}
	if (!strcmp(move.state, "asked")) {
		m = held_adopt(home, job, &move);
		if (m)
			moving_give_up(m, text);
	}
	return true;
}

/* --- those that take too long ------------------------------------------------------------------
 */

/* Whether the source has begun: it lets go of no job that is on its way. */
static void moving_looked(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct home_moving *m = arg;

	(void)why;
	if (moving_heard(m) && !rc && answer->ok && !m->source_held)
		moving_give_up(m, "it did not begin to move");
}

static void moving_look(struct home_moving *m)
{
	struct peer_request request = {.type = PEER_MOVABLE};
	struct iocom_err err = {0};

	m->since_ns = loop_boot_ns(m->home->base->loop);
	memcpy(request.job, m->job, sizeof(request.job));
	(void)moving_ask(m, m->move.source, &request, moving_looked, &err);
}

void home_move_chores(struct home *home)
{
	uint64_t now = loop_boot_ns(home->base->loop);
	struct home_moving *next;

	for (struct home_moving *m = home->moves; m; m = next) {
		uint64_t age_ns = now - m->since_ns;
		char why[PEER_TEXT_MAX];

		next = m->next;
		if (m->decided || m->asking)
			continue;
		if (now - m->begun_ns >= MOVE_MOST_NS) {
			moving_give_up(m, "it took too long");
			continue;
		}
		if (m->source_held && !m->target_held && age_ns >= MOVE_ONE_HELD_NS) {
			snprintf(why, sizeof(why), "node %s does not say that it has it",
				 m->move.target);
			moving_give_up(m, why);
		} else if (!m->source_held && age_ns >= MOVE_SILENT_NS) {
			moving_look(m);
		}
	}
}

void home_move_ended(struct home *home, const char *job)
{
	struct home_moving *m = moving_find(home, job);

	if (m && m->decided)
		return;
	if (m)
		moving_give_up(m, "the job has ended");
	else
		(void)home_move_clear(home, job, &(struct iocom_err){0});
}

void home_move_stop(struct home *home)
{
	while (home->moves) {
		moving_tell(home->moves, NULL, "the agent is stopping");
		moving_free(home->moves);
	}
}
