/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* The header under test allocates through this. */
static size_t asked; /* bytes of the last call */
static unsigned calls;
static bool memory_is_out;

static void *counted_realloc(void *p, size_t size)
{
	asked = size;
	calls++;
	return memory_is_out ? NULL : realloc(p, size);
}

#define realloc counted_realloc
#include "iocom/array.h"
#undef realloc

struct item {
	uint32_t number;
	char padding[20];
};

static int begin(void **state)
{
	(void)state;
	asked = calls = 0;
	memory_is_out = false;
	return 0;
}

static void items_are_added_one_by_one(void **state)
{
	struct item *items = NULL;
	size_t room = 0, used = 0;

	(void)state;
	while (used < 100) {
		assert_int_equal(array_reserve(items, room, used + 1, 8), 0);
		items[used].number = (uint32_t)used;
		used++;
	}
	assert_int_equal(room, 128);
	assert_int_equal(asked, 128 * sizeof(struct item));
	assert_int_equal(calls, 5); /* 8, 16, 32, 64, 128 */
	for (size_t i = 0; i < used; i++)
		assert_int_equal(items[i].number, i);
	free(items);
}

static void a_room_of_32_bits_grows_alike(void **state)
{
	struct item *items = NULL;
	uint32_t room = 0, used = 0;

	(void)state;
	while (used < 100) {
		assert_int_equal(array_reserve(items, room, used + 1, 3), 0);
		items[used].number = used;
		used++;
	}
	assert_int_equal(room, 192);
	assert_int_equal(calls, 7); /* 3, 6, 12, 24, 48, 96, 192 */
	for (uint32_t i = 0; i < used; i++)
		assert_int_equal(items[i].number, i);
	free(items);
}

static void the_first_room_is_doubled_until_it_suffices(void **state)
{
	struct item *many = NULL, *few = NULL;
	size_t many_room = 0, few_room = 0;

	(void)state;
	assert_int_equal(array_reserve(many, many_room, 33, 8), 0);
	assert_int_equal(many_room, 64);
	assert_int_equal(array_reserve(few, few_room, 8, 8), 0);
	assert_int_equal(few_room, 8);
	assert_int_equal(calls, 2);
	free(many);
	free(few);
}

static void enough_room_is_left_alone(void **state)
{
	struct item *items = NULL, *before;
	size_t room = 0;

	(void)state;
	assert_int_equal(array_reserve(items, room, 0, 8), 0);
	assert_null(items);
	assert_int_equal(room, 0);
	assert_int_equal(calls, 0);
	assert_int_equal(array_reserve(items, room, 3, 8), 0);
	before = items;
	memory_is_out = true; /* no room is needed, so none is made */
	assert_int_equal(array_reserve(items, room, 8, 8), 0);
	assert_int_equal(array_reserve(items, room, 0, 8), 0);
	assert_ptr_equal(items, before);
	assert_int_equal(room, 8);
	assert_int_equal(calls, 1);
	free(items);
}

static void without_memory_all_stays_as_it_was(void **state)
{
	struct item *items = NULL, *before;
	uint32_t room = 0;

	(void)state;
	memory_is_out = true;
	assert_int_equal(array_reserve(items, room, 1, 2), -ENOMEM);
	assert_null(items);
	assert_int_equal(room, 0);
	memory_is_out = false;
	assert_int_equal(array_reserve(items, room, 2, 2), 0);
	items[0].number = 10;
	items[1].number = 11;
	before = items;
	memory_is_out = true;
	assert_int_equal(array_reserve(items, room, 3, 2), -ENOMEM);
	assert_ptr_equal(items, before);
	assert_int_equal(room, 2);
	memory_is_out = false;
	assert_int_equal(array_reserve(items, room, 3, 2), 0);
	assert_int_equal(room, 4);
	assert_int_equal(items[0].number, 10);
	assert_int_equal(items[1].number, 11);
	free(items);
}

/* No case may ask for memory: a size that has wrapped is small and would be granted. */
static void what_cannot_be_counted_is_refused(void **state)
{
	char byte = 'x', *bytes = &byte;
	struct item one = {.number = 7}, *items = &one;
	uint32_t narrow = 1u << 31;
	size_t wide = (size_t)1 << (sizeof(size_t) * 8 - 1);

	(void)state;
	/* the room's type: 2^32 items */
	assert_int_equal(array_reserve(bytes, narrow, (size_t)narrow + 1, 8), -ENOMEM);
	assert_int_equal(narrow, 1u << 31);
	narrow = 1;
	assert_int_equal(array_reserve(bytes, narrow, (size_t)UINT32_MAX + 1, 8), -ENOMEM);
	assert_int_equal(narrow, 1);
	/* doubling */
	assert_int_equal(array_reserve(bytes, wide, wide + 1, 8), -ENOMEM);
	assert_true(wide == (size_t)1 << (sizeof(size_t) * 8 - 1));
	wide = 3;
	assert_int_equal(array_reserve(bytes, wide, SIZE_MAX, 8), -ENOMEM);
	assert_int_equal(wide, 3);
	/* the bytes: 2^61 items of 24 bytes wrap to 0 */
	wide = SIZE_MAX / 16 + 1;
	assert_int_equal(array_reserve(items, wide, wide + 1, 8), -ENOMEM);
	assert_true(wide == SIZE_MAX / 16 + 1);
	wide = 0;
	assert_int_equal(array_reserve(items, wide, PTRDIFF_MAX / sizeof(one) + 1, 8), -ENOMEM);
	assert_int_equal(wide, 0);
	assert_int_equal(calls, 0);
	assert_ptr_equal(bytes, &byte);
	assert_ptr_equal(items, &one);
	assert_int_equal(one.number, 7);
}

struct list {
	struct item *items;
	size_t room;
	unsigned looked;
};

static struct list *look(struct list *list)
{
	list->looked++;
	return list;
}

static void parameters_are_evaluated_once(void **state)
{
	struct list a = {0}, b = {0}, need = {.room = 5};

	(void)state;
	assert_int_equal(array_reserve(look(&a)->items, look(&b)->room, look(&need)->room, 4), 0);
	assert_int_equal(a.looked, 1);
	assert_int_equal(b.looked, 1);
	assert_int_equal(need.looked, 1);
	assert_non_null(a.items);
	assert_int_equal(b.room, 8);
	free(a.items);
}

static void the_room_can_be_asked_before(void **state)
{
	(void)state;
	assert_int_equal(array_room(0, 0, 8), 0);
	assert_int_equal(array_room(0, 1, 8), 8);
	assert_int_equal(array_room(0, 9, 8), 16);
	assert_int_equal(array_room(6, 6, 8), 6);
	assert_int_equal(array_room(6, 7, 8), 12);
	assert_int_equal(array_room(6, 25, 8), 48);
	assert_true(array_room(0, SIZE_MAX / 2 + 2, 8) == SIZE_MAX);
	assert_true(array_room(0, SIZE_MAX / 2 + 1, 8) == SIZE_MAX / 2 + 1);
	assert_int_equal(calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(items_are_added_one_by_one, begin),
		cmocka_unit_test_setup(a_room_of_32_bits_grows_alike, begin),
		cmocka_unit_test_setup(the_first_room_is_doubled_until_it_suffices, begin),
		cmocka_unit_test_setup(enough_room_is_left_alone, begin),
		cmocka_unit_test_setup(without_memory_all_stays_as_it_was, begin),
		cmocka_unit_test_setup(what_cannot_be_counted_is_refused, begin),
		cmocka_unit_test_setup(parameters_are_evaluated_once, begin),
		cmocka_unit_test_setup(the_room_can_be_asked_before, begin),
	};

	return cmocka_run_group_tests_name("array", tests, NULL, NULL);
}
