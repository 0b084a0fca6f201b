/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What `run` and `place` ask the agent: policy, node, class and what the job
 * needs.  Options not given stay absent: the agent then takes the class
 * profile's value, else a stated default.
 */
#ifndef IOCOM_PLACEMENT_REQUEST_H
#define IOCOM_PLACEMENT_REQUEST_H

#include <msgpack.h>
#include <stdbool.h>

#include "iocom/err.h"

struct placement_request {
	const char *policy, *node, *class_name; /* borrowed from argv; NULL = not given */
	const char *run_dir;
	const char *shown; /* in listings, where it is not the command as it is; NULL: it is */
	double io_per_s;   /* disk requests per wall-clock second when alone; < 0: not given */
	double io_size_kb; /* KB = 1000 bytes a request */
	double requests;   /* number of disk requests in all */
	double memory_mb;
	double cpu_s;
	double data_mb;	   /* initial data that must be at hand where it runs */
	long restarts;	   /* of a restartable job; < 0: it is none */
	const char *again; /* its attempt that was lost, or NULL */
	bool view;	   /* the answer is to carry the view that was looked at */
	bool picked;	   /* `node` was not named by the user: -N took it */
	bool worker;	   /* of iocom batch: never the user's last job */
	bool home_dir;	   /* where the directory is missing at the node, "/" will do */
};

/* Options of getopt_long, values above all characters. */
enum placement_option {
	ASK_POLICY = 0x100,
	ASK_NODE,
	ASK_CLASS,
	ASK_RUN_DIR,
	ASK_IO_RATE,
	ASK_IO_SIZE,
	ASK_REQUESTS,
	ASK_MEM,
	ASK_CPU_TIME,
	ASK_DATA,
	ASK_END
};

#define ASK_LONG_OPTIONS                                                                           \
	{"policy", required_argument, NULL, ASK_POLICY},                                           \
		{"node", required_argument, NULL, ASK_NODE},                                       \
		{"class", required_argument, NULL, ASK_CLASS},                                     \
		{"run-dir", required_argument, NULL, ASK_RUN_DIR},                                 \
		{"io-rate", required_argument, NULL, ASK_IO_RATE},                                 \
		{"io-size", required_argument, NULL, ASK_IO_SIZE},                                 \
		{"requests", required_argument, NULL, ASK_REQUESTS},                               \
		{"mem", required_argument, NULL, ASK_MEM},                                         \
		{"cpu-time", required_argument, NULL, ASK_CPU_TIME},                               \
	{                                                                                          \
		"data", required_argument, NULL, ASK_DATA                                          \
	}

/* The part of --help that explains these options. */
extern const char ask_help[];

void placement_request_init(struct placement_request *ask);
/* One option.  0; 1 when OPTION is not one of ours; -EINVAL with the sentence. */
int placement_request_take(struct placement_request *ask, int option, const char *value,
			   struct iocom_err *err);
/*
 * Packs the request "place" for COMMAND (argv).  RUN false: only decide.
 * EXECUTABLE is the absolute path, or the bare name where PATH has none.  OUT is
 * initialised here and the caller's to destroy.
 */
void placement_request_pack(const struct placement_request *ask, bool run, const char *cwd,
			    const char *executable, char *const *command, msgpack_sbuffer *out);
/*
 * A number with a unit: "64K", "1.5G", "10Mi", "250KB"; plain = UNIT bytes each.
 * 0 and bytes in OUT, or -EINVAL (negative, NaN, unknown suffix, overflow).
 */
int placement_request_size(const char *text, double unit, double *bytes);
/*
 * Where COMMAND is: with a '/', made absolute from CWD; else the first
 * executable on PATH; else a copy of the name.  malloc'ed; NULL when memory is out.
 */
char *placement_request_resolve(const char *command, const char *cwd, const char *path);
/* Whether the name COMMAND is on PATH as a file that cannot be executed. */
bool placement_request_denied(const char *command, const char *path);

#endif
