/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Relocation by the extract of the kernel's types gives the same programs as
 * relocation by all of them; and what happens when the kernel refuses a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/monitor/monitor_internal.h"
#include "tests/lib/watch.h"

/* Counts differing instructions; only the numbers of maps may differ. */
static size_t differences(struct bpf_program *a, struct bpf_program *b)
{
	const struct bpf_insn *x = bpf_program__insns(a), *y = bpf_program__insns(b);
	size_t n = bpf_program__insn_cnt(a), differ = 0;

	assert_int_equal(n, bpf_program__insn_cnt(b));
	for (size_t i = 0; i < n; i++) {
		bool map = x[i].code == (BPF_LD | BPF_IMM | BPF_DW) && x[i].src_reg != 0;

		differ += x[i].code != y[i].code || x[i].dst_reg != y[i].dst_reg ||
			  x[i].src_reg != y[i].src_reg || x[i].off != y[i].off ||
			  (!map && x[i].imm != y[i].imm);
	}
	return differ;
}

static void test_same_programs(void **state)
{
	struct monitor_knobs knobs = {.all_disks = true};
	struct monitor_types none = {.fd = -1}, types;
	struct iocom_bpf *by_extract, *by_all;
	struct bpf_program *program = NULL;
	struct iocom_err err = {0};
	struct hooks hooks;
	double began, middle;
	size_t loaded = 0;

	(void)state;
	if (geteuid() != 0 || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	if (monitor_load_probe(&hooks, &types, &err))
		fail_msg("%s", err.text);
	assert_true(types.path[0] && types.fd >= 0);
	began = watch_now_ms();
	assert_int_equal(monitor_load_open(&by_extract, &hooks, &knobs, &types, &err), 0);
	middle = watch_now_ms();
	assert_int_equal(monitor_load_open(&by_all, &hooks, &knobs, &none, &err), 0);
	printf("# |load by the extract %.1f ms, by all types %.1f ms\n", middle - began,
	       watch_now_ms() - middle);
	while ((program = bpf_object__next_program(by_extract->obj, program))) {
		const char *name = bpf_program__name(program);

		if (!bpf_program__autoload(program))
			continue;
		if (differences(program, bpf_object__find_program_by_name(by_all->obj, name)))
			fail_msg("program %s differs", name);
		loaded++;
	}
	assert_true(loaded >= 10);
	monitor_types_deinit(&types);
	assert_int_equal(types.fd, -1);
	iocom_bpf__destroy(by_extract);
	iocom_bpf__destroy(by_all);
}

/* The file is gone: libbpf says so, without a crash or a half-loaded object. */
static void test_no_such_file(void **state)
{
	struct monitor_types types, bad = {.fd = -1, .path = "/proc/self/fd/999"};
	struct monitor_knobs knobs = {.all_disks = true};
	struct iocom_err err = {0};
	struct iocom_bpf *skel;
	struct hooks hooks;

	(void)state;
	if (geteuid() != 0 || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	if (monitor_load_probe(&hooks, &types, &err))
		fail_msg("%s", err.text);
	monitor_types_deinit(&types);
	assert_true(monitor_load_open(&skel, &hooks, &knobs, &bad, &err) < 0);
	assert_null(skel);
	assert_true(err.text[0]);
}

/* Renames a member that only some programs need, so the extract does not have it. */
static void hide(const struct monitor_types *types, const char *member)
{
	char wanted[64];
	struct stat st;
	/* the name with the NUL before and after it */
	size_t length = strlen(member) + 2, hits = 0;
	char *data;

	snprintf(wanted + 1, sizeof(wanted) - 1, "%s", member);
	wanted[0] = 0;
	assert_int_equal(fstat(types->fd, &st), 0);
	data = malloc((size_t)st.st_size);
	assert_int_equal(pread(types->fd, data, (size_t)st.st_size, 0), st.st_size);
	for (size_t at = 0; at + length <= (size_t)st.st_size; at++) {
		if (memcmp(data + at, wanted, length) != 0)
			continue;
		data[at + 1] = 'X';
		hits++;
	}
	assert_true(hits > 0);
	assert_int_equal(pwrite(types->fd, data, (size_t)st.st_size, 0), st.st_size);
	free(data);
}

static const struct hook_status *status(const struct hooks *hooks, const char *program)
{
	for (size_t h = 0; h < hooks->count; h++)
		if (!strcmp(hooks->status[h].hook->program, program))
			return &hooks->status[h];
	fail_msg("no hook of program %s", program);
	return NULL;
}

/* Loads without MEMBER. */
static int load_without(const char *member, struct iocom_bpf **skel, struct hooks *hooks,
			struct iocom_err *err)
{
	struct monitor_knobs knobs = {.all_disks = true};
	struct monitor_types types;
	int rc;

	if (monitor_load_probe(hooks, &types, err))
		fail_msg("%s", err->text);
	if (member)
		hide(&types, member);
	rc = monitor_load_open(skel, hooks, &knobs, &types, err);
	monitor_types_deinit(&types);
	return rc;
}

static void test_optional_program_refused(void **state)
{
	struct iocom_err err = {0};
	struct iocom_bpf *skel;
	struct hooks hooks;

	(void)state;
	if (geteuid() != 0 || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	if (load_without("bd_dev", &skel, &hooks, &err))
		fail_msg("%s", err.text);
	assert_int_equal(status(&hooks, "bio_remap")->state, HOOK_REFUSED);
	assert_non_null(strstr(status(&hooks, "bio_remap")->error, "bio_remap"));
	assert_false(bpf_program__autoload(skel->progs.bio_remap));
	assert_int_equal(status(&hooks, "bio_queue")->state, HOOK_USED);
	assert_true(bpf_program__fd(skel->progs.bio_queue) >= 0);
	iocom_bpf__destroy(skel);
}

static void test_needed_program_refused(void **state)
{
	struct iocom_err err = {0};
	struct iocom_bpf *skel;
	struct hooks hooks;

	(void)state;
	if (geteuid() != 0 || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	assert_true(load_without("io_start_time_ns", &skel, &hooks, &err) < 0);
	assert_null(skel);
	assert_non_null(strstr(err.text, "rq_complete"));
	assert_int_equal(status(&hooks, "rq_complete")->state, HOOK_REFUSED);
	assert_int_equal(hooks_needed(&hooks, &err), -EOPNOTSUPP);
}

/* Makes a program impossible to attach: its descriptor is of something else. */
static void spoil(struct bpf_program *program)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(dup3(fd, bpf_program__fd(program), O_CLOEXEC), bpf_program__fd(program));
	close(fd);
}

static void test_attach_refused(void **state)
{
	struct iocom_err err = {0};
	struct iocom_bpf *skel;
	struct hooks hooks;

	(void)state;
	if (geteuid() != 0 || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	if (load_without(NULL, &skel, &hooks, &err))
		fail_msg("%s", err.text);
	spoil(skel->progs.bio_remap);
	assert_int_equal(monitor_load_attach(skel, &hooks, &err), MONITOR_E_AGAIN);
	assert_int_equal(status(&hooks, "bio_remap")->state, HOOK_REFUSED);
	assert_non_null(strstr(status(&hooks, "bio_remap")->error, "cannot attach"));
	iocom_bpf__destroy(skel);

	if (load_without(NULL, &skel, &hooks, &err))
		fail_msg("%s", err.text);
	spoil(skel->progs.bio_queue);
	assert_true(monitor_load_attach(skel, &hooks, &err) < 0);
	assert_non_null(strstr(err.text, "cannot attach eBPF program bio_queue"));
	iocom_bpf__destroy(skel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_programs),
		cmocka_unit_test(test_no_such_file),
		cmocka_unit_test(test_optional_program_refused),
		cmocka_unit_test(test_needed_program_refused),
		cmocka_unit_test(test_attach_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
