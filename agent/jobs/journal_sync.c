/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which commits are on the disk, and what waits for that; see journal.h.
 *
 *   commit N -> someone waits for N -> the disk syncs up to N -> those who wait for N or less
 *            -> commits and waits that came meanwhile: one more sync for all of them
 *
 * After a sync that failed nothing counts as durable by a mere second sync: the kernel drops what
 * it could not write, and reports the error once.  The next one repairs (journal_disk).
 */
#include "agent/jobs/journal_sql.h"

void journal_sync_open(struct journal *j)
{
	j->sync = (struct journal_sync){.position = 1, .changes = journal_changes(j)};
}

/*
 * Returns the number of the newest commit.  Those that nobody has looked at since the last one
 * count as one.
 */
static uint64_t journal_sync_count(struct journal *j)
{
	uint64_t changes = journal_changes(j);

	if (changes != j->sync.changes && sqlite3_get_autocommit(j->file.db)) {
		j->sync.position++;
		j->sync.changes = changes;
	}
	return j->sync.position;
}

uint64_t journal_changes(const struct journal *j)
{
	return (uint64_t)sqlite3_total_changes64(j->file.db);
}

uint64_t journal_position(struct journal *j)
{
	return journal_sync_count(j) + !sqlite3_get_autocommit(j->file.db);
}

bool journal_is_durable(const struct journal *j, uint64_t position)
{
	return !j->sync.disk.begin || position <= j->sync.durable;
}

/* Begins a sync if somebody waits for what is committed, and none is under way. */
static void journal_sync_begin(struct journal *j)
{
	struct journal_sync *s = &j->sync;

	if (s->syncing || !s->disk.begin || !s->first || s->first->position > journal_sync_count(j))
		return;
	s->syncing = true;
	s->under_way = s->position;
	s->disk.begin(s->disk.arg, s->repair);
}

void journal_sync_ended(struct journal *j)
{
	struct journal_sync *s = &j->sync;
	const struct journal_wait *last = s->first;

	while (last && last->next)
		last = last->next;
	/* The transaction changed nothing, or failed: those who waited for it need not any more. */
	if (last && last->position > journal_sync_count(j))
		s->position = last->position;
	journal_sync_begin(j);
}

bool journal_when_durable(struct journal *j, struct journal_wait *wait)
{
	struct journal_wait **last = &j->sync.first;

	wait->position = journal_position(j);
	if (journal_is_durable(j, wait->position))
		return false;
	while (*last)
		last = &(*last)->next;
	wait->waiting = true;
	wait->next = NULL;
	*last = wait;
	journal_sync_begin(j);
	return true;
}

static bool journal_sync_remove(struct journal_wait **list, const struct journal_wait *wait)
{
	for (struct journal_wait **p = list; *p; p = &(*p)->next) {
		if (*p != wait)
			continue;
		*p = wait->next;
		return true;
	}
	return false;
}

void journal_forget(struct journal *j, struct journal_wait *wait)
{
	if (!wait->waiting)
		return;
	wait->waiting = false;
	if (!journal_sync_remove(&j->sync.first, wait))
		(void)journal_sync_remove(&j->sync.served, wait);
}

/* Moves those who waited for the sync that has ended to the list of those to be called. */
static void journal_sync_serve(struct journal_sync *s)
{
	struct journal_wait **end = &s->served;

	while (*end)
		end = &(*end)->next;
	while (s->first && s->first->position <= s->under_way) {
		*end = s->first;
		s->first = s->first->next;
		end = &(*end)->next;
		*end = NULL;
	}
}

void journal_synced(struct journal *j, int rc)
{
	struct journal_sync *s = &j->sync;
	struct journal_wait *wait;

	s->syncing = false;
	s->repair = rc != 0;
	if (!rc)
		s->durable = s->under_way;
	journal_sync_serve(s);
	while ((wait = s->served)) {
		s->served = wait->next;
		wait->waiting = false;
		wait->done(wait->arg, rc);
	}
	journal_sync_begin(j);
}

void journal_set_disk(struct journal *j, const struct journal_disk *disk)
{
	struct journal_wait *wait;

	j->sync.disk = disk ? *disk : (struct journal_disk){0};
	j->sync.syncing = false;
	while (!disk && (wait = j->sync.first)) {
		j->sync.first = wait->next;
		wait->waiting = false;
	}
}
