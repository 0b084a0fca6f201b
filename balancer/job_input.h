/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The input of a command, as far as its words tell it: the regular files that they name.  The
 * needs of many programs follow the size of these, and a second run on the same files finds them in
 * the page cache.
 *
 * The words of a shell's text count like others, and so does what follows a `=` (if=FILE,
 * --input=FILE).  Not counted are the command itself, what a shell's `>` writes to, of=FILE, and
 * directories.  A file that is named twice counts once.
 */
#ifndef IOCOM_JOB_INPUT_H
#define IOCOM_JOB_INPUT_H

#include <stdint.h>

#define JOB_INPUT_FILES 64  /* so many files count */
#define JOB_INPUT_WORDS 512 /* and so many words are looked at */

struct job_input {
	int64_t bytes; /* of all files; -1: it names none */
	int64_t id;    /* of the words, and of the files as they are now; up to 2^53 - 1 */
};

/* Looks at COMMAND (argv, ended by NULL) as the caller, in the current directory. */
struct job_input job_input(char *const *command);
/* Does not look at any file: the words alone. */
struct job_input job_input_words(char *const *command);

#endif
