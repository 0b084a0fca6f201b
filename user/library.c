/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See library.h. */
#include "user/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int library_symbols(void *handle, const struct library_symbol *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *symbol = dlsym(handle, wanted[i].name);

		if (!symbol)
			return -ENOENT;
		memcpy(wanted[i].to, &symbol, sizeof(symbol));
	}
	return 0;
}
