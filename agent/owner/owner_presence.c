/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Does somebody work at this node?  The kernel keeps when each terminal was read last (its access
 * time, to 8 s): a console's keyboard, a session of ssh or of a terminal's window.  Terminals of
 * jobs do not count, nor what programs write.  Windows: owner_sessions.c.
 */
#include "agent/owner/owner_own.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/clock.h"

static time_t presence_used(const char *directory, const char *name)
{
	char path[512];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
	    stat(path, &st))
		return 0;
	return st.st_atime;
}

/* "tty1", "ttyS0"; not "tty" and "tty0", which are other names of one of them. */
static bool presence_is_console(const char *name)
{
	if (strncmp(name, "tty", 3) != 0)
		return false;
	name += 3;
	if (!strncmp(name, "S", 1) || !strncmp(name, "USB", 3))
		return true;
	return isdigit((unsigned char)*name) && strcmp(name, "0") != 0;
}

static bool presence_is_skipped(const char *name, const unsigned *skip, size_t nskip)
{
	char *end;
	unsigned long number = strtoul(name, &end, 10);

	if (*end || !isdigit((unsigned char)*name))
		return true; /* ptmx */
	for (size_t i = 0; i < nskip; i++)
		if (skip[i] == number)
			return true;
	return false;
}

time_t owner_presence_newest(const char *devices, const unsigned *skip, size_t nskip)
{
	char pts[256];
	const struct dirent *entry;
	time_t newest = 0, used;
	DIR *dir = opendir(devices);

	while (dir && (entry = readdir(dir))) {
		used = presence_is_console(entry->d_name) ? presence_used(devices, entry->d_name)
							  : 0;
		if (used > newest)
			newest = used;
	}
	if (dir)
		closedir(dir);
	snprintf(pts, sizeof(pts), "%s/pts", devices);
	dir = opendir(pts);
	while (dir && (entry = readdir(dir))) {
		if (presence_is_skipped(entry->d_name, skip, nskip))
			continue;
		used = presence_used(pts, entry->d_name);
		if (used > newest)
			newest = used;
	}
	if (dir)
		closedir(dir);
	return newest;
}

bool owner_presence(struct owner_part *part, uint64_t age_ns)
{
	uint64_t now = loop_boot_ns(part->base->loop);
	time_t now_s = (time_t)(loop_real_ns(part->base->loop) / CLOCK_NS_PER_S), newest, windows;
	unsigned skip[OWNER_JOB_TTYS];
	size_t n;

	if (!part->rules.presence)
		return false;
	if (part->seen_ns && now - part->seen_ns < age_ns)
		return part->somebody;
	n = part->guest ? guest_terminals(part->guest, skip, OWNER_JOB_TTYS) : 0;
	newest = owner_presence_newest(part->config.devices, skip, n);
	windows = (time_t)owner_sessions_newest(part);
	if (windows > newest)
		newest = windows;
	part->seen_ns = now;
	part->somebody = newest && newest + (time_t)part->rules.idle_s > now_s;
	return part->somebody;
}
