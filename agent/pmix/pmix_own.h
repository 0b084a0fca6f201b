/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the PMIx launcher share. */
#ifndef IOCOM_PMIX_OWN_H
#define IOCOM_PMIX_OWN_H

#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>

#include "agent/pmix/pmix_events.h"
#include "agent/tasks/hub.h"
#include "agent/tasks/tasks.h"

/* A rank that waits for what another part knows. */
struct pmix_question {
	uint32_t id;
	pmix_modex_cbfunc_t modex;
	void *modex_arg;
};

struct pmix_launch {
	struct tasks *tasks;
	struct hub *hub;
	struct pmix_events events;
	bool serving;
	char dir[PATH_MAX]; /* of libpmix and of its clients; "": none */
	int lock;	    /* of that directory; -1 */
	pmix_nspace_t nspace;
	bool *connected, *finalized; /* of each local rank, by its place in the part */
	pmix_modex_cbfunc_t fence;   /* what waits for the fence; NULL: none is under way */
	void *fence_arg;
	struct pmix_question *questions;
	size_t nquestions, questions_room;
	uint32_t last_id;
};

/* --- pmix_dir.c --------------------------------------------------------------------------- */

/*
 * Makes the directory, in /dev/shm, TMPDIR or /tmp, and holds it; removes those of launchers of
 * this user that were killed.  Returns 0 or negative errno with the reason in ERR.
 */
int pmix_dir_make(struct pmix_launch *p, struct iocom_err *err);
void pmix_dir_remove(struct pmix_launch *p);

/* --- pmix_register.c ------------------------------------------------------------------------ */

/* Tells libpmix of the gang: who is where.  Returns a PMIx status. */
pmix_status_t pmix_register(struct pmix_launch *p);

/* --- pmix_module.c -------------------------------------------------------------------------- */

/* The server's functions, which libpmix calls in its own thread; EVENTS gets what they are told. */
pmix_server_module_t *pmix_module(struct pmix_events *events, const char *nspace, uint32_t tasks);
/* Asks libpmix what the ranks here have said of RANK; part PART wants it, by ID. */
pmix_status_t pmix_module_ask(const char *nspace, uint32_t rank, uint32_t part, uint32_t id);

#endif
