/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job's first process: it is made in its cgroup, loses every privilege, and then calls exec.
 * The order of the steps (child.c) is what makes this secure.
 */
#ifndef IOCOM_SHIM_CHILD_H
#define IOCOM_SHIM_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "user/cgroup.h"
#include "agent/shim/gang.h"
#include "agent/shim/order.h"
#include "agent/shim/pam.h"

struct child {
	pid_t pid;
	int pidfd;
	/* Our ends: we write to [0] and read from [1] and [2]; non-blocking; -1 means none. With
	 * a terminal [0] and [1] are its master. */
	int stdio[3];
	/*
	 * Of a migratable job: what its first process, iocom-init, says of the command's end
	 * (agent/init/init.h); -1: the first process is the command.
	 */
	int status;
	uint64_t begin_us; /* CPU time of the steps before exec, which are not the job's own */
};

/* The user that the job runs as, looked up before the fork. */
struct identity {
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int ngroups;
	char *name;
	struct pam_settings session;
	int32_t keyring; /* session keyring that PAM made for the job, if the user owns it; 0 */
};

/*
 * Returns 0, or -EACCES for uid 0 where root is not allowed, for a uid this machine does not
 * know, and for a gid the user is not a member of. The sentence names NODE. Takes the account of
 * ORDER.
 */
int identity_lookup(struct identity *identity, struct order *order, struct iocom_err *err);
void identity_deinit(struct identity *identity);

/*
 * Starts the process, or LAUNCHER for it (not NULL, and with a program), and waits until exec
 * succeeds. Returns 0; 126 or 127 if exec failed, as a shell reports it; negative errno if anything
 * else failed (the directory is missing, for instance) or exec took longer than ORDER's begin_ms.
 * ERR has the sentence. After a failure nothing runs, except a killed process that the kernel still
 * holds.
 */
int child_start(struct child *child, const struct order *order, const struct identity *identity,
		const struct cgroup *group, const struct gang_launcher *launcher,
		struct iocom_err *err);

#endif
