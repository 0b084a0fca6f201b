/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the five mini-applications have in common; see app.h. */
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DISK_FILE_MAX (16u << 20) /* then it writes over its own beginning */
#define DISK_BLOCK    (64u << 10)
#define WAIT_MIN_NS   50000
#define WAIT_MAX_NS   1000000

enum tag { TAG_EXCHANGE = 1, TAG_UP, TAG_DOWN };

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void app_die(struct app *app, const char *format, ...)
{
	va_list list;

	fprintf(stderr, "%s: rank %d: ", app->name, app->rank);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	_exit(1);
}

void *app_zeros(struct app *app, size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size ? size : 1);

	if (!memory)
		app_die(app, "no memory for %zu times %zu bytes", count, size);
	return memory;
}

/* The finalizer of splitmix64 over both. */
uint64_t app_mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

size_t app_first(const struct app *app, size_t count, int rank)
{
	return count * (size_t)rank / (size_t)app->ranks;
}

/* --- the phase's time ------------------------------------------------------------------ */

void app_compute(struct app *app, double ms)
{
	double began = now_ms(CLOCK_MONOTONIC), end;
	volatile uint64_t x = 1;

	if (app->alone || ms <= 0)
		return;
	end = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms;
	while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 2000; i++)
			x = x * 6364136223846793005 + 1442695040888963407;
	app->cpu_ms += now_ms(CLOCK_MONOTONIC) - began;
}

static void disk_open(struct app *app)
{
	app->disk = open(app->disk_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (app->disk < 0)
		app_die(app, "cannot make a file in %s: %s", app->disk_dir, strerror(errno));
}

void app_write(struct app *app)
{
	static char block[DISK_BLOCK];
	double began = now_ms(CLOCK_MONOTONIC);
	size_t left = app->disk_bytes;

	if (app->alone || !left)
		return;
	if (app->disk < 0)
		disk_open(app);
	while (left) {
		ssize_t n = pwrite(app->disk, block, left < DISK_BLOCK ? left : DISK_BLOCK,
				   (off_t)app->disk_at);

		if (n <= 0)
			app_die(app, "cannot write in %s: %s", app->disk_dir,
				n ? strerror(errno) : "nothing was written");
		left -= (size_t)n;
		app->disk_at = (app->disk_at + (size_t)n) % DISK_FILE_MAX;
	}
	if (fdatasync(app->disk))
		app_die(app, "cannot write in %s: %s", app->disk_dir, strerror(errno));
	app->disk_ms += now_ms(CLOCK_MONOTONIC) - began;
}

/* --- messages -------------------------------------------------------------------------- */

void app_wait(struct app *app, int count, MPI_Request *requests, MPI_Status *statuses)
{
	struct timespec pause = {.tv_nsec = WAIT_MIN_NS};
	int done = 0;

	if (app->spin) {
		MPI_Waitall(count, requests, statuses ? statuses : MPI_STATUSES_IGNORE);
		return;
	}
	for (;;) {
		MPI_Testall(count, requests, &done, statuses ? statuses : MPI_STATUSES_IGNORE);
		if (done)
			return;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < WAIT_MAX_NS)
			pause.tv_nsec *= 2;
	}
}

void app_send(struct app *app, const void *message, size_t bytes, int to, int tag,
	      MPI_Request *request)
{
	app->sent_bytes[to] += bytes;
	app->sent_messages[to]++;
	MPI_Isend(message, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
}

size_t app_padded(const struct app *app, size_t size)
{
	return size > app->bytes ? size : app->bytes;
}

/* The padding at the byte AT of a message: eight bytes a step, the last ones cut. */
static uint64_t padding(struct app *app, int from, int to, uint64_t key)
{
	return app_mix(app_mix(app->seed, key), ((uint64_t)from << 32) | (uint32_t)to);
}

void app_fill(struct app *app, void *message, size_t size, int from, int to, uint64_t key)
{
	size_t end = app_padded(app, size);
	uint64_t x = padding(app, from, to, key);

	for (size_t at = size; at < end; at += sizeof(x)) {
		x = x * 6364136223846793005 + 1442695040888963407;
		memcpy((char *)message + at, &x, end - at < sizeof(x) ? end - at : sizeof(x));
	}
}

void app_check(struct app *app, const void *message, size_t size, int from, int to, uint64_t key)
{
	size_t end = app_padded(app, size);
	uint64_t x = padding(app, from, to, key);

	if (!app->verify)
		return;
	for (size_t at = size; at < end; at += sizeof(x)) {
		x = x * 6364136223846793005 + 1442695040888963407;
		if (memcmp((const char *)message + at, &x,
			   end - at < sizeof(x) ? end - at : sizeof(x)) != 0)
			app_die(app,
				"a message of rank %d has other bytes than it sent, from %zu on",
				from, at);
	}
}

/* One message to and from each; the first carries the data. */
static void exchange_round(struct app *app, const struct app_part *out, int nout,
			   const struct app_part *in, int nin, long number, char **buffers,
			   MPI_Request *requests)
{
	uint64_t key = app_mix(app->rounds, (uint64_t)number);
	int n = 0;

	for (int i = 0; i < nin; i++)
		if (in[i].rank >= 0)
			MPI_Irecv(buffers[nout + i], (int)app_padded(app, in[i].size), MPI_BYTE,
				  in[i].rank, TAG_EXCHANGE, MPI_COMM_WORLD, &requests[n++]);
	for (int i = 0; i < nout; i++) {
		if (out[i].rank < 0)
			continue;
		memcpy(buffers[i], out[i].data, out[i].size);
		app_fill(app, buffers[i], out[i].size, app->rank, out[i].rank, key);
		app_send(app, buffers[i], app_padded(app, out[i].size), out[i].rank, TAG_EXCHANGE,
			 &requests[n++]);
	}
	app_wait(app, n, requests, NULL);
	for (int i = 0; i < nin; i++) {
		if (in[i].rank < 0)
			continue;
		app_check(app, buffers[nout + i], in[i].size, in[i].rank, app->rank, key);
		if (!number)
			memcpy(in[i].data, buffers[nout + i], in[i].size);
	}
}

void app_exchange(struct app *app, const struct app_part *out, int nout, const struct app_part *in,
		  int nin)
{
	double began = now_ms(CLOCK_MONOTONIC);
	size_t all = (size_t)nout + (size_t)nin;
	MPI_Request *requests;
	char **buffers;

	if (app->ranks == 1)
		return;
	buffers = app_zeros(app, all, sizeof(*buffers));
	requests = app_zeros(app, all, sizeof(MPI_Request));
	for (int i = 0; i < nout; i++)
		buffers[i] = app_zeros(app, app_padded(app, out[i].size), 1);
	for (int i = 0; i < nin; i++)
		buffers[nout + i] = app_zeros(app, app_padded(app, in[i].size), 1);
	for (long m = 0; m < app->messages; m++)
		exchange_round(app, out, nout, in, nin, m, buffers, requests);
	app->rounds++;
	for (size_t i = 0; i < all; i++)
		free(buffers[i]);
	free(buffers);
	free(requests);
	app->com_ms += now_ms(CLOCK_MONOTONIC) - began;
}

static void sum_receive(struct app *app, uint64_t *values, int count, int from, int tag)
{
	MPI_Request request;

	MPI_Irecv(values, count * 8, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
	app_wait(app, 1, &request, NULL);
}

static void sum_send(struct app *app, const uint64_t *values, int count, int to, int tag)
{
	MPI_Request request;

	app_send(app, values, (size_t)count * 8, to, tag, &request);
	app_wait(app, 1, &request, NULL);
}

/* Up a binomial tree to rank 0, and down again. */
void app_sum(struct app *app, uint64_t *values, int count)
{
	double began = now_ms(CLOCK_MONOTONIC);
	uint64_t *others;
	int bit;

	if (app->ranks == 1)
		return;
	others = app_zeros(app, (size_t)count, 8);
	for (bit = 1; bit < app->ranks && !(app->rank & bit); bit *= 2) {
		if (app->rank + bit >= app->ranks)
			continue;
		sum_receive(app, others, count, app->rank + bit, TAG_UP);
		for (int i = 0; i < count; i++)
			values[i] += others[i];
	}
	if (app->rank) {
		sum_send(app, values, count, app->rank - bit, TAG_UP);
		sum_receive(app, values, count, app->rank - bit, TAG_DOWN);
	}
	for (bit /= 2; bit; bit /= 2)
		if (app->rank + bit < app->ranks)
			sum_send(app, values, count, app->rank + bit, TAG_DOWN);
	free(others);
	app->com_ms += now_ms(CLOCK_MONOTONIC) - began;
}

/* --- options, result ------------------------------------------------------------------- */

static void app_help(const struct app *app, const char *shape)
{
	printf("usage: %s [OPTIONS]\n%s\n\n"
	       "  --compute MS      processor time of each rank in a phase [10]\n"
	       "  --bytes N         bytes of a message, at least what its data need [65536]\n"
	       "  --messages N      messages to each partner in a phase [1]\n"
	       "  --phases N        phases [10]\n"
	       "  --disk-bytes N    bytes that each rank writes to its disk in a phase [0]\n"
	       "  --disk-dir DIR    where [$IOCOM_TESTBED_DISK, else .]\n"
	       "  --seed N          of the numbers [1]\n"
	       "  --wait sleep|spin how a rank waits for messages [sleep]\n"
	       "  --count FILE      each rank writes what it sent to FILE.RANK:\n"
	       "                    RANK TO BYTES MESSAGES; and `times CPU COM DISK`, in ms\n"
	       "  --verify          check each message and the result\n",
	       app->name, shape);
}

static double number(const struct app *app, const char *option, const char *text, double least,
		     double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= least && value <= most)) {
		fprintf(stderr, "%s: --%s takes a number from %g to %g, not '%s'\n", app->name,
			option, least, most, text);
		exit(2);
	}
	return value;
}

static void app_options(struct app *app, int argc, char **argv, const char *shape)
{
	static const struct option options[] = {
		{"compute", 1, NULL, 'c'}, {"bytes", 1, NULL, 'b'},	 {"messages", 1, NULL, 'm'},
		{"phases", 1, NULL, 'p'},  {"disk-bytes", 1, NULL, 'd'}, {"disk-dir", 1, NULL, 'D'},
		{"seed", 1, NULL, 's'},	   {"wait", 1, NULL, 'w'},	 {"count", 1, NULL, 'C'},
		{"verify", 0, NULL, 'v'},  {"help", 0, NULL, 'h'},	 {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			app->compute_ms = number(app, "compute", optarg, 0, 1e6);
			break;
		case 'b':
			app->bytes = (size_t)number(app, "bytes", optarg, 0, 1 << 28);
			break;
		case 'm':
			app->messages = (long)number(app, "messages", optarg, 1, 1e6);
			break;
		case 'p':
			app->phases = (long)number(app, "phases", optarg, 1, 1e6);
			break;
		case 'd':
			app->disk_bytes = (size_t)number(app, "disk-bytes", optarg, 0, 1e12);
			break;
		case 'D':
			app->disk_dir = optarg;
			break;
		case 's':
			app->seed = (uint64_t)number(app, "seed", optarg, 0, 9e15);
			break;
		case 'C':
			app->count = optarg;
			break;
		case 'v':
			app->verify = true;
			break;
		case 'w':
			app->spin = !strcmp(optarg, "spin");
			if (app->spin || !strcmp(optarg, "sleep"))
				break;
			fprintf(stderr, "%s: --wait takes sleep or spin, not '%s'\n", app->name,
				optarg);
			exit(2);
		case 'h':
			app_help(app, shape);
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: what is '%s'? See --help\n", app->name, argv[optind]);
		exit(2);
	}
}

static void write_count(struct app *app)
{
	char name[4096];
	FILE *file;
	bool bad;

	if (!app->count)
		return;
	if (snprintf(name, sizeof(name), "%s.%d", app->count, app->rank) >= (int)sizeof(name))
		app_die(app, "the name of --count is too long");
	file = fopen(name, "we");
	if (!file)
		app_die(app, "cannot write %s: %s", name, strerror(errno));
	for (int to = 0; to < app->ranks; to++)
		if (app->sent_messages[to])
			fprintf(file, "%d %d %llu %llu\n", app->rank, to,
				(unsigned long long)app->sent_bytes[to],
				(unsigned long long)app->sent_messages[to]);
	fprintf(file, "times %.3f %.3f %.3f\n", app->cpu_ms, app->com_ms, app->disk_ms);
	bad = ferror(file);
	if (fclose(file) || bad)
		app_die(app, "cannot write %s", name);
}

/* The same result by one rank, without messages. */
static void verify(struct app *app, app_run *run, uint64_t result)
{
	struct app alone = *app;
	uint64_t expected;

	if (!app->verify || app->rank)
		return;
	alone.rank = 0;
	alone.ranks = 1;
	alone.alone = true;
	expected = run(&alone);
	if (expected != result)
		app_die(app, "the result is %016llx, but one rank has %016llx",
			(unsigned long long)result, (unsigned long long)expected);
}

int app_main(int argc, char **argv, const char *name, const char *shape, app_run *run)
{
	const char *disk = getenv("IOCOM_TESTBED_DISK");
	struct app app = {.name = name,
			  .compute_ms = 10,
			  .bytes = 65536,
			  .messages = 1,
			  .phases = 10,
			  .seed = 1,
			  .disk = -1,
			  .disk_dir = disk && *disk ? disk : "."};
	uint64_t result, last[1] = {0};

	app_options(&app, argc, argv, shape);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &app.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &app.ranks);
	app.sent_bytes = app_zeros(&app, (size_t)app.ranks, sizeof(uint64_t));
	app.sent_messages = app_zeros(&app, (size_t)app.ranks, sizeof(uint64_t));
	result = run(&app);
	verify(&app, run, result);
	if (!app.rank) {
		printf("%s: ranks %d phases %ld result %016llx%s\n", name, app.ranks, app.phases,
		       (unsigned long long)result, app.verify ? " verified" : "");
		fflush(stdout);
	}
	/* MPI_Finalize spins until all have come: here they wait as asked. */
	app_sum(&app, last, 1);
	write_count(&app);
	MPI_Finalize();
	free(app.sent_bytes);
	free(app.sent_messages);
	if (app.disk >= 0)
		close(app.disk);
	return 0;
}
