/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An agent that lies when it says that it holds a job that came: the file $IOCOM_LIE says how.
 *
 *   next    it is held for the move after this one
 *   former  for the move before this one
 *   source  it is held as the node where the job was, which could not move it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/peer_move.h"

void __real_peer_held_pack(const struct peer_held *h, msgpack_packer *pk, msgpack_sbuffer *out);
void __wrap_peer_held_pack(const struct peer_held *h, msgpack_packer *pk, msgpack_sbuffer *out);

void __wrap_peer_held_pack(const struct peer_held *h, msgpack_packer *pk, msgpack_sbuffer *out)
{
	const char *path = getenv("IOCOM_LIE");
	FILE *file = path ? fopen(path, "re") : NULL;
	struct peer_held said = *h;
	char lie[16] = "";

	if (file && fscanf(file, "%15s", lie) != 1)
		*lie = 0;
	if (file)
		fclose(file);
	if (!strcmp(lie, "next"))
		said.number++;
	if (!strcmp(lie, "former"))
		said.number--;
	if (!strcmp(lie, "source")) {
		said.there = false;
		said.failed = true;
	}
	__real_peer_held_pack(&said, pk, out);
}
