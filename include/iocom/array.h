/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Arrays that grow by doubling.
 *
 * The owner keeps three things: the items (a pointer, NULL at first), the room (how many items,
 * not bytes, there is memory for; 0 at first) and how many of them are used.  array_reserve
 * changes the first two; the owner frees the items with free().  New items are not initialised.
 */
#ifndef IOCOM_ARRAY_H
#define IOCOM_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Returns the room that array_reserve makes for NEED items: ROOM if it suffices, else ROOM (FIRST,
 * at least 1, if there is none) doubled until it does.  SIZE_MAX: doubling ends before NEED.
 * For owners who must ask whether they may have that much.
 */
static inline size_t array_room(size_t room, size_t need, size_t first)
{
	size_t n = room ? room : first;

	if (need <= room)
		return room;
	while (n < need) {
		if (n > SIZE_MAX / 2)
			return SIZE_MAX;
		n *= 2;
	}
	return n;
}

/* For array_reserve: returns ITEMS moved to where *ROOM, now larger, fits; MOST bounds it. */
static inline void *array_grown(void *items, size_t *room, size_t need, size_t first, size_t size,
				size_t most)
{
	size_t n = array_room(*room, need, first);
	void *grown = n <= most && n <= PTRDIFF_MAX / size ? realloc(items, n * size) : NULL;

	if (grown)
		*room = n;
	return grown;
}

/*
 * Makes ITEMS, a pointer to objects of any type, hold at least NEED items.  ROOM is a size_t or a
 * uint32_t, FIRST a constant: the room of a new array.  ITEMS and ROOM are variables, which change
 * together:
 *
 *	if (array_reserve(list->jobs, list->room, list->used + 1, 64))
 *		return -ENOMEM;
 *	list->jobs[list->used++] = job;
 *
 * Returns 0, or -ENOMEM if memory is out or ROOM's type or the address space cannot count so many;
 * then ITEMS and ROOM are as they were.  The items may move: a pointer to one of them is lost.
 * Two arrays that share one room are reserved each with its own copy of it, and the shared room is
 * set when both have succeeded.
 */
#define array_reserve(items, room, need, first)                                                    \
	({                                                                                         \
		__typeof__(items) *array_items_ = &(items);                                        \
		__typeof__(room) *array_room_ = &(room);                                           \
		size_t array_need_ = (need), array_n_ = *array_room_;                              \
		_Static_assert((first) > 0, "an array begins with room for something");            \
		_Static_assert((__typeof__(room))-1 > 0, "the room of an array is unsigned");      \
		if (array_need_ > array_n_) {                                                      \
			void *array_grown_ =                                                       \
				array_grown(*array_items_, &array_n_, array_need_, (first),        \
					    sizeof(**array_items_), (__typeof__(room))-1);         \
                                                                                                   \
			if (array_grown_) {                                                        \
				*array_items_ = array_grown_;                                      \
				*array_room_ = (__typeof__(room))array_n_;                         \
			}                                                                          \
		}                                                                                  \
		array_need_ > array_n_ ? -ENOMEM : 0;                                              \
	})

#endif
