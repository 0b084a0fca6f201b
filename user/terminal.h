/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What client and shim tell each other about a job's terminal: the key "tty" of the spec, and
 * the size in FRAME_WINSIZE.
 */
#ifndef IOCOM_TERMINAL_H
#define IOCOM_TERMINAL_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define TERMINAL_NAME_MAX   64 /* length of a terminal type (TERM), with NUL */
#define TERMINAL_KEYS	    10
#define TERMINAL_SIZE_BYTES 8 /* FRAME_WINSIZE: rows, columns, x and y pixels, u16 BE each */

struct terminal {
	bool wanted; /* false: the job gets pipes */
	bool utf8;   /* erasing deletes a whole UTF-8 character (IUTF8) */
	struct winsize size;
	char name[TERMINAL_NAME_MAX]; /* TERM; "": unknown */
	bool keyed;		      /* `keys` is set; else the kernel's defaults hold */
	uint8_t keys[TERMINAL_KEYS];  /* keys in the order of terminal_keys; 0: none */
};

/* The special keys that are sent, as indices of c_cc, in the order on the wire. */
extern const uint8_t terminal_keys[TERMINAL_KEYS];

/* Returns true if NAME may be a terminal type: letters, digits and "+-._", no path. */
bool terminal_name_valid(const char *name);
/*
 * Writes the map { "rows", "cols", "xpixel", "ypixel", "term", "utf8", "keys" (bytes, may be
 * absent) }, but not its key.
 */
void terminal_pack(msgpack_packer *pk, const struct terminal *terminal);
/* Reads the map; NULL: the job wants no terminal. Returns 0 or -EBADMSG. */
int terminal_unpack(struct terminal *terminal, const msgpack_object *map);

void terminal_size_put(uint8_t out[TERMINAL_SIZE_BYTES], const struct winsize *size);
/* Returns 0, or -EPROTO if LENGTH is wrong. */
int terminal_size_take(struct winsize *size, const uint8_t *payload, uint32_t length);

#endif
