/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Session keyrings (keyrings(7)). A process inherits its parent's, and whoever possesses a
 * keyring may use the keys in it and add others. So a job must not keep the agent's: it would
 * share keys with the agent and with the jobs of all other users.
 */
#ifndef IOCOM_KEYRING_H
#define IOCOM_KEYRING_H

#include <stdint.h>

#include "iocom/err.h"

#define KEYRING_E_NONE	 1 /* no process can use keys here, so nothing is shared */
#define KEYRING_E_SHARED 2 /* the session keyring is the one that the user's processes share */

/*
 * Says whether this process, and those it starts, can use keys. Returns 0; KEYRING_E_NONE: the
 * kernel has no keys, or a filter of system calls refuses all of them; -EPERM: keyctl is refused,
 * add_key or request_key is not, so that no process can leave its parent's keyring. ERR (may be
 * NULL) gets a sentence in the last two cases.
 */
int keyring_check(struct iocom_err *err);
/*
 * Makes a new session keyring for this process, owned by its real uid. Returns its serial number
 * or negative errno.
 */
int32_t keyring_join_new(void);
/* Returns the serial number of the session keyring, or negative errno. Call it only in a process
 * that has one: in others the kernel installs the one that the user's processes share. */
int32_t keyring_session(void);
/*
 * Gives this process, whose ids are the user's already, a session keyring of its own with a link
 * to the user's keyring. The user owns it and pays for it. If KEPT (0: none) is the present one
 * and the user owns it, it stays, and gets the link.
 *
 * Returns 0; KEYRING_E_SHARED: the user's quota is full, and the process has the session keyring
 * that all of the user's processes share; KEYRING_E_NONE; or negative errno, with which the
 * process must not go on, because its keyring is somebody else's: -EDQUOT: the quota is full, and
 * the user has no shared one; -EKEYREJECTED: likewise, but another user made a keyring with the
 * shared one's name.
 */
int keyring_take_own(int32_t kept);

#endif
