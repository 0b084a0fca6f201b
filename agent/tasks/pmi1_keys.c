/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pmi1_keys.h. */
#include "agent/tasks/pmi1_keys.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tasks/pmi1_line.h"

struct pair {
	char *value;
	char key[PMI1_KEY_MAX];
};

static int pair_compare(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static void pair_free(void *pair)
{
	free(((struct pair *)pair)->value);
	free(pair);
}

void pmi1_keys_free(struct pmi1_keys *keys)
{
	tdestroy(keys->tree, pair_free);
	queue_free(&keys->fresh);
	*keys = (struct pmi1_keys){0};
}

static struct pair *keys_find(const struct pmi1_keys *keys, const char *key)
{
	struct pair wanted;
	void *found;

	if (strlen(key) >= sizeof(wanted.key))
		return NULL;
	strcpy(wanted.key, key);
	found = tfind(&wanted, (void *const *)&keys->tree, pair_compare);
	return found ? *(struct pair **)found : NULL;
}

static struct pair *keys_add(struct pmi1_keys *keys, const char *key)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	if (!pair)
		return NULL;
	strcpy(pair->key, key);
	if (!tsearch(pair, &keys->tree, pair_compare)) {
		free(pair);
		return NULL;
	}
	keys->count++;
	return pair;
}

int pmi1_keys_put(struct pmi1_keys *keys, const char *key, const char *value, int here)
{
	size_t nkey = strlen(key), nvalue = strlen(value);
	struct pair *pair;
	char *copy;

	if (!nkey || nkey >= PMI1_KEY_MAX || nvalue >= PMI1_VALUE_MAX || strpbrk(key, "= \n") ||
	    strpbrk(value, " \n"))
		return -EINVAL;
	pair = keys_find(keys, key);
	if ((!pair && keys->count == PMI1_KEYS_MAX) ||
	    (here && keys->fresh.length + nkey + nvalue + 2 > PMI1_FRESH_MAX))
		return -ENOSPC;
	copy = strdup(value);
	if (!copy || (!pair && !(pair = keys_add(keys, key)))) {
		free(copy);
		return -ENOMEM;
	}
	free(pair->value);
	pair->value = copy;
	if (here && (queue_push(&keys->fresh, key, nkey) || queue_push(&keys->fresh, "=", 1) ||
		     queue_push(&keys->fresh, value, nvalue) || queue_push(&keys->fresh, "\n", 1)))
		return -ENOMEM;
	return 0;
}

const char *pmi1_keys_get(const struct pmi1_keys *keys, const char *key)
{
	const struct pair *pair = keys_find(keys, key);

	return pair ? pair->value : NULL;
}

int pmi1_keys_learn(struct pmi1_keys *keys, const char *data, size_t length)
{
	while (length) {
		char line[PMI1_KEY_MAX + PMI1_VALUE_MAX + 2], *equals;
		const char *end = memchr(data, '\n', length);
		size_t n = end ? (size_t)(end - data) : 0;
		int rc;

		if (!end || n >= sizeof(line) || memchr(data, 0, n))
			return -EBADMSG;
		memcpy(line, data, n);
		line[n] = 0;
		equals = strchr(line, '=');
		if (!equals)
			return -EBADMSG;
		*equals = 0;
		rc = pmi1_keys_put(keys, line, equals + 1, 0);
		if (rc)
			return rc;
		data += n + 1;
		length -= n + 1;
	}
	return 0;
}
