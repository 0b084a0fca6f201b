/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom top -b` prints one table an interval, or with --json one line. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "user/monitor/sample_json.h"
#include "balancer/top/top.h"
#include "balancer/top/top_head.h"
#include "balancer/top/top_table.h"

#define WIDTH_NO_TERMINAL 160
#define DISKS_MOST	  16
#define WIDTH_COST	  120 /* this width also shows the cost of counting */

static unsigned width_of_output(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 40)
		return size.ws_col;
	if (columns && atoi(columns) >= 40 && atoi(columns) <= 1000)
		return (unsigned)atoi(columns);
	return WIDTH_NO_TERMINAL;
}

/* Leaves out trailing blanks. */
static void print_line(const char *line)
{
	size_t n = strlen(line);

	while (n && line[n - 1] == ' ')
		n--;
	printf("%.*s\n", (int)n, line);
}

static void print_head(const struct top_model *model, unsigned width)
{
	struct top_head_options o = {
		.width = width, .disks = DISKS_MOST, .cost = width >= WIDTH_COST};
	struct top_line lines[TOP_HEAD_LINES];
	char text[TOP_LINE_BYTES];
	size_t n = top_head(top_model_document(model), top_model_previous(model), &o, lines);

	for (size_t i = 0; i < n; i++) {
		top_line_text(&lines[i], text);
		print_line(text);
	}
	putchar('\n');
}

static void print_titles(const struct top_column *columns, size_t n)
{
	struct top_line groups;
	char line[TOP_LINE_BYTES];

	top_table_groups(columns, n, false, &groups);
	top_line_text(&groups, line);
	print_line(line);
	line[0] = 0;
	for (size_t c = 0; c < n; c++) {
		if (c)
			strcat(line, " ");
		top_table_title(line, sizeof(line) - 2, &columns[c]);
	}
	print_line(line);
}

static void print_rows(const struct top_model *model, const struct top_model_options *options,
		       unsigned width)
{
	/* Hide idle tasks among the others, unless the sort key is text or a size. */
	enum top_key key = options->key;
	bool all = top_key_is_text(key) || key == TOP_PID || key == TOP_RSS || key == TOP_TASKS;
	struct top_layout layout = {.width = width,
				    .jobs = options->jobs,
				    .long_names = options->tree || options->commands,
				    .sort = key};
	struct top_look look = {.jobs = options->jobs};
	struct top_column columns[TOP_COLUMNS];
	char line[TOP_LINE_BYTES];
	size_t n, idle = 0, ncolumns;
	const struct top_row *rows = top_model_rows(model, &n);

	top_table_needs(&layout, rows, n);
	ncolumns = top_table_layout(columns, &layout);
	print_titles(columns, ncolumns);
	for (size_t i = 0; i < n; i++) {
		if (rows[i].idle && !all && !options->tree) {
			idle++;
			continue;
		}
		line[0] = 0;
		for (size_t c = 0; c < ncolumns; c++) {
			if (c)
				strcat(line, " ");
			top_table_cell(line, sizeof(line) - 2, &columns[c], &rows[i], &look);
		}
		print_line(line);
	}
	if (idle)
		printf("%zu idle %s not shown\n", idle, options->jobs ? "jobs" : "tasks");
}

static int top_batch_print_table(struct top_model *model, const struct top_options *o, bool first)
{
	unsigned width = width_of_output();

	if (top_model_arrange(model, &o->model))
		return -ENOMEM;
	errno = 0;
	if (!first)
		putchar('\n');
	print_head(model, width);
	print_rows(model, &o->model, width);
	return 0;
}

static int top_batch_print_json(struct top_model *model, const struct top_options *o)
{
	json_t *document = top_model_filtered(model, &o->model, o->sorted);
	int rc = document ? 0 : -ENOMEM;

	errno = 0;
	if (!rc && !json_dumpf(document, stdout, SAMPLE_JSON_DUMP))
		putchar('\n');
	json_decref(document);
	return rc;
}

static int top_batch_show(struct top_model *model, const struct top_options *o, bool first,
			  struct iocom_err *err)
{
	int rc = o->json ? top_batch_print_json(model, o) : top_batch_print_table(model, o, first);

	if (rc)
		return iocom_err_set(err, rc, "out of memory for the output");
	/* errno is that of the first failed write, here or above. */
	if (fflush(stdout) || ferror(stdout))
		return iocom_err_set(err, errno ? -errno : -EIO, "cannot write the output: %s",
				     strerror(errno ? errno : EIO));
	return 0;
}

/* Waits until the source has something to read. */
static int top_batch_wait_for(struct top_source *source, struct iocom_err *err)
{
	struct pollfd p = {.fd = top_source_fd(source), .events = POLLIN};

	if (poll(&p, 1, top_source_due_ms(source)) < 0 && errno != EINTR)
		return iocom_err_set(err, -errno, "cannot wait: %s", strerror(errno));
	return 0;
}

int top_batch(const struct top_options *options, struct top_source *source, struct iocom_err *err)
{
	struct top_options with = *options, *o = &with;
	struct top_model *model = top_model_new();
	struct top_proc *proc = top_proc_new(top_proc_root(options->source.node));
	unsigned long shown = 0;
	int rc = model && proc ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");

	with.model.proc = proc;

	while (!rc && (!o->count || shown < o->count)) {
		json_t *document = NULL;

		rc = top_batch_wait_for(source, err);
		if (!rc)
			rc = top_source_next(source, &document, err);
		if (rc == TOP_SOURCE_E_AGAIN) {
			rc = 0;
			continue;
		}
		if (!rc)
			rc = top_model_set(model, document, err);
		if (!rc)
			rc = top_batch_show(model, o, shown == 0, err);
		json_decref(document);
		if (!rc)
			top_proc_turn(proc);
		shown++;
	}
	top_proc_free(proc);
	top_model_free(model);
	return rc;
}
