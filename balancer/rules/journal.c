/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Records the old cell of each changed node, in order, so that changes since a mark can be
 * undone.  Indexes and sums depend on the cells alone, so restoring the cells restores them bit
 * for bit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/rules_private.h"
#include "iocom/array.h"

#define FIRST_ROOM 8

int rules_journal_note(struct rules_view *view, enum rules_note_kind kind, uint32_t index,
		       const char *new_name)
{
	struct rules_journal *j = &view->journal;
	struct rules_note *note;

	if (!j->open)
		return 0;
	if (array_reserve(j->notes, j->room, j->used + 1, FIRST_ROOM) < 0)
		return -ENOMEM;
	note = &j->notes[j->used++];
	note->kind = kind;
	note->index = index;
	note->renamed = kind == RULES_NOTE_POPPED ||
			(new_name != NULL && kind == RULES_NOTE_CHANGED &&
			 memcmp(new_name, view->names[index], RULES_NAME_MAX) != 0);
	if (kind != RULES_NOTE_ADDED)
		note->cell = view->cells[index];
	if (note->renamed)
		memcpy(note->name, view->names[index], RULES_NAME_MAX);
	return 0;
}

static void put_back(struct rules_view *view, const struct rules_note *note)
{
	if (note->renamed)
		memcpy(view->names[note->index], note->name, RULES_NAME_MAX);
	switch (note->kind) {
	case RULES_NOTE_ADDED:
		rules_view_remove_newest(view);
		break;
	case RULES_NOTE_CHANGED:
	case RULES_NOTE_POPPED:
		rules_view_store(view, note->index, &note->cell);
		break;
	}
}

size_t rules_journal_begin(struct rules_view *view)
{
	view->journal.depth++;
	view->journal.open = true;
	return view->journal.used;
}

static void undo(struct rules_view *view, size_t begin)
{
	struct rules_journal *j = &view->journal;

	while (j->used > begin)
		put_back(view, &j->notes[--j->used]);
}

void rules_journal_undo(struct rules_view *view, size_t begin)
{
	struct rules_journal *j = &view->journal;

	undo(view, begin);
	j->depth--;
	j->open = j->marked || j->depth > 0;
}

int rules_view_mark(struct rules_view *view)
{
	struct rules_journal *j = &view->journal;

	if (j->marked || view->deferred)
		return -EBUSY;
	j->marked = j->open = true;
	return 0;
}

void rules_view_rollback(struct rules_view *view)
{
	struct rules_journal *j = &view->journal;

	if (!j->marked)
		return;
	undo(view, 0);
	j->marked = j->open = false;
}

void rules_journal_free(struct rules_view *view)
{
	free(view->journal.notes);
}
