/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * When the job's node does not answer or does not know the job any more, its home node may know
 * how it ended.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/listing.h"
#include "user/pack.h"
#include "balancer/run/run.h"

#define KNOWS_S 2 /* after this time a live node has told the job's home */

/* Returns the job as home lists it after its end; NULL: home does not know. */
static json_t *ask_home(const char *run_dir, const char *job)
{
	const struct timeval patience = {.tv_sec = KNOWS_S};
	struct iocom_err err = {0};
	msgpack_sbuffer request;
	json_t *answer = NULL;
	msgpack_packer pk;
	int fd;

	if (client_connect(client_run_dir(run_dir), &fd, &err))
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	pack_begin(&pk, &request, 3);
	pack_str(&pk, "op", "wait");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	if (client_request(fd, request.data, request.size, &answer, &err))
		answer = NULL;
	msgpack_sbuffer_destroy(&request);
	close(fd);
	return answer;
}

int run_home(const char *run_dir, const char *job, struct run_result *result)
{
	json_t *answer = ask_home(run_dir, job);
	const json_t *end = json_object_get(answer, "job");
	const char *state = listing_string(end, "state"), *text = listing_string(end, "text");
	int kind = (int)listing_number(end, "exit_kind");
	int value = (int)listing_number(end, "exit_value");

	if (!strcmp(state, "failed") && kind == 3 && value == RUN_FAILED) {
		result->state = RUN_EXITED; /* no process of the job ran */
		result->kind = 3;
		result->value = RUN_FAILED;
	}
	if (kind == 3 && *text) {
		snprintf(result->text, sizeof(result->text), "%s", text);
	} else if (end && kind < 3) {
		snprintf(result->text, sizeof(result->text),
			 "contact was lost; its home node knows that it ended with %s %d, its "
			 "output may be cut",
			 kind == 1 ? "signal" : "status", value);
	}
	json_decref(answer);
	return run_exit_code(result);
}
