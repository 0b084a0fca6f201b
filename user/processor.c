/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See processor.h. */
#include "user/processor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND_X86 62
#define KIND_ARM 63

/*
 * The kernel's words for them; where one is in a list is its bit, so new ones come last.  Those
 * that have been in every 64-bit processor are left out.
 */
static const char *const x86_words[] = {
	"pni",		 "ssse3",      "sse4_1",
	"sse4_2",	 "popcnt",     "movbe",
	"aes",		 "pclmulqdq",  "avx",
	"f16c",		 "fma",	       "bmi1",
	"bmi2",		 "avx2",       "abm",
	"adx",		 "rdrand",     "rdseed",
	"sha_ni",	 "avx512f",    "avx512dq",
	"avx512ifma",	 "avx512cd",   "avx512bw",
	"avx512vl",	 "avx512vbmi", "avx512_vbmi2",
	"avx512_vnni",	 "gfni",       "vaes",
	"vpclmulqdq",	 "avx_vnni",   "avx512_bitalg",
	"avx512_bf16",	 "xsave",      "xsavec",
	"amx_tile",	 "amx_int8",   "amx_bf16",
	"avx512_fp16",	 "fsgsbase",   "rdpid",
	"sse4a",	 "xop",	       "fma4",
	"tbm",		 "clflushopt", "clwb",
	"movdiri",	 "movdir64b",  "serialize",
	"waitpkg",	 "cldemote",   "rtm",
	"avx_vnni_int8", "avx_ifma",   "avx512_vpopcntdq",
	"pku",
};
static const char *const arm_words[] = {
	"asimd", "aes",	   "pmull",   "sha1",	  "sha2", "crc32", "atomics", "fphp",	"asimdhp",
	"jscvt", "fcma",   "lrcpc",   "dcpop",	  "sha3", "sm3",   "sm4",     "sve",	"asimddp",
	"sve2",	 "sha512", "svebf16", "asimdfhm", "i8mm", "bf16",  "flagm",   "ssbs",	"sb",
	"paca",	 "pacg",   "bti",     "mte",	  "sme",  "rng",   "uscat",   "ilrcpc",
};
_Static_assert(sizeof(x86_words) / sizeof(x86_words[0]) <= KIND_X86, "a bit for each");
_Static_assert(sizeof(arm_words) / sizeof(arm_words[0]) <= KIND_X86, "a bit for each");

static const struct processor_kind {
	unsigned bit;
	const char *line, *name;
	const char *const *words;
	size_t count;
} kinds[] = {
	{KIND_X86, "flags", "x86", x86_words, sizeof(x86_words) / sizeof(x86_words[0])},
	{KIND_ARM, "Features", "arm64", arm_words, sizeof(arm_words) / sizeof(arm_words[0])},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool processor_is(processor_set set, const struct processor_kind *kind)
{
	return set >> kind->bit & 1;
}

/* The set of a line of KIND. */
static processor_set processor_line(const struct processor_kind *kind, char *line)
{
	processor_set set = UINT64_C(1) << kind->bit;
	char *rest = strchr(line, ':'), *word;

	if (rest)
		rest++;
	while ((word = strsep(&rest, " \t\n")))
		for (size_t i = 0; i < kind->count; i++)
			if (!strcmp(word, kind->words[i]))
				set |= UINT64_C(1) << i;
	return set;
}

processor_set processor_look(const char *info)
{
	FILE *file = fopen(info, "re");
	processor_set set = 0;
	char *line = NULL;
	size_t room = 0;

	while (file && !set && getline(&line, &room, file) > 0)
		for (size_t i = 0; i < KINDS; i++)
			if (!strncmp(line, kinds[i].line, strlen(kinds[i].line)))
				set = processor_line(&kinds[i], line);
	free(line);
	if (file)
		fclose(file);
	return set;
}

static void processor_name(char *out, size_t size, unsigned *count, const char *name)
{
	size_t length = strlen(out);

	if (length < size)
		snprintf(out + length, size - length, "%s%s", (*count)++ ? ", " : "", name);
}

unsigned processor_lacks(processor_set have, processor_set need, char *out, size_t size)
{
	unsigned count = 0;

	*out = 0;
	for (size_t k = 0; have && need && k < KINDS; k++) {
		if (!processor_is(need, &kinds[k]))
			continue;
		if (!processor_is(have, &kinds[k])) {
			processor_name(out, size, &count, kinds[k].name);
			continue;
		}
		for (size_t i = 0; i < kinds[k].count; i++)
			if (need >> i & 1 && !(have >> i & 1))
				processor_name(out, size, &count, kinds[k].words[i]);
	}
	return count;
}
