/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The options of `iocom top` and its two output forms. */
#ifndef IOCOM_TOP_H
#define IOCOM_TOP_H

#include <stdbool.h>

#include "balancer/top/top_model.h"
#include "balancer/top/top_source.h"

struct top_options {
	struct top_source_options source;
	struct top_model_options model;
	bool sorted; /* --sort was given */
	bool batch, json;
	bool no_colour;
	unsigned long count; /* stop after this many documents; 0: never */
};

/* Both return 0, or negative errno with the reason in ERR. */
int top_batch(const struct top_options *options, struct top_source *source, struct iocom_err *err);
int top_screen(const struct top_options *options, struct top_source *source, struct iocom_err *err);

#endif
