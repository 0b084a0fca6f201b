/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The MUNGE credential of a job start, which proves who asks (functions in spec.h).
 *
 * Only the host that decodes a credential remembers it as used. So a credential is bound to one
 * target, one job, one nonce and the SHA-256 of all bytes of the spec: captured and sent
 * elsewhere, or changed, it is worthless. Only root may decode it. This is not in spec.c, so
 * that the shim does not link MUNGE.
 */
#include "user/spec.h"

#include <errno.h>
#include <munge.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/attach.h"
#include "user/pack.h"
#include "user/user_ask.h"

void spec_hash(const void *data, size_t length, uint8_t hash[SPEC_HASH_BYTES])
{
	crypto_hash_sha256(hash, data, length);
}

static int no_munged(const char *munge_socket, struct iocom_err *err)
{
	return iocom_err_set(err, -EHOSTDOWN,
			     "munged does not answer%s%s, and without it you cannot prove "
			     "who you are to other machines; start it (systemctl start "
			     "munge)",
			     munge_socket ? " at " : "", munge_socket ? munge_socket : "");
}

static munge_ctx_t context_new(const char *munge_socket, struct iocom_err *err)
{
	munge_ctx_t ctx = munge_ctx_create();

	if (!ctx) {
		iocom_err_set(err, -ENOMEM, "out of memory for a MUNGE credential");
		return NULL;
	}
	if (munge_socket && munge_ctx_set(ctx, MUNGE_OPT_SOCKET, munge_socket) != EMUNGE_SUCCESS) {
		iocom_err_set(err, -EINVAL, "MUNGE rejects the socket name %s", munge_socket);
		munge_ctx_destroy(ctx);
		return NULL;
	}
	return ctx;
}

/* What a credential is bound to: one purpose, job, node and nonce, and all bytes. */
struct binding {
	const char *type, *job, *node, *nonce;
	const void *packed;
	size_t length;
};

static void pack_binding(msgpack_sbuffer *buffer, const struct binding *to)
{
	uint8_t hash[SPEC_HASH_BYTES];
	msgpack_packer pk;

	spec_hash(to->packed, to->length, hash);
	msgpack_packer_init(&pk, buffer, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 5);
	pack_str(&pk, "type", to->type);
	pack_str(&pk, "job", to->job);
	pack_str(&pk, "node", to->node);
	pack_str(&pk, "nonce", to->nonce);
	pack_bin(&pk, "hash", hash, sizeof(hash));
}

/*
 * libmunge writes to a socket whose other end may just have closed. Block SIGPIPE, which would
 * end the calling program.
 */
static munge_err_t seal_encode_payload(char **credential, munge_ctx_t ctx,
				       const msgpack_sbuffer *buffer)
{
	const struct timespec now = {0};
	sigset_t pipe, before, pending;
	munge_err_t rc;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	rc = munge_encode(credential, ctx, buffer->data, (int)buffer->size);
	if (!sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int seal_to(const struct binding *to, const char *munge_socket, char **credential,
		   struct iocom_err *err)
{
	munge_ctx_t ctx = context_new(munge_socket, err);
	msgpack_sbuffer buffer;
	munge_err_t rc;

	if (!ctx)
		return -ENOMEM;
	msgpack_sbuffer_init(&buffer);
	pack_binding(&buffer, to);
	rc = munge_ctx_set(ctx, MUNGE_OPT_TTL, SPEC_CREDENTIAL_TTL_S);
	if (rc == EMUNGE_SUCCESS)
		rc = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
	if (rc == EMUNGE_SUCCESS)
		rc = seal_encode_payload(credential, ctx, &buffer);
	msgpack_sbuffer_destroy(&buffer);
	if (rc == EMUNGE_SOCKET)
		no_munged(munge_socket, err);
	else if (rc != EMUNGE_SUCCESS)
		iocom_err_set(err, -EACCES, "cannot make a MUNGE credential: %s",
			      munge_strerror(rc));
	munge_ctx_destroy(ctx);
	if (rc == EMUNGE_SUCCESS)
		return 0;
	return rc == EMUNGE_SOCKET ? -EHOSTDOWN : -EACCES;
}

static struct binding start_of(const struct spec *spec, const void *packed, size_t length)
{
	return (struct binding){"start", spec->job, spec->node, spec->nonce, packed, length};
}

static struct binding attach_of(const struct attach_ask *ask, const void *packed, size_t length)
{
	return (struct binding){"attach", ask->job, ask->node, ask->nonce, packed, length};
}

/* It names no job: the request in ASK may. */
static struct binding ask_of(const struct user_ask *ask, const void *packed, size_t length)
{
	return (struct binding){"ask", "", ask->node, ask->nonce, packed, length};
}

int spec_seal(const struct spec *spec, const void *packed, size_t length, const char *munge_socket,
	      char **credential, struct iocom_err *err)
{
	const struct binding to = start_of(spec, packed, length);

	return seal_to(&to, munge_socket, credential, err);
}

int attach_seal(const struct attach_ask *ask, const void *packed, size_t length,
		const char *munge_socket, char **credential, struct iocom_err *err)
{
	const struct binding to = attach_of(ask, packed, length);

	return seal_to(&to, munge_socket, credential, err);
}

int user_ask_seal(const struct user_ask *ask, const void *packed, size_t length,
		  const char *munge_socket, char **credential, struct iocom_err *err)
{
	const struct binding to = ask_of(ask, packed, length);

	return seal_to(&to, munge_socket, credential, err);
}

/* Different clocks are the usual hidden cause, so the sentence gives their difference. */
static int seal_refused(munge_ctx_t ctx, munge_err_t rc, const char *munge_socket,
			struct iocom_err *err)
{
	time_t encoded = 0, decoded = 0;
	long long apart;

	munge_ctx_get(ctx, MUNGE_OPT_ENCODE_TIME, &encoded);
	munge_ctx_get(ctx, MUNGE_OPT_DECODE_TIME, &decoded);
	apart = (long long)decoded - (long long)encoded;
	switch (rc) {
	case EMUNGE_SOCKET:
		return no_munged(munge_socket, err);
	case EMUNGE_CRED_EXPIRED:
		return iocom_err_set(
			err, -EACCES,
			"the credential is %lld s old by this node's clock and lives "
			"%d s: the submitting node's clock is about %lld s behind this "
			"one's (or the message was held that long); synchronise the clocks",
			apart, SPEC_CREDENTIAL_TTL_S, apart);
	case EMUNGE_CRED_REWOUND:
		return iocom_err_set(err, -EACCES,
				     "the credential was made %lld s in the future of this node's "
				     "clock: the submitting node's clock is %lld s ahead of this "
				     "one's; synchronise the clocks",
				     -apart, -apart);
	case EMUNGE_CRED_REPLAYED:
		return iocom_err_set(err, -EACCES,
				     "the credential was used before (a replay): refused");
	case EMUNGE_CRED_INVALID:
		return iocom_err_set(
			err, -EACCES,
			"the credential is not from this cluster: the MUNGE keys of the "
			"two nodes differ, or it was changed on the way");
	case EMUNGE_CRED_UNAUTHORIZED:
		return iocom_err_set(
			err, -EACCES,
			"only root may open a job's credential; run the agent as root");
	default:
		return iocom_err_set(err, -EACCES, "MUNGE refuses the credential: %s",
				     munge_strerror(rc));
	}
}

static int binding_wrong(struct iocom_err *err, const char *what)
{
	return iocom_err_set(err, -EACCES, "the credential was made for another %s: refused", what);
}

/* Checks that CREDENTIAL binds exactly TO. */
static int binding_check(const struct binding *to, const char *node,
			 const struct credential *credential, struct iocom_err *err)
{
	uint8_t hash[SPEC_HASH_BYTES];
	char text[SPEC_JOB_MAX];
	msgpack_unpacked message;
	const msgpack_object *bound;
	int rc = 0;

	if (unpack_map(&message, credential->bound, credential->length))
		return iocom_err_set(err, -EACCES,
				     "the credential says nothing about a job: refused");
	if (unpack_str(&message.data, "type", text, sizeof(text)) || strcmp(text, to->type))
		rc = binding_wrong(err, "purpose");
	else if (unpack_str(&message.data, "node", text, sizeof(text)) || strcmp(text, node) ||
		 strcmp(to->node, node))
		rc = binding_wrong(err, "node");
	else if (unpack_str(&message.data, "job", text, sizeof(text)) || strcmp(text, to->job))
		rc = binding_wrong(err, "job");
	else if (unpack_str(&message.data, "nonce", text, sizeof(text)) || strcmp(text, to->nonce))
		rc = binding_wrong(err, "nonce");
	spec_hash(to->packed, to->length, hash);
	bound = unpack_get(&message.data, "hash");
	if (!rc &&
	    (!bound || bound->type != MSGPACK_OBJECT_BIN || bound->via.bin.size != sizeof(hash) ||
	     memcmp(bound->via.bin.ptr, hash, sizeof(hash)) != 0))
		rc = binding_wrong(err, "command (its hash differs)");
	msgpack_unpacked_destroy(&message);
	return rc;
}

int credential_open(struct credential *credential, const char *text, const char *munge_socket,
		    struct iocom_err *err)
{
	munge_ctx_t ctx = context_new(munge_socket, err);
	int length = 0, rc = 0;
	munge_err_t e;

	*credential = (struct credential){.uid = (uid_t)-1, .gid = (gid_t)-1};
	if (!ctx)
		return -ENOMEM;
	e = munge_decode(text, ctx, &credential->bound, &length, &credential->uid,
			 &credential->gid);
	if (e != EMUNGE_SUCCESS) {
		rc = seal_refused(ctx, e, munge_socket, err);
		credential_free(credential);
	} else {
		credential->length = (size_t)length;
	}
	munge_ctx_destroy(ctx);
	return rc;
}

void credential_free(struct credential *credential)
{
	free(credential->bound);
	*credential = (struct credential){.uid = (uid_t)-1, .gid = (gid_t)-1};
}

int spec_bound(const struct spec *spec, const void *packed, size_t length,
	       const struct credential *credential, const char *node, struct iocom_err *err)
{
	const struct binding to = start_of(spec, packed, length);

	return binding_check(&to, node, credential, err);
}

int attach_bound(const struct attach_ask *ask, const void *packed, size_t length,
		 const struct credential *credential, const char *node, struct iocom_err *err)
{
	const struct binding to = attach_of(ask, packed, length);

	return binding_check(&to, node, credential, err);
}

int user_ask_bound(const struct user_ask *ask, const void *packed, size_t length,
		   const struct credential *credential, const char *node, struct iocom_err *err)
{
	const struct binding to = ask_of(ask, packed, length);

	return binding_check(&to, node, credential, err);
}
