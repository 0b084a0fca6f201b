/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The class of a job whose user names none: the program that does its work.
 *
 * The first word of a command is often not that program.  `sh -c 'zcat a | sort'`, `python3
 * align.py` and `nice -n 5 make` would be jobs of the classes sh, python3 and nice, whose needs are
 * averages over everything that is run like that.  So these are looked through:
 *
 *   wrappers       env, nice, ionice, nohup, setsid, stdbuf, taskset, time, timeout
 *   interpreters   python3 align.py: align.py    python3 -m pip: pip    java -jar tool.jar:
 * tool.jar shells         bash run.sh: run.sh    sh -c 'cd a && zcat b | sort': zcat+sort
 *
 * Of a shell's text the programs count in their order, without those that only prepare (cd, export,
 * set ...), joined by '+', each once in a row.  Text that is more than commands one after the other
 * (loops, conditions, functions, a program named by a variable) is of the shell's own class, and so
 * is a program given as text (python3 -c ..., perl -e ...) of the interpreter's.
 */
#ifndef IOCOM_JOB_CLASS_H
#define IOCOM_JOB_CLASS_H

#include <stddef.h>

/*
 * Returns the first word of COMMAND (argv, not empty) that is no wrapper and not a wrapper's, such
 * as make in `nice -n 5 make`; NULL: the wrappers run nothing, or it is given as text.
 */
char *const *job_class_command(char *const *command);
/* Writes the class of COMMAND (argv, ended by NULL, not empty), cut to SIZE - 1 bytes, to OUT. */
void job_class(char *const *command, char *out, size_t size);
/* Writes the class of a shell's TEXT to OUT, or an empty string if it says none. */
void job_class_text(const char *text, char *out, size_t size);

#endif
