/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See top_far.h. */
#include "balancer/top/top_far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/reach.h"
#include "user/attach.h"
#include "user/pack.h"

struct top_far {
	char *run_dir, *node;
	uint64_t interval_ms;
	char token[SPEC_NONCE_MAX]; /* by which the node knows this watcher again */
};

struct top_far *top_far_new(const char *run_dir, const char *node, uint64_t interval_ms)
{
	struct top_far *far = calloc(1, sizeof(*far));

	if (!far)
		return NULL;
	far->node = strdup(node);
	far->run_dir = run_dir ? strdup(run_dir) : NULL;
	far->interval_ms = interval_ms;
	attach_nonce(far->token);
	if (far->node && (far->run_dir || !run_dir))
		return far;
	top_far_free(far);
	return NULL;
}

void top_far_free(struct top_far *far)
{
	if (!far)
		return;
	free(far->run_dir);
	free(far->node);
	free(far);
}

int top_far_is_other(const char *run_dir, const char *node, struct iocom_err *err)
{
	struct reach reach;
	int rc = reach_open(&reach, run_dir, err);

	if (!rc && strcmp(node, reach.self) != 0)
		rc = reach_knows(&reach, node, NULL)
			     ? 1
			     : iocom_err_set(err, -ENOENT,
					     "no node named %s is known here; `iocom nodes` lists "
					     "them",
					     node);
	reach_close(&reach);
	return rc;
}

static int far_request(struct top_far *far, struct reach *reach, json_t **answer,
		       struct iocom_err *err)
{
	msgpack_sbuffer request;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &request, 4);
	pack_str(&pk, "op", "top");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "token", far->token);
	pack_u64(&pk, "interval_ms", far->interval_ms);
	rc = reach_ask(reach, far->node, &request, answer, err);
	msgpack_sbuffer_destroy(&request);
	return rc;
}

int top_far_ask(struct top_far *far, json_t **document, struct iocom_err *err)
{
	json_t *answer = NULL;
	struct reach reach;
	int rc = reach_open(&reach, far->run_dir, err);

	*document = NULL;
	if (!rc)
		rc = far_request(far, &reach, &answer, err);
	reach_close(&reach);
	if (!rc && json_object_get(answer, "tasks"))
		*document = json_incref(answer);
	json_decref(answer);
	return rc;
}
