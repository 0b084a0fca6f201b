/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job and the tasks of a node do to each other (MODEL 2.10, ours).  Processors and disk
 * each serve all who are there by turns.  Alone at node k the job takes
 *
 *   T = M + q (C + D - M)   M = max(C, B + D)   q = RULES_SEQUENTIAL
 *   C = t_j C_ref/C_k   B = t_j C_ref/B_k   D = N s_j + F s_page
 *   c = C/T   d = D/T       the shares of that time in which it computes, and is at the disk
 *
 * and n_c = sum of c, n_d = sum of d, m_c = sum of c T / n_c, m_d = sum of d T / n_d of the tasks
 * there say how many it meets at each, and for how long:
 *
 *   r    = T + c w(n_c, cores) min(T, m_c) + d w(n_d, p) min(T, m_d)
 *   harm =     c h(n_c, cores) min(T, m_c) + d h(n_d, p) min(T, m_d)
 *
 *   w(n, s) = max(0, (n + 1)/s - 1)      h(n, s) = n/s * crowd(n, s)
 *
 * What the job does on a shared file system (shared.c, 2.11) adds its disk time and its way to D,
 * and its meetings are those at the server's disk.
 *
 * p is how many tasks the disk serves at a time.  crowd is the part of the time in which the job
 * takes a server from others: 1 if there is but one, from two on n + 1 - s, between 0 and 1, and in
 * between a mean of both.  For two tasks of one resource with one server r and harm are exact.
 */
#include <math.h>

#include "balancer/rules/rules_private.h"

static double sharing_lesser(double a, double b)
{
	return a < b ? a : b;
}

void rules_cell_alone(const struct rules_cell *c, const struct rules_request *j, double requests,
		      double reference_mips, struct rules_alone *out)
{
	double size = j->request_kb > 0 ? j->request_kb : c->request_kb;
	double work = j->cpu_ms * (reference_mips > 0 ? reference_mips : c->mips);

	*out = (struct rules_alone){.cpu = work / c->mips, .burst = work / c->burst};
	if (c->disk_mb_per_s > 0)
		out->disk = requests * rules_service_ms(c->fixed_ms, size, c->disk_mb_per_s);
}

/* --- the tasks of a node ---------------------------------------------------------- */

void rules_cell_share(struct rules_cell *c, const struct rules_alone *left)
{
	rules_sharers_add(&c->sharers, left->cpu, left->burst, left->disk);
}

void rules_cell_unshare(struct rules_cell *c, const struct rules_alone *left)
{
	struct rules_sharers one = {0};

	rules_sharers_add(&one, left->cpu, left->burst, left->disk);
	rules_subtract(&c->sharers.cpu, one.cpu);
	rules_subtract(&c->sharers.disk, one.disk);
	rules_subtract(&c->sharers.cpu_left_ms, one.cpu_left_ms);
	rules_subtract(&c->sharers.disk_left_ms, one.disk_left_ms);
}

void rules_cell_share_task(struct rules_cell *c, const struct rules_task *t, double misses,
			   double reference_mips)
{
	const struct rules_request left = {
		.cpu_ms = t->cpu_ms > t->age_ms ? t->cpu_ms - t->age_ms : 0,
		.request_kb = t->request_kb,
	};
	struct rules_alone alone;

	rules_cell_alone(c, &left, left.cpu_ms * t->io_per_ms * misses, reference_mips, &alone);
	rules_cell_share(c, &alone);
}

/*
 * Of a node that tells only how busy it is: as many as are runnable, and at the disk as many as a
 * queue of this utilisation holds, at most those that use it.  How long they stay is not known.
 */
void rules_cell_share_measured(struct rules_cell *c)
{
	double rho = c->measured ? c->utilisation : sharing_lesser(c->io * c->service, 1);
	double waiting = rho < 1 ? rho / (1 - rho) : INFINITY;

	c->sharers.cpu = c->queue;
	c->sharers.disk = sharing_lesser(waiting, c->io_tasks);
	c->sharers.cpu_left_ms = c->sharers.cpu > 0 ? INFINITY : 0;
	c->sharers.disk_left_ms = c->sharers.disk > 0 ? INFINITY : 0;
}

/* --- a job among them --------------------------------------------------------------- */

/* The job's work at C; if its needs are unknown, delay_prior_ms of both (3.17). */
static void sharing_job(const struct rules_decision *d, const struct rules_cell *c,
			struct rules_alone *out)
{
	const struct rules_request *j = d->request;
	double requests = d->requests, faults = 0;

	if (j->cpu_ms == 0 && requests == 0 && !rules_is_shared(j)) {
		struct rules_request prior = {.cpu_ms = d->params->delay_prior_ms};

		rules_cell_alone(c, &prior, 0, d->reference_mips, out);
		if (c->disk_mb_per_s > 0 && d->at_home->disk_mb_per_s > 0)
			out->disk = d->params->delay_prior_ms * d->at_home->disk_mb_per_s /
				    c->disk_mb_per_s;
		return;
	}
	if (d->params->rates == RULES_RATES_COMPUTATION) {
		requests *= 1 - rules_cell_hit_rate(c, j);
		faults = j->cpu_ms *
			 rules_implicit(j->faults_per_ms, c->memory + j->memory_mb, c->n_mem);
	}
	rules_cell_alone(c, j, requests, d->reference_mips, out);
	if (c->disk_mb_per_s > 0)
		out->disk +=
			faults * rules_service_ms(c->fixed_ms, RULES_PAGE_KB, c->disk_mb_per_s);
}

/* For how long a job that takes ALONE_MS meets N tasks that have LEFT_MS in all. */
static double meeting_ms(double alone_ms, double n, double left_ms)
{
	return n > 0 ? sharing_lesser(alone_ms, left_ms / n) : 0;
}

/* By how much a job waits for each ms of service among N tasks at SERVERS. */
static double sharing_waits(double n, double servers)
{
	double wait = (n + 1) / servers - 1;

	return wait > 0 ? wait : 0;
}

/* By how much it makes them wait, all together. */
static double sharing_makes_wait(double n, double servers)
{
	double over = n + 1 - servers, alone = servers < 2 ? 2 - servers : 0;
	double crowd = over > 0 ? sharing_lesser(over, 1) : 0;

	/* Of one server and a part of another the one has no room beside it. */
	return n / servers * (alone + (1 - alone) * crowd);
}

void rules_delay_at(const struct rules_decision *d, const struct rules_cell *c, uint32_t node,
		    struct rules_delay *out)
{
	const struct rules_sharers *s = &c->sharers;
	double alone, met_cpu, met_disk, met_server = 0;
	const struct rules_cell *server;
	struct rules_shared_way shared;
	struct rules_alone job;

	sharing_job(d, c, &job);
	server = rules_shared_way(d, c, node, &shared);
	alone = rules_alone_ms(job.cpu, job.burst, job.disk + shared.disk_ms + shared.network_ms);
	*out = (struct rules_delay){0};
	if (!(alone > 0))
		return;
	met_cpu = job.cpu / alone * meeting_ms(alone, s->cpu, s->cpu_left_ms);
	met_disk = job.disk / alone * meeting_ms(alone, s->disk, s->disk_left_ms);
	out->response = alone + met_cpu * sharing_waits(s->cpu, c->cores) +
			met_disk * sharing_waits(s->disk, c->disk_parallel);
	out->harm = met_cpu * sharing_makes_wait(s->cpu, c->cores) +
		    met_disk * sharing_makes_wait(s->disk, c->disk_parallel);
	if (server != NULL) {
		s = &server->sharers;
		met_server = shared.disk_ms / alone * meeting_ms(alone, s->disk, s->disk_left_ms);
		out->response += met_server * sharing_waits(s->disk, server->disk_parallel);
		out->harm += met_server * sharing_makes_wait(s->disk, server->disk_parallel);
	}
	out->response *= rules_factor_at(d, node);
}
