/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The messages and the credential of a client that attaches, and the ring of bytes kept for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/attach.h"
#include "user/resend_buffer.h"
#include "tests/lib/munged.h"

static struct attach_ask example(void)
{
	struct attach_ask ask = {.job = "n1-abc-7",
				 .node = "n2",
				 .resume = "00ff",
				 .from = {0, 77, ATTACH_FIRST},
				 .taken = {0, 70, 0}};

	attach_nonce(ask.nonce);
	return ask;
}

static void test_round_trip(void **state)
{
	struct attach_ask ask = example(), got;
	size_t length;
	void *data;

	(void)state;
	assert_int_equal(strlen(ask.nonce), 32);
	assert_int_equal(attach_pack(&ask, &data, &length), 0);
	assert_int_equal(attach_unpack(&got, data, length, NULL), 0);
	assert_string_equal(got.job, ask.job);
	assert_string_equal(got.node, ask.node);
	assert_string_equal(got.nonce, ask.nonce);
	assert_string_equal(got.resume, ask.resume);
	for (int i = 1; i < FRAME_STREAMS; i++) {
		assert_true(got.from[i] == ask.from[i]);
		assert_true(got.taken[i] == ask.taken[i]);
	}
	free(data);
}

/* A key that an older program does not send means no; a key that is sent arrives. */
static void test_wishes(void **state)
{
	struct attach_ask ask = example(), got;
	size_t length;
	void *data;

	(void)state;
	for (int i = 0; i < 2; i++) {
		ask.take = i;
		assert_int_equal(attach_pack(&ask, &data, &length), 0);
		assert_int_equal(attach_unpack(&got, data, length, NULL), 0);
		assert_int_equal(got.take, i);
		assert_false(got.gaps || got.recent);
		free(data);
	}
}

static void test_end_text(void **state)
{
	char text[ATTACH_END_MAX];

	(void)state;
	attach_end_text(text, "n1-a-1", 0, 7, NULL);
	assert_non_null(strstr(text, "job n1-a-1 has ended with status 7; its output is not kept"));
	attach_end_text(text, "n1-a-1", 1, 15, "");
	assert_non_null(strstr(text, "status 143;"));
	attach_end_text(text, "n1-a-1", 3, 255, "");
	assert_string_equal(text, "job n1-a-1 has ended: its outcome is unknown");
	attach_end_text(text, "n1-a-1", 3, 0, "it never started");
	assert_string_equal(text, "job n1-a-1 has ended: it never started");
}

static void test_damage(void **state)
{
	struct attach_ask good = example(), bad[6], got;
	struct iocom_err err;
	size_t length;
	void *data;

	(void)state;
	for (int i = 0; i < 6; i++)
		bad[i] = good;
	strcpy(bad[0].job, "../etc");
	strcpy(bad[1].nonce, "12");
	memset(bad[2].nonce, 'x', 32);
	bad[3].node[0] = 0;
	strcpy(bad[4].resume, "no hex");
	bad[5].taken[1] = 78; /* more bytes than the client has */
	for (int i = 0; i < 6; i++) {
		assert_int_equal(attach_pack(&bad[i], &data, &length), 0);
		assert_int_equal(attach_unpack(&got, data, length, &err), -EBADMSG);
		free(data);
	}
	assert_int_equal(attach_pack(&good, &data, &length), 0);
	for (size_t n = 0; n < length; n++)
		assert_true(attach_unpack(&got, data, n, &err) < 0);
	((char *)data)[3] ^= 1; /* the version: "v" comes first */
	assert_int_equal(attach_unpack(&got, data, length, &err), -EPROTO);
	free(data);
}

static void test_state(void **state)
{
	struct attach_state is = {.pid = 9,
				  .input = 5,
				  .input_limit = 5 + FRAME_WINDOW,
				  .from = {0, 3, 4},
				  .lost = {0, 1, 2},
				  .detached = true},
			    got;
	size_t length;
	void *data;

	(void)state;
	assert_int_equal(attach_state_pack(&is, "j-0-1", "n", &data, &length), 0);
	attach_state_unpack(&got, data, length);
	assert_true(got.pid == is.pid && got.input == is.input && got.detached);
	assert_true(got.input_limit == is.input_limit);
	assert_memory_equal(got.from, is.from, sizeof(is.from));
	assert_memory_equal(got.lost, is.lost, sizeof(is.lost));
	attach_state_unpack(&got, "junk", 4);
	assert_true(got.input_limit == FRAME_WINDOW && !got.pid && !got.detached);
	free(data);
}

static void test_credential(void **state)
{
	struct attach_ask ask = example(), other;
	struct munged munged;
	struct iocom_err err;
	char *credential = NULL;
	size_t length;
	void *data;
	struct credential who = {.uid = 1, .gid = 1};
	const char *reason = munged_start(&munged);
	struct spec spec = {.job = "n1-abc-7", .node = "n2"};

	(void)state;
	if (reason) {
		print_message("credential: %s\n", reason);
		skip();
	}
	assert_int_equal(attach_pack(&ask, &data, &length), 0);
#define SEAL()                                                                                     \
	assert_int_equal(attach_seal(&ask, data, length, munged.socket, &credential, &err), 0)
#define OPEN(a, node) munged_attach_of(munged.socket, credential, a, data, length, node, &who, &err)
#define REFUSED(rc, words)                                                                         \
	do {                                                                                       \
		assert_int_equal(rc, -EACCES);                                                     \
		assert_non_null(strstr(err.text, words));                                          \
		free(credential);                                                                  \
	} while (0)
	SEAL();
	assert_int_equal(OPEN(&ask, "n2"), 0);
	assert_int_equal(who.uid, getuid());
	REFUSED(OPEN(&ask, "n2"), "replay");
	SEAL();
	REFUSED(OPEN(&ask, "n3"), "another node");
	SEAL();
	other = ask;
	strcpy(other.job, "n1-abc-8");
	REFUSED(OPEN(&other, "n2"), "another job");
	SEAL();
	other = ask;
	other.nonce[0] ^= 1;
	REFUSED(OPEN(&other, "n2"), "another nonce");
	SEAL();
	((char *)data)[length - 1] ^= 1;
	REFUSED(OPEN(&ask, "n2"), "its hash differs");
	((char *)data)[length - 1] ^= 1;
	/* A credential to attach starts nothing, and one to start attaches to nothing. */
	strcpy(spec.nonce, ask.nonce);
	SEAL();
	REFUSED(munged_start_of(munged.socket, credential, &spec, data, length, "n2", &who, &err),
		"another purpose");
	assert_int_equal(spec_seal(&spec, data, length, munged.socket, &credential, &err), 0);
	REFUSED(OPEN(&ask, "n2"), "another purpose");
	free(data);
	munged_stop(&munged);
}

/* The buffer finds bytes by their offsets, through many rounds of its ring. */
static void test_keep(void **state)
{
	struct resend_buffer keep = {0};
	uint64_t taken = 0, seed = 1;
	uint8_t *at;
	size_t n;

	(void)state;
	while (keep.end < 5 * (uint64_t)RESEND_BYTES) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = resend_space(&keep, &n);
		assert_non_null(at);
		assert_true(n <= resend_room(&keep));
		if (n > (seed >> 40) % 100000)
			n = (seed >> 40) % 100000;
		for (size_t i = 0; i < n; i++)
			at[i] = (uint8_t)((keep.end + i) * 31 >> 3);
		resend_added(&keep, n);
		if (keep.end - taken > RESEND_BYTES / 2 || !n) {
			uint64_t upto = taken + (keep.end - taken) / 3 + 1;

			for (uint64_t o = taken; o < upto; o++)
				assert_int_equal(*resend_at(&keep, o, &n), (uint8_t)(o * 31 >> 3));
			resend_drop(&keep, taken = upto);
		}
	}
	resend_drop(&keep, keep.end);
	assert_null(keep.data);
	assert_int_equal(resend_room(&keep), RESEND_BYTES);
	for (size_t i = 0; i < 3; i++) { /* full: no room, and nothing is overwritten */
		at = resend_space(&keep, &n);
		memset(at, (int)i, n);
		resend_added(&keep, n);
	}
	assert_int_equal(resend_room(&keep), 0);
	assert_non_null(resend_space(&keep, &n));
	assert_int_equal(n, 0);
	resend_free(&keep);
	assert_true(keep.start == keep.end && keep.end >= 6 * (uint64_t)RESEND_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_wishes),
		cmocka_unit_test(test_end_text),   cmocka_unit_test(test_damage),
		cmocka_unit_test(test_state),	   cmocka_unit_test(test_credential),
		cmocka_unit_test(test_keep),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
