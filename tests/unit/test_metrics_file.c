/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The text of the newest page as a sealed file: made once, when it is first wanted. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/logged.h"
#include "agent/metrics/metrics_file.h"
#include "user/clock.h"

#define KEPT_MAX    16
#define PATIENCE_NS (20 * CLOCK_NS_PER_S)

/* The C library's, as it is called for each text: counted, held up, or refused. */
static _Atomic unsigned texts;
static _Atomic bool held;
static _Atomic int refusal;

int memfd_create(const char *name, unsigned flags)
{
	texts++;
	while (held)
		usleep(1000);
	if (refusal) {
		errno = refusal;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

struct fixture {
	struct loop *loop;
	struct logger log;
	struct base base;
	struct loop_timer patience;
	struct metrics_jobs *jobs;
	struct metrics_file *file;
	unsigned came, until;
	ino_t inode; /* of the last file that came */
	int fd;	     /* a copy of it */
	bool keep;   /* all copies are kept instead */
	int kept[KEPT_MAX];
	size_t nkept;
	char *text;
	size_t length;
};

static void have(void *arg, int fd)
{
	struct fixture *f = arg;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	free(f->text);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = f->keep ? -1 : dup(fd);
	if (f->keep)
		f->kept[f->nkept++ % KEPT_MAX] = dup(fd);
	f->inode = st.st_ino;
	f->length = (size_t)st.st_size;
	f->text = calloc(1, f->length + 1);
	assert_int_equal(pread(fd, f->text, f->length, 0), f->length);
	if (++f->came >= f->until)
		loop_stop(f->loop);
}

static void too_long(void *arg)
{
	(void)arg;
	fail_msg("nothing came");
}

/* Waits until N files came, those that were here included. */
static void until_came(struct fixture *f, unsigned n)
{
	f->until = n;
	f->patience = (struct loop_timer){.fire = too_long};
	if (f->came < n) {
		loop_start(f->loop, &f->patience, PATIENCE_NS);
		assert_int_equal(loop_run(f->loop), 0);
		loop_cancel(f->loop, &f->patience);
	}
	assert_int_equal(f->came, n);
}

static void put(struct fixture *f, uint64_t time_ns)
{
	struct monitor_sample sample = {.time_ns = time_ns};
	struct metrics_page *page = metrics_page_new(&sample, f->jobs);

	assert_non_null(page);
	metrics_file_put(f->file, page);
}

static bool shows(const struct fixture *f, const char *time)
{
	char line[100];

	snprintf(line, sizeof(line), "\niocom_reading_time_seconds{node=\"\"} %s\n", time);
	return strstr(f->text, line) != NULL;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct iocom_err err = {0};

	*state = f;
	held = false;
	refusal = 0;
	f->fd = -1;
	f->jobs = metrics_jobs_new(4);
	if (logged_begin(&f->log) || loop_new(&f->loop, &err))
		return -1;
	f->base = (struct base){.loop = f->loop, .log = &f->log};
	return metrics_file_new(&f->file, &f->base, have, f, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	metrics_file_free(f->file);
	metrics_jobs_free(f->jobs);
	loop_free(f->loop);
	logged_end();
	if (f->fd >= 0)
		close(f->fd);
	free(f->text);
	free(f);
	return 0;
}

static void test_no_reading(void **state)
{
	struct fixture *f = *state;

	metrics_file_want(f->file);
	assert_int_equal(f->came, 1); /* at once */
	assert_int_equal(f->length, 0);
}

/* One text for each page that is wanted, whoever wants it how often. */
static void test_once_a_page(void **state)
{
	struct fixture *f = *state;
	ino_t first;

	put(f, 1000000000);
	put(f, 2000000000);
	metrics_file_want(f->file);
	metrics_file_want(f->file);
	metrics_file_want(f->file);
	assert_int_equal(f->came, 0); /* the loop does not wait */
	until_came(f, 1);
	assert_true(shows(f, "2.000000000"));
	first = f->inode;
	metrics_file_want(f->file);
	assert_int_equal(f->came, 2);
	assert_int_equal(f->inode, first);
	put(f, 3000000000);
	assert_int_equal(f->came, 2); /* nobody wants it yet */
	metrics_file_want(f->file);
	until_came(f, 3);
	assert_true(f->inode != first);
	assert_true(shows(f, "3.000000000"));
}

/* A page that comes while the text of another is made is the next one's. */
static void test_newer_page_meanwhile(void **state)
{
	struct fixture *f = *state;

	put(f, 1000000000);
	metrics_file_want(f->file);
	put(f, 2000000000);
	metrics_file_want(f->file);
	until_came(f, 1);
	assert_true(shows(f, "1.000000000"));
	metrics_file_want(f->file);
	until_came(f, 2);
	assert_true(shows(f, "2.000000000"));
}

/* Its reader cannot change it for those who get it later. */
static void test_sealed(void **state)
{
	struct fixture *f = *state;
	int seals;

	put(f, 1000000000);
	metrics_file_want(f->file);
	until_came(f, 1);
	seals = fcntl(f->fd, F_GET_SEALS);
	assert_int_equal(seals, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(pwrite(f->fd, "x", 1, 0), -1);
	assert_int_equal(pwrite(f->fd, "x", 1, (off_t)f->length), -1);
	assert_int_equal(ftruncate(f->fd, (off_t)f->length + 1), -1);
	assert_int_equal(fallocate(f->fd, 0, (off_t)f->length, 4096), -1);
	assert_int_equal(fcntl(f->fd, F_ADD_SEALS, F_SEAL_SHRINK), -1);
	assert_true(mmap(NULL, f->length, PROT_WRITE, MAP_SHARED, f->fd, 0) == MAP_FAILED);
}

/* There is no descriptor for a new text: the older one comes, and that is logged. */
static void test_no_descriptor(void **state)
{
	struct fixture *f = *state;
	struct rlimit before, none;

	put(f, 1000000000);
	metrics_file_want(f->file);
	until_came(f, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	put(f, 2000000000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	metrics_file_want(f->file);
	close(f->fd);
	f->fd = -1;
	until_came(f, 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(shows(f, "1.000000000"));
	assert_int_equal(logged("shows an older reading"), 1);
}

/* Who wants it without end brings about one text a page, and no message more than it sent. */
static void test_wanted_without_end(void **state)
{
	struct fixture *f = *state;
	unsigned before = texts;

	held = true;
	put(f, 1000000000);
	for (int i = 0; i < 1000; i++)
		metrics_file_want(f->file);
	assert_int_equal(f->came, 0);
	held = false;
	until_came(f, 1); /* one answer for all that came while it was made */
	assert_int_equal(texts, before + 1);
	for (int i = 0; i < 1000; i++)
		metrics_file_want(f->file);
	assert_int_equal(f->came, 1001);
	assert_int_equal(texts, before + 1);
	for (uint64_t i = 2; i < 1000; i++) /* pages that nobody wants cost nothing */
		put(f, i * 1000000000);
	assert_int_equal(texts, before + 1);
}

/* Who keeps all descriptors keeps the memory of two texts. */
static void test_all_kept(void **state)
{
	struct fixture *f = *state;
	size_t full = 0;

	metrics_file_want(f->file); /* the empty one */
	f->keep = true;
	for (unsigned i = 1; i <= KEPT_MAX; i++) {
		put(f, i * 1000000000ull);
		metrics_file_want(f->file);
		until_came(f, 1 + i);
		assert_true(f->length > 1000);
	}
	for (size_t i = 0; i < KEPT_MAX; i++) {
		struct stat st;

		assert_int_equal(fstat(f->kept[i], &st), 0);
		assert_true((st.st_size > 0) == (i >= KEPT_MAX - 2));
		assert_true((st.st_blocks > 0) == (st.st_size > 0));
		full += st.st_size > 0;
		close(f->kept[i]);
	}
	assert_int_equal(full, 2);
}

/* There is no memory for a file: the older text comes; when there is again, a newer one. */
static void test_no_memory(void **state)
{
	struct fixture *f = *state;

	put(f, 1000000000);
	refusal = ENOMEM;
	metrics_file_want(f->file);
	until_came(f, 1);
	assert_int_equal(f->length, 0);
	assert_int_equal(logged("Cannot allocate memory; it shows an older reading"), 1);
	refusal = 0;
	put(f, 2000000000);
	metrics_file_want(f->file);
	until_came(f, 2);
	assert_true(shows(f, "2.000000000"));
}

/* The thread takes too long: the older text comes meanwhile, at once the next time. */
static void test_too_slow(void **state)
{
	struct fixture *f = *state;
	unsigned before;

	put(f, 1000000000);
	metrics_file_want(f->file);
	until_came(f, 1);
	held = true;
	before = texts;
	put(f, 2000000000);
	metrics_file_want(f->file);
	until_came(f, 2);
	assert_true(shows(f, "1.000000000"));
	assert_int_equal(logged("shows an older reading"), 1);
	put(f, 3000000000);
	metrics_file_want(f->file);
	assert_int_equal(f->came, 3);
	assert_true(shows(f, "1.000000000"));
	assert_int_equal(logged("shows an older reading"), 2);
	metrics_file_want(f->file); /* the page is lost: nothing is to be made */
	assert_int_equal(f->came, 4);
	assert_int_equal(logged("shows an older reading"), 2);
	assert_int_equal(texts, before + 1);
	held = false;
	for (unsigned came = 5; !shows(f, "4.000000000"); came++) {
		assert_true(came < 2000);
		usleep(1000); /* until the thread is through */
		put(f, 4000000000);
		metrics_file_want(f->file);
		until_came(f, came);
	}
}

static void test_cannot_begin(void **state)
{
	struct fixture *f = *state;
	struct metrics_file *file = (void *)f;
	struct iocom_err err = {0};

	refusal = EMFILE;
	assert_int_equal(metrics_file_new(&file, &f->base, have, f, &err), -EMFILE);
	assert_null(file);
	assert_non_null(strstr(err.text, "cannot make a file in memory"));
	metrics_file_free(NULL);
}

/* It may end while the thread is at work. */
static void test_end_while_making(void **state)
{
	struct fixture *f = *state;

	put(f, 1000000000);
	metrics_file_want(f->file);
	metrics_file_free(f->file);
	f->file = NULL;
	assert_int_equal(f->came, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_reading, setup, teardown),
		cmocka_unit_test_setup_teardown(test_once_a_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer_page_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wanted_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_slow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cannot_begin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_while_making, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
