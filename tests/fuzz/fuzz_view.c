/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The view file: decoding, encoding and decoding again gives the same document, and a decision
 * over it ends.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/json_text.h"
#include "balancer/view/view_decide.h"
#include "balancer/view/view_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TASKS_MAX 1000 /* more nodes would only cost time */

static void must(int holds)
{
	if (!holds)
		abort();
}

static char *text_of(const struct view_file *view, size_t *length)
{
	json_t *document = view_file_json(view);
	char *text;

	must(document != NULL);
	text = json_text_dump(document, length);
	must(text != NULL);
	json_decref(document);
	return text;
}

static void round_trip(const struct view_file *view)
{
	struct view_file again;
	struct iocom_err err = {0};
	size_t n, m;
	char *text = text_of(view, &n), *second;

	must(view_file_decode("again", text, n, &again, &err) == 0);
	second = text_of(&again, &m);
	must(n == m && !memcmp(text, second, n));
	view_file_fini(&again);
	free(second);
	free(text);
}

static void decide(const struct view_file *view)
{
	static const char *const names[] = {"nlb", "cpu-re", "mem-re", "io-re", "iocm-re"};
	struct view_decision decision;
	struct view_policy policy;
	struct iocom_err err = {0};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		must(view_policy_parse(names[i], &policy, &err) == 0);
		if (view_decide(view, &policy, &decision, &err))
			must(*err.text);
		else
			view_decision_fini(&decision);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view_file view;
	struct iocom_err err = {0};

	if (view_file_decode("fuzz", (const char *)data, size, &view, &err)) {
		must(*err.text);
		return 0;
	}
	if (view.job.tasks <= TASKS_MAX) {
		round_trip(&view);
		decide(&view);
	}
	view_file_fini(&view);
	return 0;
}
