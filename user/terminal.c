/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job's terminal on the wire; see terminal.h. */
#include "user/terminal.h"

#include <errno.h>
#include <string.h>
#include <termios.h>

#include "user/pack.h"

const uint8_t terminal_keys[TERMINAL_KEYS] = {VINTR, VQUIT,  VERASE, VKILL,   VEOF,
					      VSUSP, VSTART, VSTOP,  VWERASE, VLNEXT};

/* Programs make a file name of it, so it must not be a path. */
bool terminal_name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789+-._";
	size_t n = strlen(name);

	return n > 0 && n < TERMINAL_NAME_MAX && name[0] != '.' && strspn(name, allowed) == n;
}

void terminal_pack(msgpack_packer *pk, const struct terminal *terminal)
{
	msgpack_pack_map(pk, terminal->keyed ? 7 : 6);
	pack_u64(pk, "rows", terminal->size.ws_row);
	pack_u64(pk, "cols", terminal->size.ws_col);
	pack_u64(pk, "xpixel", terminal->size.ws_xpixel);
	pack_u64(pk, "ypixel", terminal->size.ws_ypixel);
	pack_str(pk, "term", terminal->name);
	pack_bool(pk, "utf8", terminal->utf8);
	if (terminal->keyed)
		pack_bin(pk, "keys", terminal->keys, sizeof(terminal->keys));
}

static int take_u16(const msgpack_object *map, const char *key, unsigned short *out)
{
	uint64_t value;

	if (unpack_u64(map, key, &value) || value > UINT16_MAX)
		return -EBADMSG;
	*out = (unsigned short)value;
	return 0;
}

static int terminal_take_keys(const msgpack_object *map, struct terminal *terminal)
{
	const msgpack_object *keys = unpack_get(map, "keys");

	if (!keys)
		return 0;
	if (keys->type != MSGPACK_OBJECT_BIN || keys->via.bin.size != sizeof(terminal->keys))
		return -EBADMSG;
	memcpy(terminal->keys, keys->via.bin.ptr, sizeof(terminal->keys));
	terminal->keyed = true;
	return 0;
}

int terminal_unpack(struct terminal *terminal, const msgpack_object *map)
{
	*terminal = (struct terminal){0};
	if (!map)
		return 0;
	if (map->type != MSGPACK_OBJECT_MAP || take_u16(map, "rows", &terminal->size.ws_row) ||
	    take_u16(map, "cols", &terminal->size.ws_col) ||
	    take_u16(map, "xpixel", &terminal->size.ws_xpixel) ||
	    take_u16(map, "ypixel", &terminal->size.ws_ypixel) ||
	    unpack_bool(map, "utf8", &terminal->utf8) ||
	    unpack_str(map, "term", terminal->name, sizeof(terminal->name)) ||
	    (*terminal->name && !terminal_name_valid(terminal->name)) ||
	    terminal_take_keys(map, terminal))
		return -EBADMSG;
	terminal->wanted = true;
	return 0;
}

void terminal_size_put(uint8_t out[TERMINAL_SIZE_BYTES], const struct winsize *size)
{
	const unsigned short values[] = {size->ws_row, size->ws_col, size->ws_xpixel,
					 size->ws_ypixel};

	for (int i = 0; i < 4; i++) {
		out[2 * i] = (uint8_t)(values[i] >> 8);
		out[2 * i + 1] = (uint8_t)values[i];
	}
}

int terminal_size_take(struct winsize *size, const uint8_t *payload, uint32_t length)
{
	unsigned short values[4];

	if (length != TERMINAL_SIZE_BYTES)
		return -EPROTO;
	for (int i = 0; i < 4; i++)
		values[i] = (unsigned short)(payload[2 * i] << 8 | payload[2 * i + 1]);
	*size = (struct winsize){values[0], values[1], values[2], values[3]};
	return 0;
}
