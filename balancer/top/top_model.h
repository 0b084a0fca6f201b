/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The document of `iocom top` as rows to sort, filter and show.  Screen, batch table and --json
 * all read the same document (user/monitor/sample_json.h), whether an agent sent it or this
 * program made it.
 */
#ifndef IOCOM_TOP_MODEL_H
#define IOCOM_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "balancer/top/top_proc.h"

/* What rows can be sorted by; each key is a column, too. */
enum top_key {
	TOP_PID,
	TOP_USER,
	TOP_COMMAND,
	TOP_TASKS, /* jobs: live processes */
	TOP_JOB,
	TOP_READ,
	TOP_WRITE,
	TOP_IMPLICIT,
	TOP_OPS,
	TOP_SENT,
	TOP_RECEIVED,
	TOP_LOCAL,
	TOP_MESSAGES,
	TOP_FAULTS,
	TOP_CPU,
	TOP_RSS,
	TOP_SHARE,
	TOP_KEYS
};

/* The word for --sort (as "share", "read"); NULL when out of range. */
const char *top_key_name(enum top_key key);
/* Returns 0 or -EINVAL. */
int top_key_parse(const char *name, enum top_key *key);
/* Returns whether the column is text, which sorts in ascending order. */
bool top_key_is_text(enum top_key key);

struct top_row {
	uint64_t id; /* identifies this task or job as long as it lives */
	bool is_job;
	const char *user, *comm, *job; /* borrowed; "": no job, or the comm of a job */
	const char *label;	       /* what people call the job; else JOB */
	const char *command;	       /* the command line if wanted and known; else comm */
	const char *resource;	       /* "cpu", "disk" or "network": the resource of the share */
	uid_t uid;
	bool exited;
	unsigned folded;	/* the number of ended tasks in this row; else 0 */
	bool idle;		/* it did nothing in the interval */
	bool io;		/* it used disk or network in the interval */
	double value[TOP_KEYS]; /* values of the numeric keys */
	json_t *source;		/* borrowed: the element in the document */
	/* Only in a tree: */
	unsigned depth;
	uint64_t rails; /* bit d: a line continues at depth d to a row further below */
	bool last;	/* the last child of its parent */
	bool context;	/* shown only because a wanted row is below it */
	double weight;	/* the sort key; in a tree the sum with all rows below */
};

struct top_model;

struct top_model_options {
	bool jobs;	 /* rows are jobs, else tasks */
	bool tree;	 /* tasks below their parents, or jobs below parent cgroups, with tasks */
	bool filter_uid; /* only rows of UID */
	uid_t uid;
	bool active;	       /* only rows that did something */
	bool io;	       /* only rows that used disk or network */
	bool busy_jobs;	       /* hide idle jobs without a task, unless TEXT asks for them */
	const char *text;      /* only rows with all its words; NULL or "": all rows */
	bool fold;	       /* show ended tasks of one name, user and job as one row */
	bool commands;	       /* command lines instead of names */
	struct top_proc *proc; /* borrowed, for parents and command lines; NULL: none */
	enum top_key key;
	bool reverse;
};

struct top_model *top_model_new(void); /* NULL: out of memory */
void top_model_free(struct top_model *model);
/*
 * Takes a new document (and a new reference to it).  Returns 0; -EPROTO if it does not have the
 * form of sample_json (the old document stays); -ENOMEM.
 */
int top_model_set(struct top_model *model, json_t *document, struct iocom_err *err);
/*
 * Makes the rows by OPTIONS, valid until the next call of set, arrange or free.  Returns 0 or
 * -ENOMEM.
 */
int top_model_arrange(struct top_model *model, const struct top_model_options *options);
/*
 * Finds the row with this id, even if OPTIONS leave it out.  Returns 0, or -ENOENT: it is in no
 * current reading.
 */
int top_model_find(struct top_model *model, uint64_t id, const struct top_model_options *options,
		   struct top_row *row);
const struct top_row *top_model_rows(const struct top_model *model, size_t *n);
const json_t *top_model_document(const struct top_model *model); /* NULL before the first set */
/* The previous document; NULL if counting began again since. */
const json_t *top_model_previous(const struct top_model *model);
/*
 * Returns the document with tasks[] and jobs[] filtered and, if SORTED, sorted (else in the
 * document's order).  The caller owns it; NULL: out of memory.
 */
json_t *top_model_filtered(struct top_model *model, const struct top_model_options *options,
			   bool sorted);

/* The id of the row for this element of tasks[] or jobs[]. */
uint64_t top_row_id(const json_t *element);
/* Returns whether the document says that this column is not counted, or only in part. */
bool top_key_degraded(const json_t *document, enum top_key key);

/* These read a field; a missing one is 0 or "". */
double top_number(const json_t *object, const char *key);
const char *top_string(const json_t *object, const char *key);

#endif
