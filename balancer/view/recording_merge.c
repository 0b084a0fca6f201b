/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Merges several live recordings into one; see recording.h.  Each agent records its own
 * decisions and jobs, so those of a cluster are spread over as many files as it has nodes;
 * only the machines and their loads are in several files.
 *
 *   inputs, each at its next line --earliest by the clock--> recorder
 *
 * A decision is merged with its whole view: the recorder writes the parts that the merged
 * lines do not tell already.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/recording.h"

#define NOBODY UINT32_MAX

struct input {
	const char *path;
	struct recording *recording;
	const struct recording_line *line; /* NULL: there are no more lines */
	double offset_ms;		   /* the merged time of its time 0 */
	uint32_t *numbers;		   /* merged numbers of its nodes, or NOBODY */
	uint32_t room;
};

struct merge {
	struct input *inputs;
	size_t n;
	struct recorder *out;
	double time_ms;
	uint32_t *indexes; /* numbers of a decision's nodes */
	size_t room;
	unsigned int cut;
	struct iocom_err *err;
};

/* --- inputs ------------------------------------------------------------------------ */

static int recording_merge_advance(struct merge *m, struct input *in)
{
	int rc = recording_next(in->recording, &in->line, m->err);

	if (rc > 0)
		return 0;
	in->line = NULL;
	m->cut += rc == 0 && !recording_complete(in->recording);
	return rc;
}

static int recording_merge_check(const struct merge *m, const struct input *in)
{
	const struct recording_header *h = recording_header(in->recording);
	const struct recording_header *first = recording_header(m->inputs[0].recording);

	if (!h->live)
		return iocom_err_set(
			m->err, -EINVAL,
			"%s is of a simulated run; only recordings of live nodes can be merged",
			in->path);
	if (h->params.rates != first->params.rates)
		return iocom_err_set(m->err, -EINVAL, "%s and %s have different \"rates\"",
				     in->path, m->inputs[0].path);
	for (const struct input *other = m->inputs; other != in; other++)
		if (!strcmp(recording_header(other->recording)->node, h->node))
			return iocom_err_set(
				m->err, -EINVAL,
				"%s and %s are both of node '%s'; merge only one of each node",
				other->path, in->path, h->node);
	return 0;
}

static int open_inputs(struct merge *m, const char *const *paths, size_t n)
{
	uint64_t start_ns = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		struct input *in = &m->inputs[i];
		int rc;

		in->path = paths[i];
		rc = recording_open(in->path, &in->recording, m->err);
		if (rc)
			return rc;
		m->n++;
		rc = recording_merge_check(m, in);
		if (rc)
			return rc;
		if (recording_header(in->recording)->start_ns < start_ns)
			start_ns = recording_header(in->recording)->start_ns;
	}
	for (size_t i = 0; i < n; i++) {
		struct input *in = &m->inputs[i];
		int rc = recording_merge_advance(m, in);

		if (rc)
			return rc;
		in->offset_ms =
			(double)(recording_header(in->recording)->start_ns - start_ns) / 1e6;
	}
	return 0;
}

/* The input whose next line is the earliest; NULL: all have ended. */
static struct input *earliest(struct merge *m)
{
	struct input *best = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct input *in = &m->inputs[i];

		if (in->line && (!best || in->line->time_ms + in->offset_ms <
						  best->line->time_ms + best->offset_ms))
			best = in;
	}
	return best;
}

/* --- nodes ------------------------------------------------------------------------- */

/* Returns whether another input has NAME's own report of itself. */
static bool told_by_itself(const struct merge *m, const struct input *in, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (&m->inputs[i] != in &&
		    !strcmp(recording_header(m->inputs[i].recording)->node, name))
			return true;
	return false;
}

static int recording_merge_reserve(uint32_t **list, size_t n)
{
	void *grown = realloc(*list, (n ? n : 1) * sizeof(**list));

	if (!grown)
		return -ENOMEM;
	*list = grown;
	return 0;
}

/* Finds the merged number of node K of IN and records the node if that was not done yet. */
static int number_of(struct merge *m, struct input *in, uint32_t k, uint32_t *number)
{
	uint32_t n;
	const struct view_node *nodes = recording_nodes(in->recording, &n);
	int rc = 0;

	if (n > in->room) {
		rc = recording_merge_reserve(&in->numbers, n);
		if (rc)
			return iocom_err_set(m->err, rc, "out of memory");
		while (in->room < n)
			in->numbers[in->room++] = NOBODY;
	}
	if (in->numbers[k] == NOBODY &&
	    recorder_find(m->out, nodes[k].node.name, &in->numbers[k])) {
		in->numbers[k] = recorder_nodes(m->out);
		rc = recorder_node(m->out, m->time_ms, in->numbers[k], &nodes[k], m->err);
	}
	*number = in->numbers[k];
	return rc;
}

static int merge_node(struct merge *m, struct input *in)
{
	uint32_t k = in->line->node, n, number;
	const struct view_node *node = &recording_nodes(in->recording, &n)[k];
	int rc = number_of(m, in, k, &number);

	if (rc || told_by_itself(m, in, node->node.name))
		return rc;
	return recorder_node(m->out, m->time_ms, number, node, m->err);
}

/* --- lines ------------------------------------------------------------------------- */

static int merge_submit(struct merge *m, struct input *in)
{
	struct recording_job job = in->line->job;
	int rc = number_of(m, in, job.home, &job.home);

	job.time_ms = m->time_ms;
	return rc ? rc : recorder_submit(m->out, &job, m->err);
}

static int merge_finish(struct merge *m, struct input *in)
{
	struct recording_finish finish = in->line->finish;
	int rc = number_of(m, in, finish.node, &finish.node);

	finish.time_ms = m->time_ms;
	finish.start_ms += in->offset_ms;
	return rc ? rc : recorder_finish(m->out, &finish, m->err);
}

static int merge_decision(struct merge *m, struct input *in)
{
	const struct recording_decision *from = &in->line->decision;
	struct recording_decision d = *from;
	struct view_file view;
	int rc = recording_view(in->recording, &view);

	if (!rc && view.nnodes > m->room) {
		rc = recording_merge_reserve(&m->indexes, view.nnodes);
		m->room = rc ? m->room : view.nnodes;
	}
	if (rc)
		return iocom_err_set(m->err, rc, "out of memory");
	for (uint32_t i = 0; i < view.nnodes && !rc; i++)
		rc = number_of(m, in, from->order ? from->order[i] : i, &m->indexes[i]);
	if (!rc)
		rc = number_of(m, in, from->home, &d.home);
	if (rc)
		return rc;
	d.time_ms = m->time_ms;
	d.order = d.indexes = m->indexes;
	d.norder = d.nchanged = view.nnodes;
	d.changed = view.nodes;
	return recorder_decision(m->out, &d, m->err);
}

static int merge_line(struct merge *m, struct input *in)
{
	double time_ms = in->line->time_ms + in->offset_ms;

	if (time_ms > m->time_ms)
		m->time_ms = time_ms;
	switch (in->line->kind) {
	case RECORDING_NODE:
		return merge_node(m, in);
	case RECORDING_SUBMIT:
		return merge_submit(m, in);
	case RECORDING_DECISION:
		return merge_decision(m, in);
	case RECORDING_FINISH:
		return merge_finish(m, in);
	case RECORDING_END:
		recorder_dropped(m->out, in->line->end.dropped);
		recorder_disturbed(m->out, &in->line->end);
		return 0;
	}
	return 0;
}

/* --- the whole merge ----------------------------------------------------------------- */

static struct recording_header merged_header(const struct merge *m)
{
	struct recording_header h = *recording_header(m->inputs[0].recording);

	for (size_t i = 1; i < m->n; i++) {
		const struct recording_header *other = recording_header(m->inputs[i].recording);

		if (other->start_ns < h.start_ns)
			h.start_ns = other->start_ns;
		if (other->period_ms > h.period_ms)
			h.period_ms = other->period_ms;
		if (other->notice_ms > h.notice_ms)
			h.notice_ms = other->notice_ms;
	}
	memset(h.node, 0, sizeof(h.node));
	return h;
}

static int merge_all(struct merge *m, const char *out)
{
	struct recording_header header = merged_header(m);
	struct input *in;
	int rc = recorder_open(out, &header, &m->out, m->err);

	if (rc)
		return rc;
	while (!rc && (in = earliest(m))) {
		rc = merge_line(m, in);
		if (!rc)
			rc = recording_merge_advance(m, in);
	}
	if (!rc)
		return recorder_close(m->out, m->err);
	recorder_abandon(m->out);
	return rc;
}

int recording_merge(const char *const *paths, size_t n, const char *out, unsigned int *cut,
		    struct iocom_err *err)
{
	struct merge m = {.inputs = calloc(n ? n : 1, sizeof(*m.inputs)), .err = err};
	int rc;

	if (!n)
		rc = iocom_err_set(err, -EINVAL, "no recording to merge");
	else
		rc = m.inputs ? open_inputs(&m, paths, n)
			      : iocom_err_set(err, -ENOMEM, "out of memory");
	if (!rc)
		rc = merge_all(&m, out);
	for (size_t i = 0; i < m.n; i++) {
		recording_close(m.inputs[i].recording);
		free(m.inputs[i].numbers);
	}
	free(m.inputs);
	free(m.indexes);
	*cut = m.cut;
	return rc;
}
