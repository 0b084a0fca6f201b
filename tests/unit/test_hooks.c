/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which hooks fit which kernel, tested on type information made up here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "bpf/iocom.skel.h"
#include "user/monitor/monitor_btf.h"
#include "user/monitor/monitor_hooks.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A tracepoint and its number of arguments. */
struct point {
	const char *name;
	int args;
};

/* The hooks of our table that Linux 5.15 has; 6.1 has the same except for the folio. */
static const struct point linux_6_1[] = {
	{"block_bio_queue", 1},	      {"block_rq_complete", 3},
	{"writeback_dirty_folio", 2}, {"writeback_single_inode", 3},
	{"block_bio_remap", 3},	      {"page_fault_kernel", 3},
	{"tcp_rcv_space_adjust", 1},  {"inet_sock_set_state", 3},
	{"sched_process_exit", 1},    {"sched_process_free", 1},
	{"cgroup_attach_task", 4},    {"mm_filemap_add_to_page_cache", 1},
	{"jbd2_handle_stats", 8},
};
static const struct point since_6_3[] = {
	{"sock_send_length", 3}, {"sock_recv_length", 3}, {"mm_filemap_fault", 2}};

static void add_prototype(struct btf *btf, int args)
{
	assert_true(btf__add_func_proto(btf, 0) > 0);
	for (int i = 0; i < args; i++)
		assert_int_equal(btf__add_func_param(btf, "", 1), 0);
}

static void add_tracepoint(struct btf *btf, const char *name, int args)
{
	char typedef_name[96];
	int id = (int)btf__type_cnt(btf);

	add_prototype(btf, args + 1);
	assert_int_equal(btf__add_ptr(btf, id), id + 1);
	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", name);
	assert_int_equal(btf__add_typedef(btf, typedef_name, id + 1), id + 2);
}

static void add_function(struct btf *btf, const char *name, int args)
{
	int id = (int)btf__type_cnt(btf);

	add_prototype(btf, args);
	assert_int_equal(btf__add_func(btf, name, BTF_FUNC_STATIC, id), id + 1);
}

/* A kernel with iterators, the N points, and types that we do not need. */
static struct btf *kernel(const struct point *points, size_t n, const char *without)
{
	struct btf *btf = btf__new_empty();

	assert_non_null(btf);
	assert_int_equal(btf__add_int(btf, "int", 4, BTF_INT_SIGNED), 1);
	add_tracepoint(btf, "sched_switch", 4);
	add_function(btf, "bpf_iter_task", 2);
	add_function(btf, "bpf_iter_task_file", 4);
	add_function(btf, "block_bio_queue", 7);
	for (size_t i = 0; i < n; i++)
		if (!without || strcmp(points[i].name, without) != 0)
			add_tracepoint(btf, points[i].name, points[i].args);
	return btf;
}

static void look(struct hooks *hooks, struct btf *btf, const char *machine)
{
	struct btf_raw raw;
	const void *data;
	__u32 size;

	data = btf__raw_data(btf, &size);
	assert_non_null(data);
	assert_int_equal(btf_raw_init(&raw, data, size), 0);
	hooks_probe(hooks, &raw, machine);
	btf_raw_deinit(&raw);
}

static struct hooks probe(struct btf *btf, const char *machine)
{
	struct hooks hooks;

	look(&hooks, btf, machine);
	btf__free(btf);
	return hooks;
}

static struct hooks probe_6_1(const char *machine)
{
	return probe(kernel(linux_6_1, COUNT(linux_6_1), NULL), machine);
}

static struct btf *newest(void)
{
	struct btf *btf = kernel(linux_6_1, COUNT(linux_6_1), "sched_process_exit");

	for (size_t i = 0; i < COUNT(since_6_3); i++)
		add_tracepoint(btf, since_6_3[i].name, since_6_3[i].args);
	add_tracepoint(btf, "sched_process_exit", 2);
	add_function(btf, "bpf_iter_task_new", 3);
	return btf;
}

static const struct hook_status *status(const struct hooks *hooks, const char *program)
{
	for (size_t h = 0; h < hooks->count; h++)
		if (!strcmp(hooks->status[h].hook->program, program))
			return &hooks->status[h];
	fail_msg("no hook of program %s", program);
	return NULL;
}

/* Returns how COLUMN is degraded: 0 not, 1 less exact, 2 unknown. */
static int degraded(const struct hooks *hooks, const char *column)
{
	struct monitor_degraded list[MONITOR_DEGRADED_MAX];
	size_t n = hooks_degraded(hooks, list, MONITOR_DEGRADED_MAX);
	int worst = 0;

	assert_true(n <= MONITOR_DEGRADED_MAX);
	for (size_t i = 0; i < n; i++) {
		assert_true(list[i].column && list[i].hook && list[i].why && list[i].why[0]);
		if (!strcmp(list[i].column, column) && worst < 1 + list[i].unknown)
			worst = 1 + list[i].unknown;
	}
	return worst;
}

static void test_newest_kernel_has_all(void **state)
{
	struct monitor_degraded list[1];
	struct iocom_err err = {0};
	struct hooks hooks = probe(newest(), "x86_64");

	(void)state;
	assert_int_equal(hooks_needed(&hooks, &err), 0);
	assert_int_equal(hooks_degraded(&hooks, list, 1), 0);
	for (size_t h = 0; h < hooks.count; h++)
		if (!hooks.status[h].hook->stands_in)
			assert_int_equal(hooks.status[h].state, HOOK_USED);
	assert_int_equal(status(&hooks, "dirty_page")->state, HOOK_SPARE);
	assert_int_equal(status(&hooks, "dirty_page")->args, -1);
	assert_int_equal(status(&hooks, "process_exit")->args, 2);
	assert_int_equal(status(&hooks, "sweep")->args, 0);
}

/* Like 6.12: all tracepoints, and sched_process_exit still without group_dead. */
static void test_6_12_has_all(void **state)
{
	struct btf *btf = kernel(linux_6_1, COUNT(linux_6_1), NULL);
	struct monitor_degraded list[1];
	struct iocom_err err = {0};
	struct hooks hooks;

	(void)state;
	for (size_t i = 0; i < COUNT(since_6_3); i++)
		add_tracepoint(btf, since_6_3[i].name, since_6_3[i].args);
	add_function(btf, "bpf_iter_task_new", 3);
	hooks = probe(btf, "x86_64");
	assert_int_equal(hooks_needed(&hooks, &err), 0);
	assert_int_equal(hooks_degraded(&hooks, list, 1), 0);
	assert_int_equal(status(&hooks, "process_exit")->args, 1);
	assert_int_equal(status(&hooks, "process_exit")->state, HOOK_USED);
}

static void test_6_1_lacks_what_is_sent(void **state)
{
	struct iocom_err err = {0};
	struct hooks hooks = probe_6_1("x86_64");

	(void)state;
	assert_int_equal(hooks_needed(&hooks, &err), 0);
	assert_int_equal(status(&hooks, "send_length")->state, HOOK_MISSING);
	assert_int_equal(degraded(&hooks, "sent_bytes"), 2);
	assert_int_equal(degraded(&hooks, "sent_messages"), 2);
	assert_int_equal(degraded(&hooks, "received_messages"), 2);
	assert_int_equal(degraded(&hooks, "local_bytes"), 1);
	assert_int_equal(degraded(&hooks, "implicit_bytes"), 1);
	assert_int_equal(degraded(&hooks, "received_bytes"), 0);
	assert_int_equal(degraded(&hooks, "explicit_write_bytes"), 0);
	assert_int_equal(status(&hooks, "walk")->state, HOOK_MISSING);
	assert_int_equal(degraded(&hooks, "tasks"), 0);
	assert_false(hooks_program_used(&hooks, "send_length"));
	assert_true(hooks_program_used(&hooks, "bio_queue"));
	assert_true(hooks_program_used(&hooks, "a program in no row"));
}

static void test_processors(void **state)
{
	struct btf *btf = newest();
	struct hooks hooks;

	(void)state;
	look(&hooks, btf, "aarch64");
	assert_int_equal(degraded(&hooks, "implicit_bytes"), 0);
	assert_int_equal(degraded(&hooks, "explicit_read_bytes"), 1);
	look(&hooks, btf, "riscv64");
	assert_int_equal(degraded(&hooks, "implicit_bytes"), 2);
	assert_int_equal(degraded(&hooks, "implicit_ops"), 2);
	btf__free(btf);
	/* This kernel has no tracepoints for exceptions. */
	hooks = probe(kernel(linux_6_1, COUNT(linux_6_1), "page_fault_kernel"), "aarch64");
	assert_int_equal(status(&hooks, "fault_kernel")->state, HOOK_MISSING);
	assert_int_equal(degraded(&hooks, "implicit_bytes"), 1);
}

static void test_5_10_is_refused(void **state)
{
	struct btf *btf = kernel(linux_6_1, COUNT(linux_6_1), "block_bio_queue");
	struct iocom_err err = {0};
	struct hooks hooks;

	(void)state;
	add_tracepoint(btf, "block_bio_queue", 2);
	hooks = probe(btf, "x86_64");
	assert_int_equal(status(&hooks, "bio_queue")->state, HOOK_OTHER_FORM);
	assert_int_equal(hooks_needed(&hooks, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "tracepoint block_bio_queue is of another form"));
	assert_non_null(strstr(err.text, "Linux 5.15 or newer"));
}

static void test_each_needed_hook_is_needed(void **state)
{
	struct iocom_err err;

	(void)state;
	for (size_t i = 0; i < COUNT(linux_6_1); i++) {
		const char *name = linux_6_1[i].name;
		struct hooks hooks = probe(kernel(linux_6_1, COUNT(linux_6_1), name), "x86_64");
		bool optional = !strcmp(name, "block_bio_remap") ||
				!strcmp(name, "page_fault_kernel") ||
				!strcmp(name, "mm_filemap_add_to_page_cache") ||
				!strcmp(name, "jbd2_handle_stats");

		memset(&err, 0, sizeof(err));
		assert_int_equal(hooks_needed(&hooks, &err), optional ? 0 : -EOPNOTSUPP);
		if (!optional)
			assert_non_null(strstr(err.text, name));
	}
}

static void test_stand_in(void **state)
{
	struct btf *btf = kernel(linux_6_1, COUNT(linux_6_1), "writeback_dirty_folio");
	struct iocom_err err = {0};
	struct hooks hooks;

	(void)state;
	add_tracepoint(btf, "writeback_dirty_page", 2);
	look(&hooks, btf, "x86_64");
	assert_int_equal(status(&hooks, "dirty_folio")->state, HOOK_MISSING);
	assert_int_equal(status(&hooks, "dirty_page")->state, HOOK_USED);
	assert_int_equal(hooks_needed(&hooks, &err), 0);
	add_tracepoint(btf, "writeback_dirty_folio", 2);
	hooks = probe(btf, "x86_64");
	assert_int_equal(status(&hooks, "dirty_folio")->state, HOOK_USED);
	assert_int_equal(status(&hooks, "dirty_page")->state, HOOK_SPARE);
	/* The kernel refuses the first: the second replaces it. */
	assert_true(hooks_refuse(&hooks, "dirty_folio", "no"));
	assert_int_equal(status(&hooks, "dirty_page")->state, HOOK_USED);
	assert_int_equal(hooks_needed(&hooks, &err), 0);
	assert_false(hooks_refuse(&hooks, "dirty_page", "neither"));
	assert_int_equal(hooks_needed(&hooks, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "refused"));
}

/* Like 6.1: no tracepoints for sends and receives, but the functions around them. */
static void test_functions_stand_in(void **state)
{
	static const struct point functions[] = {{"inet_sendmsg", 3},
						 {"inet6_sendmsg", 3},
						 {"inet_sendpage", 5},
						 {"inet_recvmsg", 4},
						 {"inet6_recvmsg", 4}};
	static const char *const programs[] = {"standin_sendmsg", "standin_sendmsg6",
					       "standin_sendpage", "standin_recvmsg",
					       "standin_recvmsg6"};
	struct btf *btf = kernel(linux_6_1, COUNT(linux_6_1), NULL);
	struct hooks hooks;

	(void)state;
	for (size_t i = 0; i < COUNT(functions); i++)
		add_function(btf, functions[i].name, functions[i].args);
	look(&hooks, btf, "x86_64");
	for (size_t i = 0; i < COUNT(programs); i++)
		assert_int_equal(status(&hooks, programs[i])->state, HOOK_USED);
	assert_int_equal(degraded(&hooks, "sent_bytes"), 0);
	assert_int_equal(degraded(&hooks, "received_messages"), 0);
	/* The kernel lets no program attach to functions: it refuses them one after the other. */
	for (size_t i = 0; i < COUNT(programs); i++)
		assert_true(hooks_refuse(&hooks, programs[i], "not permitted"));
	assert_int_equal(degraded(&hooks, "sent_bytes"), 2);
	assert_int_equal(degraded(&hooks, "local_bytes"), 1);
	assert_int_equal(degraded(&hooks, "received_messages"), 2);
	/* If the tracepoints exist, no program attaches to functions. */
	for (size_t i = 0; i < COUNT(since_6_3); i++)
		add_tracepoint(btf, since_6_3[i].name, since_6_3[i].args);
	hooks = probe(btf, "x86_64");
	for (size_t i = 0; i < COUNT(programs); i++)
		assert_false(hooks_program_used(&hooks, programs[i]));
}

static void test_refusal(void **state)
{
	struct hooks hooks = probe(newest(), "x86_64");
	struct monitor_degraded list[1];
	struct iocom_err err = {0};

	(void)state;
	assert_false(hooks_refuse(&hooks, "", "nothing"));
	assert_false(hooks_refuse(&hooks, "no such program", "nothing"));
	assert_true(hooks_refuse(&hooks, "send_length", "not permitted"));
	assert_false(hooks_refuse(&hooks, "send_length", "twice: loading again would not end"));
	assert_string_equal(status(&hooks, "send_length")->error, "not permitted");
	assert_int_equal(degraded(&hooks, "sent_bytes"), 2);
	assert_int_equal(hooks_needed(&hooks, &err), 0);
	/* There are more than fit, but all are counted. */
	assert_true(hooks_degraded(&hooks, list, 1) > 1);
	assert_false(hooks_refuse(&hooks, "bio_queue", "not permitted"));
	assert_int_equal(hooks_needed(&hooks, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "program bio_queue: not permitted"));
}

/* Understudies are loaded where programs may be preempted, and only beside what they stand for. */
static void test_understudies(void **state)
{
	struct hooks hooks = probe(newest(), "x86_64");
	char name[64];

	(void)state;
	assert_true(hooks_understudy("bio_queue_again", name, sizeof(name)));
	assert_string_equal(name, "bio_queue");
	assert_false(hooks_understudy("bio_queue", name, sizeof(name)));
	assert_false(hooks_understudy("_again", name, sizeof(name)));
	hooks.srcu_fast = false;
	assert_false(hooks_program_used(&hooks, "bio_queue_again"));
	hooks.srcu_fast = hooks.preempt_calls = true;
	assert_true(hooks_program_used(&hooks, "bio_queue_again"));
	assert_true(hooks_refuse(&hooks, "send_length", "not permitted"));
	assert_false(hooks_program_used(&hooks, "send_length_again"));
	/* A kernel that refuses one gets none, and what it skips is counted. */
	assert_true(hooks_refuse(&hooks, "bio_queue_again", "too large"));
	assert_false(hooks_program_used(&hooks, "bio_queue_again"));
	assert_false(hooks_refuse(&hooks, "dirty_folio_again", "loading again would not end"));
	assert_true(hooks_program_used(&hooks, "bio_queue"));
}

static void test_worst_case_fits(void **state)
{
	struct hooks hooks = probe(kernel(NULL, 0, NULL), "vax");
	struct monitor_degraded list[MONITOR_DEGRADED_MAX];

	(void)state;
	assert_in_range(hooks_degraded(&hooks, list, MONITOR_DEGRADED_MAX), 8,
			MONITOR_DEGRADED_MAX);
}

/* Each row names an existing program, and each program has one row. */
static void test_table_matches_programs(void **state)
{
	struct hooks hooks = probe(newest(), "x86_64");
	struct iocom_bpf *skel = iocom_bpf__open();
	struct bpf_program *program;
	size_t programs = 0;
	char name[64];

	(void)state;
	assert_non_null(skel);
	bpf_object__for_each_program(program, skel->obj)
	{
		const char *section = bpf_program__section_name(program);
		const char *slash = strchr(section, '/');
		bool understudy = hooks_understudy(bpf_program__name(program), name, sizeof(name));
		const struct hook *hook =
			status(&hooks, understudy ? name : bpf_program__name(program))->hook;

		programs += !understudy;
		/* We run it, or it is beside another program on a tracepoint: its hook is the
		 * function that it calls. */
		if (!strcmp(section, "syscall") || !strcmp(hook->name, "bpf_iter_task_new")) {
			assert_int_equal(hook->kind, HOOK_FUNCTION);
			continue;
		}
		assert_non_null(slash);
		assert_string_equal(slash + 1, hook->name);
		assert_int_equal(hook->kind, !strncmp(section, "tp_btf/", 7) ? HOOK_TRACEPOINT
					     : !strncmp(section, "iter/", 5) ? HOOK_ITERATOR
									     : HOOK_FUNCTION);
	}
	assert_int_equal(programs, hooks.count);
	iocom_bpf__destroy(skel);
	for (size_t h = 0; h < hooks.count; h++) {
		const struct hook *hook = hooks.status[h].hook;

		assert_non_null(hook->columns[0]);
		assert_non_null(hook->without);
		if (hook->stands_in)
			assert_ptr_not_equal(status(&hooks, hook->stands_in), &hooks.status[h]);
		/* An optional hook whose absence degrades nothing would be useless. */
		assert_true(hook->needed || hook->faster || hook->profiles || hook->stands_in ||
			    hook->unknown[0] || hook->coarse[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_kernel_has_all),
		cmocka_unit_test(test_6_12_has_all),
		cmocka_unit_test(test_6_1_lacks_what_is_sent),
		cmocka_unit_test(test_processors),
		cmocka_unit_test(test_5_10_is_refused),
		cmocka_unit_test(test_each_needed_hook_is_needed),
		cmocka_unit_test(test_stand_in),
		cmocka_unit_test(test_functions_stand_in),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_understudies),
		cmocka_unit_test(test_worst_case_fits),
		cmocka_unit_test(test_table_matches_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
