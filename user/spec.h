/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The spec: everything a job needs to be exactly the process the user would
 * have run at home.  The CLI fills and packs it; the credential is bound to
 * the SHA-256 of the packed bytes; the shim unpacks and obeys it.
 */
#ifndef IOCOM_SPEC_H
#define IOCOM_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "user/terminal.h"

#define SPEC_VERSION	      2
#define SPEC_JOB_MAX	      96 /* "HOME-BOOT-SEQUENCE": [A-Za-z0-9._-]+, never starts with '.' */
#define SPEC_NONCE_MAX	      40 /* hex digits of 16 random bytes, with NUL */
#define SPEC_ARGS_MAX	      (1u << 16)
#define SPEC_PACKED_MAX	      (3u << 20)
#define SPEC_CREDENTIAL_TTL_S 60

struct spec_limit {
	int resource; /* RLIMIT_* */
	rlim_t soft;  /* RLIM_INFINITY passes as such */
};

struct spec {
	char job[SPEC_JOB_MAX];
	char node[64]; /* the target's name, part of what the credential binds */
	char nonce[SPEC_NONCE_MAX];
	char class_name[64];
	char *executable; /* absolute path resolved at home, or as typed when it has no '/' */
	char *cwd;	  /* absolute */
	char **argv;	  /* NULL-terminated */
	char **env;	  /* NULL-terminated, already filtered by --env */
	mode_t umask;
	struct spec_limit limits[RLIM_NLIMITS];
	size_t nlimits;
	uint32_t closed;      /* bit n: the caller had descriptor n (0..2) closed: /dev/null at the
				 target */
	uint32_t grace_ms;    /* how long the job may go on when the client is gone */
	bool worker;	      /* of iocom batch, whose output is the batch's alone */
	bool detach;	      /* it goes on without; its output is kept on the target's disk */
	uint64_t spool_bytes; /* of that, at most; 0: as much as the target keeps of a job */
	struct terminal tty;
};

void spec_free(struct spec *spec); /* frees what it points to, not SPEC */
/* Whether JOB is a job's name: a file name of the alphabet above, never a path. */
bool spec_job_valid(const char *job);
/* Packs into a malloc'ed buffer.  0, -E2BIG, -ENOMEM. */
int spec_pack(const struct spec *spec, void **data, size_t *length, struct iocom_err *err);
/* 0, or -EBADMSG / -EPROTO (version) / -E2BIG / -ENOMEM with the field's name. */
int spec_unpack(struct spec *spec, const void *data, size_t length, struct iocom_err *err);

/* The rest is in seal.c: it needs MUNGE, which the shim does not link. */
#define SPEC_HASH_BYTES 32
void spec_hash(const void *data, size_t length,
	       uint8_t hash[SPEC_HASH_BYTES]); /* SHA-256 (mbedTLS) */

/*
 * FRAME_START's payload: map { "cred": str or nil (local socket), "spec": bin }.
 * The MUNGE payload: map { "type": "start", "job", "node", "nonce", "hash": bin }.
 */
int spec_seal(const struct spec *spec, const void *packed, size_t length, const char *munge_socket,
	      char **credential, struct iocom_err *err); /* credential: free() */
/* What munged says of a credential: who made it, and what it binds. */
struct credential {
	uid_t uid;
	gid_t gid;
	void *bound;
	size_t length;
};

/*
 * Asks munged, once for each credential.  0; -EACCES with the sentence (skew with numbers,
 * replay, expired, not of this cluster); -EHOSTDOWN no munged; -ENOMEM.
 */
int credential_open(struct credential *credential, const char *text, const char *munge_socket,
		    struct iocom_err *err);
void credential_free(struct credential *credential);
/*
 * Whether it was made for NODE, is of type "start", and binds exactly the bytes PACKED.
 * 0; -EACCES with the sentence (other target, hash).
 */
int spec_bound(const struct spec *spec, const void *packed, size_t length,
	       const struct credential *credential, const char *node, struct iocom_err *err);

#endif
