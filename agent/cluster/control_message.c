/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The messages of control: their addresses, seals and errors. */
#include "agent/cluster/control_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void control_url(char *out, size_t size, const char *address, unsigned port)
{
	bool v6 = strchr(address, ':') && *address != '[';

	snprintf(out, size, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", address, port);
}

int control_nng_error(int e, const char *what, const char *url, struct iocom_err *err)
{
	switch (e) {
	case 0:
		return 0;
	case NNG_EADDRINUSE:
		return iocom_err_set(err, -EADDRINUSE,
				     "cannot %s %s: the port is in use, perhaps by another iocomd; "
				     "find its owner with `ss -ltnp`, or choose --port",
				     what, url);
	case NNG_EADDRINVAL:
		return iocom_err_set(err, -EADDRNOTAVAIL,
				     "cannot %s %s: no such address on this machine; see --listen",
				     what, url);
	case NNG_ENOMEM:
		return iocom_err_set(err, -ENOMEM, "out of memory");
	case NNG_ETIMEDOUT:
		return iocom_err_set(err, -ETIMEDOUT,
				     "no answer within %g s from %s (is iocomd running there?)",
				     CONTROL_TIMEOUT_MS / 1e3, url);
	case NNG_ECANCELED:
	case NNG_ECLOSED:
		return iocom_err_set(err, -ECANCELED, "the agent is stopping");
	default:
		return iocom_err_set(err, -EIO, "cannot %s %s: %s", what, url, nng_strerror(e));
	}
}

int control_seal(struct control *c, const struct control_head *head, const msgpack_sbuffer *body,
		 seal_answered answered, void *arg, struct seal_question **question,
		 struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	int rc;

	message_pack(head, body, &buffer);
	rc = seal_message(c->config.seal, buffer.data, buffer.size, answered, arg, question, err);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

nng_msg *control_sealed(struct seal_answer *a)
{
	nng_msg *msg = NULL;

	if (a->rc)
		return NULL;
	if (!nng_msg_alloc(&msg, 0) && !nng_msg_append(msg, a->text, strlen(a->text)))
		return msg;
	if (msg)
		nng_msg_free(msg);
	a->rc = iocom_err_set(&a->err, -ENOMEM, "out of memory");
	return NULL;
}

void control_opened_free(struct control_opened *o)
{
	message_free(&o->message);
	free(o->data);
}

int control_open(struct control *c, struct seal_answer *a, struct control_opened *o,
		 struct iocom_err *err)
{
	const struct control_head *head = &o->message.head;
	int rc;

	*o = (struct control_opened){0};
	if (a->rc) {
		*err = a->err;
		return a->rc;
	}
	rc = message_unpack(&o->message, a->data, a->length, err);
	if (rc)
		return rc;
	o->data = a->data;
	a->data = NULL;
	if (strcmp(head->to, c->config.name))
		rc = iocom_err_set(err, -EACCES, "it is for node '%s', not for this one", head->to);
	else if (!strcmp(head->from,
			 c->config.name)) /* home's own jobs are admitted without checks */
		rc = iocom_err_set(err, -EACCES, "it claims to come from this node itself");
	if (rc)
		control_opened_free(o);
	return rc;
}
