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
#include "user/utf8.h"
#include "balancer/run/run.h"

#define KNOWS_S 2 /* after this time a live node has told the job's home */

json_t *run_home_ask(const char *run_dir, const msgpack_sbuffer *request)
{
	const struct timeval patience = {.tv_sec = KNOWS_S};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int fd;

	if (client_connect(client_run_dir(run_dir), &fd, &err))
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (client_request(fd, request->data, request->size, &answer, &err))
		answer = NULL;
	close(fd);
	return answer;
}

/* Returns the job as home lists it after its end, or NOW; NULL: home does not know. */
static json_t *ask_home(const char *run_dir, const char *job, bool now)
{
	msgpack_sbuffer request;
	msgpack_packer pk;
	json_t *answer;

	pack_begin(&pk, &request, 3 + now);
	pack_str(&pk, "op", "wait");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	if (now)
		pack_bool(&pk, "now", true);
	answer = run_home_ask(run_dir, &request);
	msgpack_sbuffer_destroy(&request);
	return answer;
}

int run_home(const char *run_dir, const char *job, struct run_result *result)
{
	json_t *answer = ask_home(run_dir, job, false);
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

bool run_home_ends(const char *run_dir, const char *job, bool lost, int *status, char *text,
		   size_t size)
{
	json_t *answer = ask_home(run_dir, job, false);
	const json_t *row = json_object_get(answer, "job");
	bool ends;

	if (!row) { /* a part may be lost: then home says already that it ends the gang */
		json_decref(answer);
		answer = ask_home(run_dir, job, true);
		row = json_object_get(answer, "job");
	}
	ends = *listing_string(row, "text") && (!lost || listing_number(row, "exit_kind") == 3);
	if (ends) {
		*status = (int)listing_number(row, "exit_value") +
			  (listing_number(row, "exit_kind") == 1 ? 128 : 0);
		snprintf(text, size, "%s", listing_string(row, "text"));
	}
	json_decref(answer);
	return ends;
}

void run_home_give_up(const char *run_dir, const char *job, int signal, int status, const char *why)
{
	char text[256];
	msgpack_sbuffer request;
	msgpack_packer pk;

	snprintf(text, sizeof(text), "%s", why);
	utf8_plain(text);
	pack_begin(&pk, &request, 7);
	pack_str(&pk, "op", "kill");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	pack_u64(&pk, "signal", (uint64_t)signal);
	pack_bool(&pk, "ends", true);
	pack_u64(&pk, "value", (uint64_t)status);
	pack_str(&pk, "why", text);
	json_decref(run_home_ask(run_dir, &request));
	msgpack_sbuffer_destroy(&request);
}
