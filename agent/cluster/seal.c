/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Seals between agents, by MUNGE; see seal.h. */
#include "seal.h"

#include <errno.h>
#include <munge.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

struct seal {
	munge_ctx_t encode, decode;
	long long ahead_s;
	bool down;
};

/* One place turns munge's errors into ours. */
static int foreign(munge_err_t e, munge_ctx_t ctx, struct iocom_err *err)
{
	const char *why = munge_ctx_strerror(ctx);

	if (!why)
		why = munge_strerror(e);
	switch (e) {
	case EMUNGE_SUCCESS:
		return 0;
	case EMUNGE_NO_MEMORY:
		return iocom_err_set(err, -ENOMEM, "out of memory");
	case EMUNGE_BAD_LENGTH:
		return iocom_err_set(err, -EMSGSIZE, "message too long for MUNGE");
	case EMUNGE_SNAFU:
	case EMUNGE_SOCKET:
	case EMUNGE_TIMEOUT:
	case EMUNGE_OVERFLOW:
		return iocom_err_set(err, -EHOSTDOWN,
				     "no answer from munged (%s); start it (systemctl start munge) "
				     "or name its socket with --munge-socket",
				     why);
	case EMUNGE_BAD_CRED:
	case EMUNGE_BAD_ARG:
	case EMUNGE_BAD_VERSION:
		return iocom_err_set(err, SEAL_E_GARBAGE, "not a MUNGE credential");
	case EMUNGE_CRED_EXPIRED:
	case EMUNGE_CRED_REWOUND:
		return iocom_err_set(err, SEAL_E_SKEW, "%s", why);
	case EMUNGE_CRED_REPLAYED:
		return iocom_err_set(err, SEAL_E_REPLAYED, "credential replayed");
	default:
		return iocom_err_set(err, SEAL_E_FORGED, "%s", why);
	}
}

int seal_message(struct seal *seal, const void *data, size_t length, char **credential,
		 struct iocom_err *err)
{
	int rc;

	if (length > SEAL_MESSAGE_MAX)
		return iocom_err_set(err, -EMSGSIZE, "message of %zu bytes is too long", length);
	*credential = NULL;
	rc = foreign(munge_encode(credential, seal->encode, data, (int)length), seal->encode, err);
	seal->down = rc == -EHOSTDOWN;
	return rc;
}

bool seal_down(const struct seal *seal)
{
	return seal->down;
}

int seal_new(struct seal **out, const char *socket, struct iocom_err *err)
{
	struct seal *seal = calloc(1, sizeof(*seal));
	char *probe = NULL;
	int rc;

	if (!seal)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	seal->encode = munge_ctx_create();
	seal->decode = munge_ctx_create();
	if (!seal->encode || !seal->decode) {
		seal_free(seal);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	if (*socket) {
		munge_ctx_set(seal->encode, MUNGE_OPT_SOCKET, socket);
		munge_ctx_set(seal->decode, MUNGE_OPT_SOCKET, socket);
	}
	munge_ctx_set(seal->encode, MUNGE_OPT_TTL, SEAL_TTL_S);
	munge_ctx_set(seal->encode, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
	rc = seal_message(seal, "", 0, &probe, err);
	free(probe);
	if (rc) {
		seal_free(seal);
		return rc;
	}
	*out = seal;
	return 0;
}

void seal_free(struct seal *seal)
{
	if (!seal)
		return;
	if (seal->encode)
		munge_ctx_destroy(seal->encode);
	if (seal->decode)
		munge_ctx_destroy(seal->decode);
	free(seal);
}

long long seal_ahead_s(const struct seal *seal)
{
	return seal->ahead_s;
}

/* Says by how much the clocks differ. */
static int skew(struct seal *seal, struct iocom_err *err)
{
	time_t made = 0, opened = 0;

	munge_ctx_get(seal->decode, MUNGE_OPT_ENCODE_TIME, &made);
	munge_ctx_get(seal->decode, MUNGE_OPT_DECODE_TIME, &opened);
	seal->ahead_s = (long long)made - opened;
	return iocom_err_set(err, SEAL_E_SKEW,
			     "made %lld s %s this machine's time (at most %d s are accepted): it "
			     "was delayed, or the clocks differ; synchronise them",
			     (long long)(made > opened ? made - opened : opened - made),
			     made > opened ? "after" : "before", SEAL_TTL_S);
}

int seal_open_message(struct seal *seal, const void *credential, size_t length, int replayed_ok,
		      void **data, size_t *data_length, struct iocom_err *err)
{
	char *text = strndup(credential, length);
	uid_t uid = (uid_t)-1;
	int n = 0, rc;
	munge_err_t e;

	if (!text)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	*data = NULL;
	e = munge_decode(text, seal->decode, data, &n, &uid, NULL);
	free(text);
	if (e == EMUNGE_CRED_REPLAYED && replayed_ok)
		e = EMUNGE_SUCCESS;
	if (e == EMUNGE_CRED_EXPIRED || e == EMUNGE_CRED_REWOUND)
		rc = skew(seal, err);
	else
		rc = foreign(e, seal->decode, err);
	seal->down = rc == -EHOSTDOWN;
	if ((!rc || rc == SEAL_E_SKEW) && uid != 0)
		rc = iocom_err_set(err, SEAL_E_FORGED, "made by uid %u, not by root",
				   (unsigned)uid);
	if (rc == SEAL_E_SKEW && *data) {
		*data_length = (size_t)n;
		return rc;
	}
	if (rc || !*data) {
		free(*data);
		*data = NULL;
		return rc ? rc : iocom_err_set(err, SEAL_E_GARBAGE, "empty credential");
	}
	*data_length = (size_t)n;
	return 0;
}
