/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * As node FROM, asks an agent to renew the lease of JOB, and sends the same sealed message COUNT
 * times: `renew FROM TO ADDRESS PORT JOB COUNT`. Prints a line for each: ok, fenced, or silence.
 * Only the cluster's root can do this: the message is sealed like any other.
 */
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/cluster/control.h"
#include "agent/cluster/peer_message.h"
#include "user/pack.h"
#include "tests/lib/seals.h"

#define ANSWER_MS 1500

static char *make_message(struct seals *seals, char **argv)
{
	struct iocom_err err = {0};
	msgpack_sbuffer buffer, body;
	msgpack_packer pk;
	char *credential = NULL;
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return NULL;
	pack_begin(&pk, &body, 1);
	pack_u64(&pk, "lease_ms", 5000);
	pack_begin(&pk, &buffer, 7);
	pack_u64(&pk, "v", CONTROL_VERSION);
	pack_str(&pk, "type", "renew");
	pack_str(&pk, "from", argv[1]);
	pack_str(&pk, "to", argv[2]);
	pack_str(&pk, "job", argv[5]);
	pack_u64(&pk, "id", id >> 1);
	pack_bin(&pk, "body", body.data, body.size);
	if (seals_message(seals, buffer.data, buffer.size, &credential, &err))
		fprintf(stderr, "renew: %s\n", err.text);
	msgpack_sbuffer_destroy(&buffer);
	msgpack_sbuffer_destroy(&body);
	return credential;
}

static const char *read_answer(struct seals *seals, nng_msg *msg)
{
	msgpack_unpacked outer, inner;
	const msgpack_object *body;
	struct iocom_err err = {0};
	const char *word = "garbage";
	size_t length;
	void *data;
	bool ok;

	if (seals_open(seals, nng_msg_body(msg), nng_msg_len(msg), false, &data, &length, &err))
		return "not sealed";
	if (!unpack_map_of(&outer, data, length, PEER_VALUES_MAX)) {
		body = unpack_get(&outer.data, "body");
		if (body && body->type == MSGPACK_OBJECT_BIN &&
		    !unpack_map_of(&inner, body->via.bin.ptr, body->via.bin.size,
				   PEER_VALUES_MAX)) {
			if (!unpack_bool(&inner.data, "ok", &ok))
				word = ok ? "ok" : "fenced";
			msgpack_unpacked_destroy(&inner);
		}
		msgpack_unpacked_destroy(&outer);
	}
	free(data);
	return word;
}

static const char *show(struct seals *seals, const char *url, const char *message)
{
	const char *word = "silence";
	nng_socket socket;
	nng_msg *msg;

	if (nng_req0_open(&socket))
		return "no socket";
	nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, ANSWER_MS);
	nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
	if (nng_dial(socket, url, NULL, 0))
		word = "no connection";
	else if (!nng_msg_alloc(&msg, 0) && !nng_msg_append(msg, message, strlen(message)) &&
		 !nng_sendmsg(socket, msg, 0) && !nng_recvmsg(socket, &msg, 0)) {
		word = read_answer(seals, msg);
		nng_msg_free(msg);
	}
	nng_close(socket);
	return word;
}

int main(int argc, char **argv)
{
	const char *munge = getenv("IOCOM_MUNGE_SOCKET");
	struct iocom_err err = {0};
	struct seals seals;
	char url[128], *message;

	if (argc != 7) {
		fprintf(stderr, "usage: renew FROM TO ADDRESS PORT JOB COUNT\n");
		return 2;
	}
	if (seals_new(&seals, munge ? munge : "", &err)) {
		fprintf(stderr, "renew: %s\n", err.text);
		return 1;
	}
	control_url(url, sizeof(url), argv[3], (unsigned)atoi(argv[4]) + 1);
	message = make_message(&seals, argv);
	for (int i = 0; message && i < atoi(argv[6]); i++)
		puts(show(&seals, url, message));
	free(message);
	seals_free(&seals);
	return message ? 0 : 1;
}
