/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job's terminal; see tty.h. */
#include "agent/shim/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

void tty_close(struct tty *tty)
{
	const int all[] = {tty->in, tty->out, tty->slave};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] >= 0)
			close(all[i]);
	*tty = (struct tty){-1, -1, -1};
}

/* Members of the group "tty" may write to the terminal (wall, write), but not read it. */
static int give_to(int slave, uid_t uid, gid_t gid)
{
	const struct group *group = getgrnam("tty");

	if (fchown(slave, uid, group ? group->gr_gid : gid) || fchmod(slave, group ? 0620 : 0600))
		return -errno;
	return 0;
}

static int tty_set_up(int slave, const struct terminal *wanted)
{
	struct termios modes;

	if (tcgetattr(slave, &modes))
		return -errno;
	if (wanted->utf8)
		modes.c_iflag |= IUTF8;
	else
		modes.c_iflag &= ~(tcflag_t)IUTF8;
	for (size_t i = 0; wanted->keyed && i < TERMINAL_KEYS; i++)
		modes.c_cc[terminal_keys[i]] = wanted->keys[i];
	if (tcsetattr(slave, TCSANOW, &modes) || ioctl(slave, TIOCSWINSZ, &wanted->size))
		return -errno;
	return 0;
}

int tty_open(struct tty *tty, const struct terminal *wanted, uid_t uid, gid_t gid)
{
	int rc = 0;

	*tty = (struct tty){-1, -1, -1};
	tty->out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (tty->out < 0 || grantpt(tty->out) || unlockpt(tty->out))
		goto failed;
	/* Opens the slave through the master: a name below /dev/pts may belong to another mount. */
	tty->slave = ioctl(tty->out, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	tty->in = fcntl(tty->out, F_DUPFD_CLOEXEC, 3);
	if (tty->slave < 0 || tty->in < 0)
		goto failed;
	rc = give_to(tty->slave, uid, gid);
	if (!rc)
		rc = tty_set_up(tty->slave, wanted);
	if (!rc)
		return 0;
	tty_close(tty);
	return rc;
failed:
	rc = -errno;
	tty_close(tty);
	return rc;
}

int tty_take(int slave)
{
	return ioctl(slave, TIOCSCTTY, 0) ? -errno : 0;
}

int tty_set_term(char ***env, const char *name)
{
	char *entry = malloc(strlen(name) + sizeof("TERM="));
	size_t n = 0;
	char **more;

	if (!entry)
		return -ENOMEM;
	stpcpy(stpcpy(entry, "TERM="), name);
	for (; (*env)[n]; n++)
		if (!strncmp((*env)[n], "TERM=", 5)) {
			free((*env)[n]);
			(*env)[n] = entry;
			return 0;
		}
	more = reallocarray(*env, n + 2, sizeof(*more));
	if (!more) {
		free(entry);
		return -ENOMEM;
	}
	more[n] = entry;
	more[n + 1] = NULL;
	*env = more;
	return 0;
}

int tty_resize(int master, const uint8_t *payload, uint32_t length)
{
	struct winsize size;
	int rc = terminal_size_take(&size, payload, length);

	if (!rc && master >= 0)
		(void)ioctl(master, TIOCSWINSZ, &size);
	return rc;
}

/*
 * A group whose processes ended leaves its number in the terminal, and a stranger's group may
 * get that number. So a group counts only if its leader is in our session.
 */
pid_t tty_foreground(int master, pid_t session)
{
	pid_t group = master >= 0 ? tcgetpgrp(master) : -1;

	return group > 1 && getsid(group) == session ? group : session;
}

unsigned tty_end_of_input(int master, char last, char out[2])
{
	struct termios modes;
	char end;

	if (master < 0 || tcgetattr(master, &modes))
		return 0;
	end = (char)modes.c_cc[VEOF];
	if (end == _POSIX_VDISABLE)
		return 0;
	out[0] = out[1] = end;
	return last && last != '\n' && last != '\r' ? 2 : 1;
}

bool tty_lines(int master)
{
	struct termios modes;

	return !tcgetattr(master, &modes) && modes.c_lflag & ICANON;
}

int tty_peer(int master)
{
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	return slave < 0 ? -errno : slave;
}

bool tty_unread(int master)
{
	/* Only the slave shows whether an end of input waits to be read. */
	int slave = tty_peer(master);
	struct pollfd p = {.fd = slave, .events = POLLIN};
	int n;

	if (slave < 0)
		return true;
	n = poll(&p, 1, 0);
	close(slave);
	return n != 0;
}
