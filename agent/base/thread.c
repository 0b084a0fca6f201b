/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See thread.h. */
#include "agent/base/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, size_t stack_bytes, void *(*work)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	int rc = pthread_attr_init(&attributes);

	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attributes, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, &attributes, work, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -rc;
}
