/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that attach later; see rejoin.h. */
#include "agent/shim/rejoin.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/process_slot.h"

#define PLACE_STEP_MS 5
#define PLACE_STEPS   100 /* half a second */

/*
 * Sends the reason and closes. It reads the peer's input first, because closing with unread
 * input would reset the connection and destroy the sentence.
 */
static void say_and_close(struct wire *wire, const char *text)
{
	if (!wire_error(wire, text))
		shutdown(wire->fd, SHUT_WR);
	for (int i = 0; i < 64 && wire_fill(wire) > 0; i++)
		wire_discard(wire);
	wire_deinit(wire);
}

int shim_tell_started(struct shim *shim)
{
	const struct streams *streams = &shim->streams;
	struct attach_state state = {
		.pid = (uint64_t)shim->end.pid,
		.input = streams->sent[0],
		.input_limit = streams->taken[0] + FRAME_WINDOW,
		.detached = shim->detached,
		.tty = streams_tty(streams) >= 0,
	};
	size_t length;
	void *data;
	int rc;

	for (int i = 1; i < FRAME_STREAMS; i++) {
		state.from[i] = streams->sent[i];
		state.lost[i] = streams->spool.info.lost[i - 1];
	}
	rc = attach_state_pack(&state, shim->order.spec.job, shim->order.spec.node, &data, &length);
	if (rc)
		return rc;
	rc = wire_send(&shim->client, FRAME_STARTED, NULL, 0, data, length);
	free(data);
	return rc ? rc : streams_announce(&shim->streams, &shim->client);
}

/*
 * Returns where to begin for a client that asks for the first byte. A client that will see a
 * terminal gets only the recent output.
 */
static uint64_t first_for(const struct streams *streams, int stream, const struct attach_ask *ask)
{
	uint64_t first = streams_first(streams, stream), end;

	if (!ask->recent || !ask->gaps || streams_tty(streams) < 0)
		return first;
	end = streams_end(streams, stream, true);
	if (end - first <= SHIM_SHOW_ALL)
		return first;
	first = end - SHIM_SHOW_LAST;
	return streams->spool.fd[1] >= 0 ? spool_kept(&streams->spool, stream, first) : first;
}

/* Fills FROM and TAKEN. Returns 0, or -ERANGE with the reason in ERR. */
static int find_place(const struct streams *streams, const struct attach_ask *ask,
		      uint64_t from[FRAME_STREAMS], uint64_t taken[FRAME_STREAMS],
		      struct iocom_err *err)
{
	static const char *const names[FRAME_STREAMS] = {"input", "output", "error output"};

	for (int i = 1; i < FRAME_STREAMS; i++) {
		uint64_t first = streams_first(streams, i);
		uint64_t end = streams_end(streams, i, ask->gaps);

		from[i] = ask->from[i];
		if (from[i] == ATTACH_FIRST)
			from[i] = first_for(streams, i, ask);
		/*
		 * If the same client returns, at most one window is in flight or waits at the
		 * client.
		 */
		taken[i] = from[i] > FRAME_WINDOW ? from[i] - FRAME_WINDOW : 0;
		if (ask->from[i] == ATTACH_FIRST || !*ask->resume)
			taken[i] = from[i]; /* nothing is in flight to a new client */
		else if (taken[i] < ask->taken[i])
			taken[i] = ask->taken[i];
		if (taken[i] < first)
			taken[i] = first;
		if (from[i] < first)
			return iocom_err_set(
				err, -ERANGE,
				"byte %llu of the job's %s is not kept any more; the first "
				"kept byte is %llu",
				(unsigned long long)from[i], names[i], (unsigned long long)first);
		if (from[i] > end)
			return iocom_err_set(
				err, -ERANGE, "the job's %s has no byte %llu: it ends at %llu",
				names[i], (unsigned long long)from[i], (unsigned long long)end);
	}
	return 0;
}

/* A killed client is gone before we have read the end of its stream. */
static bool has_client(const struct shim *shim)
{
	struct pollfd p = {.fd = shim->client.fd, .events = POLLRDHUP};

	return !shim->client_gone && poll(&p, 1, 0) <= 0;
}

/* Says from which machine the client came. A connection through the agent has no address. */
static int rejoin_taken(const struct shim *shim, struct iocom_err *err)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);
	char host[INET6_ADDRSTRLEN + 16] = "";
	const char *at = host;

	if (!getpeername(shim->client.fd, (struct sockaddr *)&sa, &length) &&
	    (sa.ss_family == AF_INET || sa.ss_family == AF_INET6))
		(void)getnameinfo((struct sockaddr *)&sa, length, host, sizeof(host), NULL, 0,
				  NI_NUMERICHOST);
	if (!strncmp(host, "::ffff:", 7))
		at += 7;
	return iocom_err_set(err, -EBUSY, "job %s is attached %s%s; --take takes it from there",
			     shim->order.spec.job, *at ? "at " : "already", at);
}

/* Checks whether a new client may replace the present one, which would miss the job's end. */
static int may_take(const struct shim *shim, const struct attach_ask *ask, struct iocom_err *err)
{
	if (*ask->resume || shim->replayed)
		return 0;
	if (shim->order.spec.worker)
		return iocom_err_set(err, -EBUSY,
				     "job %s is a worker of iocom batch, whose output is the "
				     "batch's own",
				     shim->order.spec.job);
	return shim->detached || ask->take || !has_client(shim) ? 0 : rejoin_taken(shim, err);
}

void shim_attach(struct shim *shim, int fd, const struct records *records,
		 const struct attach_ask *ask)
{
	uint64_t from[FRAME_STREAMS] = {0}, left[FRAME_STREAMS] = {0};
	struct iocom_err err = {0};
	struct wire wire;
	int rc = 0;

	if (wire_init(&wire, fd, records)) {
		close(fd);
		return;
	}
	if (strcmp(ask->job, shim->order.spec.job) != 0)
		rc = iocom_err_set(&err, -EINVAL, "this is job %s", shim->order.spec.job);
	else if (!shim->replayed && *ask->resume && strcmp(ask->resume, shim->owner) != 0)
		rc = iocom_err_set(&err, -EBUSY, ATTACH_ELSEWHERE);
	else if (depart_going(&shim->depart) && !*ask->resume)
		rc = iocom_err_set(&err, -EBUSY, "job %s moves to another node just now: try again",
				   shim->order.spec.job);
	else
		rc = may_take(shim, ask, &err);
	if (!rc)
		rc = find_place(&shim->streams, ask, from, left, &err);
	if (rc) {
		say_and_close(&wire, err.text);
		return;
	}
	if (!shim->client_gone)
		say_and_close(&shim->client, ATTACH_ELSEWHERE);
	else
		wire_deinit(&shim->client);
	if (!*ask->resume) {
		memcpy(shim->owner, ask->nonce, sizeof(shim->owner));
		shim->gives = false; /* another client knows nothing of what was to be fetched */
	}
	shim->client = wire;
	shim->client_gone = false;
	shim->told_exit = shim->known = false;
	streams_attach(&shim->streams, from, left, ask->gaps);
	if (shim_tell_started(shim) ||
	    (*ask->resume && gang_line_again(&shim->gang, &shim->client)))
		shim_client_lost(shim);
}

/* Sends the streams, then the exit status. Returns as wire_send. */
static int send_rest(struct shim *shim)
{
	int rc = streams_send(&shim->streams, &shim->client);

	if (rc || shim->told_exit || !streams_sent(&shim->streams))
		return rc;
	if (shim->gives) {
		shim->gives = false;
		stage_give(shim);
		if (shim->client_gone)
			return -EPIPE;
	}
	shim->told_exit = true;
	/* A client that knows gaps was told of each where it is. */
	if (!shim->streams.gaps && shim->streams.spool.fd[1] >= 0) {
		const struct streams *streams = &shim->streams;
		uint64_t lost = streams_end(streams, 1, true) - streams_end(streams, 1, false) +
				streams_end(streams, 2, true) - streams_end(streams, 2, false);
		char text[sizeof(shim->end.text)];

		snprintf(text, sizeof(text),
			 "%llu bytes of the job's output were not kept, or are not shown "
			 "to a program as old as this one",
			 (unsigned long long)lost);
		if (lost && !*shim->end.text)
			return wire_exit(&shim->client, shim->end.kind, shim->end.value, text);
	}
	return wire_exit(&shim->client, shim->end.kind, shim->end.value, shim->end.text);
}

/*
 * Closing a TCP socket with unread input would reset it and could destroy the exit status on its
 * way. So the client closes first; its last credits say what it received.
 */
static void serve_rest(struct shim *shim)
{
	struct pollfd entries[3] = {
		{.fd = shim->client.fd, .events = POLLIN},
		{.fd = shim->leash.listen, .events = POLLIN},
		{.fd = shim->leash.fd, .events = POLLIN},
	};
	int rc = 0;

	if (!wire_idle(&shim->client))
		entries[0].events |= POLLOUT;
	if (poll(entries, 3, 1000) <= 0) {
		if (wire_silent(&shim->client))
			shim_client_lost(shim);
		return;
	}
	if (entries[0].revents & POLLOUT)
		rc = wire_flush(&shim->client);
	if (!rc && entries[0].revents & ~POLLOUT)
		rc = shim_serve_client(shim);
	if (rc)
		shim_client_lost(shim);
	if (entries[1].revents)
		shim_serve_control(shim);
	if (entries[2].revents)
		leash_hear(&shim->leash, &shim->lease);
}

/* Modules may be slow, so this runs when no client waits any more. */
void shim_end_session(struct shim *shim)
{
	pam_finish(shim->pam);
	shim->pam = NULL;
}

/*
 * If the agent took the end and nothing is kept, the agent removes the record within moments,
 * and it needs no sync.
 */
static void sync_end(const struct shim *shim)
{
	bool agent = shim->leash.fd >= 0 || shim->leash.taken;

	if (shim->record >= 0 && (!agent || shim->detached || !shim->known))
		record_sync(shim->record);
}

/* Delivers everything to the client, unless the client is gone. */
static void rejoin_deliver(struct shim *shim)
{
	uint64_t limit_ms = 0;

	while (!shim->client_gone) {
		if (send_rest(shim)) {
			shim_client_lost(shim);
			break;
		}
		if (!shim->told_exit || !wire_idle(&shim->client)) {
			limit_ms = 0;
		} else if (!limit_ms) {
			shutdown(shim->client.fd, SHUT_WR);
			/*
			 * A module that hangs ends the shim, but the client has everything by
			 * now.
			 */
			shim_end_session(shim);
			limit_ms = shim_now_ms() + SHIM_LINGER_MS;
		} else if (shim_now_ms() >= limit_ms) {
			break;
		}
		serve_rest(shim);
	}
}

void shim_deliver(struct shim *shim)
{
	/* The client learns the end before we make a process for the audit log. */
	if (!shim->client_gone && send_rest(shim))
		shim_client_lost(shim);
	if (!shim->replayed)
		shim_audit_end(shim);
	rejoin_deliver(shim);
	if (shim->record >= 0 && !shim->replayed) {
		if (!shim->known || !streams_taken(&shim->streams))
			streams_spill(&shim->streams, shim->order.spill_max);
		spool_note(&shim->streams.spool, shim->record);
	}
	shim_end_session(shim);
	sync_end(shim);
	/* Serves clients that connected during the slow steps. Later clients get what is kept. */
	while (leash_last(&shim->leash)) {
		shim_serve_control(shim);
		rejoin_deliver(shim);
	}
}

/* Returns 0; -ENODATA: the job's end is known, but no output is kept; negative errno with ERR. */
static int rejoin_open_record(struct shim *shim, struct iocom_err *err)
{
	const struct order *order = &shim->order;
	char path[sizeof(order->jobs_dir) + SPEC_JOB_MAX + 2];
	bool killed = false;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/%s", order->jobs_dir, order->ask.job);
	shim->record = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (shim->record < 0)
		rc = -errno;
	if (!rc && record_read_exit(shim->record, &shim->end)) {
		killed = true;
		shim->end = (struct record_exit){.kind = 3, .value = 255};
		snprintf(shim->end.text, sizeof(shim->end.text),
			 "the job's supervisor was killed; the job was ended, its outcome is "
			 "unknown");
	}
	if (!rc)
		rc = spool_open(&shim->streams.spool, shim->record);
	shim->streams.record = shim->record;
	if (rc == -ENOENT && shim->record >= 0 && !killed)
		return -ENODATA;
	return rc ? iocom_err_set(
			    err, rc, "%snothing is kept of the output of job %s",
			    killed ? "the supervisor was killed, how the job ended is unknown; "
				   : "",
			    order->ask.job)
		  : 0;
}

/*
 * Takes the lock file that we hold as long as we live. A supervisor that has just ended may still
 * hold it, and an agent that looks who holds it does so for a moment. Returns 0 or negative errno.
 */
static int rejoin_take_place(const struct order *order, struct iocom_err *err)
{
	const struct timespec step = {.tv_nsec = (long)(PLACE_STEP_MS * CLOCK_NS_PER_MS)};
	int rc = *order->slot ? process_slot_take(order->slot, order->reader) : 0;

	for (int i = 0; rc == -EWOULDBLOCK && i < PLACE_STEPS; i++) {
		nanosleep(&step, NULL);
		rc = process_slot_take(order->slot, order->reader);
	}
	if (rc == -EWOULDBLOCK)
		return iocom_err_set(err, rc,
				     "others are reading the output of ended jobs now; try again");
	return rc < 0 ? iocom_err_set(err, rc, "cannot take the lock file %s: %s", order->slot,
				      strerror(-rc))
		      : 0;
}

int shim_replay(struct shim *shim, struct iocom_err *err)
{
	struct attach_ask ask = shim->order.ask;
	int rc, fd;

	shim->replayed = true;
	snprintf(shim->order.spec.job, sizeof(shim->order.spec.job), "%s", ask.job);
	snprintf(shim->order.spec.node, sizeof(shim->order.spec.node), "%s", ask.node);
	rc = rejoin_take_place(&shim->order, err);
	if (!rc)
		rc = rejoin_open_record(shim, err);
	/* A client that returns for the rest must not get an end that looks complete. */
	if (rc == -ENODATA && *ask.resume)
		rc = iocom_err_set(err, rc, "nothing is kept of the output of job %s", ask.job);
	else if (rc == -ENODATA) {
		char text[ATTACH_END_MAX];

		attach_end_text(text, ask.job, shim->end.kind, shim->end.value, shim->end.text);
		(void)wire_exit(&shim->client, shim->end.kind, shim->end.value, text);
		return 0;
	}
	if (rc) {
		(void)wire_error(&shim->client, err->text);
		return rc;
	}
	shim->detached = shim->streams.spool.info.detached;
	/* Attach as to a running job, with the connection that came with the order. */
	fd = fcntl(shim->client.fd, F_DUPFD_CLOEXEC, 3);
	shim->client_gone = true; /* nothing was sent there: its keys are fresh for the next */
	if (fd < 0)
		return -errno;
	shim_attach(shim, fd, wire_records(&shim->client), &ask);
	shim_deliver(shim);
	return 0;
}
