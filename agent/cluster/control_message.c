/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The messages of control: their addresses, seals and errors. */
#include "agent/cluster/control_own.h"
#include "user/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct control_bytes control_seal(struct control *c, const struct session *session,
				  const struct control_head *head, const msgpack_sbuffer *body)
{
	struct control_bytes out = {0};
	msgpack_sbuffer plain;

	message_pack(head, body, &plain);
	if (plain.size + SESSION_OVERHEAD <= MESSAGE_MAX)
		out.data = malloc(plain.size + SESSION_OVERHEAD);
	if (out.data) {
		out.length = plain.size + SESSION_OVERHEAD;
		session_seal(c->sessions, session, plain.data, plain.size, out.data);
	}
	if (plain.data) /* secrets of jobs may be in it */
		explicit_bzero(plain.data, plain.size);
	msgpack_sbuffer_destroy(&plain);
	return out;
}

/* Opens the message's bytes, of which M borrows. */
static int open_bytes(struct control *c, const struct session *session, uint8_t *bytes,
		      size_t length, struct message *m, struct iocom_err *err)
{
	const uint8_t *data;
	size_t n;
	int rc = session_open(c->sessions, session, bytes, length, &data, &n);

	if (rc == -EALREADY)
		return iocom_err_set(err, SEAL_E_REPLAYED, "it was here before (a replay)");
	if (rc)
		return iocom_err_set(err, SEAL_E_FORGED,
				     "it was not made by node %s in this session",
				     session_node(session));
	return message_unpack(m, data, n, err);
}

/* Checks that the message was sent about now. */
static int open_time(const struct control *c, const struct control_head *head,
		     struct iocom_err *err)
{
	int64_t now_ms = (int64_t)(loop_real_ns(c->config.loop) / CLOCK_NS_PER_MS);
	int64_t ahead_s = ((int64_t)head->at_ms - now_ms) / 1000;

	if (ahead_s <= SEAL_TTL_S && ahead_s >= -SEAL_TTL_S)
		return 0;
	return iocom_err_set(err, SEAL_E_SKEW,
			     "node %s sent it %lld s %s this machine's time (at most %d s are "
			     "accepted): it was delayed, or the clocks differ; synchronise them",
			     head->from, (long long)(ahead_s > 0 ? ahead_s : -ahead_s),
			     ahead_s > 0 ? "after" : "before", SEAL_TTL_S);
}

int control_open(struct control *c, const struct session *session, uint8_t *bytes, size_t length,
		 struct message *m, struct iocom_err *err)
{
	int rc = open_bytes(c, session, bytes, length, m, err);

	if (rc)
		return rc;
	rc = open_time(c, &m->head, err);
	if (rc) {
		message_free(m);
		return rc;
	}
	if (strcmp(m->head.to, c->config.self.name))
		rc = iocom_err_set(err, -EACCES, "it is for node '%s', not for this one",
				   m->head.to);
	else if (strcmp(m->head.from, session_node(session)))
		rc = iocom_err_set(err, -EACCES, "node '%s' speaks in the name of node '%s'",
				   session_node(session), m->head.from);
	if (rc)
		message_free(m);
	return rc;
}
