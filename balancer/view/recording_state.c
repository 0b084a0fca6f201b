/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What reader and writer of recordings share; see recording_state.h. */
#include "balancer/view/recording_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

#define KNOWN(name)                                                                                \
	{                                                                                          \
		name, FIELD_ELSEWHERE, 0, 0                                                        \
	}
#define HEADER(kind, member)   FIELD_OF(kind, recording_header, member)
#define JOB(kind, member)      FIELD_OF(kind, recording_job, member)
#define DECISION(kind, member) FIELD_OF(kind, recording_decision, member)
#define FINISH(kind, member)   FIELD_OF(kind, recording_finish, member)
#define END(kind, member)      FIELD_OF(kind, recording_end, member)
#define MEASURED(member)       FIELD_OF(FIELD_NUMBER, recording_measured, member)

static const struct field header_fields[] = {
	KNOWN("record"),
	KNOWN("version"),
	HEADER(FIELD_BOOL, live),
	HEADER(FIELD_TEXT, program),
	HEADER(FIELD_TEXT, cluster),
	HEADER(FIELD_TEXT, source),
	HEADER(FIELD_TEXT, hash),
	HEADER(FIELD_TEXT, node),
	HEADER(FIELD_LARGE, start_ns),
	HEADER(FIELD_TEXT, policy),
	HEADER(FIELD_LARGE, seed),
	HEADER(FIELD_NUMBER, period_ms),
	HEADER(FIELD_NUMBER, notice_ms),
	KNOWN("rates"),
	KNOWN("reference_mips"),
	KNOWN("network_mb_per_s"),
	KNOWN("units"),
	KNOWN("params"),
};

static const struct field job_fields[] = {
	KNOWN("record"),
	JOB(FIELD_NUMBER, time_ms),
	{"job", FIELD_TEXT, offsetof(struct recording_job, id), RECORDING_ID_MAX},
	JOB(FIELD_COUNT, home),
	{"class", FIELD_TEXT, offsetof(struct recording_job, class_name), RECORDING_NAME_MAX},
	JOB(FIELD_COUNT, tasks),
	JOB(FIELD_NUMBER, cpu_ms),
	JOB(FIELD_NUMBER, io_per_ms),
	JOB(FIELD_NUMBER, request_kb),
	JOB(FIELD_NUMBER, request_sd_kb),
	JOB(FIELD_NUMBER, reaccess),
	JOB(FIELD_OPTIONAL, requests),
	JOB(FIELD_NUMBER, implicit_share),
	JOB(FIELD_NUMBER, memory_mb),
	JOB(FIELD_NUMBER, faults_per_ms),
	JOB(FIELD_NUMBER, initial_mb),
	JOB(FIELD_NUMBER, write_fraction),
	JOB(FIELD_NUMBER, barrier_ms),
	JOB(FIELD_NUMBER, messages_per_ms),
	JOB(FIELD_NUMBER, message_kb),
};

static const struct field decision_fields[] = {
	KNOWN("record"),
	DECISION(FIELD_NUMBER, time_ms),
	DECISION(FIELD_TEXT, job),
	DECISION(FIELD_COUNT, home),
	DECISION(FIELD_TEXT, policy),
	DECISION(FIELD_LARGE, seed),
	KNOWN("params"),
	KNOWN("nodes"),
	KNOWN("changed"),
	KNOWN("request"),
	KNOWN("plan"),
};

static const struct field finish_fields[] = {
	KNOWN("record"),
	FINISH(FIELD_NUMBER, time_ms),
	{"job", FIELD_TEXT, offsetof(struct recording_finish, id), RECORDING_ID_MAX},
	FINISH(FIELD_COUNT, node),
	FINISH(FIELD_NUMBER, start_ms),
	FINISH(FIELD_COUNT, moves),
	FINISH(FIELD_SIGNED, exit),
	FINISH(FIELD_NUMBER, alone_ms),
	FINISH(FIELD_NUMBER, slowdown),
	KNOWN("measured"),
};

static const struct field measured_fields[] = {
	MEASURED(wall_ms),     MEASURED(cpu_ms),      MEASURED(requests),      MEASURED(request_mb),
	MEASURED(page_faults), MEASURED(memory_mb),   MEASURED(io_per_ms),     MEASURED(messages),
	MEASURED(sent_mb),     MEASURED(received_mb), MEASURED(page_fault_mb),
};

static const struct field end_fields[] = {
	KNOWN("record"),
	KNOWN("time_ms"),
	KNOWN("lines"),
	END(FIELD_LARGE, dropped),
	END(FIELD_OPTIONAL, others_cpu),
	END(FIELD_OPTIONAL, others_disk),
	END(FIELD_OPTIONAL, stolen),
	END(FIELD_OPTIONAL, crowded),
};

const struct field *recording_fields(enum recording_table table, size_t *n)
{
	static const struct {
		const struct field *fields;
		size_t n;
	} tables[] = {
		[RECORDING_T_HEADER] = {header_fields, FIELD_COUNT_OF(header_fields)},
		[RECORDING_T_JOB] = {job_fields, FIELD_COUNT_OF(job_fields)},
		[RECORDING_T_DECISION] = {decision_fields, FIELD_COUNT_OF(decision_fields)},
		[RECORDING_T_FINISH] = {finish_fields, FIELD_COUNT_OF(finish_fields)},
		[RECORDING_T_MEASURED] = {measured_fields, FIELD_COUNT_OF(measured_fields)},
		[RECORDING_T_END] = {end_fields, FIELD_COUNT_OF(end_fields)},
	};

	*n = tables[table].n;
	return tables[table].fields;
}

int recording_state_init(struct recording_state *s)
{
	*s = (struct recording_state){.names = json_object()};
	return s->names ? 0 : -ENOMEM;
}

void recording_state_clear(struct recording_state *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		view_node_fini(&s->nodes[i]);
	s->n = 0;
	json_object_clear(s->names);
}

void recording_state_fini(struct recording_state *s)
{
	recording_state_clear(s);
	free(s->nodes);
	json_decref(s->names);
	*s = (struct recording_state){0};
}

int recording_state_add(struct recording_state *s)
{
	if (array_reserve(s->nodes, s->room, s->n + 1, 16))
		return -ENOMEM;
	view_node_init(&s->nodes[s->n], s->n);
	s->n++;
	return 0;
}

void recording_state_pop(struct recording_state *s, const char *name)
{
	const json_t *number = json_object_get(s->names, name);

	s->n--;
	view_node_fini(&s->nodes[s->n]);
	if (number && json_integer_value(number) == s->n)
		json_object_del(s->names, name);
}

int recording_state_name(struct recording_state *s, uint32_t index, const char *name)
{
	const json_t *owner = json_object_get(s->names, name);
	const char *old = s->nodes[index].node.name;
	const json_t *mine = json_object_get(s->names, old);

	if (owner && json_integer_value(owner) != index)
		return -EEXIST;
	if (mine && json_integer_value(mine) == index && strcmp(old, name) != 0)
		json_object_del(s->names, old);
	return field_set(s->names, name, json_integer(index));
}
