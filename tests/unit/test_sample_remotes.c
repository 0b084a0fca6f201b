/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The rows of remote addresses in the document, and over several readings. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "user/monitor/sample_json.h"
#include "user/monitor/sample_window.h"

#define SECOND 1000000000ULL

static struct monitor_remote remote(uint64_t cgroup, const char *address, uint64_t sent,
				    uint64_t now)
{
	struct monitor_remote r = {.cgroup_id = cgroup,
				   .counts = {sent, 2 * sent, 3, 4},
				   .delta = {now, 2 * now, 1, 2}};

	if (!address)
		return r;
	r.family = strchr(address, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(r.family, address, r.address), 1);
	return r;
}

static const char *job_of(void *arg, uint64_t cgroup)
{
	(void)arg;
	return cgroup == 5 ? "five" : NULL;
}

static double number(const json_t *row, const char *key)
{
	assert_true(json_is_number(json_object_get(row, key)));
	return json_number_value(json_object_get(row, key));
}

static const char *address(const json_t *rows, size_t i)
{
	return json_string_value(json_object_get(json_array_get(rows, i), "address"));
}

static const json_t *rows_of(const json_t *doc, json_int_t cgroup)
{
	const json_t *job;
	size_t i;

	json_array_foreach (json_object_get(doc, "jobs"), i, job)
		if (json_integer_value(json_object_get(job, "cgroup_id")) == cgroup)
			return json_object_get(job, "remotes");
	fail_msg("no such job");
	return NULL;
}

static void test_rows(void **state)
{
	struct iocom_job_load jobs[] = {{.cgroup_id = 5}, {.cgroup_id = 6}, {.cgroup_id = 7}};
	struct monitor_remote remotes[] = {remote(5, NULL, 900, 90), remote(5, "10.0.0.1", 100, 0),
					   remote(6, "10.0.0.1", 7, 7),
					   remote(5, "fd00::1", 200, 20),
					   remote(5, "10.0.0.2", 300, 0)};
	struct monitor_sample sample = {.elapsed_ns = 2 * SECOND,
					.jobs = jobs,
					.njobs = 3,
					.remotes = remotes,
					.nremotes = 5};
	struct sample_json_options options = {.cores = 1, .job_name = job_of};
	json_t *doc = sample_json(&sample, &options);
	const json_t *rows = rows_of(doc, 5), *row;

	(void)state;
	assert_int_equal(json_array_size(rows), 4);
	/* Present traffic comes before earlier traffic, and the row without an address is last. */
	assert_string_equal(address(rows, 0), "fd00::1");
	assert_string_equal(address(rows, 1), "10.0.0.2");
	assert_string_equal(address(rows, 2), "10.0.0.1");
	assert_true(json_is_null(json_object_get(json_array_get(rows, 3), "address")));
	row = json_array_get(rows, 0);
	assert_true(number(row, "sent_bytes") == 200 && number(row, "received_bytes") == 400);
	assert_true(number(row, "sent_messages") == 3 && number(row, "received_messages") == 4);
	assert_true(number(row, "sent_bytes_per_s") == 10);
	assert_true(number(row, "received_bytes_per_s") == 20);
	assert_true(number(row, "sent_messages_per_s") == 0.5);
	assert_true(number(row, "received_messages_per_s") == 1);
	assert_int_equal(json_array_size(rows_of(doc, 6)), 1);
	assert_int_equal(json_array_size(rows_of(doc, 7)), 0);
	json_decref(doc);
}

/* A value that the kernel does not tell is not 0. */
static void test_unknown_is_null(void **state)
{
	static const struct monitor_degraded degraded[] = {{"sent_bytes", "h", "w", true},
							   {"received_messages", "h", "w", true}};
	struct iocom_job_load job = {.cgroup_id = 5};
	struct monitor_remote one = remote(5, "10.0.0.1", 100, 10);
	struct monitor_sample sample = {.elapsed_ns = SECOND,
					.jobs = &job,
					.njobs = 1,
					.remotes = &one,
					.nremotes = 1,
					.degraded = degraded,
					.ndegraded = 2};
	struct sample_json_options options = {.cores = 1};
	json_t *doc = sample_json(&sample, &options);
	const json_t *row = json_array_get(rows_of(doc, 5), 0);

	(void)state;
	assert_true(json_is_null(json_object_get(row, "sent_bytes")));
	assert_true(json_is_null(json_object_get(row, "sent_bytes_per_s")));
	assert_true(json_is_null(json_object_get(row, "received_messages")));
	assert_true(number(row, "sent_messages") == 3 && number(row, "received_bytes") == 200);
	json_decref(doc);
}

static const struct monitor_remote *find(const struct monitor_sample *s, const char *text)
{
	struct monitor_remote key = remote(5, text, 0, 0);

	for (size_t i = 0; i < s->nremotes; i++)
		if (s->remotes[i].family == key.family &&
		    !memcmp(s->remotes[i].address, key.address, sizeof(key.address)))
			return &s->remotes[i];
	return NULL;
}

/* Deltas add up; a removed address is in the row of other remotes, and not twice. */
static void test_window(void **state)
{
	struct monitor_remote first[] = {remote(5, "10.0.0.2", 10, 10),
					 remote(5, "10.0.0.1", 20, 20)};
	struct monitor_remote second[] = {remote(5, "10.0.0.1", 25, 5), remote(5, NULL, 10, 0)};
	struct monitor_sample sample = {.elapsed_ns = SECOND, .remotes = first, .nremotes = 2};
	struct sample_window *w = sample_window_new();
	const struct iocom_disk *before;
	struct monitor_sample out;
	size_t nbefore;

	(void)state;
	assert_int_equal(sample_window_add(w, &sample), 0);
	sample.remotes = second;
	assert_int_equal(sample_window_add(w, &sample), 0);
	memset(first, 0, sizeof(first)); /* the window has its own copy */
	memset(second, 0, sizeof(second));
	assert_int_equal(sample_window_take(w, &out, &before, &nbefore), 0);
	assert_int_equal(out.nremotes, 2);
	assert_int_equal(find(&out, "10.0.0.1")->counts.sent_bytes, 25);
	assert_int_equal(find(&out, "10.0.0.1")->delta.sent_bytes, 25);
	assert_int_equal(find(&out, "10.0.0.1")->delta.received_messages, 4);
	assert_null(find(&out, "10.0.0.2"));
	assert_int_equal(find(&out, NULL)->counts.sent_bytes, 10);
	/* A new window begins. */
	sample.remotes = (const struct monitor_remote[]){remote(5, "10.0.0.1", 26, 1)};
	sample.nremotes = 1;
	assert_int_equal(sample_window_add(w, &sample), 0);
	assert_int_equal(sample_window_take(w, &out, &before, &nbefore), 0);
	assert_int_equal(out.nremotes, 1);
	assert_int_equal(find(&out, "10.0.0.1")->delta.sent_bytes, 1);
	sample_window_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_unknown_is_null),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests_name("sample_remotes", tests, NULL, NULL);
}
