/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Converts between JSON objects and structures; see json_field.h. */
#include "balancer/view/json_field.h"
#include "balancer/view/json_msgpack.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/json_text.h"

#define FOUND_MAX 60

/* Makes text from others safe for a terminal. */
static void json_field_tame(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

size_t field_enter(struct field_reader *r, const char *key, size_t index)
{
	size_t mark = r->length, room = sizeof(r->path) - mark;
	int n = key ? snprintf(r->path + mark, room, "%s%.80s", mark ? "." : "", key)
		    : snprintf(r->path + mark, room, "[%zu]", index);

	r->length += (size_t)n < room ? (size_t)n : room - 1;
	json_field_tame(r->path + mark);
	return mark;
}

void field_leave(struct field_reader *r, size_t mark)
{
	r->length = mark;
	r->path[mark] = 0;
}

static size_t find_path(const struct field_reader *r);

/* Writes ":LINE:COLUMN" of byte AT of the text. */
static void place_text(const struct field_reader *r, size_t at, char out[48])
{
	uint64_t line = r->line;
	size_t start = 0;

	for (size_t i = 0; i < at && i < r->text_length; i++) {
		if (r->text[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	snprintf(out, 48, ":%llu:%zu", (unsigned long long)line, at - start + 1);
}

int field_fail(struct field_reader *r, const char *fmt, ...)
{
	char text[600], place[48] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->packed)
		snprintf(place, sizeof(place), ":%llu", (unsigned long long)r->line);
	else if (r->text)
		place_text(r, find_path(r), place);
	return iocom_err_set(r->err, -EINVAL, "%.250s%s: %s%s%s", r->file, place, r->path,
			     r->length ? ": " : "", text);
}

int field_expected(struct field_reader *r, const char *wanted, const json_t *value)
{
	char *text;
	size_t n;
	int rc;

	if (!value)
		return field_fail(r, "expected %s, found nothing", wanted);
	if (json_is_object(value) || json_is_array(value))
		return field_fail(r, "expected %s, found %s", wanted,
				  json_is_object(value) ? "an object" : "a list");
	text = json_text_dump(value, &n);
	if (!text)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	json_field_tame(text);
	rc = field_fail(r, "expected %s, found %.*s%s", wanted, FOUND_MAX, text,
			n > FOUND_MAX ? "..." : "");
	free(text);
	return rc;
}

int field_number(struct field_reader *r, const json_t *value, double *out)
{
	double number = json_number_value(value);

	if (!json_is_number(value))
		return field_expected(r, "a number", value);
	if (!isfinite(number) || number < 0)
		return field_expected(r, "a number that is not negative", value);
	*out = number;
	return 0;
}

int field_large(struct field_reader *r, const json_t *value, uint64_t most, uint64_t *out)
{
	double number = json_number_value(value);
	char wanted[80];

	snprintf(wanted, sizeof(wanted), "a whole number from 0 to %llu", (unsigned long long)most);
	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
	    (uint64_t)json_integer_value(value) <= most) {
		*out = (uint64_t)json_integer_value(value);
		return 0;
	}
	/* 1e3 and 4.0 are whole numbers, too. */
	if (!json_is_real(value) || !(number >= 0 && number < 9e15) || number != floor(number) ||
	    number > (double)most)
		return field_expected(r, wanted, value);
	*out = (uint64_t)number;
	return 0;
}

static int read_signed(struct field_reader *r, const json_t *value, int32_t *out)
{
	if (!json_is_integer(value) || json_integer_value(value) > INT32_MAX ||
	    json_integer_value(value) < INT32_MIN)
		return field_expected(r, "a whole number", value);
	*out = (int32_t)json_integer_value(value);
	return 0;
}

static int json_field_read_count(struct field_reader *r, const json_t *value, uint32_t *out)
{
	uint64_t large;
	int rc = field_large(r, value, UINT32_MAX, &large);

	if (!rc)
		*out = (uint32_t)large;
	return rc;
}

static int json_field_read_text(struct field_reader *r, const json_t *value, char *out, size_t size)
{
	const char *text = json_string_value(value);
	char wanted[80];

	snprintf(wanted, sizeof(wanted), "a text of at most %zu bytes", size - 1);
	if (!text || json_string_length(value) >= size || strlen(text) != json_string_length(value))
		return field_expected(r, wanted, value);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return field_expected(r, "a text without control characters", value);
	memset(out, 0, size);
	memcpy(out, text, json_string_length(value));
	return 0;
}

static int read_one(struct field_reader *r, const json_t *value, const struct field *f, void *at)
{
	int rc;

	switch (f->kind) {
	case FIELD_POSITIVE:
		rc = field_number(r, value, at);
		return rc || *(double *)at > 0 ? rc : field_expected(r, "a number above 0", value);
	case FIELD_OPTIONAL:
		if (json_is_null(value)) {
			*(double *)at = -1;
			return 0;
		}
		return field_number(r, value, at);
	case FIELD_NUMBER:
		return field_number(r, value, at);
	case FIELD_SIGNED:
		return read_signed(r, value, at);
	case FIELD_COUNT:
		return json_field_read_count(r, value, at);
	case FIELD_LARGE:
		return field_large(r, value, INT64_MAX, at);
	case FIELD_TEXT:
		return json_field_read_text(r, value, at, f->size);
	case FIELD_BOOL:
		if (!json_is_boolean(value))
			return field_expected(r, "true or false", value);
		*(bool *)at = json_is_true(value);
		return 0;
	case FIELD_ELSEWHERE:
		break;
	}
	return 0;
}

static int json_field_unknown(struct field_reader *r, const struct field *table, size_t n)
{
	char known[500] = "";

	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(known);

		snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "", table[i].name);
	}
	return field_fail(r, "unknown field; expected one of %s", known);
}

int field_read(struct field_reader *r, const json_t *object, const struct field *table, size_t n,
	       void *base)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return field_expected(r, "an object", object);
	json_object_foreach ((json_t *)object, key, value) {
		size_t mark = field_enter(r, key, 0), i = 0;
		int rc;

		while (i < n && strcmp(key, table[i].name) != 0)
			i++;
		rc = i == n ? json_field_unknown(r, table, n)
			    : read_one(r, value, &table[i], (char *)base + table[i].offset);
		if (rc)
			return rc;
		field_leave(r, mark);
	}
	return 0;
}

int field_set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) ? -ENOMEM : 0;
}

/* TEXT as a reader accepts it: '?' replaces invalid bytes. */
static json_t *text_json(const char *text)
{
	char copy[512];
	json_t *out;

	snprintf(copy, sizeof(copy), "%s", text);
	json_field_tame(copy);
	out = json_string(copy);
	if (out)
		return out;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

static json_t *json_field_write_one(const struct field *f, const void *at)
{
	switch (f->kind) {
	case FIELD_OPTIONAL:
		if (*(const double *)at < 0)
			return json_null();
		return json_real(*(const double *)at);
	case FIELD_NUMBER:
	case FIELD_POSITIVE:
		return json_real(*(const double *)at);
	case FIELD_SIGNED:
		return json_integer(*(const int32_t *)at);
	case FIELD_COUNT:
		return json_integer(*(const uint32_t *)at);
	case FIELD_LARGE:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	case FIELD_TEXT:
		return text_json(at);
	case FIELD_ELSEWHERE:
		break;
	}
	return NULL;
}

int field_write(json_t *object, const struct field *table, size_t n, const void *base)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		if (table[i].kind != FIELD_ELSEWHERE)
			rc = field_set(object, table[i].name,
				       json_field_write_one(&table[i],
							    (const char *)base + table[i].offset));
	return rc;
}

bool field_same(const struct field *table, size_t n, const void *a, const void *b)
{
	for (size_t i = 0; i < n; i++) {
		const char *left = (const char *)a + table[i].offset;
		const char *right = (const char *)b + table[i].offset;

		if (table[i].kind == FIELD_ELSEWHERE)
			continue;
		if (table[i].kind == FIELD_TEXT ? strcmp(left, right) != 0
						: memcmp(left, right, table[i].size) != 0)
			return false;
	}
	return true;
}

/* --- finding a place in the text --------------------------------------------------- */

#define TRAIL_DEEPEST 64

/* A walk over the text that tracks the path of the value before it. */
struct trail {
	const char *text;
	size_t at, end;
	struct field_reader path;    /* only its path is used */
	const char *wanted;	     /* the path to stop at; NULL: walk to the end */
	size_t marks[TRAIL_DEEPEST]; /* path length outside each open bracket */
	/* index of the current element; SIZE_MAX: inside an object */
	size_t indexes[TRAIL_DEEPEST];
	size_t depth;
};

/* Steps over a string and copies its content, as written, to OUT. */
static void trail_string(struct trail *t, char *out, size_t size)
{
	size_t n = 0;

	for (t->at++; t->at < t->end && t->text[t->at] != '"'; t->at++) {
		if (t->text[t->at] == '\\')
			t->at++;
		if (n + 1 < size && t->at < t->end)
			out[n++] = t->text[t->at];
	}
	out[n] = 0;
	t->at++;
}

static void trail_open(struct trail *t, bool object)
{
	t->marks[t->depth] = t->path.length;
	t->indexes[t->depth] = object ? SIZE_MAX : 0;
	t->depth++;
	if (!object)
		field_enter(&t->path, NULL, 0);
}

static void trail_next(struct trail *t)
{
	size_t top = t->depth - 1;

	field_leave(&t->path, t->marks[top]);
	if (t->indexes[top] != SIZE_MAX)
		field_enter(&t->path, NULL, ++t->indexes[top]);
}

/* Steps over one character outside strings. */
static void trail_step(struct trail *t, const char *key)
{
	char c = t->text[t->at];

	if (c == '{' || c == '[')
		trail_open(t, c == '{');
	else if ((c == '}' || c == ']') && t->depth)
		field_leave(&t->path, t->marks[--t->depth]);
	else if (c == ',' && t->depth)
		trail_next(t);
	else if (c == ':' && t->depth && t->indexes[t->depth - 1] == SIZE_MAX)
		field_enter(&t->path, key, 0);
	t->at++;
}

/*
 * Walks on through the text.  Returns true right behind the character that opens the wanted path.
 */
static bool trail_walk(struct trail *t)
{
	char key[81] = "";

	while (t->at < t->end && t->depth < TRAIL_DEEPEST) {
		if (t->text[t->at] == '"') {
			trail_string(t, key, sizeof(key));
			continue;
		}
		trail_step(t, key);
		if (t->wanted && !strcmp(t->path.path, t->wanted))
			return true;
	}
	return false;
}

/* Finds where the value at the path begins; for a missing value, where its parent begins. */
static size_t find_path(const struct field_reader *r)
{
	char wanted[sizeof(r->path)];
	size_t at = 0;

	for (snprintf(wanted, sizeof(wanted), "%s", r->path); *wanted;) {
		struct trail t = {.text = r->text, .end = r->text_length, .wanted = wanted};
		char *dot = strrchr(wanted, '.'), *bracket = strrchr(wanted, '[');

		if (trail_walk(&t)) {
			at = t.at;
			break;
		}
		*(dot > bracket ? dot : bracket ? bracket : wanted) = 0;
	}
	while (at < r->text_length && strchr(" \t\r\n", r->text[at]))
		at++;
	return at;
}

/* Finds where the token begins that the parser refused; AT is its end. */
static size_t token_start(const struct field_reader *r, const json_error_t *error, size_t at)
{
	static const char near[] = " near '";
	const char *token = strstr(error->text, near), *last = strrchr(error->text, '\'');
	size_t n = 0;

	if (token) {
		token += sizeof(near) - 1;
		n = last > token ? (size_t)(last - token) : 0;
	}
	if (n && n <= at && !memcmp(r->text + at - n, token, n))
		return at - n;
	return at;
}

static int parse_packed(struct field_reader *r, json_t **document)
{
	const char *wrong;
	size_t used;
	int rc = json_msgpack_load(r->text, r->text_length, document, &used, &wrong);

	r->packed = true;
	if (!rc && used < r->text_length) {
		json_decref(*document);
		*document = NULL;
		rc = -EINVAL;
		wrong = "expected the end of the document";
	}
	if (!rc)
		return 0;
	if (rc == -ENOMEM)
		return iocom_err_set(r->err, rc, "out of memory");
	return iocom_err_set(r->err, -EINVAL, "%.250s:%llu: MessagePack, byte %zu: %s", r->file,
			     (unsigned long long)r->line, used,
			     rc == -EAGAIN ? "cut off here" : wrong);
}

int field_parse(struct field_reader *r, json_t **document)
{
	struct trail t = {.text = r->text};
	json_error_t error;
	char place[48];
	size_t at;

	if (json_msgpack_begins(r->text, r->text_length))
		return parse_packed(r, document);
	*document = json_loadb(r->text, r->text_length, JSON_REJECT_DUPLICATES, &error);
	if (*document)
		return 0;
	/* If the parser says nothing about the text, the text was not the problem. */
	if (json_error_code(&error) == json_error_out_of_memory || !error.text[0])
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	at = error.position > 0 ? (size_t)error.position : 0;
	t.end = at < r->text_length ? at : r->text_length;
	trail_walk(&t);
	place_text(r, token_start(r, &error, t.end), place);
	json_field_tame(error.text);
	return iocom_err_set(r->err, -EINVAL, "%.250s%s: %s%s%s%s", r->file, place, t.path.path,
			     t.path.length ? ": " : "", error.text,
			     json_error_code(&error) == json_error_invalid_syntax
				     ? "; expected a JSON value"
				     : "");
}
