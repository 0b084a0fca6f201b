// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Where the parts of a gang are: written, read, refused where it is wrong, and without secrets in a
// row.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "balancer/view/gang_answer.h"
#include "balancer/view/placement.h"

static struct iocom_err err;

/* Tasks 0, 1 and 3 are on node 2, task 2 on node 0. */
static struct gang_answer *sample(void)
{
	static const uint32_t nodes[] = {2, 2, 0, 2};
	uint32_t *at;
	struct gang_answer *gang = gang_answer_new(nodes, 4, 3, &at);

	assert_non_null(gang);
	assert_int_equal(gang->nparts, 2);
	assert_int_equal(at[0], 0);
	assert_int_equal(at[1], 2);
	free(at);
	strcpy(gang->job, "n1-4f2a-57");
	strcpy(gang->parts[0].job, "n1-4f2a-57.0");
	strcpy(gang->parts[0].node, "n1");
	strcpy(gang->parts[0].nonce, "00ff");
	strcpy(gang->parts[1].job, "n1-4f2a-57.1");
	strcpy(gang->parts[1].node, "n3");
	strcpy(gang->parts[1].address, "10.0.0.3");
	strcpy(gang->parts[1].nonce, "01ff");
	strcpy(gang->parts[1].key, "abcd");
	gang->parts[1].port = 7701;
	return gang;
}

static void test_parts(void **state)
{
	struct gang_answer *gang = sample();
	const uint32_t ranks[] = {2, 0, 1, 3};

	(void)state;
	assert_memory_equal(gang->ranks, ranks, sizeof(ranks));
	assert_int_equal(gang->parts[0].tasks, 1);
	assert_int_equal(gang->parts[1].first, 1);
	assert_int_equal(gang->parts[1].tasks, 3);
	gang_answer_free(gang);
}

static void test_again(void **state)
{
	struct gang_answer *gang = sample(), *back;
	json_t *document;

	(void)state;
	gang->why = json_pack("{s:s}", "text", "because");
	document = gang_answer_json(gang, true);
	assert_int_equal(gang_answer_read(&back, document, &err), 0);
	json_decref(document);
	assert_string_equal(back->job, gang->job);
	assert_int_equal(back->tasks, 4);
	assert_int_equal(back->nparts, 2);
	assert_memory_equal(back->ranks, gang->ranks, 4 * sizeof(uint32_t));
	assert_memory_equal(back->parts, gang->parts, 2 * sizeof(*gang->parts));
	assert_true(json_equal(back->why, gang->why));
	gang_answer_free(back);
	gang_answer_free(gang);
}

/* A placement has the gang; its row and its public form have it without nonces and keys. */
static void test_placement(void **state)
{
	struct placement p, back;
	json_t *document, *shown;
	char *text;

	(void)state;
	placement_init(&p);
	p.ask.tasks = 4;
	p.gang = sample();
	p.job = p.gang->job;
	p.munge_socket = "/run/munge/munge.socket.2";
	document = placement_json(&p, PLACEMENT_ANSWER);
	assert_int_equal(placement_read(&back, document, "the answer", &err), 0);
	assert_int_equal(back.ask.tasks, 4);
	assert_string_equal(back.munge_socket, p.munge_socket);
	assert_memory_equal(back.gang->parts, p.gang->parts, 2 * sizeof(*p.gang->parts));
	shown = placement_public(&back);
	text = json_dumps(shown, 0);
	assert_null(strstr(text, "01ff"));
	assert_null(strstr(text, "abcd"));
	assert_non_null(strstr(text, "n1-4f2a-57.1"));
	free(text);
	json_decref(shown);
	placement_fini(&back);
	json_decref(document);

	document = placement_json(&p, PLACEMENT_ROW);
	text = json_dumps(document, 0);
	assert_null(strstr(text, "nonce"));
	assert_null(strstr(text, "abcd"));
	assert_non_null(strstr(text, "0-1,3"));
	free(text);
	json_object_set_new(json_object_get(document, "gang"), "tasks", json_integer(5));
	assert_int_equal(placement_read(&back, document, "the row", &err), -EPROTO);
	assert_string_equal(err.text, "the row has no usable 'gang'");
	placement_fini(&back);
	json_decref(document);
	placement_fini(&p);
}

/* Reads the sample with member KEY of the gang, or of its last part, replaced by VALUE. */
static void wrong(bool in_part, const char *key, json_t *value, const char *sentence)
{
	struct gang_answer *gang = sample(), *back;
	json_t *document = gang_answer_json(gang, true);
	json_t *at = in_part ? json_array_get(json_object_get(document, "parts"), 1) : document;

	json_object_set_new(at, key, value);
	assert_int_equal(gang_answer_read(&back, document, &err), -EPROTO);
	assert_null(back);
	assert_string_equal(err.text, sentence);
	json_decref(document);
	gang_answer_free(gang);
}

static void test_wrong(void **state)
{
	(void)state;
	wrong(false, "tasks", json_integer(0), "\"tasks\" of a gang is not 1 to 4096");
	wrong(false, "tasks", json_integer(4097), "\"tasks\" of a gang is not 1 to 4096");
	wrong(false, "tasks", json_integer(5), "the parts of gang n1-4f2a-57 have 4 tasks, not 5");
	wrong(false, "parts", json_array(), "\"parts\" of a gang is no list of 1 to 1024 parts");
	wrong(false, "job", json_string(""), "\"job\" of a gang is no text as it should be");
	wrong(true, "ranks", json_string("0-2"), "gang n1-4f2a-57 has task 2 twice");
	wrong(true, "ranks", json_string("0-3"),
	      "the parts of gang n1-4f2a-57 have too many tasks");
	wrong(true, "ranks", json_string("0,4"),
	      "\"ranks\" of part n1-4f2a-57.1 is no list of tasks");
	wrong(true, "port", json_integer(65536), "\"port\" of part n1-4f2a-57.1 is no port");
	wrong(true, "node", json_integer(3), "\"node\" of a gang is no text as it should be");
	wrong(true, "node", json_stringn("a\0b", 3),
	      "\"node\" of a gang is no text as it should be");
}

static void test_ranks(void **state)
{
	static const char *const good[] = {"0", "0-3", "0,2,4-6", "5,7"};
	static const char *const bad[] = {"",  "-",  "0-", "3-1",   "1,1", "2-3,3",   "1,0",
					  "8", "0,", "a",  "0-1-2", " 1",  "0000001", "4294967296"};
	uint32_t ranks[8], count;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(gang_ranks_parse(good[i], 8, ranks, &count), 0);
		assert_int_equal(gang_ranks_text(ranks, count, text, sizeof(text)),
				 strlen(good[i]));
		assert_string_equal(text, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(gang_ranks_parse(bad[i], 8, ranks, &count), -EINVAL);
	assert_int_equal(gang_ranks_parse("0,2,4-6", 8, ranks, &count), 0);
	assert_int_equal(gang_ranks_text(ranks, count, text, 4), 7);
	assert_string_equal(text, "0,2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),	  cmocka_unit_test(test_again),
		cmocka_unit_test(test_placement), cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_ranks),
	};
	return cmocka_run_group_tests_name("gang_answer", tests, NULL, NULL);
}
