/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The order: what the agent tells the shim it spawns, in a sealed memory file
 * on descriptor SHIM_FD_ORDER.  One MessagePack map: v, uid, gid, allow_root,
 * jobs_dir, run_dir, scope, pam, spool_max, spec (bin, as the client sent it); of a
 * restartable job lease_until_ms, CLOCK_BOOTTIME, and where the shim is to renew that
 * itself renew_secret (bin), renew_address, renew_port, renew_lease_ms; begin_ms where it is
 * not the usual; where the agent has looked it up, user (name) and groups (bin: gid_t, the
 * primary one too).  Or, to send what is kept of a job that is over: v, jobs_dir, attach
 * (bin, user/attach.h).
 */
#ifndef IOCOM_SHIM_ORDER_H
#define IOCOM_SHIM_ORDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "user/account.h"
#include "user/attach.h"
#include "iocom/err.h"
#include "iocom/vector.h"
#include "user/renewal.h"
#include "user/spec.h"

#define SHIM_FD_LEASH	3
#define SHIM_FD_ORDER	4
#define SHIM_FD_STREAM	5
#define SHIM_FD_RECORD	6 /* the job's directory, locked; an older agent gives none */
#define SHIM_ORDER_MAX	(SPEC_PACKED_MAX + 65536)
#define SHIM_VERSION	2
#define SHIM_BEGIN_MS	60000
#define SHIM_MOVED	"--moved" /* its argument: it is in the cgroup of the shims */
#define SHIM_GROUPS_MAX 4096	  /* of an order; who is in more is looked up by the shim */
/* Another, after that: order, stream and record come on the leash (spare.h). */
#define SHIM_SPARE	"--spare"
#define SHIM_SPARE_NAME "iocom-spare"
#define SPARE_FDS	3

/* How the shim renews the lease with home (renew.h). */
struct order_renew {
	bool wanted;
	uint8_t secret[RENEWAL_SECRET];
	char address[IOCOM_ADDRESS_MAX];
	uint16_t port;
	uint32_t lease_ms;
};

struct order {
	uid_t uid;
	gid_t gid;
	bool allow_root;
	char jobs_dir[1024], run_dir[1024];
	char scope[256];
	char pam[256];		 /* directory of PAM's service file; "" = without PAM */
	uint64_t spool_max;	 /* bytes of a detached job's output that are kept, at most */
	uint64_t lease_until_ms; /* 0: none */
	uint32_t begin_ms;	 /* PAM may need so long, and again exec with its directory */
	struct account account;	 /* no `name`: to be looked up */
	struct order_renew renew;
	struct spec spec;
	bool replay; /* of all this only `jobs_dir`, and: */
	struct attach_ask ask;
	char slot[1088]; /* the place it has meanwhile (process_slot.h); "": none */
	uid_t reader;
};

/* Reads and checks the order on FD.  0 or negative errno with the sentence. */
int order_read(int fd, struct order *order, struct iocom_err *err);
void order_deinit(struct order *order);
/* The command on one printable line. */
void order_command(const struct order *order, char *out, size_t size);

#endif
