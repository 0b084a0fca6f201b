/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which MPI a program needs (mpi_program.h), from files made here, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/run/mpi_program.h"

#define BASE 0x400000U

struct program {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[4];
	char names[64];
};

static struct program make_program(const char *library)
{
	struct program p = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
			   .e_phoff = offsetof(struct program, segments),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.segments = {{.p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof(p)},
			     {.p_type = PT_DYNAMIC,
			      .p_offset = offsetof(struct program, dynamic),
			      .p_filesz = sizeof(p.dynamic)}},
		.dynamic = {{DT_NEEDED, {1}},
			    {DT_NEEDED, {11}},
			    {DT_STRTAB, {BASE + offsetof(struct program, names)}}},
		.names = "\0libc.so.6",
	};

	snprintf(p.names + 11, sizeof(p.names) - 11, "%s", library);
	return p;
}

static void test_kinds(void **state)
{
	static const struct {
		const char *library;
		enum mpi_program kind;
	} rows[] = {
		{"libmpi.so.40", MPI_PROGRAM_PMIX},	  {"libmpi_mpifh.so.40", MPI_PROGRAM_PMIX},
		{"libpmix.so.2", MPI_PROGRAM_PMIX},	  {"libmpich.so.12", MPI_PROGRAM_PMI1},
		{"libmpichfort.so.12", MPI_PROGRAM_PMI1}, {"libmpi.so.12", MPI_PROGRAM_PMI1},
		{"libm.so.6", MPI_PROGRAM_NONE},
	};
	char library[MPI_LIBRARY_LENGTH];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct program p = make_program(rows[i].library);

		assert_int_equal(mpi_program_of(&p, sizeof(p), library), rows[i].kind);
		assert_string_equal(library,
				    rows[i].kind == MPI_PROGRAM_NONE ? "" : rows[i].library);
	}
	assert_int_equal(mpi_program_of("#!/bin/sh\n", 10, library), MPI_PROGRAM_SCRIPT);
	assert_int_equal(mpi_program_of("", 0, library), MPI_PROGRAM_SCRIPT);
}

/* Each length, and each byte set to 0xff: no read outside the file, and some answer. */
static void test_damaged(void **state)
{
	struct program p = make_program("libmpi.so.40");
	char library[MPI_LIBRARY_LENGTH];

	(void)state;
	for (size_t n = 0; n < sizeof(p); n++) {
		unsigned char *part = malloc(n + 1), *whole = malloc(sizeof(p));

		assert_non_null(part);
		assert_non_null(whole);
		memcpy(part, &p, n);
		assert_true(mpi_program_of(part, n, library) <= MPI_PROGRAM_PMI1);
		memcpy(whole, &p, sizeof(p));
		whole[n] = 0xff;
		assert_true(mpi_program_of(whole, sizeof(p), library) <= MPI_PROGRAM_PMI1);
		free(part);
		free(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
