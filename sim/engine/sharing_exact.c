/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Up to SHARING_EXACT_MAX tasks, by the probabilities of which task is where.  Let a_j be the
 * computation and b_j the disk's work in one unit of task j's progress:
 *
 *   P(set S at the processor) ~ C(|S|) D(n - |S|)  prod_{S} a_j  prod_{not S} b_j
 *
 * This is a product form in which only the sizes of the sets matter, so sums over sets are
 * polynomials with p_j = a_j / (a_j + b_j): O(n^2) instead of 2^n.  It is exact for a
 * processor-sharing CPU, C(n) = n! / (power(1) ... power(n)), and an exponential disk, D(m) = m!.
 * We add three things:
 *
 *   services that are not exponential  D(m) = m! / (g(1) ... g(m)), where g(m) is the rate, in
 *       units of 1 / E(s), at which the disk ends requests when m tasks are there.  It comes from
 *       the M/G/1 queue of finite capacity fed by the processor: exact for tasks alike
 *       (all with one processor, any cores, or beside tasks without requests)
 *   services that differ between tasks (FCFS)  b_j (1 + A_j) = visits (E(s_j) + A_j E(s of
 *       the others there)): with this b_j the product form gives the response time of FCFS
 *   delays away from both  count with the processor, C'(n) = sum_i C(n, i) C(hogs + i)
 *       z^(n-i), where z is the ratio of delay to computation of the tasks that are not hogs
 *       (hogs only compute); each task has its own delay in its own cycle
 *
 * The rate of j comes from the sums over the positions of the other tasks (arrival theorem):
 *
 *   1 / rate_j = a_j T_C / H + z_j + b_j T_D / H
 *
 * H is the weight of all positions of the others; T_C and T_D are the same with j added at the
 * processor or at the disk.  The sums without j are prefix polynomials times suffix functionals:
 * all terms are positive, so nothing cancels.
 */
#include <string.h>

#include "sim/engine/sharing_private.h"

#define MAX	    SHARING_EXACT_MAX
#define ROUNDS	    8
#define CLOSE	    1e-2 /* stop when every b_j changes by less */
#define CLOSE_INPUT 4e-2 /* and the inputs of g change by less, on which rates depend far less */
#define TAIL	    1e-9 /* smaller probabilities count as 0 */
#define ALIKE	    1e-9
#define FALLING	    0.02 /* from this relative fall on, arrival rates count as unequal */
#define CV2_LITTLE  0.02
#define LEAST_QUIET 1e-6

struct exact {
	const struct sharing_machine *m;
	struct sharing_task *t;
	uint32_t n;
	uint32_t mobiles; /* tasks that compute and visit the disk */
	uint32_t away;	  /* tasks that never visit the disk but are away at times */
	uint32_t hogs;	  /* tasks that only compute */
	uint32_t fixed;	  /* tasks that never compute */
	uint32_t mobile[MAX];
	double stretch[MAX]; /* b_j / (visits E(s_j)) of each task */
	double waiting[MAX]; /* R_j of the disk over b_j, minus 1 */
	double p[MAX];	     /* p_j of each mobile task */
	double z;
	double cpu[MAX + 2];			     /* C'(n) */
	double cpu_more[MAX + 2], cpu_less[MAX + 2]; /* C'(n) with one hog more, with one less */
	double disk[MAX + 1];			     /* D(m) */
	double prefix[MAX + 1][MAX + 1];
	double rate_v, service_ms, cv2; /* the inputs that g was computed from */
	double responses_ms;
};

/* --- the processor: C'(n) ------------------------------------------------------------ */

/* C'(k) for K tasks that may be away, beside HOGS; plain[i] is C(i). */
static double places(const double *plain, uint32_t hogs, uint32_t k, double z)
{
	double ways = 1, sum = plain[hogs + k]; /* ways: C(k, i) z^(k - i) */

	for (uint32_t i = k; i > 0 && z > 0; i--) {
		ways *= z * i / (k - i + 1);
		sum += ways * plain[hogs + i - 1];
	}
	return sum;
}

/* z is the mean of two ratios: by the tasks' demands, and by their demands at their rates. */
static void processor(struct exact *x)
{
	double plain[MAX + 2], cpu = 0, away = 0, cpu_now = 0, away_now = 0;
	uint32_t n = x->mobiles + x->away;

	for (uint32_t j = 0; j < x->n; j++) {
		const struct sharing_task *t = &x->t[j];

		if (t->visits + t->delay_ms > 0) {
			cpu += t->cpu_ms;
			away += t->delay_ms;
			cpu_now += t->cpu_ms * t->rate;
			away_now += t->delay_ms * t->rate;
		}
	}
	x->z = cpu > 0 ? (away / cpu + away_now / cpu_now) / 2 : 0;
	plain[0] = 1;
	for (uint32_t i = 1; i <= n + x->hogs + 1; i++)
		plain[i] = plain[i - 1] * i / sharing_power(x->m, i);
	for (uint32_t k = 0; k <= n; k++) {
		x->cpu[k] = places(plain, x->hogs, k, x->z);
		x->cpu_more[k] = places(plain, x->hogs + 1, k, x->z);
		x->cpu_less[k] = x->hogs > 0 ? places(plain, x->hogs - 1, k, x->z) : 0;
	}
}

/* --- the disk: D(m) from g(m) -------------------------------------------------------- */

/* Requests that arrive per ms while M tasks are at the disk. */
static double arrivals_per_ms(const struct exact *x, uint32_t m)
{
	uint32_t k = x->mobiles - m, n = x->away + k;

	return k > 0 ? x->rate_v * k * x->cpu[n - 1] / x->cpu[n] : 0;
}

/* One length of services in units of their mean, with a Gamma distribution around it. */
struct length {
	double share, width, cv2;
};

/* Services of one length that begin with a given number of tasks at the disk. */
struct services {
	double quiet;	   /* P(no request arrives before the end) */
	double tails[MAX]; /* P(more than l requests arrive) */
	uint32_t count;	   /* number of tails; further ones count as 0 */
};

/*
 * Services that begin with K tasks: Poisson arrivals during a Gamma service.  If each arrival
 * lowers the rate of the next, they come as from a limited number of sources (Binomial).
 */
static void services(const struct exact *x, uint32_t k, const double *rho,
		     const struct length *length, struct services *s)
{
	uint32_t room = x->mobiles - k;
	double width = length->width, cv2 = length->cv2;
	double fall = room > 1 ? (rho[k] - rho[k + 1]) * width : 0;
	double ratio = (fall > 1e-6 ? expm1(fall) / fall : 1) / (1 + rho[k] * width * cv2);
	double alpha, sum = 0, scale, left;

	s->quiet = alpha = sharing_no_arrival(rho[k] * width, cv2);
	s->tails[0] = left = 1 - alpha;
	s->count = 1;
	while (s->count < room && (alpha > TAIL || s->count < rho[k] * width)) {
		uint32_t i = s->count++;

		alpha *= rho[k + i - 1] * width / i * (1 + (i - 1) * cv2) * ratio;
		s->tails[i] = alpha;
		sum += alpha;
	}
	scale = sum > left * (1 + ALIKE) ? 0.999 * left / sum : 1;
	for (uint32_t i = 1; i < s->count; i++)
		s->tails[i] = left = fmax(left - scale * s->tails[i], 0);
}

/* Adds the time that START such services spend with K, K + 1 ... tasks at the disk. */
static void services_time(const struct exact *x, uint32_t k, double start, const double *per_rho,
			  const struct length *length, const struct services *s, double *time)
{
	double spent[MAX], sum = 0, full, least = 0, scale = 1;

	for (uint32_t l = 0; l < s->count; l++)
		sum += spent[l] = s->tails[l] * per_rho[k + l];
	if (k + s->count == x->mobiles)
		least = s->tails[s->count - 1] * length->width *
			fmin((1 + length->cv2) / (s->count + 1), 1);
	full = length->width - sum;
	if (full < least) {
		scale = sum > 0 ? (length->width - least) / sum : 0;
		full = least;
	}
	for (uint32_t l = 0; l < s->count; l++)
		time[k + l] += start * scale * spent[l];
	time[k + s->count] += start * full;
}

/*
 * The lengths of services.  If all arrivals are equally likely: one Gamma.  If their rate falls:
 * one constant, or two constants with the same mean and variance.
 */
static uint32_t lengths(double cv2, bool falling, struct length *length)
{
	double sd = fmin(sqrt(cv2), 0.98);

	length[0] = (struct length){1, 1, falling ? 0 : cv2};
	if (!falling || cv2 < CV2_LITTLE)
		return 1;
	length[0] = (struct length){0.5, 1 - sd, 0};
	length[1] = (struct length){0.5, 1 + sd, 0};
	return 2;
}

/* Computes g from the time with each number of tasks at the disk, which follows from how often a
 * request ends and leaves k tasks (`left`, by level crossings). */
static void disk_rates(const struct exact *x, double *g)
{
	double rho[MAX + 1], per_rho[MAX + 1], crossing[MAX + 2] = {0}, time[MAX + 1] = {0};
	uint32_t K = x->mobiles, count, m = 0;
	struct services s[2];
	struct length length[2];

	do {
		rho[m] = arrivals_per_ms(x, m) * x->service_ms;
		per_rho[m] = 1 / rho[m];
	} while (++m < K);
	count = lengths(x->cv2, rho[0] - rho[K - 1] > FALLING * rho[0], length);
	time[0] = per_rho[0];
	for (uint32_t k = 1; k < K; k++) {
		double quiet = 0, left;

		for (uint32_t i = 0; i < count; i++) {
			if (k == 1 || fabs(rho[k] - rho[k - 1]) > ALIKE * rho[k])
				services(x, k, rho, &length[i], &s[i]);
			else if (s[i].count > K - k)
				s[i].count = K - k;
			quiet += length[i].share * s[i].quiet;
			for (uint32_t l = 0; k == 1 && l < s[i].count; l++)
				crossing[l + 1] += length[i].share * s[i].tails[l];
		}
		left = crossing[k] / fmax(quiet, LEAST_QUIET);
		for (uint32_t i = 0; i < count; i++) {
			double part = length[i].share * left;

			for (uint32_t l = 1; l < s[i].count; l++)
				crossing[k + l] += part * s[i].tails[l];
			services_time(x, k, k == 1 ? part + length[i].share : part, per_rho,
				      &length[i], &s[i], time);
		}
	}
	for (m = 1; m <= K; m++)
		g[m] = rho[m - 1] * time[m - 1] / time[m];
}

static void disk(struct exact *x)
{
	double g[MAX + 1];
	bool shaped = x->fixed == 0 && x->mobiles > 1 && x->rate_v > 0 && x->service_ms > 0;

	if (shaped)
		disk_rates(x, g);
	x->disk[0] = 1;
	for (uint32_t m = 1; m <= x->fixed + x->mobiles; m++)
		x->disk[m] = x->disk[m - 1] * m / (shaped ? g[m] : 1);
}

/* Computes the disk's inputs from the tasks' last rates. */
static void disk_inputs(struct exact *x)
{
	struct sharing_services s = {0};
	double computed = 0, requests = 0;

	for (uint32_t j = 0; j < x->n; j++)
		sharing_services_add(&s, &x->t[j]);
	for (uint32_t i = 0; i < x->mobiles; i++) {
		const struct sharing_task *t = &x->t[x->mobile[i]];

		computed += t->cpu_ms * t->rate;
		requests += t->visits * t->rate;
	}
	x->cv2 = fmax(sharing_services_cv2(&s, &x->service_ms), SHARING_CV2_LEAST);
	x->rate_v = computed > 0 ? requests / computed : 0;
}

/* --- the sums -------------------------------------------------------------------------- */

static void prefixes(struct exact *x)
{
	x->prefix[0][0] = 1;
	for (uint32_t i = 0; i < x->mobiles; i++) {
		const double *from = x->prefix[i];
		double *to = x->prefix[i + 1], p = x->p[i], q = 1 - p;

		to[0] = q * from[0];
		for (uint32_t k = 1; k <= i; k++)
			to[k] = q * from[k] + p * from[k - 1];
		to[i + 1] = p * from[i];
	}
}

/* Computes one task's cycle from the weights of the other tasks' positions. */
static void cycle(struct exact *x, uint32_t j, double all, double at_cpu, double at_disk,
		  struct sharing_load *load)
{
	struct sharing_task *t = &x->t[j];
	double own = t->visits * t->service_ms * x->stretch[j];
	double cpu_ms = t->cpu_ms * fmax(at_cpu / all, 1);
	double disk_ms = fmax(own * at_disk / all, t->visits * t->service_ms);
	double rate = 1 / (cpu_ms + t->delay_ms + disk_ms);

	t->rate = rate;
	x->waiting[j] = t->visits > 0 ? at_disk / all - 1 : 0;
	load->at_cpu += cpu_ms * rate;
	load->at_disk += disk_ms * rate;
	t->stretch = disk_ms * rate; /* for now: the share of time that the task is at the disk */
}

/* The mobile tasks: prefix[i] covers the tasks before i, the functionals those after it. */
static void cycles_mobile(struct exact *x, struct sharing_load *load)
{
	double all[MAX], cpu[MAX], disk[MAX];
	uint32_t K = x->mobiles, R = x->away, F = x->fixed;

	for (uint32_t i = 0; i < K; i++) {
		all[i] = x->cpu[R + i] * x->disk[F + K - 1 - i];
		cpu[i] = x->cpu_more[R + i] * x->disk[F + K - 1 - i];
		disk[i] = x->cpu[R + i] * x->disk[F + K - i];
	}
	for (uint32_t i = K; i-- > 0;) {
		double p = x->p[i], q = 1 - p, sum_all = 0, sum_cpu = 0, sum_disk = 0;
		const double *ways = x->prefix[i];

		for (uint32_t k = 0; k <= i; k++) {
			sum_all += ways[k] * all[k];
			sum_cpu += ways[k] * cpu[k];
			sum_disk += ways[k] * disk[k];
		}
		cycle(x, x->mobile[i], sum_all, sum_cpu, sum_disk, load);
		for (uint32_t k = 0; k < i; k++) {
			all[k] = q * all[k] + p * all[k + 1];
			cpu[k] = q * cpu[k] + p * cpu[k + 1];
			disk[k] = q * disk[k] + p * disk[k + 1];
		}
	}
}

/* The other tasks; those of a class differ only in size. */
static void cycles_others(struct exact *x, struct sharing_load *load)
{
	const double *ways = x->prefix[x->mobiles];
	uint32_t K = x->mobiles, R = x->away, F = x->fixed;
	double hog_all = 0, hog_cpu = 0, away_all = 0, away_cpu = 0, fixed_all = 0, fixed_disk = 0;

	for (uint32_t i = 0; i <= K; i++) {
		double at_disk = ways[i] * x->disk[F + K - i];

		hog_all += x->cpu_less[R + i] * at_disk;
		hog_cpu += x->cpu[R + i] * at_disk;
		away_all += R > 0 ? x->cpu[R - 1 + i] * at_disk : 0;
		away_cpu += R > 0 ? x->cpu_more[R - 1 + i] * at_disk : 0;
		fixed_all += F > 0 ? x->cpu[R + i] * ways[i] * x->disk[F - 1 + K - i] : 0;
		fixed_disk += x->cpu[R + i] * at_disk;
	}
	for (uint32_t j = 0; j < x->n; j++) {
		const struct sharing_task *t = &x->t[j];

		if (!(t->cpu_ms > 0))
			cycle(x, j, fixed_all, 0, fixed_disk, load);
		else if (!(t->visits + t->delay_ms > 0))
			cycle(x, j, hog_all, hog_cpu, 0, load);
		else if (!(t->visits > 0))
			cycle(x, j, away_all, away_cpu, 0, load);
	}
}

static void busy_cores(const struct exact *x, struct sharing_load *load)
{
	const double *ways = x->prefix[x->mobiles];
	uint32_t K = x->mobiles, R = x->away, F = x->fixed;
	double all = 0, busy = 0;

	if (x->z > 0) { /* the sums do not tell how many of them compute */
		load->cores_busy = sharing_busy(x->m, x->t, x->n, load->at_cpu);
		return;
	}
	for (uint32_t i = 0; i <= K; i++) {
		double weight = ways[i] * x->cpu[R + i] * x->disk[F + K - i];

		all += weight;
		busy += weight * fmin(x->hogs + i, x->m->cores);
	}
	load->cores_busy = busy / all;
}

/* --- iteration --------------------------------------------------------------------------- */

/* The elapsed part of a service when the first of X Poisson arrivals in it comes, if one comes. */
static double elapsed(double x)
{
	return x > 1e-3 ? 1 / x - 1 / expm1(x) : 0.5;
}

/*
 * Finds the b_j that give FCFS's response times.  A task that only visits the disk keeps it busy
 * all the time, so others find a service partly done: a quarter of the part that Poisson arrivals
 * would find elapsed, because their arrivals follow ends of services.
 */
static double stretches(struct exact *x)
{
	double present = 0, work = 0, change = 0;

	for (uint32_t j = 0; j < x->n; j++) {
		present += x->t[j].stretch;
		work += x->t[j].stretch * x->t[j].service_ms;
	}
	for (uint32_t j = 0; j < x->n; j++) {
		struct sharing_task *t = &x->t[j];
		double others = present - t->stretch, a = x->waiting[j], mean, stretch;

		if (!(t->visits > 0) || !(t->service_ms > 0)) {
			x->stretch[j] = 1;
			continue;
		}
		mean = others > 1e-9 ? (work - t->stretch * t->service_ms) / others : t->service_ms;
		if (x->fixed > 0 && t->cpu_ms > 0)
			a -= (1 - fmin(x->cv2, 1)) / 4 * elapsed(t->visits * mean / t->cpu_ms);
		stretch = 1 + a * mean / t->service_ms;
		a = x->waiting[j];
		stretch = a > -0.99 && stretch > 0 ? stretch / (1 + a) : 1;
		change = fmax(change, fabs(stretch / x->stretch[j] - 1));
		x->stretch[j] = stretch;
	}
	return change;
}

/* A task without a last rate starts with its rate alone, slowed as much as the others. */
static void guess_rates(const struct exact *x)
{
	double rates = 0, alone = 0, slowed;

	for (uint32_t j = 0; j < x->n; j++) {
		if (x->t[j].rate > 0) {
			rates += x->t[j].rate;
			alone += 1 / sharing_alone_ms(&x->t[j]);
		}
	}
	slowed = rates > 0 ? rates / alone : 1;
	for (uint32_t j = 0; j < x->n; j++) {
		if (!(x->t[j].rate > 0))
			x->t[j].rate = slowed / sharing_alone_ms(&x->t[j]);
	}
}

/* Fills what the rounds start from; the rounds compute the rest of X. */
static void sharing_exact_begin(struct exact *x, const struct sharing_machine *m,
				struct sharing_task *tasks, uint32_t n)
{
	x->m = m;
	x->t = tasks;
	x->n = n;
	x->mobiles = x->away = x->hogs = x->fixed = 0;
	for (uint32_t j = 0; j < n; j++) {
		struct sharing_task *t = &tasks[j];

		x->stretch[j] = t->stretch > 0 ? t->stretch : 1;
		t->stretch = 0;
		if (t->visits > 0 && t->cpu_ms > 0)
			x->mobile[x->mobiles++] = j;
		else if (t->visits > 0)
			x->fixed++;
		else if (t->delay_ms > 0)
			x->away++;
		else
			x->hogs++;
	}
	guess_rates(x);
}

static void sums(struct exact *x, struct sharing_load *load)
{
	*load = (struct sharing_load){0};
	for (uint32_t i = 0; i < x->mobiles; i++) {
		const struct sharing_task *t = &x->t[x->mobile[i]];
		double b = t->visits * t->service_ms * x->stretch[x->mobile[i]];

		x->p[i] = t->cpu_ms / (t->cpu_ms + b);
	}
	disk(x);
	prefixes(x);
	cycles_mobile(x, load);
	if (x->away + x->hogs + x->fixed > 0)
		cycles_others(x, load);
}

void sharing_exact(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		   struct sharing_load *load)
{
	struct exact x;
	double v, cv2, change;

	sharing_exact_begin(&x, m, t, n);
	processor(&x);
	disk_inputs(&x);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (round > 0 && x.z > 0)
			processor(&x);
		v = x.rate_v * x.service_ms;
		cv2 = x.cv2;
		sums(&x, load);
		disk_inputs(&x);
		change = stretches(&x);
		if (change < CLOSE && fabs(x.rate_v * x.service_ms - v) < CLOSE_INPUT * v &&
		    fabs(x.cv2 - cv2) < CLOSE_INPUT)
			break;
	}
	busy_cores(&x, load);
	for (uint32_t j = 0; j < n; j++)
		t[j].stretch = x.stretch[j];
}
