/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The class profiles of a user as a document, to keep them or to take them to another cluster:
 *
 *   { "iocom_profiles": 1, "profiles": [ {
 *       "class": "sort", "runs": 5,
 *       "needs": { "cpu_ms": 3200, "requests": 41, ... },      the averages; enum profile_need
 *       "set": { "memory_mb": 500 },                           what the user set; need_name
 *       "recent": [ { "warm": false, "input_mb": 340 or null, "input_id": 0, "node": "n1",
 *                     "end_s": 1700000000, "needs": { ... } } ] } ] }    the newest first
 *
 * The phases of the last run and the errors of predictions stay: they are of one cluster.
 */
#ifndef IOCOM_PROFILE_DOCUMENT_H
#define IOCOM_PROFILE_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "balancer/profile/profile_runs.h"

#define PROFILE_DOCUMENT 1 /* its version */

/* A thousand classes take seconds, so an agent makes a document in parts of so many. */
#define PROFILE_EXPORT_PART 25

struct profile_export {
	const char *class_name; /* only this class; "": all */
	const char *after;	/* only classes behind this one, by their names; "": all */
	size_t most;		/* classes in one document; 0: all */
	/* Results. */
	json_t *document;
	size_t left_out; /* classes whose names are no UTF-8 or have control characters */
	char last[PROFILE_CLASS_MAX]; /* there are more behind this one; "": there are none */
};

/*
 * Makes the document of UID's classes; the caller frees it.  Returns 0; -ENOENT: there is no such
 * class; -EIO, -EBUSY, -ENOMEM.
 */
int profile_export(struct profile_store *store, uid_t uid, struct profile_export *x,
		   struct iocom_err *err);

struct profile_import {
	const char *text, *file; /* the document, and what sentences call it */
	size_t length;
	bool force;   /* classes that are known already are replaced, in place of a refusal */
	bool dry_run; /* all is checked, nothing is written */
	size_t classes, runs, replaced; /* result */
};

/*
 * Takes a document for UID: all of it or nothing.  Returns 0; -EINVAL with the place and the name
 * of what is wrong in it; -EEXIST: a class is known already; -E2BIG: more classes than a user may
 * have; -EIO, -EBUSY, -ENOMEM.
 */
int profile_import(struct profile_store *store, uid_t uid, struct profile_import *import,
		   struct iocom_err *err);

#endif
