/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See limits.h; tests/unit/test_limits.sh checks that none is missing. */
#include "agent/front/limits.h"

#include <string.h>

#include "agent/base/acceptor.h"
#include "agent/base/accounts.h"
#include "agent/base/complaints.h"
#include "agent/base/loop_share.h"
#include "agent/cluster/seal.h"
#include "agent/cluster/stream.h"
#include "agent/feedback/feedback.h"
#include "agent/front/front.h"
#include "agent/front/recorders.h"
#include "agent/gate/net_limits.h"
#include "agent/guest/jobs.h"
#include "agent/guest/move_call.h"
#include "agent/guest/paths.h"
#include "agent/guest/replays.h"
#include "agent/guest/signals.h"
#include "agent/guest/tickets.h"
#include "agent/guest/user_limits.h"
#include "agent/home/home_move.h"
#include "agent/home/learn.h"
#include "agent/home/progress.h"
#include "agent/jobs/leases.h"
#include "agent/moves/moves.h"
#include "agent/measure/links.h"
#include "agent/owner/owner_part.h"
#include "user/clock.h"

#define ROWS_EVERY_NS (10 * CLOCK_NS_PER_S) /* counting rows every period would cost too much */

static const struct journal_rows *rows_of(struct front *front)
{
	uint64_t now = loop_boot_ns(front->base->loop);

	if (!front->rows_ns || now - front->rows_ns > ROWS_EVERY_NS) {
		journal_rows(front->journal, &front->rows);
		front->rows_ns = now;
	}
	return &front->rows;
}

#define COUNTED(event) .counter = #event, .refused = front->base->counters->event

/* What the disk has of jobs: their output, and the journal. */
#define LIMITS_KEPT 6
static void limits_kept(struct front *front, const struct guest_counts *guest,
			struct limit out[LIMITS_KEPT])
{
	const struct journal_rows *rows = rows_of(front);
	const struct limit list[LIMITS_KEPT] = {
		{"output_kept_bytes", guest->spool_bytes,
		 (uint64_t)front->base->set->spool_total_mb << 20, .turns = true,
		 COUNTED(outputs_removed)},
		{"output_reserved_bytes", guest->spool_reserved,
		 (uint64_t)front->base->set->spool_total_mb << 20, COUNTED(outputs_short)},
		{"journal_submitted", rows->home, front->base->set->keep_jobs, .turns = true,
		 COUNTED(journal_failures)},
		{"journal_ran_here", rows->target, front->base->set->keep_jobs, .turns = true,
		 COUNTED(journal_failures)},
		{"journal_marks", rows->marks, JOURNAL_MARKS_MAX, .turns = true,
		 COUNTED(journal_failures)},
		{"journal_nonces", rows->nonces, 0, COUNTED(journal_failures)},
	};

	memcpy(out, list, sizeof(list));
}

/* Jobs that move: what users and nodes ask of home, and what policies look at. */
#define LIMITS_MOVES 6
static void limits_moves(const struct front *front, const struct guest_counts *guest,
			 const struct home_counts *home, struct limit out[LIMITS_MOVES])
{
	struct moves_counts moves = {0};

	if (front->moves)
		moves_count(front->moves, &moves);
	const struct limit list[LIMITS_MOVES] = {
		{"moves", home->moves, HOME_MOVES_MAX, COUNTED(moves_refused)},
		{"jobs_movable", moves.jobs, MOVES_JOBS_MAX, COUNTED(moves_left_out)},
		{"jobs_left_alone", moves.rests, MOVES_RESTS_MAX, .turns = true,
		 COUNTED(moves_rests_replaced)},
		{"nodes_moved_to", moves.nodes, MOVES_NODES_MAX, .turns = true,
		 COUNTED(moves_nodes_replaced)},
		{"moves_in_a_minute", moves.budget, MOVES_BUDGET_MAX, COUNTED(policy_moves_held)},
		{"move_calls", guest->move_calls, MOVE_CALLS_MAX, COUNTED(moves_refused)},
	};

	memcpy(out, list, sizeof(list));
}

size_t limits_list(struct front *front, struct limit out[LIMITS_LISTED])
{
	const struct peers *peers = front->peers;
	const struct user_limits *limits = front->user_limits;
	const struct gate_counts net = net_part_counts(peers->net);
	struct guest_counts guest;
	struct home_counts home;
	uint64_t descriptors, descriptors_max;
	guest_count(front->guest, &guest);
	descriptors_count(&descriptors, &descriptors_max);
	home_count(front->home, &home);
	const struct limit list[] = {
		{"jobs", guest.jobs, JOBS_MAX, COUNTED(admissions_refused)},
		{"jobs_of_a_user", LIMIT_UNKNOWN, front->base->set->user_jobs_max,
		 COUNTED(jobs_refused_limit)},
		{"tasks_of_a_user", LIMIT_UNKNOWN, limits ? limits->limits.tasks : 0,
		 COUNTED(forks_refused)},
		{"memory_mb_of_a_user", LIMIT_UNKNOWN,
		 limits ? limits->limits.memory_bytes >> 20 : 0, COUNTED(jobs_oom)},
		{"restartable_jobs", home.leases, LEASES_MAX, COUNTED(restartable_refused_full)},
		{"gangs", gangs_count(front->gangs), GANGS_MAX, COUNTED(gangs_refused)},
		{"charges", home.charges, VIEW_CHARGES_MAX, .counter = "charges_lost",
		 .refused = home.charges_lost},
		{"connections_of_a_part", LIMIT_UNKNOWN, PART_ROWS_MAX,
		 COUNTED(connections_summed)},
		{"processes_of_a_part", LIMIT_UNKNOWN, PART_TASKS_MAX, COUNTED(connections_summed)},
		{"running_jobs_noted", home.progress, PROGRESS_MAX, .turns = true,
		 COUNTED(progress_replaced)},
		{"runs_to_learn", home.to_learn, LEARN_LATER_MAX, COUNTED(runs_not_learned)},
		{"predictions", home.predictions, PREDICTIONS_MAX, .turns = true,
		 COUNTED(predictions_replaced)},
		{"nodes", peers->matrix.count, MATRIX_NODES_MAX, COUNTED(vectors_refused_full)},
		{"nodes_dialled", net.dialed, BULLETIN_DIALED_MAX, .counter = NULL},
		{"nodes_asking", peers->hearing.nasked, HEARING_ASKED_MAX, COUNTED(hellos_refused)},
		{"skews", skews_count(&peers->skews), SKEWS_MAX, .turns = true,
		 .counter = "bulletins_refused_skew", /* a refused sealed message has a counter */
		 .refused = front->base->counters->bulletins_refused_skew},
		{"complaints_repeated",
		 front->base->complaints ? front->base->complaints->count : 0, COMPLAINTS_MAX,
		 .turns = true, COUNTED(complaints_replaced)},
		{"bulletin_guests", net.bulletin_guests, CONNECTION_LIMIT_MAX,
		 COUNTED(guests_refused)},
		{"control_guests", net.control_guests, CONNECTION_LIMIT_MAX,
		 COUNTED(guests_refused)},
		{"addresses_charged", net.control_payers + net.bulletin_payers,
		 2 * ADDRESS_BUDGETS_MAX, .turns = true, COUNTED(addresses_refused)},
		{"questions_to_munged", seal_waiting(peers->seal), SEAL_QUESTIONS_MAX,
		 COUNTED(seal_questions_refused)},
		{"hosts_looked_up", net.hosts, NAMES_ASKS_MAX, COUNTED(hosts_unresolved)},
		{"keys_asked", bulletin_asking(peers->bulletin), BULLETIN_KEYS_MAX,
		 COUNTED(keys_refused)},
		{"network_queue_bytes", net_part_queued(peers->net), GATE_QUEUE_MAX,
		 COUNTED(network_refused)},
		{"control_peers", net.control_peers, NET_CONTROL_PEERS_MAX, .turns = true,
		 COUNTED(control_peers_full)},
		{"sessions", control_sessions(peers->control), SESSIONS_MAX, .turns = true,
		 COUNTED(sessions_replaced)},
		{"clients", clients_count(front->clients), CLIENTS_MAX, COUNTED(clients_refused)},
		{"requests_per_s_of_a_user", LIMIT_UNKNOWN, front->base->set->user_requests_per_s,
		 COUNTED(requests_refused_rate)},
		{"loop_ms_per_s_of_a_user", LIMIT_UNKNOWN, 1000 / LOOP_SHARE_PART,
		 COUNTED(requests_delayed)},
		{"descriptors", descriptors, descriptors_max, COUNTED(descriptors_refused)},
		{"forwards", gathers_count(front), GATHERS_MAX, COUNTED(forwards_refused)},
		{"nodes_of_a_forward", LIMIT_UNKNOWN, GATHER_NODES_MAX, .counter = NULL},
		{"forwarded", forwarded_count(front, false), FORWARDED_MAX,
		 COUNTED(forwarded_refused)},
		{"forwarded_of_a_user", LIMIT_UNKNOWN, FORWARDED_OF_ONE,
		 COUNTED(forwarded_refused)},
		{"looks", looks_count(front), LOOKS_MAX, COUNTED(looks_refused)},
		{"links", links_count(front->links), LINKS_PEERS_MAX, .counter = NULL},
		{"link_connections", links_sockets(front->links), LINKS_SOCKETS_MAX,
		 .counter = "link_connections_left_out", .refused = links_dropped(front->links)},
		{"signals", guest.signals, SIGNALS_MAX, COUNTED(signals_refused)},
		{"recorders", recorders_count(front), RECORDERS_MAX, COUNTED(recorders_refused)},
		{"streams_at_network", net.streams, NET_STREAMS_MAX, COUNTED(streams_refused)},
		{"streams", streams_count(front->streams), STREAMS_MAX, COUNTED(streams_refused)},
		{"stream_bytes", streams_bytes(front->streams), STREAMS_BYTES_MAX, .turns = true,
		 COUNTED(streams_refused)},
		{"paths_looked_at", guest.paths, PATHS_MAX, COUNTED(paths_refused)},
		{"paths_that_hang", guest.paths_late, PATHS_LATE_MAX, COUNTED(paths_refused)},
		{"paths_that_hang_of_a_user", LIMIT_UNKNOWN, PATHS_LATE_OF_USER,
		 COUNTED(paths_refused)},
		{"accounts_kept", accounts_count(front->accounts), ACCOUNTS_MAX, .turns = true,
		 .counter = NULL},
		{"tickets", guest.tickets, TICKETS_MAX, COUNTED(tickets_refused)},
		{"owner_requests", forwarded_count(front, true), OWNER_QUESTIONS_MAX,
		 COUNTED(forwarded_refused)},
		{"jobs_controlled", front->feedback ? feedback_jobs(front->feedback) : 0,
		 FEEDBACK_JOBS_MAX, COUNTED(feedback_left_out)},
		{"replays", guest.replays, REPLAYS_MAX, COUNTED(replays_refused)},
	};

	_Static_assert(sizeof(list) / sizeof(*list) + LIMITS_KEPT + LIMITS_MOVES <= LIMITS_LISTED,
		       "all have room");
	memcpy(out, list, sizeof(list));
	out += sizeof(list) / sizeof(*list);
	limits_kept(front, &guest, out);
	limits_moves(front, &guest, &home, out + LIMITS_KEPT);
	return sizeof(list) / sizeof(*list) + LIMITS_KEPT + LIMITS_MOVES;
}

json_t *limits_json(struct front *front)
{
	struct limit list[LIMITS_LISTED];
	size_t n = limits_list(front, list);
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct limit *b = &list[i];
		json_t *o = json_pack("{s:s,s:b,s:s?,s:I}", "name", b->name, "turns", b->turns,
				      "counter", b->counter, "refused", (json_int_t)b->refused);

		json_object_set_new(o, "used",
				    b->used == LIMIT_UNKNOWN ? json_null()
							     : json_integer((json_int_t)b->used));
		json_object_set_new(o, "max",
				    b->max ? json_integer((json_int_t)b->max) : json_null());
		if (json_array_append_new(array, o)) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}
