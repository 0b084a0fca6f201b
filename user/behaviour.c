/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Phases of a job; see behaviour.h. */
#include "user/behaviour.h"

#include <math.h>
#include <string.h>

static double total(const double ms[BEHAVIOUR_RESOURCES])
{
	return ms[BEHAVIOUR_CPU] + ms[BEHAVIOUR_COM] + ms[BEHAVIOUR_DISK];
}

static int largest(const double ms[BEHAVIOUR_RESOURCES])
{
	int found = BEHAVIOUR_CPU;

	for (int r = 0; r < BEHAVIOUR_RESOURCES; r++)
		if (ms[r] > ms[found])
			found = r;
	return ms[found] > 0 ? found : -1;
}

static void behaviour_join(struct behaviour_phase *into, const struct behaviour_phase *from)
{
	for (int r = 0; r < BEHAVIOUR_RESOURCES; r++)
		into->ms[r] += from->ms[r];
	into->wall_ms += from->wall_ms;
}

/* Joins the phase with the least time to the smaller of its neighbours. */
static void behaviour_make_room(struct behaviour *b)
{
	struct behaviour_phase *p = b->phases;
	size_t least = 0, first;

	for (size_t i = 1; i < b->n; i++)
		if (total(p[i].ms) < total(p[least].ms))
			least = i;
	first = least;
	if (least == b->n - 1 || (least > 0 && total(p[least - 1].ms) < total(p[least + 1].ms)))
		first = least - 1;
	behaviour_join(&p[first], &p[first + 1]);
	p[first].dominant = largest(p[first].ms);
	memmove(&p[first + 1], &p[first + 2], (b->n - first - 2) * sizeof(*p));
	b->n--;
	b->joined++;
}

static bool goes_on(const struct behaviour_phase *phase, const double ms[BEHAVIOUR_RESOURCES])
{
	if (phase->dominant < 0)
		return true;
	return ms[largest(ms)] <= (1 + BEHAVIOUR_MARGIN) * ms[phase->dominant];
}

void behaviour_add(struct behaviour *b, const double ms[BEHAVIOUR_RESOURCES], double wall_ms)
{
	struct behaviour_phase period = {.wall_ms = wall_ms, .dominant = -1}, *last;

	memcpy(period.ms, ms, sizeof(period.ms));
	if (total(ms) > BEHAVIOUR_IDLE * wall_ms)
		period.dominant = largest(ms);
	last = b->n ? &b->phases[b->n - 1] : NULL;
	if (last && (period.dominant < 0 || goes_on(last, ms))) {
		if (last->dominant < 0)
			last->dominant = period.dominant;
		behaviour_join(last, &period);
		return;
	}
	if (b->n == BEHAVIOUR_PHASES)
		behaviour_make_room(b);
	b->phases[b->n++] = period;
}

double behaviour_sum(const struct behaviour *b, double r[BEHAVIOUR_RESOURCES])
{
	memset(r, 0, sizeof(*r) * BEHAVIOUR_RESOURCES);
	for (size_t i = 0; i < b->n; i++)
		for (int x = 0; x < BEHAVIOUR_RESOURCES; x++)
			r[x] += b->phases[i].ms[x];
	return total(r);
}

void behaviour_shares(const struct behaviour *b, double share[BEHAVIOUR_RESOURCES])
{
	double t = behaviour_sum(b, share);

	for (int x = 0; x < BEHAVIOUR_RESOURCES; x++)
		share[x] = t > 0 ? share[x] / t : 0;
}

double behaviour_parallel_ms(const struct behaviour *processes, size_t p,
			     const double sequential[BEHAVIOUR_RESOURCES])
{
	double t = total(sequential);

	for (size_t i = 0; i < BEHAVIOUR_PHASES; i++) {
		double slowest = 0;

		for (size_t j = 0; j < p; j++)
			if (i < processes[j].n)
				slowest = fmax(slowest, total(processes[j].phases[i].ms));
		t += slowest;
	}
	return t;
}

const char *behaviour_class(const struct behaviour *b)
{
	double r[BEHAVIOUR_RESOURCES];

	behaviour_sum(b, r);
	switch (largest(r)) {
	case BEHAVIOUR_CPU:
		return "cpu";
	case BEHAVIOUR_COM:
		return "communication";
	case BEHAVIOUR_DISK:
		return b->fault_ms > r[BEHAVIOUR_DISK] / 2 ? "memory" : "io";
	default:
		return "idle";
	}
}

const char *behaviour_resource_name(int resource)
{
	static const char *const names[] = {"cpu", "com", "disk"};

	return resource >= 0 && resource < BEHAVIOUR_RESOURCES ? names[resource] : "idle";
}

static bool behaviour_sane(double ms)
{
	return isfinite(ms) && ms >= 0;
}

bool behaviour_valid(const struct behaviour *b)
{
	bool good = b->n <= BEHAVIOUR_PHASES && behaviour_sane(b->disk_low_ms) &&
		    behaviour_sane(b->disk_high_ms) && behaviour_sane(b->fault_ms) &&
		    behaviour_sane(b->fault_requests) && behaviour_sane(b->fault_kb) &&
		    behaviour_sane(b->disk_wait_ms) && behaviour_sane(b->run_wait_ms);

	for (size_t i = 0; good && i < b->n; i++) {
		const struct behaviour_phase *p = &b->phases[i];

		good = behaviour_sane(p->wall_ms) && p->dominant >= -1 &&
		       p->dominant < BEHAVIOUR_RESOURCES;
		for (int x = 0; x < BEHAVIOUR_RESOURCES; x++)
			good &= behaviour_sane(p->ms[x]);
	}
	return good;
}
