/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A request to a node's owner, as users of other nodes send it: it is refused, or it means the same
 * when packed again; and the rules that it makes are refused with a sentence, or survive their
 * file.
 */
#include <msgpack.h>
#include <unistd.h>

#include "balancer/settings/owner/owner.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

static const char *const words[][4] = {
	{"cap", "cpu=50%", "memory=4G", "disk=20MB/s"},
	{"hours", "mon-fri 20:00-08:00,", "sat+sun", "00:00-24:00"},
	{"users", "deny", "anna,@staff", NULL},
	{"classes", "allow", "scan", NULL},
	{"close", "disk", "network", NULL},
	{"drain", NULL, NULL, NULL},
	{"presence", "on", NULL, NULL},
	{"expel", "n1-1-1", NULL, NULL},
};

bool sample(int n, FILE *out)
{
	struct owner_ask ask = {.reason = "mine"};
	msgpack_sbuffer packed;

	if (n >= (int)(sizeof(words) / sizeof(*words)))
		return false;
	for (; ask.nwords < 4 && words[n][ask.nwords]; ask.nwords++)
		snprintf(ask.words[ask.nwords], OWNER_WORD_MAX, "%s", words[n][ask.nwords]);
	owner_ask_pack(&ask, &packed);
	fwrite(packed.data, 1, packed.size, out);
	msgpack_sbuffer_destroy(&packed);
	return true;
}

FUZZ_SAMPLES

static void same_again(const struct owner_ask *ask)
{
	struct owner_ask other;
	msgpack_sbuffer packed;

	owner_ask_pack(ask, &packed);
	must(!owner_ask_unpack(&other, packed.data, packed.size));
	must(other.nwords == ask->nwords && other.grace_s == ask->grace_s &&
	     !strcmp(other.reason, ask->reason));
	for (size_t i = 0; i < ask->nwords; i++)
		must(!strcmp(other.words[i], ask->words[i]));
	msgpack_sbuffer_destroy(&packed);
}

/* The file of RULES, read again, has the same text. */
static void survive(const struct owner_rules *rules)
{
	char path[64], *text = owner_text(rules), *again;
	struct owner_rules other;
	struct iocom_err err;
	FILE *out;

	snprintf(path, sizeof(path), "/tmp/iocom-fuzz-owner-%d", (int)getpid());
	out = fopen(path, "w");
	must(text && out);
	must(fputs(text, out) >= 0 && !fclose(out));
	if (owner_read(path, &other, &err)) {
		fprintf(stderr, "%s\n%s", err.text, text);
		abort();
	}
	unlink(path);
	again = owner_text(&other);
	must(again && !strcmp(again, text));
	free(text);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct owner_moment moment = {.local = {.tm_wday = 1}};
	char text[256], says[IOCOM_NAME_MAX];
	struct owner_rules rules;
	struct owner_ask ask;
	struct iocom_err err = {0};
	int what;

	if (owner_ask_unpack(&ask, data, size))
		return 0;
	must(ask.nwords > 0 && ask.nwords <= OWNER_WORDS_MAX);
	same_again(&ask);
	owner_ask_text(&ask, text, sizeof(text));
	owner_init(&rules);
	what = owner_ask_apply(&ask, "anna@n1", 7, &rules, &err);
	must(what >= 0 || *err.text);
	if (what == OWNER_CHANGE) {
		must(!owner_check(&rules, &err));
		survive(&rules);
	}
	(void)owner_says(&rules, &moment, says, sizeof(says));
	must_end(says, sizeof(says));
	return 0;
}
