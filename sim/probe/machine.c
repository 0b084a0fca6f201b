/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A machine with loops that come and go, and one probe.
 *
 *   loops    two populations, short-lived and long-lived, each M/M/infinity: Poisson
 *            arrivals and exponential stays, so that the number present is Poisson from the
 *            first moment on; a loop computes for ever, or computes and accesses the disk
 *   probe    cpu% x elapsed of computation, i/o rate x elapsed accesses
 *   Hermes   cur = alpha new + (1 - alpha) old each period; run queue and memory as they
 *            are, cpu_idle and i/o traffic as means since the last reading
 *   load     the run queue every 5 s, with the old value decaying by exp(-5/60)
 *
 * The system's own work (spec->system) goes before all processes, so it is subtracted from the
 * processor's speed.  cpu_idle is what is left of the whole processor.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "sim/engine/node_model.h"
#include "sim/probe/machine.h"

#define MS	     1000.0
#define FOREVER_MS   1e15
#define LOAD_TICK_MS 5000.0
#define LOAD_MEAN_MS 60000.0
#define PROBE	     0 /* task number of the probe */

enum { PURPOSE_BACKGROUND = 0x50520000, PURPOSE_LOOP, PURPOSE_PHASE };

struct machine {
	const struct probe_scene *scene;
	struct node_model *model;
	struct node_task *tasks; /* PROBE, then loops */
	double *ends;		 /* end of each loop; NODE_NEVER: a free slot */
	uint32_t room;
	struct sim_random random;
	uint64_t started; /* number of loops started until now */
	double now, next_start, next_end;
	double probe_end;
	/* state at the last reading */
	struct node_sums sums;
	double read_at;
	bool has_read, has_load;
};

/* --- loops ------------------------------------------------------------------------ */

static int machine_room_make(struct machine *m)
{
	uint32_t tasks_room = m->room, room = m->room;

	if (array_reserve(m->tasks, tasks_room, m->room + 1, 32))
		return -ENOMEM;
	if (m->model)
		node_model_tasks(m->model, m->tasks, sizeof(*m->tasks), 0);
	if (array_reserve(m->ends, room, m->room + 1, 32))
		return -ENOMEM;
	for (uint32_t i = m->room; i < room; i++)
		m->ends[i] = NODE_NEVER;
	m->room = room;
	return 0;
}

static void find_next_end(struct machine *m)
{
	m->next_end = NODE_NEVER;
	for (uint32_t i = 0; i < m->room; i++)
		m->next_end = fmin(m->next_end, m->ends[i]);
}

static int start_loop(struct machine *m, double stay_ms)
{
	const struct probe_scene *s = m->scene;
	bool io = sim_random_uniform(&m->random) < s->spec->io_share;
	uint32_t i = PROBE + 1;
	int ret = 0;

	while (i < m->room && m->ends[i] < NODE_NEVER)
		i++;
	if (i >= m->room)
		ret = machine_room_make(m);
	if (ret)
		return ret;
	m->tasks[i] = (struct node_task){
		.cpu_ms = FOREVER_MS,
		.requests = -1,
		.io_per_ms = io ? s->spec->loop_io_per_ms : 0,
		.request_kb = s->machine->request_kb,
		.memory_mb = sim_random_exponential(&m->random, s->spec->loop_mb),
		.random = sim_random_stream(s->seed, PURPOSE_LOOP, s->owner + m->started++),
	};
	m->ends[i] = m->now + stay_ms;
	m->next_end = fmin(m->next_end, m->ends[i]);
	ret = node_enter(m->model, 0, i, m->now);
	return ret ? ret : node_run(m->model, 0, i, FOREVER_MS, -1, m->now);
}

static void end_loop(struct machine *m)
{
	for (uint32_t i = PROBE + 1; i < m->room; i++) {
		if (m->ends[i] > m->now)
			continue;
		node_stop(m->model, 0, i, m->now);
		node_leave(m->model, 0, i, m->now);
		m->ends[i] = NODE_NEVER;
	}
	find_next_end(m);
}

/* Short and long loops that begin per ms. */
static double short_rate(const struct machine *m)
{
	const struct probe_spec *p = m->scene->spec;

	return m->scene->loops * p->short_share / (p->short_s * MS);
}

static double long_rate(const struct machine *m)
{
	const struct probe_spec *p = m->scene->spec;

	return m->scene->loops * (1 - p->short_share) / (p->long_s * MS);
}

static void plan_start(struct machine *m)
{
	double rate = short_rate(m) + long_rate(m);

	m->next_start =
		rate > 0 ? m->now + sim_random_exponential(&m->random, 1 / rate) : NODE_NEVER;
}

static int machine_arrive(struct machine *m)
{
	double all = short_rate(m) + long_rate(m);
	bool brief = sim_random_uniform(&m->random) * all < short_rate(m);
	double mean_s = brief ? m->scene->spec->short_s : m->scene->spec->long_s;
	int ret = start_loop(m, sim_random_exponential(&m->random, mean_s * MS));

	plan_start(m);
	return ret;
}

/* Starts the loops that are present at the beginning: a Poisson number with exponential stays. */
static int populate(struct machine *m, double mean, double stay_s)
{
	int ret = 0;

	for (double sum = sim_random_exponential(&m->random, 1); sum < mean && !ret;
	     sum += sim_random_exponential(&m->random, 1))
		ret = start_loop(m, sim_random_exponential(&m->random, stay_s * MS));
	return ret;
}

/* --- time ---------------------------------------------------------------------------- */

static void machine_step(struct machine *m)
{
	const struct node_done *done;
	int n = node_step(m->model, 0, m->now, &done);

	for (int i = 0; i < n; i++)
		if (done[i].task == PROBE)
			m->probe_end = m->now;
}

/* Advances to UNTIL or to the probe's end, if that is earlier. */
static int machine_advance(struct machine *m, double until)
{
	int ret = 0;

	while (!ret && m->probe_end == NODE_NEVER) {
		double inside = node_next(m->model, 0);
		double next = fmin(inside, fmin(m->next_start, m->next_end));

		if (next > until) {
			m->now = until;
			break;
		}
		m->now = next;
		if (inside <= next)
			machine_step(m);
		else if (m->next_end <= next)
			end_loop(m);
		else
			ret = machine_arrive(m);
	}
	return ret;
}

/* --- indices ----------------------------------------------------------------------- */

static void machine_smooth(double *cur, double new, double alpha, bool first)
{
	*cur = first ? new : alpha *new + (1 - alpha) * *cur;
}

static void read_load(struct machine *m, double read[READS])
{
	double kept = exp(-LOAD_TICK_MS / LOAD_MEAN_MS);

	machine_smooth(&read[READ_LOAD], node_runnable(m->model, 0), 1 - kept, !m->has_load);
	m->has_load = true;
}

static void read_hermes(struct machine *m, double read[READS])
{
	const struct probe_scene *s = m->scene;
	const struct sim_machine *machine = s->machine;
	double passed = m->now - m->read_at, alpha = s->spec->alpha, new[READS];
	struct node_sums sums;

	if (!(passed > 0))
		return;
	node_sums(m->model, 0, m->now, &sums);
	new[READ_IDLE] =
		100 * (1 - s->spec->system) *
		fmax(0, 1 - (sums.cpu_busy_ms - m->sums.cpu_busy_ms) / passed / machine->cores);
	new[READ_QUEUE] = node_runnable(m->model, 0);
	new[READ_BLOCKS] = MS *(sums.disk_requests - m->sums.disk_requests) / passed;
	new[READ_ACTIVE] = MS *node_memory(m->model, 0);
	new[READ_FREE] = fmax(0, MS * (machine->ram_mb - machine->buffer_mb - s->idle_mb) -
					 new[READ_ACTIVE]);
	for (int i = 0; i < READ_LOAD; i++)
		machine_smooth(&read[i], new[i], alpha, !m->has_read);
	m->sums = sums;
	m->read_at = m->now;
	m->has_read = true;
}

/* Reads the indices until the probe is due; the last reading is up to a period old. */
static int warm_up(struct machine *m, double read[READS])
{
	const struct probe_scene *s = m->scene;
	struct sim_random phase = sim_random_stream(s->seed, PURPOSE_PHASE, s->owner);
	double period = s->params->information_period_ms, end = s->spec->warmup_s * MS;
	double hermes = period > 0 ? fmod(end - period * sim_random_uniform(&phase), period) : end;
	double load = 0;
	int ret = 0;

	if (hermes < 0)
		hermes = end; /* a warm-up shorter than a period has one reading */
	while (!ret && fmin(hermes, load) <= end) {
		ret = machine_advance(m, fmin(hermes, load));
		if (m->now >= load) {
			read_load(m, read);
			load += LOAD_TICK_MS;
		}
		if (m->now >= hermes) {
			read_hermes(m, read);
			hermes += period > 0 ? period : end + 1;
		}
	}
	return ret ? ret : machine_advance(m, end);
}

static int machine_execute(struct machine *m, double *response_s)
{
	const struct probe_job *j = m->scene->spec->job;
	double cpu_ms = j->cpu_percent / 100 * j->elapsed_s * MS, began = m->now;
	double requests = floor(j->blocks_per_s * j->elapsed_s + 0.5);
	int ret;

	m->tasks[PROBE] = (struct node_task){
		.cpu_ms = cpu_ms,
		.requests = requests,
		.request_kb = m->scene->machine->request_kb,
		.memory_mb = j->memory_pages / MS,
	};
	ret = node_enter(m->model, 0, PROBE, m->now);
	if (!ret)
		ret = node_run(m->model, 0, PROBE, cpu_ms, requests, m->now);
	if (!ret)
		ret = machine_advance(m, FOREVER_MS);
	*response_s = (m->probe_end - began) / MS;
	return ret;
}

/* --- all ------------------------------------------------------------------------------ */

static int machine_set_up(struct machine *m)
{
	const struct probe_scene *s = m->scene;
	const struct sim_cluster one = {.n = 1, .machines = (struct sim_machine *)s->machine};
	double reference = s->machine->cpu_mips / (1 - s->spec->system);
	int ret = machine_room_make(m);

	if (!ret)
		ret = node_model_new(&m->model, &one, s->params, reference);
	if (ret)
		return ret;
	node_model_tasks(m->model, m->tasks, sizeof(*m->tasks), 0);
	m->next_end = NODE_NEVER;
	m->probe_end = NODE_NEVER;
	ret = populate(m, s->loops * s->spec->short_share, s->spec->short_s);
	if (!ret)
		ret = populate(m, s->loops * (1 - s->spec->short_share), s->spec->long_s);
	plan_start(m);
	return ret;
}

int probe_machine_run(const struct probe_scene *scene, double read[READS], double *response_s)
{
	struct machine m = {
		.scene = scene,
		.random = sim_random_stream(scene->seed, PURPOSE_BACKGROUND, scene->owner),
	};
	int ret = machine_set_up(&m);

	memset(read, 0, READS * sizeof(*read));
	if (!ret)
		ret = warm_up(&m, read);
	if (!ret)
		ret = machine_execute(&m, response_s);
	node_model_free(m.model);
	free(m.tasks);
	free(m.ends);
	return ret;
}
