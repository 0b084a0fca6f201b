/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Type information in the form of its file: read, refused, and extracted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "user/monitor/monitor_btf.h"

/*
 * A made-up kernel:
 *   struct page { unsigned long flags; struct memdesc memdesc; struct folio *next;
 *                 struct list lru[3]; };          and the types that it holds by value
 *   enum pageflags { PG_writeback = 5 };  enum big : u64;  struct folio { int n; };
 *   struct unrelated { struct page *page; };
 */
static struct btf *kernel(void)
{
	struct btf *btf = btf__new_empty();
	int word, number, folio, to_folio, memdesc, list, array, constant, page, to_page;

	assert_non_null(btf);
	word = btf__add_int(btf, "unsigned long", 8, 0);
	number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	folio = btf__add_struct(btf, "folio", 4);
	btf__add_field(btf, "n", number, 0, 0);
	to_folio = btf__add_ptr(btf, folio);
	memdesc = btf__add_struct(btf, "memdesc", 8);
	btf__add_field(btf, "f", word, 0, 0);
	list = btf__add_struct(btf, "list", 8);
	array = btf__add_array(btf, number, list, 3);
	constant = btf__add_const(btf, memdesc);
	page = btf__add_struct(btf, "page", 48);
	btf__add_field(btf, "flags", word, 0, 0);
	btf__add_field(btf, "memdesc", constant, 64, 0);
	btf__add_field(btf, "next", to_folio, 128, 0);
	btf__add_field(btf, "lru", array, 192, 0);
	btf__add_enum(btf, "pageflags", 4);
	btf__add_enum_value(btf, "PG_writeback", 5);
	btf__add_enum64(btf, "big", 8, false);
	btf__add_enum64_value(btf, "HUGE", 1ULL << 40);
	to_page = btf__add_ptr(btf, page);
	btf__add_struct(btf, "unrelated", 8);
	btf__add_field(btf, "page", to_page, 0, 0);
	btf__add_typedef(btf, "callback_t", btf__add_func_proto(btf, number));
	return btf;
}

static struct btf *program(void)
{
	struct btf *btf = btf__new_empty();

	assert_non_null(btf);
	btf__add_struct(btf, "page___long", 8);
	btf__add_enum(btf, "pageflags___x", 4);
	btf__add_enum64(btf, "big", 8, false);
	btf__add_typedef(btf, "callback_t", 0);
	btf__add_struct(btf, "not_in_the_kernel", 8);
	return btf;
}

static struct btf *extract(struct btf *from, struct btf *by)
{
	struct btf_raw raw;
	struct btf *result;
	const void *data;
	void *out;
	__u32 size;
	size_t length;

	data = btf__raw_data(from, &size);
	assert_int_equal(btf_raw_init(&raw, data, size), 0);
	assert_int_equal(raw.count, btf__type_cnt(from));
	assert_int_equal(btf_raw_extract(&raw, by, &out, &length), 0);
	btf_raw_deinit(&raw);
	result = btf__new(out, (__u32)length);
	free(out);
	assert_non_null(result);
	return result;
}

static const struct btf_type *find(const struct btf *btf, const char *name, uint32_t kind)
{
	int id = btf__find_by_name_kind(btf, name, kind);

	return id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
}

static const char *name_of(const struct btf *btf, __u32 id)
{
	return btf__name_by_offset(btf, btf__type_by_id(btf, id)->name_off);
}

static void test_extract(void **state)
{
	struct btf *from = kernel(), *by = program(), *btf = extract(from, by);
	const struct btf_type *page = find(btf, "page", BTF_KIND_STRUCT), *t;
	const struct btf_member *m;

	(void)state;
	assert_non_null(page);
	assert_int_equal(btf_vlen(page), 4);
	m = btf_members(page);
	assert_string_equal(btf__name_by_offset(btf, m[0].name_off), "flags");
	assert_string_equal(name_of(btf, m[0].type), "unsigned long");
	/* Held by value: the extract has it, through const and array. */
	t = btf__type_by_id(btf, m[1].type);
	assert_true(btf_is_const(t));
	assert_string_equal(name_of(btf, t->type), "memdesc");
	t = btf__type_by_id(btf, m[3].type);
	assert_true(btf_is_array(t));
	assert_int_equal(btf_array(t)->nelems, 3);
	assert_string_equal(name_of(btf, btf_array(t)->type), "list");
	/* Held by pointer: it stays a pointer, but to void. */
	t = btf__type_by_id(btf, m[2].type);
	assert_true(btf_is_ptr(t));
	assert_int_equal(t->type, 0);
	assert_int_equal(m[3].offset, 192);
	assert_int_equal(btf__resolve_size(btf, m[1].type), 8);
	assert_null(find(btf, "folio", BTF_KIND_STRUCT));
	assert_null(find(btf, "unrelated", BTF_KIND_STRUCT));
	t = find(btf, "pageflags", BTF_KIND_ENUM);
	assert_non_null(t);
	assert_int_equal(btf_enum(t)[0].val, 5);
	assert_string_equal(btf__name_by_offset(btf, btf_enum(t)[0].name_off), "PG_writeback");
	t = find(btf, "big", BTF_KIND_ENUM64);
	assert_non_null(t);
	assert_int_equal(btf_enum64_value(btf_enum64(t)), 1LL << 40);
	/* A function is never held by value. */
	t = find(btf, "callback_t", BTF_KIND_TYPEDEF);
	assert_non_null(t);
	assert_int_equal(t->type, 0);
	btf__free(btf);
	btf__free(by);
	btf__free(from);
}

static void test_nothing_in_common(void **state)
{
	struct btf *from = kernel(), *by = btf__new_empty(), *btf = extract(from, by);

	(void)state;
	assert_int_equal(btf__type_cnt(btf), 1);
	btf__free(btf);
	btf__free(by);
	btf__free(from);
}

/* Every cut and every changed byte of the head: the file is refused or read, never past its end. */
static void test_bad_files(void **state)
{
	struct btf *from = kernel(), *by = program();
	unsigned char *copy;
	struct btf_raw raw;
	const void *data;
	__u32 size;

	(void)state;
	data = btf__raw_data(from, &size);
	for (__u32 n = 0; n < size; n++) {
		copy = malloc(n + 1);
		memcpy(copy, data, n);
		assert_int_equal(btf_raw_init(&raw, copy, n), -EBADMSG);
		btf_raw_deinit(&raw);
		free(copy);
	}
	for (__u32 at = 0; at < size; at++) {
		void *out = NULL;
		size_t length;

		copy = malloc(size);
		memcpy(copy, data, size);
		copy[at] ^= 0xff;
		if (!btf_raw_init(&raw, copy, size))
			btf_raw_extract(&raw, by, &out, &length);
		else
			assert_true(at < sizeof(struct btf_header) + raw.types_size ||
				    at == size - 1);
		btf_raw_deinit(&raw);
		free(out);
		free(copy);
	}
	btf__free(by);
	btf__free(from);
}

static void test_ids(void **state)
{
	struct btf *from = kernel();
	struct btf_raw raw;
	const void *data;
	__u32 size;

	(void)state;
	data = btf__raw_data(from, &size);
	assert_int_equal(btf_raw_init(&raw, data, size), 0);
	assert_null(btf_raw_type(&raw, 0));
	assert_null(btf_raw_type(&raw, raw.count));
	assert_null(btf_raw_type(&raw, UINT32_MAX));
	assert_string_equal(btf_raw_name(&raw, btf_raw_type(&raw, 1)), "unsigned long");
	btf_raw_deinit(&raw);
	btf__free(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extract),
		cmocka_unit_test(test_nothing_in_common),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
