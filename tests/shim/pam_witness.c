/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A PAM module for the tests: it adds a line to the file of its first argument for each of PAM's
 * calls, and lets everybody in. Nothing of iocom authenticates, so that call is an error.
 */
#include <fcntl.h>
#include <security/pam_modules.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int witness(int argc, const char **argv, const char *what)
{
	char line[64];
	int fd = argc > 0 ? open(argv[0], O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	ssize_t n = -1;

	snprintf(line, sizeof(line), "%s\n", what);
	if (fd >= 0) {
		n = write(fd, line, strlen(line));
		close(fd);
	}
	return n > 0 ? PAM_SUCCESS : PAM_SYSTEM_ERR;
}

int pam_sm_authenticate(pam_handle_t *handle, int flags, int argc, const char **argv)
{
	(void)handle, (void)flags;
	witness(argc, argv, "authenticate");
	return PAM_AUTH_ERR;
}

int pam_sm_setcred(pam_handle_t *handle, int flags, int argc, const char **argv)
{
	(void)handle;
	return witness(argc, argv,
		       flags & PAM_ESTABLISH_CRED ? "establish"
		       : flags & PAM_DELETE_CRED  ? "delete"
						  : "other credentials");
}

int pam_sm_acct_mgmt(pam_handle_t *handle, int flags, int argc, const char **argv)
{
	(void)handle, (void)flags;
	return witness(argc, argv, "account");
}

int pam_sm_open_session(pam_handle_t *handle, int flags, int argc, const char **argv)
{
	(void)handle, (void)flags;
	return witness(argc, argv, "open");
}

int pam_sm_close_session(pam_handle_t *handle, int flags, int argc, const char **argv)
{
	(void)handle, (void)flags;
	return witness(argc, argv, "close");
}
