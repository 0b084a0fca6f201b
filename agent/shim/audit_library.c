/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The way to libaudit, see audit.h. Only the process that sends a record loads libaudit,
 * which comes with libpam on most systems; so nothing is needed to build, and a shim without audit
 * is no larger.
 */
#include "agent/shim/audit.h"

#include <dlfcn.h>
#include <errno.h>

#include "user/library.h"

int audit_load(struct audit_library *library)
{
	const struct library_symbol wanted[] = {
		{"audit_open", &library->open},
		{"audit_encode_nv_string", &library->encode},
		{"audit_log_user_message", &library->send},
	};
	void *handle = dlopen("libaudit.so.1", RTLD_NOW | RTLD_LOCAL);

	return handle ? library_symbols(handle, wanted, sizeof(wanted) / sizeof(*wanted)) : -ENOENT;
}
