/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Any document for `iocom profile import`: it is refused with a sentence and changes nothing, or
 * what it brought can be told, exported, and imported again.
 */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "balancer/profile/profile_document.h"

#define USER 1000

static struct profile_store *profiles;

bool sample(int n, FILE *out)
{
	static const char *const samples[] = {
		"{\"iocom_profiles\": 1, \"profiles\": []}",
		"{\"iocom_profiles\": 1, \"profiles\": [{\"class\": \"a\", \"runs\": 2, \"needs\":"
		" {\"cpu_ms\": 5.5, \"requests\": 3, \"memory_mb\": 1e3}}]}",
		"{\"iocom_profiles\": 1, \"profiles\": [{\"class\": \"a\", \"runs\": 0, \"set\":"
		" {\"memory_mb\": 500, \"cpu_s\": 2}}]}",
		"{\"iocom_profiles\": 1, \"profiles\": [{\"class\": \"b\", \"runs\": 2, \"needs\": "
		"{},"
		" \"recent\": [{\"warm\": true, \"input_id\": 7, \"input_mb\": null, \"node\": "
		"\"n1\","
		" \"end_s\": 9, \"needs\": {\"read_mb\": 4}}, {\"needs\": {\"wall_ms\": 1}}]}]}",
	};

	return n < (int)(sizeof(samples) / sizeof(*samples)) && fputs(samples[n], out) >= 0;
}
FUZZ_SAMPLES

static void forget_one(void *arg, uid_t uid, const char *class_name, const struct profile *p)
{
	(void)uid;
	must(p->cpu_ms >= 0 && p->cpu_ms <= PROFILE_NEED_MAX);
	strcpy(arg, class_name);
}

static size_t forget_all(void)
{
	char name[PROFILE_CLASS_MAX];
	struct iocom_err err;
	size_t n = 0;

	for (*name = 0; !profile_list(profiles, USER, forget_one, name, &err) && *name; *name = 0) {
		must(!profile_forget(profiles, USER, name, &err));
		n++;
	}
	return n;
}

static void again(size_t classes)
{
	struct profile_import in = {.file = "again"};
	struct profile_export x = {.class_name = "", .after = ""};
	struct iocom_err err;
	char *text;

	must(!profile_export(profiles, USER, &x, &err) && !*x.last);
	must(json_array_size(json_object_get(x.document, "profiles")) + x.left_out == classes);
	text = json_dumps(x.document, 0);
	json_decref(x.document);
	must(text != NULL);
	must(forget_all() == classes);
	in.text = text;
	in.length = strlen(text);
	must(!profile_import(profiles, USER, &in, &err));
	must(in.classes + x.left_out == classes);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile_import in = {.text = (const char *)data, .length = size, .file = "it"};
	struct iocom_err err = {0};

	if (!profiles)
		must(!profile_open(&profiles, ":memory:", &err));
	if (profile_import(profiles, USER, &in, &err))
		must(err.text[0] != 0);
	else
		again(in.classes);
	forget_all();
	return 0;
}
