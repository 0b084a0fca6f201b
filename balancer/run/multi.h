/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom run -N`: one job on each of many nodes.  A process of its own runs each
 * job's client, so that nothing that one node does reaches another; this one
 * starts so many at a time, moves their output, forwards signals, sums up.
 *
 *   multi.c         options
 *   multi_start.c   the processes
 *   multi_loop.c    the loop: output, input, signals, ends
 *   multi_nodes.c   which nodes
 *   multi_lines.c   output by whole lines, labelled or gathered
 *   multi_report.c  how each node ended, and all of them
 */
#ifndef IOCOM_MULTI_H
#define IOCOM_MULTI_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "balancer/placement_request.h"
#include "iocom/err.h"
#include "balancer/run/nodelist.h"
#include "balancer/run/run.h"

struct multi_options {
	const char *nodes; /* "n1,n[2-4]", a number, "all"; NULL: one job, as ever */
	bool label, gather, stdin_all, stdin_none, kill_on_fail;
	const char *given; /* an option that means nothing without -N */
	unsigned fanout;
};

/* Options of getopt_long, behind those of placement_request.h and of `run` itself. */
enum multi_option {
	MULTI_NODES = 0x200,
	MULTI_LABEL,
	MULTI_NO_LABEL,
	MULTI_GATHER,
	MULTI_STDIN,
	MULTI_FANOUT,
	MULTI_KILL_ON_FAIL,
};

#define MULTI_LONG_OPTIONS                                                                         \
	{"nodes", required_argument, NULL, MULTI_NODES},                                           \
		{"label", no_argument, NULL, MULTI_LABEL},                                         \
		{"no-label", no_argument, NULL, MULTI_NO_LABEL},                                   \
		{"gather", no_argument, NULL, MULTI_GATHER},                                       \
		{"stdin", required_argument, NULL, MULTI_STDIN},                                   \
		{"fanout", required_argument, NULL, MULTI_FANOUT},                                 \
	{                                                                                          \
		"kill-on-fail", no_argument, NULL, MULTI_KILL_ON_FAIL                              \
	}

#define MULTI_FANOUT_DEFAULT 32
#define MULTI_FANOUT_MAX     1000

/* The part of --help that explains these options. */
extern const char multi_help[];

void multi_init(struct multi_options *options);
/* One option.  0; 1 when OPTION is not one of ours; -EINVAL with the sentence. */
int multi_take(struct multi_options *options, int option, const char *value, struct iocom_err *err);
/* Whether they go together; SINGLE: an option given that is for one job only, or NULL.
 * 0 or -EINVAL. */
int multi_check(const struct multi_options *options, const char *single, struct iocom_err *err);

/* What the process of one node does; see multi_run. */
struct multi_job {
	const char *name; /* of the program, for sentences */
	/* Runs the job at NODE with descriptors 0, 1, 2; writes its report lines to REPORT_FD.
	 * The exit status. */
	int (*run)(void *arg, const char *node, int report_fd);
	void *arg;
	int status_fd;		       /* the lines of all nodes, and one at the end; -1: none */
	const struct nodelist *spares; /* take the places of nodes that refuse, in their order */
};

/* multi_loop.c: runs JOB on all NODES and returns the exit status for them all.  Changes the signal
 * mask. */
int multi_run(const struct multi_options *options, const struct multi_job *job,
	      const struct nodelist *nodes);

/* --- multi_nodes.c --- */

/*
 * The nodes that TEXT means: a list of names as it is; "all": those that live and let jobs
 * in (others are said on standard error, after NAME); K: the K that the policy of ASK would
 * take one after another, and in SPARES those that it would take then, MULTI_SPARES_MAX of
 * them.  Both lists are empty before.  0 or negative errno with the sentence.
 */
#define MULTI_SPARES_MAX 64
int multi_nodes(const char *name, const char *text, const struct placement_request *ask,
		const char *cwd, const char *executable, char *const *command, struct nodelist *out,
		struct nodelist *spares, struct iocom_err *err);
/* Whether TEXT leaves it to us which nodes they are. */
bool multi_picks(const char *text);

/* --- multi_lines.c --- */

#define MULTI_LINE_MAX	 (1u << 20)   /* a longer line is cut in pieces */
#define MULTI_GATHER_MAX (256u << 20) /* of all nodes; then the largest part is printed */

/* Bytes of one output of one node that are no whole line yet. */
struct multi_lines {
	char *data;
	size_t length, room;
	size_t scanned; /* without a newline so far */
};

/* Where lines go: one of this program's own outputs. */
struct multi_sink {
	struct run_output output;
	struct queue ready; /* labelled, to be written */
	bool label;
	uint64_t cut; /* lines that were longer than MULTI_LINE_MAX */
};

void multi_lines_fini(struct multi_lines *lines);
/*
 * Reads FD once; whole lines go on to GATHER, where given, else to SINK, labelled NODE
 * where the sink labels.  At the end what is left goes too, with a newline.
 * 1 more may come; 0 the end; -ENOMEM.
 */
int multi_lines_read(struct multi_lines *lines, int fd, const char *node, struct multi_sink *sink,
		     struct queue *gather);
/* Writes what is ready; the rest waits in the output.  0, or -EPIPE: nobody reads. */
int multi_sink_flush(struct multi_sink *sink);
void multi_sink_fini(struct multi_sink *sink);
/* Adds the block of TEXT under the names of the COUNT nodes that printed it.  0 or -ENOMEM. */
int multi_sink_block(struct multi_sink *sink, const char *const *names, size_t count,
		     const struct queue *text);

/* --- multi_report.c, multi_start.c, multi_loop.c --- */

enum multi_state { MULTI_WAITING, MULTI_RUNNING, MULTI_DONE };

struct multi_node {
	const char *name;
	enum multi_state state;
	pid_t pid; /* 0: reaped */
	int fd[2]; /* its standard output and error; -1: ended */
	int in;	   /* its standard input; -1: none */
	int report;
	size_t in_done; /* bytes of the piece of input that it has */
	struct multi_lines lines[2];
	struct queue gathered;
	struct multi_lines report_line;
	json_t *end; /* the last line of its report, or NULL */
	char *job;   /* NULL: never placed */
	bool begun;  /* a process was started for it */
	int status;
};

/* A line of NODE's report, without the newline. */
void multi_report_line(struct multi_node *node, const char *line, size_t length);
/* Whether NODE said no, so that nothing began there. */
bool multi_report_refused(const struct multi_node *node);
/*
 * The sentence about those that failed, on standard error: nothing when none did.  UNREAD: the
 * reader of our output left, and a node that SIGPIPE ended is no failure to speak of.
 */
void multi_report_failed(const char *name, const struct multi_node *nodes, size_t count,
			 bool unread);
/* The last line for status_fd. */
void multi_report_end(int fd, const struct multi_node *nodes, size_t count, int status);

/*
 * Starts the process of NODE, in a process group of its own, with BEFORE as its signal
 * mask; it dies with this one.  With INPUT its standard input is a pipe.  0 or negative
 * errno (-EMFILE, -EAGAIN: later it may go).
 */
int multi_start(struct multi_node *node, const struct multi_job *job, const sigset_t *before,
		bool input);

#endif
