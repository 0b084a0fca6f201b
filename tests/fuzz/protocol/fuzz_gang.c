/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The plan of a gang, and the messages of its launchers: what is accepted keeps the rules that
 * launchers rely on, and packing it again gives the same.
 */
#include "user/gang_plan.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

bool sample(int n, FILE *out)
{
	struct gang_node nodes[] = {{.name = "n1", .tasks = 2},
				    {.name = "n2", .address = "10.0.0.2", .tasks = 1}};
	uint32_t ranks[] = {0, 2, 1};
	const struct gang_plan plan = {.gang = "n1-4f2a-57",
				       .launch = GANG_LAUNCH_PMI1,
				       .tasks = 3,
				       .nnodes = 2,
				       .nodes = nodes,
				       .ranks = ranks};
	const struct gang_message message = {.type = GANG_GO, .port = 4000, .address = "10.0.0.1"};
	uint8_t bytes[GANG_MESSAGE_MAX];
	size_t length;
	void *data;

	if (n) {
		fwrite(bytes, 1, gang_message_pack(&message, bytes), out);
		return n < 2;
	}
	must(!gang_plan_pack(&plan, &data, &length, NULL));
	fwrite(data, 1, length, out);
	free(data);
	return true;
}

FUZZ_SAMPLES

static void check_message(const uint8_t *data, size_t size)
{
	uint8_t packed[GANG_MESSAGE_MAX];
	struct gang_message message, again;

	if (gang_message_unpack(&message, data, size))
		return;
	must(message.type >= GANG_READY && message.type <= GANG_FAILED);
	must(message.rank < GANG_TASKS_MAX);
	must(!gang_message_unpack(&again, packed, gang_message_pack(&message, packed)));
	must(message.rank == again.rank && message.value == again.value &&
	     message.port == again.port && !strcmp(message.text, again.text));
}

/* Each task is on one node. */
static void check_plan(const struct gang_plan *plan)
{
	uint32_t next = 0;

	must(spec_job_valid(plan->gang) && plan->part < plan->nnodes);
	must(plan->tasks && plan->tasks <= GANG_TASKS_MAX && plan->nnodes <= GANG_PARTS_MAX);
	for (uint32_t i = 0; i < plan->nnodes; i++) {
		must(plan->nodes[i].first == next && plan->nodes[i].tasks);
		next += plan->nodes[i].tasks;
	}
	must(next == plan->tasks);
	for (uint32_t i = 0; i < plan->tasks; i++)
		must(plan->ranks[i] < plan->tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gang_plan plan, again;
	size_t length;
	void *packed;

	check_message(data, size);
	if (gang_plan_unpack(&plan, data, size, NULL))
		return 0;
	check_plan(&plan);
	must(!gang_plan_pack(&plan, &packed, &length, NULL));
	must(!gang_plan_unpack(&again, packed, length, NULL));
	must(again.tasks == plan.tasks &&
	     !memcmp(again.ranks, plan.ranks, plan.tasks * sizeof(*plan.ranks)));
	free(packed);
	gang_plan_free(&again);
	gang_plan_free(&plan);
	return 0;
}
