/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom run -N` runs one job on each of many nodes.  A separate process runs each job's client,
 * so that trouble with one node does not reach the others; the main process limits how many run
 * at a time, moves their output, forwards signals and sums up.
 *
 *   multi.c         options
 *   multi_start.c   the processes
 *   multi_loop.c    the loop: output, input, signals, ends
 *   multi_nodes.c   choosing nodes
 *   multi_lines.c   output by whole lines, labelled or gathered
 *   multi_report.c  how each node ended, and the summary
 *
 * The parts of a gang (gang.h) are started in the same way, and watched.
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
	const char *nodes; /* "n1,n[2-4]", a number or "all"; NULL: one ordinary job */
	bool label, gather, stdin_all, stdin_none, kill_on_fail;
	const char *given;  /* an option was given that needs -N; NULL: none */
	const char *labels; /* so was one that needs -N or -n; NULL: none */
	unsigned fanout;
};

/* Values for getopt_long, above those of placement_request.h and of `run` itself. */
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
/* Takes one option.  Returns 0; 1: OPTION is not ours; -EINVAL with the reason in ERR. */
int multi_take(struct multi_options *options, int option, const char *value, struct iocom_err *err);
/*
 * Checks that the options agree.  SINGLE is an option given that needs a single job, or NULL;
 * TASKS: so was -n.  Returns 0 or -EINVAL.
 */
int multi_check(const struct multi_options *options, const char *single, bool tasks,
		struct iocom_err *err);

struct multi_node;

/*
 * What makes the nodes' jobs one job: decisions for all of them.  Each node's process has a socket
 * for packets (SOCK_SEQPACKET) at MULTI_CHANNEL_FD, whose other end is the node's `channel`.  Node
 * I is the I-th of the list.  All begin at once.
 */
#define MULTI_CHANNEL_FD 4
struct multi_watch {
	size_t reader; /* this node gets our standard input, the others none */
	/* Before anything else. */
	void (*begin)(void *arg, struct multi_node *nodes);
	/* The process of NODE sent a packet, which is cut if it is longer than MULTI_PACKET_MAX. */
	void (*packet)(void *arg, size_t node, const void *data, size_t length);
	/* NODE is done: its status and report are there. */
	void (*ended)(void *arg, size_t node);
	/* This program got SIGNAL, which nobody else was told. */
	void (*signal)(void *arg, int signal);
	/*
	 * After each turn.  Returns the milliseconds after which to call it again at the latest;
	 * -1: when something happens; -2: to kill all processes now.
	 */
	int (*turn)(void *arg);
	/* At the end; UNREAD: the reader of our output left.  Returns the exit status. */
	int (*conclude)(void *arg, bool unread);
};
#define MULTI_PACKET_MAX 4096
#define MULTI_TURN_KILL	 (-2)

/* The work of the process of one node; see multi_run. */
struct multi_job {
	const char *name; /* the program's name, for sentences */
	/*
	 * Runs the job at NODE with descriptors 0, 1, 2 and writes report lines to REPORT_FD.
	 * Returns the exit status.
	 */
	int (*run)(void *arg, const char *node, int report_fd);
	void *arg;
	int status_fd;			 /* gets the lines of all nodes and a final one; -1: none */
	const struct nodelist *spares;	 /* replace, in this order, nodes that refuse */
	const struct multi_watch *watch; /* NULL: the jobs have nothing to do with each other */
};

/*
 * multi_loop.c: runs JOB on all NODES and returns the exit status for them all.  Changes the
 * signal mask.
 */
int multi_run(const struct multi_options *options, const struct multi_job *job,
	      const struct nodelist *nodes);

/* --- multi_nodes.c --- */

/*
 * Finds the nodes that TEXT means.  A list of names is taken as it is; "all" means the nodes that
 * are alive and let jobs in (the others are named on standard error, after NAME); a number K means
 * the first K choices of ASK's policy, and SPARES gets its next choices, at most MULTI_SPARES_MAX.
 * Both lists must be empty.  Returns 0 or negative errno with the reason in ERR.
 */
#define MULTI_SPARES_MAX 64
int multi_nodes(const char *name, const char *text, const struct placement_request *ask,
		const char *cwd, const char *executable, char *const *command, struct nodelist *out,
		struct nodelist *spares, struct iocom_err *err);
/* Returns true if TEXT lets us choose the nodes. */
bool multi_picks(const char *text);

/* --- multi_lines.c --- */

#define MULTI_LINE_MAX (1u << 20) /* longer lines are split */
/* limit for all nodes; beyond it the largest part is printed early */
#define MULTI_GATHER_MAX (256u << 20)

/* Bytes of a node's output that do not form a whole line yet. */
struct multi_lines {
	char *data;
	size_t length, room;
	size_t scanned; /* bytes known to contain no newline */
};

/* One of this program's own outputs, to which lines go. */
struct multi_sink {
	struct run_output output;
	struct queue ready; /* labelled lines to be written */
	bool label;
	uint64_t cut; /* lines that were longer than MULTI_LINE_MAX */
};

void multi_lines_fini(struct multi_lines *lines);
/*
 * Reads FD once and passes whole lines on to GATHER, if not NULL, else to SINK, with the label
 * NODE if the sink labels.  At the end of file it passes the rest on, too, with a newline.
 * Returns 1: more may come; 0: end of file; -ENOMEM.
 */
int multi_lines_read(struct multi_lines *lines, int fd, const char *node, struct multi_sink *sink,
		     struct queue *gather);
/*
 * Writes what is ready; what the reader does not take stays queued.  Returns 0, or -EPIPE:
 * nobody reads.
 */
int multi_sink_flush(struct multi_sink *sink);
void multi_sink_fini(struct multi_sink *sink);
/*
 * Adds TEXT as one block under the names of the COUNT nodes that printed it.  Returns 0 or
 * -ENOMEM.
 */
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
	int channel;	/* of a watched node; -1: none, or it was closed */
	size_t in_done; /* bytes that it has of the current piece of input */
	struct multi_lines lines[2];
	struct queue gathered;
	struct multi_lines report_line;
	json_t *end; /* the last line of its report, or NULL */
	char *job;   /* NULL: never placed */
	bool begun;  /* a process was started for it */
	int status;
};

/* Handles a line of NODE's report, without the newline. */
void multi_report_line(struct multi_node *node, const char *line, size_t length);
/* Returns true if NODE refused the job, so that nothing began there. */
bool multi_report_refused(const struct multi_node *node);
/*
 * Prints which nodes failed on standard error, if any did.  UNREAD: the reader of our output
 * left, so nodes that SIGPIPE ended do not count as failed.
 */
void multi_report_failed(const char *name, const struct multi_node *nodes, size_t count,
			 bool unread);
/* Writes the last line to status_fd. */
void multi_report_end(int fd, const struct multi_node *nodes, size_t count, int status);

/*
 * Starts the process of NODE in a process group of its own, with BEFORE as its signal mask; it
 * dies with this process.  With INPUT its standard input is a pipe, and with a watch it has a
 * channel.  Returns 0 or negative
 * errno (after -EMFILE and -EAGAIN a later attempt may succeed).
 */
int multi_start(struct multi_node *node, const struct multi_job *job, const sigset_t *before,
		bool input);

#endif
