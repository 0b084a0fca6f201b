/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The papers' workloads; see presets.h.  The papers give (MODEL 5.7, 5.8, 6) what the table of
 * presets.h names, access rates uniform on 0 .. 2 x mean, Pareto memory of mean 4 MB, and the
 * mixtures.  Where they give nothing, we choose:
 *
 *   computation   Pareto of mean 400 ms, shape 1.2, cut at 1,573.5 s: mean, tail exponent
 * 		and largest value of the process trace that the papers started from
 *   homes	        weights 1 / (1 + i)^0.5: the trace's hosts differ as much or more
 *   arrivals	Poisson.  The mean gap of each node, ARRIVAL_..., makes the busier of disk
 * 		and CPU 0.3 busy at the preset's own rates, counted without buffer hits.
 * 		The arguments do not change it: a sweep over a rate is a sweep over the
 * 		load, and 30 % and 60 % parallel get the same arrivals
 *   deviations	a fifth of the mean (O-39); Pareto shape 1.5
 *   written	nothing, except for the applications
 */
#include "sim/workload/presets.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/workload/applications.h"

#define DEFAULT_JOBS	 5000
#define LIFETIME_MS	 400
#define LIFETIME_SHAPE	 1.2
#define LIFETIME_MAX_MS	 1573500
#define APPLICATION_MS	 10000 /* execution time of Dmine alone */
#define HOME_SKEW	 0.5
#define NOT_IO_SHARE	 0.1 /* ACM: share of the jobs */
#define CPU_INTENSIVE	 10  /* ACM: factor of the computation */
#define MEMORY_INTENSIVE 8   /* page faults per ms (ACM, O-41, O-48) */
#define MEMORY_JOB_MB	 90  /* O-49: ten tasks fill a node's 840 MB */
#define MIX_IO_PER_MS	 0.5 /* O-48: the lowest of 0.5-2.8 */
#define TRACE_IO_PER_MS	 2.0

/* mean ms between two arrivals on a node */
#define ARRIVAL_FC	    50e3
#define ARRIVAL_ACM	    75e3
#define ARRIVAL_TRACE	    100e3
#define ARRIVAL_MEMORY	    5e3
#define ARRIVAL_APPLICATION 600e3
#define ARRIVAL_COM	    40e3
#define ARRIVAL_PLAIN	    2e3

/* What a preset is made from: its row and the caller's arguments. */
struct context {
	struct generator_params *p;
	const struct preset_args *a;
	const char *name;
};

static double given(double value, double own)
{
	return isnan(value) ? own : value;
}

/* --- kinds ----------------------------------------------------------------------- */

/* Adds a job kind that has only what all kinds share. */
static struct generator_kind *presets_add(const struct context *c, const char *name, double share)
{
	struct generator_kind *k = &c->p->kind[c->p->kinds++];

	*k = (struct generator_kind){
		.share = share,
		.cpu_factor = 1,
		.request_kb = given(c->a->request_kb, 256),
		.reaccess = given(c->a->reaccess, 5),
		.requests = -1,
		.memory_mean_mb = given(c->a->memory_mb, 4),
		.memory_shape = given(c->a->memory_shape, 1.5),
		.faults_per_ms = given(c->a->faults_per_ms, 0.5),
		.parallel_share = given(c->a->parallel, 0),
		.tasks_min = c->a->tasks_min ? c->a->tasks_min : 2,
		.tasks_max = c->a->tasks_max ? c->a->tasks_max : 32,
		.barrier_ms = given(c->a->barrier_ms, 100),
	};
	k->request_sd_kb = given(c->a->request_sd_kb, k->request_kb / 5);
	snprintf(k->name, sizeof(k->name), "%s", name);
	return k;
}

static struct generator_kind *add_io(const struct context *c, double share, double io,
				     double request_kb)
{
	struct generator_kind *k = presets_add(c, "I/O", share);

	k->io_per_ms = given(c->a->io_per_ms, io);
	k->io_uniform = true;
	k->request_kb = given(c->a->request_kb, request_kb);
	k->request_sd_kb = given(c->a->request_sd_kb, k->request_kb / 5);
	k->initial_mb = given(c->a->initial_mb, 0);
	k->write_fraction = given(c->a->write_fraction, 0);
	return k;
}

/* ACM: of the jobs that do no I/O, half compute ten times as long and half cause page faults. */
static void add_acm(const struct context *c, double io, double request_kb, double parallel)
{
	double rest = given(c->a->share, NOT_IO_SHARE);
	uint32_t first = c->p->kinds;

	add_io(c, 1 - rest, io, request_kb);
	presets_add(c, "CPU", rest / 2)->cpu_factor = CPU_INTENSIVE;
	presets_add(c, "memory", rest / 2)->faults_per_ms = MEMORY_INTENSIVE;
	for (uint32_t i = first; i < c->p->kinds; i++)
		c->p->kind[i].parallel_share = given(c->a->parallel, parallel);
}

static struct generator_kind *add_application(const struct context *c, const char *name,
					      double share)
{
	struct generator_kind *k = &c->p->kind[c->p->kinds++];
	const struct preset_args *a = c->a;

	application_kind(name, k);
	k->share = share;
	k->request_kb = given(a->request_kb, k->request_kb);
	k->request_sd_kb = given(a->request_sd_kb, k->request_kb / 5);
	k->reaccess = given(a->reaccess, k->reaccess);
	k->memory_mean_mb = given(a->memory_mb, k->memory_mean_mb);
	k->memory_shape = given(a->memory_shape, k->memory_shape);
	k->faults_per_ms = given(a->faults_per_ms, k->faults_per_ms);
	k->initial_mb = given(a->initial_mb, k->initial_mb);
	k->write_fraction = given(a->write_fraction, k->write_fraction);
	k->tasks_min = a->tasks_min ? a->tasks_min : k->tasks_min;
	k->tasks_max = a->tasks_max ? a->tasks_max : k->tasks_max;
	k->messages_per_ms = given(a->messages_per_ms, k->messages_per_ms);
	k->message_kb = given(a->message_kb, k->message_kb);
	if (k->messages_per_ms > 0)
		k->barrier_ms = 1 / k->messages_per_ms;
	k->barrier_ms = given(a->barrier_ms, k->barrier_ms);
	return k;
}

/* COM: parallel jobs; communicating jobs have one barrier per message (5.6). */
static struct generator_kind *presets_add_com(const struct context *c, const char *name,
					      double share, double messages)
{
	struct generator_kind *k = presets_add(c, name, share);

	k->io_per_ms = 1e-5;
	k->faults_per_ms = given(c->a->faults_per_ms, 1e-5);
	k->parallel_share = given(c->a->parallel, 1);
	k->tasks_min = c->a->tasks_min ? c->a->tasks_min : 16;
	k->tasks_max = c->a->tasks_max ? c->a->tasks_max : k->tasks_min;
	k->messages_per_ms = messages;
	k->message_kb = messages > 0 ? given(c->a->message_kb, 512) : 0;
	k->barrier_ms = given(c->a->barrier_ms, messages > 0 ? 1 / messages : 100);
	return k;
}

/* --- presets ----------------------------------------------------------------------- */

static void fill_fc(const struct context *c)
{
	add_io(c, 1, 2.8, 250);
	c->p->kind[0].faults_per_ms = given(c->a->faults_per_ms, 2.0);
}

static void fill_sld(const struct context *c)
{
	add_io(c, 1, 0.6, 256)->parallel_share = given(c->a->parallel, 0.3);
}

static void fill_sld_ex(const struct context *c)
{
	static const double jobs[] = {6337, 28, 4, 1398, 704, 5338};

	fill_fc(c);
	if (!c->a->home_weights && isnan(c->a->home_skew) && c->p->nodes == 6)
		c->p->home_weights = jobs;
}

static void fill_acm_sequential(const struct context *c)
{
	add_acm(c, 0.6, 256, 0);
}

static void fill_acm_30(const struct context *c)
{
	add_acm(c, 0.6, 256, 0.3);
}

static void fill_acm_60(const struct context *c)
{
	add_acm(c, 0.6, 256, 0.6);
}

static void fill_trace1(const struct context *c)
{
	add_acm(c, TRACE_IO_PER_MS, 256, 0);
	c->p->kind[0].initial_mb = given(c->a->initial_mb, 50);
}

static void fill_trace2(const struct context *c)
{
	add_acm(c, TRACE_IO_PER_MS, 256, 0);
}

static void fill_trace3(const struct context *c)
{
	add_acm(c, TRACE_IO_PER_MS, 1000, 0);
}

/* Memory-intensive jobs.  Sizes are uniform on 0 .. 128 KB; we keep their mean and deviation. */
static void fill_trace4(const struct context *c)
{
	double io = given(c->a->share, NOT_IO_SHARE);
	struct generator_kind *k = add_io(c, 1 - io, 0.01, 64);

	snprintf(k->name, sizeof(k->name), "memory");
	k->request_sd_kb = given(c->a->request_sd_kb, k->request_kb / sqrt(3));
	k->faults_per_ms = given(c->a->faults_per_ms, MEMORY_INTENSIVE);
	k->initial_mb = given(c->a->initial_mb, 0.1);
	k = presets_add(c, "I/O", io);
	k->io_per_ms = TRACE_IO_PER_MS;
	k->io_uniform = true;
	k->request_kb = 256;
	k->request_sd_kb = 51.2;
}

static void presets_fill_com(const struct context *c)
{
	presets_add_com(c, "communication", 1, given(c->a->messages_per_ms, 0.5));
}

static void fill_com_io(const struct context *c)
{
	double share = given(c->a->share, 0.5);
	struct generator_kind *k;

	presets_add_com(c, "communication", share, given(c->a->messages_per_ms, 0.1));
	k = presets_add_com(c, "I/O", 1 - share, 0);
	k->io_per_ms = given(c->a->io_per_ms, MIX_IO_PER_MS);
	k->io_uniform = true;
}

/* memory_mb applies to the memory-intensive jobs: with 4 MB no node ever pages (O-49). */
static void fill_com_memory(const struct context *c)
{
	double share = given(c->a->share, 0.5);
	struct generator_kind *k;

	presets_add_com(c, "communication", share, given(c->a->messages_per_ms, 0.1));
	c->p->kind[0].memory_mean_mb = 4;
	presets_add_com(c, "memory", 1 - share, 0);
	k = &c->p->kind[1];
	k->faults_per_ms = MEMORY_INTENSIVE;
	k->memory_mean_mb = given(c->a->memory_mb, MEMORY_JOB_MB);
}

static void fill_application(const struct context *c)
{
	struct generator_kind *k = add_application(c, c->name, 1);

	k->io_per_ms = given(c->a->io_per_ms, k->io_per_ms);
	k->parallel_share = given(c->a->parallel, k->parallel_share);
}

static void fill_group(const struct context *c, enum application_group group, double share)
{
	for (unsigned int i = 0; application_name(group, i); i++)
		add_application(c, application_name(group, i), share);
}

static void fill_acm_apps(const struct context *c)
{
	fill_group(c, APPLICATION_IO, 1);
}

static void fill_com_all(const struct context *c)
{
	fill_group(c, APPLICATION_COMMUNICATION, 1);
}

/* The share of parallel jobs is that of the applications, whose jobs are all parallel. */
static void fill_apps_mix(const struct context *c)
{
	double parallel = given(c->a->parallel, 0.3);
	uint32_t sequential;

	add_acm(c, 0.3, 256, 0);
	sequential = c->p->kinds;
	for (uint32_t i = 0; i < sequential; i++) {
		c->p->kind[i].share *= 1 - parallel;
		c->p->kind[i].parallel_share = 0;
	}
	fill_group(c, APPLICATION_IO, parallel / 6);
}

static void fill_plain(const struct context *c)
{
	struct generator_kind *k = add_io(c, 1, 0, 256);

	snprintf(k->name, sizeof(k->name), "job");
	k->messages_per_ms = given(c->a->messages_per_ms, 0);
	k->message_kb = given(c->a->message_kb, k->messages_per_ms > 0 ? 512 : 0);
}

enum lifetime_group { TRACE, ALONE, PLAIN };

static const struct {
	const char *name, *text;
	void (*fill)(const struct context *c);
	uint32_t nodes;
	uint64_t jobs; /* 0: DEFAULT_JOBS */
	double arrival_ms;
	enum lifetime_group lifetime;
} presets[] = {
	{"fc", "FC: sequential, much I/O and paging", fill_fc, 6, 0, ARRIVAL_FC, TRACE},
	{"sld", "SLD: 30 % parallel, 2-32 tasks, I/O", fill_sld, 6, 0, ARRIVAL_ACM, TRACE},
	{"sld-ex", "SLD's example: 13,809 I/O jobs on six very unequal nodes", fill_sld_ex, 6,
	 13809, ARRIVAL_FC, TRACE},
	{"acm-sequential", "ACM homogeneous: no parallel jobs", fill_acm_sequential, 32, 0,
	 ARRIVAL_ACM, TRACE},
	{"acm-30", "ACM homogeneous: 30 % parallel jobs", fill_acm_30, 32, 0, ARRIVAL_ACM, TRACE},
	{"acm-60", "ACM homogeneous: 60 % parallel jobs", fill_acm_60, 32, 0, ARRIVAL_ACM, TRACE},
	{"acm-trace1", "ACM Table V, trace 1: I/O, 50 MB initial data", fill_trace1, 60, 0,
	 ARRIVAL_TRACE, TRACE},
	{"acm-trace2", "ACM Table V, trace 2: I/O, data replicated", fill_trace2, 60, 0,
	 ARRIVAL_TRACE, TRACE},
	{"acm-trace3", "ACM Table V, trace 3: I/O, 1 MB requests", fill_trace3, 60, 0,
	 ARRIVAL_TRACE, TRACE},
	{"acm-trace4", "ACM Table V, trace 4: memory", fill_trace4, 60, 0, ARRIVAL_MEMORY, TRACE},
	{"com", "COM: parallel jobs that communicate", presets_fill_com, 32, 0, ARRIVAL_COM, TRACE},
	{"com-io", "COM-8: SHARE of com's jobs, the rest with I/O", fill_com_io, 32, 0, ARRIVAL_COM,
	 TRACE},
	{"com-memory", "COM-9: SHARE of com's jobs, the rest with page faults", fill_com_memory, 32,
	 0, ARRIVAL_COM, TRACE},
	{"dmine", "ACM application: association rules", fill_application, 64, 0,
	 ARRIVAL_APPLICATION, ALONE},
	{"pgrep", "ACM application: parallel text search", fill_application, 64, 0,
	 ARRIVAL_APPLICATION, ALONE},
	{"lu", "ACM application: out-of-core LU", fill_application, 64, 0, ARRIVAL_APPLICATION,
	 ALONE},
	{"titan", "ACM application: remote-sensing database", fill_application, 64, 0,
	 ARRIVAL_APPLICATION, ALONE},
	{"cholesky", "ACM application: sparse Cholesky", fill_application, 64, 0,
	 ARRIVAL_APPLICATION, ALONE},
	{"db2", "ACM application: parallel database", fill_application, 64, 0, ARRIVAL_APPLICATION,
	 ALONE},
	{"acm-apps", "the six I/O applications", fill_acm_apps, 64, 0, ARRIVAL_APPLICATION, ALONE},
	{"acm-apps-mix", "ACM-13, -14: sequential jobs and the six applications", fill_apps_mix,
	 512, 0, ARRIVAL_ACM, TRACE},
	{"render", "COM application: images of terrain", fill_application, 32, 0, ARRIVAL_COM,
	 TRACE},
	{"molecular", "COM application: liquids and polymers", fill_application, 32, 0, ARRIVAL_COM,
	 TRACE},
	{"semi", "COM application: semiconductor device", fill_application, 32, 0, ARRIVAL_COM,
	 TRACE},
	{"react", "COM application: chemical reactions", fill_application, 32, 0, ARRIVAL_COM,
	 TRACE},
	{"vortex", "COM application: vortices in a fluid", fill_application, 32, 0, ARRIVAL_COM,
	 TRACE},
	{"com-all", "the five communication applications", fill_com_all, 32, 0, ARRIVAL_COM, TRACE},
	{"plain", "one kind, Poisson, exponential", fill_plain, 6, 0, ARRIVAL_PLAIN, PLAIN},
};

#define PRESETS (sizeof(presets) / sizeof(presets[0]))

void preset_args_default(struct preset_args *a)
{
	*a = (struct preset_args){
		.interarrival_ms = NAN,
		.home_skew = NAN,
		.lifetime_mean_ms = NAN,
		.lifetime_shape = NAN,
		.lifetime_max_ms = NAN,
		.io_per_ms = NAN,
		.request_kb = NAN,
		.request_sd_kb = NAN,
		.reaccess = NAN,
		.faults_per_ms = NAN,
		.memory_mb = NAN,
		.memory_shape = NAN,
		.initial_mb = NAN,
		.write_fraction = NAN,
		.parallel = NAN,
		.barrier_ms = NAN,
		.messages_per_ms = NAN,
		.message_kb = NAN,
		.share = NAN,
	};
}

static void fill_lifetime(struct generator_params *p, const struct preset_args *a,
			  enum lifetime_group group)
{
	double mean = LIFETIME_MS, shape = LIFETIME_SHAPE, max = LIFETIME_MAX_MS;

	p->lifetime = LIFETIME_PARETO;
	if (group == ALONE) {
		p->lifetime = LIFETIME_CONSTANT;
		mean = APPLICATION_MS;
		shape = max = 0;
	} else if (group == PLAIN) {
		p->lifetime = LIFETIME_EXPONENTIAL;
		mean = 1000;
		shape = 1;
		max = 0;
	}
	p->lifetime_mean_ms = given(a->lifetime_mean_ms, mean);
	p->lifetime_shape = given(a->lifetime_shape, shape);
	p->lifetime_max_ms = given(a->lifetime_max_ms, max);
}

static int presets_check(const struct preset_args *a, struct iocom_err *err)
{
	if (a->share < 0 || a->share > 1)
		return iocom_err_set(err, -EINVAL, "share: expected a number from 0 to 1, found %g",
				     a->share);
	if (a->parallel < 0 || a->parallel > 1)
		return iocom_err_set(err, -EINVAL,
				     "parallel: expected a number from 0 to 1, found %g",
				     a->parallel);
	return 0;
}

static int presets_unknown(const char *name, struct iocom_err *err)
{
	char names[512] = "";
	size_t at = 0;

	for (size_t i = 0; i < PRESETS; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       presets[i].name);
	return iocom_err_set(err, -ENOENT, "expected a preset (%s), found \"%.40s\"", names, name);
}

int preset_fill(struct generator_params *p, const char *name, const struct preset_args *args,
		struct iocom_err *err)
{
	const struct context c = {.p = p, .a = args, .name = name};
	size_t i = 0;
	int rc;

	while (i < PRESETS && strcasecmp(presets[i].name, name))
		i++;
	if (i == PRESETS)
		return presets_unknown(name, err);
	rc = presets_check(args, err);
	if (rc)
		return rc;
	generator_params_default(p);
	snprintf(p->name, sizeof(p->name), "%s", presets[i].name);
	if (args->seed)
		p->seed = args->seed;
	p->jobs = args->jobs ? args->jobs : presets[i].jobs ? presets[i].jobs : DEFAULT_JOBS;
	p->nodes = args->nodes ? args->nodes : presets[i].nodes;
	p->interarrival_ms = given(args->interarrival_ms, presets[i].arrival_ms / p->nodes);
	p->home_skew = given(args->home_skew, presets[i].lifetime == PLAIN ? 0 : HOME_SKEW);
	p->home_weights = args->home_weights;
	fill_lifetime(p, args, presets[i].lifetime);
	p->kinds = 0;
	presets[i].fill(&c);
	return 0;
}

const char *preset_name(unsigned int i, const char **text)
{
	if (i >= PRESETS)
		return NULL;
	if (text)
		*text = presets[i].text;
	return presets[i].name;
}
