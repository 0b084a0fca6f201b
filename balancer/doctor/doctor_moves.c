/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whether running jobs can move to and from this node: by the criu that the agent takes, the rights
 * of the agent, and what the kernel has.
 *
 *   no criu, one that is too old or not trusted, its check fails   no job moves
 *   no CAP_SYS_RESOURCE                                            only root's jobs come here
 */
#include "balancer/doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "user/trust.h"

#define MOVES_CHECK "moves"
#define MAJOR_LEAST 4 /* as agent/shim/move/criu.h */

/* Where the agent looks without a setting; NULL: there is none. */
static const char *moves_usual(void)
{
	static const char *const places[] = {"/usr/sbin/criu", "/usr/local/sbin/criu"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!access(places[i], X_OK))
			return places[i];
	return NULL;
}

/* The effective capabilities of the agent, or of us if none answers; 0: not known. */
static uint64_t moves_capabilities(const struct doctor *d)
{
	char path[64] = "/proc/self/status", line[256];
	uint64_t set = 0;
	FILE *file;

	if (d->agent_pid)
		snprintf(path, sizeof(path), "/proc/%d/status", d->agent_pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		(void)sscanf(line, "CapEff: %" SCNx64, &set);
	if (file)
		fclose(file);
	return set;
}

/* Adds the line, once all that is needed for any job is there. */
static void moves_say(struct doctor *d, const char *program, unsigned major, unsigned minor)
{
	const char *const dirty[] = {"check", "--feature", "mem_dirty_track", NULL};
	bool users = moves_capabilities(d) & (1ULL << CAP_SYS_RESOURCE), tracks;
	const char *advice = NULL;
	char said[512];
	json_t *check;

	tracks = doctor_run(program, dirty, said, sizeof(said)) == 0;
	if (!users)
		advice = "start the agent with CAP_SYS_RESOURCE";
	check = doctor_add(d, MOVES_CHECK, users ? DOCTOR_OK : DOCTOR_DEGRADED, advice,
			   "criu %u.%u moves running jobs%s; the kernel %s", major, minor,
			   users ? ""
				 : " away, but only root's come here, since the agent lacks "
				   "CAP_SYS_RESOURCE",
			   tracks ? "tracks what they write"
				  : "does not track what they write, so they stand still for as "
				    "long as all of their memory takes");
	json_object_set_new(check, "users", json_boolean(users));
	json_object_set_new(check, "dirty_tracking", json_boolean(tracks));
}

static void moves_try(struct doctor *d, const char *program)
{
	const char *const version[] = {"--version", NULL}, *const check[] = {"check", NULL};
	unsigned major = 0, minor = 0;
	char said[2048];

	if (doctor_run(program, version, said, sizeof(said)) ||
	    sscanf(said, "Version: %u.%u", &major, &minor) != 2) {
		doctor_add(d, MOVES_CHECK, DOCTOR_DEGRADED, "reinstall criu, or correct `criu`",
			   "running jobs cannot move: %s does not say its version", program);
		return;
	}
	if (major < MAJOR_LEAST) {
		doctor_add(d, MOVES_CHECK, DOCTOR_DEGRADED,
			   "install a newer one and name it by `criu`",
			   "running jobs cannot move: criu %u.%u is too old, %u.0 is the oldest "
			   "that works",
			   major, minor, MAJOR_LEAST);
		return;
	}
	if (doctor_run(program, check, said, sizeof(said))) {
		said[strcspn(said, "\n")] = 0;
		doctor_add(d, MOVES_CHECK, DOCTOR_DEGRADED, "ask `criu check` as root",
			   "running jobs cannot move: this kernel lacks what criu needs: %.300s",
			   said);
		return;
	}
	moves_say(d, program, major, minor);
}

void doctor_moves(struct doctor *d)
{
	const char *program = *d->set.criu ? d->set.criu : moves_usual();
	struct iocom_err err = {0};
	int rc;

	if (!program) {
		doctor_add(d, MOVES_CHECK, DOCTOR_SKIPPED,
			   "install criu 4.0 or newer, or name one by `criu`",
			   "running jobs do not move: there is no criu in /usr/sbin or "
			   "/usr/local/sbin");
		return;
	}
	if (!d->root) {
		doctor_add(d, MOVES_CHECK, DOCTOR_SKIPPED, NULL, "root can try %s", program);
		return;
	}
	rc = trust_path(program, 0, &err);
	if (!rc && access(program, X_OK))
		rc = iocom_err_set(&err, -errno, "%s: %s", program, strerror(errno));
	if (rc)
		doctor_add(d, MOVES_CHECK, DOCTOR_DEGRADED, "correct `criu`, or install it",
			   "running jobs cannot move: %s", err.text);
	else
		moves_try(d, program);
}
