/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What /proc tells about a task but the agent does not: its parent and its command line.  Both
 * are used only if /proc and the document agree on the name: otherwise the pid belongs to
 * another namespace or already to another task.
 */
#ifndef IOCOM_TOP_PROC_H
#define IOCOM_TOP_PROC_H

#include <sys/types.h>

#define TOP_COMMAND_MAX 1024 /* most bytes of a command line that we read */

struct top_proc;

/* ROOT is "/proc", borrowed; NULL: out of memory */
struct top_proc *top_proc_new(const char *root);
/* The ROOT for tasks of NODE (NULL: this machine).  Another one's files cannot be read. */
const char *top_proc_root(const char *node);
void top_proc_free(struct top_proc *proc);
/* Call this for each document: it forgets old answers or lets them be read again. */
void top_proc_turn(struct top_proc *proc);
/* The parent's pid; 0: it has none, or it is unknown. */
pid_t top_proc_parent(struct top_proc *proc, pid_t pid, const char *comm);
/*
 * The command line as valid UTF-8 with blanks between the words; NULL: there is none (a kernel
 * thread) or it is unknown.  Valid until the next turn.
 */
const char *top_proc_command(struct top_proc *proc, pid_t pid, const char *comm);

#endif
