/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the secure channel costs: `bench_channel [MUNGE-SOCKET]` prints lines of "name unit median
 * p99", for bench-remote.
 *
 *   handshake_stream_cpu   both sides of a job stream's handshake, of this processor
 *   handshake_session_cpu  both sides of two agents' greeting without munged, of this processor
 *   message_cpu            a question of 1 KiB sealed and opened in a session
 *   munge_wall             the same as a MUNGE credential: what each question took before
 *   session_wall           a whole greeting of two agents with munged: 2 credentials
 *   record_mb_per_s        a stream's bytes sealed and opened, 64 KiB at a time
 */
#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/cluster/sessions.h"
#include "user/channel/records.h"
#include "user/channel/version.h"
#include "user/clock.h"

#define ROUNDS	1000
#define MESSAGE 1024
#define PIECE	65536

static double times[ROUNDS];

static uint64_t now_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void print(const char *name, const char *unit, size_t n)
{
	qsort(times, n, sizeof(*times), by_size);
	printf("%s %s %.4f %.4f\n", name, unit, times[n / 2], times[(n - 1) * 99 / 100]);
}

__attribute__((noreturn)) static void cannot(const char *what)
{
	fprintf(stderr, "bench_channel: %s\n", what);
	exit(1);
}

static void shake(struct records *a, struct records *b)
{
	static const uint8_t psk[NOISE_KEY] = {1};
	uint8_t message[NOISE_HANDSHAKE];
	struct noise na, nb;

	noise_begin(&na, true, psk, "bench", 5);
	noise_begin(&nb, false, psk, "bench", 5);
	if (noise_write(&na, NULL, 0, message) || noise_read(&nb, message, sizeof(message), NULL) ||
	    noise_write(&nb, NULL, 0, message) || noise_read(&na, message, sizeof(message), NULL))
		cannot("the handshake fails");
	noise_split(&na, &a->sends, &a->receives, NULL);
	noise_split(&nb, &b->sends, &b->receives, NULL);
}

/* A credential for DATA: MUNGE's if there is a socket, else a word for it. */
static char *credential_of(const char *socket, const msgpack_sbuffer *data)
{
	munge_ctx_t ctx;
	char *text = NULL;

	if (!socket)
		return strdup("credential");
	ctx = munge_ctx_create();
	munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket);
	if (munge_encode(&text, ctx, data->data, (int)data->size))
		cannot(munge_ctx_strerror(ctx));
	munge_ctx_destroy(ctx);
	return text;
}

static void open_credential(const char *socket, const char *text)
{
	munge_ctx_t ctx;
	void *data = NULL;
	int n = 0;

	if (!socket)
		return;
	ctx = munge_ctx_create();
	munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket);
	if (munge_decode(text, ctx, &data, &n, NULL, NULL))
		cannot(munge_ctx_strerror(ctx));
	munge_ctx_destroy(ctx);
	free(data);
}

/* A greeting of both sides; munged is asked if there is a SOCKET. */
static void greet(const char *socket, struct greeting *a, struct greeting *b)
{
	static const struct greeting_self self_a = {"", "a", 1}, self_b = {"", "b", 2};
	msgpack_sbuffer claim, hello, answer, welcome;
	struct iocom_err err = {0};
	char *text, *back = NULL;

	msgpack_sbuffer_init(&claim);
	msgpack_sbuffer_init(&hello);
	msgpack_sbuffer_init(&answer);
	msgpack_sbuffer_init(&welcome);
	greeting_begin(a, &self_a, "b", &claim);
	text = credential_of(socket, &claim);
	if (greeting_hello(a, text, &hello))
		cannot("no hello");
	open_credential(socket, text);
	free(text);
	if (greeting_accept(b, &self_b, CHANNEL_VERSION_MAX, hello.data, hello.size, claim.data,
			    claim.size, &answer, &err))
		cannot(err.text);
	text = credential_of(socket, &answer);
	if (greeting_welcome(b, text, &welcome) ||
	    greeting_welcomed(a, welcome.data, welcome.size, &back, &err))
		cannot(err.text);
	open_credential(socket, back);
	if (greeting_trust(a, &self_a, answer.data, answer.size, &err))
		cannot(err.text);
	free(back);
	free(text);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_destroy(&hello);
	msgpack_sbuffer_destroy(&answer);
	msgpack_sbuffer_destroy(&welcome);
}

static void bench_handshakes(void)
{
	struct records a, b;
	struct greeting ga, gb;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began = now_of(CLOCK_PROCESS_CPUTIME_ID);

		shake(&a, &b);
		times[i] = (double)(now_of(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e6;
	}
	print("handshake_stream_cpu", "ms", ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began = now_of(CLOCK_PROCESS_CPUTIME_ID);

		greet(NULL, &ga, &gb);
		times[i] = (double)(now_of(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e6;
		greeting_end(&ga);
		greeting_end(&gb);
	}
	print("handshake_session_cpu", "ms", ROUNDS);
}

static void bench_messages(void)
{
	static uint8_t plain[MESSAGE], sealed[MESSAGE + SESSION_OVERHEAD];
	static const struct greeting_self self_a = {"", "a", 1}, self_b = {"", "b", 2};
	struct counters counters = {0};
	struct sessions *a = sessions_new(&self_a, &counters),
			*b = sessions_new(&self_b, &counters);
	const struct session *of_a, *of_b;
	struct greeting ga, gb;

	if (!a || !b)
		cannot("out of memory");
	greet(NULL, &ga, &gb);
	of_b = sessions_add(b, &gb, "", 1);
	of_a = sessions_add(a, &ga, "x", 1);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began = now_of(CLOCK_PROCESS_CPUTIME_ID);
		const uint8_t *data;
		size_t n;

		session_seal(a, of_a, plain, sizeof(plain), sealed);
		if (session_open(b, of_b, sealed, sizeof(sealed), &data, &n))
			cannot("a message does not open");
		times[i] = (double)(now_of(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e3;
	}
	print("message_cpu", "us", ROUNDS);
	sessions_free(a);
	sessions_free(b);
}

static void bench_munge(const char *socket)
{
	static char plain[MESSAGE];
	const msgpack_sbuffer data = {.data = plain, .size = sizeof(plain)};
	struct greeting ga, gb;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began = now_of(CLOCK_MONOTONIC);
		char *text = credential_of(socket, &data);

		open_credential(socket, text);
		free(text);
		times[i] = (double)(now_of(CLOCK_MONOTONIC) - began) / 1e3;
	}
	print("munge_wall", "us", ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began = now_of(CLOCK_MONOTONIC);

		greet(socket, &ga, &gb);
		times[i] = (double)(now_of(CLOCK_MONOTONIC) - began) / 1e6;
		greeting_end(&ga);
		greeting_end(&gb);
	}
	print("session_wall", "ms", ROUNDS);
}

static void bench_records(void)
{
	uint8_t *plain = calloc(1, PIECE), *sealed = malloc(records_size(PIECE));
	const struct iovec piece = {plain, PIECE};
	struct records a, b;

	if (!plain || !sealed)
		cannot("out of memory");
	shake(&a, &b);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began = now_of(CLOCK_PROCESS_CPUTIME_ID);
		size_t length;

		if (records_seal(&a, &piece, 1, sealed))
			cannot("a record is not sealed");
		for (size_t at = 0; at < records_size(PIECE); at += RECORD_HEAD + length)
			if (records_length(sealed + at, &length) ||
			    records_open(&b, sealed + at + RECORD_HEAD, length))
				cannot("a record does not open");
		times[i] = PIECE / ((double)(now_of(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e3);
	}
	print("record_mb_per_s", "MB/s", ROUNDS);
	free(plain);
	free(sealed);
}

int main(int argc, char **argv)
{
	bench_handshakes();
	bench_messages();
	bench_records();
	if (argc > 1)
		bench_munge(argv[1]);
	return 0;
}
