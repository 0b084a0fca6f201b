/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the kernel's type information from its file; see monitor_btf.h. */
#include "user/monitor/monitor_btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "/sys/kernel/btf/vmlinux"
#define FILE_MAX  (256u << 20)

/* Returns the bytes that follow the head of a type; -1: the kind is unknown or invalid. */
static long tail_size(const struct btf_type *t)
{
	uint32_t parts = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_FUNC:
		return 0; /* the number of its parts is its linkage */
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return parts ? -1 : 0;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return parts ? -1 : 4;
	case BTF_KIND_ARRAY:
		return parts ? -1 : (long)sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return 12L * parts;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return 8L * parts;
	default:
		return -1;
	}
}

/* Fills `offsets` if it is allocated, and counts the types. */
static int monitor_btf_walk(struct btf_raw *raw)
{
	uint32_t at = 0, id = 1;

	for (; raw->types_size - at >= sizeof(struct btf_type); id++) {
		const struct btf_type *t = (const void *)(raw->types + at);
		long tail = tail_size(t);

		if (tail < 0 || (size_t)tail > raw->types_size - at - sizeof(*t) ||
		    t->name_off >= raw->strings_size)
			return -EBADMSG;
		if (raw->offsets)
			raw->offsets[id] = at;
		at += (uint32_t)(sizeof(*t) + (size_t)tail);
	}
	raw->count = id;
	return at == raw->types_size ? 0 : -EBADMSG;
}

int btf_raw_init(struct btf_raw *raw, const void *data, size_t size)
{
	const struct btf_header *head = data;
	uint64_t types, strings;
	int rc;

	memset(raw, 0, sizeof(*raw));
	if (size < sizeof(*head) || head->magic != BTF_MAGIC || head->version != BTF_VERSION)
		return -EBADMSG;
	types = (uint64_t)head->hdr_len + head->type_off;
	strings = (uint64_t)head->hdr_len + head->str_off;
	if (types % 4 || types + head->type_len > size || strings + head->str_len > size ||
	    !head->str_len || ((const char *)data)[strings + head->str_len - 1])
		return -EBADMSG;
	raw->types = (const unsigned char *)data + types;
	raw->types_size = head->type_len;
	raw->strings = (const char *)data + strings;
	raw->strings_size = head->str_len;
	rc = monitor_btf_walk(raw);
	if (rc)
		return rc;
	raw->offsets = calloc(raw->count, sizeof(*raw->offsets));
	return raw->offsets ? monitor_btf_walk(raw) : -ENOMEM;
}

void btf_raw_deinit(struct btf_raw *raw)
{
	free(raw->offsets);
	if (raw->mapped)
		munmap(raw->memory, raw->size);
	else
		free(raw->memory);
	memset(raw, 0, sizeof(*raw));
}

/* Takes the whole file: maps it if the kernel can (6.16), else reads it. */
static int monitor_btf_take_file(int fd, size_t size, void **memory, bool *mapped)
{
	size_t at = 0;
	ssize_t n = 1;

	*memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	*mapped = *memory != MAP_FAILED;
	if (*mapped)
		return 0;
	*memory = malloc(size);
	if (!*memory)
		return -ENOMEM;
	while (at < size && n > 0) {
		n = read(fd, (char *)*memory + at, size - at);
		if (n > 0)
			at += (size_t)n;
	}
	if (at == size)
		return 0;
	n = n < 0 ? -errno : -EIO;
	free(*memory);
	*memory = NULL;
	return (int)n;
}

static int read_kernel(struct btf_raw *raw)
{
	int fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC), rc;
	void *memory = NULL;
	bool mapped = false;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (st.st_size <= 0 || st.st_size > FILE_MAX)
		rc = -EBADMSG;
	else
		rc = monitor_btf_take_file(fd, (size_t)st.st_size, &memory, &mapped);
	close(fd);
	if (rc)
		return rc;
	rc = btf_raw_init(raw, memory, (size_t)st.st_size);
	raw->memory = memory;
	raw->size = (size_t)st.st_size;
	raw->mapped = mapped;
	if (rc)
		btf_raw_deinit(raw);
	return rc;
}

int btf_raw_kernel(struct btf_raw *raw, struct iocom_err *err)
{
	int rc = read_kernel(raw);

	if (!rc)
		return 0;
	return iocom_err_set(err, -EOPNOTSUPP,
			     "cannot read the kernel's type information (" FILE_NAME
			     "): %s; the monitor needs a kernel built with CONFIG_DEBUG_INFO_BTF",
			     strerror(-rc));
}

const struct btf_type *btf_raw_type(const struct btf_raw *raw, uint32_t id)
{
	return id && id < raw->count ? (const void *)(raw->types + raw->offsets[id]) : NULL;
}

const char *btf_raw_name(const struct btf_raw *raw, const struct btf_type *type)
{
	return raw->strings + type->name_off;
}

/* --- the extract ------------------------------------------------------------------ */

/* A hash set with open addressing, at most half full. */
struct names {
	struct name {
		const char *text;
		size_t length;
	} * slots;
	uint32_t mask;
};

struct extract {
	const struct btf_raw *raw;
	uint32_t *ids;	 /* for each of RAW's types its id in the extract; 0: not taken */
	uint32_t *stack; /* types taken whose members we have not examined yet */
	size_t depth;
	unsigned char *out;
	size_t types_size, strings_size;
};

/* Returns the length of NAME without its flavour, by libbpf's rule: "page___long" means page. */
static size_t essential(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = n; i-- > 1;)
		if (n - i > 3 && !memcmp(name + i, "___", 3) && name[i - 1] != '_' &&
		    name[i + 3] != '_')
			return i;
	return n;
}

static uint32_t monitor_btf_hash(const char *text, size_t length)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h;
}

static struct name *name_slot(const struct names *names, const char *text, size_t length)
{
	uint32_t at = monitor_btf_hash(text, length) & names->mask;

	while (names->slots[at].text && (names->slots[at].length != length ||
					 memcmp(names->slots[at].text, text, length) != 0))
		at = (at + 1) & names->mask;
	return &names->slots[at];
}

/* True for kinds that a program's relocation can name, so the extract must have them. */
static bool is_root(const struct btf_type *t)
{
	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_TYPEDEF:
		return t->name_off != 0;
	default:
		return false;
	}
}

static int collect_names(const struct btf *program, struct names *names)
{
	uint32_t n = btf__type_cnt(program), room = 64;

	while (room < 2 * n)
		room *= 2;
	names->mask = room - 1;
	names->slots = calloc(room, sizeof(*names->slots));
	if (!names->slots)
		return -ENOMEM;
	for (uint32_t id = 1; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(program, id);
		const char *text = is_root(t) ? btf__name_by_offset(program, t->name_off) : NULL;

		if (text)
			*name_slot(names, text, essential(text)) =
				(struct name){text, essential(text)};
	}
	return 0;
}

static void monitor_btf_take(struct extract *e, uint32_t id)
{
	const struct btf_type *t = btf_raw_type(e->raw, id);
	uint32_t kind = t ? BTF_INFO_KIND(t->info) : BTF_KIND_FUNC;

	/* A function or a variable is never part of another type by value. */
	if (kind == BTF_KIND_FUNC || kind == BTF_KIND_FUNC_PROTO || kind == BTF_KIND_VAR ||
	    kind == BTF_KIND_DATASEC || kind == BTF_KIND_DECL_TAG || e->ids[id])
		return;
	e->ids[id] = 1; /* the real number follows when all types are known */
	e->stack[e->depth++] = id;
}

/* Takes the types that T holds by value. */
static void take_held(struct extract *e, const struct btf_type *t)
{
	const struct btf_member *members = (const void *)(t + 1);
	const struct btf_array *array = (const void *)(t + 1);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info); i++)
			monitor_btf_take(e, members[i].type);
		break;
	case BTF_KIND_ARRAY:
		monitor_btf_take(e, array->type);
		monitor_btf_take(e, array->index_type);
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		monitor_btf_take(e, t->type);
		break;
	default:
		break; /* we let pointers lead to void */
	}
}

/* Returns member or value I of T. Each begins with the offset of its name. */
static uint32_t *part_of(const struct btf_type *t, uint32_t i)
{
	return (uint32_t *)((unsigned char *)(t + 1) +
			    (size_t)i * ((size_t)tail_size(t) / BTF_INFO_VLEN(t->info)));
}

static size_t string_size(const struct extract *e, uint32_t offset)
{
	return offset < e->raw->strings_size ? strlen(e->raw->strings + offset) + 1 : 1;
}

static void monitor_btf_measure(struct extract *e, const struct btf_type *t)
{
	e->types_size += sizeof(*t) + (size_t)tail_size(t);
	e->strings_size += string_size(e, t->name_off);
	for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info); i++)
		e->strings_size += string_size(e, part_of(t, i)[0]);
}

/* Marks all types to take and adds up their size. */
static void monitor_btf_choose(struct extract *e, const struct names *names)
{
	const struct btf_raw *raw = e->raw;
	uint32_t next = 1;

	for (uint32_t id = 1; id < raw->count; id++) {
		const struct btf_type *t = btf_raw_type(raw, id);

		if (is_root(t)) {
			const char *text = btf_raw_name(raw, t);

			if (name_slot(names, text, essential(text))->text)
				monitor_btf_take(e, id);
		}
	}
	while (e->depth)
		take_held(e, btf_raw_type(raw, e->stack[--e->depth]));
	e->strings_size = 1;
	for (uint32_t id = 1; id < raw->count; id++) {
		if (!e->ids[id])
			continue;
		e->ids[id] = next++;
		monitor_btf_measure(e, btf_raw_type(raw, id));
	}
}

/* Copies the string at OFFSET of RAW. Returns its offset in the extract. */
static uint32_t monitor_btf_put_string(struct extract *e, char *strings, size_t *at,
				       uint32_t offset)
{
	size_t length = string_size(e, offset);
	uint32_t where = (uint32_t)*at;

	if (length == 1)
		return 0;
	memcpy(strings + *at, e->raw->strings + offset, length);
	*at += length;
	return where;
}

static uint32_t renumber(const struct extract *e, uint32_t id)
{
	return id < e->raw->count ? e->ids[id] : 0;
}

/* Translates the ids in T, a copy in the extract, to the extract's ids. */
static void translate(struct extract *e, struct btf_type *t, char *strings, size_t *at)
{
	uint32_t kind = BTF_INFO_KIND(t->info), parts = BTF_INFO_VLEN(t->info);
	struct btf_array *array = (void *)(t + 1);

	t->name_off = monitor_btf_put_string(e, strings, at, t->name_off);
	if (kind == BTF_KIND_PTR)
		t->type = 0;
	else if (kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_VOLATILE || kind == BTF_KIND_CONST ||
		 kind == BTF_KIND_RESTRICT || kind == BTF_KIND_TYPE_TAG)
		t->type = renumber(e, t->type);
	if (kind == BTF_KIND_ARRAY) {
		array->type = renumber(e, array->type);
		array->index_type = renumber(e, array->index_type);
	}
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t *part = part_of(t, i);

		part[0] = monitor_btf_put_string(e, strings, at, part[0]);
		if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION)
			part[1] = renumber(e, part[1]);
	}
}

static int write_out(struct extract *e)
{
	struct btf_header head = {.magic = BTF_MAGIC,
				  .version = BTF_VERSION,
				  .hdr_len = sizeof(head),
				  .type_len = (uint32_t)e->types_size,
				  .str_off = (uint32_t)e->types_size,
				  .str_len = (uint32_t)e->strings_size};
	size_t to = sizeof(head), at = 1;
	char *strings;

	e->out = calloc(1, sizeof(head) + e->types_size + e->strings_size);
	if (!e->out)
		return -ENOMEM;
	memcpy(e->out, &head, sizeof(head));
	strings = (char *)e->out + sizeof(head) + e->types_size;
	for (uint32_t id = 1; id < e->raw->count; id++) {
		const struct btf_type *t = btf_raw_type(e->raw, id);
		size_t size = sizeof(*t) + (size_t)tail_size(t);

		if (!e->ids[id])
			continue;
		memcpy(e->out + to, t, size);
		translate(e, (struct btf_type *)(e->out + to), strings, &at);
		to += size;
	}
	return 0;
}

int btf_raw_extract(const struct btf_raw *raw, const struct btf *program, void **out, size_t *size)
{
	struct extract e = {.raw = raw};
	struct names names = {0};
	int rc = collect_names(program, &names);

	e.ids = calloc(raw->count, sizeof(*e.ids));
	e.stack = calloc(raw->count, sizeof(*e.stack));
	if (!rc && (!e.ids || !e.stack))
		rc = -ENOMEM;
	if (!rc) {
		monitor_btf_choose(&e, &names);
		rc = e.types_size + e.strings_size > FILE_MAX ? -EBADMSG : write_out(&e);
	}
	free(names.slots);
	free(e.ids);
	free(e.stack);
	*out = e.out;
	*size = sizeof(struct btf_header) + e.types_size + e.strings_size;
	return rc;
}
