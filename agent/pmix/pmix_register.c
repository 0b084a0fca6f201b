/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What libpmix is told of a gang: its nodes, which ranks each has, and each rank's places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/pmix/pmix_own.h"

#define JOB_INFOS  15
#define RANK_INFOS 9

/* A text that grows. */
struct text {
	char *at;
	size_t length;
	FILE *file;
};

static FILE *text_begin(struct text *t)
{
	t->at = NULL;
	t->file = open_memstream(&t->at, &t->length);
	return t->file;
}

static char *text_end(struct text *t)
{
	return t->file && !fclose(t->file) ? t->at : NULL;
}

/* "n1,n2" */
static char *register_nodes(const struct gang_plan *plan)
{
	struct text t;
	FILE *f = text_begin(&t);

	for (uint32_t k = 0; f && k < plan->nnodes; k++)
		fprintf(f, "%s%s", k ? "," : "", plan->nodes[k].name);
	return text_end(&t);
}

static void register_ranks_of(FILE *f, const struct gang_plan *plan, uint32_t k)
{
	for (uint32_t i = 0; i < plan->nodes[k].tasks; i++)
		fprintf(f, "%s%u", i ? "," : "", plan->ranks[plan->nodes[k].first + i]);
}

/* "0,1;2,3" */
static char *register_all_ranks(const struct gang_plan *plan)
{
	struct text t;
	FILE *f = text_begin(&t);

	for (uint32_t k = 0; f && k < plan->nnodes; k++) {
		fputs(k ? ";" : "", f);
		register_ranks_of(f, plan, k);
	}
	return text_end(&t);
}

static char *register_peers(const struct gang_plan *plan)
{
	struct text t;
	FILE *f = text_begin(&t);

	if (f)
		register_ranks_of(f, plan, plan->part);
	return text_end(&t);
}

/* The places of local rank number I of node K. */
static void register_rank(pmix_info_t *info, const struct gang_plan *plan, uint32_t k, uint32_t i)
{
	uint32_t rank = plan->ranks[plan->nodes[k].first + i], zero = 0;
	uint16_t local = (uint16_t)i;
	pmix_data_array_t *array;
	pmix_rank_t leader = 0;
	pmix_info_t *at;

	PMIX_DATA_ARRAY_CREATE(array, RANK_INFOS, PMIX_INFO);
	at = array->array;
	PMIX_INFO_LOAD(at++, PMIX_RANK, &rank, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(at++, PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(at++, PMIX_APPNUM, &zero, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_APPLDR, &leader, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(at++, PMIX_APP_RANK, &rank, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(at++, PMIX_LOCAL_RANK, &local, PMIX_UINT16);
	PMIX_INFO_LOAD(at++, PMIX_NODE_RANK, &local, PMIX_UINT16);
	PMIX_INFO_LOAD(at++, PMIX_NODEID, &k, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_HOSTNAME, plan->nodes[k].name, PMIX_STRING);
	PMIX_LOAD_KEY(info->key, PMIX_PROC_DATA);
	info->value.type = PMIX_DATA_ARRAY;
	info->value.data.darray = array;
}

static void register_job(struct pmix_launch *p, pmix_info_t *at, char *nodes, char *ranks,
			 char *peers)
{
	const struct gang_plan *plan = &p->tasks->plan;
	uint32_t tasks = plan->tasks, local = p->tasks->count, one = 1, nnodes = plan->nnodes;
	pmix_rank_t leader = p->tasks->ranks[0];
	bool yes = true;

	PMIX_INFO_LOAD(at++, PMIX_UNIV_SIZE, &tasks, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_JOB_SIZE, &tasks, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_APP_SIZE, &tasks, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_MAX_PROCS, &tasks, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_NUM_NODES, &nnodes, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_LOCAL_SIZE, &local, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_NODE_SIZE, &local, PMIX_UINT32);
	PMIX_INFO_LOAD(at++, PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(at++, PMIX_JOBID, p->nspace, PMIX_STRING);
	PMIX_INFO_LOAD(at++, PMIX_NODE_MAP, nodes, PMIX_REGEX);
	PMIX_INFO_LOAD(at++, PMIX_PROC_MAP, ranks, PMIX_REGEX);
	PMIX_INFO_LOAD(at++, PMIX_LOCAL_PEERS, peers, PMIX_STRING);
	PMIX_INFO_LOAD(at++, PMIX_NSDIR, p->dir, PMIX_STRING);
	/* The directory is removed by its launcher. */
	PMIX_INFO_LOAD(at, PMIX_TDIR_RMCLEAN, &yes, PMIX_BOOL);
}

static pmix_status_t register_nspace(struct pmix_launch *p, char *nodes, char *ranks, char *peers)
{
	const struct gang_plan *plan = &p->tasks->plan;
	size_t n = JOB_INFOS + plan->tasks, at = JOB_INFOS;
	pmix_status_t rc;
	pmix_info_t *info;

	PMIX_INFO_CREATE(info, n);
	register_job(p, info, nodes, ranks, peers);
	for (uint32_t k = 0; k < plan->nnodes; k++)
		for (uint32_t i = 0; i < plan->nodes[k].tasks; i++)
			register_rank(&info[at++], plan, k, i);
	rc = PMIx_server_register_nspace(p->nspace, (int)p->tasks->count, info, n, NULL, NULL);
	PMIX_INFO_FREE(info, n);
	return rc;
}

static bool register_done(pmix_status_t rc)
{
	return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t register_clients(struct pmix_launch *p)
{
	pmix_status_t rc = PMIX_SUCCESS;
	pmix_proc_t proc;

	for (uint32_t i = 0; i < p->tasks->count && register_done(rc); i++) {
		PMIX_LOAD_PROCID(&proc, p->nspace, p->tasks->ranks[i]);
		rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
	}
	return rc;
}

pmix_status_t pmix_register(struct pmix_launch *p)
{
	char *nodes = register_nodes(&p->tasks->plan), *ranks = register_all_ranks(&p->tasks->plan);
	char *peers = register_peers(&p->tasks->plan), *node_map = NULL, *rank_map = NULL;
	pmix_status_t rc = nodes && ranks && peers ? PMIX_SUCCESS : PMIX_ERR_NOMEM;

	if (rc == PMIX_SUCCESS)
		rc = PMIx_generate_regex(nodes, &node_map);
	if (rc == PMIX_SUCCESS)
		rc = PMIx_generate_ppn(ranks, &rank_map);
	if (rc == PMIX_SUCCESS)
		rc = register_nspace(p, node_map, rank_map, peers);
	if (register_done(rc))
		rc = register_clients(p);
	free(node_map);
	free(rank_map);
	free(nodes);
	free(ranks);
	free(peers);
	return register_done(rc) ? PMIX_SUCCESS : rc;
}
