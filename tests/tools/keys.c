/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * keys OPERATION ...: looks at the keyrings of its process, as keyctl(1) does.
 *
 *   ring R               prints the serial number of ring R: s (session), u (the user's) or us
 *                        (the session keyring that the user's processes share)
 *   list R               prints the serial numbers in ring R
 *   add R NAME VALUE     adds a key and prints its serial number
 *   drop R SERIAL        removes the key from the ring
 *   clear R              removes all keys from the ring
 *   find NAME            prints the value of the key that the kernel finds for this process
 *   read SERIAL          prints a key's value
 *   under NAME VALUE COMMAND...
 *                        runs it with a new session keyring that has this key
 *   refuse keyctl|all COMMAND...
 *                        runs it where the kernel refuses keyctl, or all calls for keys
 *
 * What fails prints "no: REASON".
 */
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/refuse_keys.h"

static int failed(void)
{
	printf("no: %s\n", strerror(errno));
	return 1;
}

static long ring(const char *name)
{
	if (!strcmp(name, "us"))
		return KEY_SPEC_USER_SESSION_KEYRING;
	return *name == 'u' ? KEY_SPEC_USER_KEYRING : KEY_SPEC_SESSION_KEYRING;
}

static int print_serial(long serial)
{
	if (serial < 0)
		return failed();
	printf("%ld\n", serial);
	return 0;
}

static int print_value(long serial)
{
	char value[128] = "";

	if (serial < 0 || syscall(SYS_keyctl, KEYCTL_READ, serial, value, sizeof(value) - 1, 0) < 0)
		return failed();
	printf("%s\n", value);
	return 0;
}

static int print_list(long which)
{
	int32_t keys[64];
	long n = syscall(SYS_keyctl, KEYCTL_READ, which, keys, sizeof(keys), 0);

	if (n < 0)
		return failed();
	for (size_t i = 0; i < (size_t)n / sizeof(*keys) && i < 64; i++)
		printf("%d\n", keys[i]);
	return 0;
}

static int run_under(char **argv)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 ||
	    syscall(SYS_add_key, "user", argv[0], argv[1], strlen(argv[1]),
		    KEY_SPEC_SESSION_KEYRING) < 0)
		return failed();
	execvp(argv[2], argv + 2);
	return failed();
}

static int run_refused(char **argv)
{
	if (refuse_keys(EPERM, !strcmp(argv[0], "all")))
		return failed();
	execvp(argv[1], argv + 1);
	return failed();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "ring"))
		return print_serial(
			syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, ring(argv[2]), 0, 0, 0));
	if (!strcmp(what, "list"))
		return print_list(ring(argv[2]));
	if (!strcmp(what, "find"))
		return print_value(syscall(SYS_request_key, "user", argv[2], NULL, 0));
	if (!strcmp(what, "read"))
		return print_value(strtol(argv[2], NULL, 10));
	if (!strcmp(what, "add") && argc == 5)
		return print_serial(syscall(SYS_add_key, "user", argv[3], argv[4], strlen(argv[4]),
					    ring(argv[2])));
	if (!strcmp(what, "drop") && argc == 4)
		return syscall(SYS_keyctl, KEYCTL_UNLINK, strtol(argv[3], NULL, 10), ring(argv[2]),
			       0, 0)
			       ? failed()
			       : 0;
	if (!strcmp(what, "clear"))
		return syscall(SYS_keyctl, KEYCTL_CLEAR, ring(argv[2]), 0, 0, 0) ? failed() : 0;
	if (!strcmp(what, "under") && argc > 4)
		return run_under(argv + 2);
	if (!strcmp(what, "refuse") && argc > 3)
		return run_refused(argv + 2);
	fprintf(stderr, "usage: keys ring|list|add|drop|clear|find|read|under|refuse ...\n");
	return 2;
}
