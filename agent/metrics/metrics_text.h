/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Prometheus text format, version 0.0.4: families of samples, each with its HELP and TYPE,
 * labels escaped and valid UTF-8.  When memory is out, the text is marked as failed and all later
 * output is ignored.
 */
#ifndef IOCOM_AGENT_METRICS_TEXT_H
#define IOCOM_AGENT_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_LABEL_MAX  256	/* bytes of a value with the NUL; cut at a character */
#define METRICS_LABELS_MAX 1024 /* bytes of a set: two values, every byte escaped */

struct metrics_text {
	char *data; /* the caller frees it with metrics_text_free, or keeps it */
	size_t used, room;
	bool failed;
};

void metrics_text_free(struct metrics_text *t);
/*
 * Begins a family.  TYPE: "counter" (then NAME ends in _total) or "gauge".  HELP: one line of plain
 * text.
 */
void metrics_family(struct metrics_text *t, const char *name, const char *type, const char *help);

/* A set of labels, written once and used for many samples. */
struct metrics_labels {
	char text[METRICS_LABELS_MAX];
	size_t used;
};
/* Adds NAME="VALUE"; bytes of VALUE that are not UTF-8 become U+FFFD, and a long value is cut. */
void metrics_label(struct metrics_labels *labels, const char *name, const char *value);

/* Each writes one sample. */
void metrics_integer(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		     uint64_t value);
/* Writes nanoseconds as seconds with all digits. */
void metrics_seconds(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		     uint64_t ns);
void metrics_real(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		  double value);

#endif
