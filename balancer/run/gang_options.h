/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The options of `iocom run -n TASKS`, which starts one job of several tasks. */
#ifndef IOCOM_GANG_OPTIONS_H
#define IOCOM_GANG_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "balancer/placement_request.h"
#include "iocom/err.h"

enum gang_mpi {
	GANG_MPI_NONE, /* independent tasks */
	GANG_MPI_AUTO, /* what the program was built for */
	GANG_MPI_PMIX,
	GANG_MPI_PMI1,
	GANG_MPI_RSH, /* the user's own mpirun starts it */
};

struct gang_options {
	int64_t tasks; /* below 0: an ordinary job */
	enum gang_mpi mpi;
	bool keep_going, bind, label;
	const char *given; /* an option was given that needs -n; NULL: none */
	const char *on;	   /* a list of nodes; NULL: any */
};

/* Values for getopt_long, above those of multi.h. */
enum gang_option {
	GANG_TASKS = 0x300,
	GANG_MPI,
	GANG_PER_NODE,
	GANG_OVERSUBSCRIBE,
	GANG_ON,
	GANG_KEEP_GOING,
	GANG_BIND,
};

/* Those that say where tasks may go. */
#define GANG_PLACE_OPTIONS                                                                         \
	{"ntasks", required_argument, NULL, GANG_TASKS},                                           \
		{"per-node", required_argument, NULL, GANG_PER_NODE},                              \
		{"ntasks-per-node", required_argument, NULL, GANG_PER_NODE},                       \
		{"oversubscribe", no_argument, NULL, GANG_OVERSUBSCRIBE},                          \
		{"mpi", optional_argument, NULL, GANG_MPI},                                        \
	{                                                                                          \
		"on", required_argument, NULL, GANG_ON                                             \
	}
#define GANG_LONG_OPTIONS                                                                          \
	GANG_PLACE_OPTIONS, {"keep-going", no_argument, NULL, GANG_KEEP_GOING},                    \
	{                                                                                          \
		"bind", no_argument, NULL, GANG_BIND                                               \
	}

/* The part of --help that explains these options. */
extern const char gang_help[];

void gang_options_init(struct gang_options *options);
/*
 * Takes one option; what the agent must know goes to ASK.  Returns 0; 1: OPTION is not ours;
 * -EINVAL with the reason in ERR.
 */
int gang_options_take(struct gang_options *options, struct placement_ask *ask, int option,
		      const char *value, struct iocom_err *err);
/*
 * Checks that the options agree, and names the nodes of --on in ASK.  SINGLE is an option given
 * that does not go with -n, or NULL; COMMAND is the job's.  Returns 0 or -EINVAL.
 */
int gang_options_check(const struct gang_options *options, struct placement_ask *ask,
		       const char *single, char *const *command, struct iocom_err *err);

#endif
