/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See records.h. */
#include "user/channel/records.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "user/channel/bytes.h"

size_t records_size(size_t length)
{
	size_t n = (length + NOISE_PLAINTEXT_MAX - 1) / NOISE_PLAINTEXT_MAX;

	return length + n * (RECORD_HEAD + NOISE_TAG);
}

/* Moves LENGTH bytes from the pieces, of which AT bytes of the first are taken, to OUT. */
static void records_gather(const struct iovec **piece, size_t *at, uint8_t *out, size_t length)
{
	while (length) {
		size_t n = (*piece)->iov_len - *at;

		if (n > length)
			n = length;
		if (n)
			memcpy(out, (const uint8_t *)(*piece)->iov_base + *at, n);
		out += n;
		length -= n;
		*at += n;
		if (*at == (*piece)->iov_len) {
			++*piece;
			*at = 0;
		}
	}
}

int records_seal(struct records *records, const struct iovec *pieces, size_t n, uint8_t *out)
{
	size_t left = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		left += pieces[i].iov_len;
	while (left) {
		size_t length = left < NOISE_PLAINTEXT_MAX ? left : NOISE_PLAINTEXT_MAX;
		int rc;

		out[0] = (uint8_t)((length + NOISE_TAG) >> 8);
		out[1] = (uint8_t)(length + NOISE_TAG);
		out += RECORD_HEAD;
		records_gather(&pieces, &at, out, length);
		rc = noise_seal(&records->sends, out, length, out);
		if (rc)
			return rc;
		noise_rekey(&records->sends);
		out += length + NOISE_TAG;
		left -= length;
	}
	return 0;
}

int records_length(const uint8_t head[RECORD_HEAD], size_t *length)
{
	*length = (size_t)head[0] << 8 | head[1];
	return *length < RECORD_LEAST ? -EBADMSG : 0;
}

int records_open(struct records *records, uint8_t *message, size_t length)
{
	int rc = noise_open(&records->receives, message, length, message);

	if (!rc)
		noise_rekey(&records->receives);
	return rc;
}

void records_erase(struct records *records)
{
	sodium_memzero(records, sizeof(*records));
}

static void records_pack_key(const struct noise_key *key, uint8_t *out)
{
	memcpy(out, key->key, NOISE_KEY);
	bytes_put_u64(out + NOISE_KEY, key->n);
}

static void records_unpack_key(struct noise_key *key, const uint8_t *data)
{
	memcpy(key->key, data, NOISE_KEY);
	key->n = bytes_u64(data + NOISE_KEY);
}

void records_pack(const struct records *records, uint8_t out[RECORDS_PACKED])
{
	records_pack_key(&records->sends, out);
	records_pack_key(&records->receives, out + RECORDS_PACKED / 2);
}

int records_unpack(struct records *records, const void *data, size_t length)
{
	if (length != RECORDS_PACKED)
		return -EBADMSG;
	records_unpack_key(&records->sends, data);
	records_unpack_key(&records->receives, (const uint8_t *)data + RECORDS_PACKED / 2);
	return 0;
}
