/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * MessagePack: decoding, encoding and decoding again gives the same document; an incomplete
 * message becomes whole only with the rest of its bytes.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/json_msgpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data, *wrong;
	json_t *document, *again;
	size_t used, n, most;
	char *packed;
	int rc = json_msgpack_load(bytes, size, &document, &used, &wrong);

	must(used <= size);
	if (rc) {
		must(rc == -EAGAIN || (rc == -EINVAL && wrong));
		return 0;
	}
	packed = json_msgpack_dump(document, &n);
	must(packed != NULL);
	must(json_msgpack_load(packed, n, &again, &most, &wrong) == 0 && most == n);
	must(json_equal(document, again));
	json_decref(again);
	again = NULL;
	must(json_msgpack_load(packed, n - 1, &again, &most, &wrong) == -EAGAIN);
	free(packed);
	json_decref(document);
	return 0;
}
