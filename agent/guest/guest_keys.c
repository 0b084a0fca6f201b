/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The keys of streams from other nodes (user/channel/secret.h): each is derived from the secret of
 * the job's attempt, which home has made, and which the job's record keeps.
 */
#include "agent/guest/guest_own.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/attach.h"

/* Returns 0; -ENODATA: an older version started JOB; -ENOENT: there is no such job. */
static int guest_keys_secret(const struct guest *guest, const char *name,
			     uint8_t secret[SECRET_BYTES])
{
	const struct job *job = jobs_find(&guest->jobs, name);

	/* After a restart of this agent only the record has it, and at the start only we have. */
	if (!job || !job->order.keyed)
		return guest->launcher->secret(guest->jobs_dir, name, secret);
	memcpy(secret, job->order.secret, SECRET_BYTES);
	return 0;
}

int guest_stream_key(void *arg, const struct stream_hello *hello, uint8_t key[SECRET_KEY])
{
	struct guest *guest = arg;
	const struct ticket *ticket = tickets_find(&guest->tickets, hello->ticket, hello->job,
						   loop_boot_ns(guest->base->loop));
	uint8_t secret[SECRET_BYTES];
	int rc;

	if (ticket) {
		memcpy(key, ticket->key, SECRET_KEY);
		return 0;
	}
	rc = guest_keys_secret(guest, hello->job, secret);
	/* A client that resumes has used its ticket, but its key is still its own. */
	if (!rc)
		secret_derive(key, secret, *hello->ticket ? SECRET_ATTACH : SECRET_STREAM,
			      hello->job, hello->ticket);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

/* Fills the KEY of TICKET.  Returns 0, or negative errno with the reason in ERR. */
static int guest_keys_fill(const struct guest *guest, struct ticket *ticket, bool ended,
			   struct iocom_err *err)
{
	uint8_t secret[SECRET_BYTES];
	int rc = guest_keys_secret(guest, ticket->job, secret);

	if (rc == -ENODATA)
		return iocom_err_set(err, rc,
				     "job %s was started by an older version of iocom, which sent "
				     "its streams in clear: attach to it at node %s itself, or "
				     "wait for its end",
				     ticket->job, guest->base->set->name);
	if (rc && ended)
		secret_new(secret); /* nothing of it is left but how it ended */
	else if (rc)
		return iocom_err_set(err, rc, "the record of job %s cannot be read", ticket->job);
	secret_derive(ticket->key, secret, SECRET_ATTACH, ticket->job, ticket->name);
	explicit_bzero(secret, sizeof(secret));
	return 0;
}

static void guest_keys_answer(const struct guest *guest, const struct ticket *ticket,
			      struct peer_answer *answer)
{
	const struct settings *set = guest->base->set;
	struct peer_attach *a = &answer->attach;

	snprintf(a->job, sizeof(a->job), "%s", ticket->job);
	snprintf(a->node, sizeof(a->node), "%s", set->name);
	snprintf(a->address, sizeof(a->address), "%s", set->address);
	a->port = (uint16_t)(set->port + 2);
	memcpy(a->ticket, ticket->name, sizeof(a->ticket));
	memcpy(a->key, ticket->key, sizeof(a->key));
	answer->ok = true;
}

int guest_on_attach(void *arg, const struct peer_request *request, uint64_t unused,
		    struct peer_answer *answer)
{
	struct guest *guest = arg;
	uid_t uid = request->attach.uid;
	struct iocom_err err = {0};
	struct ticket *ticket = NULL;
	bool ended = false;

	(void)unused;
	if (!guest_attach_owned(guest, request->job, uid, &ended, &err))
		ticket = tickets_new(&guest->tickets, request->job, uid,
				     loop_boot_ns(guest->base->loop), guest->base->counters, &err);
	if (ticket && !guest_keys_fill(guest, ticket, ended, &err)) {
		guest_keys_answer(guest, ticket, answer);
		return 0;
	}
	if (ticket)
		explicit_bzero(ticket, sizeof(*ticket));
	peer_answer_refuse(answer, "%s", err.text);
	return 0;
}
