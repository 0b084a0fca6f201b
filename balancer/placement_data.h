/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What goes along with a job (--data PATH, --bring PATH), as a placement looks at it. */
#ifndef IOCOM_PLACEMENT_DATA_H
#define IOCOM_PLACEMENT_DATA_H

#include "balancer/data/data_memory.h"
#include "balancer/placement_request.h"

struct placement_data {
	bool measured; /* how much it is was not said, but looked at */
	bool used;     /* something goes along when the job goes elsewhere */
	struct data_set set;
	struct data_memory *memory;
	char class_name[PLACEMENT_CLASS_MAX];
};

void placement_data_init(struct placement_data *data);
void placement_data_free(struct placement_data *data);
/*
 * Looks at what REQUEST names, and tells the request how much it is and who has what of it.
 * EXECUTABLE is the program of the job's COMMAND, CWD the working directory; if that is on a shared
 * file system, nothing goes along.  May be called again: all is looked at anew.  Returns 0 or
 * negative errno with the sentence in ERR.
 */
int placement_data_look(struct placement_data *data, struct placement_request *request,
			const char *cwd, const char *executable, char *const *command,
			struct iocom_err *err);
/* What --bring names is here, BYTES of it: the next placement of a job of this class knows. */
void placement_data_note(const struct placement_data *data, uint64_t bytes);

#endif
