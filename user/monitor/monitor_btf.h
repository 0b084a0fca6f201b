/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads the kernel's type information (BTF) in /sys/kernel/btf/vmlinux: one pass over some
 * 120,000 types, no copies. It serves two purposes: the table of hooks asks it
 * (monitor_hooks.h), and we make an extract of the few types that the eBPF programs name. libbpf
 * searches all types for each name; in the extract that takes no time.
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
	uint32_t *offsets; /* offset of each type in `types`; [0] is void, not used */
	uint32_t count;	   /* number of types, void included */
	void *memory;	   /* the whole file, owned; NULL: borrowed */
	size_t size;
	bool mapped;
};

/*
 * Reads the running kernel's information; any user may. Returns 0, or -EOPNOTSUPP with the reason
 * in ERR.
 */
int btf_raw_kernel(struct btf_raw *raw, struct iocom_err *err);
/*
 * Takes DATA (borrowed, aligned to 4), which has the form of that file. Returns 0, -EBADMSG or
 * -ENOMEM.
 */
int btf_raw_init(struct btf_raw *raw, const void *data, size_t size);
void btf_raw_deinit(struct btf_raw *raw);
/* Returns NULL for void and for unknown ids. */
const struct btf_type *btf_raw_type(const struct btf_raw *raw, uint32_t id);
/* Returns "" for a type without a name. */
const char *btf_raw_name(const struct btf_raw *raw, const struct btf_type *type);

/*
 * Extracts all structs, unions, enums and typedefs of RAW that have the name of a type of
 * PROGRAM ("x___y" means x), with the types that they hold by value; pointers in them lead to
 * void. OUT is malloc'ed and has the form of the file. Returns 0, -EBADMSG or -ENOMEM.
 */
int btf_raw_extract(const struct btf_raw *raw, const struct btf *program, void **out, size_t *size);

#endif
