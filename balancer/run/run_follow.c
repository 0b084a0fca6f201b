/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See run_follow.h. */
#include "balancer/run/run_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/listing.h"
#include "user/pack.h"

int run_follow_target(struct run_target *target, const json_t *answer, const char *run_dir,
		      struct iocom_err *err)
{
	const char *socket = getenv("IOCOM_MUNGE_SOCKET");

	if (!socket || !*socket)
		socket = listing_string(answer, "munge_socket");
	*target = (struct run_target){
		.run_dir = run_dir,
		.address = listing_string(answer, "address"),
		.port = (unsigned)listing_number(answer, "port"),
		.munge_socket = *socket ? socket : NULL,
		.ticket = listing_string(answer, "ticket"),
	};
	return run_target_key(target, listing_string(answer, "key"), err);
}

static json_t *follow_ask(const char *run_dir, const char *job)
{
	msgpack_sbuffer request;
	msgpack_packer pk;
	json_t *answer;

	pack_begin(&pk, &request, 3);
	pack_str(&pk, "op", "attach");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "job", job);
	answer = run_home_ask(run_dir, &request);
	msgpack_sbuffer_destroy(&request);
	return answer;
}

bool run_follow(struct run_follow *follow, const char *run_dir, struct attach_ask *self)
{
	json_t *answer = follow_ask(run_dir, self->job);
	const char *node = answer ? listing_string(answer, "node") : "";
	struct run_target target;

	if (!*node || strlen(node) >= sizeof(self->node) || !strcmp(node, self->node) ||
	    strcmp(listing_string(answer, "job"), self->job) != 0 ||
	    run_follow_target(&target, answer, run_dir, &(struct iocom_err){0})) {
		json_decref(answer);
		return false;
	}
	run_follow_fini(follow);
	follow->answer = answer;
	follow->target = target;
	snprintf(self->node, sizeof(self->node), "%s", node);
	return true;
}

void run_follow_fini(struct run_follow *follow)
{
	json_decref(follow->answer);
	explicit_bzero(follow, sizeof(*follow));
}
