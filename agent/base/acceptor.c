/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See acceptor.h. */
#include "agent/base/acceptor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/base/seldom.h"
#include "user/clock.h"

#define AT_ONCE	 16 /* connections taken before others get their turn */
#define AGAIN_NS (10 * CLOCK_NS_PER_S)

void descriptors_count(uint64_t *open, uint64_t *max)
{
	struct rlimit limit;
	struct stat st;

	*open = !stat("/proc/self/fd", &st) && st.st_size > 0 ? (uint64_t)st.st_size : UINT64_MAX;
	*max = 0;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		*max = limit.rlim_cur > DESCRIPTORS_RESERVED ? limit.rlim_cur - DESCRIPTORS_RESERVED
							     : 1;
}

bool descriptors_scarce(int newest)
{
	uint64_t open, max;

	descriptors_count(&open, &max);
	if (open == UINT64_MAX)
		open = (uint64_t)newest + 1;
	return max && open > max;
}

bool acceptor_must_wait(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void acceptor_pause(struct acceptor *a, int error)
{
	loop_remove(a->base->loop, &a->entry);
	loop_start(a->base->loop, &a->again, ACCEPTOR_PAUSE_NS);
	a->base->counters->accepts_paused++;
	if (!seldom_again(&a->said_ns, loop_boot_ns(a->base->loop), AGAIN_NS))
		return;
	log_write(a->base->log, LOG_L_ERROR,
		  "cannot take a connection: %s; connections wait until there is room (raise the "
		  "limit of open files)",
		  strerror(error));
}

static void acceptor_ready(void *arg, uint32_t events)
{
	struct acceptor *a = arg;

	(void)events;
	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_storage from = {0};
		socklen_t n = sizeof(from);
		int fd = accept4(a->entry.fd, (struct sockaddr *)&from, &n,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			a->came(a->arg, fd, (struct sockaddr *)&from, n);
			if (a->entry.active)
				continue;
			return; /* it is to rest */
		}
		if (acceptor_must_wait(errno))
			acceptor_pause(a, errno);
		return; /* none waits, or one left before we took it */
	}
}

static void acceptor_resume(void *arg)
{
	struct acceptor *a = arg;

	/* The kernel has no memory for it: later. */
	if (loop_add(a->base->loop, &a->entry, EPOLLIN))
		loop_start(a->base->loop, &a->again, ACCEPTOR_PAUSE_NS);
}

void acceptor_rest(struct acceptor *a)
{
	loop_remove(a->base->loop, &a->entry);
	loop_start(a->base->loop, &a->again, CLOCK_NS_PER_MS);
}

int acceptor_start(struct acceptor *a, const struct base *base, int listener)
{
	a->base = base;
	a->entry = (struct loop_fd){.fd = listener, .ready = acceptor_ready, .arg = a};
	a->again = (struct loop_timer){.fire = acceptor_resume, .arg = a};
	return loop_add(base->loop, &a->entry, EPOLLIN);
}

void acceptor_stop(struct acceptor *a)
{
	if (!a->base)
		return;
	loop_cancel(a->base->loop, &a->again);
	loop_remove(a->base->loop, &a->entry);
}
