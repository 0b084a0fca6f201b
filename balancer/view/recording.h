/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A recording: what a cluster, live or simulated, looked like, what it was asked
 * and what was decided.  JSON Lines: one object a line, UTF-8, plain or gzip'ed; or
 * the same objects in MessagePack, one behind the other (json_msgpack.h; written where
 * the name says so; known by content).  Version 1.  Each line begins with "record"; times are ms
 *since the recording began and never go back; units as in a view file (view_json.h), whose objects
 * are used unchanged.
 *
 *   {"record":"header","version":1,"live":false,"program":"iocom-sim 0.1.0",
 *    "cluster":"6xfc","source":"CSD trace, run 2","hash":"sha256:...",
 *    "node":"","start_ns":0,"policy":"iocm-re","seed":1,"period_ms":0,
 *    "notice_ms":0,"rates":"computation",
 *    "reference_mips":800,"network_mb_per_s":125,
 *    "units":{"time":"ms","rate":"1/ms","memory":"MB","request":"KB",
 *             "bandwidth":"MB/s"},"params":{"fixed_cost_ms":100, ...}}
 *	First line, exactly one.  "units" is for people.  In wall rates "io_per_ms" is
 *	disk requests per wall-clock ms.  reference_mips 0: each decision's home's.
 *	"node": live, whose agent recorded; "" of several.  period_ms: how often
 *	nodes measure and tell each other their loads; notice_ms: how soon a
 *	significant change is told; 0: not known.
 *   {"record":"node","time_ms":0,"node":0,"name":"n1","ram_mb":640, ...}
 *	A machine: numbered 0, 1, 2 ... by first appearance, before anything
 *	names it.  A later line of the same number changes it; what that leaves
 *	out stays as it was.
 *   {"record":"vector","time_ms":1000,"node":0,"tasks":[],"measured":{},
 *    "advertised":{},"zatti":{},"owner":{},"age_ms":0,"charged":[]}
 *	Its load from now on, replacing the previous vector.
 *   {"record":"submit","time_ms":1200,"job":"17","home":0,"class":"scan", ...}
 *	A job arrives: struct recording_job.  In order of time.
 *   {"record":"decision","time_ms":1200,"job":"17","home":0,"policy":"iocm-re",
 *    "seed":1,"params":{},"nodes":[1,0,2],"changed":[{"node":2, ...}],
 *    "request":{},"plan":{}}
 *	What was decided.  The view it looked at is the state that the node and
 *	vector lines so far have built, but the nodes in "changed" as told there
 *	(home's own placements, a home's fresher knowledge); "changed" lasts for
 *	this decision only.  "nodes" are those of its view, in the view's order;
 *	left out: all, by number.  "params" holds those that differ from the header's
 *	(the feedback controller's w_io).  "request" is the view file's "job";
 *	"plan" its answer without the texts.
 *   {"record":"finish","time_ms":9000,"job":"17","node":2,"start_ms":1300,
 *    "moves":1,"alone_ms":4000,"slowdown":1.95,"exit":0,"measured":{}}
 *	A job ended: struct recording_finish.  Live, the time is when its home was
 *	told, a few ms later; "measured" has the exact "wall_ms" from its start.  A
 *	job that came to nothing ends with nothing measured: it did nothing.
 *   {"record":"end","time_ms":9000,"lines":12345,"dropped":0}
 *	Last line; without it the recording was cut off.  "dropped" counts what
 *	the recorder could not write down.
 *
 * Deciding again what a decision line looked at gives its plan: the rules are the
 * same object file, and numbers are written so that they read back bit for bit.
 * A reader holds one line and the state of the nodes, never more.
 */
#ifndef IOCOM_RECORDING_H
#define IOCOM_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/rules.h"
#include "balancer/view/view_decide.h"
#include "balancer/view/view_json.h"

#define RECORDING_VERSION   1
#define RECORDING_NAME_MAX  64
#define RECORDING_ID_MAX    96
#define RECORDING_TEXT_MAX  256
#define RECORDING_LINE_MAX  (64u * 1000 * 1000) /* bytes */
#define RECORDING_NODES_MAX 1000000u

struct recording_header {
	bool live;			  /* false: simulated */
	char program[RECORDING_NAME_MAX]; /* "iocom-sim 0.1.0" */
	char cluster[RECORDING_TEXT_MAX]; /* for people: "6xfc"; the node lines are the truth */
	char source[RECORDING_TEXT_MAX];  /* where the jobs came from, or "" */
	char hash[RECORDING_TEXT_MAX];	  /* of the source, or "" */
	char policy[RECORDING_NAME_MAX];
	char node[RECORDING_NAME_MAX];
	uint64_t start_ns; /* live: CLOCK_REALTIME of time 0 */
	double period_ms, notice_ms;
	uint64_t seed;
	struct rules_params params;
};

/* A submitted job in plain fields, those of a simulator's job. */
struct recording_job {
	char id[RECORDING_ID_MAX]; /* unique in the recording: "17", "n1-1f2e3d4c-3" */
	char class_name[RECORDING_NAME_MAX];
	double time_ms;	  /* arrival */
	uint32_t home;	  /* number of the node */
	uint32_t tasks;	  /* >= 1; each needs all that follows */
	double cpu_ms;	  /* computation at the reference speed */
	double io_per_ms; /* in the header's rates; wall: what it does alone */
	double request_kb, request_sd_kb;
	double reaccess;
	double requests; /* >= 0: exactly so many disk requests; negative: by io_per_ms */
	double memory_mb, faults_per_ms, initial_mb, write_fraction;
	double barrier_ms, messages_per_ms, message_kb; /* BSP; 0: none */
};

/* What a job was measured to do, all its tasks together. */
struct recording_measured {
	double wall_ms;	    /* start to end; 0: not known */
	double cpu_ms;	    /* at the reference speed */
	double requests;    /* explicit disk requests */
	double request_mb;  /* bytes of these */
	double page_faults; /* disk requests for page faults */
	double memory_mb;   /* most resident */
	double io_per_ms;   /* explicit requests per wall-clock ms while it ran */
	double messages, sent_mb, received_mb;
};

struct recording_finish {
	char id[RECORDING_ID_MAX];
	double time_ms; /* the end */
	double start_ms;
	uint32_t node;		   /* where its first task ended */
	uint32_t moves;		   /* remote executions and migrations of its tasks */
	int32_t exit;		   /* status; negative: minus the signal */
	double alone_ms, slowdown; /* 0: not known */
	bool has_measured;
	struct recording_measured measured;
};

/* A decision and what it looked at. */
struct recording_decision {
	double time_ms;
	char job[RECORDING_ID_MAX];
	char policy[RECORDING_NAME_MAX]; /* a name of `iocom place --policy`, "feedback+" allowed */
	uint32_t home;
	uint64_t seed;
	const struct rules_params *params;   /* those in force */
	const struct rules_request *request; /* as the rules got it, com_ms included */
	/*
	 * The nodes of its view, by number, in the view's order, which ties follow; NULL:
	 * all, by number.  What PLAN and NODES name are places in that order; HOME and
	 * INDEXES are numbers.
	 */
	const uint32_t *order;
	size_t norder;
	const struct rules_plan *plan;	/* writer only */
	const uint32_t *nodes;		/* writer only: of each task; NULL: plan->node (one task) */
	const struct rules_move *moves; /* writer only */
	size_t nmoves;			/* writer only */
	/*
	 * Nodes that this decision saw otherwise than the state is: CHANGED[i] is
	 * node INDEXES[i].  The writer leaves out those that do not differ; with
	 * INDEXES NULL they are nodes 0 to NCHANGED - 1.
	 */
	const struct view_node *changed;
	const uint32_t *indexes;
	size_t nchanged;
	json_t *answer; /* the plan as written, borrowed; writer: NULL, or instead of PLAN */
};

/* --- writing ------------------------------------------------------------------ */

struct recorder;

/*
 * Opens PATH for writing ("-": standard output; a name that ends in ".gz" is
 * compressed) and writes the header.  0 or negative errno with the sentence.
 */
int recorder_open(const char *path, const struct recording_header *header, struct recorder **out,
		  struct iocom_err *err);
/*
 * The same, each line with its newline told to WRITE: 0, or negative errno: the line
 * is lost, and the recorder goes on as if it had never been; later lines make up for
 * what it changed.
 */
typedef int recorder_write(void *arg, const char *line, size_t length);
int recorder_open_to(recorder_write *write, void *arg, const struct recording_header *header,
		     struct recorder **out, struct iocom_err *err);
/* The number of the node of that name.  0 or -ENOENT. */
int recorder_find(const struct recorder *r, const char *name, uint32_t *index);
/* How many nodes were told: the number of the next. */
uint32_t recorder_nodes(const struct recorder *r);
/*
 * Each writes its line: 0, -EINVAL (time goes back, a number without its node
 * line, not finite or negative), -ENOMEM, -EIO and others of the file.  A
 * failure of the file is told again by every call after it.
 */
/* The machine part of NODE, and its load where it has one; nothing when nothing changed. */
int recorder_node(struct recorder *r, double time_ms, uint32_t index, const struct view_node *node,
		  struct iocom_err *err);
int recorder_submit(struct recorder *r, const struct recording_job *job, struct iocom_err *err);
int recorder_decision(struct recorder *r, const struct recording_decision *decision,
		      struct iocom_err *err);
int recorder_finish(struct recorder *r, const struct recording_finish *finish,
		    struct iocom_err *err);
/* Something could not be recorded: the end line tells how often. */
void recorder_dropped(struct recorder *r, uint64_t n);
/* What was written so far reaches the file: a reader finds whole lines. */
int recorder_flush(struct recorder *r, struct iocom_err *err);
/* Writes the end line, flushes, closes and frees R in any case.  0 or negative errno. */
int recorder_close(struct recorder *r, struct iocom_err *err);
/* Frees R without an end line: the recording is then one that was cut off. */
void recorder_abandon(struct recorder *r);

/* --- reading ------------------------------------------------------------------ */

enum recording_kind {
	RECORDING_NODE, /* node or vector: the state has changed */
	RECORDING_SUBMIT,
	RECORDING_DECISION,
	RECORDING_FINISH,
	RECORDING_END,
};

struct recording_line {
	enum recording_kind kind;
	double time_ms;
	uint64_t number; /* of the line, from 1 */
	union {
		uint32_t node;
		struct recording_job job;
		struct recording_decision decision;
		struct recording_finish finish;
		uint64_t dropped;
	};
};

struct recording;

/* 1 when the beginning of a file (unpacked) is that of a recording: for who guesses formats. */
bool recording_recognise(const char *text, size_t length);
/*
 * Opens PATH ("-": standard input), plain or gzip'ed, and reads the header.  0;
 * -EINVAL "FILE:LINE:COLUMN: field: what was expected"; -ENOMEM; errno of the file.
 */
int recording_open(const char *path, struct recording **out, struct iocom_err *err);
const struct recording_header *recording_header(const struct recording *r);
/*
 * 1: the next line, valid until the next call.  0: the end.  Negative as
 * recording_open; the state is then undefined.
 */
int recording_next(struct recording *r, const struct recording_line **line, struct iocom_err *err);
/* From the start again; not for pipes (-ESPIPE). */
int recording_rewind(struct recording *r, struct iocom_err *err);
/* The nodes as the lines read so far left them; valid until the next call of recording_next. */
const struct view_node *recording_nodes(const struct recording *r, uint32_t *n);
/* True once the end line was read: the recording is whole. */
bool recording_complete(const struct recording *r);
void recording_close(struct recording *r);

/*
 * The view of the decision line read last, borrowing from R: valid until the next
 * recording_next; nothing to free.  0; -EINVAL (the last line was no decision); -ENOMEM.
 */
int recording_view(struct recording *r, struct view_file *view);
/*
 * Decides it again.  1: the same plan, both sides of its reasons equal up to
 * TOLERANCE of them: 0 where the nodes were recorded with what was "charged" to
 * them, 1e-9 where a recorder counts that among their tasks (the sums' order
 * differs).  0: another plan, DECISION has it (to be freed, as after 1).  Negative
 * errno with the sentence.
 */
int recording_decide(struct recording *r, double tolerance, struct view_decision *decision,
		     struct iocom_err *err);

/* --- jobs only ------------------------------------------------------------------ */

/* It came to nothing: not placed, not started, its command not executed. */
bool recording_never_ran(const struct recording_finish *finish);
/* From arrival to end; negative: FINISH is NULL, or the job never ran. */
double recording_turnaround_ms(const struct recording_job *submitted,
			       const struct recording_finish *finish);
/*
 * What a replay should give the job to do: what was submitted, but where it was
 * measured the measured CPU time, requests, request size, memory and fault
 * rate, shared out over its tasks.
 */
void recording_to_job(const struct recording_job *submitted, const struct recording_finish *finish,
		      struct recording_job *out);

/*
 * The jobs of a recording in order of arrival.  Of a live one each is joined with
 * its end (recording_to_job), for which the jobs submitted since the oldest
 * running one are kept; of a simulated one the submission says all.
 */
struct recording_jobs;
int recording_jobs_open(const char *path, struct recording_jobs **out, struct iocom_err *err);
/* The reader below, for header, nodes (all that came before the first job) and rewinding. */
struct recording *recording_jobs_source(struct recording_jobs *jobs);
/* 1: *JOB filled; 0: the end; negative errno. */
int recording_jobs_next(struct recording_jobs *jobs, struct recording_job *job,
			struct iocom_err *err);
/* Of the job given last: what was submitted, and its end (NULL: not in the recording). */
const struct recording_job *recording_jobs_submitted(const struct recording_jobs *jobs);
const struct recording_finish *recording_jobs_finish(const struct recording_jobs *jobs);
int recording_jobs_rewind(struct recording_jobs *jobs, struct iocom_err *err);
void recording_jobs_free(struct recording_jobs *jobs);

/* --- several recordings ----------------------------------------------------------- */

/*
 * One recording OUT (as recorder_open) of the live recordings PATHS, each of another
 * node, by the nodes' clocks.  What a node said of itself is taken from its own.
 * *CUT: how many had no end line.  0; -EINVAL (simulated, two of one node, other
 * rates; what the reader refuses), -ENOMEM, errno of the files; OUT may then be there.
 */
int recording_merge(const char *const *paths, size_t n, const char *out, unsigned int *cut,
		    struct iocom_err *err);

#endif
