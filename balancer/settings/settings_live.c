/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See settings_live.h.  Each setting has a row: what the agent reads whenever it needs it is live;
 * what it has made sockets, files, threads or copies of is not.
 */
#include "balancer/settings/settings_live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE(member) true, offsetof(struct settings, member), sizeof(((struct settings *)0)->member)
#define RESTART	     false, 0, 0
#define FEEDBACK_ROW(kind, type, member, name, value, help, usual, least_, most_)                  \
	{name, LIVE(feedback.member)},
#define MOVE_ROW(kind, type, member, name, value, help, usual, least, most)                        \
	{name, LIVE(moves.member)},
#define RULE_ROW(kind, type, member, name, value, help, usual, least, most) {name, RESTART},

static const struct live_row {
	const char *key;
	bool live;
	size_t offset, size;
} live_rows[] = {{"accept-jobs", LIVE(accept_jobs)},
		 {"allow-root", LIVE(allow_root)},
		 {"min-uid", LIVE(min_uid)},
		 {"allow-users", LIVE(allow_users)},
		 {"deny-users", LIVE(deny_users)},
		 {"owners", LIVE(owners)},
		 {"administrators", LIVE(administrators)},
		 {"policy", LIVE(policy)},
		 {"light-ms", LIVE(light_ms)},
		 {"sensitivity", LIVE(sensitivity)},
		 {"pam", LIVE(pam)},
		 {"pam-dir", LIVE(pam_dir)},
		 {"begin-limit-s", LIVE(begin_limit_s)},
		 {"user-jobs-max", LIVE(user_jobs_max)},
		 {"user-tasks-max", LIVE(user_tasks_max)},
		 {"user-memory-mb", LIVE(user_memory_mb)},
		 {"slots", LIVE(slots)},
		 {"user-requests-per-s", LIVE(user_requests_per_s)},
		 {"all-connections", LIVE(all_connections)},
		 {"keep-jobs", LIVE(keep_jobs)},
		 {"keep-days", LIVE(keep_days)},
		 {"lease-s", LIVE(lease_s)},
		 {"moves-precopy", LIVE(moves_precopy)},
		 {"spool-mb", LIVE(spool_mb)},
		 {"spool-total-mb", LIVE(spool_total_mb)},
		 {"spool-user-mb", LIVE(spool_user_mb)},
		 {"data-cache-mb", LIVE(data_cache_mb)},
		 {"log-level", LIVE(log_level)},
		 {"name", RESTART},
		 {"cluster", RESTART},
		 {"listen", RESTART},
		 {"address", RESTART},
		 {"port", RESTART},
		 {"peers", RESTART},
		 {"period", RESTART},
		 {"run-dir", RESTART},
		 {"state-dir", RESTART},
		 {"data-dir", RESTART},
		 {"munge-socket", RESTART},
		 {"scope", RESTART},
		 {"cpu-speed", RESTART},
		 {"disk-mb-per-s", RESTART},
		 {"disk-fixed-ms", RESTART},
		 {"disk-parallel", RESTART},
		 {"network-mb-per-s", RESTART},
		 {"shim", RESTART},
		 {"criu", RESTART},
		 {"synthetic", RESTART},
		 {"net-program", RESTART},
		 {"net-user", RESTART},
		 {"metrics-listen", RESTART},
		 {"metrics-max-jobs", RESTART},
		 {"foreground", RESTART},
		 {"feedback-restore", RESTART},
		 {"feedback", LIVE(feedback.mode)},
		 {"feedback-controller", LIVE(feedback.controller)},
		 SETTINGS_FEEDBACK(FEEDBACK_ROW) SETTINGS_RULES(RULE_ROW) SETTINGS_MOVES(MOVE_ROW)};

static const struct live_row *live_find(const char *key)
{
	for (size_t i = 0; i < sizeof(live_rows) / sizeof(*live_rows); i++)
		if (!strcmp(live_rows[i].key, key))
			return &live_rows[i];
	return NULL;
}

int settings_live(const char *key)
{
	const struct live_row *row = live_find(key);

	return row ? row->live : -ENOENT;
}

/* Returns 1: KEY differs; 0; -ENOMEM. */
static int live_differs(const struct settings *set, const struct settings *next,
			const struct config_key *key)
{
	char *before = settings_text(set, key), *after = settings_text(next, key);
	int rc = before && after ? strcmp(before, after) != 0 : -ENOMEM;

	free(before);
	free(after);
	return rc;
}

/* Adds KEY in the words of a file. */
static void live_note(char *list, size_t size, const char *key)
{
	size_t n = strlen(list);

	if (n < size)
		snprintf(list + n, size - n, "%s%s", n ? ", " : "", key);
	for (char *at = list + n; *at; at++)
		if (*at == '-')
			*at = '_';
}

int settings_take(struct settings *set, const struct settings *next,
		  struct settings_changes *changes)
{
	struct settings taken = *set;

	*changes = (struct settings_changes){0};
	for (size_t i = 0; i < settings_program.nkeys; i++) {
		const struct config_key *key = &settings_program.keys[i];
		const struct live_row *row = live_find(key->name);
		int rc = live_differs(set, next, key);

		if (rc < 0)
			return rc;
		if (!rc)
			continue;
		if (row && row->live)
			memcpy((char *)&taken + row->offset, (const char *)next + row->offset,
			       row->size);
		live_note(row && row->live ? changes->live : changes->waiting,
			  sizeof(changes->live), key->name);
	}
	*set = taken;
	return 0;
}
