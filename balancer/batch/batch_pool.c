/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The workers of `iocom batch` and the commands given to each.
 *
 *   1 command             until the worker has ended one, and while its commands are long
 *   BATCH_DEPTH commands  when its last one took less than SHORT_NS: it need not wait for us
 *
 * Memory is bounded by workers * BATCH_DEPTH lines, BATCH_TOGETHER_MAX for each of their
 * outputs, and BATCH_HELD_MAX for outputs that wait for their turn.
 *
 * A signal, or outputs that nobody reads, ends everything: the workers get SIGTERM, and the
 * commands that were running count as "stopped", not as "lost".
 */
#include "balancer/batch/batch_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_NS   10000000u
#define NOT_PLACED 125
#define DRAW_MS	   300

/* --- giving ------------------------------------------------------------------------ */

static bool batch_pool_has_room(const struct batch_slot *w)
{
	bool quick = w->last_ns && w->last_ns < SHORT_NS;

	return w->to >= 0 && w->count < (quick ? BATCH_DEPTH : 1);
}

static int batch_pool_give(struct batch_slot *w, struct batch_command *c)
{
	c->next = NULL;
	*w->last = c;
	w->last = &c->next;
	w->count++;
	return batch_put(&w->out, BATCH_COMMAND, c->sequence, c->line, strlen(c->line));
}

/* Gives one command to each worker in turn, so that few commands spread over all workers. */
static int give_all(struct pool *pool, struct iocom_err *err)
{
	bool gave = true;

	while (gave) {
		gave = false;
		for (unsigned i = 0; i < pool->options->workers; i++) {
			struct batch_command *c;
			int rc;

			if (!batch_pool_has_room(&pool->workers[i]))
				continue;
			rc = batch_next(pool, &c, err);
			if (rc || !c)
				return rc;
			if (batch_pool_give(&pool->workers[i], c))
				return iocom_err_set(err, -ENOMEM, "out of memory");
			gave = true;
		}
	}
	return 0;
}

static struct batch_command *take_from(struct batch_slot *w, uint32_t sequence)
{
	for (struct batch_command **p = &w->first; *p; p = &(*p)->next) {
		struct batch_command *c = *p;

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

/* --- results ------------------------------------------------------------------------ */

static int batch_pool_ended(struct pool *pool, struct batch_slot *w, struct batch_command *c,
			    const struct batch_message *m, struct iocom_err *err)
{
	uint64_t wall_ns;
	int status, rc = batch_take_end(m, &status, &wall_ns);

	if (rc)
		return rc;
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	w->last_ns = wall_ns ? wall_ns : 1;
	pool->result->commands++;
	pool->result->failed += status != 0;
	take_from(w, c->sequence);
	rc = batch_log_line(pool, w, c, "ended", status, wall_ns, err);
	if (!rc)
		return batch_over(pool, c, err);
	batch_command_free(pool, c);
	return rc;
}

/* Returns 0; -EPROTO: W broke the protocol; other negative errno: our own side failed. */
static int batch_pool_obey(struct pool *pool, struct batch_slot *w, const struct batch_message *m,
			   struct iocom_err *err)
{
	struct batch_command *c = w->first;
	int i = m->kind == BATCH_ERR;

	while (c && c->sequence != m->sequence)
		c = c->next;
	if (!c)
		return -EPROTO;
	pool->result->began = true;
	switch (m->kind) {
	case BATCH_OUT:
	case BATCH_ERR:
		return batch_said(pool, c, i, m->data, m->length, err);
	case BATCH_END:
		return batch_pool_ended(pool, w, c, m, err);
	case BATCH_BACK:
		batch_take_back(pool, take_from(w, m->sequence));
		w->last_ns = SHORT_NS; /* its current command is a long one */
		return 0;
	default:
		return -EPROTO;
	}
}

/* --- workers ------------------------------------------------------------------------ */

static void batch_pool_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* C has or may have begun, and its outcome is unknown. */
static int without_end(struct pool *pool, struct batch_slot *w, struct batch_command *c,
		       struct iocom_err *err)
{
	const char *state = pool->stopping ? "stopped" : "lost";
	int rc = batch_log_line(pool, w, c, state, -1, 0, err);

	if (pool->stopping) {
		pool->result->stopped++;
	} else {
		pool->result->lost++;
		batch_show_clear(pool);
		fprintf(stderr, "iocom batch: lost contact, the outcome is unknown: %.200s\n",
			c->line);
	}
	if (!rc)
		return batch_over(pool, c, err);
	batch_command_free(pool, c);
	return rc;
}

/*
 * W has ended.  If no node accepted W, its commands go to other workers; otherwise those
 * without a result are lost: they may have run, and must not run twice.
 */
static int batch_pool_gone(struct pool *pool, struct batch_slot *w, struct iocom_err *err)
{
	int status = 0, rc = 0;
	bool unplaced;

	batch_status(pool, w); /* read what it reported before it ended */
	batch_pool_close_fd(&w->to);
	batch_pool_close_fd(&w->from);
	batch_pool_close_fd(&w->status);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	pool->alive--;
	unplaced = pool->options->placed && !w->last_ns && WIFEXITED(status) &&
		   WEXITSTATUS(status) == NOT_PLACED;
	pool->result->refused += unplaced;
	if (unplaced)
		batch_refused(pool, w);
	while (w->first) {
		struct batch_command *c = take_from(w, w->first->sequence);
		int last = 0;

		if (unplaced)
			batch_take_back(pool, c);
		else
			last = without_end(pool, w, c, err);
		rc = rc ? rc : last;
	}
	queue_free(&w->out);
	queue_free(&w->in);
	queue_free(&w->told);
	free(w->why);
	w->why = NULL;
	return rc;
}

static int take_results(struct pool *pool, struct batch_slot *w, struct iocom_err *err)
{
	struct batch_message m;
	ssize_t n = read(w->from, pool->piece, sizeof(pool->piece));
	int rc = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return batch_pool_gone(pool, w, err);
	if (queue_push(&w->in, pool->piece, (size_t)n))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	while (!rc && w->in.length) {
		n = batch_take(queue_front(&w->in), w->in.length, &m);
		if (n == 0)
			return 0;
		rc = n < 0 ? -EPROTO : batch_pool_obey(pool, w, &m, err);
		if (!rc)
			queue_drop(&w->in, (size_t)n);
	}
	if (rc != -EPROTO)
		return rc;
	batch_show_clear(pool);
	fprintf(stderr, "iocom batch: a worker does not speak this program's protocol\n");
	kill(w->pid, SIGTERM);
	return batch_pool_gone(pool, w, err);
}

static void send_commands(struct batch_slot *w)
{
	ssize_t n = write(w->to, queue_front(&w->out), w->out.length);

	if (n > 0)
		queue_drop(&w->out, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		batch_pool_close_fd(&w->to); /* the end of its results tells what happened */
}

/* Our pipe ends do not block; the child gets the other ends as 0, 1 and, if placed, 3. */
static int batch_pool_spawn(const struct batch_options *options, struct batch_slot *w)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, status[2] = {-1, -1}, rc = 0;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	/* SIGTERM to `iocom run` ends the placed job; a local worker needs a group of its own. */
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETSIGMASK |
					 (options->placed ? 0 : POSIX_SPAWN_SETPGROUP));
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(status, O_CLOEXEC))
		rc = errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (options->placed)
		posix_spawn_file_actions_adddup2(&actions, status[1], 3);
	if (!rc)
		rc = posix_spawn(&w->pid, "/proc/self/exe", &actions, &attributes, options->argv,
				 environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	batch_pool_close_fd(&in[0]);
	batch_pool_close_fd(&out[1]);
	batch_pool_close_fd(&status[1]);
	w->to = in[1];
	w->from = out[0];
	w->status = status[0];
	if (!rc) {
		fcntl(w->to, F_SETFL, O_NONBLOCK);
		fcntl(w->from, F_SETFL, O_NONBLOCK);
		fcntl(w->status, F_SETFL, O_NONBLOCK);
		return 0;
	}
	batch_pool_close_fd(&w->to);
	batch_pool_close_fd(&w->from);
	batch_pool_close_fd(&w->status);
	return -rc;
}

static int start_all(struct pool *pool, struct iocom_err *err)
{
	for (unsigned i = 0; i < pool->options->workers; i++) {
		struct batch_slot *w = &pool->workers[i];
		int rc;

		*w = (struct batch_slot){.to = -1, .from = -1, .status = -1};
		w->last = &w->first;
		rc = batch_pool_spawn(pool->options, w);
		if (rc && !pool->alive)
			return iocom_err_set(err, rc, "cannot start a worker: %s", strerror(-rc));
		pool->alive += rc == 0; /* fewer workers than the user asked for are enough */
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

/* Entry 0 is the input, entry 1 the signals; three entries for each worker follow. */
enum { ENTRY_INPUT, ENTRY_SIGNAL, ENTRY_WORKERS };

static void batch_pool_fill(struct pool *pool)
{
	bool wanted = !pool->input_ended && !pool->back && !batch_has_line(pool);

	pool->entries[ENTRY_INPUT] =
		(struct pollfd){.fd = wanted ? pool->options->in : -1, .events = POLLIN};
	pool->entries[ENTRY_SIGNAL] = (struct pollfd){.fd = pool->signals, .events = POLLIN};
	for (unsigned i = 0; i < pool->options->workers; i++) {
		const struct batch_slot *w = &pool->workers[i];
		struct pollfd *e = pool->entries + ENTRY_WORKERS + 3 * (size_t)i;

		e[0] = (struct pollfd){.fd = w->out.length ? w->to : -1, .events = POLLOUT};
		e[1] = (struct pollfd){.fd = w->from, .events = POLLIN};
		e[2] = (struct pollfd){.fd = w->status, .events = POLLIN};
	}
}

static int batch_pool_serve(struct pool *pool, struct iocom_err *err)
{
	int rc = pool->entries[ENTRY_INPUT].revents ? batch_read_input(pool, err) : 0;

	if (pool->entries[ENTRY_SIGNAL].revents && batch_signal(pool))
		return -EINTR;
	for (unsigned i = 0; i < pool->options->workers && !rc; i++) {
		struct batch_slot *w = &pool->workers[i];
		const struct pollfd *e = pool->entries + ENTRY_WORKERS + 3 * (size_t)i;

		if (e[0].revents && w->to >= 0)
			send_commands(w);
		if (e[2].revents)
			batch_status(pool, w);
		if (e[1].revents && w->from >= 0)
			rc = take_results(pool, w, err);
	}
	return rc;
}

/* Ends the commands that run: nobody wants their results any more. */
static void batch_pool_stop(struct pool *pool)
{
	pool->stopping = true;
	for (unsigned i = 0; i < pool->options->workers; i++)
		if (pool->workers[i].from >= 0)
			kill(pool->options->placed ? pool->workers[i].pid : -pool->workers[i].pid,
			     SIGTERM);
}

/*
 * Closes the workers' inputs, which tells them to leave, and waits for their last outputs. A
 * further signal ends this process without waiting.
 */
static int dismiss(struct pool *pool, const sigset_t *mask, struct iocom_err *err)
{
	int rc = 0;

	sigprocmask(SIG_SETMASK, mask, NULL);
	for (unsigned i = 0; i < pool->options->workers; i++)
		batch_pool_close_fd(&pool->workers[i].to);
	for (unsigned i = 0; i < pool->options->workers; i++) {
		struct batch_slot *w = &pool->workers[i];

		while (w->from >= 0) {
			int last;

			poll(&(struct pollfd){.fd = w->from, .events = POLLIN}, 1, -1);
			last = take_results(pool, w, err);
			rc = rc ? rc : last;
			if (last == -ENOMEM && w->from >= 0)
				batch_pool_gone(pool, w, err);
		}
	}
	return rc;
}

static int batch_pool_run(struct pool *pool, struct iocom_err *err)
{
	int rc = start_all(pool, err);

	while (!rc && !all_done(pool) && pool->alive) {
		rc = give_all(pool, err);
		if (rc || all_done(pool))
			break;
		batch_show_progress(pool);
		batch_pool_fill(pool);
		if (poll(pool->entries, ENTRY_WORKERS + 3 * (nfds_t)pool->options->workers,
			 pool->show.progress ? DRAW_MS : -1) > 0)
			rc = batch_pool_serve(pool, err);
	}
	pool->result->rest = !rc && !all_done(pool);
	if (rc)
		batch_pool_stop(pool);
	return rc;
}

static int batch_pool_open_signals(struct pool *pool, sigset_t *was)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, was))
		return -errno;
	pool->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return pool->signals < 0 ? -errno : 0;
}

static void pool_free(struct pool *pool)
{
	queue_free(&pool->input);
	while (pool->back) {
		struct batch_command *c = pool->back;

		pool->back = c->next;
		batch_command_free(pool, c);
	}
	batch_order_free(pool);
	batch_refused_free(pool);
	if (pool->signals >= 0)
		close(pool->signals);
	free(pool->workers);
	free(pool->entries);
	free(pool);
}

int batch_pool(const struct batch_options *options, struct batch_result *result,
	       struct iocom_err *err)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	struct iocom_err later = {0};
	sigset_t was;
	int rc, end;

	*result = (struct batch_result){0};
	if (!pool)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	*pool = (struct pool){
		.options = options,
		.result = result,
		.signals = -1,
		.next_turn = 1,
		.workers = calloc(options->workers, sizeof(*pool->workers)),
		.entries = calloc(ENTRY_WORKERS + 3 * (size_t)options->workers,
				  sizeof(*pool->entries)),
	};
	rc = pool->workers && pool->entries ? batch_pool_open_signals(pool, &was) : -ENOMEM;
	if (rc) {
		pool_free(pool);
		return iocom_err_set(err, rc, "cannot begin: %s", strerror(-rc));
	}
	signal(SIGPIPE, SIG_IGN);
	batch_show_begin(pool);
	rc = batch_pool_run(pool, err);
	end = dismiss(pool, &was, rc ? &later : err);
	rc = rc ? rc : end;
	batch_show_end(pool);
	pool_free(pool);
	return rc;
}
