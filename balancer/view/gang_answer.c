/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placed gang as JSON, written and read; see gang_answer.h. */
#include "balancer/view/gang_answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX       65535
#define RANGE_TEXT_MAX 24 /* "4095-4096," with NUL, and then some */

/* --- lists of ranks ------------------------------------------------------------------- */

size_t gang_ranks_text(const uint32_t *ranks, uint32_t count, char *out, size_t size)
{
	size_t length = 0;

	if (size)
		*out = 0;
	for (uint32_t i = 0, last; i < count; i = last + 1) {
		char range[RANGE_TEXT_MAX];

		for (last = i; last + 1 < count && ranks[last + 1] == ranks[last] + 1;)
			last++;
		snprintf(range, sizeof(range), last > i ? "%s%u-%u" : "%s%u", i ? "," : "",
			 ranks[i], ranks[last]);
		if (length < size)
			snprintf(out + length, size - length, "%s", range);
		length += strlen(range);
	}
	return length;
}

char *gang_ranks_new_text(const uint32_t *ranks, uint32_t count)
{
	size_t size = gang_ranks_text(ranks, count, NULL, 0) + 1;
	char *text = malloc(size);

	if (text)
		gang_ranks_text(ranks, count, text, size);
	return text;
}

/* Takes a number of at most six digits.  Returns 0 or -EINVAL. */
static int gang_ranks_number(const char **text, uint32_t *number)
{
	uint32_t value = 0;
	int digits = 0;

	for (; **text >= '0' && **text <= '9' && digits < 6; digits++)
		value = 10 * value + (uint32_t)(*(*text)++ - '0');
	*number = value;
	return digits ? 0 : -EINVAL;
}

int gang_ranks_parse(const char *text, uint32_t limit, uint32_t *ranks, uint32_t *count)
{
	uint32_t first, last, next = 0;

	*count = 0;
	do {
		if (gang_ranks_number(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (gang_ranks_number(&text, &last))
				return -EINVAL;
		}
		if (first < next || last < first || last >= limit)
			return -EINVAL;
		for (uint32_t rank = first; rank <= last; rank++)
			ranks[(*count)++] = rank;
		next = last + 1;
	} while (*text++ == ',');
	return text[-1] ? -EINVAL : 0;
}

/* --- a gang --------------------------------------------------------------------------- */

static struct gang_answer *gang_answer_alloc(uint32_t tasks, uint32_t nparts)
{
	struct gang_answer *gang = calloc(1, sizeof(*gang));

	if (!gang)
		return NULL;
	gang->tasks = tasks;
	gang->nparts = nparts;
	gang->parts = calloc(nparts ? nparts : 1, sizeof(*gang->parts));
	gang->ranks = calloc(tasks ? tasks : 1, sizeof(*gang->ranks));
	if (gang->parts && gang->ranks)
		return gang;
	gang_answer_free(gang);
	return NULL;
}

void gang_answer_free(struct gang_answer *gang)
{
	if (!gang)
		return;
	if (gang->parts)
		explicit_bzero(gang->parts, gang->nparts * sizeof(*gang->parts));
	free(gang->parts);
	free(gang->ranks);
	json_decref(gang->why);
	free(gang);
}

struct gang_answer *gang_answer_new(const uint32_t *nodes, uint32_t tasks, uint32_t count,
				    uint32_t **part_nodes)
{
	uint32_t *sizes = calloc((size_t)count + 1, sizeof(*sizes)), nparts = 0, done = 0;
	struct gang_answer *gang = NULL;

	*part_nodes = NULL;
	if (!sizes)
		return NULL;
	for (uint32_t i = 0; i < tasks; i++)
		nparts += !sizes[nodes[i]]++;
	gang = gang_answer_alloc(tasks, nparts);
	*part_nodes = calloc(nparts ? nparts : 1, sizeof(**part_nodes));
	if (!gang || !*part_nodes) {
		gang_answer_free(gang);
		free(*part_nodes);
		*part_nodes = NULL;
		free(sizes);
		return NULL;
	}
	nparts = 0;
	for (uint32_t node = 0; node < count; node++) {
		if (!sizes[node])
			continue;
		gang->parts[nparts].first = done;
		gang->parts[nparts].tasks = sizes[node];
		(*part_nodes)[nparts++] = node;
		done += sizes[node];
		sizes[node] = done - sizes[node]; /* from here on: where its next task goes */
	}
	for (uint32_t i = 0; i < tasks; i++)
		gang->ranks[sizes[nodes[i]]++] = i;
	free(sizes);
	return gang;
}

/* --- writing -------------------------------------------------------------------------- */

static json_t *gang_part_json(const struct gang_answer *gang, const struct gang_part *part,
			      bool secrets)
{
	char *ranks = gang_ranks_new_text(&gang->ranks[part->first], part->tasks);
	json_t *out =
		ranks ? json_pack("{s:s,s:s,s:s,s:i,s:s}", "job", part->job, "node", part->node,
				  "address", part->address, "port", (int)part->port, "ranks", ranks)
		      : NULL;

	free(ranks);
	if (out && secrets &&
	    (json_object_set_new(out, "nonce", json_string(part->nonce)) ||
	     (*part->key && json_object_set_new(out, "key", json_string(part->key))))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *gang_answer_json(const struct gang_answer *gang, bool secrets)
{
	json_t *parts = json_array(), *out;

	for (uint32_t i = 0; parts && i < gang->nparts; i++)
		if (json_array_append_new(parts, gang_part_json(gang, &gang->parts[i], secrets))) {
			json_decref(parts);
			parts = NULL;
		}
	if (!parts)
		return NULL;
	out = json_pack("{s:s,s:I,s:o}", "job", gang->job, "tasks", (json_int_t)gang->tasks,
			"parts", parts);
	if (out && gang->why && json_object_set(out, "why", gang->why)) {
		json_decref(out);
		return NULL;
	}
	return out;
}

/* --- reading -------------------------------------------------------------------------- */

/* Copies the text at KEY; GIVEN: it must be there and not empty.  Returns 0 or -EPROTO. */
static int gang_read_text(const json_t *object, const char *key, bool given, char *out, size_t size,
			  struct iocom_err *err)
{
	const json_t *value = json_object_get(object, key);
	size_t length = json_string_length(value);

	*out = 0;
	if (!value && !given)
		return 0;
	if (!json_is_string(value) || length >= size || (given && !length) ||
	    strlen(json_string_value(value)) != length)
		return iocom_err_set(err, -EPROTO, "\"%s\" of a gang is no text as it should be",
				     key);
	memcpy(out, json_string_value(value), length + 1);
	return 0;
}

static int gang_read_part(struct gang_answer *gang, struct gang_part *part, uint32_t first,
			  uint32_t *ranks, const json_t *value, struct iocom_err *err)
{
	const json_t *port = json_object_get(value, "port"), *list;
	int rc = gang_read_text(value, "job", true, part->job, sizeof(part->job), err);

	if (!rc)
		rc = gang_read_text(value, "node", true, part->node, sizeof(part->node), err);
	if (!rc)
		rc = gang_read_text(value, "address", false, part->address, sizeof(part->address),
				    err);
	if (!rc)
		rc = gang_read_text(value, "nonce", false, part->nonce, sizeof(part->nonce), err);
	if (!rc)
		rc = gang_read_text(value, "key", false, part->key, sizeof(part->key), err);
	if (rc)
		return rc;
	if (!json_is_integer(port) || json_integer_value(port) < 0 ||
	    json_integer_value(port) > PORT_MAX)
		return iocom_err_set(err, -EPROTO, "\"port\" of part %s is no port", part->job);
	part->port = (uint16_t)json_integer_value(port);
	part->first = first;
	list = json_object_get(value, "ranks");
	if (!json_is_string(list) ||
	    gang_ranks_parse(json_string_value(list), gang->tasks, ranks, &part->tasks))
		return iocom_err_set(err, -EPROTO, "\"ranks\" of part %s is no list of tasks",
				     part->job);
	if (part->tasks > gang->tasks - first)
		return iocom_err_set(err, -EPROTO, "the parts of gang %s have too many tasks",
				     gang->job);
	memcpy(&gang->ranks[first], ranks, part->tasks * sizeof(*ranks));
	return 0;
}

/* Returns 0 if each task is in exactly one part, else -EPROTO. */
static int gang_read_check(const struct gang_answer *gang, uint32_t found, uint32_t *seen,
			   struct iocom_err *err)
{
	memset(seen, 0, gang->tasks * sizeof(*seen));
	for (uint32_t i = 0; i < found; i++)
		if (seen[gang->ranks[i]]++)
			return iocom_err_set(err, -EPROTO, "gang %s has task %u twice", gang->job,
					     gang->ranks[i]);
	if (found != gang->tasks)
		return iocom_err_set(err, -EPROTO, "the parts of gang %s have %u tasks, not %u",
				     gang->job, found, gang->tasks);
	return 0;
}

static int gang_read_parts(struct gang_answer *gang, const json_t *parts, struct iocom_err *err)
{
	uint32_t *ranks = calloc(gang->tasks, sizeof(*ranks)), first = 0;
	int rc = ranks ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < gang->nparts && !rc; i++) {
		rc = gang_read_part(gang, &gang->parts[i], first, ranks, json_array_get(parts, i),
				    err);
		first += rc ? 0 : gang->parts[i].tasks;
	}
	if (!rc)
		rc = gang_read_check(gang, first, ranks, err);
	free(ranks);
	return rc;
}

int gang_answer_read(struct gang_answer **out, const json_t *document, struct iocom_err *err)
{
	const json_t *tasks = json_object_get(document, "tasks");
	const json_t *parts = json_object_get(document, "parts");
	struct gang_answer *gang;
	int rc;

	*out = NULL;
	if (!json_is_integer(tasks) || json_integer_value(tasks) < 1 ||
	    json_integer_value(tasks) > GANG_ANSWER_TASKS_MAX)
		return iocom_err_set(err, -EPROTO, "\"tasks\" of a gang is not 1 to %d",
				     GANG_ANSWER_TASKS_MAX);
	if (!json_is_array(parts) || !json_array_size(parts) ||
	    json_array_size(parts) > GANG_ANSWER_PARTS_MAX)
		return iocom_err_set(err, -EPROTO,
				     "\"parts\" of a gang is no list of 1 to %d parts",
				     GANG_ANSWER_PARTS_MAX);
	gang = gang_answer_alloc((uint32_t)json_integer_value(tasks),
				 (uint32_t)json_array_size(parts));
	if (!gang)
		return iocom_err_set(err, -ENOMEM, "there is no memory for a gang");
	rc = gang_read_text(document, "job", true, gang->job, sizeof(gang->job), err);
	if (!rc)
		rc = gang_read_parts(gang, parts, err);
	if (rc) {
		gang_answer_free(gang);
		return rc;
	}
	gang->why = json_incref(json_object_get(document, "why"));
	*out = gang;
	return 0;
}
