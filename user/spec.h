/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The spec: everything that a job needs to be exactly the process that the user would have run
 * on the home node. The CLI fills and packs it; the credential is bound to the SHA-256 of the
 * packed bytes; the shim unpacks and obeys it.
 */
#ifndef IOCOM_SPEC_H
#define IOCOM_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "user/data_stage.h"
#include "user/terminal.h"

#define SPEC_VERSION	      2
#define SPEC_JOB_MAX	      96 /* "HOME-BOOT-SEQUENCE": [A-Za-z0-9._-]+, never starts with '.' */
#define SPEC_NONCE_MAX	      40 /* hex digits of 16 random bytes, with NUL */
#define SPEC_ARGS_MAX	      (1u << 16)
#define SPEC_PACKED_MAX	      (3u << 20)
#define SPEC_VALUES_MAX	      (2 * SPEC_ARGS_MAX + 512) /* arguments, variables, and the fields */
#define SPEC_CREDENTIAL_TTL_S 60
/* Directory of a spec whose data goes along: the node makes one and names it. */
#define SPEC_CWD_DATA "/nonexistent/data-goes-along"
/* Executable in the packed spec of a gang's part: a node that knows no gangs finds no such program,
 * rather than run the command once. */
#define SPEC_EXECUTABLE_GANG "/nonexistent/a-gang-needs-a-newer-iocom"
#define SPEC_GANG_MAX	     (256u << 10) /* GANG_PACKED_MAX */
/* Job and node of a spec that goes with its submission: home, which starts it, names them. */
#define SPEC_UNPLACED "unplaced"

struct spec_limit {
	int resource; /* RLIMIT_* */
	rlim_t soft;  /* RLIM_INFINITY is passed unchanged */
	rlim_t hard;  /* at least `soft`; RLIM_INFINITY also if an older client sent none */
};

struct spec {
	char job[SPEC_JOB_MAX];
	char node[64]; /* the target's name, which the credential binds */
	char nonce[SPEC_NONCE_MAX];
	char class_name[64];
	char *executable; /* absolute path resolved on the home node, or as typed if it has no '/'
			   */
	char *cwd;	  /* working directory, absolute */
	char **argv;	  /* NULL-terminated */
	char **env;	  /* NULL-terminated, already filtered by --env */
	mode_t umask;
	struct spec_limit limits[RLIM_NLIMITS];
	size_t nlimits;
	uint32_t closed; /* bit n: the caller had closed descriptor n (0..2), so it is /dev/null at
			    the target */
	uint32_t grace_ms;    /* how long the job may go on without its client */
	bool worker;	      /* a worker of iocom batch: only the batch gets its output */
	bool migratable;      /* it has a pid namespace of its own, so that it can move */
	bool detach;	      /* the job needs no client; its output is kept on the target's disk */
	uint64_t spool_bytes; /* most bytes of output kept; 0: the target's own limit */
	struct terminal tty;
	uint32_t data; /* DATA_FLAG_*: the job's data goes along (data_stage.h) */
	/* The job is a part of a gang: the packed plan (gang_plan.h), malloc'ed; NULL: it is not.
	 */
	void *gang;
	size_t gang_length;
};

void spec_free(struct spec *spec); /* frees what it points to, not SPEC */
/* Returns true if JOB is a valid name: letters as above, usable as a file name, never a path. */
bool spec_job_valid(const char *job);
/* Packs into a malloc'ed buffer. Returns 0, -E2BIG or -ENOMEM. */
int spec_pack(const struct spec *spec, void **data, size_t *length, struct iocom_err *err);
/* Returns 0, or -EBADMSG, -EPROTO (version), -E2BIG or -ENOMEM with the field's name. */
int spec_unpack(struct spec *spec, const void *data, size_t length, struct iocom_err *err);
/*
 * Reads only what a lease is found by: job, node and nonce. It allocates nothing, so it may be
 * asked for a stranger, before the rest is decoded. Returns 0, -EBADMSG or -E2BIG.
 */
int spec_peek(struct spec *spec, const void *data, size_t length, struct iocom_err *err);

/* The rest is in seal.c because it needs MUNGE, which the shim does not link. */
#define SPEC_HASH_BYTES 32
void spec_hash(const void *data, size_t length, uint8_t hash[SPEC_HASH_BYTES]); /* SHA-256 */

/*
 * FRAME_START's payload: map { "cred": str or nil (local socket), "spec": bin }.
 * The MUNGE payload: map { "type": "start", "job", "node", "nonce", "hash": bin }.
 */
int spec_seal(const struct spec *spec, const void *packed, size_t length, const char *munge_socket,
	      char **credential, struct iocom_err *err); /* credential: free() */
/* What munged says about a credential: who made it, and what it binds. */
struct credential {
	uid_t uid;
	gid_t gid;
	void *bound;
	size_t length;
};

/*
 * Asks munged, once per credential. Returns 0; -EACCES with the reason in ERR (skewed clocks with
 * their difference, replay, expired, not of this cluster); -EHOSTDOWN: munged does not answer;
 * -ENOMEM.
 */
int credential_open(struct credential *credential, const char *text, const char *munge_socket,
		    struct iocom_err *err);
void credential_free(struct credential *credential);
/*
 * Checks that the credential was made for NODE, has type "start", and binds exactly the bytes
 * PACKED. Returns 0, or -EACCES with the reason in ERR (other target, other hash).
 */
int spec_bound(const struct spec *spec, const void *packed, size_t length,
	       const struct credential *credential, const char *node, struct iocom_err *err);

#endif
