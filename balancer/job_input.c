/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_input.h. */
#include "balancer/job_input.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ID_BITS	   53
#define FNV_BEGIN  0xcbf29ce484222325u
#define FNV_PRIME  0x100000001b3u
#define BYTES_MOST (1ll << 60)
/* What ends a word in a shell's text. */
#define SHELL_ENDS " \t\n;&|()<>'\"`"

struct input {
	struct job_input found;
	uint64_t hash;
	struct {
		dev_t device;
		ino_t inode;
	} files[JOB_INPUT_FILES];
	size_t nfiles, nwords;
};

static void input_hash(struct input *in, const void *data, size_t n)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < n; i++)
		in->hash = (in->hash ^ at[i]) * FNV_PRIME;
}

/* Counts the file NAME, if it is a regular one and not counted yet. */
static bool input_file(struct input *in, const char *name)
{
	struct stat st;

	if (in->nfiles == JOB_INPUT_FILES || !*name || stat(name, &st) || !S_ISREG(st.st_mode))
		return false;
	for (size_t i = 0; i < in->nfiles; i++)
		if (in->files[i].device == st.st_dev && in->files[i].inode == st.st_ino)
			return true;
	in->files[in->nfiles].device = st.st_dev;
	in->files[in->nfiles++].inode = st.st_ino;
	if (in->found.bytes < 0)
		in->found.bytes = 0;
	if (st.st_size > 0 && st.st_size < BYTES_MOST - in->found.bytes)
		in->found.bytes += st.st_size;
	input_hash(in, &st.st_dev, sizeof(st.st_dev));
	input_hash(in, &st.st_ino, sizeof(st.st_ino));
	input_hash(in, &st.st_size, sizeof(st.st_size));
	input_hash(in, &st.st_mtim, sizeof(st.st_mtim));
	return true;
}

static void input_word(struct input *in, const char *word)
{
	const char *value = strchr(word, '=');

	if (in->nwords++ >= JOB_INPUT_WORDS || input_file(in, word) || !value ||
	    !strncmp(word, "of=", 3))
		return;
	input_file(in, value + 1);
}

/* Takes the words of a shell's text apart. */
static void input_text(struct input *in, const char *text)
{
	char word[PATH_MAX];
	bool written = false;

	while (*text && in->nwords < JOB_INPUT_WORDS) {
		size_t n = strcspn(text, SHELL_ENDS);

		if (n && n < sizeof(word) && !written) {
			snprintf(word, sizeof(word), "%.*s", (int)n, text);
			input_word(in, word);
		}
		written = written && !n; /* the file is the next word */
		text += n;
		if (*text)
			written = *text == '>' || (written && strchr(" \t'\"", *text));
		text += *text != 0;
	}
}

static struct job_input input_look(char *const *command, bool files)
{
	struct input in = {.found.bytes = -1, .hash = FNV_BEGIN};

	for (char *const *word = command; *word; word++) {
		input_hash(&in, *word, strlen(*word) + 1);
		if (word == command || !files)
			continue;
		if (strpbrk(*word, " \t\n;&|<>"))
			input_text(&in, *word);
		input_word(&in, *word);
	}
	in.found.id = (int64_t)((in.hash ^ in.hash >> ID_BITS) & ((1ull << ID_BITS) - 1));
	return in.found;
}

struct job_input job_input(char *const *command)
{
	return input_look(command, true);
}

struct job_input job_input_words(char *const *command)
{
	return input_look(command, false);
}
