/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "tunnel": { "op": "tunnel", "node": NAME }. From now on the connection is a job stream to
 * NAME, through a relay that has the node's key; the client gets no answer, or FRAME_ERROR.
 */
#include "agent/cluster/tunnel.h"

#include "agent/front/front.h"
#include "user/pack.h"

void tunnel_request(struct front *front, struct client *client, const msgpack_object *request)
{
	struct peers *peers = front->peers;
	const struct matrix_entry *e;
	struct iocom_err err = {0};
	char name[IOCOM_NAME_MAX];

	if (!peers->tunnels) {
		client_error(client, "this agent has no TLS (tls_certificate, tls_key, tls_ca)");
		return;
	}
	if (unpack_str(request, "node", name, sizeof(name))) {
		client_error(client, "the request names no node");
		return;
	}
	e = matrix_find(&peers->matrix, name);
	if (!e || !e->vector.address[0])
		client_error(client, "node %s is not known here", name);
	else if (tunnels_open(peers->tunnels, client_who(client)->uid, client_fd(client),
			      &e->vector, &err))
		client_error(client, "%s", err.text);
	else
		client_hand_over(client);
}
