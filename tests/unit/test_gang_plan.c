// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/gang_plan.h"
#include "user/pack.h"

static struct gang_node nodes[] = {{.name = "n1", .address = "", .tasks = 2},
				   {.name = "n2", .address = "10.0.0.2", .tasks = 1}};
static uint32_t ranks[] = {0, 2, 1};

static struct gang_plan sample(void)
{
	return (struct gang_plan){.gang = "n1-4f2a-57",
				  .launch = GANG_LAUNCH_PMIX,
				  .label = true,
				  .tasks = 3,
				  .part = 1,
				  .nnodes = 2,
				  .nodes = nodes,
				  .ranks = ranks,
				  .secret = {1, 2, 3}};
}

static int again(const struct gang_plan *plan, struct gang_plan *out, struct iocom_err *err)
{
	size_t length;
	void *data;
	int rc;

	assert_int_equal(gang_plan_pack(plan, &data, &length, err), 0);
	rc = gang_plan_unpack(out, data, length, err);
	free(data);
	return rc;
}

static void test_whole(void **state)
{
	struct gang_plan plan = sample(), out;
	struct iocom_err err = {0};

	(void)state;
	assert_int_equal(again(&plan, &out, &err), 0);
	assert_string_equal(out.gang, "n1-4f2a-57");
	assert_int_equal(out.launch, GANG_LAUNCH_PMIX);
	assert_true(out.label && !out.keep_going && !out.bind);
	assert_int_equal(out.tasks, 3);
	assert_int_equal(out.part, 1);
	assert_int_equal(out.nnodes, 2);
	assert_string_equal(out.nodes[1].address, "10.0.0.2");
	assert_int_equal(out.nodes[1].first, 2);
	assert_memory_equal(out.ranks, ranks, sizeof(ranks));
	assert_memory_equal(out.secret, plan.secret, GANG_SECRET);
	gang_plan_free(&out);
	assert_null(out.nodes);
}

static void refused(const struct gang_plan *plan)
{
	struct iocom_err err = {0};
	struct gang_plan out;

	assert_int_equal(again(plan, &out, &err), -EBADMSG);
	assert_true(*err.text);
	assert_null(out.nodes);
}

static void test_wrong_plans(void **state)
{
	struct gang_plan plan = sample();
	struct gang_node more[2] = {nodes[0], nodes[1]};
	uint32_t twice[] = {0, 1, 1}, falling[] = {2, 0, 1}, beyond[] = {0, 3, 1};

	(void)state;
	plan.ranks = twice;
	refused(&plan);
	plan.ranks = falling;
	refused(&plan);
	plan.ranks = beyond;
	refused(&plan);
	plan = sample();
	plan.part = 2;
	refused(&plan);
	plan = sample();
	plan.launch = GANG_LAUNCHES;
	refused(&plan);
	plan = sample();
	strcpy(plan.gang, "../x");
	refused(&plan);
	plan = sample();
	plan.nodes = more;
	more[1].tasks = 2; /* more than there are */
	refused(&plan);
	more[1].tasks = 0;
	refused(&plan);
	more[1] = nodes[1];
	more[0].tasks = 1; /* a task is nobody's */
	refused(&plan);
	more[0].tasks = 2;
	more[0].name[0] = '\0';
	refused(&plan);
}

static void test_bounds(void **state)
{
	struct gang_plan plan = sample(), out;
	struct iocom_err err = {0};
	uint32_t *many = malloc(GANG_TASKS_MAX * sizeof(*many));
	struct gang_node *all = calloc(GANG_PARTS_MAX, sizeof(*all));
	void *data;
	size_t length;

	(void)state;
	assert_true(many && all);
	for (uint32_t i = 0; i < GANG_TASKS_MAX; i++)
		many[i] = i;
	for (uint32_t i = 0; i < GANG_PARTS_MAX; i++) {
		memset(all[i].name, 'n', IOCOM_NAME_MAX - 1);
		memset(all[i].address, '1', IOCOM_ADDRESS_MAX - 1);
		all[i].tasks = GANG_TASKS_MAX / GANG_PARTS_MAX;
	}
	plan.tasks = GANG_TASKS_MAX;
	plan.nnodes = GANG_PARTS_MAX;
	plan.ranks = many;
	plan.nodes = all;
	assert_int_equal(again(&plan, &out, &err), 0);
	assert_int_equal(out.nodes[GANG_PARTS_MAX - 1].first, GANG_TASKS_MAX - 4);
	gang_plan_free(&out);
	plan.tasks++;
	assert_int_equal(gang_plan_pack(&plan, &data, &length, &err), -E2BIG);
	free(many);
	free(all);
	data = calloc(1, GANG_PACKED_MAX + 1);
	assert_non_null(data);
	assert_int_equal(gang_plan_unpack(&out, data, GANG_PACKED_MAX + 1, &err), -E2BIG);
	free(data);
}

/* Whatever is cut off or flipped: no crash, and what is accepted keeps the rules. */
static void test_damaged(void **state)
{
	struct gang_plan plan = sample(), out;
	struct iocom_err err = {0};
	uint8_t *data, *copy;
	void *packed;
	size_t length;

	(void)state;
	assert_int_equal(gang_plan_pack(&plan, &packed, &length, &err), 0);
	data = packed;
	for (size_t cut = 0; cut < length; cut++) {
		copy = malloc(cut + 1);
		memcpy(copy, data, cut);
		assert_int_not_equal(gang_plan_unpack(&out, copy, cut, &err), 0);
		free(copy);
	}
	for (size_t bit = 0; bit < 8 * length; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!gang_plan_unpack(&out, data, length, &err)) {
			assert_true(out.part < out.nnodes && spec_job_valid(out.gang));
			gang_plan_free(&out);
		}
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	free(packed);
}

static void test_other_version(void **state)
{
	struct iocom_err err = {0};
	struct gang_plan out;
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	(void)state;
	pack_begin(&pk, &buffer, 1);
	pack_u64(&pk, "v", 9);
	assert_int_equal(gang_plan_unpack(&out, buffer.data, buffer.size, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "another version"));
	msgpack_sbuffer_destroy(&buffer);
}

static void test_messages(void **state)
{
	struct gang_message failed = {.type = GANG_FAILED,
				      .rank = 7,
				      .signalled = true,
				      .value = 9},
			    go = {.type = GANG_GO, .port = 40123, .address = "10.0.0.1"}, out;
	uint8_t data[GANG_MESSAGE_MAX];
	size_t length;

	(void)state;
	memset(failed.text, 't', sizeof(failed.text) - 1);
	length = gang_message_pack(&failed, data);
	assert_int_equal(gang_message_unpack(&out, data, length), 0);
	assert_int_equal(out.type, GANG_FAILED);
	assert_int_equal(out.rank, 7);
	assert_int_equal(out.value, 9);
	assert_true(out.signalled);
	assert_string_equal(out.text, failed.text);
	length = gang_message_pack(&go, data);
	assert_int_equal(gang_message_unpack(&out, data, length), 0);
	assert_int_equal(out.port, 40123);
	assert_string_equal(out.address, "10.0.0.1");
	for (size_t cut = 0; cut < length; cut++)
		assert_int_equal(gang_message_unpack(&out, data, cut), -EBADMSG);
	go.type = (enum gang_message_type)9;
	length = gang_message_pack(&go, data);
	assert_int_equal(gang_message_unpack(&out, data, length), -EBADMSG);
	go.type = GANG_FAILED;
	go.rank = GANG_TASKS_MAX;
	length = gang_message_pack(&go, data);
	assert_int_equal(gang_message_unpack(&out, data, length), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	      cmocka_unit_test(test_wrong_plans),
		cmocka_unit_test(test_bounds),	      cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_other_version), cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
