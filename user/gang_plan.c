/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A gang's plan on the wire: one MessagePack map, in which "nodes" has [name, address, tasks] for
 * each node and "ranks" the tasks of all nodes, one node after the other.  All input is bounded
 * here.
 */
#include "user/gang_plan.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/pack.h"

#define GANG_PLAN_VERSION 1
/* each node has a list of three; the rest is keys and single values */
#define GANG_PLAN_VALUES (4 * GANG_PARTS_MAX + GANG_TASKS_MAX + 64)

void gang_plan_free(struct gang_plan *plan)
{
	free(plan->nodes);
	free(plan->ranks);
	explicit_bzero(plan->secret, sizeof(plan->secret));
	*plan = (struct gang_plan){0};
}

static void gang_plan_pack_nodes(msgpack_packer *pk, const struct gang_plan *plan)
{
	pack_key(pk, "nodes");
	msgpack_pack_array(pk, plan->nnodes);
	for (uint32_t i = 0; i < plan->nnodes; i++) {
		const struct gang_node *node = &plan->nodes[i];

		msgpack_pack_array(pk, 3);
		msgpack_pack_str_with_body(pk, node->name, strlen(node->name));
		msgpack_pack_str_with_body(pk, node->address, strlen(node->address));
		msgpack_pack_uint32(pk, node->tasks);
	}
	pack_key(pk, "ranks");
	msgpack_pack_array(pk, plan->tasks);
	for (uint32_t i = 0; i < plan->tasks; i++)
		msgpack_pack_uint32(pk, plan->ranks[i]);
}

int gang_plan_pack(const struct gang_plan *plan, void **data, size_t *length, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	if (plan->tasks > GANG_TASKS_MAX || plan->nnodes > GANG_PARTS_MAX)
		return iocom_err_set(err, -E2BIG,
				     "%u tasks on %u nodes are too many: at most %d tasks on %d",
				     plan->tasks, plan->nnodes, GANG_TASKS_MAX, GANG_PARTS_MAX);
	pack_begin(&pk, &buffer, 10);
	pack_u64(&pk, "v", GANG_PLAN_VERSION);
	pack_str(&pk, "gang", plan->gang);
	pack_u64(&pk, "launch", plan->launch);
	pack_bool(&pk, "label", plan->label);
	pack_bool(&pk, "keep_going", plan->keep_going);
	pack_bool(&pk, "bind", plan->bind);
	pack_u64(&pk, "part", plan->part);
	pack_bin(&pk, "secret", plan->secret, sizeof(plan->secret));
	gang_plan_pack_nodes(&pk, plan);
	*length = buffer.size;
	*data = msgpack_sbuffer_release(&buffer);
	if (!*data)
		return iocom_err_set(err, -ENOMEM, "there is no memory for the plan of the gang");
	return 0;
}

/* Copies a string of a list.  Returns 0 or -EBADMSG. */
static int gang_plan_text(const msgpack_object *o, char *out, size_t size)
{
	if (o->type != MSGPACK_OBJECT_STR || o->via.str.size >= size ||
	    memchr(o->via.str.ptr, '\0', o->via.str.size))
		return -EBADMSG;
	memcpy(out, o->via.str.ptr, o->via.str.size);
	out[o->via.str.size] = '\0';
	return 0;
}

static int gang_plan_number(const msgpack_object *o, uint32_t least, uint32_t most, uint32_t *out)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 < least || o->via.u64 > most)
		return -EBADMSG;
	*out = (uint32_t)o->via.u64;
	return 0;
}

/* Returns the list KEY of 1 to MOST entries, or NULL. */
static const msgpack_object_array *gang_plan_list(const msgpack_object *map, const char *key,
						  uint32_t most)
{
	const msgpack_object *o = unpack_get(map, key);

	if (!o || o->type != MSGPACK_OBJECT_ARRAY || !o->via.array.size || o->via.array.size > most)
		return NULL;
	return &o->via.array;
}

static int gang_take_nodes(struct gang_plan *plan, const msgpack_object_array *list)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < list->size; i++) {
		const msgpack_object *o = &list->ptr[i];
		struct gang_node *node = &plan->nodes[i];

		if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 3 ||
		    gang_plan_text(&o->via.array.ptr[0], node->name, sizeof(node->name)) ||
		    !node->name[0] ||
		    gang_plan_text(&o->via.array.ptr[1], node->address, sizeof(node->address)) ||
		    gang_plan_number(&o->via.array.ptr[2], 1, plan->tasks - first, &node->tasks))
			return -EBADMSG;
		node->first = first;
		first += node->tasks;
	}
	plan->nnodes = list->size;
	return first == plan->tasks ? 0 : -EBADMSG;
}

/* Each task occurs once, and those of a node ascend. */
static int gang_take_ranks(struct gang_plan *plan, const msgpack_object_array *list)
{
	bool seen[GANG_TASKS_MAX] = {false};

	for (uint32_t i = 0; i < list->size; i++) {
		uint32_t *rank = &plan->ranks[i];

		if (gang_plan_number(&list->ptr[i], 0, plan->tasks - 1, rank) || seen[*rank])
			return -EBADMSG;
		seen[*rank] = true;
	}
	for (uint32_t n = 0; n < plan->nnodes; n++) {
		const uint32_t *own = plan->ranks + plan->nodes[n].first;

		for (uint32_t i = 1; i < plan->nodes[n].tasks; i++)
			if (own[i] < own[i - 1])
				return -EBADMSG;
	}
	return 0;
}

static int gang_take_lists(struct gang_plan *plan, const msgpack_object *map)
{
	const msgpack_object_array *nodes = gang_plan_list(map, "nodes", GANG_PARTS_MAX);
	const msgpack_object_array *ranks = gang_plan_list(map, "ranks", GANG_TASKS_MAX);

	if (!nodes || !ranks || plan->part >= nodes->size)
		return -EBADMSG;
	plan->tasks = ranks->size;
	plan->nodes = calloc(nodes->size, sizeof(*plan->nodes));
	plan->ranks = calloc(ranks->size, sizeof(*plan->ranks));
	if (!plan->nodes || !plan->ranks)
		return -ENOMEM;
	return gang_take_nodes(plan, nodes) ? -EBADMSG : gang_take_ranks(plan, ranks);
}

static int gang_take(struct gang_plan *plan, const msgpack_object *map)
{
	const msgpack_object *secret = unpack_get(map, "secret");
	uint64_t launch, part;

	if (unpack_str(map, "gang", plan->gang, sizeof(plan->gang)) ||
	    !spec_job_valid(plan->gang) || unpack_u64(map, "launch", &launch) ||
	    launch >= GANG_LAUNCHES || unpack_bool(map, "label", &plan->label) ||
	    unpack_bool(map, "keep_going", &plan->keep_going) ||
	    unpack_bool(map, "bind", &plan->bind) || unpack_u64(map, "part", &part) ||
	    part >= GANG_PARTS_MAX || !secret || secret->type != MSGPACK_OBJECT_BIN ||
	    secret->via.bin.size != GANG_SECRET)
		return -EBADMSG;
	plan->launch = (enum gang_launch)launch;
	plan->part = (uint32_t)part;
	memcpy(plan->secret, secret->via.bin.ptr, GANG_SECRET);
	return gang_take_lists(plan, map);
}

int gang_plan_unpack(struct gang_plan *plan, const void *data, size_t length, struct iocom_err *err)
{
	msgpack_unpacked message;
	uint64_t version = 0;
	int rc;

	*plan = (struct gang_plan){0};
	if (length > GANG_PACKED_MAX)
		return iocom_err_set(err, -E2BIG, "the plan of the gang is too long");
	if (unpack_map_of(&message, data, length, GANG_PLAN_VALUES))
		return iocom_err_set(err, -EBADMSG, "the plan of the gang is malformed");
	if (unpack_u64(&message.data, "v", &version) || version != GANG_PLAN_VERSION)
		rc = iocom_err_set(err, -EBADMSG,
				   "the plan of the gang is of another version of iocom; "
				   "install the same one on both sides");
	else if ((rc = gang_take(plan, &message.data)) == -ENOMEM)
		iocom_err_set(err, rc, "there is no memory for the plan of the gang");
	else if (rc)
		iocom_err_set(err, rc, "the plan of the gang is malformed");
	msgpack_unpacked_destroy(&message);
	if (rc)
		gang_plan_free(plan);
	return rc;
}

const char *gang_told_text(const char *text)
{
	size_t n = strlen(GANG_TOLD_TO_END);

	if (strncmp(text, GANG_TOLD_TO_END, n) != 0)
		return NULL;
	return strncmp(text + n, ": ", 2) ? "" : text + n + 2;
}

bool gang_crash_signal(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGABRT || signal == SIGSYS || signal == SIGKILL;
}

void gang_task_sentence(const char *word, uint32_t rank, const char *node, bool signalled,
			uint32_t value, char *out, size_t size)
{
	const char *name = signalled ? sigabbrev_np((int)value) : NULL;

	if (signalled)
		snprintf(out, size, "%s %u on %s was ended by signal %u (%s)", word, rank, node,
			 value, name ? name : "?");
	else
		snprintf(out, size, "%s %u on %s ended with status %u", word, rank, node, value);
}

size_t gang_message_pack(const struct gang_message *message, uint8_t out[GANG_MESSAGE_MAX])
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	size_t length;

	pack_begin(&pk, &buffer, 8);
	pack_u64(&pk, "type", message->type);
	pack_u64(&pk, "port", message->port);
	pack_str(&pk, "address", message->address);
	pack_u64(&pk, "rank", message->rank);
	pack_bool(&pk, "signalled", message->signalled);
	pack_u64(&pk, "value", message->value);
	pack_bool(&pk, "crash", message->crash);
	pack_str(&pk, "text", message->text);
	/* All members are bounded, so it is far shorter; 0 if there was no memory for all of it. */
	length = buffer.size <= GANG_MESSAGE_MAX ? buffer.size : 0;
	memcpy(out, buffer.data, length);
	msgpack_sbuffer_destroy(&buffer);
	return length;
}

int gang_message_unpack(struct gang_message *message, const void *data, size_t length)
{
	uint64_t type = 0, port = 0, rank = 0, value = 0;
	msgpack_unpacked map;
	int rc = 0;

	*message = (struct gang_message){0};
	if (length > GANG_MESSAGE_MAX || unpack_map(&map, data, length))
		return -EBADMSG;
	if (unpack_u64(&map.data, "type", &type) || type < GANG_READY || type > GANG_FAILED ||
	    unpack_u64(&map.data, "port", &port) || port > UINT16_MAX ||
	    unpack_str(&map.data, "address", message->address, sizeof(message->address)) ||
	    unpack_u64(&map.data, "rank", &rank) || rank >= GANG_TASKS_MAX ||
	    unpack_bool(&map.data, "signalled", &message->signalled) ||
	    unpack_u64(&map.data, "value", &value) || value > UINT32_MAX ||
	    unpack_str(&map.data, "text", message->text, sizeof(message->text)))
		rc = -EBADMSG;
	(void)unpack_bool(&map.data, "crash", &message->crash); /* an older launcher has none */
	message->type = (enum gang_message_type)type;
	message->port = (uint16_t)port;
	message->rank = (uint32_t)rank;
	message->value = (uint32_t)value;
	msgpack_unpacked_destroy(&map);
	return rc;
}
