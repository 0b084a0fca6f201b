/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What goes along with a job, as it is found at home, and what home remembers of it. */
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
#include <time.h>
#include <unistd.h>

#include "balancer/data/data_memory.h"
#include "balancer/data/data_set.h"

static char world[64];

static int make_world(void **state)
{
	(void)state;
	strcpy(world, "/tmp/iocom-set-XXXXXX");
	if (!mkdtemp(world) || chdir(world) || setenv("XDG_CACHE_HOME", world, 1))
		return -1;
	return system("mkdir -p w/d/e w/out w/empty && cd w && echo a >a && echo bb >d/b && "
		      "echo c >d/e/c && ln -s ../a d/link && ln -s /etc/hostname leads && "
		      "mkdir with && ln -s ../.. with/up && mkdir loop && ln -s . loop/again && "
		      "mkfifo fifo && printf '#!/bin/sh\\n' >prog && chmod 755 prog && sleep "
		      "0.03") ||
	       chdir("w");
}

static int drop_world(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", world);
	return chdir("/") || system(command);
}

static int look(struct data_set *set, const char *data, const char *bring, struct iocom_err *err)
{
	struct data_names names = {
		.data = {data}, .ndata = data != NULL, .brings = {bring}, .nbrings = bring != NULL};

	*err = (struct iocom_err){0};
	return data_set_look(set, &names, "/bin/true", err);
}

static void assert_paths(const struct data_set *set, const char *expected)
{
	char all[1000] = "";

	for (size_t i = 0; i < set->count; i++) {
		strcat(all, set->at[i].entry.path);
		strcat(all, set->at[i].entry.kind == DATA_KIND_DIRECTORY ? "/ " : " ");
	}
	assert_string_equal(all, expected);
}

static void a_tree_is_listed_once_and_in_order(void **state)
{
	const char *forms[] = {"d", "./d", "d/", ".//d/.", NULL};
	char absolute[100];
	struct iocom_err err;
	struct data_set set;

	(void)state;
	snprintf(absolute, sizeof(absolute), "%s/w/d", world);
	forms[4] = absolute;
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(look(&set, forms[i], NULL, &err), 0);
		assert_paths(&set, "d/ d/b d/e/ d/e/c d/link ");
		assert_int_equal(set.bytes, 3 + 2 + 2);
		data_set_free(&set);
	}
	assert_int_equal(data_set_look(&set,
				       &(struct data_names){.data = {"d", "a", "d/b"}, .ndata = 3},
				       "/bin/true", &err),
			 0);
	assert_paths(&set, "a d/ d/b d/e/ d/e/c d/link ");
	assert_int_equal(set.bytes, 2 + 3 + 2 + 2);
	data_set_free(&set);
}

static void outputs_bring_their_directories_and_make_inputs_writable(void **state)
{
	struct iocom_err err;
	struct data_set set;

	(void)state;
	assert_int_equal(look(&set, "d", "d/e", &err), 0);
	assert_paths(&set, "d/ d/b d/e/ d/e/c d/link ");
	for (size_t i = 0; i < set.count; i++)
		assert_int_equal(set.at[i].entry.writable, !strcmp(set.at[i].entry.path, "d/e/c"));
	data_set_free(&set);
	assert_int_equal(look(&set, NULL, "out/new/r", &err), 0);
	assert_paths(&set, "out/ ");
	data_set_free(&set);
}

static void the_program_goes_along_from_below(void **state)
{
	struct data_names names = {.data = {"a"}, .ndata = 1};
	struct iocom_err err = {0};
	struct data_set set;
	char program[100];

	(void)state;
	snprintf(program, sizeof(program), "%s/w/./prog", world);
	assert_int_equal(data_set_look(&set, &names, program, &err), 0);
	assert_paths(&set, "a prog ");
	assert_string_equal(set.program, "prog");
	data_set_free(&set);
}

static void what_cannot_go_is_said(void **state)
{
	static const struct {
		const char *data, *bring, *words;
	} rows[] = {
		{"..", NULL, "outside the working directory"},
		{"d/../a", NULL, "outside the working directory"},
		{"/etc/hostname", NULL, "outside the working directory"},
		{"leads", NULL, "leads out of the working directory"},
		{"with", NULL, "with/up is or has a link that leads out"},
		{"loop", NULL, "loop/again is a link to a directory"},
		{"fifo", NULL, "no file and no directory"},
		{"none", NULL, "--data none: No such file"},
		{NULL, ".", "below the working directory, not '.'"},
		{NULL, "../x", "outside the working directory"},
	};
	struct iocom_err err;
	struct data_set set;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_true(look(&set, rows[i].data, rows[i].bring, &err) < 0);
		if (!strstr(err.text, rows[i].words))
			fail_msg("'%s' does not say '%s'", err.text, rows[i].words);
		data_set_free(&set);
	}
}

static void a_file_that_changed_is_noticed(void **state)
{
	struct iocom_err err;
	struct data_set set;
	int fd;

	(void)state;
	assert_int_equal(look(&set, "a", NULL, &err), 0);
	fd = data_set_open(&set, 0, &err);
	assert_true(fd >= 0);
	assert_int_equal(data_set_same(&set, 0, fd, &err), 0);
	assert_int_equal(chmod("a", 0600), 0); /* also moves its change time */
	assert_int_equal(data_set_same(&set, 0, fd, &err), -ESTALE);
	close(fd);
	assert_int_equal(data_set_open(&set, 0, &err), -ESTALE);
	assert_non_null(strstr(err.text, "a has changed while"));
	assert_int_equal(unlink("a"), 0);
	assert_int_equal(data_set_open(&set, 0, &err), -ENOENT);
	data_set_free(&set);
}

static void remember(struct data_set *set, struct data_memory *memory, const char *node)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < set->count; i++) {
		struct data_item *item = &set->at[i];

		if (item->entry.kind != DATA_KIND_FILE)
			continue;
		memset(item->entry.hash, (int)i + 1, DATA_HASH);
		item->entry.hashed = true;
		data_memory_note_hash(memory, item, &now);
	}
	data_memory_note_node(memory, node, set);
}

static void home_remembers_hashes_and_nodes(void **state)
{
	struct data_memory *memory = data_memory_open();
	struct iocom_err err;
	struct data_set set;
	char held[100];

	(void)state;
	assert_non_null(memory);
	assert_int_equal(look(&set, "d", NULL, &err), 0);
	data_memory_hashes(memory, &set);
	data_memory_held(memory, &set, held, sizeof(held));
	assert_string_equal(held, "");
	remember(&set, memory, "n2");
	data_set_free(&set);
	data_memory_close(memory);
	memory = data_memory_open();
	assert_int_equal(look(&set, "d/b", NULL, &err), 0);
	data_memory_hashes(memory, &set);
	assert_true(set.at[0].entry.hashed && set.at[0].entry.hash[0] == 2);
	data_memory_note_node(memory, "n3", &set);
	data_set_free(&set);
	assert_int_equal(look(&set, "d", NULL, &err), 0);
	data_memory_hashes(memory, &set);
	data_memory_held(memory, &set, held, sizeof(held));
	assert_string_equal(held, "n2=7,n3=3");
	data_memory_held(memory, &set, held, 6); /* as many as fit */
	assert_string_equal(held, "n2=7");
	data_set_free(&set);
	/* One byte later it is another file. */
	assert_int_equal(system("echo >>d/b"), 0);
	assert_int_equal(look(&set, "d/b", NULL, &err), 0);
	data_memory_hashes(memory, &set);
	assert_false(set.at[0].entry.hashed);
	data_set_free(&set);
	data_memory_close(memory);
	data_memory_held(NULL, &set, held, sizeof(held));
	assert_string_equal(held, "");
}

/* A file that changed just before it was read may change again within one tick of its clock. */
static void a_fresh_file_is_not_remembered(void **state)
{
	struct data_memory *memory = data_memory_open();
	struct iocom_err err;
	struct data_set set;

	(void)state;
	assert_int_equal(system("echo fresh >fresh"), 0);
	assert_int_equal(look(&set, "fresh", NULL, &err), 0);
	set.at[0].entry.hashed = true;
	data_memory_note_hash(memory, &set.at[0], &set.at[0].ctime);
	set.at[0].entry.hashed = false;
	data_memory_hashes(memory, &set);
	assert_false(set.at[0].entry.hashed);
	data_set_free(&set);
	data_memory_close(memory);
}

static uint64_t brought(const char *bring)
{
	struct iocom_err err;
	struct data_set set;
	uint64_t bytes;

	assert_int_equal(look(&set, NULL, bring, &err), 0);
	bytes = data_set_brought(&set);
	data_set_free(&set);
	return bytes;
}

static void what_will_come_home_is_known_from_what_is_here(void **state)
{
	(void)state;
	assert_int_equal(brought("a"), 2);
	assert_int_equal(brought("d"), 3 + 2 + 2);
	assert_int_equal(brought("none"), 0);
	assert_int_equal(brought("fifo"), 0);
	assert_int_equal(brought("with"), 0);  /* a link that leads out */
	assert_true(brought("loop") <= 65536); /* it ends */
}

static void home_remembers_what_classes_bring(void **state)
{
	struct data_memory *memory = data_memory_open();
	uint64_t bytes;

	(void)state;
	assert_int_equal(data_memory_brought(memory, "sort", &bytes), 0);
	assert_int_equal(bytes, 0);
	data_memory_note_brought(memory, "sort", 1000);
	data_memory_note_brought(memory, "other", 7);
	assert_int_equal(data_memory_brought(memory, "sort", &bytes), 1);
	assert_int_equal(bytes, 1000);
	data_memory_note_brought(memory, "sort", 2000);
	data_memory_close(memory);
	memory = data_memory_open();
	assert_int_equal(data_memory_brought(memory, "sort", &bytes), 2);
	assert_int_equal(bytes, 1500);
	for (int i = 0; i < 8; i++)
		data_memory_note_brought(memory, "sort", 1500);
	data_memory_note_brought(memory, "sort", 5500); /* the newest counts a quarter */
	assert_int_equal(data_memory_brought(memory, "sort", &bytes), 11);
	assert_int_equal(bytes, 2500);
	data_memory_close(memory);
	assert_int_equal(data_memory_brought(NULL, "sort", &bytes), 0);
	data_memory_note_brought(NULL, "sort", 1);
}

/* With another user's HOME we remember nothing: its owner could have put a link there. */
static void anothers_memory_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(system("mkdir ../victim && ln -s victim ../iocom"), 0);
	assert_null(data_memory_open());
	assert_int_equal(access("../victim/data.db", F_OK), -1);
	if (geteuid())
		skip(); /* only root can make somebody else's */
	assert_int_equal(system("rm ../iocom && mkdir ../iocom && chown 65534 ../iocom"), 0);
	assert_null(data_memory_open());
	assert_int_equal(access("../iocom/data.db", F_OK), -1);
}

static void a_broken_memory_begins_anew(void **state)
{
	struct data_memory *memory = data_memory_open();
	char path[100];
	int fd;

	(void)state;
	data_memory_close(memory);
	snprintf(path, sizeof(path), "%s/iocom/data.db", world);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "this is no database at all, is it?", 34), 34);
	close(fd);
	memory = data_memory_open();
	assert_non_null(memory);
	data_memory_close(memory);
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "/proc/nowhere", 1);
	assert_null(data_memory_open());
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, drop_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_tree_is_listed_once_and_in_order),
		IN_WORLD(outputs_bring_their_directories_and_make_inputs_writable),
		IN_WORLD(the_program_goes_along_from_below),
		IN_WORLD(what_cannot_go_is_said),
		IN_WORLD(a_file_that_changed_is_noticed),
		IN_WORLD(home_remembers_hashes_and_nodes),
		IN_WORLD(a_fresh_file_is_not_remembered),
		IN_WORLD(what_will_come_home_is_known_from_what_is_here),
		IN_WORLD(home_remembers_what_classes_bring),
		IN_WORLD(anothers_memory_is_left_alone),
		IN_WORLD(a_broken_memory_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
