/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Up to SHARING_EXACT_MAX tasks, by the probabilities of who is where.  With a_j the
 * computation and b_j the disk's work in one unit of task j's progress,
 *
 *   P(set S at the processor) ~ C(|S|) D(n - |S|)  prod_{S} a_j  prod_{not S} b_j
 *
 * a product form in which only numbers count, so that sums over sets are polynomials
 * with p_j = a_j / (a_j + b_j): O(n^2) instead of 2^n.  Exact for a processor-sharing
 * CPU, C(n) = n! / (power(1) ... power(n)), and an exponential disk, D(m) = m!.  Three
 * things are added:
 *
 *   services that are not exponential  D(m) = m! / (g(1) ... g(m)), g(m) the rate, in
 *       units of 1 / E(s), at which the disk ends requests when m tasks are there, from the
 *       M/G/1 queue of finite capacity fed by the processor: exact for tasks alike
 *       (all with one processor, any cores, or beside tasks without requests)
 *   services that differ between tasks (FCFS)  b_j (1 + A_j) = visits (E(s_j) + A_j E(s of
 *       the others there)): b_j is what makes the product form answer with FCFS's response
 *   delays away from both  count with the processor: C'(n) = sum_i C(n, i) C(i) z^(n-i), z
 *       the mean ratio of delay to computation; each task's own delay in its own cycle
 *
 * The rate of j comes from the sums over the others' places (arrival theorem):
 *
 *   1 / rate_j = a_j T_C / H + z_j + b_j T_D / H
 *
 * with H the weight of all places of the others, T_C and T_D the same with j added
 * at the processor or at the disk.  The sums without j are prefix polynomials times
 * suffix functionals: all terms positive, nothing cancels.
 */
#include <string.h>

#include "sharing_private.h"

#define MAX	    SHARING_EXACT_MAX
#define ROUNDS	    8
#define CLOSE	    2e-3 /* stop when nothing changes by more */
#define LEAST_QUIET 1e-6

struct exact {
	const struct sharing_machine *m;
	struct sharing_task *t;
	uint32_t n;
	uint32_t mobiles;   /* compute and visit the disk */
	uint32_t residents; /* never visit */
	uint32_t fixed;	    /* never compute */
	uint32_t mobile[MAX];
	double stretch[MAX]; /* b_j / (visits E(s_j)), of each task */
	double waiting[MAX]; /* R_j of the disk over b_j, less 1 */
	double p[MAX];	     /* of each mobile */
	double z;
	double cpu[MAX + 2], cpu_with[MAX + 2]; /* C'(n), and with one task more at the processor */
	double disk[MAX + 1];			/* D(m) */
	double prefix[MAX + 1][MAX + 1];
	double rate_v, service_ms, cv2; /* what g came from */
	double responses_ms;
};

/* --- the processor: C'(n) ------------------------------------------------------------ */

static void processor(struct exact *x)
{
	double plain[MAX + 2], a = 0, z = 0;
	uint32_t n = x->mobiles + x->residents;

	for (uint32_t j = 0; j < x->n; j++) {
		a += x->t[j].cpu_ms;
		z += x->t[j].delay_ms;
	}
	x->z = a > 0 ? z / a : 0;
	plain[0] = 1;
	for (uint32_t i = 1; i <= n + 1; i++)
		plain[i] = plain[i - 1] * i / sharing_power(x->m, i);
	if (!(x->z > 0)) {
		memcpy(x->cpu, plain, (n + 1) * sizeof(*plain));
		memcpy(x->cpu_with, plain + 1, (n + 1) * sizeof(*plain));
		return;
	}
	for (uint32_t k = 0; k <= n; k++) {
		double ways = 1; /* C(k, i) z^(k - i), from i = k down */

		x->cpu[k] = x->cpu_with[k] = 0;
		for (uint32_t i = k;; i--) {
			x->cpu[k] += ways * plain[i];
			x->cpu_with[k] += ways * plain[i + 1];
			if (i == 0)
				break;
			ways *= x->z * i / (k - i + 1);
		}
	}
}

/* --- the disk: D(m) from g(m) -------------------------------------------------------- */

/* How requests arrive while M tasks are at the disk: v per ms of computation of a mobile. */
static double arrivals_per_ms(const struct exact *x, uint32_t m)
{
	uint32_t k = x->mobiles - m, n = x->residents + k;

	return k > 0 ? x->rate_v * k * x->cpu[n - 1] / x->cpu[n] : 0;
}

/*
 * Services that begin with K at the disk: tails[l] = P(more than l requests arrive
 * before the end), l < mobiles - K.  Arrivals are Poisson whose rate falls with each
 * by the same amount (Binomial), over a Gamma service.  Returns P(none).
 */
static double service_tails(const struct exact *x, uint32_t k, const double *rho, double *tails)
{
	uint32_t count = x->mobiles - k;
	double quiet = fmax(sharing_no_arrival(rho[k], x->cv2), LEAST_QUIET);
	double fall = k + 1 < x->mobiles ? rho[k] - rho[k + 1] : 0;
	double ratio = (fall > 1e-6 ? expm1(fall) / fall : 1) / (1 + rho[k] * x->cv2);
	double alpha = quiet, sum = 0, scale, left = 1 - quiet;

	tails[0] = left;
	for (uint32_t i = 1; i < count; i++) {
		alpha *= rho[k + i - 1] / i * (1 + (i - 1) * x->cv2) * ratio;
		tails[i] = alpha;
		sum += alpha;
	}
	scale = sum > 0.999 * left ? 0.999 * left / sum : 1;
	for (uint32_t i = 1; i < count; i++) {
		left -= scale * tails[i];
		tails[i] = left;
	}
	return quiet;
}

/* Adds the time (in services) that START services begun with K spend with K, K + 1 ... there. */
static void service_times(const struct exact *x, uint32_t k, double start, const double *rho,
			  const double *tails, double *time)
{
	uint32_t count = x->mobiles - k;
	double spent[MAX], sum = 0, full, least;

	for (uint32_t l = 0; l < count; l++) {
		spent[l] = tails[l] / rho[k + l];
		sum += spent[l];
	}
	least = tails[count - 1] * (1 + x->cv2) / (count + 1);
	full = 1 - sum;
	if (full < least) {
		double scale = sum > 0 && least < 1 ? (1 - least) / sum : 0;

		full = fmin(least, 1);
		for (uint32_t l = 0; l < count; l++)
			spent[l] *= scale;
	}
	for (uint32_t l = 0; l < count; l++)
		time[k + l] += start * spent[l];
	time[x->mobiles] += start * full;
}

/* left[k]: how often a request ends with k left behind, by level crossings; then g. */
static void disk_rates(const struct exact *x, double *g)
{
	double rho[MAX + 1], crossing[MAX + 1] = {0}, time[MAX + 1] = {0}, tails[MAX];
	uint32_t K = x->mobiles;

	for (uint32_t m = 0; m <= K; m++)
		rho[m] = arrivals_per_ms(x, m) * x->service_ms;
	time[0] = 1 / rho[0];
	for (uint32_t k = 1; k < K; k++) {
		double quiet = service_tails(x, k, rho, tails), left;

		if (k == 1) {
			for (uint32_t l = 0; l + 1 < K; l++)
				crossing[l + 1] += tails[l];
		}
		left = crossing[k] / quiet;
		for (uint32_t l = 1; k + l < K; l++)
			crossing[k + l] += left * tails[l];
		service_times(x, k, k == 1 ? 1 + left : left, rho, tails, time);
	}
	for (uint32_t m = 1; m <= K; m++)
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

/* What the disk sees of the tasks at their last rates. */
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

static double dot(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* One task's cycle from the weights of the others' places. */
static void cycle(struct exact *x, uint32_t j, double all, double at_cpu, double at_disk,
		  struct sharing_load *load)
{
	struct sharing_task *t = &x->t[j];
	double own = t->visits * t->service_ms * x->stretch[j];
	double cpu_ms = t->cpu_ms * at_cpu / all, disk_ms = own * at_disk / all;
	double rate = 1 / (cpu_ms + t->delay_ms + disk_ms);

	t->rate = rate;
	x->waiting[j] = t->visits > 0 ? at_disk / all - 1 : 0;
	load->at_cpu += cpu_ms * rate;
	load->at_disk += disk_ms * rate;
	t->stretch = disk_ms * rate; /* for now: its share of being at the disk */
}

/* The mobile tasks: prefix[i] are those before i, the functionals those behind. */
static void cycles_mobile(struct exact *x, struct sharing_load *load)
{
	double all[MAX], cpu[MAX], disk[MAX];
	uint32_t K = x->mobiles, R = x->residents, F = x->fixed;

	for (uint32_t i = 0; i < K; i++) {
		all[i] = x->cpu[R + i] * x->disk[F + K - 1 - i];
		cpu[i] = x->cpu_with[R + i] * x->disk[F + K - 1 - i];
		disk[i] = x->cpu[R + i] * x->disk[F + K - i];
	}
	for (uint32_t i = K; i-- > 0;) {
		double p = x->p[i], q = 1 - p;

		cycle(x, x->mobile[i], dot(x->prefix[i], all, i + 1), dot(x->prefix[i], cpu, i + 1),
		      dot(x->prefix[i], disk, i + 1), load);
		for (uint32_t k = 0; k < i; k++) {
			all[k] = q * all[k] + p * all[k + 1];
			cpu[k] = q * cpu[k] + p * cpu[k + 1];
			disk[k] = q * disk[k] + p * disk[k + 1];
		}
	}
}

/* Those that stay: alike but for their size. */
static void cycles_staying(struct exact *x, struct sharing_load *load)
{
	const double *ways = x->prefix[x->mobiles];
	uint32_t K = x->mobiles, R = x->residents, F = x->fixed;
	double r_all = 0, r_cpu = 0, f_all = 0, f_disk = 0;

	for (uint32_t i = 0; i <= K; i++) {
		if (R > 0) {
			r_all += ways[i] * x->cpu[R - 1 + i] * x->disk[F + K - i];
			r_cpu += ways[i] * x->cpu_with[R - 1 + i] * x->disk[F + K - i];
		}
		if (F > 0) {
			f_all += ways[i] * x->cpu[R + i] * x->disk[F - 1 + K - i];
			f_disk += ways[i] * x->cpu[R + i] * x->disk[F + K - i];
		}
	}
	for (uint32_t j = 0; j < x->n; j++) {
		const struct sharing_task *t = &x->t[j];

		if (!(t->visits > 0) && t->cpu_ms > 0)
			cycle(x, j, r_all, r_cpu, 0, load);
		else if (t->visits > 0 && !(t->cpu_ms > 0))
			cycle(x, j, f_all, 0, f_disk, load);
	}
}

static void busy_cores(const struct exact *x, struct sharing_load *load)
{
	const double *ways = x->prefix[x->mobiles];
	uint32_t K = x->mobiles, R = x->residents, F = x->fixed;
	double all = 0, busy = 0;

	if (x->z > 0) { /* how many of them compute is not in the sums */
		load->cores_busy = fmin(load->at_cpu, x->m->cores);
		return;
	}
	for (uint32_t i = 0; i <= K; i++) {
		double weight = ways[i] * x->cpu[R + i] * x->disk[F + K - i];

		all += weight;
		busy += weight * fmin(R + i, x->m->cores);
	}
	load->cores_busy = busy / all;
}

/* --- iteration --------------------------------------------------------------------------- */

/* Part of a service gone by when the first of X Poisson arrivals in it comes, if one does. */
static double elapsed(double x)
{
	return x > 1e-3 ? 1 / x - 1 / expm1(x) : 0.5;
}

/*
 * b_j that answers with FCFS's response.  A task that does nothing but visit the disk
 * keeps it busy all the time: others find a service partly done (half of what Poisson
 * arrivals would find gone by: their arrivals follow ends of services).
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
			a -= (1 - fmin(x->cv2, 1)) / 2 * elapsed(t->visits * mean / t->cpu_ms);
		stretch = 1 + a * mean / t->service_ms;
		a = x->waiting[j];
		stretch = a > -0.99 && stretch > 0 ? stretch / (1 + a) : 1;
		change = fmax(change, fabs(stretch / x->stretch[j] - 1));
		x->stretch[j] = stretch;
	}
	return change;
}

static void begin(struct exact *x)
{
	for (uint32_t j = 0; j < x->n; j++) {
		struct sharing_task *t = &x->t[j];

		x->stretch[j] = t->stretch > 0 ? t->stretch : 1;
		if (!(t->rate > 0) && sharing_alone_ms(t) > 0)
			t->rate = 1 / sharing_alone_ms(t);
		if (t->visits > 0 && t->cpu_ms > 0)
			x->mobile[x->mobiles++] = j;
		else if (t->visits > 0)
			x->fixed++;
		else if (t->cpu_ms > 0)
			x->residents++;
		t->stretch = 0;
	}
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
	if (x->residents + x->fixed > 0)
		cycles_staying(x, load);
}

void sharing_exact(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		   struct sharing_load *load)
{
	struct exact x;
	double v, cv2, change;

	x.m = m;
	x.t = t;
	x.n = n;
	x.mobiles = x.residents = x.fixed = 0;
	begin(&x);
	processor(&x);
	disk_inputs(&x);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		v = x.rate_v * x.service_ms;
		cv2 = x.cv2;
		sums(&x, load);
		disk_inputs(&x);
		change = stretches(&x);
		if (change < CLOSE && fabs(x.rate_v * x.service_ms - v) < 4 * CLOSE * v &&
		    fabs(x.cv2 - cv2) < 4 * CLOSE)
			break;
	}
	busy_cores(&x, load);
	for (uint32_t j = 0; j < n; j++)
		t[j].stretch = x.stretch[j];
}
