/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory fails at every allocation in turn, while a view is read, decided on and written, and a
 * recording is written and read: each failure is reported and nothing is lost. The test replaces
 * glibc's allocation functions, so sanitized builds skip it.
 */
#include "tests/unit/view_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "balancer/view/json_text.h"
#include "balancer/view/plan_json.h"
#include "balancer/view/recording.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

static void test_views(void **state)
{
	(void)state;
	print_message("skipped: the sanitizer owns the allocator\n");
	skip();
}

static void test_recordings(void **state)
{
	(void)state;
	skip();
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static long left = -1; /* allocations that still succeed; negative: all succeed */
static long held;      /* blocks allocated and not freed */

static bool spent(void)
{
	if (left < 0)
		return false;
	return left-- == 0 ? (left = 0, true) : false;
}

static void *counted(void *p)
{
	held += p != NULL;
	return p;
}

void *malloc(size_t size)
{
	return spent() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return spent() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	if (spent())
		return NULL;
	return p ? __libc_realloc(p, size) : counted(__libc_realloc(p, size));
}

void free(void *p)
{
	held -= p != NULL;
	__libc_free(p);
}

/* The JSON parser ends the program when some of its own allocations fail, so none of those fails
 * here. */
json_t *json_loadb(const char *text, size_t n, size_t flags, json_error_t *error)
{
	json_t *(*parse)(const char *, size_t, size_t, json_error_t *) =
		dlsym(RTLD_NEXT, "json_loadb");
	long kept = left;
	json_t *document;

	left = -1;
	document = parse(text, n, flags, error);
	left = kept;
	return document;
}

/* Reads TEXT, decides by POLICY and writes both. Returns 0 or -ENOMEM. */
static int run_view(const char *text, const char *policy)
{
	struct view_decision decision;
	struct view_policy p;
	struct view_file v;
	json_t *document, *plan;
	char *again;
	int rc = view_file_decode("t", text, strlen(text), &v, NULL);

	if (rc)
		return rc;
	document = view_file_json(&v);
	again = document ? json_text_dump(document, NULL) : NULL;
	if (again)
		assert_string_equal(again, text);
	else
		rc = -ENOMEM;
	if (!rc && !view_policy_parse(policy, &p, NULL))
		rc = view_decide(&v, &p, &decision, NULL);
	if (!rc) {
		plan = plan_json(&decision, true);
		rc = plan ? 0 : -ENOMEM;
		json_decref(plan);
		view_decision_fini(&decision);
	}
	free(again);
	json_decref(document);
	view_file_fini(&v);
	return rc;
}

static char *text_of(uint64_t seed)
{
	struct draws d = {seed};
	struct view_file v;
	json_t *document;
	char *text;

	view_random(&d, &v);
	document = view_file_json(&v);
	text = json_text_dump(document, NULL);
	assert_non_null(text);
	json_decref(document);
	view_file_fini(&v);
	return text;
}

static void test_views(void **state)
{
	static const char *const policies[] = {"iocm-pm", "com", "feedback+wal"};

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		char *text = text_of(seed);
		long n = 0;
		int rc;

		do {
			long before = held;

			left = n++;
			rc = run_view(text, policies[seed - 1]);
			left = -1;
			assert_true(rc == 0 || rc == -ENOMEM);
			assert_int_equal(held, before);
		} while (rc);
		assert_true(n > 100);
		free(text);
	}
}

static int write_recording(const char *path, const struct view_file *v)
{
	struct recording_header h = {.program = "test", .policy = "wal", .params = v->params};
	struct recording_job j = {.id = "1", .tasks = 1};
	struct recording_finish f = {.id = "1", .has_measured = true};
	struct rules_plan plan = {.ntied = 1, .ncandidates = 1, .nreasons = 1};
	struct recording_decision d = {.job = "1",
				       .policy = "wal",
				       .params = &v->params,
				       .request = &v->job,
				       .plan = &plan,
				       .changed = v->nodes,
				       .nchanged = v->nnodes};
	uint32_t nodes[8] = {0};
	struct recorder *r;
	int rc = recorder_open(path, &h, &r, NULL);

	if (rc)
		return rc;
	d.nodes = nodes;
	for (uint32_t i = 0; i < v->nnodes && !rc; i++) {
		struct view_node bare = v->nodes[i];

		bare.ncharged = 0;
		rc = recorder_node(r, 0, i, &bare, NULL);
	}
	if (!rc)
		rc = recorder_submit(r, &j, NULL);
	if (!rc)
		rc = recorder_decision(r, &d, NULL);
	if (!rc)
		rc = recorder_finish(r, &f, NULL);
	if (!rc)
		return recorder_close(r, NULL);
	recorder_abandon(r);
	return rc;
}

static int read_recording(const char *path)
{
	const struct recording_line *line;
	struct recording_jobs *jobs;
	struct recording_job j;
	struct recording *r;
	int rc = recording_open(path, &r, NULL);

	if (rc)
		return rc;
	do
		rc = recording_next(r, &line, NULL);
	while (rc > 0);
	recording_close(r);
	if (rc)
		return rc;
	rc = recording_jobs_open(path, &jobs, NULL);
	if (rc)
		return rc;
	do
		rc = recording_jobs_next(jobs, &j, NULL);
	while (rc > 0);
	recording_jobs_free(jobs);
	return rc;
}

static void test_recordings(void **state)
{
	char path[] = "/tmp/iocom-memory-XXXXXX.gz";
	int fd = mkstemps(path, 3);
	struct draws d = {5};
	struct view_file v;
	long n = 0;
	int rc;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	view_random(&d, &v);
	do {
		long before = held;

		left = n++;
		rc = write_recording(path, &v);
		left = -1;
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(held, before);
	} while (rc);
	assert_true(n > 100);
	n = 0;
	do {
		long before = held;

		left = n++;
		rc = read_recording(path);
		left = -1;
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(held, before);
	} while (rc);
	assert_true(n > 30);
	view_file_fini(&v);
	unlink(path);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
