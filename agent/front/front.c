/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See front.h. */
#include "agent/front/front.h"
#include "agent/front/nodes_links.h"

#include "agent/front/recorders.h"
#include "agent/front/requests.h"

/* --- what happens below ------------------------------------------------------------- */

static void front_sampled(void *arg, const struct monitor_sample *sample)
{
	top_sampled(arg, sample);
	looks_sampled(arg, sample);
}

static void front_told(void *arg)
{
	recorders_period(arg);
	nodes_links_look(arg);
}

static void front_decided(void *arg, const struct home_decision *decision)
{
	recorders_decided(arg, decision);
}

static void front_finished(void *arg, const char *from, const struct job_report *report)
{
	recorders_finished(arg, from, report);
}

static void front_ended(void *arg, const char *job)
{
	waits_ended(arg, job);
}

static void front_closed(void *arg, struct client *client)
{
	struct front *front = arg;

	home_forget(front->home, client);
	gangs_forget(front->gangs, client);
	recorders_forget(front, client);
	waits_forget(front, client);
	told_forget(front, client);
	kill_forget(front, client);
	migrate_forget(front, client);
	attach_forget(front, client);
	gather_forget(front, client);
	top_forget(front, client);
}

static void front_half(void *arg, struct client *client)
{
	recorders_end(arg, client);
}

/* --- all of it ------------------------------------------------------------------------ */

int front_start(struct front *front, struct iocom_err *err)
{
	const struct clients_config config = {
		.base = front->base,
		.request = requests_handle,
		.request_arg = front,
		.start = guest_start,
		.begin = guest_start_placed,
		.attach = guest_attach,
		.stream_arg = front->guest,
	};
	int rc = clients_new(&front->clients, &config, err);

	if (rc)
		return rc;
	front->clients_watch =
		(struct clients_watch){.closed = front_closed, .half = front_half, .arg = front};
	clients_watch(front->clients, &front->clients_watch);
	front->ended = (struct journal_wait){.done = waits_committed, .arg = front};
	front->pulse_watch =
		(struct pulse_watch){.sampled = front_sampled, .told = front_told, .arg = front};
	pulse_watch(front->pulse, &front->pulse_watch);
	front->guest_watch = (struct guest_watch){.ended = front_ended, .arg = front};
	guest_watch(front->guest, &front->guest_watch);
	front->home_watch = (struct home_watch){.decided = front_decided,
						.finished = front_finished,
						.ended = front_ended,
						.arg = front};
	home_watch(front->home, &front->home_watch);
	peers_serve(front->peers, PEER_USER, front_on_user, front);
	return 0;
}

void front_stop(struct front *front)
{
	recorders_stop(front);
	gathers_stop(front);
	forwarded_stop(front);
	looks_stop(front);
	nodes_links_stop(front);
	journal_forget(front->journal, &front->ended);
	clients_free(front->clients);
	front->clients = NULL;
}

void front_chores(struct front *front)
{
	waits_chores(front);
	looks_chores(front);
}
