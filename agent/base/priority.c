/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See priority.h.  On Linux each thread has a level of its own. */
#include "agent/base/priority.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOWEST 19

typedef void (*priority_each)(void *arg, pid_t thread);

static void each_thread(priority_each each, void *arg)
{
	DIR *all = opendir("/proc/self/task");
	const struct dirent *entry;

	while (all && (entry = readdir(all)))
		if (entry->d_name[0] != '.')
			each(arg, (pid_t)atoi(entry->d_name));
	if (all)
		closedir(all);
}

static void remember(void *arg, pid_t thread)
{
	struct priority_mark *mark = arg;

	if (mark->count < PRIORITY_THREADS)
		mark->threads[mark->count++] = thread;
}

void priority_mark(struct priority_mark *mark)
{
	mark->count = 0;
	each_thread(remember, mark);
}

struct lowering {
	const struct priority_mark *mark;
	int level;
	size_t count;
};

static void lower(void *arg, pid_t thread)
{
	struct lowering *l = arg;

	for (size_t i = 0; i < l->mark->count; i++)
		if (l->mark->threads[i] == thread)
			return;
	l->count++;
	(void)setpriority(PRIO_PROCESS, (id_t)thread, l->level);
}

size_t priority_lower(const struct priority_mark *mark)
{
	struct lowering l = {.mark = mark,
			     .level = getpriority(PRIO_PROCESS, (id_t)gettid()) + PRIORITY_LEVELS};

	if (l.level > LOWEST)
		l.level = LOWEST;
	if (mark->count < PRIORITY_THREADS) /* else some of them may not be remembered */
		each_thread(lower, &l);
	return l.count;
}
