/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What client and shim tell each other about a job's terminal: the key "tty" of
 * the spec, and the size that FRAME_WINSIZE carries.
 */
#ifndef IOCOM_TERMINAL_H
#define IOCOM_TERMINAL_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define TERMINAL_NAME_MAX   64 /* of a kind of terminal (TERM), with NUL */
#define TERMINAL_KEYS	    10
#define TERMINAL_SIZE_BYTES 8 /* FRAME_WINSIZE: rows, columns, x and y pixels, u16 BE each */

struct terminal {
	bool wanted; /* false: the job gets pipes */
	bool utf8;   /* a character that is erased is one of UTF-8 (IUTF8) */
	struct winsize size;
	char name[TERMINAL_NAME_MAX]; /* TERM; "" unknown */
	bool keyed;		      /* the special keys are known; else the kernel's */
	uint8_t keys[TERMINAL_KEYS];  /* as terminal_keys has them; 0 none */
};

/* The special keys that go along, as indices of c_cc, in the order of the wire. */
extern const uint8_t terminal_keys[TERMINAL_KEYS];

/* Whether NAME may be a kind of terminal: letters, digits and "+-._", no path. */
bool terminal_name_valid(const char *name);
/* Writes the map { "rows", "cols", "xpixel", "ypixel", "term", "utf8", "keys" (bytes, may be
 * absent) }, without a key. */
void terminal_pack(msgpack_packer *pk, const struct terminal *terminal);
/* The other way, from the value of the key; NULL: none is wanted.  0 or -EBADMSG. */
int terminal_unpack(struct terminal *terminal, const msgpack_object *map);

void terminal_size_put(uint8_t out[TERMINAL_SIZE_BYTES], const struct winsize *size);
/* 0; -EPROTO when LENGTH is another. */
int terminal_size_take(struct winsize *size, const uint8_t *payload, uint32_t length);

#endif
