/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shim's loop: eight descriptors.  poll, not epoll, because what is waited
 * for changes with every credit: rebuilding eight entries costs less than the
 * epoll_ctl calls would.
 */
#include "agent/shim/shim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/rejoin.h"
#include "agent/shim/tty.h"

enum entry {
	ENTRY_STDIO = 0,
	ENTRY_CLIENT = 3,
	ENTRY_CHILD,
	ENTRY_LEASH,
	ENTRY_CONTROL,
	ENTRY_HOME,
	ENTRIES
};

void shim_client_lost(struct shim *shim)
{
	if (shim->client_gone)
		return;
	shim->client_gone = true;
	shim->gone_ms = shim_now_ms();
	/* One that broke the rules is there still, and shall know. */
	shutdown(shim->client.fd, SHUT_RDWR);
}

static void kill_all(struct shim *shim)
{
	if (!shim->killed)
		shim->killed_ms = shim_now_ms();
	shim->killed = true;
	cgroup_kill(&shim->group);
}

/*
 * Signals go to the first process's group, as from a terminal; where the job has
 * one, to its foreground.  The first process's group is
 * orphaned here (its session is its own), and an orphaned group ignores TSTP:
 * STOP stands for it.  KILL means the whole job.
 */
static int send_signal(struct shim *shim, int signal)
{
	pid_t group = shim->child.pid;

	/* None began here: its number is 0 (us), or by now perhaps a stranger's. */
	if (!shim->started_ms)
		return ESRCH;
	if (signal == SIGKILL) {
		kill_all(shim);
		return 0;
	}
	if (shim->main_ended) {
		if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
			kill_all(shim); /* only leftovers are there */
		return 0;
	}
	if (signal == SIGTSTP)
		signal = SIGSTOP;
	if (shim->streams.tty)
		group = tty_foreground(streams_tty(&shim->streams), group);
	/* A hang-up is for the session too, as the kernel has it. */
	if (signal == SIGHUP && group != shim->child.pid)
		kill(-shim->child.pid, signal);
	if (!kill(-group, signal))
		return 0;
	return kill(shim->child.pid, signal) ? errno : 0;
}

static int loop_take_frame(struct shim *shim, uint8_t type, const uint8_t *payload, uint32_t length)
{
	switch (type) {
	case FRAME_DATA:
	case FRAME_CREDIT:
		return streams_take(&shim->streams, &shim->client, type, payload, length);
	case FRAME_SIGNAL:
		if (length != 1 || payload[0] == 0 || payload[0] >= _NSIG)
			return -EPROTO;
		send_signal(shim, payload[0]);
		return 0;
	case FRAME_EXIT:
		if (length || !shim->told_exit)
			return -EPROTO;
		shim->known = true;
		return 0;
	case FRAME_WINSIZE:
		return shim->streams.tty ? tty_resize(streams_tty(&shim->streams), payload, length)
					 : -EPROTO;
	default:
		return -EPROTO;
	}
}

int shim_serve_client(struct shim *shim)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = wire_fill(&shim->client);

	if (rc <= 0)
		return rc;
	while ((rc = wire_next(&shim->client, &type, &payload, &length)) == 0) {
		rc = loop_take_frame(shim, type, payload, length);
		if (rc)
			break;
	}
	if (rc == FRAME_E_MORE)
		return 0;
	if (rc == -EPROTO && shim->streams.why)
		(void)wire_error(&shim->client, shim->streams.why);
	return rc < 0 ? rc : -EPROTO;
}

static void take_status(struct shim *shim)
{
	struct rusage usage;
	int status;

	if (wait4(shim->child.pid, &status, WNOHANG, &usage) != shim->child.pid)
		return;
	shim->main_ended = true;
	shim->ended_ms = shim_now_ms();
	shim->end.kind = WIFSIGNALED(status) ? 1 : 0;
	shim->end.value = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	shim->end.max_rss_kb = (uint64_t)usage.ru_maxrss;
	close(shim->child.pidfd);
	shim->child.pidfd = -1;
}

void shim_serve_control(struct shim *shim)
{
	struct leash_request request;

	switch (leash_serve(&shim->leash, &request)) {
	case LEASH_SIGNAL:
		leash_answer(request.connection, send_signal(shim, request.signal));
		break;
	case LEASH_ATTACH:
		shim_attach(shim, request.stream, &request.ask);
		break;
	default:
		break;
	}
}

/* When something must happen though no descriptor stirs; UINT64_MAX never. */
static uint64_t deadline(const struct shim *shim)
{
	const struct streams *streams = &shim->streams;
	uint64_t quiet_ms, grace_ms = UINT64_MAX;

	if (shim->killed && !shim->main_ended)
		return shim->killed_ms + SHIM_SILENCE_MS;
	if (shim->hung_up && !shim->main_ended)
		return shim->hung_up_ms + SHIM_HANGUP_MS;
	if (shim->client_gone && !shim->detached)
		grace_ms = shim->gone_ms + shim->order.spec.grace_ms;
	if (!shim->main_ended || !streams_waiting(streams))
		return grace_ms;
	quiet_ms =
		shim->ended_ms > streams->last_output_ms ? shim->ended_ms : streams->last_output_ms;
	if (shim->killed && shim->killed_ms > quiet_ms)
		quiet_ms = shim->killed_ms;
	quiet_ms += SHIM_SILENCE_MS;
	return quiet_ms < grace_ms ? quiet_ms : grace_ms;
}

/* As a terminal that went away: editors save, shells write their history. */
static void hang_up(struct shim *shim)
{
	streams_close(&shim->streams, 1);
	shim->hung_up = true;
	shim->hung_up_ms = shim_now_ms();
}

/* The deadline passed: grace is over, or the leftovers are silent. */
static void loop_overdue(struct shim *shim)
{
	bool before = shim->killed;

	if (!before && !shim->main_ended)
		lease_client_lost(&shim->lease);
	if (shim->streams.tty && !shim->main_ended && !shim->hung_up && !before) {
		hang_up(shim);
		return;
	}
	kill_all(shim);
	if (shim->main_ended && shim->client_gone && !shim->detached)
		shim->given_up = shim_now_ms() >= shim->gone_ms + shim->order.spec.grace_ms;
	if (!before)
		return;
	if (!shim->main_ended) {
		shim->killed_ms = shim_now_ms(); /* a process in an uninterruptible wait */
		return;
	}
	/* Killed, and a pipe is still open: someone outside the job holds it. */
	if (!shim->given_up) {
		streams_close(&shim->streams, 1);
		streams_close(&shim->streams, 2);
	}
}

static bool loop_over(const struct shim *shim)
{
	return shim->main_ended && (shim->given_up || streams_ended(&shim->streams));
}

/*
 * When the lease ends, 0 never.  What the first process left behind is of the job as
 * well; a job of which nothing runs, only its client has not read all, has its end.
 */
static uint64_t lease_end(const struct shim *shim)
{
	if (!shim->lease.until_ms || shim->lease.why)
		return 0;
	return shim->main_ended && !cgroup_populated(&shim->group) ? 0 : shim->lease.until_ms;
}

/* Until a descriptor stirs, or the time is up. */
static void loop_wait_for(struct shim *shim, struct pollfd entries[ENTRIES])
{
	uint64_t until_ms = deadline(shim), now_ms = shim_now_ms();
	uint64_t lease_ms = lease_end(shim), end_ms = streams_end_due(&shim->streams);
	int limit_ms = wire_look_ms(&shim->client), n;

	streams_poll(&shim->streams, entries);
	entries[ENTRY_CLIENT] = (struct pollfd){
		.fd = shim->client_gone ? -1 : shim->client.fd,
		.events = (short)(POLLIN | (wire_idle(&shim->client) ? 0 : POLLOUT)),
	};
	entries[ENTRY_CHILD] = (struct pollfd){.fd = shim->child.pidfd, .events = POLLIN};
	entries[ENTRY_LEASH] = (struct pollfd){.fd = shim->leash.fd, .events = POLLIN};
	entries[ENTRY_CONTROL] = (struct pollfd){.fd = shim->leash.listen, .events = POLLIN};
	entries[ENTRY_HOME] = renew_poll(&shim->renew);
	if (lease_ms && lease_ms < until_ms)
		until_ms = lease_ms;
	if (end_ms < until_ms)
		until_ms = end_ms;
	if (renew_due(&shim->renew) < until_ms)
		until_ms = renew_due(&shim->renew);
	if (until_ms <= now_ms)
		limit_ms = 0;
	else if (until_ms - now_ms < (uint64_t)limit_ms)
		limit_ms = (int)(until_ms - now_ms);
	n = poll(entries, ENTRIES, limit_ms);
	for (int i = 0; n < 0 && i < ENTRIES; i++)
		entries[i].revents = 0;
}

/* What the client sent, what it can be sent. */
static int serve_streams(struct shim *shim, const struct pollfd entries[ENTRIES])
{
	struct wire *client = shim->client_gone ? NULL : &shim->client;
	int rc = 0;

	if (entries[ENTRY_CLIENT].revents & POLLOUT)
		rc = wire_flush(client);
	if (!rc && entries[ENTRY_CLIENT].revents & ~POLLOUT)
		rc = shim_serve_client(shim);
	/* The job's side goes on whatever became of the client's. */
	if (rc)
		client = NULL;
	if (streams_move(&shim->streams, client, shim_now_ms(), entries) && !rc)
		rc = -EPIPE;
	return rc || !client ? rc : streams_send(&shim->streams, client);
}

/* Asks for the lease; once nothing needs it any more, no longer. */
static void serve_home(struct shim *shim, short revents)
{
	if (!lease_end(shim))
		renew_deinit(&shim->renew);
	else if (renew_serve(&shim->renew, revents, &shim->lease, shim_now_ms()))
		/* The agent kills what outlives its lease: it must know of the new one. */
		leash_started(&shim->leash, shim->leash.pid, shim->leash.cgroup_id);
}

void shim_loop(struct shim *shim)
{
	struct pollfd entries[ENTRIES];

	while (!loop_over(shim)) {
		loop_wait_for(shim, entries);
		/* Also where the job keeps us busy: what it writes may go nowhere. */
		if (serve_streams(shim, entries) || wire_silent(&shim->client))
			shim_client_lost(shim);
		streams_end_again(&shim->streams, shim_now_ms());
		if (entries[ENTRY_LEASH].revents)
			leash_hear(&shim->leash, &shim->lease);
		serve_home(shim, entries[ENTRY_HOME].revents);
		guard_tell(&shim->guard, shim->lease.until_ms);
		/* What ended after its lease is not told as an end of its own. */
		if (lease_end(shim) && lease_over(&shim->lease, shim_now_ms()))
			kill_all(shim);
		if (entries[ENTRY_CHILD].revents)
			take_status(shim);
		if (entries[ENTRY_CONTROL].revents)
			shim_serve_control(shim);
		if (deadline(shim) <= shim_now_ms())
			loop_overdue(shim);
	}
}
