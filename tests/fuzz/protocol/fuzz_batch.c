/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Messages between batch and worker are refused, or pack to the same bytes again; and lines. */
#include <errno.h>

#include "balancer/batch/batch.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

#define WORDS 16

bool sample(int n, FILE *out)
{
	struct queue q = {0};

	must(batch_put(&q, BATCH_COMMAND, 1, "gzip -9 a", 9) == 0);
	must(batch_put(&q, BATCH_OUT, 1, "text", 4) == 0);
	must(batch_put_end(&q, 1, 256, 99) == 0);
	must(batch_put(&q, BATCH_BACK, 2, NULL, 0) == 0);
	fwrite(queue_front(&q), 1, q.length, out);
	queue_free(&q);
	return !n;
}

FUZZ_SAMPLES

static void try_line(const struct batch_message *m)
{
	char *line = strndup((const char *)m->data, m->length), *copy = strdup(line);
	char *words[WORDS];
	size_t length = strlen(line), n;

	must(line && copy);
	n = batch_words(line, words, WORDS);
	must(n < WORDS);
	if (!n)
		must(!strcmp(line, copy));
	for (size_t i = 0; i < n; i++)
		must(words[i] >= line && words[i] < line + length && *words[i]);
	free(line);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct batch_message m;
	struct queue q = {0};
	uint64_t wall_ns;
	ssize_t n;
	int status;

	for (size_t at = 0; (n = batch_take(data + at, size - at, &m)) > 0; at += (size_t)n) {
		must((size_t)n <= size - at);
		must(batch_put(&q, m.kind, m.sequence, m.data, m.length) == 0);
		must(q.length == (size_t)n && !memcmp(queue_front(&q), data + at, q.length));
		queue_free(&q);
		if (m.kind == BATCH_COMMAND)
			try_line(&m);
		if (m.kind == BATCH_END)
			must((batch_take_end(&m, &status, &wall_ns) == 0) == (m.length == 12));
	}
	must(n == 0 || n == -EPROTO);
	return 0;
}
