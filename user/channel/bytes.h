/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Numbers on the wire are big-endian. */
#ifndef IOCOM_BYTES_H
#define IOCOM_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void bytes_put_u32(uint8_t out[4], uint32_t value)
{
	value = htobe32(value);
	memcpy(out, &value, sizeof(value));
}

static inline void bytes_put_u64(uint8_t out[8], uint64_t value)
{
	value = htobe64(value);
	memcpy(out, &value, sizeof(value));
}

static inline uint64_t bytes_u64(const uint8_t at[8])
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

#endif
