/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client of a gang, `iocom run -n TASKS`: home decides a node for each task and lets all parts
 * in, or none; here a worker process for each part starts it as any placed job (multi.h), and the
 * main process decides for all of them.
 *
 *   gang_options.c  options
 *   gang_mpi.c      how the program's tasks find each other
 *   gang.c          asks home, makes the plan, runs the parts
 *   gang_watch.c    what is decided while parts start, run and end
 *   gang_say.c      what is said of it: progress, --status-fd
 *   gang_rsh.c      --mpi=rsh: the user's mpirun starts the tasks where home says
 *   run_channel.c   a worker's side of the packets to and from the main process
 */
#ifndef IOCOM_GANG_CLIENT_H
#define IOCOM_GANG_CLIENT_H

#include "balancer/run/mpi_program.h"
#include "balancer/run/run_job.h"
#include "user/gang_plan.h"

/* Runs the gang that RUN describes.  Returns the exit code; ERR says what failed, if anything. */
int gang_run(struct run *run, struct iocom_err *err);

/* --- gang_mpi.c --- */

struct gang_mpi_choice {
	enum gang_launch launch; /* GANG_LAUNCH_NONE: by mpirun */
	enum mpi_program program;
	const char *name;		  /* what the command is, behind its wrappers */
	char library[MPI_LIBRARY_LENGTH]; /* which told that; "": none did */
};
/*
 * Decides how the tasks are started, by --mpi and the program.  Returns 0 or RUN_FAILED: it is no
 * MPI program, or one of another MPI.
 */
int gang_mpi_choose(const struct run *run, struct gang_mpi_choice *choice, struct iocom_err *err);

/* --- gang_rsh.c --- */

/*
 * Becomes the mpirun of PROGRAM's MPI, which starts the ranks where ANSWER says.  Returns
 * RUN_FAILED if it cannot.
 */
int gang_rsh(const struct run *run, const struct placement *answer, enum mpi_program program,
	     struct iocom_err *err);

/* --- gang_say.c --- */

/* Says on a terminal, once it takes long, for whom a gang waits. */
struct gang_progress {
	uint64_t from_ms; /* when to begin; 0: never */
	char shown[160];  /* what stands there now */
};
void gang_progress_begin(struct gang_progress *progress, uint64_t now_ms);
struct gang_watch;
/* Returns the milliseconds until it wants to be called again; -1: not at all. */
int gang_progress_show(struct gang_progress *progress, const char *name,
		       const struct gang_watch *watch, uint64_t now_ms);
void gang_progress_clear(struct gang_progress *progress);

/* The lines of --status-fd. */
void gang_report_started(const struct run_report *report, const struct gang_answer *gang);
/* NODES has an entry for each part. */
void gang_report_end(const struct run_report *report, const struct gang_watch *watch,
		     const struct multi_node *nodes, int status, const char *text);

#endif
