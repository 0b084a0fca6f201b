/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shows how `iocom batch` gets on: a progress line that is redrawn, and a summary at the end. */
#include "balancer/batch/batch_pool.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS       1000000000u /* a shorter run shows no progress */
#define EVERY_NS       250000000u
#define LINE_MAX_BYTES 160

uint64_t batch_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void batch_show_begin(struct pool *pool)
{
	struct batch_show *show = &pool->show;
	bool terminal = isatty(STDERR_FILENO);
	struct stat st;

	show->began_ns = batch_now_ns();
	show->summary = pool->options->verbose || terminal;
	show->progress = terminal && !pool->options->quiet;
	show->terminal[0] = isatty(STDOUT_FILENO);
	show->terminal[1] = terminal;
	if (!fstat(pool->options->in, &st) && S_ISREG(st.st_mode))
		show->size_bytes = st.st_size;
}

static double seconds(const struct pool *pool)
{
	uint64_t ns = batch_now_ns() - pool->show.began_ns;

	return ns ? (double)ns / 1e9 : 1e-9;
}

void batch_show_clear(struct pool *pool)
{
	if (pool->show.drawn)
		fputs("\r\033[K", stderr);
	pool->show.drawn = false;
}

void batch_show_before(struct pool *pool, int fd)
{
	if (pool->show.terminal[fd - 1])
		batch_show_clear(pool);
}

void batch_show_wrote(struct pool *pool, int fd, const uint8_t *data, size_t length)
{
	if (length && pool->show.terminal[fd - 1])
		pool->show.midline = data[length - 1] != '\n';
}

void batch_show_progress(struct pool *pool)
{
	const struct batch_result *r = pool->result;
	uint64_t now = batch_now_ns();
	struct winsize size = {0};
	char line[LINE_MAX_BYTES];
	unsigned given = 0;
	int n, width;

	/* After an incomplete line of output, erasing our line would erase that output too. */
	if (!pool->show.progress || pool->show.midline || now - pool->show.began_ns < FIRST_NS ||
	    (pool->show.drawn && now - pool->show.drawn_ns < EVERY_NS))
		return;
	for (unsigned i = 0; i < pool->options->workers; i++)
		given += pool->workers[i].count;
	n = snprintf(line, sizeof(line),
		     "%" PRIu64 " done, %" PRIu64 " failed, %" PRIu64
		     " lost, %u begun, %.0f a second",
		     r->commands - r->failed, r->failed, r->lost, given,
		     (double)r->commands / seconds(pool));
	if (pool->show.size_bytes > 0 && n > 0 && n < (int)sizeof(line))
		n += snprintf(line + n, sizeof(line) - (size_t)n, ", %.0f %% of the list",
			      100.0 * (double)(pool->input_bytes - pool->input.length) /
				      (double)pool->show.size_bytes);
	width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2 ? 80 : size.ws_col;
	fprintf(stderr, "\r%.*s\033[K", width - 1, line);
	fflush(stderr);
	pool->show.drawn = true;
	pool->show.drawn_ns = now;
}

void batch_show_end(struct pool *pool)
{
	const struct batch_result *r = pool->result;
	double took = seconds(pool);

	batch_show_clear(pool);
	/* A reader that closed early, as in `| head`, wants no summary. */
	if (pool->options->quiet || (pool->mute && !pool->options->verbose) ||
	    (!pool->show.summary && !r->failed && !r->lost && !r->stopped && !r->rest &&
	     !r->refused))
		return;
	if (pool->show.midline)
		fputc('\n', stderr);
	fprintf(stderr,
		"iocom batch: %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " lost, %.1f s, %.0f "
		"a second",
		r->commands - r->failed, r->failed, r->lost, took, (double)r->commands / took);
	if (r->stopped)
		fprintf(stderr, "; %" PRIu64 " stopped", r->stopped);
	if (r->left_out)
		fprintf(stderr, "; %" PRIu64 " had ended before", r->left_out);
	if (r->refused)
		fprintf(stderr, "; %u of %u workers refused", r->refused, pool->options->workers);
	fputc('\n', stderr);
}
