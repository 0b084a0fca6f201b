/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The process that looks up names; see names.h.  Its workers take the questions from one socket,
 * each the next one, and so need no lock.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/thread.h"
#include "agent/net/confine.h"
#include "agent/net/names_packet.h"

#define HELPER_FD    3
#define HELPER_STACK (1u << 20) /* modules of the name service are not all thrifty */

/* --- one look-up -------------------------------------------------------------------------- */

/* nng cannot dial an address that needs a scope. */
static bool names_helper_print(const struct sockaddr *sa, char *out)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family == AF_INET)
		return inet_ntop(AF_INET, &four->sin_addr, out, INET6_ADDRSTRLEN);
	return sa->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) &&
	       inet_ntop(AF_INET6, &six->sin6_addr, out, INET6_ADDRSTRLEN);
}

static void names_helper_look_up(const char *host, struct names_reply *reply)
{
	const struct addrinfo hints = {.ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(host, NULL, &hints, &list);
	const char *why = rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);

	if (rc) {
		snprintf(reply->why, sizeof(reply->why), "%s", why);
		return;
	}
	for (const struct addrinfo *i = list; i && reply->n < NAMES_ADDRESSES_MAX; i = i->ai_next)
		reply->n += names_helper_print(i->ai_addr, reply->addresses[reply->n]);
	freeaddrinfo(list);
	if (!reply->n)
		snprintf(reply->why, sizeof(reply->why), "it has link-local addresses only");
}

static bool names_helper_understands(const struct names_question *q, ssize_t length)
{
	return length == sizeof(*q) && q->slot < NAMES_WORKERS && q->host[0] &&
	       memchr(q->host, '\0', sizeof(q->host));
}

/* The channel's end, or what is no question, is the end of all workers. */
static void *names_helper_work(void *arg)
{
	struct names_question q;

	(void)arg;
	for (;;) {
		ssize_t n = recv(HELPER_FD, &q, sizeof(q), MSG_TRUNC);
		struct names_reply reply = {0};

		if (n < 0 && errno == EINTR)
			continue;
		if (!names_helper_understands(&q, n))
			_exit(n ? 1 : 0);
		reply.slot = q.slot;
		names_helper_look_up(q.host, &reply);
		if (send(HELPER_FD, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			_exit(0);
	}
}

/* --- the process -------------------------------------------------------------------------- */

/* It ends with the channel or its parent, not with signals to its group. */
static void names_helper_signals(void)
{
	static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		signal(ours[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int names_helper_threads(struct iocom_err *err)
{
	for (int i = 0; i < NAMES_WORKERS; i++) {
		pthread_t thread;
		int rc = thread_start(&thread, HELPER_STACK, names_helper_work, NULL);

		if (rc)
			return iocom_err_set(err, rc,
					     "cannot start a thread that looks up names: %s",
					     strerror(-rc));
		pthread_detach(thread);
	}
	return 0;
}

static int names_helper_confine(uid_t uid, gid_t gid, pid_t parent, struct iocom_err *err)
{
	int rc = chdir("/") ? -errno : 0;

	if (!rc)
		rc = confine_limits(err);
	if (!rc)
		rc = confine_become(uid, gid, err);
	if (!rc)
		rc = confine_to_parent(parent, err);
	return rc;
}

static _Noreturn void names_helper_run(int fd, uid_t uid, gid_t gid, pid_t parent)
{
	struct names_ready ready = {0};

	/* Nothing else of the parent's is left: neither the gate nor a socket of the network. */
	if (fd != HELPER_FD && dup2(fd, HELPER_FD) < 0)
		_exit(1);
	if (close_range(HELPER_FD + 1, UINT_MAX, 0))
		_exit(1);
	names_helper_signals();
	prctl(PR_SET_NAME, "iocom-names");
	ready.rc = names_helper_confine(uid, gid, parent, &ready.err);
	if (!ready.rc)
		ready.rc = names_helper_threads(&ready.err);
	if (!ready.rc)
		ready.rc = confine_alone(&ready.err);
	if (send(HELPER_FD, &ready, sizeof(ready), MSG_NOSIGNAL) < 0 || ready.rc)
		_exit(1);
	for (;;)
		pause();
}

/* --- in the parent ------------------------------------------------------------------------ */

static int names_helper_wait(int fd, struct iocom_err *err)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct names_ready ready;
	ssize_t n;
	int rc;

	do
		rc = poll(&p, 1, NAMES_START_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return iocom_err_set(err, -ETIMEDOUT,
				     "the process that looks up names does not start");
	n = recv(fd, &ready, sizeof(ready), MSG_DONTWAIT);
	if (n != sizeof(ready))
		return iocom_err_set(err, -EPIPE, "the process that looks up names has ended");
	if (ready.rc)
		return iocom_err_set(err, ready.rc < 0 ? ready.rc : -EIO, "%.*s",
				     (int)sizeof(ready.err.text) - 1, ready.err.text);
	return 0;
}

int names_start(uid_t uid, gid_t gid, struct names_helper *helper, struct iocom_err *err)
{
	pid_t parent = getpid();
	int ends[2], rc;

	*helper = (struct names_helper){.fd = -1, .pid = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return iocom_err_set(err, -errno, "cannot make a socket pair: %s", strerror(errno));
	helper->pid = fork();
	if (helper->pid == 0)
		names_helper_run(ends[1], uid, gid, parent);
	rc = helper->pid < 0 ? iocom_err_set(err, -errno, "cannot fork: %s", strerror(errno)) : 0;
	close(ends[1]);
	if (!rc)
		rc = names_helper_wait(ends[0], err);
	if (!rc) {
		helper->fd = ends[0];
		return 0;
	}
	close(ends[0]);
	if (helper->pid > 0) {
		kill(helper->pid, SIGKILL);
		while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*helper = (struct names_helper){.fd = -1, .pid = -1};
	return rc;
}
