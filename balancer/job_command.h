/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the commands about jobs share: --json, --run-dir, --help, and their request. */
#ifndef IOCOM_JOB_COMMAND_H
#define IOCOM_JOB_COMMAND_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>

#include "iocom/err.h"

struct job_command {
	const char *help;
	int usage_status; /* exit status for wrong usage */
	const char *run_dir;
	bool json;
	int status; /* the exit status, valid with JOB_COMMAND_LEAVE */
};

/* Values above all characters, for getopt_long. */
enum { JOB_COMMAND_JSON = 0x200, JOB_COMMAND_RUN_DIR, JOB_COMMAND_END };
#define JOB_COMMAND_LEAVE -2

#define JOB_COMMAND_OPTIONS                                                                        \
	{"run-dir", required_argument, NULL, JOB_COMMAND_RUN_DIR},                                 \
	{                                                                                          \
		"help", no_argument, NULL, 'h'                                                     \
	}
#define JOB_COMMAND_OPTION_JSON                                                                    \
	{                                                                                          \
		"json", no_argument, NULL, JOB_COMMAND_JSON                                        \
	}

/*
 * Returns the next option of the command itself, as getopt_long does; -1: there is none;
 * JOB_COMMAND_LEAVE: help or an error was printed.
 */
int job_command_option(struct job_command *command, int argc, char **argv, const char *letters,
		       const struct option *options);
/*
 * Sends the request ASK about a job, named as people do, to its home, wherever that is.  Returns 0
 * or negative errno, as reach_home does.
 */
struct job_command_ask {
	const char *op, *job;
	int signal;	  /* negative: none */
	const char *node; /* NULL: none */
};
int job_command_send(const struct job_command *command, const struct job_command_ask *ask,
		     json_t **answer, struct iocom_err *err);
/* The same without a node. */
int job_command_ask(const struct job_command *command, const char *op, const char *job, int signal,
		    json_t **answer, struct iocom_err *err);

#endif
