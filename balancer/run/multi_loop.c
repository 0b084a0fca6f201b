/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The loop of `iocom run -N`; see multi.h.  A node is
 *
 *   waiting   until fewer than `fanout` nodes run
 *   running   while its process lives or one of its outputs is open
 *   done      when its status counts
 *
 * To bound memory we read a node's output only while nothing waits for our own reader, and
 * input only when every node has the previous piece.
 */
#include "balancer/run/multi.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/ending_signal.h"

#define PIECE_SIZE    (64u << 10)
#define PAUSE_US      10000
#define FOREGROUND_MS 500 /* in the background we look at the terminal this often */
#define FILES_OWN     24  /* descriptors for ourselves and for a process being started */
#define PER_NODE      5	  /* entries of poll: input, two outputs, report, channel */
#define FIRST_NODE    4	  /* the first entries are signals, our input, our two outputs */

static const int forwarded[] = {SIGINT,	 SIGTERM, SIGHUP,  SIGQUIT,
				SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

enum entry { ENTRY_SIGNAL, ENTRY_IN, ENTRY_OUT, ENTRY_ERR };

struct multi {
	const struct multi_options *options;
	const struct multi_job *job;
	struct multi_node *nodes;
	unsigned fanout;
	size_t count, next, running, first; /* first: the first node that is not done */
	size_t spare;			    /* the next spare of the job */
	struct multi_sink sink[2];
	struct multi_sink reports; /* never written: report lines are handled one by one */
	struct pollfd *entries;
	sigset_t before;
	int signals;
	int stopped;	/* this signal came: we start no more nodes */
	unsigned stops; /* how many stop signals came; the second ends all waiting */
	bool ended;	/* a child has ended */
	int failure;	/* with --kill-on-fail: the status of the first failure */
	bool input;	/* our standard input has not ended */
	bool terminal;	/* and is a terminal */
	int wait_ms;	/* how long a turn may take; -1: any time */
	char *piece;	/* of input */
	size_t piece_length;
	size_t gathered; /* bytes gathered for all nodes */
	uint64_t parts;	 /* parts of gathered output that were printed early */
	bool no_memory, drained;
	bool killed; /* we killed the processes */
};

static void multi_loop_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_fds(int fd[2])
{
	multi_loop_close_fd(&fd[0]);
	multi_loop_close_fd(&fd[1]);
}

/* --- signals -------------------------------------------------------------------------- */

static void signal_all(const struct multi *m, int signal)
{
	for (size_t i = 0; i < m->next; i++)
		if (m->nodes[i].pid > 0)
			kill(m->nodes[i].pid, signal);
}

static void multi_loop_take_signal(struct multi *m, int signal)
{
	if (signal == SIGCHLD) {
		m->ended = true;
		return;
	}
	if (m->job->watch)
		m->job->watch->signal(m->job->arg, signal);
	else
		signal_all(m, signal);
	if (signal == SIGTSTP)
		kill(getpid(), SIGSTOP);
	if (!signal_asks_to_end(signal))
		return;
	m->stopped = signal;
	m->stops++;
}

static void multi_loop_serve_signals(struct multi *m)
{
	struct signalfd_siginfo info;

	while (read(m->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		multi_loop_take_signal(m, (int)info.ssi_signo);
}

static int multi_loop_open_signals(struct multi *m)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	sigprocmask(SIG_BLOCK, &set, &m->before);
	/* If our parent ignored SIGCHLD, we could not wait for children. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	m->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->signals < 0 ? -errno : 0;
}

/* --- nodes come and go ------------------------------------------------------------------- */

/* Marks a node as failed for which we could not start a process. */
static void multi_loop_give_up(struct multi *m, struct multi_node *node, int rc)
{
	fprintf(stderr, "%s: %s: cannot start a process for it: %s\n", m->job->name, node->name,
		strerror(-rc));
	node->begun = true;
	node->state = MULTI_DONE;
	node->status = RUN_FAILED;
	node->end = json_pack("{s:s}", "state", "failed");
}

static void node_done(const struct multi *m, const struct multi_node *node)
{
	if (m->job->watch)
		m->job->watch->ended(m->job->arg, (size_t)(node - m->nodes));
}

static void node_failed(struct multi *m, int status)
{
	if (!m->options->kill_on_fail || m->failure)
		return;
	m->failure = status;
	signal_all(m, SIGTERM);
}

static void node_started(struct multi *m, struct multi_node *node)
{
	m->running++;
	for (int i = 0; i < 2; i++)
		if (m->sink[i].output.closed)
			multi_loop_close_fd(&node->fd[i]);
}

static bool node_reads(const struct multi *m, const struct multi_node *node)
{
	const struct multi_watch *watch = m->job->watch;

	return watch ? watch->reader == (size_t)(node - m->nodes) : m->options->stdin_all;
}

/* Starts as many nodes as may run now. */
static void start_some(struct multi *m)
{
	while (m->next < m->count && m->running < m->fanout && !m->stopped && !m->failure) {
		struct multi_node *node = &m->nodes[m->next];
		int rc = multi_start(node, m->job, &m->before, node_reads(m, node));

		if ((rc == -EMFILE || rc == -ENFILE || rc == -EAGAIN) && m->running &&
		    !m->job->watch)
			return; /* retry when others have ended */
		m->next++;
		if (!rc) {
			node_started(m, node);
			continue;
		}
		multi_loop_give_up(m, node, rc);
		node_failed(m, node->status);
		node_done(m, node);
	}
}

static void multi_loop_reap(struct multi *m)
{
	int status;

	if (!m->ended)
		return;
	m->ended = false;
	for (size_t i = m->first; i < m->next; i++) {
		struct multi_node *node = &m->nodes[i];

		if (node->pid <= 0 || waitpid(node->pid, &status, WNOHANG) != node->pid)
			continue;
		node->pid = 0;
		multi_loop_close_fd(&node->in);
		if (m->stops > 1)
			close_fds(node->fd);
		if (WIFEXITED(status)) {
			node->status = WEXITSTATUS(status);
			continue;
		}
		node->status = RUN_UNKNOWN;
		/* Of a parallel job only one sentence is said, and not here. */
		if (m->killed || m->job->watch)
			continue;
		fprintf(stderr,
			"%s: %s: its client was killed by SIG%s; the job's outcome is "
			"unknown here\n",
			m->job->name, node->name, sigabbrev_np(WTERMSIG(status)));
	}
}

/*
 * Replaces NODE, which refused its job, by a spare if we chose the nodes ourselves, unless
 * input that the spare would need has been read already.
 */
static bool multi_loop_replaced(struct multi *m, struct multi_node *node)
{
	const struct nodelist *spares = m->job->spares;
	const char *was = node->name;
	int rc;

	if (node->status != RUN_FAILED || m->stopped || m->failure || m->piece_length || !spares ||
	    m->spare == spares->count || !multi_report_refused(node))
		return false;
	node->name = spares->names[m->spare++];
	fprintf(stderr, "%s: %s takes the place of %s\n", m->job->name, node->name, was);
	json_decref(node->end);
	node->end = NULL;
	free(node->job);
	node->job = NULL;
	node->status = 0;
	rc = multi_start(node, m->job, &m->before, m->options->stdin_all);
	if (!rc)
		node_started(m, node);
	else
		multi_loop_give_up(m, node, rc);
	return !rc;
}

/* Finishes the nodes whose process and outputs have ended. */
static void finish_some(struct multi *m)
{
	for (size_t i = m->first; i < m->next; i++) {
		struct multi_node *node = &m->nodes[i];

		if (node->state != MULTI_RUNNING || node->pid > 0 || node->fd[0] >= 0 ||
		    node->fd[1] >= 0 || node->report >= 0 || node->channel >= 0)
			continue;
		node->state = MULTI_DONE;
		m->running--;
		node_done(m, node);
		if (node->status && !multi_loop_replaced(m, node))
			node_failed(m, node->status);
	}
	while (m->first < m->next && m->nodes[m->first].state == MULTI_DONE)
		m->first++;
}

/* --- input -------------------------------------------------------------------------------- */

static bool input_done(const struct multi_node *node, size_t length)
{
	return node->in < 0 || node->in_done == length;
}

/* Returns whether every node that still reads has the whole piece. */
static bool piece_done(const struct multi *m)
{
	for (size_t i = m->first; i < m->next; i++)
		if (!input_done(&m->nodes[i], m->piece_length))
			return false;
	return true;
}

static bool somebody_reads(const struct multi *m)
{
	for (size_t i = m->first; i < m->next; i++)
		if (m->nodes[i].in >= 0)
			return true;
	return false;
}

static void multi_loop_end_input(struct multi *m)
{
	m->input = false;
	for (size_t i = m->first; i < m->next; i++)
		multi_loop_close_fd(&m->nodes[i].in);
}

static void multi_loop_read_input(struct multi *m)
{
	ssize_t n = read(STDIN_FILENO, m->piece, PIECE_SIZE);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0)
		fprintf(stderr, "%s: cannot read standard input: %s\n", m->job->name,
			strerror(errno));
	if (n <= 0) {
		multi_loop_end_input(m);
		return;
	}
	m->piece_length = (size_t)n;
	for (size_t i = m->first; i < m->next; i++)
		m->nodes[i].in_done = 0;
}

static void write_input(const struct multi *m, struct multi_node *node)
{
	ssize_t n = write(node->in, m->piece + node->in_done, m->piece_length - node->in_done);

	if (n >= 0)
		node->in_done += (size_t)n;
	else if (errno != EINTR && errno != EAGAIN)
		multi_loop_close_fd(&node->in); /* this node reads no more; the others may */
}

/* --- output ------------------------------------------------------------------------------- */

/* Nobody reads our output: close the nodes' outputs, so that their jobs get SIGPIPE. */
static void close_outputs(struct multi *m, int which)
{
	for (size_t i = m->first; i < m->next; i++) {
		multi_loop_close_fd(&m->nodes[i].fd[which]);
		multi_lines_fini(&m->nodes[i].lines[which]);
	}
}

static void flush_output(struct multi *m, int which)
{
	if (multi_sink_flush(&m->sink[which]))
		close_outputs(m, which);
}

/* Too much output is gathered: prints the largest part now. */
static void gather_less(struct multi *m)
{
	struct multi_node *largest = m->nodes;

	if (m->gathered <= MULTI_GATHER_MAX)
		return;
	for (size_t i = 0; i < m->next; i++)
		if (m->nodes[i].gathered.length > largest->gathered.length)
			largest = &m->nodes[i];
	m->parts++;
	m->gathered -= largest->gathered.length;
	if (multi_sink_block(&m->sink[0], &largest->name, 1, &largest->gathered))
		m->no_memory = true;
	queue_free(&largest->gathered);
}

static void multi_loop_read_output(struct multi *m, struct multi_node *node, int which)
{
	bool gather = which == 0 && m->options->gather;
	size_t before = node->gathered.length;
	int rc = multi_lines_read(&node->lines[which], node->fd[which], node->name, &m->sink[which],
				  gather ? &node->gathered : NULL);

	if (rc < 0)
		m->no_memory = true;
	if (rc <= 0)
		multi_loop_close_fd(&node->fd[which]);
	m->gathered += node->gathered.length - before;
	gather_less(m);
	flush_output(m, which);
}

static void take_report(struct multi *m, struct multi_node *node, const char *line, size_t length)
{
	multi_report_line(node, line, length);
	if (m->job->status_fd >= 0)
		run_report_print(m->job->status_fd, json_loadb(line, length, 0, NULL));
}

static void read_report(struct multi *m, struct multi_node *node)
{
	struct queue lines = {0};
	int rc =
		multi_lines_read(&node->report_line, node->report, node->name, &m->reports, &lines);

	if (rc < 0)
		m->no_memory = true;
	if (rc <= 0)
		multi_loop_close_fd(&node->report);
	while (lines.length) {
		const char *line = (const char *)queue_front(&lines);
		const char *end = memchr(line, '\n', lines.length);

		if (!end)
			break;
		take_report(m, node, line, (size_t)(end - line));
		queue_drop(&lines, (size_t)(end + 1 - line));
	}
	queue_free(&lines);
}

static void read_channel(const struct multi *m, struct multi_node *node)
{
	uint8_t packet[MULTI_PACKET_MAX];
	ssize_t n = recv(node->channel, packet, sizeof(packet), MSG_DONTWAIT);

	if (n > 0)
		m->job->watch->packet(m->job->arg, (size_t)(node - m->nodes), packet, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		multi_loop_close_fd(&node->channel);
}

/* --- the loop ----------------------------------------------------------------------------- */

static bool waits(const struct multi *m, int which)
{
	return run_output_poll(&m->sink[which].output) >= 0;
}

/* Sets ENTRY to what we watch of NODE. */
static void watch_node(const struct multi *m, const struct multi_node *node, struct pollfd *entry)
{
	bool input = m->input && !input_done(node, m->piece_length);

	entry[0] = (struct pollfd){.fd = input ? node->in : -1, .events = POLLOUT};
	for (int i = 0; i < 2; i++)
		entry[1 + i] =
			(struct pollfd){.fd = waits(m, i) ? -1 : node->fd[i], .events = POLLIN};
	entry[3] = (struct pollfd){.fd = node->report, .events = POLLIN};
	entry[4] = (struct pollfd){.fd = node->channel, .events = POLLIN};
}

/* A terminal is not read from the background: that would stop us. */
static bool multi_loop_background(const struct multi *m)
{
	return m->terminal && tcgetpgrp(STDIN_FILENO) != getpgrp();
}

static size_t multi_loop_watch(struct multi *m)
{
	bool wanted = m->input && piece_done(m), background = wanted && multi_loop_background(m);
	size_t n = FIRST_NODE;

	m->entries[ENTRY_SIGNAL] = (struct pollfd){.fd = m->signals, .events = POLLIN};
	m->entries[ENTRY_IN] =
		(struct pollfd){.fd = wanted && !background ? STDIN_FILENO : -1, .events = POLLIN};
	if (background && (m->wait_ms < 0 || m->wait_ms > FOREGROUND_MS))
		m->wait_ms = FOREGROUND_MS;
	for (int i = 0; i < 2; i++)
		m->entries[ENTRY_OUT + i] = (struct pollfd){
			.fd = run_output_poll(&m->sink[i].output), .events = POLLOUT};
	for (size_t i = m->first; i < m->next; i++) {
		if (m->nodes[i].state != MULTI_RUNNING)
			continue;
		watch_node(m, &m->nodes[i], &m->entries[n]);
		n += PER_NODE;
	}
	return n;
}

/* Handles the entries that watch() made; no node was added or removed since. */
static void serve_nodes(struct multi *m)
{
	const struct pollfd *entry = &m->entries[FIRST_NODE];

	for (size_t i = m->first; i < m->next; i++) {
		struct multi_node *node = &m->nodes[i];

		if (node->state != MULTI_RUNNING)
			continue;
		if (entry[0].revents && node->in >= 0)
			write_input(m, node);
		for (int k = 0; k < 2; k++)
			if (entry[1 + k].revents && node->fd[k] >= 0 && !waits(m, k))
				multi_loop_read_output(m, node, k);
		if (entry[3].revents)
			read_report(m, node);
		if (entry[4].revents)
			read_channel(m, node);
		entry += PER_NODE;
	}
}

static void multi_loop_turn(struct multi *m)
{
	size_t n = multi_loop_watch(m);

	if (poll(m->entries, n, m->wait_ms) < 0) {

		if (errno != EINTR)
			usleep(PAUSE_US); /* memory is short: try again soon */
		multi_loop_serve_signals(m);
		return;
	}
	if (m->entries[ENTRY_SIGNAL].revents)
		multi_loop_serve_signals(m);
	for (int i = 0; i < 2; i++)
		if (m->entries[ENTRY_OUT + i].revents)
			flush_output(m, i);
	serve_nodes(m);
	if (m->entries[ENTRY_IN].revents)
		multi_loop_read_input(m);
	multi_loop_reap(m);
	finish_some(m);
	if (m->input && m->next == m->count && !somebody_reads(m))
		m->input = false;
	start_some(m);
	if (m->job->watch)
		m->wait_ms = m->job->watch->turn(m->job->arg);
	else
		m->wait_ms = -1;
	if (m->wait_ms == MULTI_TURN_KILL) {
		m->killed = true;
		m->wait_ms = -1;
		signal_all(m, SIGKILL);
	}
}

/* Prints each distinct text once, under the names of all nodes that printed it. */
static void print_gathered(struct multi *m)
{
	const char **names = calloc(m->count, sizeof(*names));
	size_t n;

	for (size_t i = 0; names && i < m->count; i++) {
		struct queue text = m->nodes[i].gathered;

		if (!text.length)
			continue;
		n = 0;
		for (size_t k = i; k < m->count; k++) {
			struct queue *other = &m->nodes[k].gathered;

			if (other->length != text.length ||
			    memcmp(queue_front(other), queue_front(&text), text.length) != 0)
				continue;
			names[n++] = m->nodes[k].name;
			if (k > i)
				queue_free(other);
		}
		if (multi_sink_block(&m->sink[0], names, n, &text))
			m->no_memory = true;
		queue_free(&m->nodes[i].gathered);
		flush_output(m, 0);
	}
	m->no_memory |= !names;
	free(names);
}

/* Writes what our readers have not taken yet; a signal ends that.  Returns whether all went. */
static bool multi_loop_drain(struct multi *m)
{
	unsigned stops = m->stops;

	while (waits(m, 0) || waits(m, 1)) {
		if (m->stops > stops || stops > 1)
			return false;
		multi_loop_turn(m);
	}
	return true;
}

static int worst_status(const struct multi *m)
{
	int status = m->stopped && (m->next < m->count || !m->drained) ? 128 + m->stopped : 0;

	if (m->failure)
		return m->failure;
	for (size_t i = 0; i < m->count; i++)
		if (m->nodes[i].status > status)
			status = m->nodes[i].status;
	return status;
}

/* Prints what is left to say.  Returns the exit status. */
static int multi_loop_conclude(struct multi *m)
{
	int status, lost = 0;
	bool left = false;

	for (int i = 0; i < 2; i++) {
		left |= m->sink[i].output.closed && !m->sink[i].output.error;
		if (m->sink[i].output.error)
			lost = m->sink[i].output.error;
		if (m->sink[i].cut)
			fprintf(stderr,
				"%s: lines longer than %u bytes were split in %llu places\n",
				m->job->name, MULTI_LINE_MAX, (unsigned long long)m->sink[i].cut);
	}
	if (m->parts)
		fprintf(stderr,
			"%s: more than %u MiB were gathered: %llu parts were printed early\n",
			m->job->name, MULTI_GATHER_MAX >> 20, (unsigned long long)m->parts);
	status = m->job->watch ? m->job->watch->conclude(m->job->arg, left) : worst_status(m);
	if (m->no_memory)
		lost = ENOMEM;
	if (lost)
		fprintf(stderr, "%s: output of the jobs was lost: %s\n", m->job->name,
			strerror(lost));
	if (lost && !status)
		status = RUN_UNKNOWN;
	if (m->job->watch)
		return status;
	multi_report_failed(m->job->name, m->nodes, m->count, left);
	multi_report_end(m->job->status_fd, m->nodes, m->count, status);
	return status;
}

/*
 * RLIMIT_NOFILE bounds our descriptors and the entries of poll(2).  We do not raise it, because
 * jobs inherit the user's limits.
 */
static unsigned possible_fanout(unsigned wanted)
{
	struct rlimit files;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == RLIM_INFINITY)
		return wanted;
	most = files.rlim_cur > FILES_OWN + PER_NODE ? (files.rlim_cur - FILES_OWN) / PER_NODE : 1;
	return most < wanted ? (unsigned)most : wanted;
}

static int multi_loop_begin(struct multi *m, const struct nodelist *nodes)
{
	size_t most = m->fanout < nodes->count ? m->fanout : nodes->count;

	m->nodes = calloc(nodes->count, sizeof(*m->nodes));
	m->entries = calloc(FIRST_NODE + PER_NODE * most, sizeof(*m->entries));
	m->piece = malloc(PIECE_SIZE);
	if (!m->nodes || !m->entries || !m->piece)
		return -ENOMEM;
	m->count = nodes->count;
	for (size_t i = 0; i < m->count; i++)
		m->nodes[i] = (struct multi_node){.name = nodes->names[i],
						  .fd = {-1, -1},
						  .in = -1,
						  .report = -1,
						  .channel = -1};
	for (int i = 0; i < 2; i++) {
		m->sink[i].label = m->options->label;
		run_output_init(&m->sink[i].output, i + 1);
	}
	return multi_loop_open_signals(m);
}

static void multi_loop_end(struct multi *m)
{
	for (size_t i = 0; i < m->count; i++) {
		struct multi_node *node = &m->nodes[i];

		multi_loop_close_fd(&node->in);
		multi_loop_close_fd(&node->report);
		multi_loop_close_fd(&node->channel);
		for (int k = 0; k < 2; k++) {
			multi_loop_close_fd(&node->fd[k]);
			multi_lines_fini(&node->lines[k]);
		}
		multi_lines_fini(&node->report_line);
		queue_free(&node->gathered);
		json_decref(node->end);
		free(node->job);
	}
	for (int i = 0; i < 2; i++)
		multi_sink_fini(&m->sink[i]);
	multi_loop_close_fd(&m->signals);
	free(m->nodes);
	free(m->entries);
	free(m->piece);
}

int multi_run(const struct multi_options *options, const struct multi_job *job,
	      const struct nodelist *nodes)
{
	struct multi m = {
		.options = options,
		.job = job,
		.signals = -1,
		.input = options->stdin_all || (job->watch && job->watch->reader < nodes->count),
		.wait_ms = -1,
	};
	int status = RUN_FAILED, rc;

	m.terminal = m.input && isatty(STDIN_FILENO);
	m.fanout = possible_fanout(options->fanout);
	if ((options->stdin_all || job->watch) && nodes->count > m.fanout) {
		fprintf(stderr,
			"%s: %s needs all %zu nodes at once, but only %u can run "
			"(%sopen files)\n",
			job->name, job->watch ? "-n" : "--stdin all", nodes->count, m.fanout,
			job->watch ? "" : "--fanout, ");
		return RUN_FAILED;
	}
	rc = multi_loop_begin(&m, nodes);
	if (rc) {
		fprintf(stderr, "%s: cannot begin: %s\n", job->name, strerror(-rc));
	} else {
		if (job->watch)
			job->watch->begin(job->arg, m.nodes);
		start_some(&m);
		while (m.running)
			multi_loop_turn(&m);
		print_gathered(&m);
		m.drained = multi_loop_drain(&m);
		status = multi_loop_conclude(&m);
		sigprocmask(SIG_SETMASK, &m.before, NULL);
	}
	multi_loop_end(&m);
	return status;
}
