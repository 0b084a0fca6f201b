/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which MPI a program was built for, from the libraries that its ELF file says it needs. */
#ifndef IOCOM_MPI_PROGRAM_H
#define IOCOM_MPI_PROGRAM_H

#include <stddef.h>

#define MPI_LIBRARY_LENGTH 64

enum mpi_program {
	MPI_PROGRAM_SCRIPT, /* no ELF file: what it starts is not known */
	MPI_PROGRAM_NONE,   /* a binary that needs none of the libraries that we know */
	MPI_PROGRAM_PMIX,   /* Open MPI, or libpmix itself */
	MPI_PROGRAM_PMI1,   /* MPICH */
};

/*
 * Reads the N bytes at FILE, an ELF file of 64 bits of this machine's byte order; whatever is in
 * them, nothing outside is read.  LIBRARY gets the name of the library that told it, or "".
 */
enum mpi_program mpi_program_of(const void *file, size_t n, char library[MPI_LIBRARY_LENGTH]);

#endif
