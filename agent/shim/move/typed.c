/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See typed.h. */
#include "agent/shim/move/typed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Longer than any line: one read takes a whole one. */
#define LINE_MAX_BYTES 8192
/* The keys while characters are put: all others have no meaning then. */
#define KEY_LITERAL 0x16
#define KEY_END	    0x04

static int typed_add(struct typed *typed, enum typed_kind kind, uint8_t c)
{
	/* Room grows by powers of two. */
	if (!(typed->length & (typed->length - 1))) {
		uint8_t *more = realloc(typed->data, typed->length ? 2 * typed->length : 2);

		if (!more)
			return -ENOMEM;
		typed->data = more;
	}
	typed->data[typed->length] = (uint8_t)kind;
	typed->data[typed->length + 1] = c;
	typed->length += 2;
	return 0;
}

void typed_free(struct typed *typed)
{
	free(typed->data);
	*typed = (struct typed){0};
}

bool typed_valid(const struct typed *typed, bool lines)
{
	if (typed->length % 2 || typed->length > 2 * TYPED_MAX)
		return false;
	for (size_t i = 0; i < typed->length; i += 2)
		if (typed->data[i] >= (lines ? TYPED_KINDS : TYPED_LINE))
			return false;
	return true;
}

/* --- taking ------------------------------------------------------------------------------ */

/* Returns whether C ends a line under MODES. */
static bool typed_ends_line(const struct termios *modes, uint8_t c)
{
	if (c == '\n')
		return true;
	return c &&
	       (c == modes->c_cc[VEOL] || (c == modes->c_cc[VEOL2] && modes->c_lflag & IEXTEN));
}

static int add_line(struct typed *typed, const struct termios *modes, const uint8_t *line, size_t n)
{
	bool ended = n && typed_ends_line(modes, line[n - 1]);
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		rc = typed_add(typed, ended && i == n - 1 ? TYPED_LINE : TYPED_CHARACTER, line[i]);
	return rc || ended ? rc : typed_add(typed, TYPED_END, 0);
}

/* Reads whole lines until there is none.  The kernel looks at all that is on its way before it says
 * so. */
static int typed_lines(struct typed *typed, int slave, const struct termios *modes)
{
	uint8_t line[LINE_MAX_BYTES];
	int rc = 0;

	while (!rc) {
		ssize_t n = read(slave, line, sizeof(line));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		rc = add_line(typed, modes, line, (size_t)n);
	}
	return rc;
}

/* Reads single characters: those of a line that is begun, too, if the modes were changed. */
static int typed_characters(struct typed *typed, int slave)
{
	uint8_t piece[512];
	int rc = 0;

	while (!rc) {
		ssize_t n = read(slave, piece, sizeof(piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			return 0;
		for (ssize_t i = 0; !rc && i < n; i++)
			rc = typed_add(typed, TYPED_CHARACTER, piece[i]);
	}
	return rc;
}

int typed_take(struct typed *typed, int slave)
{
	struct termios modes, bare;
	int waiting, rc = 0;

	*typed = (struct typed){0};
	if (tcgetattr(slave, &modes) || ioctl(slave, FIONREAD, &waiting))
		return -errno;
	if (waiting > TYPED_TAKE)
		return -EMSGSIZE;
	if (modes.c_lflag & ICANON)
		rc = typed_lines(typed, slave, &modes);
	bare = modes;
	bare.c_lflag &= ~(tcflag_t)ICANON;
	bare.c_cc[VMIN] = bare.c_cc[VTIME] = 0;
	if (!rc && tcsetattr(slave, TCSANOW, &bare))
		rc = -errno;
	if (!rc)
		rc = typed_characters(typed, slave);
	if (tcsetattr(slave, TCSANOW, &modes) && !rc)
		rc = -errno;
	return rc;
}

/* --- putting ----------------------------------------------------------------------------- */

static int put_one(int slave, uint8_t c)
{
	return ioctl(slave, TIOCSTI, &c) ? -errno : 0;
}

/* Sets modes in which characters only wait; LAST ends a line if it is not 0. */
static int put_modes(int slave, bool lines, uint8_t last)
{
	struct termios modes;

	if (tcgetattr(slave, &modes))
		return -errno;
	modes.c_iflag = 0;
	modes.c_lflag = lines ? ICANON | IEXTEN : 0;
	memset(modes.c_cc, _POSIX_VDISABLE, sizeof(modes.c_cc));
	if (last)
		modes.c_cc[VEOL] = last;
	else if (lines) {
		modes.c_cc[VLNEXT] = KEY_LITERAL;
		modes.c_cc[VEOF] = KEY_END;
	}
	return tcsetattr(slave, TCSANOW, &modes) ? -errno : 0;
}

static int put_line_end(int slave, uint8_t c)
{
	int rc;

	if (c == '\n' || !c)
		return put_one(slave, '\n');
	rc = put_modes(slave, true, c);
	if (!rc)
		rc = put_one(slave, c);
	return rc ? rc : put_modes(slave, true, 0);
}

static int put_typed(int slave, bool lines, uint8_t kind, uint8_t c)
{
	int rc = 0;

	if (kind == TYPED_END)
		return put_one(slave, KEY_END);
	if (kind == TYPED_LINE)
		return put_line_end(slave, c);
	if (lines && (c == '\n' || c == KEY_LITERAL || c == KEY_END))
		rc = put_one(slave, KEY_LITERAL);
	return rc ? rc : put_one(slave, c);
}

ssize_t typed_put(const struct typed *typed, int slave, bool lines)
{
	size_t most = typed->length < 2 * TYPED_MAX ? typed->length : 2 * TYPED_MAX;
	struct termios modes;
	int rc;

	if (tcgetattr(slave, &modes))
		return -errno;
	rc = put_modes(slave, lines, 0);
	for (size_t i = 0; !rc && i < most; i += 2)
		rc = put_typed(slave, lines, typed->data[i], typed->data[i + 1]);
	/* To change this flag again would make one line of all that waits. */
	modes.c_lflag &= ~(tcflag_t)ICANON;
	if (lines)
		modes.c_lflag |= ICANON;
	if (tcsetattr(slave, TCSANOW, &modes) && !rc)
		rc = -errno;
	return rc ? rc : (ssize_t)most;
}

bool typed_works(void)
{
	static uint8_t end[] = {TYPED_END, 0};
	const struct typed one = {end, sizeof(end)};
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1;
	bool works = false;

	if (master >= 0 && !unlockpt(master))
		slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (slave >= 0) {
		works = typed_put(&one, slave, true) == (ssize_t)sizeof(end);
		close(slave);
	}
	if (master >= 0)
		close(master);
	return works;
}
