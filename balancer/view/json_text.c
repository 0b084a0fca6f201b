/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Writes JSON as text; see json_text.h.  The JSON library escapes the strings. */
#include "balancer/view/json_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

struct text {
	char *bytes;
	size_t used, room;
	bool failed;
};

static void json_text_put(struct text *t, const char *bytes, size_t n)
{
	if (t->failed)
		return;
	if (array_reserve(t->bytes, t->room, t->used + n + 1, 1024)) {
		t->failed = true;
		return;
	}
	memcpy(t->bytes + t->used, bytes, n);
	t->used += n;
	t->bytes[t->used] = 0;
}

size_t json_text_number(double value, char out[JSON_TEXT_NUMBER_MAX])
{
	int length = 0;

	for (int digits = 15; digits <= 17; digits++) {
		length = snprintf(out, JSON_TEXT_NUMBER_MAX, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			break;
	}
	for (char *c = out; *c; c++)
		if (*c == ',') /* some locales write a decimal comma */
			*c = '.';
	if (!strpbrk(out, ".e")) {
		memcpy(out + length, ".0", 3);
		length += 2;
	}
	return (size_t)length;
}

static void put_number(struct text *t, double value)
{
	char out[JSON_TEXT_NUMBER_MAX];

	if (isfinite(value))
		json_text_put(t, out, json_text_number(value, out));
	else
		t->failed = true;
}

static void json_text_put_string(struct text *t, const json_t *string)
{
	size_t n = json_dumpb(string, NULL, 0, JSON_ENCODE_ANY);
	char *bytes = malloc(n + 1);

	if (!bytes || json_dumpb(string, bytes, n, JSON_ENCODE_ANY) != n)
		t->failed = true;
	else
		json_text_put(t, bytes, n);
	free(bytes);
}

static void put_key(struct text *t, const char *key)
{
	json_t *string;

	/* The keys of our documents are plain words; other keys take the slow path. */
	if (strspn(key, "abcdefghijklmnopqrstuvwxyz_0123456789-") == strlen(key)) {
		json_text_put(t, "\"", 1);
		json_text_put(t, key, strlen(key));
		json_text_put(t, "\"", 1);
		return;
	}
	string = json_string(key);
	if (string)
		json_text_put_string(t, string);
	else
		t->failed = true;
	json_decref(string);
}

static void put_value(struct text *t, const json_t *value);

static void put_object(struct text *t, const json_t *object)
{
	bool first = true;
	const char *key;
	json_t *value;

	json_text_put(t, "{", 1);
	json_object_foreach ((json_t *)object, key, value) {
		json_text_put(t, ",", !first);
		first = false;
		put_key(t, key);
		json_text_put(t, ":", 1);
		put_value(t, value);
	}
	json_text_put(t, "}", 1);
}

static void put_array(struct text *t, const json_t *array)
{
	json_t *value;
	size_t i;

	json_text_put(t, "[", 1);
	json_array_foreach (array, i, value) {
		json_text_put(t, ",", i > 0);
		put_value(t, value);
	}
	json_text_put(t, "]", 1);
}

static void put_value(struct text *t, const json_t *value)
{
	char out[JSON_TEXT_NUMBER_MAX];

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_object(t, value);
		break;
	case JSON_ARRAY:
		put_array(t, value);
		break;
	case JSON_STRING:
		json_text_put_string(t, value);
		break;
	case JSON_INTEGER:
		snprintf(out, sizeof(out), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		json_text_put(t, out, strlen(out));
		break;
	case JSON_REAL:
		put_number(t, json_real_value(value));
		break;
	case JSON_TRUE:
		json_text_put(t, "true", 4);
		break;
	case JSON_FALSE:
		json_text_put(t, "false", 5);
		break;
	case JSON_NULL:
		json_text_put(t, "null", 4);
		break;
	}
}

char *json_text_dump(const json_t *document, size_t *length)
{
	struct text t = {0};

	if (!document)
		return NULL;
	put_value(&t, document);
	if (t.failed) {
		free(t.bytes);
		return NULL;
	}
	if (length)
		*length = t.used;
	return t.bytes;
}
