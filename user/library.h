/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Functions of a library that is loaded only where it is needed, and only if it is there. */
#ifndef IOCOM_LIBRARY_H
#define IOCOM_LIBRARY_H

#include <stddef.h>

struct library_symbol {
	const char *name;
	void *to; /* a pointer to a function, which gets its address */
};

/*
 * Fills the N pointers that are WANTED from the library HANDLE, of dlopen(3).  Returns 0, or
 * -ENOENT: it lacks one of them, as dlerror(3) says.
 */
int library_symbols(void *handle, const struct library_symbol *wanted, size_t n);

#endif
