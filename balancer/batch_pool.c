/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The workers of `iocom batch` and what each has to do.
 *
 *   given 1           until it ended one, and while its commands are long
 *   given BATCH_DEPTH when its last one took less than SHORT_NS: the next are at hand
 *
 * Memory is bounded by workers * BATCH_DEPTH lines, and TOGETHER_MAX of their outputs.
 */
#include "batch.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_NS     10000000u
#define TOGETHER_MAX (64u << 10) /* what a command says up to here stands together */
#define NODE_MAX     64
#define NOT_PLACED   125

struct command {
	struct command *next;
	uint32_t sequence;
	char *line;
	struct queue text[2]; /* standard output and error, until the end */
};

struct worker {
	pid_t pid;
	int to, from, status; /* -1: closed */
	struct queue out, in, told;
	struct command *first, **last;
	unsigned count;
	uint64_t last_ns; /* how long its last command took; 0: none ended */
	char node[NODE_MAX];
};

struct pool {
	const struct batch_options *options;
	struct batch_result *result;
	struct worker *workers;
	struct pollfd *entries;
	struct queue input;
	bool input_ended;
	struct command *back; /* for another worker */
	uint32_t sequence;
	unsigned alive;
	uint8_t piece[2 * (BATCH_PIECE_MAX + BATCH_HEADER)];
};

static void command_free(struct command *c)
{
	for (int i = 0; i < 2; i++)
		queue_free(&c->text[i]);
	free(c->line);
	free(c);
}

/* --- the input ------------------------------------------------------------------ */

/* 0 or negative errno. */
static int read_input(struct pool *pool, struct iocom_err *err)
{
	ssize_t n = read(pool->options->in, pool->piece, sizeof(pool->piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return iocom_err_set(err, -errno, "cannot read the commands: %s", strerror(errno));
	pool->input_ended = n == 0;
	if (queue_push(&pool->input, pool->piece, (size_t)n))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* The end of the first line: its newline, or the end of all.  NULL: not there yet. */
static const uint8_t *line_end(const struct pool *pool)
{
	const struct queue *q = &pool->input;
	const uint8_t *end = q->length ? memchr(queue_front(q), '\n', q->length) : NULL;

	return end || !pool->input_ended || !q->length ? end : queue_front(q) + q->length;
}

/* The next line that says something.  0 with *OUT (NULL: none is there); negative errno. */
static int next_line(struct pool *pool, struct command **out, struct iocom_err *err)
{
	const uint8_t *end;

	*out = NULL;
	while (!*out && (end = line_end(pool))) {
		const uint8_t *line = queue_front(&pool->input);
		size_t n = (size_t)(end - line), blank = 0;

		while (blank < n && (line[blank] == ' ' || line[blank] == '\t'))
			blank++;
		if (n > BATCH_LINE_MAX || memchr(line, 0, n))
			return iocom_err_set(err, -E2BIG,
					     "a line of the input is longer than %u bytes or "
					     "holds a zero byte",
					     BATCH_LINE_MAX);
		if (blank < n && line[blank] != '#') {
			*out = calloc(1, sizeof(**out));
			if (!*out || !((*out)->line = strndup((const char *)line, n))) {
				free(*out);
				return iocom_err_set(err, -ENOMEM, "out of memory");
			}
			(*out)->sequence = ++pool->sequence;
		}
		queue_drop(&pool->input, n + (n < pool->input.length));
	}
	if (!*out && pool->input.length > BATCH_LINE_MAX)
		return iocom_err_set(err, -E2BIG, "a line of the input is longer than %u bytes",
				     BATCH_LINE_MAX);
	return 0;
}

static int next_command(struct pool *pool, struct command **out, struct iocom_err *err)
{
	*out = pool->back;
	if (!*out)
		return next_line(pool, out, err);
	pool->back = (*out)->next;
	return 0;
}

/* --- giving ------------------------------------------------------------------------ */

static bool has_room(const struct worker *w)
{
	bool quick = w->last_ns && w->last_ns < SHORT_NS;

	return w->to >= 0 && w->count < (quick ? BATCH_DEPTH : 1);
}

static int give(struct worker *w, struct command *c)
{
	c->next = NULL;
	*w->last = c;
	w->last = &c->next;
	w->count++;
	return batch_put(&w->out, BATCH_COMMAND, c->sequence, c->line, strlen(c->line));
}

/* One each, in turn, so that few commands spread over all. */
static int give_all(struct pool *pool, struct iocom_err *err)
{
	bool gave = true;

	while (gave) {
		gave = false;
		for (unsigned i = 0; i < pool->options->workers; i++) {
			struct command *c;
			int rc;

			if (!has_room(&pool->workers[i]))
				continue;
			rc = next_command(pool, &c, err);
			if (rc || !c)
				return rc;
			if (give(&pool->workers[i], c))
				return iocom_err_set(err, -ENOMEM, "out of memory");
			gave = true;
		}
	}
	return 0;
}

static struct command *take_from(struct worker *w, uint32_t sequence)
{
	for (struct command **p = &w->first; *p; p = &(*p)->next) {
		struct command *c = *p;

		if (c->sequence != sequence)
			continue;
		*p = c->next;
		if (!*p)
			w->last = p;
		w->count--;
		return c;
	}
	return NULL;
}

static void take_back(struct pool *pool, struct command *c)
{
	for (int i = 0; i < 2; i++)
		queue_free(&c->text[i]);
	c->next = pool->back;
	pool->back = c;
}

/* --- results ------------------------------------------------------------------------ */

static int write_text(int fd, struct queue *text, struct iocom_err *err)
{
	while (text->length) {
		ssize_t n = write(fd, queue_front(text), text->length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return iocom_err_set(err, -errno, "cannot write a command's output: %s",
					     strerror(errno));
		queue_drop(text, (size_t)n);
	}
	return 0;
}

/* STATUS as a shell has it; -1: lost. */
static int log_line(const struct pool *pool, const struct worker *w, const struct command *c,
		    int status, uint64_t wall_ns, struct iocom_err *err)
{
	FILE *log = pool->options->log;
	json_t *line;
	int rc;

	if (!log)
		return 0;
	line = json_pack("{s:I,s:s*,s:s*,s:s,s:f}", "sequence", (json_int_t)c->sequence, "command",
			 c->line, "node", w->node[0] ? w->node : NULL, "state",
			 status < 0 ? "lost" : "ended", "wall_ms", (double)wall_ns / 1e6);
	if (line && status >= 0)
		json_object_set_new(line, "status", json_integer(status));
	/* At once: an interrupt ends us, and then the log is what is needed. */
	rc = !line || json_dumpf(line, log, JSON_COMPACT) || putc('\n', log) == EOF || fflush(log);
	json_decref(line);
	return rc ? iocom_err_set(err, -EIO, "cannot write the log") : 0;
}

static int ended(struct pool *pool, struct worker *w, struct command *c,
		 const struct batch_message *m, struct iocom_err *err)
{
	uint64_t wall_ns;
	int status, rc = batch_take_end(m, &status, &wall_ns);

	if (!rc) {
		status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		w->last_ns = wall_ns ? wall_ns : 1;
		pool->result->commands++;
		pool->result->failed += status != 0;
		for (int i = 0; i < 2 && !rc; i++)
			rc = write_text(1 + i, &c->text[i], err);
		if (!rc)
			rc = log_line(pool, w, c, status, wall_ns, err);
	}
	command_free(take_from(w, c->sequence));
	return rc;
}

/* 0; -EPROTO: W does not speak our language; else negative errno: our own side failed. */
static int obey(struct pool *pool, struct worker *w, const struct batch_message *m,
		struct iocom_err *err)
{
	struct command *c = w->first;
	int i = m->kind == BATCH_ERR;

	while (c && c->sequence != m->sequence)
		c = c->next;
	if (!c)
		return -EPROTO;
	pool->result->began = true;
	switch (m->kind) {
	case BATCH_OUT:
	case BATCH_ERR:
		if (queue_push(&c->text[i], m->data, m->length))
			return iocom_err_set(err, -ENOMEM, "out of memory");
		return c->text[i].length > TOGETHER_MAX ? write_text(1 + i, &c->text[i], err) : 0;
	case BATCH_END:
		return ended(pool, w, c, m, err);
	case BATCH_BACK:
		take_back(pool, take_from(w, m->sequence));
		w->last_ns = SHORT_NS; /* it is at a long one */
		return 0;
	default:
		return -EPROTO;
	}
}

/* --- workers ------------------------------------------------------------------------ */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * W is gone.  What never reached a job goes to others; what did and has no end is lost:
 * it may have run, so that it must not again.
 */
static int gone(struct pool *pool, struct worker *w, struct iocom_err *err)
{
	int status = 0, rc = 0;
	bool unplaced;

	close_fd(&w->to);
	close_fd(&w->from);
	close_fd(&w->status);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	pool->alive--;
	unplaced = pool->options->placed && !w->last_ns && WIFEXITED(status) &&
		   WEXITSTATUS(status) == NOT_PLACED;
	while (w->first) {
		struct command *c = take_from(w, w->first->sequence);

		if (unplaced) {
			take_back(pool, c);
			continue;
		}
		pool->result->lost++;
		fprintf(stderr, "iocom batch: lost contact, the outcome is unknown: %.200s\n",
			c->line);
		if (!rc)
			rc = log_line(pool, w, c, -1, 0, err);
		command_free(c);
	}
	queue_free(&w->out);
	queue_free(&w->in);
	queue_free(&w->told);
	return rc;
}

static int take_results(struct pool *pool, struct worker *w, struct iocom_err *err)
{
	struct batch_message m;
	ssize_t n = read(w->from, pool->piece, sizeof(pool->piece));
	int rc = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return gone(pool, w, err);
	if (queue_push(&w->in, pool->piece, (size_t)n))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	while (!rc && w->in.length) {
		n = batch_take(queue_front(&w->in), w->in.length, &m);
		if (n == 0)
			return 0;
		rc = n < 0 ? -EPROTO : obey(pool, w, &m, err);
		if (!rc)
			queue_drop(&w->in, (size_t)n);
	}
	if (rc != -EPROTO)
		return rc;
	fprintf(stderr, "iocom batch: a worker does not speak this program's protocol\n");
	kill(w->pid, SIGTERM);
	return gone(pool, w, err);
}

static void send_commands(struct worker *w)
{
	ssize_t n = write(w->to, queue_front(&w->out), w->out.length);

	if (n > 0)
		queue_drop(&w->out, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		close_fd(&w->to); /* the end of its results says the rest */
}

/* `iocom run` tells where the worker is, a JSON object a line. */
static void take_status(struct pool *pool, struct worker *w)
{
	ssize_t n = read(w->status, pool->piece, sizeof(pool->piece));
	const uint8_t *end;

	if (n <= 0 || queue_push(&w->told, pool->piece, (size_t)n)) {
		close_fd(&w->status);
		return;
	}
	while (w->told.length && (end = memchr(queue_front(&w->told), '\n', w->told.length))) {
		size_t length = (size_t)(end - queue_front(&w->told));
		json_t *line = json_loadb((const char *)queue_front(&w->told), length, 0, NULL);
		const char *node = json_string_value(json_object_get(line, "node"));

		if (node && *node)
			snprintf(w->node, sizeof(w->node), "%s", node);
		json_decref(line);
		queue_drop(&w->told, length + 1);
	}
}

/* Our ends do not block; the child has the others as 0, 1 and, where placed, 3. */
static int spawn(const struct batch_options *options, struct worker *w)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, status[2] = {-1, -1}, rc = 0;
	posix_spawn_file_actions_t actions;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(status, O_CLOEXEC))
		rc = errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (options->placed)
		posix_spawn_file_actions_adddup2(&actions, status[1], 3);
	if (!rc)
		rc = posix_spawn(&w->pid, "/proc/self/exe", &actions, NULL, options->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close_fd(&in[0]);
	close_fd(&out[1]);
	close_fd(&status[1]);
	w->to = in[1];
	w->from = out[0];
	w->status = status[0];
	if (!rc) {
		fcntl(w->to, F_SETFL, O_NONBLOCK);
		fcntl(w->from, F_SETFL, O_NONBLOCK);
		fcntl(w->status, F_SETFL, O_NONBLOCK);
		return 0;
	}
	close_fd(&w->to);
	close_fd(&w->from);
	close_fd(&w->status);
	return -rc;
}

static int start_all(struct pool *pool, struct iocom_err *err)
{
	for (unsigned i = 0; i < pool->options->workers; i++) {
		struct worker *w = &pool->workers[i];
		int rc;

		*w = (struct worker){.to = -1, .from = -1, .status = -1};
		w->last = &w->first;
		rc = spawn(pool->options, w);
		if (rc && !pool->alive)
			return iocom_err_set(err, rc, "cannot start a worker: %s", strerror(-rc));
		pool->alive += rc == 0; /* fewer serve as well */
	}
	return 0;
}

/* --- the loop ----------------------------------------------------------------------- */

static bool all_done(const struct pool *pool)
{
	if (!pool->input_ended || pool->input.length || pool->back)
		return false;
	for (unsigned i = 0; i < pool->options->workers; i++)
		if (pool->workers[i].count)
			return false;
	return true;
}

/* Entry 0 is the input; three a worker follow. */
static void fill(struct pool *pool)
{
	bool wanted = !pool->input_ended && !pool->back && !line_end(pool);

	pool->entries[0] = (struct pollfd){.fd = wanted ? pool->options->in : -1, .events = POLLIN};
	for (unsigned i = 0; i < pool->options->workers; i++) {
		const struct worker *w = &pool->workers[i];
		struct pollfd *e = pool->entries + 1 + 3 * (size_t)i;

		e[0] = (struct pollfd){.fd = w->out.length ? w->to : -1, .events = POLLOUT};
		e[1] = (struct pollfd){.fd = w->from, .events = POLLIN};
		e[2] = (struct pollfd){.fd = w->status, .events = POLLIN};
	}
}

static int serve(struct pool *pool, struct iocom_err *err)
{
	int rc = pool->entries[0].revents ? read_input(pool, err) : 0;

	for (unsigned i = 0; i < pool->options->workers && !rc; i++) {
		struct worker *w = &pool->workers[i];
		const struct pollfd *e = pool->entries + 1 + 3 * (size_t)i;

		if (e[0].revents && w->to >= 0)
			send_commands(w);
		if (e[2].revents)
			take_status(pool, w);
		if (e[1].revents && w->from >= 0)
			rc = take_results(pool, w, err);
	}
	return rc;
}

/* The end of their input tells the workers to leave. */
static int dismiss(struct pool *pool, struct iocom_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < pool->options->workers; i++)
		close_fd(&pool->workers[i].to);
	for (unsigned i = 0; i < pool->options->workers; i++) {
		struct worker *w = &pool->workers[i];
		int last;

		if (w->from < 0)
			continue;
		while (read(w->from, pool->piece, sizeof(pool->piece)) < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = w->from, .events = POLLIN}, 1, -1);
		last = gone(pool, w, err);
		rc = rc ? rc : last;
	}
	return rc;
}

static int run(struct pool *pool, struct iocom_err *err)
{
	int rc = start_all(pool, err);

	while (!rc && !all_done(pool) && pool->alive) {
		rc = give_all(pool, err);
		if (rc || all_done(pool))
			break;
		fill(pool);
		if (poll(pool->entries, 1 + 3 * (nfds_t)pool->options->workers, -1) > 0)
			rc = serve(pool, err);
	}
	pool->result->rest = !rc && !all_done(pool);
	return rc;
}

int batch_pool(const struct batch_options *options, struct batch_result *result,
	       struct iocom_err *err)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	int rc, end;

	*result = (struct batch_result){0};
	if (pool) {
		pool->workers = calloc(options->workers, sizeof(*pool->workers));
		pool->entries = calloc(1 + 3 * (size_t)options->workers, sizeof(*pool->entries));
	}
	if (!pool || !pool->workers || !pool->entries) {
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	} else {
		pool->options = options;
		pool->result = result;
		signal(SIGPIPE, SIG_IGN);
		rc = run(pool, err);
		end = dismiss(pool, err);
		rc = rc ? rc : end;
		queue_free(&pool->input);
		while (pool->back) {
			struct command *c = pool->back;

			pool->back = c->next;
			command_free(c);
		}
		free(pool->workers);
		free(pool->entries);
	}
	free(pool);
	return rc;
}
