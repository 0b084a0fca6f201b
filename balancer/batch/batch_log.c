/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Writes the log of `iocom batch`, one JSON object a line, and reads that of an earlier run. */
#include "balancer/batch/batch_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "iocom/array.h"
#include "user/utf8.h"

struct done {
	uint32_t sequence;
	uint64_t hash; /* hash of the command as it stands in the log */
};

struct batch_done {
	struct done *list; /* sorted by sequence once all is read */
	size_t count, size;
};

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 14695981039346656037ull; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
	return hash;
}

/* Makes the command valid UTF-8, as JSON requires.  Returns NULL if out of memory. */
static char *clean(const char *line)
{
	size_t n = strlen(line);
	char *text = malloc(3 * n + 1);

	if (text)
		utf8_copy(text, 3 * n + 1, line, n);
	return text;
}

int batch_log_line(const struct pool *pool, const struct batch_slot *w,
		   const struct batch_command *c, const char *state, int status, uint64_t wall_ns,
		   struct iocom_err *err)
{
	FILE *log = pool->options->log;
	char *text;
	json_t *line;
	int rc;

	if (!log)
		return 0;
	text = clean(c->line);
	line = json_pack("{s:I,s:s*,s:s*,s:s,s:f}", "sequence", (json_int_t)c->sequence, "command",
			 text, "node", w->node[0] ? w->node : NULL, "state", state, "wall_ms",
			 (double)wall_ns / 1e6);
	free(text);
	if (line && status >= 0)
		json_object_set_new(line, "status", json_integer(status));
	/* Flush each line, so that the log is complete even if we are killed. */
	rc = !line || json_dumpf(line, log, JSON_COMPACT) || putc('\n', log) == EOF || fflush(log);
	json_decref(line);
	return rc ? iocom_err_set(err, -EIO, "cannot write the log: %s", strerror(errno)) : 0;
}

/* --- the log of an earlier run ------------------------------------------------------ */

static int by_sequence(const void *a, const void *b)
{
	const struct done *x = a, *y = b;

	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static int batch_log_take_line(struct batch_done *done, const char *text, size_t length)
{
	json_t *line = json_loadb(text, length, 0, NULL);
	json_int_t sequence = json_integer_value(json_object_get(line, "sequence"));
	const char *command = json_string_value(json_object_get(line, "command"));
	const char *state = json_string_value(json_object_get(line, "state"));
	int rc = 0;

	if (sequence < 1 || sequence > UINT32_MAX || !command || !state)
		rc = -EINVAL;
	else if (!strcmp(state, "ended")) {
		rc = array_reserve(done->list, done->size, done->count + 1, 256);
		if (!rc)
			done->list[done->count++] =
				(struct done){(uint32_t)sequence, hash_of(command)};
	}
	json_decref(line);
	return rc;
}

int batch_done_read(FILE *log, const char *path, struct batch_done **out, struct iocom_err *err)
{
	struct batch_done *done = calloc(1, sizeof(*done));
	size_t size = 0, number = 0;
	char *line = NULL;
	long whole = 0;
	ssize_t n;
	int rc = done ? 0 : -ENOMEM;

	while (!rc && (n = getline(&line, &size, log)) > 0 && line[n - 1] == '\n') {
		number++;
		whole += n;
		rc = batch_log_take_line(done, line, (size_t)n);
	}
	free(line);
	if (rc == -EINVAL)
		iocom_err_set(err, rc, "%s:%zu is not a line of an iocom batch log", path, number);
	else if (!rc && ferror(log))
		rc = iocom_err_set(err, -EIO, "cannot read %s: %s", path, strerror(errno));
	/* An incomplete last line is cut off: its command runs again. */
	else if (!rc && (fflush(log) || ftruncate(fileno(log), whole) || fseek(log, 0, SEEK_END)))
		rc = iocom_err_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
	if (rc == -ENOMEM)
		iocom_err_set(err, rc, "out of memory");
	if (rc) {
		batch_done_free(done);
		return rc;
	}
	if (done->count)
		qsort(done->list, done->count, sizeof(*done->list), by_sequence);
	*out = done;
	return 0;
}

int batch_done_before(const struct batch_done *done, uint32_t sequence, const char *line,
		      struct iocom_err *err)
{
	const struct done key = {.sequence = sequence};
	const struct done *found = done && done->count ? bsearch(&key, done->list, done->count,
								 sizeof(key), by_sequence)
						       : NULL;
	char *text;
	bool same;

	if (!found)
		return 0;
	text = clean(line);
	if (!text)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	same = hash_of(text) == found->hash;
	free(text);
	return same ? 1
		    : iocom_err_set(err, -EINVAL,
				    "command %u differs in the log, which belongs to another list: "
				    "%.200s",
				    sequence, line);
}

void batch_done_free(struct batch_done *done)
{
	if (done)
		free(done->list);
	free(done);
}
