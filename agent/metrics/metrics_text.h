/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Prometheus text format, version 0.0.4: families of samples, each with its
 * HELP and TYPE, labels escaped and valid UTF-8.  When memory is out the text is
 * marked as failed and everything after is ignored.
 */
#ifndef IOCOM_AGENT_METRICS_TEXT_H
#define IOCOM_AGENT_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_LABEL_MAX  256	/* bytes of a value, with the NUL; cut at a character */
#define METRICS_LABELS_MAX 1024 /* bytes of a whole set: two values, every byte escaped */

struct metrics_text {
	char *data; /* the caller frees it with metrics_text_free, or takes it */
	size_t used, room;
	bool failed;
};

void metrics_text_free(struct metrics_text *t);
/* "counter" (then NAME ends in _total) or "gauge".  HELP: one line of plain text. */
void metrics_family(struct metrics_text *t, const char *name, const char *type, const char *help);

/* A set of labels, to be written once and used for many samples. */
struct metrics_labels {
	char text[METRICS_LABELS_MAX];
	size_t used;
};
/* Adds NAME="VALUE"; what is no UTF-8 in VALUE becomes U+FFFD, too much is cut. */
void metrics_label(struct metrics_labels *labels, const char *name, const char *value);

/* One sample each. */
void metrics_integer(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		     uint64_t value);
/* Nanoseconds, written as seconds to the last digit. */
void metrics_seconds(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		     uint64_t ns);
void metrics_real(struct metrics_text *t, const char *name, const struct metrics_labels *labels,
		  double value);

#endif
