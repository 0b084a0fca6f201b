/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See mpi_program.h.  The file may be anybody's: every offset in it is checked before its use. */
#include "balancer/run/mpi_program.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct image {
	const unsigned char *bytes;
	size_t n;
};

/* Copies N bytes at OFFSET; false: they are not all in the file. */
static bool image_copy(const struct image *image, uint64_t offset, void *to, size_t n)
{
	if (offset > image->n || n > image->n - offset)
		return false;
	memcpy(to, image->bytes + offset, n);
	return true;
}

static bool image_segment(const struct image *image, const Elf64_Ehdr *header, unsigned i,
			  Elf64_Phdr *segment)
{
	uint64_t offset;

	return !__builtin_add_overflow(header->e_phoff, (uint64_t)i * sizeof(*segment), &offset) &&
	       image_copy(image, offset, segment, sizeof(*segment));
}

/* The place in the file of the loaded address; UINT64_MAX: it is in no segment. */
static uint64_t image_offset(const struct image *image, const Elf64_Ehdr *header, uint64_t address)
{
	Elf64_Phdr s;

	for (unsigned i = 0; i < header->e_phnum && image_segment(image, header, i, &s); i++)
		if (s.p_type == PT_LOAD && address >= s.p_vaddr &&
		    address - s.p_vaddr < s.p_filesz &&
		    s.p_offset <= UINT64_MAX - (address - s.p_vaddr))
			return s.p_offset + (address - s.p_vaddr);
	return UINT64_MAX;
}

static enum mpi_program library_kind(const char *name)
{
	static const struct {
		const char *prefix;
		enum mpi_program kind;
	} known[] = {
		{"libmpich", MPI_PROGRAM_PMI1},	       {"libmpi.so.12", MPI_PROGRAM_PMI1},
		{"libpmix.so", MPI_PROGRAM_PMIX},      {"libmpi.so", MPI_PROGRAM_PMIX},
		{"libmpi_mpifh.so", MPI_PROGRAM_PMIX}, {"libmpi_usempi", MPI_PROGRAM_PMIX},
		{"libmpi_cxx.so", MPI_PROGRAM_PMIX},   {"libopen-rte", MPI_PROGRAM_PMIX},
		{"libopen-pal", MPI_PROGRAM_PMIX},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(name, known[i].prefix, strlen(known[i].prefix)))
			return known[i].kind;
	return MPI_PROGRAM_NONE;
}

/* The next entry of the dynamic segment, from *AT on; false: there is none. */
static bool image_entry(const struct image *image, const Elf64_Phdr *dynamic, uint64_t *at,
			Elf64_Dyn *entry)
{
	if (*at + sizeof(*entry) > dynamic->p_filesz || dynamic->p_offset > image->n ||
	    !image_copy(image, dynamic->p_offset + *at, entry, sizeof(*entry)))
		return false;
	*at += sizeof(*entry);
	return entry->d_tag != DT_NULL;
}

/* What the libraries of the dynamic segment say; the first that is known decides. */
static enum mpi_program image_libraries(const struct image *image, const Elf64_Phdr *dynamic,
					uint64_t strings, char library[MPI_LIBRARY_LENGTH])
{
	uint64_t at = 0;
	Elf64_Dyn entry;

	while (image_entry(image, dynamic, &at, &entry)) {
		uint64_t name;
		size_t length;
		enum mpi_program kind;

		if (entry.d_tag != DT_NEEDED ||
		    __builtin_add_overflow(strings, entry.d_un.d_val, &name) || name >= image->n)
			continue;
		length = strnlen((const char *)image->bytes + name, image->n - name);
		if (length >= MPI_LIBRARY_LENGTH || name + length == image->n)
			continue;
		kind = library_kind((const char *)image->bytes + name);
		if (kind != MPI_PROGRAM_NONE) {
			memcpy(library, image->bytes + name, length + 1);
			return kind;
		}
	}
	return MPI_PROGRAM_NONE;
}

/* The place of the names of libraries; UINT64_MAX: there is none. */
static uint64_t image_strings(const struct image *image, const Elf64_Ehdr *header,
			      const Elf64_Phdr *dynamic)
{
	uint64_t at = 0;
	Elf64_Dyn entry;

	while (image_entry(image, dynamic, &at, &entry))
		if (entry.d_tag == DT_STRTAB)
			return image_offset(image, header, entry.d_un.d_ptr);
	return UINT64_MAX;
}

enum mpi_program mpi_program_of(const void *file, size_t n, char library[MPI_LIBRARY_LENGTH])
{
	struct image image = {file, n};
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	*library = 0;
	if (n < SELFMAG || memcmp(file, ELFMAG, SELFMAG) != 0)
		return MPI_PROGRAM_SCRIPT;
	if (!image_copy(&image, 0, &header, sizeof(header)) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(segment))
		return MPI_PROGRAM_NONE;
	for (unsigned i = 0; i < header.e_phnum && image_segment(&image, &header, i, &segment);
	     i++) {
		uint64_t strings;

		if (segment.p_type != PT_DYNAMIC)
			continue;
		strings = image_strings(&image, &header, &segment);
		return strings == UINT64_MAX ? MPI_PROGRAM_NONE
					     : image_libraries(&image, &segment, strings, library);
	}
	return MPI_PROGRAM_NONE;
}
