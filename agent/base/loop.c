/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The event loop; see loop.h. */
#include "agent/base/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "user/clock.h"

#define BATCH	       64
#define EARLY_PART     8 /* of a timer's laxness */
#define EARLY_MOST_NS  (100 * CLOCK_NS_PER_MS)
#define POSTS_PER_WAKE 64 /* posts that run before timers and descriptors get their turn */

struct loop {
	int epoll_fd, wake_fd;
	bool stop;
	struct loop_timer *timers; /* sorted by due time */
	struct epoll_event batch[BATCH];
	int nbatch;
	uint64_t slept_until_ns; /* when it woke, or would have at the latest */
	struct loop_fd wake;
	pthread_mutex_t lock; /* guards the post queue only */
	struct loop_post *first, **last;
	unsigned queued; /* posts in the queue */
	bool is_virtual;
	uint64_t boot_ns, real_ns; /* the time of a virtual loop */
};

uint64_t loop_boot_ns(const struct loop *loop)
{
	return loop->is_virtual ? loop->boot_ns : clock_boot_ns();
}

uint64_t loop_real_ns(const struct loop *loop)
{
	return loop->is_virtual ? loop->real_ns : clock_real_ns();
}

static struct loop_post *take_post(struct loop *loop)
{
	struct loop_post *post;

	pthread_mutex_lock(&loop->lock);
	post = loop->first;
	if (post) {
		loop->first = post->next;
		if (!loop->first)
			loop->last = &loop->first;
		post->queued = false;
		loop->queued--;
	}
	pthread_mutex_unlock(&loop->lock);
	return post;
}

static unsigned queue_length(struct loop *loop)
{
	unsigned n;

	pthread_mutex_lock(&loop->lock);
	n = loop->queued;
	pthread_mutex_unlock(&loop->lock);
	return n;
}

static void wake_up(struct loop *loop)
{
	const uint64_t one = 1;

	/*
	 * This cannot block: the counter is far from full, and EAGAIN means that the loop is awake.
	 */
	(void)!write(loop->wake_fd, &one, sizeof(one));
}

/*
 * Runs only the posts that were queued when the loop woke: a post that queues itself again while it
 * runs (a peer that sends without pause) waits for the next round, after the timers.
 */
static void run_posts(void *arg, uint32_t events)
{
	struct loop *loop = arg;
	struct loop_post *post;
	uint64_t count;
	unsigned n;

	(void)events;
	if (read(loop->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	n = queue_length(loop);
	if (n > POSTS_PER_WAKE)
		n = POSTS_PER_WAKE;
	for (; n > 0 && (post = take_post(loop)); n--)
		post->run(post->arg);
	if (queue_length(loop))
		wake_up(loop);
}

void loop_post(struct loop *loop, struct loop_post *post)
{
	bool wake = false;

	pthread_mutex_lock(&loop->lock);
	if (!post->queued) {
		wake = !loop->first;
		post->queued = true;
		post->next = NULL;
		*loop->last = post;
		loop->last = &post->next;
		loop->queued++;
	}
	pthread_mutex_unlock(&loop->lock);
	if (wake)
		wake_up(loop);
}

void loop_unpost(struct loop *loop, struct loop_post *post)
{
	pthread_mutex_lock(&loop->lock);
	for (struct loop_post **p = &loop->first; *p; p = &(*p)->next) {
		if (*p != post)
			continue;
		*p = post->next;
		if (!post->next)
			loop->last = p;
		post->queued = false;
		loop->queued--;
		break;
	}
	pthread_mutex_unlock(&loop->lock);
}

int loop_new(struct loop **out, struct iocom_err *err)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int rc;

	if (!loop)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	loop->last = &loop->first;
	pthread_mutex_init(&loop->lock, NULL);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->wake = (struct loop_fd){.fd = loop->wake_fd, .ready = run_posts, .arg = loop};
	rc = loop->epoll_fd < 0 || loop->wake_fd < 0 ? -errno
						     : loop_add(loop, &loop->wake, EPOLLIN);
	if (rc) {
		loop_free(loop);
		return iocom_err_set(err, rc, "cannot set up the event loop: %s", strerror(-rc));
	}
	*out = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}

static int control(struct loop *loop, int op, struct loop_fd *entry, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = entry};

	return epoll_ctl(loop->epoll_fd, op, entry->fd, &ev) ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_fd *entry, uint32_t events)
{
	int rc = control(loop, EPOLL_CTL_ADD, entry, events);

	entry->active = rc == 0;
	return rc;
}

int loop_change(struct loop *loop, struct loop_fd *entry, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, entry, events);
}

void loop_remove(struct loop *loop, struct loop_fd *entry)
{
	if (!entry->active)
		return;
	control(loop, EPOLL_CTL_DEL, entry, 0);
	entry->active = false;
	for (int i = 0; i < loop->nbatch; i++)
		if (loop->batch[i].data.ptr == entry)
			loop->batch[i].data.ptr = NULL;
}

void loop_cancel(struct loop *loop, struct loop_timer *timer)
{
	if (!timer->active)
		return;
	for (struct loop_timer **p = &loop->timers; *p; p = &(*p)->next) {
		if (*p == timer) {
			*p = timer->next;
			break;
		}
	}
	timer->active = false;
}

void loop_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ns)
{
	struct loop_timer **p = &loop->timers;

	loop_cancel(loop, timer);
	timer->due_ns = loop_boot_ns(loop) + delay_ns;
	timer->early_ns = timer->lax_ns / EARLY_PART;
	if (timer->early_ns > EARLY_MOST_NS)
		timer->early_ns = EARLY_MOST_NS;
	if (timer->early_ns > delay_ns / 2) /* else it might fire again and again */
		timer->early_ns = delay_ns / 2;
	while (*p && (*p)->due_ns <= timer->due_ns)
		p = &(*p)->next;
	timer->next = *p;
	timer->active = true;
	*p = timer;
}

/* Returns until when the loop may wait for the sake of its timers, of which there is one. */
static uint64_t latest_ns(const struct loop *loop)
{
	uint64_t latest = UINT64_MAX;

	for (const struct loop_timer *t = loop->timers; t && t->due_ns < latest; t = t->next)
		if (t->due_ns + t->lax_ns < latest)
			latest = t->due_ns + t->lax_ns;
	return latest;
}

/* Returns a timer that may fire at NOW; those that are due come first. */
static struct loop_timer *loop_ripe(const struct loop *loop, uint64_t now)
{
	struct loop_timer *t = loop->timers;

	if (!t || t->due_ns <= now)
		return t;
	if (loop->is_virtual)
		return NULL;
	while (t && t->due_ns - t->early_ns > now)
		t = t->due_ns > now + EARLY_MOST_NS ? NULL : t->next;
	return t;
}

/* Fires the timers that may; returns the milliseconds until the loop must wake, or -1. */
static int run_timers(struct loop *loop)
{
	uint64_t now = loop_boot_ns(loop), latest;
	struct loop_timer *t;

	while ((t = loop_ripe(loop, now))) {
		loop_cancel(loop, t);
		t->fire(t->arg);
	}
	if (!loop->timers)
		return -1;
	now = loop_boot_ns(loop);
	latest = latest_ns(loop);
	if (latest <= now)
		return 0;
	now = (latest - now) / CLOCK_NS_PER_MS + 1;
	return now > 60000 ? 60000 : (int)now;
}

uint64_t loop_late_ns(const struct loop *loop, const struct loop_timer *timer)
{
	uint64_t now = loop_boot_ns(loop), due = timer->due_ns;

	if (due < loop->slept_until_ns)
		due = loop->slept_until_ns;
	return now > due ? now - due : 0;
}

/* Waits at most WAIT_MS (-1: for ever) for descriptors, and serves those that are ready. */
static int serve(struct loop *loop, int wait_ms)
{
	uint64_t latest = wait_ms < 0 ? UINT64_MAX : (uint64_t)wait_ms * CLOCK_NS_PER_MS;
	int served;

	if (wait_ms > 0)
		latest += loop_boot_ns(loop);
	loop->nbatch = epoll_wait(loop->epoll_fd, loop->batch, BATCH, wait_ms);
	if (loop->nbatch < 0 && errno != EINTR)
		return -errno;
	if (wait_ms) {
		loop->slept_until_ns = loop_boot_ns(loop);
		if (loop->slept_until_ns > latest)
			loop->slept_until_ns = latest;
	}
	for (int i = 0; i < loop->nbatch && !loop->stop; i++) {
		struct loop_fd *entry = loop->batch[i].data.ptr;

		if (entry)
			entry->ready(entry->arg, loop->batch[i].events);
	}
	served = loop->nbatch > 0 ? loop->nbatch : 0;
	loop->nbatch = 0;
	return served;
}

int loop_look(struct loop *loop)
{
	int served;

	loop->stop = false;
	do
		served = serve(loop, 0);
	while (served == BATCH && !loop->stop);
	return served < 0 ? served : 0;
}

int loop_pollfd(const struct loop *loop)
{
	return loop->epoll_fd;
}

int loop_run(struct loop *loop)
{
	int rc = 0;

	loop->stop = false;
	while (!loop->stop && rc >= 0) {
		int wait_ms = run_timers(loop);

		if (!loop->stop)
			rc = serve(loop, wait_ms);
	}
	return rc < 0 ? rc : 0;
}

int loop_new_virtual(struct loop **out, uint64_t boot_ns, uint64_t real_ns, struct iocom_err *err)
{
	int rc = loop_new(out, err);

	if (rc)
		return rc;
	(*out)->is_virtual = true;
	(*out)->boot_ns = boot_ns;
	(*out)->real_ns = real_ns;
	return 0;
}

void loop_advance(struct loop *loop, uint64_t span_ns)
{
	uint64_t until = loop->boot_ns + span_ns;

	loop->stop = false;
	while (!loop->stop) {
		uint64_t next = until;

		run_timers(loop);
		if (loop->stop || serve(loop, 0) > 0)
			continue;
		if (loop->timers && loop->timers->due_ns < until)
			next = loop->timers->due_ns;
		if (next <= loop->boot_ns && !(loop->timers && loop->timers->due_ns <= until))
			return;
		if (next > loop->boot_ns) {
			loop->real_ns += next - loop->boot_ns;
			loop->boot_ns = next;
		}
	}
}

void loop_spend(struct loop *loop, uint64_t span_ns)
{
	loop->boot_ns += span_ns;
	loop->real_ns += span_ns;
}
