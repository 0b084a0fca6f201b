/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * SIGHUP (systemctl reload): the settings are read again, flags included.  All of them are good, or
 * nothing changes.  The network part gets none of those that hold at once: its settings need a
 * restart.
 */
#include "agent/agent_own.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/notify.h"
#include "balancer/settings/settings_live.h"

void agent_on_reload(struct agent *a,
		     int (*read)(void *arg, struct settings *next, struct iocom_err *err),
		     void *arg)
{
	a->read_settings = read;
	a->read_arg = arg;
}

/* What this agent made of its settings at the start counts as configured. */
static void reload_as_started(const struct agent *a, struct settings *next)
{
	if (a->peers.seal || next->npeers)
		return;
	/* It serves its own machine only, for want of munged. */
	memcpy(next->listen, a->set->listen, sizeof(next->listen));
	memcpy(next->address, a->set->address, sizeof(next->address));
}

static void reload_take(struct agent *a, const struct settings *next)
{
	struct settings_changes changes;

	if (settings_take(a->set, next, &changes)) {
		log_write(&a->log, LOG_L_ERROR, "settings are not read again: out of memory");
		return;
	}
	a->log.level = a->set->log_level;
	owner_part_reload(a->owner);
	feedback_reload(a->feedback);
	log_write(&a->log, LOG_L_INFO, "settings are read again: %s%s",
		  *changes.live ? "changed " : "nothing changed that holds at once", changes.live);
	if (*changes.waiting)
		log_write(&a->log, LOG_L_WARNING,
			  "settings that need a restart (systemctl restart iocomd) and do not hold "
			  "yet: %s",
			  changes.waiting);
}

void agent_reload(struct agent *a)
{
	struct settings *next = a->read_settings ? calloc(1, sizeof(*next)) : NULL;
	struct iocom_err err = {.text = "out of memory"};
	int rc;

	if (!a->read_settings)
		return;
	notify_systemd("RELOADING=1");
	rc = next ? a->read_settings(a->read_arg, next, &err) : -1;
	if (rc) {
		log_write(&a->log, LOG_L_ERROR, "settings are not read again, nothing changed: %s",
			  err.text);
	} else {
		reload_as_started(a, next);
		reload_take(a, next);
	}
	free(next);
	notify_systemd("READY=1");
}
