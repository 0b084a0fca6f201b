/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The time that a job takes alone, which divides its slowdown (MODEL 1.1, O-3):
 *
 *   T = t s + t lambda (1 - h) E(s_disk) + t page 8.1 ms,   s = reference / speed
 *
 * The job has the idle home node with all of its buffer.  For a parallel job it is eq. (3) of
 * MODEL 5.10: each of the identical tasks has a node like the home to itself, and their messages
 * share the master's port.
 */
#include "sim/engine/core.h"

#define KB_PER_MB 1000.0

double sim_reference_mips(const struct sim_cluster *cluster, const struct sim_params *p)
{
	double sum = 0;

	if (p->rules.reference_mips > 0)
		return p->rules.reference_mips;
	for (uint32_t i = 0; i < cluster->n; i++)
		sum += cluster->machines[i].cpu_mips;
	return sum / cluster->n;
}

void core_scale(struct sim_job *job, const struct sim_params *p)
{
	job->cpu_ms *= p->cpu_scale;
	job->memory_mb *= p->memory_scale;
	job->asked.cpu_ms *= p->cpu_scale;
	job->asked.memory_mb *= p->memory_scale;
}

static double core_alone_disk_ms(const struct sim_job *j, const struct sim_machine *m,
				 const struct sim_params *p)
{
	double requests = j->requests, hit;

	if (requests < 0) {
		hit = !p->dedicated_buffer ? 0
					   : rules_hit_rate(j->reaccess, m->buffer_mb * KB_PER_MB,
							    j->io_per_ms, j->request_kb, j->cpu_ms,
							    j->io_per_ms * j->request_kb);
		requests = j->cpu_ms * j->io_per_ms * (1 - hit);
	}
	if (!(requests > 0))
		return 0;
	return requests * rules_service_ms(m->disk_fixed_ms, j->request_kb, m->disk_mb_per_s);
}

static double talk_ms(const struct sim_job *j, const struct sim_machine *m,
		      const struct sim_params *p)
{
	double kb = j->messages_per_ms * j->cpu_ms * j->message_kb;
	double senders = p->port_contention ? j->tasks - 1.0 : 1;

	if (j->tasks < 2 || !(kb > 0) || !(m->network_mb_per_s > 0))
		return 0;
	return senders * kb / m->network_mb_per_s;
}

double core_alone_ms(const struct sim_job *job, const struct sim_machine *home,
		     const struct sim_params *p, double reference_mips)
{
	double n_mem = home->ram_mb > 0 ? home->ram_mb - home->buffer_mb : 0;
	double page = rules_implicit(job->faults_per_ms, job->memory_mb, n_mem);

	return job->cpu_ms * (reference_mips / home->cpu_mips) + core_alone_disk_ms(job, home, p) +
	       job->cpu_ms * page * p->page_fault_ms + talk_ms(job, home, p);
}

double sim_alone_ms(const struct sim_job *job, const struct sim_machine *home,
		    const struct sim_params *p, double reference_mips)
{
	struct sim_job scaled = *job;

	core_scale(&scaled, p);
	return core_alone_ms(&scaled, home, p, reference_mips);
}
