/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "feedback": the state of the feedback controller. */
#include "agent/feedback/feedback.h"
#include "agent/front/front.h"

void feedback_request(struct front *front, struct client *c, const msgpack_object *request)
{
	json_t *answer = NULL;

	(void)request;
	if (front->feedback)
		answer = feedback_json(front->feedback, client_who(c)->uid);
	if (!answer)
		client_error(c, "there is no feedback controller here");
	else
		client_json(c, answer);
}
