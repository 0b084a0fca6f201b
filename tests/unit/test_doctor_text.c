/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The doctor's report as text, from states that this machine may not be in. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "balancer/doctor/doctor.h"

static char *print(const json_t *report, unsigned width, bool colour)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	doctor_print(report, out, width, colour);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void fill(struct doctor *d)
{
	memset(d, 0, sizeof(*d));
	assert_int_equal(doctor_init(d), 0);
	doctor_add(d, "kernel", DOCTOR_OK, NULL, "%s", "Linux");
	doctor_add(d, "columns", DOCTOR_DEGRADED, "install a newer kernel",
		   "a sentence that is longer than the eighty columns which a terminal has, so it "
		   "goes on below");
	doctor_add(d, "name", DOCTOR_SKIPPED, NULL, "esc\033ape \xc3\xa9 \xff");
	json_array_append_new(d->hooks,
			      json_pack("{s:s,s:s,s:s,s:[s,s],s:s}", "hook", "sock_send_length",
					"kind", "tracepoint", "state", "refused", "columns",
					"sent_bytes", "local_bytes", "error", "not permitted"));
	json_array_append_new(d->hooks, json_pack("{s:s,s:s,s:s,s:[s]}", "hook", "task", "kind",
						  "iterator", "state", "used", "columns", "tasks"));
	json_array_append_new(d->degraded,
			      json_pack("{s:s,s:s,s:s,s:b}", "column", "sent_bytes", "hook",
					"sock_send_length", "why", "not measured", "unknown", 1));
	json_array_append_new(d->degraded,
			      json_pack("{s:s,s:s,s:s,s:b}", "column", "local_bytes", "hook",
					"sock_send_length", "why", "one end only", "unknown", 0));
}

static const char *last_line(const char *text)
{
	size_t n = strlen(text) - 1;

	while (n && text[n - 1] != '\n')
		n--;
	return text + n;
}

static void test_text(void **state)
{
	struct doctor d;
	json_t *report;
	char *text, *save = NULL;

	(void)state;
	fill(&d);
	report = doctor_report(&d);
	assert_non_null(report);
	text = print(report, 0, false);
	assert_non_null(strstr(text, "degraded  columns"));
	assert_non_null(strstr(text, "goes on below; install a newer kernel\n"));
	assert_non_null(strstr(text, "refused       sock_send_length  sent_bytes local_bytes (not "
				     "permitted)\n"));
	assert_non_null(strstr(text, "used          iter/task         tasks\n"));
	assert_non_null(strstr(text, "unknown       sent_bytes   not measured (no "
				     "sock_send_length)\n"));
	assert_non_null(strstr(text, "less exact    local_bytes  one end only"));
	assert_string_equal(last_line(text), "degraded: columns\n");
	/* Nothing that controls a terminal reaches it. */
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "esc?ape \xc3\xa9 \xef\xbf\xbd"));
	free(text);

	text = print(report, 60, false);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		assert_in_range(strlen(line), 0, 60);
	free(text);

	text = print(report, 0, true);
	assert_non_null(strstr(text, "\033[33mdegraded  \033[0m"));
	free(text);
	json_decref(report);
	doctor_deinit(&d);
}

static void test_worst_state(void **state)
{
	struct doctor d = {0};
	json_t *report;
	char *text;

	(void)state;
	assert_int_equal(doctor_init(&d), 0);
	doctor_add(&d, "a", DOCTOR_SKIPPED, NULL, "not looked at");
	report = doctor_report(&d);
	assert_string_equal(json_string_value(json_object_get(report, "state")), "ok");
	text = print(report, 0, false);
	assert_string_equal(last_line(text), "all is in order\n");
	free(text);
	json_decref(report);
	doctor_add(&d, "c", DOCTOR_DEGRADED, NULL, "less");
	doctor_add(&d, "b", DOCTOR_BROKEN, "repair it", "no");
	doctor_add(&d, "e", DOCTOR_DEGRADED, NULL, "less");
	report = doctor_report(&d);
	text = print(report, 0, false);
	assert_string_equal(last_line(text), "broken: b; degraded: c, e\n");
	free(text);
	assert_string_equal(json_string_value(json_object_get(report, "state")), "broken");
	assert_int_equal(d.worst, DOCTOR_BROKEN);
	assert_int_equal(json_array_size(json_object_get(report, "checks")), 4);
	json_decref(report);
	doctor_deinit(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_worst_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
