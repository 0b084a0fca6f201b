/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The processes of a job that departs (depart.h), which are copies of its shim: the mover saves and
 * sends it; of a job that runs while it is sent, the packer writes what the shim itself knows.
 */
#ifndef IOCOM_SHIM_DEPART_MOVER_H
#define IOCOM_SHIM_DEPART_MOVER_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct criu;
struct shim;
struct wire;

#define DEPART_END_MS 2000 /* for the mover to hand on the last signals */

/* What the packer says to the mover: the job is frozen, and its luggage among the images. */
struct depart_packed {
	int rc;
	bool spooled; /* it has output on disk */
	char why[256];
};

/* Returns the resident memory of all processes of GROUP, in bytes; what two share counts twice. */
uint64_t depart_resident_bytes(const struct cgroup *group);
/*
 * In the mover: saves the job of SHIM with CRIU, sends it to TARGET, and says once to PARENT how
 * that went (struct leash_move), or nothing if criu was killed.  If it COPIES, the job runs, and
 * the path of the images says to PARENT that it is to be frozen.
 */
_Noreturn void depart_mover_run(struct shim *shim, const struct criu *criu, struct wire *target,
				int parent, bool copies);
/* In the packer: writes the luggage to the images at PATH, and says to the mover how that went. */
_Noreturn void depart_packer_run(struct shim *shim, const char *path);

#endif
