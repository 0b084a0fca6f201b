/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A renewal's question at home and its answer at a shim: nobody is believed without the secret,
 * and what passes as a job's name is a valid one.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "agent/shim/renew.h"
#include "user/renewal.h"

static const uint8_t secret[RENEWAL_SECRET] = "a secret that no input knows....";

bool sample(int n, FILE *out)
{
	uint8_t payload[RENEWAL_ASK_MAX];
	size_t length = renewal_ask_pack(payload, secret, "a-0f-7", 1);

	if (n == 1) {
		renewal_answer_pack(payload, secret, "a-0f-7", 1, false);
		length = RENEWAL_ANSWER;
	}
	fwrite(payload, 1, length, out);
	return n < 2;
}

FUZZ_SAMPLES

/* Gives the shim any bytes as home's answer. */
static void hear(const uint8_t *data, size_t size)
{
	struct renew renew = {
		.able = true, .connected = true, .job = "a-0f-7", .lease_ms = 4000, .number = 1};
	struct lease lease = {.until_ms = 5000};
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	must(send(ends[1], data, size, MSG_NOSIGNAL) == (ssize_t)size);
	shutdown(ends[1], SHUT_WR);
	memcpy(renew.secret, secret, sizeof(secret));
	renew.fd = ends[0];
	renew.next_ms = 3000;
	for (int i = 0; i < 100 && renew.fd >= 0; i++)
		if (renew_serve(&renew, POLLIN, &lease, 2000))
			must(lease.until_ms == 1); /* the sample, with its header */
	must(renew.fd < 0 && lease.until_ms <= 5000);
	close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[RENEWAL_ASK_MAX], other[RENEWAL_SECRET] = {1};
	struct renewal_ask ask;
	bool renewed;

	if (!renewal_ask_unpack(&ask, data, size)) {
		must(spec_job_valid(ask.job));
		must(renewal_ask_pack(again, secret, ask.job, ask.number) == size);
		must(!memcmp(again, data, size) == renewal_ask_true(&ask, secret));
		must(!renewal_ask_true(&ask, other));
	}
	must(renewal_answer_open(other, "a-0f-7", 1, data, size, &renewed));
	if (!renewal_answer_open(secret, "a-0f-7", 1, data, size, &renewed)) {
		renewal_answer_pack(again, secret, "a-0f-7", 1, renewed);
		must(!memcmp(again, data, size));
	}
	hear(data, size);
	return 0;
}
