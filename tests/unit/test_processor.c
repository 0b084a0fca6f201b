/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What processors can do, from files as the kernel writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/processor.h"

static processor_set look(const char *text)
{
	char path[] = "/tmp/iocom-processor-XXXXXX";
	int fd = mkstemp(path);
	processor_set set;

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%s", text) >= 0);
	close(fd);
	set = processor_look(path);
	unlink(path);
	return set;
}

#define OLDER "processor\t: 0\nvendor_id\t: A\nflags\t\t: fpu sse2 pni avx avx2 unheard_of\n"
#define NEWER                                                                                      \
	"processor\t: 0\nflags\t\t: fpu avx2 avx512f pni avx\nbugs\t\t: none\n\nprocessor\t: "     \
	"1\nflags\t\t: fpu\n"
#define ARM                                                                                        \
	"processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd aes crc32\nCPU implementer\t: "  \
	"0x41\n"

static void test_lacks(void **state)
{
	processor_set older = look(OLDER), newer = look(NEWER);
	char names[64];

	(void)state;
	assert_int_equal(processor_lacks(newer, older, names, sizeof(names)), 0);
	assert_string_equal(names, "");
	assert_int_equal(processor_lacks(older, newer, names, sizeof(names)), 1);
	assert_string_equal(names, "avx512f");
	assert_int_equal(processor_lacks(older, older, names, sizeof(names)), 0);
}

static void test_kinds(void **state)
{
	processor_set x86 = look(OLDER), arm = look(ARM);
	char names[64];

	(void)state;
	assert_int_equal(processor_lacks(x86, arm, names, sizeof(names)), 1);
	assert_string_equal(names, "arm64");
	assert_int_equal(processor_lacks(arm, x86, names, sizeof(names)), 1);
	assert_string_equal(names, "x86");
	assert_int_equal(processor_lacks(arm, arm, names, sizeof(names)), 0);
	assert_int_equal(processor_lacks(look("Features\t: asimd\n"), arm, names, sizeof(names)),
			 2);
	assert_string_equal(names, "aes, crc32");
}

/* Who does not know lets it go. */
static void test_unknown(void **state)
{
	char names[64];

	(void)state;
	assert_true(processor_look("/proc/no/such/file") == 0);
	assert_true(look("model name\t: flags of old\n") == 0);
	assert_int_equal(processor_lacks(0, look(NEWER), names, sizeof(names)), 0);
	assert_int_equal(processor_lacks(look(NEWER), 0, names, sizeof(names)), 0);
	/* A set from elsewhere may have any bits. */
	assert_int_equal(processor_lacks(1, 1, names, sizeof(names)), 0);
	assert_true(processor_lacks(look(OLDER), UINT64_MAX, names, sizeof(names)) > 40);
}

static void test_room(void **state)
{
	char names[12];

	(void)state;
	assert_int_equal(processor_lacks(look("flags : fpu\n"), look("flags : avx avx2 avx512f\n"),
					 names, sizeof(names)),
			 3);
	assert_string_equal(names, "avx, avx2, ");
}

/* The order of the words is what other versions know them by. */
static void test_bits(void **state)
{
	(void)state;
	assert_true(look("flags : pni\n") == (UINT64_C(1) << 62 | 1));
	assert_true(look("flags : avx512f\n") == (UINT64_C(1) << 62 | UINT64_C(1) << 19));
	assert_true(look("Features : asimd sve2\n") == (UINT64_C(1) << 63 | UINT64_C(1) << 18 | 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lacks),	cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_room),
		cmocka_unit_test(test_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
