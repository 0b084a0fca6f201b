/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See squeeze.h. */
#include "agent/shim/move/squeeze.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "user/library.h"

#define LEVEL 1 /* the fastest that is no special case */

struct squeeze {
	void *library;
	void *packer, *unpacker; /* zstd's contexts */
	/* Functions of libzstd, whose interface is stable since 1.0. */
	void *(*packer_new)(void);
	void *(*unpacker_new)(void);
	size_t (*packer_free)(void *packer);
	size_t (*unpacker_free)(void *unpacker);
	size_t (*pack)(void *packer, void *out, size_t room, const void *data, size_t n, int level);
	size_t (*unpack)(void *unpacker, void *out, size_t room, const void *packed, size_t n);
	unsigned (*is_error)(size_t code);
};

static int squeeze_load(struct squeeze *s)
{
	const struct library_symbol wanted[] = {
		{"ZSTD_createCCtx", &s->packer_new}, {"ZSTD_createDCtx", &s->unpacker_new},
		{"ZSTD_freeCCtx", &s->packer_free},  {"ZSTD_freeDCtx", &s->unpacker_free},
		{"ZSTD_compressCCtx", &s->pack},     {"ZSTD_decompressDCtx", &s->unpack},
		{"ZSTD_isError", &s->is_error},
	};

	s->library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	return s->library ? library_symbols(s->library, wanted, sizeof(wanted) / sizeof(*wanted))
			  : -ENOENT;
}

struct squeeze *squeeze_new(void)
{
	struct squeeze *s = calloc(1, sizeof(*s));

	if (s && !squeeze_load(s)) {
		s->packer = s->packer_new();
		s->unpacker = s->unpacker_new();
	}
	if (s && s->packer && s->unpacker)
		return s;
	squeeze_free(s);
	return NULL;
}

void squeeze_free(struct squeeze *s)
{
	if (!s)
		return;
	if (s->packer)
		s->packer_free(s->packer);
	if (s->unpacker)
		s->unpacker_free(s->unpacker);
	if (s->library)
		dlclose(s->library);
	free(s);
}

size_t squeeze_pack(struct squeeze *s, const void *data, size_t n, void *out, size_t room)
{
	size_t packed = s->pack(s->packer, out, room, data, n, LEVEL);

	return s->is_error(packed) ? 0 : packed;
}

size_t squeeze_unpack(struct squeeze *s, const void *packed, size_t n, void *out, size_t room)
{
	size_t size = s->unpack(s->unpacker, out, room, packed, n);

	return s->is_error(size) ? 0 : size;
}

void squeeze_paced(struct squeeze_pace *p, size_t n, uint64_t now_ns)
{
	double *known = &p->ns_per_byte[p->packs];
	bool better;

	if (!p->began_ns)
		p->began_ns = now_ns;
	p->done += n;
	if (p->done < SQUEEZE_BLOCK)
		return;
	*known = (double)(now_ns - p->began_ns) / (double)p->done;
	p->began_ns = now_ns;
	p->done = 0;
	p->blocks++;
	better = p->ns_per_byte[1] > 0 && p->ns_per_byte[1] < p->ns_per_byte[0];
	p->packs = p->ns_per_byte[!p->packs] <= 0 ? !p->packs
		   : p->blocks % SQUEEZE_TRY == 0 ? !better
						  : better;
}
