/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The event loop: one thread, epoll, timers, and a queue through which threads
 * of libraries (nng) hand work to it.  Everything but loop_post is called from
 * the loop's own thread.  All entries are intrusive: the caller owns them and
 * keeps them alive while they are registered.
 */
#ifndef IOCOM_LOOP_H
#define IOCOM_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"

struct loop;

struct loop_fd {
	int fd;
	void (*ready)(void *arg, uint32_t events); /* EPOLLIN and others */
	void *arg;
	bool active;
};

struct loop_timer {
	void (*fire)(void *arg);
	void *arg;
	uint64_t due_ns; /* CLOCK_BOOTTIME */
	/*
	 * It may fire so much later, or an eighth of that earlier if the loop is awake, so that an
	 * idle loop wakes less often: what is due once a second then comes with what is due in each
	 * period.  A virtual loop fires it when it is due.
	 */
	uint64_t lax_ns;
	uint64_t early_ns; /* set by loop_start */
	struct loop_timer *next;
	bool active;
};

struct loop_post {
	void (*run)(void *arg);
	void *arg;
	struct loop_post *next;
	bool queued;
};

/* Returns 0 or negative errno. */
int loop_new(struct loop **loop, struct iocom_err *err);
void loop_free(struct loop *loop); /* NULL is fine */
/* Runs until loop_stop.  Returns 0 or negative errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * For a loop that is not run but looked at: serves what is ready now, without timers.  Returns 0 or
 * negative errno.
 */
int loop_look(struct loop *loop);
/* A descriptor that is readable while something is ready. */
int loop_pollfd(const struct loop *loop);
/* EVENTS: epoll's bits.  Returns 0 or negative errno. */
int loop_add(struct loop *loop, struct loop_fd *entry, uint32_t events);
int loop_change(struct loop *loop, struct loop_fd *entry, uint32_t events);
/* ENTRY is not called again, not even for events already read.  Does not close its descriptor. */
void loop_remove(struct loop *loop, struct loop_fd *entry);

/*
 * The clocks of the whole agent: CLOCK_BOOTTIME, and CLOCK_REALTIME for times that people read.  A
 * virtual loop has its own clocks, which advance only in loop_advance.
 */
uint64_t loop_boot_ns(const struct loop *loop);
uint64_t loop_real_ns(const struct loop *loop);
/* A loop for tests, whose clocks begin at these times.  Returns 0 or negative errno. */
int loop_new_virtual(struct loop **loop, uint64_t boot_ns, uint64_t real_ns, struct iocom_err *err);
/*
 * Lets SPAN_NS pass on a virtual loop: timers fire in order, each at its own time, and ready posts
 * and descriptors run at once.  Ends early after loop_stop.
 */
void loop_advance(struct loop *loop, uint64_t span_ns);
/* For a handler on a virtual loop: it takes SPAN_NS, and nothing else happens meanwhile. */
void loop_spend(struct loop *loop, uint64_t span_ns);

/*
 * For the handler of TIMER: how long the loop kept it waiting.  The loop's own choice to sleep
 * longer for a lax timer does not count, only what it then did with its time, or slept too long.
 */
uint64_t loop_late_ns(const struct loop *loop, const struct loop_timer *timer);

/* (Re)starts a timer that fires once, DELAY_NS from now. */
void loop_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ns);
void loop_cancel(struct loop *loop, struct loop_timer *timer);

/*
 * From any thread: POST->run runs once in the loop's thread.  A post that is
 * still queued is not queued twice.
 */
void loop_post(struct loop *loop, struct loop_post *post);
/* Removes a queued post (its owner goes away). */
void loop_unpost(struct loop *loop, struct loop_post *post);

#endif
