/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The table of the CLI's requests. */
#include "agent/front/requests.h"

#include <string.h>

#include "user/pack.h"

static const struct {
	const char *op;
	front_request *handle;
} requests_table[] = {
	{"place", submit_request},	{"status", status_request},   {"nodes", nodes_request},
	{"jobs", jobs_request},		{"explain", explain_request}, {"top", top_request},
	{"kill", kill_request},		{"record", record_request},   {"profile", profiles_request},
	{"reach", reach_request},	{"gather", gather_request},   {"wait", wait_request},
	{"attach", attach_request},	{"report", report_request},   {"owner", owner_request},
	{"feedback", feedback_request}, {"talks", talks_request},     {"migrate", migrate_request},
};

void requests_handle(void *front, struct client *client, const msgpack_object *request)
{
	char op[32];

	if (unpack_str(request, "op", op, sizeof(op))) {
		client_error(client, "the request names no \"op\"");
		return;
	}
	for (size_t i = 0; i < sizeof(requests_table) / sizeof(*requests_table); i++) {
		if (!strcmp(op, requests_table[i].op)) {
			requests_table[i].handle(front, client, request);
			return;
		}
	}
	client_error(client, "the agent does not know the request '%s'; is it an older version?",
		     op);
}
