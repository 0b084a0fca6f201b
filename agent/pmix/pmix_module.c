/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The functions that libpmix calls, in its own thread: each leaves an event for the loop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pmix/pmix_own.h"

/* libpmix gives its functions no argument of ours, and a process has one server. */
static struct pmix_events *events;
static uint32_t tasks;

static pmix_status_t module_add(const struct pmix_event *event)
{
	return pmix_events_add(events, event) ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

static pmix_status_t module_connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
				      void *arg)
{
	const struct pmix_event event = {.type = PMIX_EVENT_CONNECTED, .rank = proc->rank};

	(void)object;
	(void)done;
	(void)arg;
	(void)module_add(&event);
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t module_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
				      void *arg)
{
	const struct pmix_event event = {.type = PMIX_EVENT_FINALIZED, .rank = proc->rank};

	(void)object;
	(void)done;
	(void)arg;
	(void)module_add(&event);
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t module_abort(const pmix_proc_t *proc, void *object, int status,
				  const char message[], pmix_proc_t procs[], size_t nprocs,
				  pmix_op_cbfunc_t done, void *arg)
{
	const struct pmix_event event = {
		.type = PMIX_EVENT_ABORT,
		.rank = proc->rank,
		.status = status,
		.data = (void *)message,
		.length = message ? strlen(message) : 0,
	};
	pmix_status_t rc = module_add(&event);

	(void)object;
	(void)procs;
	(void)nprocs;
	if (rc == PMIX_SUCCESS && done)
		done(PMIX_SUCCESS, arg);
	return rc;
}

/* Fences are of all ranks: MPI's own are. */
static pmix_status_t module_fence(const pmix_proc_t procs[], size_t nprocs,
				  const pmix_info_t info[], size_t ninfo, char *data, size_t ndata,
				  pmix_modex_cbfunc_t modex, void *arg)
{
	const struct pmix_event event = {
		.type = PMIX_EVENT_FENCE,
		.data = data,
		.length = ndata,
		.modex = modex,
		.modex_arg = arg,
	};

	(void)info;
	(void)ninfo;
	if (nprocs != tasks && (nprocs != 1 || procs[0].rank != PMIX_RANK_WILDCARD))
		return PMIX_ERR_NOT_SUPPORTED;
	return module_add(&event);
}

static pmix_status_t module_wanted(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
				   pmix_modex_cbfunc_t modex, void *arg)
{
	const struct pmix_event event = {
		.type = PMIX_EVENT_WANTED,
		.rank = proc->rank,
		.modex = modex,
		.modex_arg = arg,
	};

	(void)info;
	(void)ninfo;
	return proc->rank < tasks ? module_add(&event) : PMIX_ERR_NOT_FOUND;
}

/* Errors of single ranks are told to nobody: a rank that fails ends all. */
static pmix_status_t module_register_events(pmix_status_t *codes, size_t ncodes,
					    const pmix_info_t info[], size_t ninfo,
					    pmix_op_cbfunc_t done, void *arg)
{
	(void)codes;
	(void)ncodes;
	(void)info;
	(void)ninfo;
	(void)done;
	(void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t module_deregister_events(pmix_status_t *codes, size_t ncodes,
					      pmix_op_cbfunc_t done, void *arg)
{
	(void)codes;
	(void)ncodes;
	(void)done;
	(void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

pmix_server_module_t *pmix_module(struct pmix_events *to, const char *nspace, uint32_t count)
{
	static pmix_server_module_t module = {
		.client_connected = module_connected,
		.client_finalized = module_finalized,
		.abort = module_abort,
		.fence_nb = module_fence,
		.direct_modex = module_wanted,
		.register_events = module_register_events,
		.deregister_events = module_deregister_events,
	};

	(void)nspace;
	events = to;
	tasks = count;
	return &module;
}

/* Who has asked, for the time until libpmix answers. */
struct module_question {
	uint32_t part, id;
};

static void module_known(pmix_status_t status, char *data, size_t length, void *arg)
{
	struct module_question *q = arg;
	const struct pmix_event event = {
		.type = PMIX_EVENT_KNOWN,
		.part = q->part,
		.id = q->id,
		.status = status,
		.data = data,
		.length = data ? length : 0,
	};

	free(q);
	(void)module_add(&event);
}

pmix_status_t pmix_module_ask(const char *nspace, uint32_t rank, uint32_t part, uint32_t id)
{
	struct module_question *q = malloc(sizeof(*q));
	pmix_status_t rc;
	pmix_proc_t proc;

	if (!q)
		return PMIX_ERR_NOMEM;
	*q = (struct module_question){part, id};
	PMIX_LOAD_PROCID(&proc, nspace, rank);
	rc = PMIx_server_dmodex_request(&proc, module_known, q);
	if (rc != PMIX_SUCCESS)
		free(q);
	return rc;
}
