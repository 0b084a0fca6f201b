/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A recording tells what a live or simulated cluster looked like, what it was asked and what
 * was decided.  It is JSON Lines (one object a line, UTF-8, plain or gzip'ed), or the same
 * objects in MessagePack, one after another (json_msgpack.h): the name decides on writing, the
 * content on reading.  Version 1.  Each line begins with "record"; times are ms since the
 * recording began and never go back; units and objects are those of a view file (view_json.h).
 *
 *   {"record":"header","version":1,"live":false,"program":"iocom-sim 0.1.0",
 *    "cluster":"6xfc","source":"CSD trace, run 2","hash":"sha256:...",
 *    "node":"","start_ns":0,"policy":"iocm-re","seed":1,"period_ms":0,
 *    "notice_ms":0,"rates":"computation",
 *    "reference_mips":800,"network_mb_per_s":125,
 *    "units":{"time":"ms","rate":"1/ms","memory":"MB","request":"KB",
 *             "bandwidth":"MB/s"},"params":{"fixed_cost_ms":100, ...}}
 * 	The first line, exactly one.  "units" is for people.  In wall rates "io_per_ms" is
 * 	disk requests per wall-clock ms.  reference_mips 0: that of each decision's home.
 * 	"node": the live node whose agent recorded; "" for several.  period_ms: how often
 * 	nodes measure and publish their loads; notice_ms: how soon they publish a
 * 	significant change; 0: unknown.
 *   {"record":"node","time_ms":0,"node":0,"name":"n1","ram_mb":640, ...}
 * 	A machine, numbered 0, 1, 2 ... by first appearance, before any line refers to
 * 	it.  A later line with the same number changes it and leaves missing fields as
 * 	they were.
 *   {"record":"vector","time_ms":1000,"node":0,"tasks":[],"measured":{},
 *    "advertised":{},"zatti":{},"owner":{},"age_ms":0,"charged":[]}
 * 	The node's load from now on; it replaces the previous vector.
 *   {"record":"submit","time_ms":1200,"job":"17","home":0,"class":"scan", ...}
 * 	A job arrives: struct recording_job.  In order of time.
 *   {"record":"decision","time_ms":1200,"job":"17","home":0,"policy":"iocm-re",
 *    "seed":1,"params":{},"nodes":[1,0,2],"changed":[{"node":2, ...}],
 *    "request":{},"plan":{}}
 * 	A decision.  Its view is the state after the node and vector lines so far, except
 * 	that the nodes in "changed" are as given there (home's own placements, its fresher
 * 	knowledge); "changed" applies to this decision only.  "nodes" are those of its view,
 * 	in the view's order; missing: all, by number.  "params" holds those that differ from
 * 	the header's (the feedback controller's w_io).  "request" is the view file's "job",
 * 	its corrections included; "plan" is its answer without the texts and "expected".
 *   {"record":"finish","time_ms":9000,"job":"17","node":2,"start_ms":1300,
 *    "moves":1,"alone_ms":4000,"slowdown":1.95,"exit":0,"measured":{}}
 * 	A job ended: struct recording_finish.  In a live recording the time is when its home
 * 	heard of it, a few ms later; "measured" has the exact "wall_ms" from its start.  A
 * 	job that never ran has nothing measured.
 *   {"record":"end","time_ms":9000,"lines":12345,"dropped":0,"others_cpu":0.02,
 *    "others_disk":0,"stolen":0,"crowded":0}
 * 	The last line; without it the recording was cut off: struct recording_end.
 *
 * Deciding again on the view of a decision line gives its plan: the rules are the same object
 * file, and numbers read back bit for bit.  A reader holds one line and the state of the nodes,
 * never more.
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
	/* for people, as "6xfc"; the node lines are authoritative */
	char cluster[RECORDING_TEXT_MAX];
	char source[RECORDING_TEXT_MAX]; /* where the jobs came from, or "" */
	char hash[RECORDING_TEXT_MAX];	 /* the hash of the source, or "" */
	char policy[RECORDING_NAME_MAX];
	char node[RECORDING_NAME_MAX];
	uint64_t start_ns; /* live: CLOCK_REALTIME of time 0 */
	double period_ms, notice_ms;
	uint64_t seed;
	struct rules_params params;
};

/* A submitted job in plain fields, the same as a simulator's job. */
struct recording_job {
	char id[RECORDING_ID_MAX]; /* unique in the recording: "17", "n1-1f2e3d4c-3" */
	char class_name[RECORDING_NAME_MAX];
	double time_ms; /* arrival */
	uint32_t home;	/* number of the node */
	uint32_t tasks; /* >= 1; each task has all needs below */
	double cpu_ms;	/* computation at the reference speed */
	/* rate in the header's rates; at wall-clock rates the job's rate when alone */
	double io_per_ms;
	double request_kb, request_sd_kb;
	double reaccess;
	double requests; /* >= 0: the exact number of disk requests; negative: use io_per_ms */
	double implicit_share; /* at wall-clock rates: the part of these that page faults make */
	double memory_mb, faults_per_ms, initial_mb, write_fraction;
	double barrier_ms, messages_per_ms, message_kb; /* BSP; 0: none */
};

/* What was measured of a job, for all its tasks together. */
struct recording_measured {
	double wall_ms;	      /* start to end; 0: unknown */
	double cpu_ms;	      /* at the reference speed */
	double requests;      /* explicit disk requests */
	double request_mb;    /* their size in total */
	double page_faults;   /* disk requests for page faults */
	double page_fault_mb; /* their size in total; 0: unknown */
	double memory_mb;     /* the largest resident size */
	double io_per_ms;     /* explicit requests per wall-clock ms while the job ran */
	double messages, sent_mb, received_mb;
};

struct recording_finish {
	char id[RECORDING_ID_MAX];
	double time_ms; /* the end */
	double start_ms;
	uint32_t node;		   /* node on which its first task ended */
	uint32_t moves;		   /* remote executions and migrations of its tasks */
	int32_t exit;		   /* status; negative: minus the signal */
	double alone_ms, slowdown; /* 0: unknown */
	bool has_measured;
	struct recording_measured measured;
	/* recording_jobs only: NODE was short of memory then, by the load that it told */
	bool memory_short;
};

/*
 * How a recording ended, and what disturbed it: shares, 0..1, means over its time at the node that
 * recorded; of several merged recordings the largest.  Negative, null in the file: not measured, as
 * in a simulated recording and in those of older agents.
 */
struct recording_end {
	uint64_t dropped;   /* what the recorder could not write */
	double others_cpu;  /* of the node's processors, by everything that is no job of iocom */
	double others_disk; /* the same of its disk */
	double stolen;	    /* of the machine's processors, by its host */
	double crowded; /* of the time: the node is part of a machine that had no processor idle */
};

#define RECORDING_END_UNKNOWN ((struct recording_end){0, -1, -1, -1, -1})

/* A decision and the view that it used. */
struct recording_decision {
	double time_ms;
	char job[RECORDING_ID_MAX];
	char policy[RECORDING_NAME_MAX]; /* a name of `iocom place --policy`, "feedback+" allowed */
	uint32_t home;
	uint64_t seed;
	const struct rules_params *params; /* the parameters in force */
	/* the request as it was passed to the rules, with com_ms */
	const struct rules_request *request;
	/*
	 * The numbers of its view's nodes, in the view's order, which decides ties; NULL: all,
	 * by number.  PLAN and NODES hold places in that order; HOME and INDEXES are numbers.
	 */
	const uint32_t *order;
	size_t norder;
	const struct rules_plan *plan;	    /* writer only */
	const struct rules_gang_plan *gang; /* writer only; NULL: the job was no gang */
	/* writer only: the node of each task; NULL: plan->node (one task) */
	const uint32_t *nodes;
	const struct rules_move *moves; /* writer only */
	size_t nmoves;			/* writer only */
	/*
	 * Nodes that this decision saw differently from the state: CHANGED[i] is node
	 * INDEXES[i]. The writer leaves out those that do not differ; if INDEXES is NULL, they
	 * are nodes 0 to NCHANGED - 1.
	 */
	const struct view_node *changed;
	const uint32_t *indexes;
	size_t nchanged;
	/* the plan as written, borrowed; a writer gives NULL, or this instead of PLAN */
	json_t *answer;
};

/* --- writing ------------------------------------------------------------------ */

struct recorder;

/*
 * Opens PATH for writing ("-": standard output; a name that ends in ".gz" is compressed) and writes
 * the header.  Returns 0 or negative errno with the reason in ERR.
 */
int recorder_open(const char *path, const struct recording_header *header, struct recorder **out,
		  struct iocom_err *err);
/*
 * Passes each line with its newline to WRITE instead.  WRITE returns 0 or negative errno: then
 * the line is lost, and the recorder goes on as if it had never existed; later lines repeat its
 * changes.
 */
typedef int recorder_write(void *arg, const char *line, size_t length);
int recorder_open_to(recorder_write *write, void *arg, const struct recording_header *header,
		     struct recorder **out, struct iocom_err *err);
/* Finds the number of the node of that name.  Returns 0 or -ENOENT. */
int recorder_find(const struct recorder *r, const char *name, uint32_t *index);
/* The number of nodes recorded so far, which is the next node's number. */
uint32_t recorder_nodes(const struct recorder *r);
/*
 * Each of these writes its line.  They return 0; -EINVAL: time goes back, a number has no node
 * line, a value is not finite or is negative; -ENOMEM; -EIO and other errors of the file.
 * After an error of the file, every later call returns it again.
 */
/*
 * Writes the machine part of NODE and its load, if it has one; writes nothing if nothing
 * changed.
 */
int recorder_node(struct recorder *r, double time_ms, uint32_t index, const struct view_node *node,
		  struct iocom_err *err);
int recorder_submit(struct recorder *r, const struct recording_job *job, struct iocom_err *err);
int recorder_decision(struct recorder *r, const struct recording_decision *decision,
		      struct iocom_err *err);
int recorder_finish(struct recorder *r, const struct recording_finish *finish,
		    struct iocom_err *err);
/* Counts N things that could not be recorded; the end line tells the count. */
void recorder_dropped(struct recorder *r, uint64_t n);
/* Notes what disturbed the recording, for the end line, where it is more than was noted before. */
void recorder_disturbed(struct recorder *r, const struct recording_end *by);
/* Flushes the lines so far to the file, so that a reader finds whole lines. */
int recorder_flush(struct recorder *r, struct iocom_err *err);
/* Writes the end line, flushes, closes, and always frees R.  Returns 0 or negative errno. */
int recorder_close(struct recorder *r, struct iocom_err *err);
/* Frees R without an end line; the recording counts as cut off. */
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
	uint64_t number; /* the number of the line, from 1 */
	union {
		uint32_t node;
		struct recording_job job;
		struct recording_decision decision;
		struct recording_finish finish;
		struct recording_end end;
	};
};

struct recording;

/*
 * Returns 1 if the (uncompressed) beginning of a file is that of a recording; used to guess
 * formats.
 */
bool recording_recognise(const char *text, size_t length);
/*
 * Opens PATH ("-": standard input), plain or gzip'ed, and reads the header.  Returns 0; -EINVAL
 * with "FILE:LINE:COLUMN: field: what was expected"; -ENOMEM; errno of the file.
 */
int recording_open(const char *path, struct recording **out, struct iocom_err *err);
const struct recording_header *recording_header(const struct recording *r);
/*
 * Reads the next line, valid until the next call.  Returns 1; 0: the end; negative errno as
 * recording_open does, after which the state is undefined.
 */
int recording_next(struct recording *r, const struct recording_line **line, struct iocom_err *err);
/* Starts again at the beginning; fails for pipes (-ESPIPE). */
int recording_rewind(struct recording *r, struct iocom_err *err);
/* The nodes according to the lines read so far; valid until the next call of recording_next. */
const struct view_node *recording_nodes(const struct recording *r, uint32_t *n);
/* Returns whether the end line was read, so that the recording is complete. */
bool recording_complete(const struct recording *r);
void recording_close(struct recording *r);

/*
 * Fills VIEW with the view of the decision line read last.  It borrows from R, is valid until
 * the next recording_next, and needs no freeing.  Returns 0; -EINVAL: the last line was no
 * decision; -ENOMEM.
 */
int recording_view(struct recording *r, struct view_file *view);
/*
 * Makes the decision again.  Returns 1: the plan is the same, and both sides of its reasons agree
 * up to TOLERANCE (relative): use 0 if the recorded nodes have "charged" lists, 1e-9 if the
 * recorder counted charges among their tasks, because sums are then added in another order. Returns
 * 0: the plan differs and DECISION has it.  Free DECISION after 1 and 0.  Negative errno comes with
 * the reason in ERR.
 */
int recording_decide(struct recording *r, double tolerance, struct view_decision *decision,
		     struct iocom_err *err);

/* --- jobs only ------------------------------------------------------------------ */

/*
 * Returns whether the job never ran: it was not placed, not started, or its command not executed.
 */
bool recording_never_ran(const struct recording_finish *finish);
/* The time from arrival to end; negative: FINISH is NULL, or the job never ran. */
double recording_turnaround_ms(const struct recording_job *submitted,
			       const struct recording_finish *finish);
/*
 * Computes the job for a replay: the submitted job, but with the measured CPU time, requests,
 * request size, memory and fault rate, if there are any, divided among its tasks.  Page faults of
 * known size on a node that was not short of memory are those of mapped files: requests like the
 * others, which the job makes wherever it runs (MODEL 1.3).
 */
void recording_to_job(const struct recording_job *submitted, const struct recording_finish *finish,
		      struct recording_job *out);

/*
 * Reads the jobs of a recording in order of arrival.  Jobs of a live recording are joined with
 * their ends (recording_to_job); for that it keeps all jobs submitted since the oldest running
 * one.  In a simulated recording the submission says all.
 */
struct recording_jobs;
int recording_jobs_open(const char *path, struct recording_jobs **out, struct iocom_err *err);
/* The underlying reader, for the header, the nodes before the first job, and rewinding. */
struct recording *recording_jobs_source(struct recording_jobs *jobs);
/* Returns 1: *JOB is filled; 0: the end; negative errno. */
int recording_jobs_next(struct recording_jobs *jobs, struct recording_job *job,
			struct iocom_err *err);
/* For the last job returned: its submission, and its end (NULL: not in the recording). */
const struct recording_job *recording_jobs_submitted(const struct recording_jobs *jobs);
const struct recording_finish *recording_jobs_finish(const struct recording_jobs *jobs);
int recording_jobs_rewind(struct recording_jobs *jobs, struct iocom_err *err);
void recording_jobs_free(struct recording_jobs *jobs);

/* --- several recordings ----------------------------------------------------------- */

/*
 * Merges the live recordings PATHS, each of another node, into one recording OUT (as
 * recorder_open) by the nodes' clocks.  What a node reported of itself comes from its own
 * recording.  *CUT: how many had no end line.  Returns 0; -EINVAL (simulated, two of one node,
 * other rates, or refused by the reader); -ENOMEM; errno of the files.  OUT may exist after an
 * error.
 */
int recording_merge(const char *const *paths, size_t n, const char *out, unsigned int *cut,
		    struct iocom_err *err);

#endif
