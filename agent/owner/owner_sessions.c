/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Does somebody work at this node in windows?  They leave no trace at a terminal.  systemd-logind
 * keeps a file for each session, which says whether it is graphical and in front, and its desktop
 * tells logind when nobody has used it for a while:
 *
 *   a graphical session in front -> loginctl is asked, every SESSIONS_ASK_NS at most
 *       IdleHint=no, and not locked -> somebody works there now
 *       IdleHint=yes                -> somebody worked there until IdleSinceHint
 *       no answer, or none in time  -> as if somebody worked: nobody knows better
 *
 * Nothing is asked where there is no such session, and logind need not run.  There is one loginctl
 * at a time, and the loop does not wait for it; if logind hangs, it ends by itself.
 */
#include "agent/owner/owner_own.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/spawn.h"
#include "user/clock.h"

#define SESSIONS_ASK_NS	 (5 * CLOCK_NS_PER_S)
#define SESSIONS_LATE_NS (5 * CLOCK_NS_PER_S)
#define SESSIONS_LOOKED	 4096 /* names in the directory */
#define SESSION_FILE	 4096 /* bytes of one file that are read */
#define SESSIONS_WORDS	 6

/* --- the files ---------------------------------------------------------------------- */

/* Whether TEXT, the file of a session, has one of the N lines. */
static bool sessions_has(const char *text, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(lines[i]);

		for (const char *at = text; at; at = strchr(at, '\n')) {
			at += *at == '\n';
			if (!strncmp(at, lines[i], length) && (!at[length] || at[length] == '\n'))
				return true;
		}
	}
	return false;
}

static bool sessions_is_graphical(int directory, const char *name)
{
	static const char *const front[] = {"ACTIVE=1"}, *const class[] = {"CLASS=user"};
	static const char *const types[] = {"TYPE=x11", "TYPE=wayland", "TYPE=mir"};
	char text[SESSION_FILE + 1];
	struct stat st;
	ssize_t n;
	/* O_NONBLOCK: opening a fifo would hang. */
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return false;
	n = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, text, SESSION_FILE);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return sessions_has(text, front, 1) && sessions_has(text, class, 1) &&
	       sessions_has(text, types, sizeof(types) / sizeof(*types));
}

size_t owner_sessions_find(const char *directory, char ids[OWNER_SESSIONS][OWNER_SESSION_ID])
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	size_t n = 0;

	for (int i = 0; dir && i < SESSIONS_LOOKED && n < OWNER_SESSIONS; i++) {
		size_t length;

		entry = readdir(dir);
		if (!entry)
			break;
		for (length = 0; isalnum((unsigned char)entry->d_name[length]); length++)
			;
		if (!length || entry->d_name[length] || length >= OWNER_SESSION_ID ||
		    !sessions_is_graphical(dirfd(dir), entry->d_name))
			continue;
		memcpy(ids[n++], entry->d_name, length + 1);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* --- the answer --------------------------------------------------------------------- */

/* What loginctl says of one session. */
struct session_said {
	bool idle, busy, locked;
	uint64_t since_s;
};

static void session_line(struct session_said *said, const char *line)
{
	static const char since[] = "IdleSinceHint=";

	said->idle |= !strcmp(line, "IdleHint=yes");
	said->busy |= !strcmp(line, "IdleHint=no");
	said->locked |= !strcmp(line, "LockedHint=yes");
	if (!strncmp(line, since, sizeof(since) - 1))
		said->since_s = strtoull(line + sizeof(since) - 1, NULL, 10) / 1000000;
}

/* When somebody used that session last, as SAID; 0: nobody knows, or never. */
static uint64_t session_used(const struct session_said *said, uint64_t now_s)
{
	if (said->busy && !said->locked)
		return now_s;
	return said->idle && said->since_s <= now_s ? said->since_s : 0;
}

uint64_t owner_sessions_read(char *text, uint64_t now_s)
{
	struct session_said said = {0};
	uint64_t newest = 0, used;
	size_t told = 0;

	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		session_line(&said, line);
		if (*line && next)
			continue;
		/* An empty line ends what is said of one session. */
		told += said.idle || said.busy;
		used = session_used(&said, now_s);
		if (used > newest)
			newest = used;
		said = (struct session_said){0};
	}
	return told ? newest : now_s;
}

/* --- asking ------------------------------------------------------------------------- */

static uint64_t sessions_now_s(const struct owner_part *part)
{
	return loop_real_ns(part->base->loop) / CLOCK_NS_PER_S;
}

static void sessions_used(struct owner_part *part, uint64_t used_s)
{
	if (used_s > part->sessions.used_s)
		part->sessions.used_s = used_s;
}

static void sessions_unknown(struct owner_part *part, const char *why)
{
	sessions_used(part, sessions_now_s(part));
	if (!part->sessions.complained)
		log_write(part->base->log, LOG_L_WARNING,
			  "owner: cannot learn whether somebody uses the graphical sessions here "
			  "(%s): it is taken for granted",
			  why);
	part->sessions.complained = true;
}

static void sessions_end(struct owner_part *part)
{
	loop_remove(part->base->loop, &part->sessions.entry);
	close(part->sessions.entry.fd);
	part->sessions.entry.fd = -1;
}

static void sessions_said(void *arg, uint32_t events)
{
	struct owner_part *part = arg;
	struct owner_sessions *s = &part->sessions;
	char rest[512];
	size_t room = sizeof(s->text) - 1 - s->length;
	ssize_t n = room ? read(s->entry.fd, s->text + s->length, room)
			 : read(s->entry.fd, rest, sizeof(rest));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		s->length += room ? (size_t)n : 0;
		return;
	}
	sessions_end(part);
	s->text[s->length] = 0;
	part->seen_ns = 0;
	if (!s->length) {
		sessions_unknown(part, "loginctl says nothing");
		return;
	}
	s->complained = false;
	sessions_used(part, owner_sessions_read(s->text, sessions_now_s(part)));
}

static void sessions_ask(struct owner_part *part, char ids[OWNER_SESSIONS][OWNER_SESSION_ID],
			 size_t n)
{
	struct owner_sessions *s = &part->sessions;
	static const char *const words[] = {"loginctl",
					    "show-session",
					    "--property=IdleHint",
					    "--property=IdleSinceHint",
					    "--property=LockedHint",
					    "--"};
	char *argv[SESSIONS_WORDS + OWNER_SESSIONS + 1] = {NULL};
	pid_t pid;
	int rc;

	_Static_assert(sizeof(words) / sizeof(*words) == SESSIONS_WORDS, "all have room");
	for (size_t i = 0; i < SESSIONS_WORDS; i++)
		argv[i] = (char *)words[i];
	for (size_t i = 0; i < n; i++)
		argv[SESSIONS_WORDS + i] = ids[i];
	rc = spawn_output(part->config.loginctl, argv, &s->entry.fd, &pid);
	if (rc) {
		s->entry.fd = -1;
		sessions_unknown(part, strerror(-rc));
		return;
	}
	s->length = 0;
	s->entry.ready = sessions_said;
	s->entry.arg = part;
	rc = loop_add(part->base->loop, &s->entry, EPOLLIN);
	if (rc) {
		close(s->entry.fd);
		s->entry.fd = -1;
		sessions_unknown(part, strerror(-rc));
	}
}

uint64_t owner_sessions_newest(struct owner_part *part)
{
	char ids[OWNER_SESSIONS][OWNER_SESSION_ID];
	struct owner_sessions *s = &part->sessions;
	uint64_t now = loop_boot_ns(part->base->loop);
	bool waits = s->entry.fd >= 0;

	if (waits && now - s->asked_ns >= SESSIONS_LATE_NS)
		sessions_unknown(part, "logind does not answer");
	if (!waits && (!s->asked_ns || now - s->asked_ns >= SESSIONS_ASK_NS)) {
		size_t n =
			part->config.sessions ? owner_sessions_find(part->config.sessions, ids) : 0;

		s->asked_ns = now;
		if (n)
			sessions_ask(part, ids, n);
	}
	return s->used_s;
}

void owner_sessions_stop(struct owner_part *part)
{
	if (part->sessions.entry.fd >= 0)
		sessions_end(part);
}
