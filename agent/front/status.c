/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What `iocom doctor` asks for: the agent's state, settings and limits. */
#include "agent/front/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/front/limits.h"
#include "agent/front/nodes_peers.h"
#include "agent/guest/user_limits.h"
#include "agent/measure/links.h"
#include "balancer/profile/profile.h"
#include "user/clock.h"
#include "user/utf8.h"

/* Returns true if every user of this node may see the setting KEY; others may be for root alone. */
static bool is_open(const char *key)
{
	static const char *const open[] = {"name",    "listen",	   "address",	   "port",
					   "run-dir", "state-dir", "munge-socket", "policy"};

	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
		if (!strcmp(open[i], key))
			return true;
	return false;
}

/* The settings by key, in the form of the configuration file. */
static json_t *settings_json(const struct front *front, uid_t uid)
{
	json_t *o = json_object();

	for (size_t i = 0; i < settings_program.nkeys; i++) {
		const struct config_key *key = &settings_program.keys[i];
		char *text, *clean;

		if (uid != 0 && !is_open(key->name))
			continue;
		text = settings_text(front->base->set, key);
		clean = text ? malloc(3 * strlen(text) + 1) : NULL;
		if (clean)
			utf8_copy(clean, 3 * strlen(text) + 1, text, strlen(text));
		json_object_set_new(o, key->name, clean ? json_string(clean) : NULL);
		free(clean);
		free(text);
	}
	return o;
}

json_t *counters_json(const struct front *front)
{
	json_t *o = json_object();
	struct home_counts home;

	home_count(front->home, &home);
#define X(name)                                                                                    \
	json_object_set_new(o, #name, json_integer((json_int_t)front->base->counters->name));
	COUNTERS(X)
#undef X
	json_object_set_new(o, "tick_late_ms",
			    json_integer((json_int_t)front->base->counters->tick_late_ms));
	json_object_set_new(o, "charges_lost", json_integer((json_int_t)home.charges_lost));
	json_object_set_new(o, "vectors_left_out", json_integer((json_int_t)home.vectors_left_out));
	json_object_set_new(o, "link_connections_left_out",
			    json_integer((json_int_t)links_dropped(front->links)));
	json_object_set_new(o, "log_lines_suppressed",
			    json_integer((json_int_t)front->base->log->suppressed));
	return o;
}

/* Whether the class profiles had to begin anew since this agent started. */
static json_t *status_profiles_json(const struct front *front)
{
	const char *why = "", *aside = front->profiles ? profile_aside(front->profiles, &why) : "";

	return *aside ? json_pack("{s:s?,s:s?}", "aside", aside, "why", why)
		      : json_pack("{s:n}", "aside");
}

void status_request(struct front *front, struct client *c, const msgpack_object *request)
{
	json_t *drops = json_object();
	size_t others = 0;

	(void)request;
	for (size_t i = 0; i < front->pulse->ndrops; i++)
		json_object_set_new(drops, front->pulse->drops[i].name,
				    json_integer((json_int_t)front->pulse->drops[i].count));
	for (size_t i = 0; i < front->peers->matrix.count; i++)
		others += matrix_at(&front->peers->matrix, i)->alive;
	client_json(
		c, json_pack("{s:i,s:s,s:s,s:i,s:f,s:b,s:I,s:I,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o*}",
			     "version", 1, "iocom", IOCOM_VERSION, "node", front->base->set->name,
			     "pid", (int)getpid(), "uptime_s",
			     (double)(loop_boot_ns(front->base->loop) - front->pulse->started_ns) /
				     1e9,
			     "networked", settings_networked(front->base->set), "others",
			     (json_int_t)others, "degraded_columns",
			     (json_int_t)front->pulse->ndegraded, "cgroup", front->unified, "drops",
			     drops, "counters", counters_json(front), "bounds", limits_json(front),
			     "settings", settings_json(front, client_who(c)->uid), "peers",
			     nodes_peers_json(front), "profiles", status_profiles_json(front),
			     "user_limits",
			     front->user_limits ? user_limits_json(front->user_limits) : NULL));
}
