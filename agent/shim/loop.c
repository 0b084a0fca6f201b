/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The shim's loop over eleven descriptors. It uses poll because the events change with every
 * credit: rebuilding them is cheaper than the epoll_ctl calls would be.
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

#include "agent/init/init.h"
#include "agent/shim/rejoin.h"
#include "agent/shim/tty.h"
#include "user/clock.h"
#include "user/ending_signal.h"

#define AUDIT_LOOK_MS 1000 /* between looks whether the audit log was told */

enum entry {
	ENTRY_STDIO = 0,
	ENTRY_CLIENT = 3,
	ENTRY_CHILD,
	ENTRY_LEASH,
	ENTRY_CONTROL,
	ENTRY_HOME,
	ENTRY_GANG,
	ENTRY_DEPART,
	ENTRY_SOURCE,
	ENTRIES
};

void shim_client_lost(struct shim *shim)
{
	if (shim->client_gone)
		return;
	shim->client_gone = true;
	shim->gone_ms = shim_now_ms();
	/* A client that broke the rules is still connected and must notice. */
	shutdown(shim->client.fd, SHUT_RDWR);
}

/* SIGNAL is about to reach the job.  What its launcher left behind says nothing of its end. */
static void shim_tell_gang(struct shim *shim, int signal)
{
	if (!shim->main_ended &&
	    gang_line_signal(&shim->gang, shim->client_gone ? NULL : &shim->client, signal))
		shim_client_lost(shim);
}

static void kill_all(struct shim *shim)
{
	if (!shim->killed) {
		shim_tell_gang(shim, SIGKILL);
		shim->killed_ms = shim_now_ms();
	}
	shim->killed = true;
	cgroup_kill(&shim->group);
}

/*
 * Sends SIGNAL to the first process's group, as a terminal does, or to the foreground group of
 * the job's terminal. The first process leads a session of its own, so its group is orphaned and
 * ignores SIGTSTP; we send SIGSTOP instead. SIGKILL kills the whole job.
 */
int shim_signal(struct shim *shim, int signal)
{
	pid_t group = shim->child.pid;

	/* No process began here: the pid is 0 (our own group) or may belong to a stranger now. */
	if (!shim->started_ms)
		return ESRCH;
	if (depart_keep_signal(&shim->depart, signal))
		return 0;
	shim_tell_gang(shim, signal);
	if (signal == SIGKILL) {
		kill_all(shim);
		return 0;
	}
	if (shim->main_ended) {
		if (signal_asks_to_end(signal))
			kill_all(shim); /* only leftovers of the job run */
		return 0;
	}
	if (signal == SIGTSTP)
		signal = SIGSTOP;
	if (shim->streams.tty)
		group = tty_foreground(streams_tty(&shim->streams), group);
	/* The kernel also sends a hang-up to the session's leader, so we do the same. */
	if (signal == SIGHUP && group != shim->child.pid)
		kill(-shim->child.pid, signal);
	if (!kill(-group, signal))
		return 0;
	return kill(shim->child.pid, signal) ? errno : 0;
}

int shim_take_frame(struct shim *shim, uint8_t type, const uint8_t *payload, uint32_t length)
{
	switch (type) {
	case FRAME_DATA:
	case FRAME_CREDIT:
		return streams_take(&shim->streams, &shim->client, type, payload, length);
	case FRAME_SIGNAL:
		if (length != 1 || payload[0] == 0 || payload[0] >= _NSIG)
			return -EPROTO;
		(void)shim_signal(shim, payload[0]);
		return 0;
	case FRAME_EXIT:
		if (length || !shim->told_exit)
			return -EPROTO;
		shim->known = true;
		return 0;
	case FRAME_WINSIZE:
		return shim->streams.tty ? tty_resize(streams_tty(&shim->streams), payload, length)
					 : -EPROTO;
	case FRAME_STAGE: /* it was on its way when this ended */
		return shim->order.spec.data ? 0 : -EPROTO;
	case FRAME_GANG:
		return gang_line_take(&shim->gang, payload, length);
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
		rc = shim_take_frame(shim, type, payload, length);
		if (rc)
			break;
	}
	if (rc == FRAME_E_MORE)
		return 0;
	if (rc == -EPROTO && shim->streams.why)
		(void)wire_error(&shim->client, shim->streams.why);
	return rc < 0 ? rc : -EPROTO;
}

/* Closes what tells of the end of the first process. */
static void loop_close_child(struct child *child)
{
	if (child->pidfd >= 0)
		close(child->pidfd);
	if (child->status >= 0)
		close(child->status);
	child->pidfd = child->status = -1;
}

/* The first process, or the command under an init, has ended. */
static void loop_ended(struct shim *shim, const struct init_end *end)
{
	bool signalled = WIFSIGNALED(end->status);

	shim->main_ended = true;
	shim->ended_ms = shim_now_ms();
	shim->end.kind = signalled ? 1 : 0;
	shim->end.value = (uint32_t)(signalled ? WTERMSIG(end->status) : WEXITSTATUS(end->status));
	shim->end.max_rss_kb = end->max_rss_kb;
	shim->end.cpu_us = shim->cpu_before_us + end->cpu_us;
	shim->end.begin_us = shim->child.begin_us;
	loop_close_child(&shim->child);
}

/* Reads what init says.  Returns false: nothing; from now on the end of init itself is waited for.
 */
static bool take_init_word(struct child *child, struct init_end *end)
{
	if (child->status < 0)
		return false;
	if (read(child->status, end, sizeof(*end)) == (ssize_t)sizeof(*end))
		return true;
	close(child->status);
	child->status = -1;
	return false;
}

static void take_status(struct shim *shim)
{
	struct init_end end = {0};
	struct rusage usage;

	if (!take_init_word(&shim->child, &end)) {
		if (wait4(shim->child.pid, &end.status, WNOHANG, &usage) != shim->child.pid)
			return;
		end.max_rss_kb = (uint64_t)usage.ru_maxrss;
		end.cpu_us = clock_usage_us(&usage);
	}
	loop_ended(shim, &end);
}

/* The job does not move after all, and gets the signals that came meanwhile. */
static void loop_stays(struct shim *shim)
{
	struct iocom_err err = {0};
	uint64_t kept = shim->depart.signals;

	if (!depart_settled(shim, &err))
		return;
	shim->depart.signals = 0;
	if (*err.text) {
		snprintf(shim->end.text, sizeof(shim->end.text), "%.255s", err.text);
		if (shim->lease.until_ms && !shim->lease.why)
			shim->lease.why = "criu was killed while it saved the job, which was "
					  "damaged and ended; it may run again";
		kill_all(shim);
		return;
	}
	for (int signal = 1; signal < _NSIG; signal++)
		if (kept & 1ULL << (signal - 1))
			(void)shim_signal(shim, signal);
}

static void serve_move(struct shim *shim, struct leash_request *request)
{
	struct iocom_err err = {0};
	int rc = depart_begin(shim, request, &err);

	leash_answer_why(request->connection, -rc, err.text);
	if (request->stream >= 0)
		close(request->stream);
	records_erase(&request->records);
}

void shim_serve_control(struct shim *shim)
{
	struct leash_request request;

	switch (leash_serve(&shim->leash, &request)) {
	case LEASH_SIGNAL:
		if (request.why[0])
			lease_expel(&shim->lease, request.why);
		leash_answer(request.connection, shim_signal(shim, request.signal));
		break;
	case LEASH_MOVE:
		serve_move(shim, &request);
		break;
	case LEASH_STAY:
		leash_answer(request.connection, -depart_stay(shim));
		break;
	case LEASH_LEAVE:
		leash_answer(request.connection, -depart_leave(shim));
		break;
	case LEASH_ATTACH:
		shim_attach(shim, request.stream, request.secure ? &request.records : NULL,
			    &request.ask);
		records_erase(&request.records);
		/* Now, not when something else stirs: a quiet job's output is here already. */
		if (!shim->client_gone && streams_send(&shim->streams, &shim->client))
			shim_client_lost(shim);
		break;
	default:
		break;
	}
}

/* When the loop must act for the job; UINT64_MAX: never. */
static uint64_t loop_job_due(const struct shim *shim)
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

/* Returns when the loop must act even if no descriptor is ready; UINT64_MAX: never. */
static uint64_t deadline(const struct shim *shim)
{
	uint64_t depart_ms = depart_due(&shim->depart), job_ms;

	if (depart_going(&shim->depart))
		return depart_ms;
	job_ms = loop_job_due(shim);
	return job_ms < depart_ms ? job_ms : depart_ms;
}

/* Hangs the terminal up, so that editors save and shells write their history. */
static void hang_up(struct shim *shim)
{
	streams_close(&shim->streams, 1);
	shim->hung_up = true;
	shim->hung_up_ms = shim_now_ms();
}

/* Acts when the deadline has passed: grace is over, or the leftovers are silent. */
static void loop_overdue(struct shim *shim)
{
	bool before = shim->killed;

	if (depart_going(&shim->depart) || depart_due(&shim->depart) <= shim_now_ms()) {
		depart_overdue(shim);
		return;
	}
	if (!before && !shim->main_ended) {
		lease_client_lost(&shim->lease);
		shim->gang.left |= shim->client_gone;
	}
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
		shim->killed_ms = shim_now_ms(); /* a process is in an uninterruptible wait */
		return;
	}
	/* The job was killed but a pipe is still open: a process outside the job holds it. */
	if (!shim->given_up) {
		streams_close(&shim->streams, 1);
		streams_close(&shim->streams, 2);
	}
}

static bool loop_over(const struct shim *shim)
{
	if (shim->depart.state == DEPART_LEFT)
		return true;
	return shim->main_ended && (shim->given_up || streams_ended(&shim->streams));
}

/*
 * Returns when the lease ends; 0: never. What the first process left behind still needs the
 * lease. A job of which nothing runs has ended, even if its client has not read everything.
 */
static uint64_t lease_end(const struct shim *shim)
{
	if (!shim->lease.until_ms || shim->lease.why)
		return 0;
	return shim->main_ended && !cgroup_populated(&shim->group) ? 0 : shim->lease.until_ms;
}

/* Waits until a descriptor is ready or the time is up. */
static void loop_wait_for(struct shim *shim, struct pollfd entries[ENTRIES])
{
	uint64_t until_ms = deadline(shim), now_ms = shim_now_ms();
	uint64_t lease_ms = lease_end(shim), end_ms = UINT64_MAX;
	int limit_ms = wire_look_ms(&shim->client), n;

	streams_poll(&shim->streams, entries);
	entries[ENTRY_CLIENT] = (struct pollfd){
		.fd = shim->client_gone ? -1 : shim->client.fd,
		.events = (short)(POLLIN | (wire_idle(&shim->client) ? 0 : POLLOUT)),
	};
	/* What is in the pipes, and what the client sends, is for the shim where the job goes on.
	 */
	for (int i = 0; i <= ENTRY_CLIENT && depart_going(&shim->depart); i++)
		entries[i].fd = -1;
	entries[ENTRY_CHILD] = (struct pollfd){
		.fd = shim->child.status >= 0 ? shim->child.status : shim->child.pidfd,
		.events = POLLIN,
	};
	if (depart_going(&shim->depart))
		entries[ENTRY_CHILD].fd = -1;
	else
		end_ms = streams_end_due(&shim->streams);
	entries[ENTRY_DEPART] = (struct pollfd){.fd = shim->depart.fd, .events = POLLIN};
	entries[ENTRY_SOURCE] = (struct pollfd){.fd = shim->source.fd, .events = POLLIN};
	entries[ENTRY_LEASH] = (struct pollfd){.fd = shim->leash.fd, .events = POLLIN};
	entries[ENTRY_CONTROL] = (struct pollfd){.fd = shim->leash.listen, .events = POLLIN};
	entries[ENTRY_HOME] = renew_poll(&shim->renew);
	entries[ENTRY_GANG] = (struct pollfd){
		.fd = shim->client_gone ? -1 : shim->gang.fd,
		.events = POLLIN,
	};
	if (lease_ms && lease_ms < until_ms)
		until_ms = lease_ms;
	if (end_ms < until_ms)
		until_ms = end_ms;
	if (renew_due(&shim->renew) < until_ms)
		until_ms = renew_due(&shim->renew);
	if (until_ms <= now_ms || (streams_holds(&shim->streams) && !depart_going(&shim->depart)))
		limit_ms = 0;
	else if (until_ms - now_ms < (uint64_t)limit_ms)
		limit_ms = (int)(until_ms - now_ms);
	if (shim->audit > 0 && limit_ms > AUDIT_LOOK_MS)
		limit_ms = AUDIT_LOOK_MS; /* the end of a process wakes nobody here */
	n = poll(entries, ENTRIES, limit_ms);
	for (int i = 0; n < 0 && i < ENTRIES; i++)
		entries[i].revents = 0;
}

/* Takes what the client sent and sends what it has room for. */
static int serve_streams(struct shim *shim, const struct pollfd entries[ENTRIES])
{
	struct wire *client = shim->client_gone ? NULL : &shim->client;
	int rc = 0;

	if (entries[ENTRY_CLIENT].revents & POLLOUT)
		rc = wire_flush(client);
	if (!rc && entries[ENTRY_CLIENT].revents & ~POLLOUT)
		rc = shim_serve_client(shim);
	/* The job's side goes on even if the client's side failed. */
	if (rc)
		client = NULL;
	if (streams_move(&shim->streams, client, shim_now_ms(), entries) && !rc)
		rc = -EPIPE;
	return rc || !client ? rc : streams_send(&shim->streams, client);
}

/* Renews the lease, and stops when nothing needs it any more. */
static void serve_home(struct shim *shim, short revents)
{
	if (!lease_end(shim))
		renew_deinit(&shim->renew);
	else if (renew_serve(&shim->renew, revents, &shim->lease, shim_now_ms()))
		/* The agent kills a job that outlives its lease, so it must know the new end. */
		leash_started(&shim->leash, shim->leash.pid, shim->leash.cgroup_id);
}

/* Obeys the former shim of a job that came: it hands on signals. */
static void serve_source(struct shim *shim)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = wire_fill(&shim->source), next;

	while (!(next = wire_next(&shim->source, &type, &payload, &length))) {
		if (type != FRAME_SIGNAL || length != 1 || !payload[0] || payload[0] >= _NSIG)
			rc = -EPROTO;
		if (rc == -EPROTO)
			break;
		(void)shim_signal(shim, payload[0]);
	}
	if (rc < 0 || next != FRAME_E_MORE)
		wire_deinit(&shim->source);
}

void shim_loop(struct shim *shim)
{
	struct pollfd entries[ENTRIES];

	while (!loop_over(shim)) {
		loop_wait_for(shim, entries);
		if (shim->audit > 0 && audit_told(shim->audit, 0))
			shim->audit = 0;
		if (entries[ENTRY_DEPART].revents)
			depart_hear(shim);
		loop_stays(shim);
		if (entries[ENTRY_SOURCE].revents)
			serve_source(shim);
		/* Check this every time: a busy job may be writing to a client that is gone. */
		if (!depart_going(&shim->depart) &&
		    (serve_streams(shim, entries) || wire_silent(&shim->client)))
			shim_client_lost(shim);
		if (!depart_going(&shim->depart))
			streams_end_again(&shim->streams, shim_now_ms());
		if (entries[ENTRY_LEASH].revents)
			leash_hear(&shim->leash, &shim->lease);
		serve_home(shim, entries[ENTRY_HOME].revents);
		guard_tell(&shim->guard, shim->lease.until_ms);
		/* If the lease ended first, the job's own end must not be reported. */
		if (lease_end(shim) && lease_over(&shim->lease, shim_now_ms()))
			kill_all(shim);
		if (entries[ENTRY_CHILD].revents)
			take_status(shim);
		/* Before the end: what a launcher said last is why. */
		if ((entries[ENTRY_GANG].revents || shim->main_ended) && !shim->client_gone &&
		    gang_line_serve(&shim->gang, &shim->client))
			shim_client_lost(shim);
		if (entries[ENTRY_CONTROL].revents)
			shim_serve_control(shim);
		if (deadline(shim) <= shim_now_ms())
			loop_overdue(shim);
	}
}
