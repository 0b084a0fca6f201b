/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Stated needs that no node can meet: found, written, read back, and said. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "balancer/view/placement.h"

static struct iocom_vector node(const char *name, double memory_mb, uint32_t disks, bool accepts)
{
	struct iocom_vector v = {.memory_mb = memory_mb, .disks = disks, .accepts_jobs = accepts};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

static void wants(struct placement *p, enum need_field field, double value, enum need_source source)
{
	need_set(&p->need, field, value, source);
}

static void look(struct placement *p, const struct iocom_vector *nodes, size_t n)
{
	placement_unmet_begin(p);
	for (size_t i = 0; i < n; i++)
		placement_unmet_node(p, &nodes[i], i == 0);
	placement_unmet_end(p);
}

static void test_found(void **state)
{
	struct iocom_vector nodes[] = {node("n1", 1000, 0, false), node("n2", 4000, 0, true),
				       node("n3", 64000, 1, false)};
	struct placement p;

	(void)state;
	placement_init(&p);
	wants(&p, NEED_MEMORY_MB, 50000, NEED_OPTION);
	wants(&p, NEED_IO_PER_S, 10, NEED_OPTION);
	look(&p, nodes, 3); /* n3 lets no jobs in */
	assert_int_equal(p.nunmet, 2);
	assert_string_equal(p.unmet[0].need, "memory_mb");
	assert_true(p.unmet[0].wanted == 50000 && p.unmet[0].most == 4000);
	assert_string_equal(p.unmet[0].node, "n2");
	assert_string_equal(p.unmet[1].need, "io_per_s");
	assert_true(p.unmet[1].most == 0);
	assert_string_equal(p.unmet[1].node, "");
	nodes[2].accepts_jobs = true;
	look(&p, nodes, 3);
	assert_int_equal(p.nunmet, 0);
	/* Home need not let jobs of others in to run its own. */
	wants(&p, NEED_MEMORY_MB, 900, NEED_OPTION);
	look(&p, nodes, 1);
	assert_int_equal(p.nunmet, 1);
	assert_string_equal(p.unmet[0].need, "io_per_s");
	/* What is learned, guessed or usual is no user's word. */
	for (int source = NEED_DEFAULT; source <= NEED_GUESS; source++) {
		wants(&p, NEED_MEMORY_MB, 1e9, (enum need_source)source);
		wants(&p, NEED_IO_PER_S, 0, (enum need_source)source);
		look(&p, nodes, 3);
		assert_int_equal(p.nunmet, source == NEED_OPTION);
	}
	placement_fini(&p);
}

static void test_document(void **state)
{
	struct iocom_vector one = node("n1", 1000, 1, true);
	struct placement p, again;
	struct iocom_err err = {0};
	json_t *document;
	char text[256];

	(void)state;
	for (int form = PLACEMENT_ANSWER; form <= PLACEMENT_ROW; form++) {
		placement_init(&p);
		p.policy = "nlb";
		p.home = p.node = "n1";
		wants(&p, NEED_MEMORY_MB, 50000, NEED_OPTION);
		look(&p, &one, 1);
		document = placement_json(&p, (enum placement_form)form);
		assert_non_null(document);
		assert_int_equal(placement_read(&again, document, "it", &err), 0);
		json_decref(document);
		assert_int_equal(again.nunmet, 1);
		assert_memory_equal(&again.unmet[0], &p.unmet[0], sizeof(p.unmet[0]));
		placement_unmet_text(&again, 0, text, sizeof(text));
		assert_string_equal(text, "no node has the 50 GB of memory that the job needs as "
					  "stated: the largest, n1, has 1 GB; it goes to n1, its "
					  "home all the same");
		placement_fini(&again);
		p.nunmet = 0;
		document = placement_json(&p, (enum placement_form)form);
		assert_null(json_object_get(document, "unmet"));
		json_decref(document);
		placement_fini(&p);
	}
}

/* What an agent, of whatever version, may send. */
static void test_wrong_documents(void **state)
{
	static const char *const wrong[] = {
		"{\"unmet\": 1}",
		"{\"unmet\": [1]}",
		"{\"unmet\": [{\"need\": \"memory_mb\", \"wanted\": \"x\", \"most\": 1, "
		"\"node\": \"n\"}]}",
		"{\"unmet\": [{\"need\": 1, \"wanted\": 1, \"most\": 1, \"node\": \"n\"}]}",
		"{\"unmet\": [{\"need\": \"memory_mb\", \"wanted\": 1, \"most\": 1}]}",
	};
	static const char one[] = "{\"need\": \"a-need-of-a-newer-version-with-a-long-name\", "
				  "\"wanted\": 2, \"most\": 1, \"node\": \"n2\"}";
	struct iocom_err err = {0};
	struct placement p;
	char text[256], many[1024];
	json_t *document;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		document = json_loads(wrong[i], 0, NULL);
		assert_non_null(document);
		assert_int_equal(placement_read(&p, document, "it", &err), -EPROTO);
		assert_non_null(strstr(err.text, "unmet"));
		json_decref(document);
		placement_fini(&p);
	}
	snprintf(many, sizeof(many),
		 "{\"home\": \"n1\", \"node\": \"n1\", \"unmet\": [%s,%s,%s,%s,%s]}", one, one, one,
		 one, one);
	document = json_loads(many, 0, NULL);
	assert_int_equal(placement_read(&p, document, "it", &err), 0);
	json_decref(document);
	assert_int_equal(p.nunmet, PLACEMENT_UNMET_MAX);
	placement_unmet_text(&p, 0, text, sizeof(text));
	assert_non_null(strstr(text, "2: the largest, n2, has 1; it goes to n1, its home"));
	placement_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_wrong_documents),
	};

	return cmocka_run_group_tests_name("placement_unmet", tests, NULL, NULL);
}
