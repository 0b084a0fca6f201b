/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the settings of the recorded cluster from a recording; see as_recorded.h. */
#include "sim/cli/as_recorded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "sim/cluster.h"
#include "sim/params.h"

#define HEAD_BYTES 4096 /* bytes of a file that are read to recognise it */
#define POLICIES   32
#define SLOW_MB_S  1 /* disk speed of a node without one, so that I/O jobs avoid it */

struct tally {
	char policy[RECORDING_NAME_MAX];
	uint64_t n;
};

struct reading {
	struct settings *settings;
	struct recorded_facts *facts;
	struct iocom_err *err;
	struct tally tallies[POLICIES];
};

static bool is_recording(const char *path)
{
	char head[HEAD_BYTES];
	struct stat st;
	gzFile file;
	int n;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	file = gzopen(path, "rbe");
	n = file ? gzread(file, head, sizeof(head)) : -1;
	if (file)
		gzclose(file);
	return n > 0 && recording_recognise(head, (size_t)n);
}

static int as_recorded_set(struct reading *r, const char *name, const char *value)
{
	return settings_set(r->settings, name, value) ? iocom_err_set(r->err, -ENOMEM, "no memory")
						      : 0;
}

static int as_recorded_set_number(struct reading *r, const char *name, double value)
{
	char text[32];

	/* Finds the fewest digits that read back as the same value. */
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return as_recorded_set(r, name, text);
}

/* --- machines ----------------------------------------------------------------------- */

static void as_recorded_machine_of(struct reading *r, const struct rules_node *n, double network,
				   struct sim_machine *m)
{
	*m = (struct sim_machine){
		.cpu_mips = n->cpu_mips,
		.cores = n->cores,
		.ram_mb = n->ram_mb,
		.buffer_mb = n->buffer_mb,
		.disk_fixed_ms = n->disk_fixed_ms,
		.disk_mb_per_s = n->disk_mb_per_s,
		.request_kb = n->request_kb,
		.request_sd_kb = n->request_sd_kb,
		.network_mb_per_s = n->network_mb_per_s > 0 ? n->network_mb_per_s : network,
	};
	if (m->disk_mb_per_s > 0)
		return;
	m->disk_mb_per_s = SLOW_MB_S;
	r->facts->diskless++;
}

/* Sets the nodes to the state after the last lines, when they know most about themselves. */
static int set_machines(struct reading *r, const struct recording *recording)
{
	double network = recording_header(recording)->params.network_mb_per_s;
	struct sim_cluster cluster;
	const struct view_node *nodes = recording_nodes(recording, &cluster.n);
	char *text = NULL;
	int rc;

	if (!cluster.n)
		return iocom_err_set(r->err, -EINVAL, "the recording describes no node");
	cluster.machines = calloc(cluster.n, sizeof(*cluster.machines));
	for (uint32_t i = 0; i < cluster.n && cluster.machines; i++)
		as_recorded_machine_of(r, &nodes[i].node, network, &cluster.machines[i]);
	if (cluster.machines)
		text = sim_cluster_format(&cluster);
	r->facts->nodes = cluster.n;
	rc = text ? as_recorded_set(r, "nodes", text) : iocom_err_set(r->err, -ENOMEM, "no memory");
	free(text);
	free(cluster.machines);
	return rc;
}

/* --- parameters --------------------------------------------------------------------- */

/*
 * Sets what a live agent reports: its run queue, and its disk smoothed with weight 1/2 per
 * period, which looks back about two periods and does not show a job that has just come.
 */
static int set_live(struct reading *r, const struct recording_header *h)
{
	double notice = h->notice_ms > 0 ? h->notice_ms : h->period_ms;
	int rc = as_recorded_set(r, "cpu_load_runnable", "1");

	if (!rc)
		rc = as_recorded_set(r, "measure_new_tasks", "0");
	if (!rc && notice > 0)
		rc = as_recorded_set_number(r, "information_period_ms", notice);
	if (!rc && h->period_ms > 0)
		rc = as_recorded_set_number(r, "measure_window_ms", 2 * h->period_ms);
	return rc;
}

static int set_params(struct reading *r, const struct recording_header *h)
{
	bool wall = h->params.rates == RULES_RATES_WALL;
	struct rules_params usual;
	const char *name;
	int rc = wall ? as_recorded_set(r, "rates", "wall") : 0;

	rules_params_default(&usual, h->params.rates);
	for (unsigned int i = 0; !rc; i++) {
		double value = rules_params_get(&h->params, i, &name);

		if (!name)
			break;
		if (value != rules_params_get(&usual, i, &name))
			rc = as_recorded_set_number(r, name, value);
	}
	return rc || !h->live ? rc : set_live(r, h);
}

/* --- its jobs' policy --------------------------------------------------------------- */

static void count_policy(struct reading *r, const char *policy)
{
	for (size_t i = 0; i < POLICIES; i++) {
		struct tally *t = &r->tallies[i];

		if (!t->n)
			snprintf(t->policy, sizeof(t->policy), "%s", policy);
		if (strcmp(t->policy, policy))
			continue;
		t->n++;
		return;
	}
}

static void choose_policy(struct reading *r)
{
	const struct tally *best = &r->tallies[0];

	for (size_t i = 1; i < POLICIES; i++) {
		r->facts->mixed |= r->tallies[i].n > 0;
		if (r->tallies[i].n > best->n)
			best = &r->tallies[i];
	}
	if (best->n)
		memcpy(r->facts->policy, best->policy, sizeof(best->policy));
}

/* --- all of it ---------------------------------------------------------------------- */

static int as_recorded_read_all(struct reading *r, struct recording *recording)
{
	const struct recording_line *line;
	int rc;

	while ((rc = recording_next(recording, &line, r->err)) > 0) {
		r->facts->length_ms = line->time_ms;
		if (line->kind == RECORDING_DECISION && line->decision.job[0])
			count_policy(r, line->decision.policy);
		if (line->kind == RECORDING_END)
			r->facts->end = line->end;
	}
	return rc;
}

int recorded_settings(const char *path, struct settings *s, struct recorded_facts *facts,
		      struct iocom_err *err)
{
	struct reading r = {.settings = s, .facts = facts, .err = err};
	const struct recording_header *h;
	struct recording *recording;
	int rc;

	*facts = (struct recorded_facts){0};
	if (!is_recording(path))
		return 0;
	rc = recording_open(path, &recording, err);
	if (rc)
		return rc;
	h = recording_header(recording);
	facts->live = h->live;
	facts->seed = h->seed;
	memcpy(facts->policy, h->policy, sizeof(facts->policy));
	rc = as_recorded_read_all(&r, recording);
	if (!rc)
		rc = set_machines(&r, recording);
	if (!rc)
		rc = set_params(&r, h);
	choose_policy(&r);
	facts->complete = recording_complete(recording);
	recording_close(recording);
	return rc ? rc : 1;
}
