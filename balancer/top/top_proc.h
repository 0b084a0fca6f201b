/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What /proc tells of a task that the agent does not: its parent and its
 * command line.  Both only where the name there is the name in the document:
 * else the pid is of another namespace, or already of another task.
 */
#ifndef IOCOM_TOP_PROC_H
#define IOCOM_TOP_PROC_H

#include <sys/types.h>

#define TOP_COMMAND_MAX 1024 /* bytes of a command line that are read */

struct top_proc;

struct top_proc *top_proc_new(const char *root); /* "/proc", borrowed; NULL: out of memory */
void top_proc_free(struct top_proc *proc);
/* Call for each document: what was asked long ago is asked again, or forgotten. */
void top_proc_turn(struct top_proc *proc);
/* The parent's pid; 0 when it has none, or is not known. */
pid_t top_proc_parent(struct top_proc *proc, pid_t pid, const char *comm);
/* The command line as valid UTF-8 with blanks between the words; NULL when there is none (a kernel
 * thread) or it is not known.  Valid until the next turn. */
const char *top_proc_command(struct top_proc *proc, pid_t pid, const char *comm);

#endif
