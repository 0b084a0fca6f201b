/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Recognises the format of a trace; see recognise.h. */
#include "balancer/view/json_msgpack.h"
#include "balancer/view/recording.h"
#include <string.h>

#include "sim/workload/recognise.h"

#define FIELDS_MAX 400 /* Darshan summaries have 186 */

static bool header_is(const struct token *f, size_t n, const char *const *names, size_t count)
{
	if (n != count)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!token_is(&f[i], names[i]))
			return false;
	return true;
}

/* Recognises a format by the names in a CSV header line; NULL: the line is no known header. */
static const struct format *by_header(const struct token *f, size_t n)
{
	static const char *const csd[] = {"hour", "min", "unk", "sec", "prog"};
	static const char *const block[] = {"version", "time", "op", "size", "lbn"};

	if (header_is(f, n, csd, 5))
		return &format_csd;
	if (header_is(f, n, block, 5))
		return &format_block;
	for (size_t i = 0; i < n && i < FIELDS_MAX; i++)
		if (token_is(&f[i], "darshan_start_time"))
			return &format_darshan;
	return NULL;
}

/* Recognises a format by the number of columns in the first line that is no comment. */
static const struct format *by_columns(const struct lines *lines, bool swf_comment)
{
	struct token f[2];
	size_t n;
	double number;

	if (strpbrk(lines->text, ",;"))
		n = tokens_separated(lines, strchr(lines->text, ',') ? ',' : ';', f, 2);
	else
		n = tokens_blank(lines, f, 2);
	if (token_is(&f[0], "arrival_time") || token_is(&f[0], "arrival"))
		return &format_columns8;
	if (n > 12 || (swf_comment && (n < 7 || n > 9)))
		return &format_swf;
	if (n > 1 && token_parse(&f[0], &number))
		return &format_columns8;
	return swf_comment ? &format_swf : NULL;
}

static const struct format *recognise_unknown(const struct lines *lines, const char *found,
					      size_t length, struct iocom_err *err)
{
	lines_fail(lines, 1, found, length, err,
		   "a workload (eight columns, CSD csv, SWF, Darshan csv, block csv, iocom "
		   "recording; gzip or plain)");
	return NULL;
}

const struct format *format_packed(struct source *source)
{
	char head[64];
	const char *trouble, *found;
	size_t n = 0;
	bool packed = !source_read(source, head, sizeof(head), &n, &trouble, &found) &&
		      json_msgpack_begins(head, n) && recording_recognise(head, n);

	source_rewind(source);
	return packed ? &format_recording : NULL;
}

const struct format *format_recognise(struct lines *lines, struct quoted *quoted,
				      struct iocom_err *err)
{
	struct token f[FIELDS_MAX];
	bool swf_comment = false;
	const char *p;
	int rc;

	do {
		rc = lines_next(lines, err);
		if (rc < 0)
			return NULL;
		if (!rc) {
			if (!swf_comment)
				recognise_unknown(lines, "end of file", 11, err);
			return swf_comment ? &format_swf : NULL;
		}
		p = lines->text + strspn(lines->text, " \t");
		swf_comment |= *p == ';';
	} while (!*p || *p == ';' || *p == '#');
	if (*p == '{')
		return &format_recording;
	if (strchr(p, ',')) {
		const struct format *format;
		size_t n;

		if (quoted_split(quoted, lines, f, FIELDS_MAX, &n, err))
			return NULL;
		format = by_header(f, n);
		if (format)
			return format;
	}
	if (by_columns(lines, swf_comment))
		return by_columns(lines, swf_comment);
	return recognise_unknown(lines, lines->text, lines->length, err);
}
