/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The text of the newest page of metrics as a file in memory, which the network part gets to read.
 * It is sealed: its reader can neither write to it nor make it longer.  A page's text is made once,
 * when it is first wanted, and in a thread: with thousands of jobs it takes longer than the loop
 * may wait.  However often a text is wanted and however long its reader keeps it, there is one
 * rendering for each page and memory for the last two texts and one that is being made.
 *
 *   put -> newest page -- want --> thread: text, sealed --> loop: HAVE
 *                  '-- no newer page since the last text --> HAVE at once
 */
#ifndef IOCOM_AGENT_METRICS_FILE_H
#define IOCOM_AGENT_METRICS_FILE_H

#include "agent/base/base.h"
#include "agent/metrics/metrics_page.h"

/*
 * The thread has this long to make a text; then the older text is given.  It is less than a client
 * waits (NET_HTTP_WAIT_MS).
 */
#define METRICS_FILE_LIMIT_MS 1500

struct metrics_file;

/*
 * HAVE gets, in the loop, the descriptor with the newest text; it stays FILE's and is valid during
 * the call only.  A copy of it is good until the second text after this one, which empties it.  The
 * file is empty until there is a page.  Borrows BASE.  Returns 0; negative errno with the reason in
 * ERR.
 */
int metrics_file_new(struct metrics_file **file, const struct base *base,
		     void (*have)(void *arg, int fd), void *arg, struct iocom_err *err);
void metrics_file_free(struct metrics_file *file); /* NULL is fine */
/* Takes PAGE, which is the newest from now on. */
void metrics_file_put(struct metrics_file *file, struct metrics_page *page);
/*
 * HAVE is called for it, perhaps before this returns; once for all who want the text while it is
 * made.  If no text can be made, that is logged and HAVE gets the older one.
 */
void metrics_file_want(struct metrics_file *file);

#endif
