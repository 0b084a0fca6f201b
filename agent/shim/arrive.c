/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See arrive.h. */
#include "agent/shim/arrive.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent/init/hold.h"
#include "agent/shim/move/belongings.h"
#include "agent/shim/move/criu.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/luggage.h"
#include "agent/shim/move/transfer.h"
#include "agent/shim/shim.h"
#include "agent/shim/tty.h"
#include "user/cgroup_freeze.h"
#include "user/clock.h"

#define HOLD_NAME	 "hold"
#define ARRIVE_FREEZE_MS 5000
#define ARRIVE_END_MS	 5000 /* for criu to end when nothing keeps it any more */

struct arrival {
	struct shim *shim;
	const struct identity *identity; /* the job's user here */
	uint64_t until_ms;
	struct criu criu;
	struct images images;
	struct luggage luggage;
	int ours[LUGGAGE_PIPES];	       /* our ends of the new pipes; -1: none */
	struct criu_pipe pipes[LUGGAGE_PIPES]; /* the job's ends */
	struct belongings_tty tty;	       /* its terminal */
	char tty_path[64];
	size_t npipes;
	int listening, hold; /* where criu's script calls, and the call; -1: none */
	pid_t running;	     /* criu; 0: none */
	pid_t init;	     /* the job's first process */
};

static void close_pipes(struct arrival *a)
{
	for (size_t i = 0; i < a->npipes; i++)
		close(a->pipes[i].fd);
	a->npipes = 0;
}

/* Makes a pipe as the former shim's was, with what it held. */
static int arrive_pipe(struct arrival *a, int which)
{
	const struct luggage_pipe *from = &a->luggage.pipes[which];
	int ends[2], ours = which == 0, rc; /* we write to its input and read the others */

	if (!from->open)
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	rc = luggage_fill(from, ends[1]);
	if (!rc && fcntl(ends[ours], F_SETFL, O_NONBLOCK))
		rc = -errno;
	/* As child.c: its user may open its streams again, but not what says how it ends. */
	if (!rc && which < FRAME_STREAMS && fchown(ends[0], a->identity->uid, a->identity->gid))
		rc = -errno;
	if (rc) {
		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	a->ours[which] = ends[ours];
	a->pipes[a->npipes].fd = ends[!ours];
	memcpy(a->pipes[a->npipes].name, from->name, sizeof(from->name));
	a->npipes++;
	return 0;
}

static int arrive_pipes(struct arrival *a, struct iocom_err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < LUGGAGE_PIPES; i++)
		rc = arrive_pipe(a, i);
	return rc ? iocom_err_set(err, rc, "cannot make its pipes: %s", strerror(-rc)) : 0;
}

/* Fills a new terminal as the former one was; its modes are criu's to restore. */
static int fill_tty(struct arrival *a, const struct tty *tty)
{
	const struct luggage_tty *from = &a->luggage.tty;
	ssize_t put = typed_put(&from->typed, tty->slave, from->lines);

	if (put < 0)
		return (int)put;
	if ((size_t)put < from->typed.length)
		return -EMSGSIZE;
	if (ttyname_r(tty->slave, a->tty_path, sizeof(a->tty_path)))
		return -ENOENT;
	if (from->nonblocking && fcntl(tty->slave, F_SETFL, O_NONBLOCK))
		return -errno;
	return belongings_tty_of(&a->tty, tty->slave);
}

static int arrive_tty(struct arrival *a, struct iocom_err *err)
{
	/* Of its size at once: to change it later would be told to the job. */
	const struct terminal wanted = {.wanted = true, .size = a->luggage.tty.size};
	struct criu_pipe *to = &a->pipes[a->npipes];
	struct tty tty;
	int rc;

	if (!a->luggage.tty.open)
		return 0;
	rc = tty_open(&tty, &wanted, a->identity->uid, a->identity->gid);
	if (!rc) {
		rc = fill_tty(a, &tty);
		if (rc)
			tty_close(&tty);
	}
	if (rc)
		return iocom_err_set(err, rc, "cannot make its terminal: %s", strerror(-rc));
	a->ours[0] = tty.in;
	a->ours[1] = tty.out;
	to->fd = tty.slave;
	memcpy(to->name, a->luggage.tty.name, sizeof(to->name));
	a->npipes++;
	return 0;
}

/* criu gives it to the session's first process, if any of its files said so. */
static int check_restored_tty(const struct arrival *a, struct iocom_err *err)
{
	if (!a->luggage.tty.open || (tcgetsid(a->ours[1]) == a->init && tcgetpgrp(a->ours[1]) > 0))
		return 0;
	return iocom_err_set(err, -ENOTSUP, "its terminal did not come back to its session");
}

/* The socket is among the images, so nobody else can reach it and its path is short. */
static int hold_listen(struct arrival *a, char path[sizeof(((struct sockaddr_un *)0)->sun_path)],
		       struct iocom_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	a->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(path, sizeof(sa.sun_path), "%s/%s", a->images.path, HOLD_NAME);
	memcpy(sa.sun_path, path, strlen(path));
	if (a->listening < 0 || bind(a->listening, (struct sockaddr *)&sa, sizeof(sa)) ||
	    listen(a->listening, 1))
		return iocom_err_set(err, -errno, "cannot wait for what is restored: %s",
				     strerror(errno));
	return 0;
}

/* Reaps criu if it has ended. */
static bool criu_ended(struct arrival *a)
{
	if (a->running <= 0 || waitpid(a->running, NULL, WNOHANG) != a->running)
		return false;
	a->running = 0;
	return true;
}

/* Waits until FD is readable, criu has ended, or the time is up. */
static int await_hold(struct arrival *a, int fd, struct iocom_err *err)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (poll(&p, 1, 20) != 1) {
		if (criu_ended(a)) {
			criu_restore_explain(a->images.path, err);
			return -ENOTSUP;
		}
		if (clock_boot_ms() >= a->until_ms)
			return iocom_err_set(err, -ETIMEDOUT, "it could not be restored in time");
	}
	return 0;
}

static int hear_ready(struct arrival *a, struct iocom_err *err)
{
	struct hold_ready ready;
	int rc = await_hold(a, a->listening, err);

	if (rc)
		return rc;
	a->hold = accept4(a->listening, NULL, NULL, SOCK_CLOEXEC);
	if (a->hold < 0)
		return iocom_err_set(err, -errno, "criu's script does not call: %s",
				     strerror(errno));
	rc = await_hold(a, a->hold, err);
	if (rc)
		return rc;
	if (read(a->hold, &ready, sizeof(ready)) != (ssize_t)sizeof(ready) ||
	    ready.word != HOLD_READY || ready.init <= 0)
		return iocom_err_set(err, -EPROTO, "criu's script failed");
	a->init = ready.init;
	return 0;
}

/*
 * It is complete, and criu keeps it; but were criu killed, it would run.  So the group is frozen,
 * with criu, and looked at.
 */
static int arrive_examine(struct arrival *a, struct iocom_err *err)
{
	const struct identity *identity = a->identity;
	const struct belongings_owner owner = {
		.uid = identity->uid,
		.gid = identity->gid,
		.groups = identity->groups,
		.ngroups = identity->ngroups,
	};
	int rc = cgroup_freeze(&a->shim->group, ARRIVE_FREEZE_MS);

	if (rc)
		return iocom_err_set(err, rc, "it could not be stopped within %d ms",
				     ARRIVE_FREEZE_MS);
	if (criu_ended(a))
		return iocom_err_set(err, -EIO, "criu was killed before the job could run");
	rc = check_restored_tty(a, err);
	return rc ? rc
		  : belongings_check(&a->shim->group, a->init, &owner,
				     a->luggage.tty.open ? &a->tty : NULL, err);
}

/* Restores it as far as the hold. */
static int arrive_restore(struct arrival *a, struct iocom_err *err)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int rc = arrive_pipes(a, err);

	if (!rc)
		rc = arrive_tty(a, err);
	if (!rc)
		rc = hold_listen(a, path, err);
	if (!rc) {
		a->running = criu_restore(&a->criu, a->images.path, &a->shim->group, a->pipes,
					  a->npipes, a->tty_path, path, err);
		rc = a->running < 0 ? (int)a->running : 0;
	}
	close_pipes(a);
	if (!rc)
		rc = hear_ready(a, err);
	return rc ? rc : arrive_examine(a, err);
}

/* Takes its images and luggage, in the cgroup that they are charged to. */
static int arrive_receive(struct arrival *a, struct iocom_err *err)
{
	struct shim *shim = a->shim;
	struct cgroup_mounts mounts;
	struct user_group user;
	struct cgroup group = {0}, shims;
	bool made;
	const struct transfer_into into = {
		.images = &a->images,
		.most_bytes = INT64_MAX,
		.rounds = true,
		.record = shim->record,
		.record_bytes = shim->order.spool_max,
	};
	int rc = spare_mounts(&shim->spare, &mounts, err);

	if (!rc)
		rc = cgroup_name(&mounts, shim->order.scope, "shims", &shims, err);
	if (!rc)
		rc = user_group_beside(&user, &shim->order, MOVE_GROUP, &mounts, &group, err);
	made = rc != -EBUSY && group.depth; /* a group that others use is not ours to remove */
	if (!rc) {
		rc = cgroup_enter(&group, true);
		if (rc)
			iocom_err_set(err, rc, "cannot enter the cgroup of its images: %s",
				      strerror(-rc));
	}
	if (!rc) {
		int back;

		rc = transfer_receive(&shim->client, &into, a->until_ms, err);
		/*
		 * In the group of its user this process could be killed for what others use.  An
		 * agent that stopped meanwhile has removed the shims' group, which was empty.
		 */
		(void)cgroup_create(&shims, NULL);
		back = cgroup_enter(&shims, true);
		if (back)
			return iocom_err_set(err, back, "cannot leave the cgroup of its images: %s",
					     strerror(-back));
	}
	if (made) {
		cgroup_remove(&group, SHIM_REMOVE_MS);
		user_group_leave(&user, &group);
	}
	if (!rc)
		rc = luggage_read(&a->luggage, &a->images, err);
	if (!rc && strcmp(a->luggage.job, shim->order.spec.job) != 0)
		rc = iocom_err_set(err, -EINVAL, "another job came: %s", a->luggage.job);
	/* Output on disk without what is known of it is nobody's. */
	if (!rc && !a->luggage.spool.length && shim->record >= 0)
		record_forget_output(shim->record);
	return rc;
}

/* --- the decision ------------------------------------------------------------------------ */

/* Somebody asks the shim for something: of a job that is held only what the leash itself obeys. */
static void arrive_control(struct shim *shim)
{
	struct leash_request request;
	enum leash_what what = leash_serve(&shim->leash, &request);

	leash_decline(&request, what, what == LEASH_SIGNAL ? EBUSY : EALREADY);
}

/*
 * Waits for the agent's word.  While nothing is decided the job is held, however long it takes: an
 * agent that starts again asks for it.  The former shim is not needed any more.
 */
static int await_word(struct arrival *a, struct iocom_err *err)
{
	struct shim *shim = a->shim;

	while (shim->leash.word == LEASH_NO_WORD) {
		struct pollfd p[] = {{.fd = shim->leash.fd, .events = POLLIN},
				     {.fd = shim->leash.listen, .events = POLLIN}};

		if (criu_ended(a))
			return iocom_err_set(err, -EIO, "criu was killed before the job could run");
		if (poll(p, 2, 20) <= 0)
			continue;
		if (p[0].revents)
			leash_hear(&shim->leash, &shim->lease);
		if (p[1].revents)
			arrive_control(shim);
		if (lease_given_up(&shim->lease))
			return iocom_err_set(err, -ESTALE,
					     "its home node has given it up and may run it again");
	}
	leash_decided(&shim->leash);
	/* This process may have been stopped since the agent renewed. */
	if (shim->leash.word == LEASH_GO && shim->lease.until_ms &&
	    clock_boot_ms() >= shim->lease.until_ms)
		return iocom_err_set(err, -ETIME, "its lease was over before it could run");
	guard_tell(&shim->guard, shim->lease.until_ms);
	return shim->leash.word == LEASH_GO
		       ? 0
		       : iocom_err_set(err, -ECANCELED, "the move was given up");
}

/* Lets the job run. */
static int arrive_go(struct arrival *a, struct iocom_err *err)
{
	const char go = HOLD_GO;
	int status = 0;

	/* What criu has used is no time of the job. */
	a->shim->cpu_base_us = cgroup_cpu_us(&a->shim->group);
	if (send(a->hold, &go, 1, MSG_NOSIGNAL) != 1)
		return iocom_err_set(err, -EIO, "criu was killed before the job could run");
	status = cgroup_thaw(&a->shim->group);
	if (!status)
		status = criu_wait(a->running, clock_boot_ms() + ARRIVE_END_MS);
	a->running = 0;
	if (!status)
		return 0;
	criu_restore_explain(a->images.path, err);
	return -EIO;
}

/* --- what becomes the shim's ------------------------------------------------------------- */

static int unpack_output(struct resend_buffer *kept, const struct luggage_kept *from)
{
	size_t at = 0, n;

	kept->start = kept->end = from->start;
	while (at < from->bytes.length) {
		uint8_t *to = resend_space(kept, &n);

		if (!to || !n)
			return -ENOMEM;
		if (n > from->bytes.length - at)
			n = from->bytes.length - at;
		memcpy(to, from->bytes.data + at, n);
		resend_added(kept, n);
		at += n;
	}
	return 0;
}

/* The streams go on where the former shim's were. */
static int arrive_streams(struct arrival *a, struct iocom_err *err)
{
	struct streams *streams = &a->shim->streams;
	const struct luggage *luggage = &a->luggage;
	int rc = 0;

	streams_init(streams, a->ours);
	streams->tty = luggage->tty.open;
	streams->last_input = luggage->tty.last;
	if (luggage->tty.output.length)
		rc = queue_push(&streams->held, luggage->tty.output.data,
				luggage->tty.output.length);
	streams->record = a->shim->record;
	streams->sent[0] = luggage->received;
	streams->consumed = streams->taken[0] = luggage->consumed;
	streams->input_ended = luggage->input_ended;
	if (!rc && luggage->input.length)
		rc = queue_push(&streams->input, luggage->input.data, luggage->input.length);
	for (int i = 1; !rc && i < FRAME_STREAMS; i++) {
		rc = unpack_output(&streams->kept[i], &luggage->kept[i]);
		streams->sent[i] = streams->taken[i] = luggage->kept[i].start;
	}
	for (int i = 0; i < LUGGAGE_PIPES; i++)
		a->ours[i] = i < FRAME_STREAMS ? -1 : a->ours[i];
	if (!rc && luggage->spool.length)
		return luggage->spool.length != SPOOL_PACKED
			       ? iocom_err_set(err, -EBADMSG, "its output is of another version")
			       : spool_carry_on(&streams->spool, a->shim->record,
						luggage->spool.data, a->shim->order.spool_max, err);
	return rc ? iocom_err_set(err, rc, "out of memory for its output") : 0;
}

/* The former shim's connection is no client's. */
static void arrive_hand_over(struct arrival *a)
{
	struct shim *shim = a->shim;

	shim->child = (struct child){
		.pid = a->init,
		.pidfd = (int)syscall(SYS_pidfd_open, a->init, 0),
		.stdio = {-1, -1, -1},
		.status = a->ours[LUGGAGE_PIPES - 1],
		.begin_us = a->luggage.begin_us,
	};
	a->ours[LUGGAGE_PIPES - 1] = -1;
	memcpy(shim->owner, a->luggage.owner, sizeof(shim->owner));
	shim->detached = a->luggage.detached;
	shim->start_ns = a->luggage.start_ns;
	shim->ran_ms = a->luggage.ran_ms;
	shim->depart.moves = a->luggage.moves;
	shim->order.spec.grace_ms = (uint32_t)a->luggage.grace_ms;
	shim->cpu_before_us = a->luggage.cpu_us;
}

/* Ends whatever is left of it. */
static void arrive_give_up(struct arrival *a)
{
	close_pipes(a);
	for (int i = 0; i < LUGGAGE_PIPES; i++)
		if (a->ours[i] >= 0)
			close(a->ours[i]);
	if (a->hold >= 0)
		close(a->hold);
	a->hold = -1;
	/* All at once: without criu what it keeps would run. */
	if (a->shim->grouped)
		cgroup_kill(&a->shim->group);
	if (a->running > 0)
		(void)criu_wait(a->running, 0);
	a->running = 0;
	if (a->init > 0)
		(void)criu_wait(a->init, 0);
}

/* Takes and restores it. */
static int arrive_hold(struct arrival *a, struct iocom_err *err)
{
	struct shim *shim = a->shim;
	int rc = criu_find(&a->criu, shim->order.criu, err);

	if (!rc)
		(void)transfer_begin(&shim->client, a->until_ms); /* if it is gone, we notice */
	if (!rc)
		rc = arrive_receive(a, err);
	if (!rc)
		rc = arrive_restore(a, err);
	if (!rc)
		rc = arrive_streams(a, err);
	return rc;
}

/* Both agents and the former shim know that it is held here; it runs if it may. */
static int arrive_decided(struct arrival *a, struct iocom_err *err)
{
	int rc;

	leash_ready(&a->shim->leash);
	(void)transfer_ready(&a->shim->client, clock_boot_ms() + WIRE_LOOK_MS);
	rc = await_word(a, err);
	return rc ? rc : arrive_go(a, err);
}

int arrive_take(struct shim *shim, const struct identity *identity, int failed,
		struct iocom_err *err)
{
	struct arrival a = {
		.shim = shim,
		.identity = identity,
		.until_ms = clock_boot_ms() + ARRIVE_LIMIT_MS,
		.images = {.fd = -1},
		.ours = {-1, -1, -1, -1},
		.listening = -1,
		.hold = -1,
	};
	int rc = failed ? failed : arrive_hold(&a, err);

	if (rc)
		transfer_refuse(&shim->client, err->text, clock_boot_ms() + WIRE_LOOK_MS);
	else
		rc = arrive_decided(&a, err);
	if (rc)
		arrive_give_up(&a);
	else
		arrive_hand_over(&a);
	if (a.listening >= 0)
		close(a.listening);
	if (a.hold >= 0)
		close(a.hold);
	images_free(&a.images);
	luggage_free(&a.luggage);
	/* The former shim may send signals still; the job's client comes by itself. */
	shim->source = shim->client;
	shim->client = (struct wire){.fd = -1};
	shim->client_gone = true;
	shim->gone_ms = clock_boot_ms();
	return rc;
}
