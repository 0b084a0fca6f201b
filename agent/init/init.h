/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocom-init STATUS REPORT EXECUTABLE -- ARGV0 [ARGUMENT...]
 *
 * The first process of a migratable job, in a pid namespace of its own, so that the job's pids are
 * free wherever it goes.  It leads the job's session, starts the command, reaps what the command
 * leaves behind, and writes the command's end to the pipe STATUS.  If the command cannot be
 * started it writes errno as an `int` to the pipe REPORT, which is just closed otherwise.  It
 * keeps none of the job's streams open, so that they end with the job.  It ends when no process of
 * the namespace is left.
 */
#ifndef IOCOM_INIT_H
#define IOCOM_INIT_H

#include <stdint.h>

/* What comes out of STATUS; less than all of it: init was killed, and all others with it. */
struct init_end {
	int32_t status; /* waitpid's */
	uint32_t unused;
	/* of the command and of those that it waited for; the time also of the steps before them */
	uint64_t cpu_us, max_rss_kb;
};

/* Returns the exit status of the program. */
int init_main(int argc, char **argv);

#endif
