/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The document of `iocom top` as rows to sort, filter and show.  Screen, batch
 * table and --json all read the same document (user/monitor/sample_json.h), whether an
 * agent sent it or this program made it.
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

/* What a row can be sorted by; each is a column too. */
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

/* The word for --sort ("share", "read", ...); NULL when out of range. */
const char *top_key_name(enum top_key key);
/* 0, or -EINVAL. */
int top_key_parse(const char *name, enum top_key *key);
/* True for text columns, which sort upwards. */
bool top_key_is_text(enum top_key key);

struct top_row {
	uint64_t id; /* stays with this task or job as long as it lives */
	bool is_job;
	const char *user, *comm, *job; /* borrowed; job "" = none, comm "" of a job */
	const char *command;	       /* the command line, where wanted and known; else comm */
	const char *resource;	       /* of which the share is: "cpu", "disk", "network" */
	uid_t uid;
	bool exited;
	unsigned folded;	/* so many ended tasks are in this row; else 0 */
	bool idle;		/* did nothing in the interval */
	bool io;		/* used disk or network in it */
	double value[TOP_KEYS]; /* of the numeric keys */
	json_t *source;		/* borrowed: the element of the document */
	/* In a tree: */
	unsigned depth;
	uint64_t rails; /* bit d: a line runs on at depth d to a row further below */
	bool last;	/* the last one of its parent */
	bool context;	/* only here because a row below it is wanted */
	double weight;	/* what it is sorted by: in a tree with all rows below it */
};

struct top_model;

struct top_model_options {
	bool jobs;	 /* rows are jobs, else tasks */
	bool tree;	 /* tasks below their parents; jobs below the cgroups above, with tasks */
	bool filter_uid; /* only those of UID */
	uid_t uid;
	bool active;	       /* only those that did something */
	bool io;	       /* only those that used disk or network */
	bool busy_jobs;	       /* no jobs that have no task and did nothing, unless TEXT asks */
	const char *text;      /* only those that have all its words; NULL or "": all */
	bool fold;	       /* ended tasks of one name, user and job are one row */
	bool commands;	       /* command lines instead of names */
	struct top_proc *proc; /* borrowed, for parents and command lines; NULL: none known */
	enum top_key key;
	bool reverse;
};

struct top_model *top_model_new(void); /* NULL: out of memory */
void top_model_free(struct top_model *model);
/*
 * Takes a new document (a new reference).  0; -EPROTO when it has not the form
 * of sample_json (the old one stays); -ENOMEM.
 */
int top_model_set(struct top_model *model, json_t *document, struct iocom_err *err);
/* Rows by these options, valid until the next call of set, arrange or free.  0 or -ENOMEM. */
int top_model_arrange(struct top_model *model, const struct top_model_options *options);
/* The row with this id, also when these options leave it out.  0, or -ENOENT: in no reading now. */
int top_model_find(struct top_model *model, uint64_t id, const struct top_model_options *options,
		   struct top_row *row);
const struct top_row *top_model_rows(const struct top_model *model, size_t *n);
const json_t *top_model_document(const struct top_model *model); /* NULL before the first set */
/* The document before, unless counting began anew since; else NULL. */
const json_t *top_model_previous(const struct top_model *model);
/*
 * The document with tasks[] and jobs[] filtered and sorted: the
 * caller's; NULL when memory is out.  SORTED false: in the order of the document.
 */
json_t *top_model_filtered(struct top_model *model, const struct top_model_options *options,
			   bool sorted);

/* The id of the row that this element of tasks[] or jobs[] becomes. */
uint64_t top_row_id(const json_t *element);
/* True when the document says that this column is not counted, or not in full. */
bool top_key_degraded(const json_t *document, enum top_key key);

/* Field access that forgives absence. */
double top_number(const json_t *object, const char *key);
const char *top_string(const json_t *object, const char *key);

#endif
