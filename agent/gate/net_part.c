/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_part.h. */
#include "agent/gate/net_part.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "user/clock.h"

#define PING_NS	      CLOCK_NS_PER_S
#define PING_LAX_NS   (PING_NS / 4)
#define PING_LATE_NS  (PING_NS / 4)
#define AGAIN_NS      (10 * CLOCK_NS_PER_MS) /* after it has worked for a while */
#define AGAIN_SOON_NS (100 * CLOCK_NS_PER_MS)
#define WORKED_NS     (2 * CLOCK_NS_PER_S)

struct net_part {
	struct net_part_config config;
	const struct base *base;
	struct gate *gate; /* NULL: it is down */
	int pidfd;	   /* -1: none */
	bool ready;
	int ready_rc;
	char ready_why[GATE_SENTENCE_MAX + 1];
	uint64_t began_ns, wait_ns; /* wait_ns: before the next attempt to start it */
	unsigned unanswered;	    /* pings */
	/* Since when it is waited for, and for how long it had waited for a processor then. */
	uint64_t quiet_ns, quiet_waited_ns;
	uint64_t pings, ponged; /* the last one asked, and answered */
	struct loop_timer again, ping;
	struct loop_timer resume; /* it has used up its part of the loop's time */
	bool over;		  /* the gate is broken: `again` ends it */
	bool awaited;		  /* for the first time: what goes wrong is net_part_new's to say */
	struct net_watch *watches;
	struct {
		gate_received received;
		void *arg;
	} handlers[GATE_TYPES];
	struct gate_counts counts;
	uint64_t suppressed; /* of parts that have ended */
};

bool net_part_is_up(const struct net_part *part)
{
	return part && part->gate && part->ready && !part->over;
}

void net_part_serve(struct net_part *part, enum gate_type type, gate_received received, void *arg)
{
	part->handlers[type].received = received;
	part->handlers[type].arg = arg;
}

void net_part_watch(struct net_part *part, struct net_watch *watch)
{
	watch->next = part->watches;
	part->watches = watch;
	if (net_part_is_up(part) && watch->up)
		watch->up(watch->arg);
}

void net_part_unwatch(struct net_part *part, struct net_watch *watch)
{
	for (struct net_watch **p = &part->watches; *p; p = &(*p)->next) {
		if (*p != watch)
			continue;
		*p = watch->next;
		return;
	}
}

/* A vector to publish stands for a ping that may be sent soon: the network part takes it for one.
 */
static void net_part_published(struct net_part *part)
{
	const struct loop_timer *ping = &part->ping;

	if (!ping->active || part->unanswered > 1 ||
	    loop_boot_ns(part->base->loop) + PING_LAX_NS < ping->due_ns)
		return;
	part->unanswered++;
	loop_start(part->base->loop, &part->ping, PING_NS);
}

int net_part_send(struct net_part *part, const struct gate_message *m, const void *tail, size_t n,
		  const int *fds)
{
	int rc = net_part_is_up(part) ? gate_send(part->gate, m, tail, n, fds) : -EPIPE;

	if (rc == -ENOBUFS || rc == -ENOMEM)
		part->base->counters->network_refused++;
	if (!rc && m->type == GATE_PUBLISH)
		net_part_published(part);
	return rc;
}

int net_part_send_id(struct net_part *part, enum gate_type type, uint64_t id)
{
	const struct gate_message m = {.type = type, .id = {.id = id}};

	return net_part_send(part, &m, NULL, 0, NULL);
}

size_t net_part_queued(const struct net_part *part)
{
	return part && part->gate ? gate_queued(part->gate) : 0;
}

struct gate_counts net_part_counts(const struct net_part *part)
{
	return part ? part->counts : (struct gate_counts){0};
}

/* --- what it says ------------------------------------------------------------------ */

/* Adds what it has counted since it told last.  Counters only grow; one that does not is ignored.
 */
static void net_part_count(struct net_part *part, const struct gate_counts *now)
{
	struct counters *to = part->base->counters;

#define X(name)                                                                                    \
	if (now->counters.name > part->counts.counters.name)                                       \
		to->name += now->counters.name - part->counts.counters.name;
	GATE_COUNTERS(X)
#undef X
	if (now->log_suppressed > part->counts.log_suppressed)
		part->base->log->suppressed += now->log_suppressed - part->counts.log_suppressed;
	part->counts = *now;
}

static void net_part_tell(struct net_part *part, bool up)
{
	for (struct net_watch *w = part->watches, *next; w; w = next) {
		void (*told)(void *arg) = up ? w->up : w->down;

		next = w->next;
		if (told)
			told(w->arg);
	}
}

static void net_part_ready(struct net_part *part, int rc, const uint8_t *why, size_t n)
{
	part->ready_rc = rc;
	memcpy(part->ready_why, why, n);
	part->ready_why[n] = 0;
	part->ready = rc == 0;
	if (part->ready)
		net_part_tell(part, true);
}

static void net_part_take(struct net_part *part, const struct gate_message *m, uint8_t *tail,
			  size_t n, const int *fds)
{
	if (m->type == GATE_READY && !part->ready)
		net_part_ready(part, m->ready.rc, tail, n);
	else if (m->type == GATE_COUNTS)
		net_part_count(part, &m->counts);
	else if (m->type == GATE_PONG)
		part->ponged = m->id.id;
	else if (part->handlers[m->type].received && part->ready)
		part->handlers[m->type].received(part->handlers[m->type].arg, m, tail, n, fds);
	else
		for (size_t i = 0; i < gate_fds_of(m); i++)
			close(fds[i]);
}

static void net_part_resume(void *arg)
{
	struct net_part *part = arg;

	if (part->gate)
		gate_pause(part->gate, false);
}

/*
 * What it sends is handled in its part of the loop's time, as each user's requests are: however
 * much it sends, the users of this machine get theirs.
 */
static void net_part_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			      const int *fds)
{
	struct net_part *part = arg;
	struct loop_share *shares = part->base->shares;
	uid_t before = loop_share_enter(shares, LOOP_SHARE_NETWORK);

	part->unanswered = 0; /* an answer may wait behind much else */
	net_part_take(part, m, tail, n, fds);
	loop_share_leave(shares, before);
	if (loop_share_spent(shares, LOOP_SHARE_NETWORK) && !part->over) {
		part->base->counters->requests_delayed++;
		gate_pause(part->gate, true);
		loop_start(part->base->loop, &part->resume,
			   loop_share_wait_ns(shares, LOOP_SHARE_NETWORK));
	}
}

/* --- its life ---------------------------------------------------------------------- */

static void net_part_kill(struct net_part *part)
{
	if (part->pidfd >= 0) {
		/* It may have been reaped already. */
		(void)syscall(SYS_pidfd_send_signal, part->pidfd, SIGKILL, NULL, 0);
		close(part->pidfd);
	}
	part->pidfd = -1;
}

/* Ends it, and tells the watches if they knew of it. */
static void net_part_end(struct net_part *part)
{
	struct gate *gate = part->gate;
	bool was_ready = part->ready;

	loop_cancel(part->base->loop, &part->ping);
	loop_cancel(part->base->loop, &part->resume);
	part->gate = NULL;
	part->ready = part->over = false;
	net_part_kill(part);
	gate_free(gate);
	part->counts = (struct gate_counts){0};
	if (was_ready)
		net_part_tell(part, false);
}

/* The gate must not be freed while it calls: `again` does that. */
static void net_part_broken(void *arg, const char *why)
{
	struct net_part *part = arg;
	uint64_t now = loop_boot_ns(part->base->loop);
	bool worked = part->ready && now - part->began_ns >= WORKED_NS;

	if (part->over) /* it was killed, and now the gate has noticed */
		return;
	part->over = true;
	if (part->awaited)
		return;
	part->wait_ns = worked ? AGAIN_NS : part->wait_ns ? 2 * part->wait_ns : AGAIN_SOON_NS;
	if (part->wait_ns > NET_PART_AGAIN_MAX_NS)
		part->wait_ns = NET_PART_AGAIN_MAX_NS;
	part->base->counters->network_restarts++;
	log_write(part->base->log, LOG_L_ERROR,
		  "the network part has ended, or is ended (%s); what runs goes on, and it starts "
		  "again",
		  part->ready_rc ? part->ready_why : why);
	net_part_kill(part);
	loop_start(part->base->loop, &part->again, part->wait_ns);
}

static uint64_t net_part_waited_ns(const struct net_part *part)
{
	const struct net_start *start = &part->config.start;

	return start->waited_ns ? start->waited_ns(start->arg) : 0;
}

/*
 * Whether it is over with it: it has said nothing for SILENT pings.  On a crowded machine it may
 * only not have had its turn; another one in its place would wait as long.
 */
static bool net_part_is_hung(const struct net_part *part, uint64_t pings)
{
	uint64_t waited = net_part_waited_ns(part);
	uint64_t quiet = loop_boot_ns(part->base->loop) - part->quiet_ns;

	return pings > NET_PART_STARVED || waited <= part->quiet_waited_ns ||
	       2 * (waited - part->quiet_waited_ns) < quiet;
}

static void net_part_ping(void *arg)
{
	struct net_part *part = arg;
	const struct gate_message m = {.type = GATE_PING}; /* of no number, see net.c */
	uint64_t began;

	if (!part->gate || part->over)
		return;
	began = loop_boot_ns(part->base->loop) - part->began_ns;
	if (!part->ready && began > NET_PART_READY_MS * CLOCK_NS_PER_MS &&
	    net_part_is_hung(part, began / PING_NS)) {
		net_part_broken(part, "it was not ready in time");
		return;
	}
	/* While this process itself is kept waiting, one of less priority need not be hung. */
	part->unanswered +=
		!part->unanswered || loop_late_ns(part->base->loop, &part->ping) < PING_LATE_NS;
	if (part->ready && part->unanswered == 2) { /* it is late */
		part->quiet_ns = loop_boot_ns(part->base->loop);
		part->quiet_waited_ns = net_part_waited_ns(part);
	}
	if (part->ready && part->unanswered > NET_PART_SILENT &&
	    net_part_is_hung(part, part->unanswered)) {
		net_part_broken(part, "it did not answer in time");
		return;
	}
	(void)gate_send(part->gate, &m, NULL, 0, NULL);
	/* One that is late with an answer is watched exactly. */
	part->ping.lax_ns = part->unanswered > 1 ? 0 : PING_LAX_NS;
	loop_start(part->base->loop, &part->ping, PING_NS);
}

void net_part_drain(struct net_part *part, int limit_ms)
{
	const uint64_t until = clock_boot_ns() + (uint64_t)limit_ms * CLOCK_NS_PER_MS;
	struct gate_message m = {.type = GATE_PING, .id = {.id = part ? ++part->pings : 0}};

	if (!net_part_is_up(part) || gate_send(part->gate, &m, NULL, 0, NULL))
		return;
	while (part->ponged != m.id.id && net_part_is_up(part)) {
		uint64_t now = clock_boot_ns();

		if (now >= until || gate_wait(part->gate, (int)((until - now) / CLOCK_NS_PER_MS)))
			break;
	}
}

static int net_part_begin_at(struct net_part *part, const int ends[2], struct iocom_err *err)
{
	const struct gate_message setup = {.type = GATE_SETUP, .setup = part->config.setup};
	const struct gate_config config = {.loop = part->base->loop,
					   .side = GATE_TO_ROOT,
					   .fd = ends[0],
					   .received = net_part_received,
					   .broken = net_part_broken,
					   .arg = part};
	int fds[GATE_FDS_MAX];
	size_t n = 0;
	int rc = gate_new(&part->gate, &config, err);

	if (rc)
		return rc;
	if (setup.setup.streams)
		fds[n++] = part->config.streams;
	if (setup.setup.http)
		fds[n++] = part->config.http;
	rc = gate_send(part->gate, &setup, NULL, 0, fds);
	if (rc)
		return iocom_err_set(err, rc, "cannot speak to the network part: %s",
				     strerror(-rc));
	return part->config.start.start(part->config.start.arg, ends[1], &part->pidfd, err);
}

static int net_part_begin(struct net_part *part, struct iocom_err *err)
{
	int ends[2], rc = gate_pair(ends, err);

	if (rc)
		return rc;
	part->ready_rc = 0;
	part->unanswered = 0;
	part->began_ns = part->quiet_ns = loop_boot_ns(part->base->loop);
	part->quiet_waited_ns = 0;
	rc = net_part_begin_at(part, ends, err);
	close(ends[1]);
	if (rc)
		net_part_end(part);
	else
		loop_start(part->base->loop, &part->ping, PING_NS);
	return rc;
}

static void net_part_again(void *arg)
{
	struct net_part *part = arg;
	struct iocom_err err;

	net_part_end(part);
	if (!net_part_begin(part, &err))
		return;
	log_write(part->base->log, LOG_L_ERROR, "cannot start the network part: %s", err.text);
	part->wait_ns = NET_PART_AGAIN_MAX_NS;
	loop_start(part->base->loop, &part->again, part->wait_ns);
}

/* Waits until it is ready, or says why not. */
static int net_part_await(struct net_part *part, struct iocom_err *err)
{
	uint64_t until = clock_boot_ns() + NET_PART_READY_MS * CLOCK_NS_PER_MS;
	int rc = 0;

	while (!rc && !part->ready && !part->ready_rc) {
		uint64_t now = clock_boot_ns();

		rc = now < until ? gate_wait(part->gate, (int)((until - now) / CLOCK_NS_PER_MS) + 1)
				 : -ETIMEDOUT;
	}
	if (part->ready)
		return 0;
	if (part->ready_rc)
		return iocom_err_set(err, part->ready_rc, "%s", part->ready_why);
	return iocom_err_set(err, rc, "the network part (iocom-net) %s",
			     rc == -ETIMEDOUT ? "was not ready within 10 s"
					      : "ended before it was ready");
}

int net_part_new(struct net_part **out, const struct net_part_config *config, struct iocom_err *err)
{
	struct net_part *part = calloc(1, sizeof(*part));
	int rc;

	*out = NULL;
	if (!part)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	part->config = *config;
	part->base = config->base;
	part->pidfd = -1;
	part->again = (struct loop_timer){.fire = net_part_again, .arg = part};
	part->ping = (struct loop_timer){.fire = net_part_ping, .arg = part, .lax_ns = PING_LAX_NS};
	part->resume = (struct loop_timer){.fire = net_part_resume, .arg = part};
	part->awaited = true;
	rc = net_part_begin(part, err);
	if (!rc)
		rc = net_part_await(part, err);
	part->awaited = false;
	if (rc) {
		net_part_free(part);
		return rc;
	}
	*out = part;
	return 0;
}

void net_part_free(struct net_part *part)
{
	if (!part)
		return;
	loop_cancel(part->base->loop, &part->again);
	part->watches = NULL;
	net_part_end(part);
	free(part);
}
