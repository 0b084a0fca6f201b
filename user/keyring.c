/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See keyring.h. The C library has no functions for these system calls.
 *
 * Anybody may make a keyring with the name of another user's shared session keyring, and the only
 * way to join a keyring is by its name. So what we joined counts only if it has the serial number
 * that the kernel itself gives for the user's.
 */
#include "user/keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTION_MAX 256
#define NO_OPERATION	(-1) /* of keyctl: it fails with EOPNOTSUPP */

/* Returns negative errno if the system call failed. */
static int keyring_call(int operation, unsigned long a, unsigned long b, unsigned long c)
{
	long rc = syscall(SYS_keyctl, operation, a, b, c, 0ul);

	return rc < 0 ? -errno : (int)rc;
}

/* Says whether RC of a system call that cannot work is the answer of a filter. */
static bool keyring_refused(long rc)
{
	return rc < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES);
}

int keyring_check(struct iocom_err *err)
{
	if (!keyring_refused(syscall(SYS_keyctl, NO_OPERATION, 0ul, 0ul, 0ul, 0ul)))
		return 0;
	if (keyring_refused(syscall(SYS_add_key, NULL, NULL, NULL, 0ul, 0)) &&
	    keyring_refused(syscall(SYS_request_key, NULL, NULL, NULL, 0)))
		return iocom_err_set(err, KEYRING_E_NONE,
				     "the kernel, or a filter of system calls, refuses keys "
				     "(keyctl): jobs have none");
	return iocom_err_set(err, -EPERM,
			     "a filter of system calls refuses keyctl, but not add_key and "
			     "request_key: jobs do not start, because they would share the agent's "
			     "session keyring; permit keyctl, or refuse all three");
}

int32_t keyring_join_new(void)
{
	return keyring_call(KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0);
}

int32_t keyring_session(void)
{
	return keyring_call(KEYCTL_GET_KEYRING_ID, (unsigned long)KEY_SPEC_SESSION_KEYRING, 0, 0);
}

/* Says whether this process' user owns the keyring SERIAL. */
static bool keyring_is_ours(int32_t serial)
{
	char text[DESCRIPTION_MAX] = "";
	unsigned owner;
	int rc = keyring_call(KEYCTL_DESCRIBE, (unsigned long)serial, (unsigned long)text,
			      sizeof(text) - 1);

	return rc > 0 && sscanf(text, "keyring;%u;", &owner) == 1 && owner == getuid();
}

static int keyring_join_shared(int32_t shared)
{
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "_uid_ses.%u", getuid());
	rc = keyring_call(KEYCTL_JOIN_SESSION_KEYRING, (unsigned long)name, 0, 0);
	if (rc < 0)
		return rc;
	return keyring_session() == shared && keyring_is_ours(shared) ? KEYRING_E_SHARED
								      : -EKEYREJECTED;
}

int keyring_take_own(int32_t kept)
{
	int32_t shared;
	int rc = keyring_check(NULL);

	if (rc)
		return rc;
	/*
	 * This makes the user's two shared keyrings, if they are missing, before the job's own
	 * one takes the last place of the quota.
	 */
	shared = keyring_call(KEYCTL_GET_KEYRING_ID, (unsigned long)KEY_SPEC_USER_SESSION_KEYRING,
			      0, 0);
	if (shared == -ENOKEY)
		return -EDQUOT; /* this is how the kernel says that it could not make them */
	if (shared <= 0)
		return shared ? shared : -EPERM;
	if (kept > 0 && keyring_session() == kept && keyring_is_ours(kept))
		rc = kept;
	else
		rc = keyring_join_new();
	if (rc > 0)
		rc = keyring_call(KEYCTL_LINK, (unsigned long)KEY_SPEC_USER_KEYRING,
				  (unsigned long)KEY_SPEC_SESSION_KEYRING, 0);
	else if (!rc)
		rc = -EPERM; /* a filter that only says that it was done */
	return rc == -EDQUOT ? keyring_join_shared(shared) : rc;
}
