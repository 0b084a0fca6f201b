/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The last bytes of a stream; see keep.h. */
#include "keep.h"

#include <sys/mman.h>

_Static_assert((KEEP_BYTES & (KEEP_BYTES - 1)) == 0, "an offset is masked into the ring");

static size_t place(uint64_t offset)
{
	return (size_t)(offset & (KEEP_BYTES - 1));
}

uint8_t *keep_space(struct keep *keep, size_t *n)
{
	size_t at = place(keep->end), room = keep_room(keep);

	*n = 0;
	if (!keep->data) {
		/* Mapped, not malloc'ed: only what is written to takes memory. */
		void *data = mmap(NULL, KEEP_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (data == MAP_FAILED)
			return NULL;
		keep->data = data;
	}
	*n = room < KEEP_BYTES - at ? room : KEEP_BYTES - at;
	return keep->data + at;
}

void keep_added(struct keep *keep, size_t n)
{
	keep->end += n;
}

const uint8_t *keep_at(const struct keep *keep, uint64_t offset, size_t *n)
{
	size_t at = place(offset), have = (size_t)(keep->end - offset);

	*n = have < KEEP_BYTES - at ? have : KEEP_BYTES - at;
	return have ? keep->data + at : NULL;
}

void keep_drop(struct keep *keep, uint64_t offset)
{
	keep->start = offset;
	if (keep->start == keep->end)
		keep_free(keep);
}

void keep_free(struct keep *keep)
{
	if (keep->data)
		munmap(keep->data, KEEP_BYTES);
	keep->data = NULL;
	keep->start = keep->end;
}
