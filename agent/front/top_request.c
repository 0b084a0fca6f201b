/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "top": a client watches readings and gets one line per interval.  A client that reads too
 * slowly, or asks too much, gets longer intervals, not a backlog.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/front/front.h"
#include "user/clock.h"
#include "user/monitor/sample_json.h"
#include "user/monitor/sample_window.h"
#include "user/pack.h"

#define INTERVAL_MIN_MS 100
#define INTERVAL_MAX_MS 3600000
#define FRESH_NS	(20 * CLOCK_NS_PER_MS)

struct top_watch {
	struct top_watch *next;
	struct front *front;
	struct client *client;
	struct sample_window *window;
	uint64_t interval_ns;
	struct loop_timer line;
};

static struct top_watch *top_find(const struct front *front, const struct client *client)
{
	struct top_watch *w = front->tops;

	while (w && w->client != client)
		w = w->next;
	return w;
}

void top_forget(struct front *front, const struct client *client)
{
	for (struct top_watch **p = &front->tops; *p;) {
		struct top_watch *w = *p;

		if (w->client != client) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		loop_cancel(front->base->loop, &w->line);
		sample_window_free(w->window);
		free(w);
	}
}

void top_sampled(struct front *front, const struct monitor_sample *sample)
{
	struct top_watch *next;

	for (struct top_watch *w = front->tops; w; w = next) {
		next = w->next;
		if (sample && sample_window_add(w->window, sample))
			client_drop(w->client); /* this frees W */
	}
}

/* --- one line --------------------------------------------------------------------- */

static const char *top_job_name(void *arg, uint64_t cgroup_id)
{
	const struct front *front = arg;
	const char *name = NULL;

	guest_whose(front->guest, cgroup_id, &name, NULL);
	return name;
}

static int top_job_uid(void *arg, uint64_t cgroup_id, uid_t *uid)
{
	const struct front *front = arg;

	return guest_whose(front->guest, cgroup_id, NULL, uid);
}

json_t *top_json(struct front *front, const struct monitor_sample *sample,
		 const struct iocom_disk *before, size_t nbefore, uid_t uid)
{
	const struct iocom_vector *own = &front->pulse->own;
	const struct sample_json_options options = {
		.node = front->base->set->name,
		.job_name = top_job_name,
		.job_uid = top_job_uid,
		.job_name_arg = front,
		.cgroup_root = front->unified[0] ? front->unified : NULL,
		.names = front->names,
		.own_only = uid != 0,
		.uid = uid,
		.cores = own->cores,
		.disk_mb_per_s = own->disk_mb_per_s,
		.network_mb_per_s = own->network_mb_per_s,
		.disks_before = before,
		.ndisks_before = nbefore,
	};

	return sample_json(sample, &options);
}

static bool is_stale(const struct front *front)
{
	return loop_boot_ns(front->base->loop) - front->pulse->sampled_ns > FRESH_NS;
}

void top_fresh(struct front *front)
{
	if (!front->pulse->has_last || is_stale(front))
		pulse_sample(front->pulse);
}

static void top_write(struct top_watch *w)
{
	struct front *front = w->front;
	struct client *client = w->client;
	const struct iocom_disk *before;
	struct monitor_sample sample;
	uint64_t before_ns = clock_cpu_ns();
	size_t nbefore;

	loop_start(front->base->loop, &w->line, w->interval_ns);
	if (client_has_output(client) || !client_may_ask(client)) {
		front->base->counters->top_lines_delayed++;
		return;
	}
	if (is_stale(front))
		pulse_sample(front->pulse);
	/* Taking the reading may have dropped the client, and W with it. */
	if (client_is_gone(client) || sample_window_take(w->window, &sample, &before, &nbefore))
		return;
	client_json(client, top_json(front, &sample, before, nbefore, client_who(client)->uid));
	client_charge(client, clock_cpu_ns() - before_ns);
}

static void top_line(void *arg)
{
	struct top_watch *w = arg;
	const struct base *base = w->front->base;
	uid_t before = client_enter(w->client);

	top_write(w); /* this may free W */
	client_leave(base, before);
}

/* --- the request ------------------------------------------------------------------- */

static struct top_watch *top_begin(struct front *front, struct client *client)
{
	struct top_watch *w = calloc(1, sizeof(*w));

	top_forget(front, client); /* forget an earlier request on this connection */
	if (w)
		w->window = sample_window_new();
	if (!w || !w->window) {
		free(w);
		return NULL;
	}
	w->front = front;
	w->client = client;
	w->line = (struct loop_timer){.fire = top_line, .arg = w};
	w->next = front->tops;
	front->tops = w;
	return w;
}

void top_request(struct front *front, struct client *client, const msgpack_object *request)
{
	const struct iocom_disk *before;
	struct monitor_sample past;
	struct top_watch *w;
	uint64_t interval_ms = 1000;
	size_t nbefore;

	unpack_u64(request, "interval_ms", &interval_ms);
	if (interval_ms < INTERVAL_MIN_MS || interval_ms > INTERVAL_MAX_MS) {
		client_error(client, "the interval must be from %d to %d ms", INTERVAL_MIN_MS,
			     INTERVAL_MAX_MS);
		return;
	}
	client_watches(client);
	w = top_begin(front, client);
	if (!w) {
		client_error(client, "out of memory");
		return;
	}
	/*
	 * The first line begins now: earlier readings only serve as the base of rates.  However
	 * often somebody asks, tasks are read no more often than lines need.
	 */
	if (!front->pulse->has_last || is_stale(front))
		pulse_sample(front->pulse);
	else if (sample_window_add(w->window, &front->pulse->last))
		client_drop(client);
	if (!top_find(front, client) ||
	    sample_window_take(w->window, &past, &before, &nbefore) == -ENOMEM)
		return;
	w->interval_ns = interval_ms * CLOCK_NS_PER_MS;
	loop_start(front->base->loop, &w->line, w->interval_ns);
}
