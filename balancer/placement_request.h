/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The options of `run`, `place` and `batch` that say what is asked of the agent: where,
 * and what the job needs.  What is not given stays absent: the agent then takes the class
 * profile's value, else a stated default.
 */
#ifndef IOCOM_PLACEMENT_REQUEST_H
#define IOCOM_PLACEMENT_REQUEST_H

#include <getopt.h>
#include <msgpack.h>
#include <stdbool.h>

#include "balancer/data/data_set.h"
#include "iocom/err.h"
#include "balancer/view/placement.h"

struct placement_request {
	struct placement_ask ask;
	const char *run_dir;	 /* borrowed from argv; NULL: not given */
	double io_bytes;	 /* --io: all that the job reads and writes; below 0: not given */
	struct data_names names; /* --data PATH; borrowed from argv */
	const char *shown;	 /* what listings show instead of the command; NULL: the command */
};

/* getopt_long returns these values for our options; they are above all characters. */
enum { ASK_FIRST = 0x100, ASK_END = 0x180 };

/* The part of --help that explains these options. */
extern const char ask_help[];

void placement_request_init(struct placement_request *request);
/* Returns our options and OWN (ended by {0}) for getopt_long, valid until the next call. */
const struct option *placement_request_options(const struct option *own);
/* Returns whether OPTION is our option of that name. */
bool placement_request_is(int option, const char *name);
/* The needs that the options told, those of --io too.  Returns 0, or -EINVAL with the reason. */
int placement_request_needs(const struct placement_request *request, struct need_options *needs,
			    struct iocom_err *err);
/* Takes one option.  Returns 0; 1: OPTION is not ours; -EINVAL with the reason in ERR. */
int placement_request_take(struct placement_request *request, int option, const char *value,
			   struct iocom_err *err);
/* Requests NODE, as --node does.  Returns 0 or -EINVAL with the reason in ERR. */
int placement_request_node(struct placement_request *request, const char *node,
			   struct iocom_err *err);
/* Copies the given class, or that of COMMAND (job_class). */
void placement_request_class(const struct placement_request *request, char *const *command,
			     char out[PLACEMENT_CLASS_MAX]);
/*
 * Packs the request "place" for COMMAND.  RUN false: the agent only decides.  EXECUTABLE is the
 * absolute path, or the bare name if PATH has none.  Returns 0, and the caller destroys OUT; or
 * -ENAMETOOLONG, -EINVAL (--io beside --requests) with the reason in ERR.
 */
int placement_request_pack(const struct placement_request *request, bool run, const char *cwd,
			   const char *executable, char *const *command, msgpack_sbuffer *out,
			   struct iocom_err *err);
/*
 * Packs as above, asks the agent and reads its answer, which the caller frees in any case. Returns
 * 0 or negative errno with the reason in ERR.
 */
int placement_request_ask(const struct placement_request *request, bool run, const char *cwd,
			  const char *executable, char *const *command, struct placement *answer,
			  struct iocom_err *err);
/*
 * Does the same for a job that is to run.  If the agent has begun it (answer->begun), STREAM gets
 * the job's stream; else -1.
 */
int placement_request_begin(const struct placement_request *request, void (*meanwhile)(void *arg),
			    void *arg, const char *cwd, const char *executable,
			    char *const *command, struct placement *answer, int *stream,
			    struct iocom_err *err);
/*
 * Parses a number with a unit: "64K", "1.5G", "10Mi", "250KB"; without a suffix it counts UNIT
 * bytes. Returns 0 and the bytes in OUT, or -EINVAL (negative, NaN, unknown suffix, overflow).
 */
int placement_request_size(const char *text, double unit, double *bytes);
/*
 * Finds COMMAND: with a '/', the name made absolute from CWD; else the first executable on PATH;
 * else a copy of the name.  The result is malloc'ed; NULL: there is no memory.
 */
char *placement_request_resolve(const char *command, const char *cwd, const char *path);
/* Returns whether the name COMMAND is on PATH as a file that cannot be executed. */
bool placement_request_denied(const char *command, const char *path);

#endif
