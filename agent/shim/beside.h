/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The programs that a shim starts are beside its own. */
#ifndef IOCOM_SHIM_BESIDE_H
#define IOCOM_SHIM_BESIDE_H

#include <limits.h>

/* Writes the path of the program NAME.  Returns 0 or -ENAMETOOLONG. */
int beside(char out[PATH_MAX], const char *name);

#endif
