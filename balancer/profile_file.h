/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What `iocom profile` asks, and its files. */
#ifndef IOCOM_PROFILE_FILE_H
#define IOCOM_PROFILE_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "balancer/placement_request.h"
#include "user/pack.h"

struct profile_ask {
	struct placement_request request; /* the options of run: needs, --class, --run-dir */
	const char *class_name, *file;	  /* borrowed from argv */
	double input_mb;		  /* below 0: not given */
	bool json, reset, dry_run, force, of_user;
	uid_t uid;	/* if of_user */
	unsigned given; /* the options of profile that were given, bits by number */
	msgpack_sbuffer buffer;
	msgpack_packer pk;
};

/* Begins a request for WHAT with MORE entries, which the caller packs into ASK->pk. */
void profile_ask_begin(struct profile_ask *ask, const char *what, size_t more);
/* Sends it.  Returns 0 or negative errno with the reason in ERR. */
int profile_ask_send(struct profile_ask *ask, json_t **answer, struct iocom_err *err);
/*
 * Asks for the profiles of the class, or of all (NULL), in as many parts as there are.  Returns 0
 * or negative errno with the reason in ERR.
 */
int profile_ask_list(struct profile_ask *ask, const char *class_name, json_t **answer,
		     struct iocom_err *err);

/* These return the exit status. */
int profile_file_export(struct profile_ask *ask);
int profile_file_import(struct profile_ask *ask);

#endif
