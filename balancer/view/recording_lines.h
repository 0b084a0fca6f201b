/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the two readers of a recording share: that of the text and that of the lines. */
#ifndef IOCOM_RECORDING_LINES_H
#define IOCOM_RECORDING_LINES_H

#include <zlib.h>

#include "balancer/view/recording_state.h"

struct recording {
	gzFile file;
	char *path;
	bool input; /* standard input: it cannot be read again */
	struct recording_header header;
	struct recording_state state;
	bool whole;
	/* the text: bytes [at, used) are read but not parsed yet */
	char *bytes;
	size_t at, used, room;
	bool drained, packed;
	/* the current line */
	struct field_reader reader;
	uint64_t number;
	json_t *document;
	struct recording_line line;
	struct rules_params params;
	struct rules_request request;
	struct view_job_own own; /* the lists of `request` */
	struct view_node *changed;
	uint32_t *indexes;
	size_t nchanged;
	uint32_t *order, *place; /* numbers of the view's nodes; place of each node among them */
	size_t norder;
	/* for recording_view: the state with the changed nodes in it */
	struct view_node *seen;
	size_t seen_room;
};

/* Reads the current line, whose "record" is RECORD, into r->line.  Returns 0 or negative errno. */
int recording_line_read(struct recording *r, const char *record);
/* Reads the first line.  Returns 0 or negative errno. */
int recording_header_read(struct recording *r);
/* Reports that KEY of the current line is not what is WANTED. */
int recording_expected(struct recording *r, const char *key, const char *wanted);

#endif
