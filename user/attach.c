/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Messages for attaching to a job; see attach.h. */
#include "user/attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "user/pack.h"

void attach_nonce(char nonce[SPEC_NONCE_MAX])
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort(); /* the kernel has random bytes once it has booted */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
}

static int take_buffer(msgpack_sbuffer *buffer, void **data, size_t *length)
{
	*length = buffer->size;
	*data = msgpack_sbuffer_release(buffer);
	return *data ? 0 : -ENOMEM;
}

int attach_pack(const struct attach_ask *ask, void **data, size_t *length)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 9 + ask->gaps + ask->recent + ask->take);
	pack_u64(&pk, "v", SPEC_VERSION);
	pack_str(&pk, "job", ask->job);
	pack_str(&pk, "node", ask->node);
	pack_str(&pk, "nonce", ask->nonce);
	pack_str(&pk, "resume", ask->resume);
	pack_u64(&pk, "out", ask->from[1]);
	pack_u64(&pk, "err", ask->from[2]);
	pack_u64(&pk, "out_taken", ask->taken[1]);
	pack_u64(&pk, "err_taken", ask->taken[2]);
	if (ask->gaps)
		pack_bool(&pk, "gaps", true);
	if (ask->recent)
		pack_bool(&pk, "recent", true);
	if (ask->take)
		pack_bool(&pk, "take", true);
	return take_buffer(&buffer, data, length);
}

static bool nonce_valid(const char *nonce)
{
	return strspn(nonce, "0123456789abcdef") == strlen(nonce);
}

/* Reads a key that older programs do not send. */
static int take_wish(const msgpack_object *map, const char *key, bool *wish)
{
	return unpack_get(map, key) ? unpack_bool(map, key, wish) : 0;
}

static int attach_take(const msgpack_object *map, struct attach_ask *ask, struct iocom_err *err)
{
	uint64_t version;

	if (unpack_u64(map, "v", &version) || version != SPEC_VERSION)
		return iocom_err_set(err, -EPROTO,
				     "the client that attaches has another version of iocom; "
				     "install the same one on both sides");
	if (unpack_str(map, "job", ask->job, sizeof(ask->job)) || !spec_job_valid(ask->job) ||
	    unpack_str(map, "node", ask->node, sizeof(ask->node)) || !ask->node[0] ||
	    unpack_str(map, "nonce", ask->nonce, sizeof(ask->nonce)) || strlen(ask->nonce) != 32 ||
	    !nonce_valid(ask->nonce) ||
	    unpack_str(map, "resume", ask->resume, sizeof(ask->resume)) ||
	    !nonce_valid(ask->resume) || unpack_u64(map, "out", &ask->from[1]) ||
	    unpack_u64(map, "err", &ask->from[2]) || unpack_u64(map, "out_taken", &ask->taken[1]) ||
	    unpack_u64(map, "err_taken", &ask->taken[2]) || ask->taken[1] > ask->from[1] ||
	    ask->taken[2] > ask->from[2] || take_wish(map, "gaps", &ask->gaps) ||
	    take_wish(map, "recent", &ask->recent) || take_wish(map, "take", &ask->take))
		return iocom_err_set(err, -EBADMSG, "the attach message is malformed");
	return 0;
}

int attach_unpack(struct attach_ask *ask, const void *data, size_t length, struct iocom_err *err)
{
	msgpack_unpacked message;
	int rc;

	*ask = (struct attach_ask){0};
	if (length > ATTACH_ASK_MAX || unpack_map(&message, data, length))
		return iocom_err_set(err, -EBADMSG, "the attach message is malformed");
	rc = attach_take(&message.data, ask, err);
	msgpack_unpacked_destroy(&message);
	return rc;
}

int attach_state_pack(const struct attach_state *state, const char *job, const char *node,
		      void **data, size_t *length)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 11);
	pack_str(&pk, "job", job);
	pack_str(&pk, "node", node);
	pack_u64(&pk, "pid", state->pid);
	pack_u64(&pk, "in", state->input);
	pack_u64(&pk, "in_limit", state->input_limit);
	pack_u64(&pk, "out", state->from[1]);
	pack_u64(&pk, "err", state->from[2]);
	pack_u64(&pk, "out_lost", state->lost[1]);
	pack_u64(&pk, "err_lost", state->lost[2]);
	pack_bool(&pk, "detached", state->detached);
	pack_bool(&pk, "tty", state->tty);
	return take_buffer(&buffer, data, length);
}

void attach_state_unpack(struct attach_state *state, const void *data, size_t length)
{
	msgpack_unpacked message;

	*state = (struct attach_state){.input_limit = FRAME_WINDOW};
	if (unpack_map(&message, data, length))
		return;
	(void)unpack_u64(&message.data, "pid", &state->pid);
	(void)unpack_u64(&message.data, "in", &state->input);
	(void)unpack_u64(&message.data, "in_limit", &state->input_limit);
	(void)unpack_u64(&message.data, "out", &state->from[1]);
	(void)unpack_u64(&message.data, "err", &state->from[2]);
	(void)unpack_u64(&message.data, "out_lost", &state->lost[1]);
	(void)unpack_u64(&message.data, "err_lost", &state->lost[2]);
	(void)unpack_bool(&message.data, "detached", &state->detached);
	(void)unpack_bool(&message.data, "tty", &state->tty);
	msgpack_unpacked_destroy(&message);
}

void attach_end_text(char out[ATTACH_END_MAX], const char *job, int kind, int value,
		     const char *text)
{
	if (kind == 3)
		snprintf(out, ATTACH_END_MAX, "job %s has ended: %.300s", job,
			 text && *text ? text : "its outcome is unknown");
	else
		snprintf(out, ATTACH_END_MAX,
			 "job %s has ended with status %d; its output is not kept (run --detach "
			 "keeps it, for a time)",
			 job, value + (kind == 1 ? 128 : 0));
}
