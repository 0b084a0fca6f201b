/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a service file of PAM says, as far as iocom must know it before it calls PAM. */
#ifndef IOCOM_PAM_SERVICE_H
#define IOCOM_PAM_SERVICE_H

#define PAM_SERVICE_NAME "iocom"
#define PAM_SERVICE_DIRECTORY                                                                      \
	"/etc/pam.d" /* where libpam looks, and where `make install` writes                        \
		      */

/*
 * Returns 1 if the service file DIRECTORY/NAME, or a file that it takes in with @include, has an
 * auth line; 0 if none has; negative errno if DIRECTORY/NAME cannot be read. pam_setcred asks the
 * modules of these lines, and without any it fails, whatever the other lines say.
 */
int pam_service_has_auth(const char *directory, const char *name);

#endif
