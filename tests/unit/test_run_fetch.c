/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a node sends home after a job: only what was asked for, beneath the directory, and whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/run/run_data.h"

static char world[64];
static struct data_set set;
static struct run_data data;

/* A client that has asked for out and d/r, and now hears what the node sends. */
static int begin_fetch(void **state)
{
	const struct data_names names = {.brings = {"out", "d/r"}, .nbrings = 2};
	struct iocom_err err = {0};

	(void)state;
	strcpy(world, "/tmp/iocom-fetch-XXXXXX");
	if (!mkdtemp(world) || chdir(world) || mkdir("elsewhere", 0755) ||
	    symlink("/tmp", "out-link") || data_set_look(&set, &names, "/bin/true", &err) ||
	    run_data_init(&data, &set, NULL, "n2"))
		return -1;
	data.state = RUN_DATA_FETCHING;
	return 0;
}

static int end_fetch(void **state)
{
	char command[100];

	(void)state;
	run_data_fini(&data);
	data_set_free(&set);
	snprintf(command, sizeof(command), "rm -rf %s", world);
	return chdir("/") || system(command);
}

static int hear(enum data_type type, const void *payload, size_t length)
{
	static uint8_t frame[DATA_MESSAGE];

	data_head(frame, type, (uint32_t)length);
	if (length)
		memcpy(frame + DATA_HEAD, payload, length);
	return run_data_take(&data, frame, (uint32_t)(DATA_HEAD + length));
}

static int hear_entry(const char *path, enum data_kind kind, uint64_t size)
{
	const struct data_entry entry = {
		.path = (char *)path, .kind = kind, .mode = 0640, .size = size, .mtime_ns = 1};
	uint8_t packed[1024];
	int n = data_entry_pack(&entry, packed, sizeof(packed));

	assert_true(n > 0);
	return hear(DATA_ENTRY, packed, (size_t)n);
}

static void hash_of(const char *text, uint8_t out[DATA_HASH])
{
	struct data_hash *hash = data_hash_new();

	data_hash_add(hash, text, strlen(text));
	data_hash_end(hash, out);
}

static int hear_file(const char *path, const char *text, const char *hashed)
{
	uint8_t hash[DATA_HASH];
	int rc = hear_entry(path, DATA_KIND_FILE, strlen(text));

	hash_of(hashed, hash);
	if (!rc)
		rc = hear(DATA_DATA, text, strlen(text));
	return rc ? rc : hear(DATA_FILE, hash, sizeof(hash));
}

static void assert_content(const char *path, const char *text)
{
	char found[100] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fgets(found, sizeof(found), file) || !*text);
	fclose(file);
	assert_string_equal(found, text);
}

static void files_and_directories_come_home(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(hear_entry("out", DATA_KIND_DIRECTORY, 0), 0);
	assert_int_equal(hear_file("out/a", "content", "content"), 0);
	assert_int_equal(hear_file("out/deep/er/b", "b", "b"), 0);
	assert_int_equal(hear_file("d/r", "", ""), 0);
	assert_int_equal(hear(DATA_DONE, NULL, 0), 0);
	assert_content("out/a", "content");
	assert_content("out/deep/er/b", "b");
	assert_content("d/r", "");
	assert_int_equal(stat("out/a", &st), 0);
	assert_true((st.st_mode & 0777) == 0640 && st.st_mtim.tv_nsec == 1);
	assert_false(run_data_unfetched(&data));
	assert_int_equal(data.fetched_files, 3);
}

static void what_was_not_asked_for_is_refused(void **state)
{
	static const char *const paths[] = {"other", "outside", "d", "d/rr", "out-link/x"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		assert_int_equal(hear_file(paths[i], "x", "x"), -EPROTO);
		assert_int_equal(access("other", F_OK), -1);
		data.err = (struct iocom_err){0};
		data_entry_free(&data.getting);
	}
	assert_int_equal(access("/tmp/x", F_OK), -1);
}

/* A link below what was asked for, made meanwhile, leads nowhere outside. */
static void links_lead_not_out(void **state)
{
	(void)state;
	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(symlink("/tmp", "out/tmp"), 0);
	assert_int_equal(symlink("../elsewhere", "out/near"), 0);
	assert_int_equal(hear_file("out/tmp/iocom-fetched", "x", "x"), 0);
	assert_int_equal(access("/tmp/iocom-fetched", F_OK), -1);
	assert_non_null(strstr(data.gone, "out/tmp/iocom-fetched was not fetched from node n2"));
	/* nor elsewhere in the directory: --bring names only out */
	assert_int_equal(hear_file("out/near/y", "y", "y"), 0);
	assert_int_equal(hear_entry("out/near", DATA_KIND_DIRECTORY, 0), 0);
	assert_int_equal(hear_file("out/new/er/y", "y", "y"), 0);
	assert_int_equal(access("elsewhere/y", F_OK), -1);
	assert_content("out/new/er/y", "y");
	/* but a link that it names is followed */
	assert_int_equal(symlink("elsewhere", "d"), 0);
	assert_int_equal(hear_file("d/r", "r", "r"), 0);
	assert_content("elsewhere/r", "r");
}

/* What is not whole leaves the file that was there, and nothing temporary. */
static void half_a_file_is_none(void **state)
{
	uint8_t hash[DATA_HASH];

	(void)state;
	assert_int_equal(hear_file("d/r", "before", "before"), 0);
	assert_int_equal(hear_file("d/r", "after", "other"), 0); /* another hash */
	assert_content("d/r", "before");
	assert_non_null(strstr(data.gone, "changed while it was fetched"));
	assert_int_equal(hear_entry("d/r", DATA_KIND_FILE, 5), 0); /* shorter than it said */
	assert_int_equal(hear(DATA_DATA, "aft", 3), 0);
	hash_of("aft", hash);
	assert_int_equal(hear(DATA_FILE, hash, sizeof(hash)), 0);
	assert_content("d/r", "before");
	assert_int_equal(hear_entry("d/r", DATA_KIND_FILE, 5), 0); /* and then nothing */
	assert_int_equal(hear(DATA_DATA, "aft", 3), 0);
	run_fetch_drop(&data);
	assert_content("d/r", "before");
	assert_int_equal(system("[ \"$(ls -A d)\" = r ]"), 0);
}

static void what_is_no_conversation_is_refused(void **state)
{
	(void)state;
	assert_int_equal(hear(DATA_DATA, "x", 1), -EPROTO);
	assert_int_equal(hear(DATA_FILE, NULL, 0), -EPROTO);
	assert_int_equal(hear(DATA_WANT, "x", 1), -EPROTO);
	assert_int_equal(hear(DATA_GONE, "no end", 6), -EPROTO);
	assert_int_equal(hear_entry("out/a", DATA_KIND_FILE, 2), 0);
	assert_int_equal(hear(DATA_DATA, "xyz", 3), -EPROTO);
	assert_int_equal(hear(DATA_DONE, NULL, 0), -EPROTO);
	assert_true(run_data_give_up(&data));
	assert_true(run_data_unfetched(&data));
	assert_int_equal(hear(DATA_DATA, "x", 1), 0); /* we hear no more */
}

static void what_is_missing_is_said(void **state)
{
	(void)state;
	assert_int_equal(hear(DATA_GONE, "d/r\0the job has not made it", 27), 0);
	assert_int_equal(hear(DATA_DONE, NULL, 0), 0);
	assert_true(run_data_unfetched(&data));
	assert_string_equal(data.gone, "d/r was not fetched from node n2: the job has not made it");
}

/* One name that no terminal likes must not cost the other files. */
static void strange_names_are_plain(void **state)
{
	(void)state;
	assert_int_equal(hear(DATA_GONE, "out/a\nb\033[2J\302\233m\0is \033[1mno file", 29), 0);
	assert_int_equal(hear_file("out/c", "c", "c"), 0);
	assert_int_equal(hear(DATA_DONE, NULL, 0), 0);
	assert_content("out/c", "c");
	assert_string_equal(data.gone,
			    "out/a?b?[2J??m was not fetched from node n2: is ?[1mno file");
}

static void holes_stay_holes(void **state)
{
	const uint8_t hole[DATA_HOLE_SIZE] = {0, 0, 1}; /* 2^40 */
	uint8_t hash[DATA_HASH];
	struct data_hash *h = data_hash_new();
	struct stat st;

	(void)state;
	assert_int_equal(hear_entry("out", DATA_KIND_FILE, (1ull << 41) + 1), 0);
	assert_int_equal(hear(DATA_HOLE, hole, 7), -EPROTO);
	assert_int_equal(hear(DATA_HOLE, hole, sizeof(hole)), 0);
	assert_int_equal(hear(DATA_DATA, "x", 1), 0);
	assert_int_equal(hear(DATA_HOLE, hole, sizeof(hole)), 0);
	assert_int_equal(hear(DATA_HOLE, hole, sizeof(hole)), -EPROTO); /* longer than it said */
	data_hash_add(h, hole, sizeof(hole));
	data_hash_add(h, "x", 1);
	data_hash_add(h, hole, sizeof(hole));
	data_hash_end(h, hash);
	assert_int_equal(hear(DATA_FILE, hash, sizeof(hash)), 0);
	assert_int_equal(stat("out", &st), 0);
	assert_true(st.st_size == (1ll << 41) + 1 && st.st_blocks < 100);
	assert_string_equal(data.gone, "");
}

/* A client that is killed leaves nothing: a file has no name before it is whole. */
static void half_a_file_has_no_name(void **state)
{
	(void)state;
	assert_int_equal(hear_entry("out/a", DATA_KIND_FILE, 5), 0);
	assert_int_equal(hear(DATA_DATA, "aft", 3), 0);
	if (*data.temporary)
		skip(); /* this file system cannot do that */
	assert_int_equal(system("[ -z \"$(ls -A out)\" ]"), 0);
}

/* Nobody fills a home with names. */
static void entries_are_bounded(void **state)
{
	(void)state;
	for (size_t i = 0; i < DATA_ENTRIES; i++)
		assert_int_equal(hear_entry("out", DATA_KIND_DIRECTORY, 0), 0);
	assert_int_equal(hear_entry("out", DATA_KIND_DIRECTORY, 0), -EPROTO);
}

#define FETCH(test) cmocka_unit_test_setup_teardown(test, begin_fetch, end_fetch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FETCH(files_and_directories_come_home),
		FETCH(what_was_not_asked_for_is_refused),
		FETCH(links_lead_not_out),
		FETCH(half_a_file_is_none),
		FETCH(what_is_no_conversation_is_refused),
		FETCH(what_is_missing_is_said),
		FETCH(strange_names_are_plain),
		FETCH(holes_stay_holes),
		FETCH(half_a_file_has_no_name),
		FETCH(entries_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
