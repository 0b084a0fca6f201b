/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The real applications of ACM (Table II, six with much I/O) and COM (Table 2, five
 * with much communication) as kinds of a generator.
 */
#ifndef SIM_WORKLOAD_APPLICATIONS_H
#define SIM_WORKLOAD_APPLICATIONS_H

#include "sim/workload.h"

enum application_group {
	APPLICATION_IO,		   /* Dmine, Pgrep, LU, Titan, Cholesky, DB2 */
	APPLICATION_COMMUNICATION, /* Render, Molecular, Semi, React, Vortex */
};

/* The disk that the I/O shares refer to: ACM Table I. */
#define APPLICATION_DISK_FIXED_MS 8.4
#define APPLICATION_DISK_MB_PER_S 31.0

/*
 * Fills KIND for the application (upper or lower case).  Its share is 1.  cpu_factor multiplies a
 * time that is common to all applications: the execution time alone.  Returns 0 or -ENOENT.
 */
int application_kind(const char *name, struct generator_kind *kind);
/* Application I (0 ..) of a group; NULL at the end. */
const char *application_name(enum application_group group, unsigned int i);
/* Share of I/O (0..1) in the execution of such a kind alone on the disk above. */
double application_io_share(const struct generator_kind *kind);

#endif
