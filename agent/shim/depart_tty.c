/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See depart_tty.h. */
#include "agent/shim/depart_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/shim/move/luggage.h"
#include "agent/shim/shim.h"
#include "agent/shim/tty.h"

/* Is it of a kind that the other node can make again?  MODES are set. */
static int check_modes(const struct streams *streams, int slave, struct termios *modes,
		       struct iocom_err *err)
{
	int discipline;

	if (tcgetattr(slave, modes) || ioctl(slave, TIOCGETD, &discipline))
		return iocom_err_set(err, -errno, "its terminal does not tell its modes: %s",
				     strerror(errno));
	if (discipline != N_TTY || modes->c_lflag & EXTPROC)
		return iocom_err_set(err, -ENOTSUP,
				     "its terminal is in a mode that cannot be moved");
	/* That the next key is taken as it is, the kernel tells nobody. */
	if (modes->c_lflag & ICANON && modes->c_lflag & IEXTEN && streams->last_input &&
	    (cc_t)streams->last_input == modes->c_cc[VLNEXT])
		return iocom_err_set(err, -ENOTSUP,
				     "a key is half typed at its terminal (^V); try again later");
	return 0;
}

/* criu restores both from its first process, which must have them. */
static int check_leader(const struct shim *shim, int master, struct iocom_err *err)
{
	pid_t group = tcgetpgrp(master);

	if (tcgetsid(master) != shim->child.pid)
		return iocom_err_set(err, -ENOTSUP, "its terminal is not that of its session");
	if (group <= 1 || kill(-group, 0))
		return iocom_err_set(err, -ENOTSUP,
				     "nothing is in the foreground of its terminal now");
	return 0;
}

static int check_open(const struct streams *streams, struct iocom_err *err)
{
	if (streams->fd[0] < 0 || streams->fd[1] < 0)
		return iocom_err_set(err, -ENOTSUP, "it has given its terminal up");
	if (streams->input.length)
		return iocom_err_set(err, -ENOTSUP,
				     "more was typed at its terminal than it has read");
	return typed_works() ? 0
			     : iocom_err_set(err, -ENOTSUP,
					     "the kernel here does not let root type for it");
}

/* Takes the output, which waits with the shim from now on, also that of keys that were typed. */
static int take_output(struct streams *streams, int slave, struct iocom_err *err)
{
	struct pollfd p = {.fd = slave, .events = POLLOUT};
	int rc = streams_hold(streams);

	/* To write nothing makes the kernel show what it has kept of them. */
	if (!rc && write(slave, "", 0) < 0 && errno != EAGAIN)
		rc = -errno;
	if (!rc)
		rc = streams_hold(streams);
	if (rc)
		return iocom_err_set(err, rc, "the output of its terminal cannot be read: %s",
				     strerror(-rc));
	if (streams->held.length > LUGGAGE_SHOWN_MAX)
		return iocom_err_set(err, -ENOTSUP, "too much output waits in its terminal");
	return poll(&p, 1, 0) == 1 && p.revents & POLLOUT
		       ? 0
		       : iocom_err_set(err, -ENOTSUP, "the output of its terminal is stopped (^S)");
}

/* What does not go back where it was is typed once more: it was too much to be moved. */
static void type_again(struct streams *streams, const struct typed *typed, size_t from)
{
	struct termios modes;

	if (tcgetattr(streams->fd[0], &modes))
		return;
	for (size_t i = from; i < typed->length; i += 2)
		(void)queue_push(
			&streams->input,
			typed->data[i] == TYPED_END ? &modes.c_cc[VEOF] : &typed->data[i + 1], 1);
}

static void typed_back(struct depart_tty *tty, struct streams *streams, int slave)
{
	ssize_t put = typed_put(&tty->typed, slave, tty->lines);

	type_again(streams, &tty->typed, put > 0 ? (size_t)put : 0);
	typed_free(&tty->typed);
}

static int take_typed(struct depart_tty *tty, struct streams *streams, int slave,
		      struct iocom_err *err)
{
	int rc = typed_take(&tty->typed, slave);

	if (!rc && !typed_valid(&tty->typed, tty->lines))
		rc = -EMSGSIZE;
	/* A line that was longer than the kernel keeps went on when the first part was taken. */
	if (!rc)
		rc = streams_hold(streams);
	if (!rc)
		return 0;
	if (tty->typed.length)
		typed_back(tty, streams, slave);
	if (rc == -EMSGSIZE)
		return iocom_err_set(err, -ENOTSUP,
				     "more was typed at its terminal than it has read");
	return iocom_err_set(err, rc, "what was typed at its terminal cannot be read: %s",
			     strerror(-rc));
}

static int depart_tty_all(struct depart_tty *tty, struct shim *shim, int slave,
			  struct iocom_err *err)
{
	struct streams *streams = &shim->streams;
	struct termios modes;
	int rc = check_modes(streams, slave, &modes, err);

	if (!rc)
		rc = check_leader(shim, streams->fd[0], err);
	if (!rc && (criu_tty_name(tty->name, slave) || belongings_tty_of(&tty->what, slave)))
		rc = iocom_err_set(err, -errno, "its terminal cannot be named: %s",
				   strerror(errno));
	if (rc)
		return rc;
	tty->lines = modes.c_lflag & ICANON;
	rc = take_output(streams, slave, err);
	return rc ? rc : take_typed(tty, streams, slave, err);
}

int depart_tty_take(struct depart_tty *tty, struct shim *shim, struct iocom_err *err)
{
	int slave, rc;

	*tty = (struct depart_tty){0};
	if (!shim->streams.tty)
		return 0;
	rc = check_open(&shim->streams, err);
	if (rc)
		return rc;
	slave = tty_peer(shim->streams.fd[0]);
	if (slave < 0)
		return iocom_err_set(err, slave, "its terminal cannot be opened: %s",
				     strerror(-slave));
	rc = depart_tty_all(tty, shim, slave, err);
	tty->open = !rc;
	close(slave);
	return rc;
}

void depart_tty_stay(struct depart_tty *tty, struct shim *shim)
{
	int slave;

	if (!tty->open)
		return;
	tty->open = false;
	slave = tty->typed.length ? tty_peer(shim->streams.fd[0]) : -1;
	if (slave >= 0) {
		typed_back(tty, &shim->streams, slave);
		close(slave);
	}
	typed_free(&tty->typed);
}

int depart_tty_pack(const struct depart_tty *tty, const struct shim *shim,
		    struct luggage_tty *luggage)
{
	const struct streams *streams = &shim->streams;
	size_t typed = tty->typed.length, output = streams->held.length;

	*luggage = (struct luggage_tty){
		.open = true,
		.lines = tty->lines,
		.nonblocking = tty->what.flags & O_NONBLOCK,
		.last = streams->last_input,
		.typed = {malloc(typed + 1), typed},
		.output = {malloc(output + 1), output},
	};
	memcpy(luggage->name, tty->name, sizeof(luggage->name));
	if (!luggage->typed.data || !luggage->output.data)
		return -ENOMEM;
	if (typed)
		memcpy(luggage->typed.data, tty->typed.data, typed);
	if (output)
		memcpy(luggage->output.data, queue_front(&streams->held), output);
	return ioctl(streams->fd[0], TIOCGWINSZ, &luggage->size) ? -errno : 0;
}
