/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Lists of node names with ranges; see nodelist.h. */
#include "balancer/run/nodelist.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "iocom/vector.h"

#define DIGITS_MAX 9 /* most digits of a number in a range */

/* One item of the list while its brackets are expanded. */
struct item {
	struct nodelist *out;
	struct iocom_err *err;
	const char *text; /* the item, for sentences */
	size_t length;
	char name[IOCOM_NAME_MAX];
};

static int nodelist_refuse(const struct item *item, const char *why)
{
	return iocom_err_set(item->err, -EINVAL, "%s in the list of nodes: '%.*s'", why,
			     item->length < 200 ? (int)item->length : 200, item->text);
}

int nodelist_add(struct nodelist *list, const char *name)
{
	char *copy;

	if (array_reserve(list->names, list->room, list->count + 1, 16))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	list->names[list->count++] = copy;
	return 0;
}

void nodelist_fini(struct nodelist *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
	*list = (struct nodelist){0};
}

/* --- parsing ---------------------------------------------------------------------- */

static int expand(struct item *item, size_t used, const char *at, const char *end);

/* Reads the digits at AT into VALUE.  Returns their number; 0: none, or too many. */
static size_t nodelist_take_number(const char *at, const char *end, unsigned long *value)
{
	size_t n = 0;

	*value = 0;
	for (; at + n < end && isdigit((unsigned char)at[n]); n++) {
		if (n == DIGITS_MAX)
			return 0;
		*value = 10 * *value + (unsigned long)(at[n] - '0');
	}
	return n;
}

/* Puts FIRST to LAST, each with at least WIDTH digits, in place of the brackets. */
static int expand_run(struct item *item, size_t used, unsigned long first, unsigned long last,
		      size_t width, const char *rest, const char *end)
{
	if (last < first)
		return nodelist_refuse(item, "there is a range that runs backwards");
	if (last - first >= NODELIST_MAX)
		return nodelist_refuse(item, "there are too many names");
	for (unsigned long k = first; k <= last; k++) {
		int n = snprintf(item->name + used, sizeof(item->name) - used, "%0*lu", (int)width,
				 k);
		int rc;

		if ((size_t)n >= sizeof(item->name) - used)
			return nodelist_refuse(item, "there is a name that is too long");
		rc = expand(item, used + (size_t)n, rest, end);
		if (rc)
			return rc;
	}
	return 0;
}

/* Expands brackets; AT points behind the '['. */
static int expand_brackets(struct item *item, size_t used, const char *at, const char *end)
{
	const char *close = memchr(at, ']', (size_t)(end - at));

	if (!close)
		return nodelist_refuse(item, "there is a '[' without its ']'");
	for (;;) {
		unsigned long first, last;
		size_t digits = nodelist_take_number(at, close, &first), more;
		int rc;

		if (!digits)
			return nodelist_refuse(item, "there is a bad range");
		at += digits;
		last = first;
		if (at < close && *at == '-') {
			more = nodelist_take_number(at + 1, close, &last);
			if (!more)
				return nodelist_refuse(item, "there is a bad range");
			at += 1 + more;
		}
		rc = expand_run(item, used, first, last, digits, close + 1, end);
		if (rc || at == close)
			return rc;
		if (*at++ != ',')
			return nodelist_refuse(item, "there is a bad range");
	}
}

static int expand(struct item *item, size_t used, const char *at, const char *end)
{
	for (; at < end && *at != '['; at++) {
		if (*at == ']')
			return nodelist_refuse(item, "there is a ']' without its '['");
		if (!isgraph((unsigned char)*at))
			return nodelist_refuse(item,
					       "there is a character that no node's name has");
		if (used + 1 >= sizeof(item->name))
			return nodelist_refuse(item, "there is a name that is too long");
		item->name[used++] = *at;
	}
	if (at < end)
		return expand_brackets(item, used, at + 1, end);
	item->name[used] = 0;
	if (item->out->count == NODELIST_MAX)
		return nodelist_refuse(item, "there are too many names");
	return nodelist_add(item->out, item->name)
		       ? iocom_err_set(item->err, -ENOMEM, "out of memory for the list of nodes")
		       : 0;
}

/* The length up to the next comma outside brackets. */
static size_t item_length(const char *text)
{
	size_t n = 0;

	for (int open = 0; text[n] && (open || text[n] != ','); n++)
		open = text[n] == '[' || (open && text[n] != ']');
	return n;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int refuse_twice(const struct nodelist *list, struct iocom_err *err)
{
	char **sorted = malloc(list->count * sizeof(*sorted));
	int rc = 0;

	if (!sorted)
		return iocom_err_set(err, -ENOMEM, "out of memory for the list of nodes");
	memcpy(sorted, list->names, list->count * sizeof(*sorted));
	qsort(sorted, list->count, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < list->count && !rc; i++)
		if (!strcmp(sorted[i - 1], sorted[i]))
			rc = iocom_err_set(err, -EINVAL, "node %s is named twice", sorted[i]);
	free(sorted);
	return rc;
}

int nodelist_parse(const char *text, struct nodelist *out, struct iocom_err *err)
{
	int rc = 0;

	*out = (struct nodelist){0};
	do {
		struct item item = {.out = out, .err = err, .text = text};

		item.length = item_length(text);
		rc = item.length ? expand(&item, 0, text, text + item.length)
				 : iocom_err_set(err, -EINVAL,
						 "there is an empty name in the list of nodes");
		text += item.length;
	} while (!rc && *text++ == ',');
	if (!rc)
		rc = refuse_twice(out, err);
	if (rc)
		nodelist_fini(out);
	return rc;
}

/* --- folding ---------------------------------------------------------------------- */

/* A name split at its last number. */
struct part {
	const char *name, *suffix;
	size_t prefix; /* bytes before the number; the whole name if it has none */
	size_t digits;
	size_t width; /* 0: no leading zeros */
	unsigned long number;
};

static struct part nodelist_split(const char *name)
{
	size_t end = strlen(name), start;
	struct part part = {.name = name};

	while (end && !isdigit((unsigned char)name[end - 1]))
		end--;
	for (start = end; start && isdigit((unsigned char)name[start - 1]);)
		start--;
	/* A name with a number too long for a range stays whole. */
	if (end == start || end - start > DIGITS_MAX)
		start = end = strlen(name);
	part.suffix = name + end;
	part.prefix = start;
	part.digits = end - start;
	part.width = part.digits > 1 && name[start] == '0' ? part.digits : 0;
	nodelist_take_number(name + start, name + end, &part.number);
	return part;
}

static int compare_frames(const struct part *a, const struct part *b)
{
	size_t n = a->prefix < b->prefix ? a->prefix : b->prefix;
	int order = memcmp(a->name, b->name, n);

	if (order)
		return order;
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	/* Names without a number are not grouped with others. */
	if (!a->digits != !b->digits)
		return a->digits ? 1 : -1;
	return strcmp(a->suffix, b->suffix);
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Groups numbers with equally many digits, those with leading zeros first. */
static int compare_digits(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;
	int order = compare_frames(a, b);

	if (!order)
		order = ORDER(a->digits, b->digits);
	return order ? order : ORDER(b->width, a->width);
}

static int compare_parts(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;
	int order = compare_frames(a, b);

	if (!order)
		order = ORDER(a->width, b->width);
	return order ? order : ORDER(a->number, b->number);
}

/* Treats n10 as padded too when it follows n08, n09. */
static void nodelist_widen(struct part *parts, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (parts[i].digits == parts[i - 1].digits && parts[i - 1].width &&
		    !compare_frames(&parts[i - 1], &parts[i]))
			parts[i].width = parts[i].digits;
}

/* Prints COUNT names that fit in one pair of brackets to OUT. */
static void print_group(FILE *out, const struct part *parts, size_t count)
{
	const struct part *p = parts;

	fprintf(out, "%.*s%s", (int)p->prefix, p->name, count > 1 ? "[" : "");
	for (size_t i = 0; i < count && p->digits;) {
		size_t last = i;

		while (last + 1 < count && p[last + 1].number == p[last].number + 1)
			last++;
		fprintf(out, "%s%0*lu", i ? "," : "", (int)p->width, p[i].number);
		if (last > i)
			fprintf(out, "-%0*lu", (int)p->width, p[last].number);
		i = last + 1;
	}
	fprintf(out, "%s%s", count > 1 ? "]" : "", p->suffix);
}

static struct part *sorted_parts(const char *const *names, size_t count)
{
	struct part *parts = calloc(count + 1, sizeof(*parts));

	if (!parts)
		return NULL;
	for (size_t i = 0; i < count; i++)
		parts[i] = nodelist_split(names[i]);
	qsort(parts, count, sizeof(*parts), compare_digits);
	nodelist_widen(parts, count);
	qsort(parts, count, sizeof(*parts), compare_parts);
	return parts;
}

char *nodelist_fold(const char *const *names, size_t count)
{
	struct part *parts = sorted_parts(names, count);
	char *text = NULL;
	size_t size, n;
	FILE *out = parts ? open_memstream(&text, &size) : NULL;

	for (size_t i = 0; out && i < count; i += n) {
		n = 1;
		while (i + n < count && parts[i].digits && parts[i].width == parts[i + n].width &&
		       !compare_frames(&parts[i], &parts[i + n]))
			n++;
		if (i)
			putc(',', out);
		print_group(out, parts + i, n);
	}
	free(parts);
	if (out && fclose(out)) {
		free(text);
		text = NULL;
	}
	return text;
}

void nodelist_sort(struct nodelist *list)
{
	struct part *parts = sorted_parts((const char *const *)list->names, list->count);

	for (size_t i = 0; parts && i < list->count; i++)
		list->names[i] = (char *)parts[i].name;
	free(parts);
}
