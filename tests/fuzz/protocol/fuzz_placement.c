/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Placements: a request, or the JSON of an answer or of a journal's row.  What is understood
 * is written again and means the same; a row of a row is that row.
 */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "balancer/view/placement_table.h"
#include "user/pack.h"

static void request(const uint8_t *data, size_t size)
{
	static struct placement_ask ask, back;
	struct iocom_err err = {0};
	msgpack_unpacked message;
	msgpack_sbuffer first, buffer;

	if (unpack_map(&message, data, size))
		return;
	if (!placement_ask_unpack(&ask, &message.data, &err)) {
		for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++) {
			const struct placement_field *f = &placement_ask_fields[i];

			if (f->kind != PLACEMENT_COUNT && f->kind != PLACEMENT_FLAG)
				must_end(placement_ask_at(&ask, f), f->bound);
		}
		placement_ask_pack(&ask, &first); /* the spec is the message's */
		msgpack_unpacked_destroy(&message);
		must(!unpack_map(&message, first.data, first.size));
		must(!placement_ask_unpack(&back, &message.data, &err));
		placement_ask_pack(&back, &buffer);
		msgpack_unpacked_destroy(&message);
		must(!unpack_map(&message, buffer.data, buffer.size));
		must(!placement_ask_unpack(&ask, &message.data, &err));
		must(ask.restarts == back.restarts && ask.run == back.run);
		must(!strcmp(ask.node, back.node) && !strcmp(ask.cwd, back.cwd));
		must(ask.spec_length == back.spec_length && !ask.spec == !back.spec);
		must(!ask.spec || !memcmp(ask.spec, back.spec, ask.spec_length));
		msgpack_sbuffer_destroy(&first);
		msgpack_sbuffer_destroy(&buffer);
	} else {
		must(*err.text);
	}
	msgpack_unpacked_destroy(&message);
}

/* P written as FORM, read, and written again: the same.  The document is the caller's. */
static json_t *again(const struct placement *p, enum placement_form form)
{
	json_t *first = placement_json(p, form), *second;
	struct placement back;

	must(first && !placement_read(&back, first, "it", NULL));
	second = placement_json(&back, form);
	must(json_equal(first, second));
	json_decref(second);
	placement_fini(&back);
	return first;
}

static void answer(const char *text, size_t size)
{
	struct iocom_err err = {0};
	json_t *document = json_loadb(text, size, 0, NULL), *row;
	struct placement p;

	if (!document)
		return;
	if (!placement_read(&p, document, "it", &err)) {
		json_decref(again(&p, PLACEMENT_ANSWER));
		row = again(&p, PLACEMENT_ROW);
		must(!json_object_get(row, "nonce") && !json_object_get(row, "view"));
		must(json_array_size(json_object_get(row, "nodes")) <= p.nnodes);
		must(p.lost.wait_ms || p.nrefused <= json_array_size(p.refusals));
		json_decref(row);
	} else {
		must(*err.text);
	}
	placement_fini(&p);
	json_decref(document);
}

static void sample_answer(FILE *out)
{
	struct placement p;
	json_t *document;

	placement_init(&p);
	p.policy = "iocm-re";
	p.home = "n1";
	p.node = p.job = p.first = p.address = p.nonce = p.munge_socket = "n2";
	p.need_given = NEED_ALL;
	p.placed = true;
	p.attempt = 1;
	p.nodes = calloc(1, sizeof(*p.nodes));
	p.nnodes = 1;
	must(!placement_refuse(&p, "n3", "memory", "no room"));
	document = placement_json(&p, PLACEMENT_ANSWER);
	json_dumpf(document, out, JSON_COMPACT);
	json_decref(document);
	placement_fini(&p);
}

bool sample(int n, FILE *out)
{
	static struct placement_ask ask;
	msgpack_sbuffer buffer;

	if (n) {
		sample_answer(out);
		return n < 2;
	}
	placement_ask_init(&ask);
	strcpy(ask.policy, "wal");
	strcpy(ask.node, "n2");
	strcpy(ask.class_name, "sort");
	strcpy(ask.cwd, "/tmp");
	strcpy(ask.executable, "/usr/bin/sort");
	strcpy(ask.command, "sort big");
	strcpy(ask.again, "n1-0f-7");
	ask.restarts = 3;
	ask.run = ask.view = ask.picked = ask.worker = ask.home_dir = true;
	ask.need.value[NEED_CPU_S] = 2;
	placement_ask_pack(&ask, &buffer);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return true;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == '{')
		answer((const char *)data, size);
	else
		request(data, size);
	return 0;
}
