/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See limits.h; tests/unit/test_limits.sh looks that none is missing. */
#include "agent/front/limits.h"

#include "agent/base/accounts.h"
#include "agent/agent.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "agent/cluster/connection_limit.h"
#include "agent/jobs/leases.h"
#include "agent/guest/paths.h"
#include "agent/front/recorders.h"
#include "agent/guest/replays.h"
#include "agent/guest/signals.h"
#include "agent/guest/stream.h"
#include "agent/guest/guest_attach.h"
#include "agent/cluster/tunnel.h"

#define ROWS_EVERY_NS (10 * CLOCK_NS_PER_S) /* counting them is not for every period */

static const struct journal_rows *rows_of(struct agent *a)
{
	uint64_t now = clock_boot_ns();

	if (!a->rows_ns || now - a->rows_ns > ROWS_EVERY_NS) {
		journal_rows(a->journal, &a->rows);
		a->rows_ns = now;
	}
	return &a->rows;
}

#define COUNTED(event) .counter = #event, .refused = a->counters.event

size_t limits_list(struct agent *a, struct limit out[LIMITS_LISTED])
{
	const struct journal_rows *rows = rows_of(a);
	size_t late, looking = paths_count(a->paths, &late);
	const struct limit list[] = {
		{"jobs", a->jobs.count, JOBS_MAX, COUNTED(admissions_refused)},
		{"jobs_of_a_user", LIMIT_UNKNOWN, a->set.user_jobs_max,
		 COUNTED(jobs_refused_limit)},
		{"restartable_jobs", a->nleases, LEASES_MAX, COUNTED(restartable_refused_full)},
		{"charges", a->charges.count, VIEW_CHARGES_MAX, .counter = "charges_lost",
		 .refused = a->charges.lost},
		{"nodes", a->matrix.count, MATRIX_NODES_MAX, COUNTED(vectors_refused_full)},
		{"nodes_dialled", bulletin_dialed(a->bulletin), BULLETIN_DIALED_MAX,
		 .counter = NULL},
		{"skews", skews_count(&a->skews), SKEWS_MAX, .turns = true,
		 .counter = "bulletins_refused_skew", /* sealed messages count themselves */
		 .refused = a->counters.bulletins_refused_skew},
		{"bulletin_guests", bulletin_guests(a->bulletin), CONNECTION_LIMIT_MAX,
		 COUNTED(guests_refused)},
		{"control_guests", control_guests(a->control), CONNECTION_LIMIT_MAX,
		 COUNTED(guests_refused)},
		{"control_peers", control_peers(a->control), CONTROL_PEERS_MAX, .turns = true,
		 COUNTED(control_peers_full)},
		{"clients", clients_count(a->clients), CLIENTS_MAX, COUNTED(clients_refused)},
		{"requests_per_s_of_a_user", LIMIT_UNKNOWN, a->set.user_requests_per_s,
		 COUNTED(requests_refused_rate)},
		{"signals", signals_count(a), SIGNALS_MAX, COUNTED(signals_refused)},
		{"recorders", recorders_count(a), RECORDERS_MAX, COUNTED(recorders_refused)},
		{"streams", streams_count(a->streams), STREAMS_MAX, COUNTED(streams_refused)},
		{"stream_bytes", streams_bytes(a->streams), STREAMS_BYTES_MAX, .turns = true,
		 COUNTED(streams_refused)},
		{"tunnels", tunnels_count(a->tunnels), TUNNELS_MAX, COUNTED(tunnels_refused)},
		{"paths_looked_at", looking, PATHS_MAX, COUNTED(paths_refused)},
		{"paths_that_hang", late, PATHS_LATE_MAX, COUNTED(paths_refused)},
		{"paths_that_hang_of_a_user", LIMIT_UNKNOWN, PATHS_LATE_OF_USER,
		 COUNTED(paths_refused)},
		{"accounts_kept", accounts_count(a->accounts), ACCOUNTS_MAX, .turns = true,
		 .counter = NULL},
		{"replays", replays_count(a), REPLAYS_MAX, COUNTED(replays_refused)},
		{"output_kept_bytes", a->spool_kept_bytes, (uint64_t)a->set.spool_total_mb << 20,
		 .turns = true, COUNTED(outputs_removed)},
		{"journal_submitted", rows->home, a->set.keep_jobs, .turns = true,
		 COUNTED(journal_failures)},
		{"journal_ran_here", rows->target, a->set.keep_jobs, .turns = true,
		 COUNTED(journal_failures)},
		{"journal_marks", rows->marks, JOURNAL_MARKS_MAX, .turns = true,
		 COUNTED(journal_failures)},
		{"journal_nonces", rows->nonces, 0, COUNTED(journal_failures)},
	};
	size_t n = sizeof(list) / sizeof(*list);

	_Static_assert(sizeof(list) / sizeof(*list) <= LIMITS_LISTED, "all have room");
	for (size_t i = 0; i < n; i++)
		out[i] = list[i];
	return n;
}

json_t *limits_json(struct agent *a)
{
	struct limit list[LIMITS_LISTED];
	size_t n = limits_list(a, list);
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
