/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel's audit and libaudit for the tests: linked into a shim before the archives, so that
 * it takes the place of audit_library.c and audit_state.c. Beside the program, PROGRAM.told gets
 * one line for each record; PROGRAM.audit says in one letter how audit is: 'a' absent, 'd'
 * disabled, 'n' no libaudit, 'f' sending fails, 'p' not permitted, 'h' sending hangs; else it
 * works.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/shim/audit.h"
#include "user/audit_state.h"

static int beside(const char *suffix, int flags)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);

	path[n > 0 ? n : 0] = 0;
	strcat(path, suffix);
	return open(path, flags | O_CLOEXEC);
}

static char mode(void)
{
	int fd = beside(".audit", O_RDONLY);
	char letter = 0;

	if (fd >= 0) {
		if (read(fd, &letter, 1) != 1)
			letter = 0;
		close(fd);
	}
	return letter;
}

bool audit_possible(void)
{
	return mode() != 'a';
}

int audit_state_read(struct audit_state *state)
{
	*state = (struct audit_state){.enabled = mode() != 'd'};
	return mode() == 'p' ? -EPERM : 0;
}

static int fake_open(void)
{
	return beside(".told", O_WRONLY | O_APPEND);
}

/* As libaudit does: hex digits if the value has a quote, a blank or a control character. */
static char *fake_encode(const char *name, const char *value, unsigned length)
{
	char *text = malloc(strlen(name) + 2 * strlen(value) + 4);
	bool plain = length == 0;
	size_t at;

	if (!text)
		return NULL;
	for (const char *c = value; *c; c++)
		plain = plain && *c > ' ' && *c < 0x7f && *c != '"';
	if (plain) {
		sprintf(text, "%s=\"%s\"", name, value);
		return text;
	}
	at = (size_t)sprintf(text, "%s=", name);
	for (const char *c = value; *c; c++)
		at += (size_t)sprintf(text + at, "%02X", (unsigned char)*c);
	return text;
}

static int fake_send(int fd, int type, const char *message, const char *hostname,
		     const char *address, const char *terminal, int result)
{
	char line[AUDIT_RECORD_MAX + 512];
	int n;

	if (mode() == 'f' || mode() == 'p') {
		errno = mode() == 'f' ? ENOBUFS : EPERM;
		return -1;
	}
	if (mode() == 'h')
		pause();
	n = snprintf(line, sizeof(line), "%d %s hostname=%s addr=%s terminal=%s res=%s\n", type,
		     message, hostname, address, terminal, result ? "success" : "failed");
	return write(fd, line, (size_t)n) == n ? 1 : -1;
}

int audit_load(struct audit_library *library)
{
	*library = (struct audit_library){fake_open, fake_encode, fake_send};
	return mode() == 'n' ? -ENOENT : 0;
}
