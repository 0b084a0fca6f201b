/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The order: what the agent tells the shim it spawns, in a sealed memory file on descriptor
 * SHIM_FD_ORDER. It is one MessagePack map:
 *
 *   always             v, uid, gid, allow_root, jobs_dir, run_dir, scope, pam, spool_max,
 *                      spec (bin, as the client sent it)
 *   with version 3     secret (bin: of the attempt, for the record)
 *   remote client      records (bin: the stream's keys, user/channel/records.h)
 *   restartable job    lease_until_ms (CLOCK_BOOTTIME)
 *   shim renews        renew_secret (bin), renew_address, renew_port, renew_lease_ms
 *   attached job       spill_max
 *   unusual limit      begin_ms
 *   account known      user (name), groups (bin: gid_t, with the primary one)
 *   data may go along  data_dir, data_cache_bytes
 *   job that comes     criu (path; "": the usual one)
 *   from another node  guest (bool): its cgroup is in guests/, not in jobs/
 *   group per user     user_tasks, user_memory_bytes, user_swap_bytes: its limits (0: none); an
 *                      older agent sends none of them and looks for the job at jobs/JOB
 *
 * An order to send the kept output of an ended job has only v, jobs_dir, attach (bin,
 * user/attach.h), slot and reader, and the records of a remote client.
 *
 * An agent of version 2 sends neither secret nor records. A shim that knows only version 2 refuses
 * the order of a later agent: it would send the stream in clear.
 */
#ifndef IOCOM_SHIM_ORDER_H
#define IOCOM_SHIM_ORDER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "user/account.h"
#include "user/attach.h"
#include "user/cgroup_user.h"
#include "iocom/err.h"
#include "user/frame.h"
#include "iocom/vector.h"
#include "user/channel/records.h"
#include "user/channel/secret.h"
#include "user/renewal.h"
#include "user/spec.h"

#define SHIM_FD_LEASH	 3
#define SHIM_FD_ORDER	 4
#define SHIM_FD_STREAM	 5
#define SHIM_FD_RECORD	 6 /* the job's directory, locked; an older agent passes none */
#define SHIM_ORDER_MAX	 (SPEC_PACKED_MAX + 65536)
#define SHIM_VERSION	 3
#define SHIM_VERSION_MIN 2
#define SHIM_BEGIN_MS	 60000
/* the most that the client of an attached job can leave: windows and pipes of both outputs */
#define SHIM_SPILL_MAX (2 * FRAME_WINDOW + (2u << 20))
/* Behind the job's name: the cgroup of what saves and restores it when it moves. */
#define MOVE_GROUP ".move"
#define SHIM_MOVED "--moved" /* argument: the shim is already in the cgroup of the shims */
/* the most groups in an order; the shim looks up a user with more groups itself */
#define SHIM_GROUPS_MAX 4096
/* Second argument of a spare: order, stream and record come on the leash (spare.h). */
#define SHIM_SPARE	"--spare"
#define SHIM_SPARE_NAME "iocom-spare"
#define SPARE_FDS	3

/* What the shim needs to renew the lease with home (renew.h). */
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
	char pam[256];	    /* directory of PAM's service file; "" = without PAM */
	uint64_t spool_max; /* most bytes that are kept of a detached job's output */
	uint64_t spill_max; /* most bytes that are kept of what an attached job's client left */
	uint64_t lease_until_ms; /* 0: no lease */
	uint32_t begin_ms;	 /* limit for PAM, and again for entering the directory and exec */
	bool keyed;		 /* it has the secret of the attempt */
	uint8_t secret[SECRET_BYTES];
	bool secure; /* the client's stream is sealed with these keys */
	struct records records;
	struct account account; /* `name` NULL: the shim must look it up */
	struct order_renew renew;
	bool by_user; /* the job's cgroup is below its user's, which has these limits */
	struct cgroup_limits user_limits;
	/* The job runs already, on another node, whose shim is the stream's other end. */
	bool arrives;
	char criu[PATH_MAX];
	bool guest;		   /* its user's cgroup is among those of guests */
	char data_dir[1024];	   /* where jobs have their data that goes along; "": nowhere */
	uint64_t data_cache_bytes; /* most of it that is kept for one user */
	struct spec spec;
	bool replay; /* send an ended job's output: only `jobs_dir` and the members below count */
	struct attach_ask ask;
	char slot[1088]; /* lock file to hold meanwhile (process_slot.h); "": none */
	uid_t reader;
};

/* Reads and checks the order on FD.  Returns 0 or negative errno with the reason in ERR. */
int order_read(int fd, struct order *order, struct iocom_err *err);
void order_deinit(struct order *order);
/* Writes the command as one printable line, valid UTF-8. */
void order_command(const struct order *order, char *out, size_t size);

#endif
