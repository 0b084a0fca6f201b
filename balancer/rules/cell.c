/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Derives the values that decisions need from a node's description (MODEL 1):
 *
 *   L_IO  = sum lambda (1 - h) + sum page,   L_MEM = sum m,   L_CPU = tasks,
 *
 * with h by (5.4), the tasks sharing the buffer, and page by (4.3).  Loads that a node
 * advertised replace those of its tasks; measured values replace the disk and CPU state.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "balancer/rules/rules_private.h"

#define KB_PER_MB 1000.0

static double cell_least(double a, double b)
{
	return a < b ? a : b;
}

/*
 * Returns whether all are finite and not negative; one chain of operations for any number of
 * values.
 */
static bool cell_sane(const double *values, size_t n)
{
	bool all = true;

	for (size_t i = 0; i < n; i++)
		all &= values[i] >= 0 && values[i] <= DBL_MAX;
	return all;
}

#define SANE(...)                                                                                  \
	cell_sane((const double[]){__VA_ARGS__},                                                   \
		  sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static bool factor_sane(double factor)
{
	return factor >= RULES_CORRECTION_MIN && factor <= RULES_CORRECTION_MAX;
}

/* Returns whether the factors are in range and their nodes ascend. */
static bool corrections_sane(const struct rules_request *r)
{
	const struct rules_correction *c = r->corrections;

	if ((r->correction != 0 && !factor_sane(r->correction)) ||
	    (r->ncorrections > 0 && c == NULL))
		return false;
	for (size_t i = 0; i < r->ncorrections; i++)
		if (!factor_sane(c[i].factor) || (i > 0 && c[i].node <= c[i - 1].node))
			return false;
	return true;
}

static bool held_sane(const struct rules_held *h, size_t n)
{
	if (n > 0 && h == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!cell_sane(&h[i].mb, 1) || (i > 0 && h[i].node <= h[i - 1].node))
			return false;
	return true;
}

int rules_request_check(const struct rules_request *r)
{
	if (!SANE(r->cpu_ms, r->io_per_ms, r->request_kb, r->reaccess, r->memory_mb,
		  r->faults_per_ms, r->initial_mb, r->written_mb, r->output_mb, r->implicit_share))
		return -EINVAL;
	if (!isfinite(r->requests) || r->tasks < 1 || r->implicit_share > 1 ||
	    !corrections_sane(r) || !held_sane(r->held, r->nheld) ||
	    !SANE(r->shared.read_mb, r->shared.written_mb) ||
	    !held_sane(r->shared.cached, r->shared.ncached))
		return -EINVAL;
	return r->com_ms == NULL || cell_sane(r->com_ms, r->tasks) ? 0 : -EINVAL;
}

static int task_check(const struct rules_task *t)
{
	return SANE(t->cpu_ms, t->age_ms, t->io_per_ms, t->request_kb, t->reaccess, t->memory_mb,
		    t->faults_per_ms, t->initial_mb, t->written_mb, t->com_ms)
		       ? 0
		       : -EINVAL;
}

/* What is left may be infinite: not known. */
static bool sharers_sane(const struct rules_sharers *s)
{
	return SANE(s->cpu, s->disk) && s->cpu_left_ms >= 0 && s->disk_left_ms >= 0;
}

int rules_node_check(const struct rules_node *n)
{
	if (!SANE(n->ram_mb, n->buffer_mb, n->cpu_mips, n->cores, n->disk_fixed_ms,
		  n->disk_mb_per_s, n->request_kb, n->request_sd_kb, n->network_mb_per_s,
		  n->age_ms))
		return -EINVAL;
	if (n->has_sharers && !sharers_sane(&n->sharers))
		return -EINVAL;
	if (n->disk_parallel != 0 && (!SANE(n->disk_parallel) || n->disk_parallel < 1))
		return -EINVAL;
	if (n->burst_mips != 0 && (!SANE(n->burst_mips) || n->burst_mips < n->cpu_mips))
		return -EINVAL;
	if (n->cpu_mips == 0 || n->cores < 1 || (n->ram_mb > 0 && n->buffer_mb >= n->ram_mb))
		return -EINVAL;
	if (n->has_measured && !SANE(n->measured.disk_arrivals_per_ms, n->measured.disk_utilisation,
				     n->measured.service_ms, n->measured.service_ms2,
				     n->measured.cpu_queue, n->measured.io_tasks))
		return -EINVAL;
	if (n->has_advertised &&
	    !SANE(n->advertised.io_per_ms, n->advertised.explicit_per_ms, n->advertised.memory_mb,
		  n->advertised.cpu, n->advertised.com_ms))
		return -EINVAL;
	if (n->has_zatti && (!SANE(n->zatti.cpu_idle_percent, n->zatti.run_queue,
				   n->zatti.blocks_per_s, n->zatti.free_mb) ||
			     n->zatti.cpu_idle_percent > 100))
		return -EINVAL;
	if (memchr(n->name, '\0', sizeof(n->name)) == NULL)
		return -EINVAL;
	for (size_t i = 0; i < n->ntasks; i++)
		if (task_check(&n->tasks[i]) < 0)
			return -EINVAL;
	return 0;
}

static void machine_init(struct rules_cell *c, const struct rules_node *n)
{
	c->n_mem = n->ram_mb > 0 ? n->ram_mb - n->buffer_mb : 0;
	c->buffer_kb = n->buffer_mb * KB_PER_MB;
	c->mips = n->cpu_mips;
	c->burst = n->burst_mips > 0 ? n->burst_mips : n->cpu_mips;
	c->cores = n->cores;
	c->network = n->network_mb_per_s;
	c->fixed_ms = n->disk_fixed_ms;
	c->disk_mb_per_s = n->disk_mb_per_s;
	c->disk_parallel = n->disk_parallel > 0 ? n->disk_parallel : 1;
	c->request_kb = n->request_kb > 0 ? n->request_kb : RULES_REFERENCE_KB;
	c->accepts = n->accepts;
	if (n->disk_mb_per_s > 0) {
		c->performance =
			rules_disk_performance(c->fixed_ms, c->request_kb, c->disk_mb_per_s);
		c->service = rules_service_ms(c->fixed_ms, c->request_kb, c->disk_mb_per_s);
		c->service2 = rules_service_ms2(c->fixed_ms, c->request_kb, n->request_sd_kb,
						c->disk_mb_per_s);
	}
}

/* The time that REQUESTS take on an otherwise idle disk. */
static double cell_disk_ms(const struct rules_cell *c, double requests, double request_kb)
{
	if (!(c->disk_mb_per_s > 0))
		return 0;
	return requests * rules_service_ms(c->fixed_ms, request_kb > 0 ? request_kb : c->request_kb,
					   c->disk_mb_per_s);
}

/* Loads from the tasks' requirements; hit rate and page faults apply to the papers' rates only. */
static void tasks_init(struct rules_cell *c, const struct rules_node *n,
		       const struct rules_reading *reading)
{
	bool model = reading->rates == RULES_RATES_COMPUTATION;

	for (size_t i = 0; i < n->ntasks; i++) {
		c->memory += n->tasks[i].memory_mb;
		c->com += n->tasks[i].com_ms;
		c->kb_per_ms += n->tasks[i].io_per_ms * n->tasks[i].request_kb;
		c->cpu_ms += n->tasks[i].cpu_ms;
	}
	for (size_t i = 0; i < n->ntasks; i++) {
		const struct rules_task *t = &n->tasks[i];
		double hit = model ? rules_hit_rate(t->reaccess, c->buffer_kb, t->io_per_ms,
						    t->request_kb, t->cpu_ms, c->kb_per_ms)
				   : 0;
		double own = t->io_per_ms * (1 - hit);
		double page = model ? rules_implicit(t->faults_per_ms, c->memory, c->n_mem) : 0;

		c->explicit_io += own;
		c->disk_ms += cell_disk_ms(c, t->cpu_ms * own, t->request_kb);
		c->implicit_io += page;
		c->io_tasks += own + page > 0;
		if (!n->has_sharers)
			rules_cell_share_task(c, t, 1 - hit, reading->reference_mips);
	}
	c->io = c->implicit_io + c->explicit_io;
	c->cpu = (double)n->ntasks;
	c->timed = n->ntasks > 0 || !n->has_advertised;
}

static void advertised_init(struct rules_cell *c, const struct rules_node *n)
{
	c->io = n->advertised.io_per_ms;
	c->explicit_io = n->advertised.explicit_per_ms;
	c->implicit_io = c->io - c->explicit_io;
	/* Nearly equal sums differ by rounding, not by load. */
	if (c->implicit_io <= 1e-9 * c->io)
		c->implicit_io = 0;
	c->memory = n->advertised.memory_mb;
	c->cpu = n->advertised.cpu;
	c->com = n->advertised.com_ms;
}

static void measured_init(struct rules_cell *c, const struct rules_node *n)
{
	c->measured = true;
	c->arrivals = n->measured.disk_arrivals_per_ms;
	c->utilisation = cell_least(n->measured.disk_utilisation, 1);
	c->seen_service = n->measured.service_ms;
	c->seen_service2 = n->measured.service_ms2;
	c->queue = n->measured.cpu_queue;
	if (n->measured.io_tasks > c->io_tasks)
		c->io_tasks = n->measured.io_tasks;
}

static void zatti_init(struct rules_cell *c, const struct rules_node *n)
{
	c->has_zatti = true;
	c->zatti_idle = n->zatti.cpu_idle_percent;
	c->zatti_queue = n->zatti.run_queue;
	c->zatti_blocks = n->zatti.blocks_per_s;
	c->zatti_free = n->zatti.free_mb;
}

int rules_cell_init(struct rules_cell *c, const struct rules_node *n,
		    const struct rules_reading *reading)
{
	int ret = rules_node_check(n);

	if (ret < 0)
		return ret;
	memset(c, 0, sizeof(*c));
	machine_init(c, n);
	tasks_init(c, n, reading);
	if (n->has_advertised)
		advertised_init(c, n);
	c->queue = c->cpu;
	if (n->has_measured)
		measured_init(c, n);
	if (n->has_zatti)
		zatti_init(c, n);
	/* A busy disk has users: if nobody counted them, assume all tasks. */
	if (c->io_tasks == 0 && (c->io > 0 || c->arrivals > 0))
		c->io_tasks = c->cpu > 1 ? c->cpu : 1;
	if (n->has_sharers)
		c->sharers = n->sharers;
	else if (n->ntasks == 0)
		rules_cell_share_measured(c);
	/* Sums of huge inputs may still have overflowed. */
	return SANE(c->io, c->memory, c->kb_per_ms, c->com, c->cpu_ms, c->disk_ms, c->performance,
		    c->service, c->service2)
		       ? 0
		       : -EINVAL;
}

double rules_cell_hit_rate(const struct rules_cell *c, const struct rules_request *r)
{
	double kb_per_ms = c->kb_per_ms + r->io_per_ms * r->request_kb;

	return rules_hit_rate(r->reaccess, c->buffer_kb, r->io_per_ms, r->request_kb, r->cpu_ms,
			      kb_per_ms);
}

struct rules_added rules_cell_added(const struct rules_cell *c, const struct rules_request *r,
				    enum rules_rates rates)
{
	if (rates == RULES_RATES_WALL)
		return (struct rules_added){
			.explicit_io = r->io_per_ms * (1 - r->implicit_share),
			.implicit_io = r->io_per_ms * r->implicit_share,
		};
	return (struct rules_added){
		.explicit_io = r->io_per_ms * (1 - rules_cell_hit_rate(c, r)),
		.implicit_io = rules_implicit(r->faults_per_ms, c->memory + r->memory_mb, c->n_mem),
	};
}

double rules_cell_memory_ratio(const struct rules_cell *c, double extra_mb)
{
	return c->n_mem > 0 ? (c->memory + extra_mb) / c->n_mem : 0;
}

double rules_request_count(const struct rules_request *r, enum rules_rates rates)
{
	return rates == RULES_RATES_WALL && r->requests >= 0 ? r->requests
							     : r->cpu_ms * r->io_per_ms;
}

/* A closed loop cannot use more than all of the disk's time: the excess goes to `over`. */
static void charge_disk(struct rules_cell *c, double io)
{
	double service = c->seen_service > 0 ? c->seen_service : c->service;
	double room = service > 0 ? (1 - c->utilisation) / service : 0;
	double added = cell_least(io, room);

	c->over += io - added;
	c->arrivals += added;
	c->utilisation = cell_least(c->utilisation + added * service, 1);
}

/* The requests that miss the buffer. */
static double misses(const struct rules_request *r, const struct rules_added *added,
		     enum rules_rates rates)
{
	double requests = rules_request_count(r, rates);

	if (rates == RULES_RATES_WALL) /* those of page faults are among them */
		return requests;
	return r->io_per_ms > 0 ? requests * (added->explicit_io / r->io_per_ms) : requests;
}

/* The work of a charged request here, as what is left. */
static void cell_alone(const struct rules_cell *c, const struct rules_request *r,
		       const struct rules_added *added, const struct rules_reading *reading,
		       struct rules_alone *out)
{
	rules_cell_alone(c, r, misses(r, added, reading->rates), reading->reference_mips, out);
}

void rules_cell_charge(struct rules_cell *c, const struct rules_request *r,
		       const struct rules_reading *reading)
{
	struct rules_added added = rules_cell_added(c, r, reading->rates);
	double io = added.explicit_io + added.implicit_io;
	struct rules_alone left;

	cell_alone(c, r, &added, reading, &left);
	rules_cell_share(c, &left);

	c->explicit_io += added.explicit_io;
	c->implicit_io += added.implicit_io;
	c->io += io;
	c->memory += r->memory_mb;
	c->kb_per_ms += r->io_per_ms * r->request_kb;
	c->cpu_ms += r->cpu_ms;
	c->disk_ms += cell_disk_ms(c, misses(r, &added, reading->rates), r->request_kb);
	if (r->tasks == 1 && r->com_ms != NULL)
		c->com += r->com_ms[0];
	c->cpu += 1;
	c->queue += 1;
	c->io_tasks += io > 0;
	if (c->measured)
		charge_disk(c, io);
}

static void discharge_disk(struct rules_cell *c, double io)
{
	double service = c->seen_service > 0 ? c->seen_service : c->service;
	double over = cell_least(io, c->over);

	rules_subtract(&c->over, over);
	rules_subtract(&c->arrivals, io - over);
	rules_subtract(&c->utilisation, (io - over) * service);
}

void rules_cell_discharge(struct rules_cell *c, const struct rules_request *r,
			  const struct rules_reading *reading)
{
	struct rules_alone left;
	struct rules_added added;
	double io;

	rules_subtract(&c->memory, r->memory_mb);
	rules_subtract(&c->kb_per_ms, r->io_per_ms * r->request_kb);
	rules_subtract(&c->cpu_ms, r->cpu_ms);
	if (r->tasks == 1 && r->com_ms != NULL)
		rules_subtract(&c->com, r->com_ms[0]);
	/* Subtract what its charge added, as if it joined the remaining tasks. */
	added = rules_cell_added(c, r, reading->rates);
	cell_alone(c, r, &added, reading, &left);
	rules_cell_unshare(c, &left);
	rules_subtract(&c->disk_ms,
		       cell_disk_ms(c, misses(r, &added, reading->rates), r->request_kb));
	io = added.explicit_io + added.implicit_io;
	rules_subtract(&c->explicit_io, added.explicit_io);
	rules_subtract(&c->implicit_io, added.implicit_io);
	rules_subtract(&c->io, io);
	rules_subtract(&c->cpu, 1);
	rules_subtract(&c->queue, 1);
	if (io > 0)
		rules_subtract(&c->io_tasks, 1);
	if (c->measured)
		discharge_disk(c, io);
}
