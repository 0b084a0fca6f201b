/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A stage for jobs: the test plays the agent (launch_shim) and the client (run_stream) around a
 * real shim. It needs no agent and no munged.
 */
#ifndef TEST_STAGE_H
#define TEST_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/guest/launch.h"
#include "balancer/run/run.h"

struct stage {
	char dir[64], jobs[96], run[96], out[96], err[96];
	char scope[64];
	char v2[256];
	char shim[4096];
	unsigned sequence;
	bool secure; /* the clients' streams have keys */
};

/* A job's properties; zero members mean: user nobody, directory "/", only PATH, /dev/null. */
struct want {
	const char *argv[8];
	char **env;
	const char *cwd;
	const char *in; /* file for standard input */
	uid_t uid;	/* 0: user nobody, unless `root` */
	gid_t gid;
	bool root, allow_root;
	mode_t umask;
	uint32_t grace_ms, closed;
	struct spec_limit limit;	 /* soft 0: no limit */
	const struct spec_limit *limits; /* more of them */
	size_t nlimits;
	struct terminal tty;
	uint32_t begin_ms;  /* limit for PAM, and again for exec; 0: the default */
	const char *pam;    /* directory of PAM's service file */
	uint64_t lease_ms;  /* length of the lease from now on; 0: no lease */
	bool lease_is_over; /* there is one, which ended when the machine started */
	struct launch_renew renew;
	bool detach, migratable;
	uint64_t spool_bytes;
	uint64_t spill_less; /* bytes that the client may leave less than SHIM_SPILL_MAX */
	struct launch_spare *spare;
	const struct account *account;
	const char *jobs; /* another jobs directory */
	bool flat;	  /* the cgroup is jobs/JOB, as an agent without groups of users has it */
	struct cgroup_limits user_limits; /* of the user's group */
	/* A job that comes from another stage has its name there, and this criu; NULL: none. */
	const char *name, *criu;
	void *gang; /* the packed plan of a gang's part; NULL: it is none */
	size_t gang_length;
};

struct job {
	char name[SPEC_JOB_MAX];
	int client; /* the client's end of the stream */
	bool secure;
	struct records records; /* the client's keys, if it is secure */
	pid_t shim;
	int leash;
	int rc; /* result of launch_shim */
	struct iocom_err err;
};

int stage_up(struct stage *stage);
void stage_down(struct stage *stage);
/* The same as cmocka group fixtures; *STATE is the stage. */
int stage_setup(void **state);
/* The same, but the clients' streams have keys. */
int stage_setup_secure(void **state);
int stage_teardown(void **state);
/* Returns the keys of JOB's client; NULL: its stream is in clear. */
static inline const struct records *stage_records(const struct job *job)
{
	return job->secure ? &job->records : NULL;
}
/* Makes keys for a stream: the shim's and the client's. */
void stage_keys(struct records *shim, struct records *client);
/* Makes a TCP connection on loopback: the client's end and the other one. */
void stage_pair(int fd[2]);
/* Starts a job over TCP on loopback. */
struct job stage_start(struct stage *stage, const struct want *want);
/* Starts a job and plays the client to the end; outputs are in stage->out and stage->err. */
int stage_run(struct stage *stage, const struct want *want, struct run_result *result);
/* Reads a small file whole into a static buffer. */
const char *stage_read(const char *path);
/* Waits for the next event, at most 10 s. Returns launch_read's result. */
int stage_event(int leash, struct launch_event *event);
/* Sends the job a signal through its shim. Returns 0 or negative errno. */
int stage_signal(const struct stage *stage, const char *job, int signal);
/* The same; the node's owner expels the job, if there is a WHY. */
int stage_expel(const struct stage *stage, const char *job, int signal, const char *why);
/* Waits for the shim. Returns its exit code, or -1. */
int stage_reap(struct job *job);
/* Returns true if the job's cgroup exists. */
bool stage_group_exists(const struct stage *stage, const char *job);
/* Counts processes with the two neighbouring words FIRST SECOND on their command line. */
int stage_count(const char *first, const char *second);

/* Returns the memory that one more process like PID costs, without the shared text of the
 * program. */
long stage_private_kb(pid_t pid);

/* For launch_recover: counts what it finds and keeps the last. */
struct stage_recovered {
	unsigned count;
	struct launch_found found;
};
int stage_take_found(void *recovered, const struct launch_found *found);

#endif
