/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel's type information (BTF), read as it lies in /sys/kernel/btf/vmlinux:
 * one pass over some 120,000 types, no copies.  Two things are made of it: what the
 * table of hooks asks (monitor_hooks.h), and an extract of the few types that the
 * eBPF programs name.  libbpf looks through all types for each one a program names;
 * in the extract that takes no time.
 */
#ifndef IOCOM_MONITOR_BTF_H
#define IOCOM_MONITOR_BTF_H

#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

struct btf;

struct btf_raw {
	const unsigned char *types;
	const char *strings;
	uint32_t types_size, strings_size;
	uint32_t *offsets; /* of each type in `types`; [0] is void, not used */
	uint32_t count;	   /* types, and void */
	void *memory;	   /* owned: the whole file; NULL when borrowed */
	size_t size;
	bool mapped;
};

/* The running kernel's.  0, or -EOPNOTSUPP with the sentence.  Any user may. */
int btf_raw_kernel(struct btf_raw *raw, struct iocom_err *err);
/* DATA (borrowed, aligned to 4) in the form of that file.  0; -EBADMSG; -ENOMEM. */
int btf_raw_init(struct btf_raw *raw, const void *data, size_t size);
void btf_raw_deinit(struct btf_raw *raw);
/* NULL for void and for ids that are not there. */
const struct btf_type *btf_raw_type(const struct btf_raw *raw, uint32_t id);
/* "" for the nameless. */
const char *btf_raw_name(const struct btf_raw *raw, const struct btf_type *type);

/*
 * All structs, unions, enums and typedefs of RAW that have the name of a type of
 * PROGRAM ("x___y" is an x), with what they hold by value; a pointer in them leads to
 * void.  OUT: malloc'ed, in the form of the file.  0; -EBADMSG; -ENOMEM.
 */
int btf_raw_extract(const struct btf_raw *raw, const struct btf *program, void **out, size_t *size);

#endif
