/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/munged.h"
#include "user/pack.h"
#include "user/spec.h"

static char *argv_bytes[] = {(char *)"cmd", (char *)"", (char *)"caf\xe9 \n", NULL};
static char *env_bytes[] = {(char *)"A=b c", (char *)"LD_PRELOAD=/x.so", NULL};

static struct spec example(void)
{
	struct spec spec = {
		.job = "n1-abc-7",
		.node = "n2",
		.nonce = "00112233445566778899aabbccddeeff",
		.class_name = "cmd",
		.executable = (char *)"/bin/cmd",
		.cwd = (char *)"/tmp/\xff",
		.argv = argv_bytes,
		.env = env_bytes,
		.umask = 027,
		.closed = 5,
		.grace_ms = 1500,
		.nlimits = 2,
	};

	spec.limits[0] = (struct spec_limit){RLIMIT_NOFILE, 5, 7};
	spec.limits[1] = (struct spec_limit){RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY};
	return spec;
}

static void test_round_trip(void **state)
{
	struct spec in = example(), out;
	struct iocom_err err;
	size_t length;
	void *data;

	(void)state;
	assert_int_equal(spec_pack(&in, &data, &length, &err), 0);
	assert_int_equal(spec_unpack(&out, data, length, &err), 0);
	assert_string_equal(out.job, in.job);
	assert_string_equal(out.node, in.node);
	assert_string_equal(out.nonce, in.nonce);
	assert_string_equal(out.class_name, in.class_name);
	assert_string_equal(out.executable, in.executable);
	assert_string_equal(out.cwd, in.cwd);
	for (int i = 0; i < 3; i++)
		assert_string_equal(out.argv[i], in.argv[i]);
	assert_null(out.argv[3]);
	assert_string_equal(out.env[1], in.env[1]);
	assert_null(out.env[2]);
	assert_int_equal(out.umask, 027);
	assert_int_equal(out.closed, 5);
	assert_int_equal(out.grace_ms, 1500);
	assert_int_equal(out.nlimits, 2);
	assert_int_equal(out.limits[0].resource, RLIMIT_NOFILE);
	assert_int_equal(out.limits[0].soft, 5);
	assert_int_equal(out.limits[0].hard, 7);
	assert_int_equal(out.limits[1].resource, RLIMIT_CORE);
	assert_true(out.limits[1].soft == RLIM_INFINITY);
	assert_true(out.limits[1].hard == RLIM_INFINITY);
	assert_false(out.tty.wanted);
	spec_free(&out);
	free(data);
}

static void test_worker(void **state)
{
	struct spec in = example(), out;
	size_t length;
	void *data;

	(void)state;
	for (int i = 0; i < 2; i++) {
		in.worker = i;
		assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
		assert_int_equal(spec_unpack(&out, data, length, NULL), 0);
		assert_int_equal(out.worker, i);
		spec_free(&out);
		free(data);
	}
}

/* A job that can move; a gang's part cannot. */
static void test_migratable(void **state)
{
	struct spec in = example(), out;
	uint8_t plan[4] = {1, 2, 3, 4};
	struct iocom_err err;
	size_t length;
	void *data;

	(void)state;
	for (int i = 0; i < 2; i++) {
		in.migratable = i;
		assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
		assert_int_equal(spec_unpack(&out, data, length, NULL), 0);
		assert_int_equal(out.migratable, i);
		spec_free(&out);
		free(data);
	}
	in.gang = plan;
	in.gang_length = sizeof(plan);
	assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
	assert_int_equal(spec_unpack(&out, data, length, &err), -EBADMSG);
	spec_free(&out);
	free(data);
}

/* A gang's part: an older node, which knows neither of the two keys, finds no such command. */
static void test_gang(void **state)
{
	struct spec in = example(), out;
	msgpack_unpacked message;
	struct iocom_err err;
	char executable[64];
	size_t length;
	void *data;

	(void)state;
	in.gang = (void *)"a packed plan";
	in.gang_length = 13;
	assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
	assert_int_equal(spec_unpack(&out, data, length, NULL), 0);
	assert_string_equal(out.executable, in.executable);
	assert_int_equal(out.gang_length, 13);
	assert_memory_equal(out.gang, in.gang, 13);
	spec_free(&out);
	assert_int_equal(unpack_map_of(&message, data, length, SPEC_VALUES_MAX), 0);
	assert_int_equal(unpack_str(&message.data, "executable", executable, sizeof(executable)),
			 0);
	assert_string_equal(executable, SPEC_EXECUTABLE_GANG);
	msgpack_unpacked_destroy(&message);
	free(data);

	/* No plan is that long, and tasks have no terminal. */
	in.gang = calloc(1, SPEC_GANG_MAX + 1);
	in.gang_length = SPEC_GANG_MAX + 1;
	assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
	assert_int_equal(spec_unpack(&out, data, length, &err), -EBADMSG);
	assert_string_equal(err.text, "the job's spec is malformed: field 'gang'");
	free(data);
	in.gang_length = 1;
	in.tty.wanted = true;
	assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
	assert_int_equal(spec_unpack(&out, data, length, &err), -EBADMSG);
	free(data);
	free(in.gang);
}

static void test_terminal(void **state)
{
	struct spec in = example(), out;
	uint8_t size[TERMINAL_SIZE_BYTES];
	struct winsize back;
	size_t length;
	void *data;

	(void)state;
	in.tty = (struct terminal){
		true, true, {65535, 1, 2, 300}, "xterm-256color", true, "\3\34\10\25\4\32\0\0\27"};
	assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
	assert_int_equal(spec_unpack(&out, data, length, NULL), 0);
	assert_true(out.tty.wanted && out.tty.utf8);
	assert_memory_equal(&out.tty.size, &in.tty.size, sizeof(in.tty.size));
	assert_string_equal(out.tty.name, "xterm-256color");
	assert_true(out.tty.keyed);
	assert_memory_equal(out.tty.keys, in.tty.keys, TERMINAL_KEYS);
	spec_free(&out);
	free(data);
	terminal_size_put(size, &in.tty.size);
	assert_int_equal(terminal_size_take(&back, size, sizeof(size)), 0);
	assert_memory_equal(&back, &in.tty.size, sizeof(back));
	assert_int_equal(terminal_size_take(&back, size, sizeof(size) - 1), -EPROTO);
}

/* Each field of the terminal with a wrong value: refused, and the error names the key. */
static void test_bad_terminal(void **state)
{
	static const char *const keys[] = {"rows", "cols", "xpixel", "ypixel"};
	struct terminal out;
	msgpack_sbuffer buffer;
	msgpack_unpacked message;
	msgpack_packer pk;

	(void)state;
	for (size_t bad = 0; bad < 8; bad++) {
		pack_begin(&pk, &buffer, 7);
		for (size_t i = 0; i < 4; i++)
			pack_u64(&pk, keys[i], i == bad ? 65536 : 80);
		pack_str(&pk, "term", bad == 4 ? "../x" : "vt100");
		if (bad == 5)
			pack_u64(&pk, "utf8", 1);
		else
			pack_bool(&pk, "utf8", true);
		pack_bin(&pk, "keys", "0123456789", bad == 6 ? 9 : 10);
		assert_int_equal(unpack_map(&message, buffer.data, buffer.size), 0);
		assert_int_equal(terminal_unpack(&out, &message.data), bad < 7 ? -EBADMSG : 0);
		assert_int_equal(out.wanted, bad == 7);
		msgpack_unpacked_destroy(&message);
		msgpack_sbuffer_destroy(&buffer);
	}
}

/* Every prefix and every changed byte is refused, or unpacks to something bounded. */
static void test_damage(void **state)
{
	struct spec in = example(), out;
	uint8_t *data;
	size_t length;
	void *packed;

	(void)state;
	assert_int_equal(spec_pack(&in, &packed, &length, NULL), 0);
	data = packed;
	for (size_t n = 0; n < length; n++)
		assert_int_not_equal(spec_unpack(&out, data, n, NULL), 0);
	for (size_t n = 0; n < length; n++)
		for (int bit = 0; bit < 8; bit++) {
			data[n] ^= (uint8_t)(1 << bit);
			if (!spec_unpack(&out, data, length, NULL)) {
				assert_true(spec_job_valid(out.job));
				assert_non_null(out.argv[0]);
				spec_free(&out);
			}
			data[n] ^= (uint8_t)(1 << bit);
		}
	free(packed);
}

/* A spec of which one field is out of range. */
static struct spec wrong(unsigned field)
{
	static char *none[] = {NULL}, path[5001];
	struct spec spec = example();

	memset(path, '/', sizeof(path) - 1);
	switch (field) {
	case 0:
		spec.cwd = (char *)"relative";
		break;
	case 1:
		spec.cwd = path;
		break;
	case 2:
		spec.executable = path;
		break;
	case 3:
		spec.executable = (char *)"";
		break;
	case 4:
		spec.argv = none;
		break;
	case 5:
		spec.umask = 01000;
		break;
	case 6:
		spec.closed = 8;
		break;
	default:
		spec.limits[0].resource = RLIM_NLIMITS;
	}
	return spec;
}

static void test_bad_fields(void **state)
{
	static const char *const fields[] = {"'cwd'",  "'cwd'",	  "'executable'", "'executable'",
					     "'argv'", "'umask'", "'closed'",	  "'limits'"};
	const char *names[] = {"", ".x", "a/b", "..", "a b", "a\n"};
	struct iocom_err err;
	struct spec in, out;
	size_t length;
	void *data;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		in = example();
		strcpy(in.job, names[i]);
		assert_int_equal(spec_pack(&in, &data, &length, &err), 0);
		assert_int_equal(spec_unpack(&out, data, length, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "'job'"));
		free(data);
	}
	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		in = wrong(i);
		assert_int_equal(spec_pack(&in, &data, &length, &err), 0);
		assert_int_equal(spec_peek(&out, data, length, &err), 0);
		assert_int_equal(spec_unpack(&out, data, length, &err), -EBADMSG);
		assert_non_null(strstr(err.text, fields[i]));
		assert_null(out.argv);
		free(data);
	}
}

/* A spec with ARGS arguments and VARS variables of one letter each. */
static void *crowded(size_t args, size_t vars, size_t *length)
{
	static char letter[] = "x";
	struct spec in = example();
	char **argv = calloc(args + 1, sizeof(*argv)), **env = calloc(vars + 1, sizeof(*env));
	void *data;

	for (size_t i = 0; i < args; i++)
		argv[i] = letter;
	for (size_t i = 0; i < vars; i++)
		env[i] = letter;
	in.argv = argv;
	in.env = env;
	assert_int_equal(spec_pack(&in, &data, length, NULL), 0);
	free(argv);
	free(env);
	return data;
}

/* As many arguments and variables as a spec may have fit into its bound of values. */
static void test_most_values(void **state)
{
	struct iocom_err err;
	struct spec out;
	size_t length;
	void *data = crowded(SPEC_ARGS_MAX, SPEC_ARGS_MAX, &length);

	(void)state;
	assert_int_equal(spec_peek(&out, data, length, &err), 0);
	assert_string_equal(out.job, example().job);
	assert_int_equal(spec_unpack(&out, data, length, &err), 0);
	spec_free(&out);
	free(data);
	data = crowded(SPEC_ARGS_MAX + 1, 1, &length);
	assert_int_equal(spec_unpack(&out, data, length, &err), -E2BIG);
	assert_non_null(strstr(err.text, "'argv'"));
	free(data);
	data = crowded(SPEC_ARGS_MAX + 512, SPEC_ARGS_MAX, &length);
	assert_int_equal(spec_peek(&out, data, length, &err), -E2BIG);
	assert_non_null(strstr(err.text, "too many values"));
	assert_int_equal(spec_unpack(&out, data, length, &err), -E2BIG);
	assert_non_null(strstr(err.text, "too many values"));
	free(data);
}

static void test_peek(void **state)
{
	struct spec in = example(), out;
	struct iocom_err err;
	size_t length;
	void *data;

	(void)state;
	assert_int_equal(spec_pack(&in, &data, &length, &err), 0);
	assert_int_equal(spec_peek(&out, data, length, &err), 0);
	assert_string_equal(out.job, in.job);
	assert_string_equal(out.node, in.node);
	assert_string_equal(out.nonce, in.nonce);
	assert_null(out.argv);
	for (size_t n = 0; n < length; n++)
		assert_int_equal(spec_peek(&out, data, n, &err), -EBADMSG);
	assert_int_equal(spec_peek(&out, data, SPEC_PACKED_MAX + 1, &err), -E2BIG);
	free(data);
	strcpy(in.job, "../x");
	assert_int_equal(spec_pack(&in, &data, &length, &err), 0);
	assert_int_equal(spec_peek(&out, data, length, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "'job'"));
	free(data);
}

/* Unpacks the example with N bytes of "hard_limits" from offset AT replaced by BYTES. */
static int unpack_hard(struct spec *out, size_t at, const char *bytes, size_t n,
		       struct iocom_err *err)
{
	struct spec in = example();
	size_t length;
	void *data;
	char *key;
	int rc;

	assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
	key = memmem(data, length, "hard_limits\x92\x07\xc0", 14);
	assert_non_null(key);
	memcpy(key + at, bytes, n);
	rc = spec_unpack(out, data, length, err);
	free(data);
	return rc;
}

/* A client that knows no hard limits sends none, and an agent that does not skips them. */
static void test_without_hard_limits(void **state)
{
	struct spec out;

	(void)state;
	assert_int_equal(unpack_hard(&out, 0, "x", 1, NULL), 0);
	assert_int_equal(out.nlimits, 2);
	assert_int_equal(out.limits[0].soft, 5);
	assert_true(out.limits[0].hard == RLIM_INFINITY);
	assert_true(out.limits[1].hard == RLIM_INFINITY);
	spec_free(&out);
}

static void test_bad_limits(void **state)
{
	static const struct {
		const char *bytes; /* they replace array and values */
		size_t n;
	} bad[] = {
		{"\x92\xff", 2},     /* -1 */
		{"\x92\xc2", 2},     /* false */
		{"\x92\x04", 2},     /* below the soft limit */
		{"\x92\x07\x01", 3}, /* finite, while the soft one is not */
		{"\x91\xcc\xc0", 3}, /* one value for two limits */
		{"\xcd\x07\xc0", 3}, /* no array */
	};
	struct iocom_err err;
	struct spec in, out;
	size_t length;
	void *data;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(unpack_hard(&out, 11, bad[i].bytes, bad[i].n, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "'hard_limits'"));
	}
	assert_int_equal(unpack_hard(&out, 11, "\x92\x05", 2, &err), 0); /* soft = hard */
	assert_int_equal(out.limits[0].hard, 5);
	spec_free(&out);
	in = example();
	for (int resource = -1; resource <= RLIM_NLIMITS; resource += RLIM_NLIMITS + 1) {
		in.limits[1].resource = resource;
		assert_int_equal(spec_pack(&in, &data, &length, NULL), 0);
		assert_int_equal(spec_unpack(&out, data, length, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "'limits'"));
		free(data);
	}
}

static void test_hash(void **state)
{
	/* SHA-256 of "abc", FIPS 180-2 B.1 */
	const uint8_t truth[SPEC_HASH_BYTES] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
						0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
						0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
						0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	uint8_t hash[SPEC_HASH_BYTES];

	(void)state;
	spec_hash("abc", 3, hash);
	assert_memory_equal(hash, truth, sizeof(truth));
}

static void test_no_munged(void **state)
{
	struct spec spec = example();
	struct iocom_err err;
	char *credential = NULL;

	(void)state;
	assert_int_equal(spec_seal(&spec, "x", 1, "/nowhere/socket", &credential, &err),
			 -EHOSTDOWN);
	assert_non_null(strstr(err.text, "systemctl start munge"));
}

/* One sealed start is opened in all the wrong ways before the right one. */
static void test_credential(void **state)
{
	struct munged munged;
	struct spec spec = example(), other;
	struct iocom_err err;
	char *credential = NULL;
	size_t length;
	void *data;
	struct credential who = {.uid = 1, .gid = 1};
	const char *reason = munged_start(&munged);

	(void)state;
	if (reason) {
		print_message("credential: %s\n", reason);
		skip();
	}
	assert_int_equal(spec_pack(&spec, &data, &length, NULL), 0);
#define SEAL()		    assert_int_equal(spec_seal(&spec, data, length, munged.socket, &credential, &err), 0)
#define OPEN(s, d, n, node) munged_start_of(munged.socket, credential, s, d, n, node, &who, &err)
	SEAL();
	assert_int_equal(OPEN(&spec, data, length, "n2"), 0);
	assert_int_equal(who.uid, getuid());
	assert_int_equal(who.gid, getgid());
	assert_int_equal(OPEN(&spec, data, length, "n2"), -EACCES);
	assert_non_null(strstr(err.text, "replay"));
	free(credential);
	SEAL();
	assert_int_equal(OPEN(&spec, data, length, "n3"), -EACCES);
	assert_non_null(strstr(err.text, "another node"));
	free(credential);
	SEAL();
	((char *)data)[length / 2] ^= 1;
	assert_int_equal(OPEN(&spec, data, length, "n2"), -EACCES);
	assert_non_null(strstr(err.text, "another command"));
	((char *)data)[length / 2] ^= 1;
	free(credential);
	SEAL();
	other = spec;
	strcpy(other.job, "n1-abc-8");
	assert_int_equal(OPEN(&other, data, length, "n2"), -EACCES);
	assert_non_null(strstr(err.text, "another job"));
	free(credential);
	SEAL();
	credential[strlen(credential) / 2] ^= 1;
	assert_int_equal(OPEN(&spec, data, length, "n2"), -EACCES);
	free(credential);
	free(data);
	munged_stop(&munged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_worker),
		cmocka_unit_test(test_migratable),
		cmocka_unit_test(test_gang),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_bad_terminal),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_bad_fields),
		cmocka_unit_test(test_most_values),
		cmocka_unit_test(test_peek),
		cmocka_unit_test(test_without_hard_limits),
		cmocka_unit_test(test_bad_limits),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_no_munged),
		cmocka_unit_test(test_credential),
	};

	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
