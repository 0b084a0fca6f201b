/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One job of `iocom run`, from its options to its end: cmd_run.c reads the options, run_place.c
 * asks for its place, run_job.c runs it there, in as many attempts as it takes.
 */
#ifndef IOCOM_RUN_JOB_H
#define IOCOM_RUN_JOB_H

#include "balancer/placement_data.h"
#include "balancer/placement_request.h"
#include "balancer/run/gang_options.h"
#include "balancer/run/multi.h"
#include "balancer/run/run.h"

/* What makes a job a part of a gang. */
struct run_part {
	struct run_channel channel;
	const void *plan; /* packed, for its launcher */
	size_t plan_length;
};

struct run {
	const char *name; /* "iocom run", or the command that uses it, for sentences */
	/* a login's directory ("/" if missing); NULL: start in our working directory */
	const char *home;
	struct placement_request request;
	struct multi_options multi;
	struct gang_options gang;
	const char *env_rule;
	double grace_s;
	int status_fd;
	char at[IOCOM_NAME_MAX]; /* where the job was last; "": it did not begin */
	bool json, verbose, detach, migratable, null;
	bool worker; /* a worker of `iocom batch`, which prints the refusal itself */
	bool kept;   /* we stay in the background to start further attempts */
	bool pty;
	int escape;
	bool failed;	 /* iocom failed before the job began */
	bool full;	 /* because the node has no room for its data */
	uint32_t closed; /* which of 0, 1, 2 were closed, as a mask */
	char **command;
	char *cwd, *executable;
	struct spec spec; /* it went with the request, and has no names yet; all zero: none did */
	int stream;	  /* of the job that the agent has begun; -1: none */
	struct run_result result;
	struct noise_pair pair; /* for the first handshake */
	off_t input_at;		/* offset at which a file on standard input began; -1: no file */
	struct run_report report;
	struct run_tty tty;
	struct placement_data along; /* what goes along */
	struct run_part
		*part; /* NULL: it is no part; else whoever started us prints how it ended */
};

/* --- run_place.c --- */

/* Asks the agent for the place of the struct run ARG.  Returns 0 or negative errno. */
int run_place(void *arg, struct placement *answer, struct iocom_err *err);
/* Fills SPEC for the place that ANSWER names.  Returns 0 or negative errno. */
int run_place_name(struct run *run, const struct placement *answer, struct spec *spec,
		   struct iocom_err *err);

/* --- run_job.c --- */

/* Places and runs one job.  Returns the exit code (>= 0); ERR says what failed, if anything. */
int run_job(struct run *run, struct iocom_err *err);
/* Runs the job where ANSWER says.  Returns the exit code; -1: it failed before the job began. */
int run_job_placed(struct run *run, const struct placement *answer, struct iocom_err *err);

#endif
