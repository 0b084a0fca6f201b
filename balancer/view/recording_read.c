/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads a recording line by line; see recording.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "balancer/view/json_msgpack.h"
#include "balancer/view/plan_json.h"
#include "balancer/view/recording_lines.h"
#include "iocom/array.h"

#define CHUNK (256u * 1024)

bool recording_recognise(const char *text, size_t length)
{
	static const char record[] = "\"record\"", header[] = "\"header\"";
	static const char packed[] = "\xa6record\xa6header";

	if (json_msgpack_begins(text, length))
		return memmem(text, length, packed, sizeof(packed) - 1);
	return length && text[0] == '{' && memmem(text, length, record, sizeof(record) - 1) &&
	       memmem(text, length, header, sizeof(header) - 1);
}

/* --- lines ------------------------------------------------------------------------ */

static int recording_read_fail(const struct recording *r, struct iocom_err *err, int rc,
			       const char *what)
{
	return iocom_err_set(err, rc, "%.250s:%llu: %s", r->path, (unsigned long long)r->number + 1,
			     what);
}

/*
 * Reads more text after the present text.  Returns 0 or negative errno; sets `drained` at the
 * end.
 */
static int more(struct recording *r, struct iocom_err *err)
{
	int n, code;

	if (r->used - r->at > RECORDING_LINE_MAX)
		return recording_read_fail(r, err, -EINVAL, "the line is longer than 64 MB");
	if (r->at > 0) {
		memmove(r->bytes, r->bytes + r->at, r->used - r->at);
		r->used -= r->at;
		r->at = 0;
	}
	if (array_reserve(r->bytes, r->room, r->used + CHUNK, 2 * (size_t)CHUNK))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	errno = 0;
	n = gzread(r->file, r->bytes + r->used, CHUNK);
	if (n < 0) {
		const char *text = gzerror(r->file, &code);

		if (code == Z_ERRNO)
			return iocom_err_set(err, errno ? -errno : -EIO, "cannot read %s: %s",
					     r->path, strerror(errno ? errno : EIO));
		return recording_read_fail(r, err, code == Z_MEM_ERROR ? -ENOMEM : -EINVAL,
					   code == Z_BUF_ERROR ? "the packed file is cut off here"
							       : text);
	}
	/* A compressed file that ends within a block reads short and reports it only here. */
	gzerror(r->file, &code);
	if (n == 0 && code == Z_BUF_ERROR)
		return recording_read_fail(r, err, -EINVAL, "the packed file is cut off here");
	r->used += (size_t)n;
	r->drained = n == 0;
	return 0;
}

static void recording_read_take(struct recording *r, size_t length, struct iocom_err *err)
{
	r->number++;
	r->reader = (struct field_reader){
		.file = r->path,
		.err = err,
		.text = r->bytes + r->at,
		.text_length = length,
		.line = r->number,
	};
	r->at += length;
}

/* Does the same for MessagePack, which has values instead of lines. */
static int take_value(struct recording *r, struct iocom_err *err)
{
	size_t tried = 0, length = 0;
	const char *wrong;
	json_t *value = NULL;
	int rc;

	/* Retry an incomplete value only at twice the length, not for every piece read. */
	do {
		while (!r->drained && r->used - r->at <= 2 * tried) {
			rc = more(r, err);
			if (rc)
				return rc;
		}
		tried = r->used - r->at;
		rc = json_msgpack_load(r->bytes + r->at, tried, &value, &length, &wrong);
		json_decref(value);
	} while (rc == -EAGAIN && !r->drained);
	if (r->at == r->used)
		return 0;
	/* Parsing finds and reports the error again. */
	recording_read_take(r, rc == 0 ? length : r->used - r->at, err);
	return 1;
}

/* Makes the next line the reader's text.  Returns 1; 0: there are no more; negative errno. */
static int recording_read_take_line(struct recording *r, struct iocom_err *err)
{
	char *end = NULL;
	size_t searched = 0;
	int rc;

	if (r->used == r->at && !r->drained) {
		rc = more(r, err);
		if (rc)
			return rc;
	}
	if (!r->number)
		r->packed = json_msgpack_begins(r->bytes, r->used);
	if (r->packed)
		return take_value(r, err);
	while (true) {
		if (r->used - r->at > searched)
			end = memchr(r->bytes + r->at + searched, '\n', r->used - r->at - searched);
		if (end || r->drained)
			break;
		searched = r->used - r->at;
		rc = more(r, err);
		if (rc)
			return rc;
	}
	if (!end && r->at == r->used)
		return 0;
	if (!end)
		return recording_read_fail(r, err, -EINVAL,
					   "the recording is cut off in this line");
	recording_read_take(r, (size_t)(end - (r->bytes + r->at)), err);
	r->at++;
	return 1;
}

static void forget_line(struct recording *r)
{
	for (size_t i = 0; i < r->nchanged; i++)
		view_node_fini(&r->changed[i]);
	free(r->changed);
	free(r->indexes);
	free(r->order);
	free(r->place);
	view_job_free(&r->own);
	json_decref(r->document);
	r->document = NULL;
	r->changed = NULL;
	r->indexes = NULL;
	r->nchanged = 0;
	r->order = r->place = NULL;
	r->norder = 0;
}

/* --- the stream ------------------------------------------------------------------- */

/* Parses the next line.  Returns 1, 0 or negative errno. */
static int parse_line(struct recording *r, const char **record, struct iocom_err *err)
{
	int rc;

	forget_line(r);
	rc = recording_read_take_line(r, err);
	if (rc <= 0)
		return rc;
	if (r->whole)
		return field_fail(&r->reader, "nothing may follow the \"end\" line");
	rc = field_parse(&r->reader, &r->document);
	if (rc)
		return rc;
	if (!json_is_object(r->document))
		return field_expected(&r->reader, "an object", r->document);
	*record = json_string_value(json_object_get(r->document, "record"));
	return *record ? 1 : recording_expected(r, "record", "what the line is");
}

int recording_next(struct recording *r, const struct recording_line **line, struct iocom_err *err)
{
	const char *record;
	int rc = parse_line(r, &record, err);

	if (rc <= 0)
		return rc;
	rc = recording_line_read(r, record);
	if (rc == -ENOMEM)
		iocom_err_set(err, rc, "out of memory");
	*line = &r->line;
	return rc ? rc : 1;
}

static int recording_read_header(struct recording *r, struct iocom_err *err)
{
	const char *record;
	int rc = parse_line(r, &record, err);

	if (rc == 0)
		return iocom_err_set(err, -EINVAL, "%.250s: is empty; expected a recording",
				     r->path);
	if (rc < 0)
		return rc;
	return strcmp(record, "header") ? recording_expected(r, "record", "\"header\"")
					: recording_header_read(r);
}

static int recording_read_open_file(struct recording *r, const char *path, struct iocom_err *err)
{
	int fd, rc;

	errno = 0;
	if (r->input) {
		fd = dup(STDIN_FILENO);
		r->file = fd < 0 ? NULL : gzdopen(fd, "rb");
		if (!r->file && fd >= 0)
			close(fd);
	} else {
		r->file = gzopen(path, "rbe");
	}
	if (r->file) {
		gzbuffer(r->file, CHUNK);
		return 0;
	}
	rc = errno ? -errno : -ENOMEM;
	return iocom_err_set(err, rc, "cannot read %s: %s", r->path, strerror(-rc));
}

int recording_open(const char *path, struct recording **out, struct iocom_err *err)
{
	struct recording *r = calloc(1, sizeof(*r));
	int rc;

	if (r) {
		r->input = !strcmp(path, "-");
		r->path = strdup(r->input ? "standard input" : path);
	}
	if (!r || !r->path || recording_state_init(&r->state))
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	else
		rc = recording_read_open_file(r, path, err);
	if (!rc)
		rc = recording_read_header(r, err);
	if (rc)
		recording_close(r);
	else
		*out = r;
	return rc;
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	forget_line(r);
	if (r->file)
		gzclose(r->file);
	if (r->state.names)
		recording_state_fini(&r->state);
	free(r->seen);
	free(r->bytes);
	free(r->path);
	free(r);
}

int recording_rewind(struct recording *r, struct iocom_err *err)
{
	if (r->input || gzrewind(r->file) != 0)
		return iocom_err_set(err, -ESPIPE, "%s cannot be read a second time", r->path);
	recording_state_clear(&r->state);
	r->at = r->used = 0;
	r->drained = r->whole = false;
	r->number = 0;
	r->line = (struct recording_line){0};
	return recording_read_header(r, err);
}

const struct recording_header *recording_header(const struct recording *r)
{
	return &r->header;
}

const struct view_node *recording_nodes(const struct recording *r, uint32_t *n)
{
	*n = r->state.n;
	return r->state.nodes;
}

bool recording_complete(const struct recording *r)
{
	return r->whole;
}

/* --- decisions -------------------------------------------------------------------- */

int recording_view(struct recording *r, struct view_file *view)
{
	const struct recording_decision *d = &r->line.decision;
	uint32_t n = r->state.n;

	if (r->line.kind != RECORDING_DECISION || !r->document)
		return -EINVAL;
	if (r->seen_room < n) {
		void *grown = realloc(r->seen, n * sizeof(*r->seen));

		if (!grown)
			return -ENOMEM;
		r->seen = grown;
		r->seen_room = n;
	}
	for (uint32_t i = 0; i < n && !r->order; i++)
		r->seen[i] = r->state.nodes[i];
	for (size_t i = 0; i < r->norder; i++)
		r->seen[i] = r->state.nodes[r->order[i]];
	for (size_t i = 0; i < d->nchanged; i++) {
		uint32_t place = r->place ? r->place[d->indexes[i]] : d->indexes[i];

		if (place != VIEW_NOWHERE)
			r->seen[place] = d->changed[i];
	}
	if (r->order)
		n = (uint32_t)r->norder;
	*view = (struct view_file){
		.time_ms = d->time_ms,
		.home = r->place ? r->place[d->home] : d->home,
		.seed = d->seed,
		.params = *d->params,
		.nodes = r->seen,
		.nnodes = n,
		.room = n,
		.job = *d->request,
		.com_ms = r->own.com_ms,
		.corrections = r->own.corrections,
		.held = r->own.held,
		.cached = r->own.cached,
		.pairs = r->own.pairs,
	};
	return 0;
}

int recording_decide(struct recording *r, double tolerance, struct view_decision *decision,
		     struct iocom_err *err)
{
	const struct recording_decision *d = &r->line.decision;
	struct view_policy policy;
	struct view_file view;
	json_t *answer;
	int rc = recording_view(r, &view);

	if (rc)
		return iocom_err_set(err, rc, "the last line read was no decision");
	rc = view_policy_parse(d->policy, &policy, err);
	if (!rc)
		rc = view_decide(&view, &policy, decision, err);
	if (rc) {
		iocom_err_prefix(err, "%.200s:%llu", r->path, (unsigned long long)r->number);
		return rc;
	}
	answer = plan_json(decision, false);
	if (!answer) {
		view_decision_fini(decision);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	rc = plan_json_same(answer, d->answer, tolerance);
	json_decref(answer);
	return rc;
}
