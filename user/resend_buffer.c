/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The last bytes of a stream; see resend_buffer.h. */
#include "user/resend_buffer.h"

#include <sys/mman.h>

_Static_assert((RESEND_BYTES & (RESEND_BYTES - 1)) == 0, "an offset is masked into the ring");

static size_t resend_buffer_place(uint64_t offset)
{
	return (size_t)(offset & (RESEND_BYTES - 1));
}

uint8_t *resend_space(struct resend_buffer *keep, size_t *n)
{
	size_t at = resend_buffer_place(keep->end), room = resend_room(keep);

	*n = 0;
	if (!keep->data) {
		/* Use mmap, not malloc: only pages that are written take memory. */
		void *data = mmap(NULL, RESEND_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (data == MAP_FAILED)
			return NULL;
		keep->data = data;
	}
	*n = room < RESEND_BYTES - at ? room : RESEND_BYTES - at;
	return keep->data + at;
}

void resend_added(struct resend_buffer *keep, size_t n)
{
	keep->end += n;
}

const uint8_t *resend_at(const struct resend_buffer *keep, uint64_t offset, size_t *n)
{
	size_t at = resend_buffer_place(offset), have = (size_t)(keep->end - offset);

	*n = have < RESEND_BYTES - at ? have : RESEND_BYTES - at;
	return have ? keep->data + at : NULL;
}

void resend_drop(struct resend_buffer *keep, uint64_t offset)
{
	keep->start = offset;
	if (keep->start == keep->end)
		resend_free(keep);
}

void resend_free(struct resend_buffer *keep)
{
	if (keep->data)
		munmap(keep->data, RESEND_BYTES);
	keep->data = NULL;
	keep->start = keep->end;
}
