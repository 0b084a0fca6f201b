/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Compresses pieces of images with zstd, where the link is slower than that.  Only a process that
 * moves a job loads the library, which dpkg and systemd bring along; without it images go as they
 * are.
 */
#ifndef IOCOM_SHIM_MOVE_SQUEEZE_H
#define IOCOM_SHIM_MOVE_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct squeeze;

/* NULL: there is no such library, or no memory. */
struct squeeze *squeeze_new(void);
void squeeze_free(struct squeeze *squeeze);
/* Compresses N bytes into OUT.  Returns the size; 0: they do not become smaller than ROOM. */
size_t squeeze_pack(struct squeeze *squeeze, const void *data, size_t n, void *out, size_t room);
/* Returns the size of what PACKED was made of, at most ROOM; 0: it is damaged, or larger. */
size_t squeeze_unpack(struct squeeze *squeeze, const void *packed, size_t n, void *out,
		      size_t room);

/*
 * Whether compressing pays: blocks of SQUEEZE_BLOCK bytes are sent in either way, and the one that
 * took less for a byte is gone on with; the other is tried again every SQUEEZE_TRY blocks.
 */
#define SQUEEZE_BLOCK (2u << 20)
#define SQUEEZE_TRY   8
struct squeeze_pace {
	double ns_per_byte[2]; /* plain, compressed; 0: not known */
	bool packs;	       /* how this block goes */
	unsigned blocks;
	size_t done; /* of this block */
	uint64_t began_ns;
};
/* N bytes went as PACE->packs says; it is NOW_NS.  May change that for the next ones. */
void squeeze_paced(struct squeeze_pace *pace, size_t n, uint64_t now_ns);

#endif
